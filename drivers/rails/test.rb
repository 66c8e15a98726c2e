# A Rails app as it comes, with prepared statements and migrations that lock each other out.
#
# The way to PostgreSQL, or to pgweir, is in the environment (PGHOST, ...). Each worker has a
# connection of its own all the time, and prepares its statements on it.

require_relative "config/environment"
require "open3"

WORKERS = ActiveRecord::Base.connection_pool.size
ROUNDS = 40
MIGRATE = %w[ruby bin/rails db:migrate].freeze
FIRST = { "VERSION" => "20240101000003" }.freeze

def check(found, expected)
  raise "#{found.inspect} and not #{expected.inspect}" unless found == expected
end

# Two processes migrate at once: the second is refused while the first is at it, and finds all done
# behind it.
def migrate_twice_at_once
  Open3.popen2(FIRST, *MIGRATE) do |input, output, first|
    said = output.each_line.find { |line| line.include?("half way") }
    raise "The migration did not come to its half" unless said
    refused, status = Open3.capture2e(FIRST, *MIGRATE, stdin_data: "")
    check(status.success?, false)
    raise refused unless refused.include?("ActiveRecord::ConcurrentMigrationError")
    input.puts
    output.read
    check(first.value.success?, true)
  end
  check(migrate(FIRST), "")
  check(states, %w[up up up down])
end

def migrate(environment = {})
  said, status = Open3.capture2e(environment, *MIGRATE, stdin_data: "")
  raise said unless status.success?
  said
end

def states
  ActiveRecord::Base.connection.migration_context.migrations_status.map(&:first)
end

# Outside of a transaction Rails itself tries again where a plan does not fit its table any more.
def transaction(&block)
  ActiveRecord::Base.transaction(&block)
rescue ActiveRecord::PreparedStatementCacheExpired
  retry
end

def round(owner, number)
  note = transaction { write(owner, number) }
  check(Note.find(note.id).attributes.slice("owner", "text"),
        { "owner" => owner, "text" => "#{number}, updated" })
  check(Note.where(owner: owner).order(:id).pluck(:more), (0..number).map { |n| { "n" => n } })
  check(Note.where(owner: owner).map(&:owner).uniq, [owner])
  transaction do
    Note.where(owner: owner).delete_all
    check(Note.where(owner: owner).exists?, false)
    raise ActiveRecord::Rollback
  end
end

def write(owner, number)
  note = Note.create!(owner: owner, text: number.to_s, more: { n: number })
  check(note.reload.owner, owner)
  note.update!(text: "#{note.text}, updated")
  counter = Counter.lock.first
  counter.update!(value: counter.value + 1)
  note
end

# The others go on while the first has another process add a column, and use what they have prepared
# before once more behind that.
def work(name, all_are_there, migrated)
  Note.connection_pool.with_connection do
    all_are_there.wait
    ROUNDS.times do |number|
      if number == ROUNDS / 2 && name == "worker 0"
        migrate
        migrated.count_down
      end
      migrated.wait if number == ROUNDS - 1
      round(name, number)
    end
  end
end

def work_at_once
  all_are_there = Concurrent::CyclicBarrier.new(WORKERS)
  migrated = Concurrent::CountDownLatch.new
  names = WORKERS.times.map { |n| "worker #{n}" }
  names.map { |name| Thread.new { work(name, all_are_there, migrated) } }.each(&:join)
end

migrate_twice_at_once
Counter.create!
ActiveRecord::Base.clear_all_connections!
Thread.abort_on_exception = true
work_at_once
Note.reset_column_information
check(Counter.first.value, WORKERS * ROUNDS)
check(Note.group(:owner, :stars).count, WORKERS.times.to_h { |n| [["worker #{n}", 1], ROUNDS] })
puts "rails: all is well with Rails #{Rails.version}, pg #{PG::VERSION}: " \
     "#{states.join(" ")}, #{WORKERS} workers, #{Note.count} notes"
