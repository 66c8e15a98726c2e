CREATE TYPE mood AS ENUM ('new', 'updated');

CREATE TABLE notes (
    id bigserial PRIMARY KEY,
    owner text NOT NULL,
    mood mood NOT NULL,
    more jsonb NOT NULL
);
