CREATE SEQUENCE notes_seq INCREMENT BY 50;

CREATE TABLE notes (
    id bigint PRIMARY KEY,
    version integer NOT NULL,
    owner text NOT NULL,
    text text NOT NULL,
    created timestamptz NOT NULL
);

CREATE TABLE counter (id integer PRIMARY KEY, value integer NOT NULL);

INSERT INTO counter VALUES (1, 0);
