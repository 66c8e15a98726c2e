class Note < ActiveRecord::Base
  validates :owner, :text, presence: true
end
