CREATE INDEX CONCURRENTLY notes_of_owner ON notes (owner);
