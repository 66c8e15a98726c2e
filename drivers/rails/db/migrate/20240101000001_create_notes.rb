class CreateNotes < ActiveRecord::Migration[6.1]
  def change
    create_table :notes do |t|
      t.string :owner, null: false
      t.text :text, null: false
      t.jsonb :more, null: false, default: {}
      t.timestamps
    end
  end
end
