class IndexNotes < ActiveRecord::Migration[6.1]
  disable_ddl_transaction!

  def change
    add_index :notes, :owner, algorithm: :concurrently
    reversible do |direction|
      direction.up { wait_to_be_told }
    end
  end

  private

  # While the test tries to migrate from a second process.
  def wait_to_be_told
    say "half way"
    $stdout.flush
    $stdin.gets
  end
end
