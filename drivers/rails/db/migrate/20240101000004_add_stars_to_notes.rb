class AddStarsToNotes < ActiveRecord::Migration[6.1]
  def change
    add_column :notes, :stars, :integer, null: false, default: 1
  end
end
