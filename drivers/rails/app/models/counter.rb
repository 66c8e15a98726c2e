class Counter < ActiveRecord::Base
end
