require "rails"
require "active_record/railtie"

module Notes
  class Application < Rails::Application
    config.load_defaults 6.1
    config.eager_load = true
    config.active_record.dump_schema_after_migration = false
  end
end
