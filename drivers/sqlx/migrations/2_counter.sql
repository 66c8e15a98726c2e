CREATE TABLE counter (value bigint NOT NULL);

INSERT INTO counter VALUES (0);
