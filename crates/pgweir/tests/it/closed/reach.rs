//! Whatever may lead from a text to a function that it does not name. Whoever finds another way
//! adds it here.

/// The statements that make it all, and the one by which its owner does so.
pub(super) fn schema(become_owner: &str) -> String {
    [CONFIGURED, become_owner, BEFORE, SCHEMA].join("; ")
}

/// Most of it ends in `act`, which is as loud as can be: it sets something for the session. The
/// others leave something of each kind there.
const SCHEMA: &str = "
    CREATE FUNCTION act(a int DEFAULT 1) RETURNS int LANGUAGE plpgsql AS $$
        BEGIN PERFORM set_config('app.a', 'x', false); RETURN a; END $$;
    CREATE FUNCTION act_still(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
        BEGIN PERFORM set_config('app.a', 'x', false); RETURN a; END $$;
    CREATE FUNCTION act_pair(a int, b int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
        BEGIN PERFORM set_config('app.a', 'x', false); RETURN a = b; END $$;
    CREATE FUNCTION quiet(a int) RETURNS int LANGUAGE sql AS 'SELECT a + 1';
    CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM act(); RETURN coalesce(NEW, OLD); END $$;
    CREATE FUNCTION on_all() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM act(); RETURN NULL; END $$;

    CREATE SEQUENCE q;
    CREATE FUNCTION by_set() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN SET work_mem = '1MB'; RETURN 1; END $$;
    CREATE FUNCTION by_text() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN EXECUTE 'S' || 'ET work_mem = ''1MB'''; RETURN 1; END $$;
    CREATE FUNCTION by_update() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN UPDATE pg_settings SET setting = '1MB' WHERE name = 'work_mem'; RETURN 1; END $$;
    CREATE FUNCTION in_sql() RETURNS text LANGUAGE sql
        BEGIN ATOMIC SELECT set_config('app.a', 'x', false); END;
    CREATE FUNCTION listens() RETURNS int LANGUAGE plpgsql AS $$ BEGIN LISTEN c; RETURN 1; END $$;
    CREATE FUNCTION locks() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_lock(1); RETURN 1; END $$;
    CREATE FUNCTION makes() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN CREATE TEMP TABLE made (a int); RETURN 1; END $$;
    CREATE FUNCTION prepares() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN EXECUTE 'PREPARE p AS SELECT 1'; RETURN 1; END $$;
    CREATE FUNCTION holds() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN EXECUTE 'DECLARE c CURSOR WITH HOLD FOR SELECT 1'; RETURN 1; END $$;
    CREATE FUNCTION seeds() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN PERFORM setseed(0.5); RETURN 1; END $$;
    CREATE FUNCTION counts() RETURNS bigint LANGUAGE sql AS 'SELECT nextval(''q'')';
    CREATE FUNCTION lower(a int) RETURNS int LANGUAGE sql AS 'SELECT act(a)';
    CREATE FUNCTION treats() RETURNS bigint LANGUAGE sql AS
        'SELECT TREAT(''q''::regclass AS nextval)';
    CREATE FUNCTION treats_too() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN PERFORM TREAT(CASE WHEN true THEN 0.5 ELSE 0 END AS setseed); RETURN 1; END $$;
    CREATE FUNCTION within() RETURNS text LANGUAGE plpgsql AS $$ DECLARE a text; BEGIN
        SELECT set_config INTO a ('app.a', 'x', false); RETURN a; END $$;
    CREATE FUNCTION within_names() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE a bigint; BEGIN
        SELECT x. INTO a nextval FROM to_regclass('q') AS x; RETURN a; END $$;
    CREATE FUNCTION behind_names() RETURNS int LANGUAGE plpgsql AS $$ DECLARE ordinality int; BEGIN
        SELECT INTO ordinality act(1); RETURN 1; END $$;
    CREATE FUNCTION behind_parameter(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
        SELECT INTO $1 1, act(1); RETURN 1; END $$;
    CREATE FUNCTION behind_column() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
        PERFORM x.into > 5, act(1) FROM (SELECT 6 AS \"into\") AS x; RETURN 1; END $$;
    CREATE FUNCTION makes_into() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
        SELECT 1 AS insert INTO TEMP made_into; RETURN 1; END $$;
    CREATE FUNCTION tells() RETURNS text LANGUAGE plpgsql AS $$ DECLARE ordinality text; BEGIN
        SELECT INTO ordinality current_setting('statement_timeout'); RETURN ordinality; END $$;
    CREATE FUNCTION explains() RETURNS int LANGUAGE plpgsql AS $$ DECLARE a record; BEGIN
        FOR a IN EXPLAIN ANALYZE SELECT 1 AS a INTO TEMP explained LOOP END LOOP;
        RETURN 1; END $$;
    CREATE FUNCTION shows() RETURNS SETOF text LANGUAGE plpgsql AS $$
        BEGIN RETURN QUERY SHOW statement_timeout; END $$;
    CREATE FUNCTION shows_too() RETURNS int LANGUAGE plpgsql AS $$
        DECLARE a CURSOR IS SHOW statement_timeout; BEGIN OPEN a; RETURN 1; END $$;
    CREATE FUNCTION on_listen() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN LISTEN c; RETURN NEW; END $$;

    CREATE VIEW set_behind AS SELECT by_set() AS a;
    CREATE VIEW locked_behind AS SELECT locks() AS a;
    CREATE VIEW configured_behind AS SELECT configured() AS a;
    CREATE TABLE heard (a int);
    CREATE TRIGGER t BEFORE INSERT ON heard FOR EACH ROW EXECUTE FUNCTION on_listen();
    CREATE TABLE made_behind (a int DEFAULT makes(), b int);
    CREATE TABLE counted (a bigint DEFAULT counts(), b int);
    CREATE TABLE numbered (id bigserial PRIMARY KEY, a int);
    INSERT INTO numbered (a) SELECT generate_series(1, 9);
    CREATE TABLE numbered_too
        (id int GENERATED BY DEFAULT AS IDENTITY, a int, k bigint
         REFERENCES numbered ON DELETE CASCADE ON UPDATE CASCADE);
    INSERT INTO numbered_too (a, k) VALUES (1, 1);
    CREATE TABLE defaulted (k bigint PRIMARY KEY);
    INSERT INTO defaulted SELECT generate_series(1, 99);
    CREATE TABLE defaulting (k bigint DEFAULT nextval('q') REFERENCES defaulted
         ON DELETE SET DEFAULT);
    INSERT INTO defaulting SELECT generate_series(50, 99);
    CREATE TABLE seeded_rule (a int);
    CREATE RULE r AS ON INSERT TO seeded_rule DO ALSO SELECT seeds();
    CREATE TABLE held_rows (a int);
    INSERT INTO held_rows VALUES (1);
    ALTER TABLE held_rows ENABLE ROW LEVEL SECURITY;
    ALTER TABLE held_rows FORCE ROW LEVEL SECURITY;
    CREATE POLICY p ON held_rows USING (a = prepares());

    CREATE TABLE key_target (a int PRIMARY KEY);
    CREATE TABLE keys_only (a int REFERENCES key_target);
    CREATE TABLE by_key (a int REFERENCES key_target ON DELETE CASCADE);
    CREATE TABLE indexed_not (a int);
    CREATE TABLE plain (a int, b int);
    INSERT INTO plain VALUES (1, 2);
    CREATE FUNCTION of_plain(p plain) RETURNS int LANGUAGE plpgsql AS $$
        BEGIN PERFORM set_config('app.a', 'x', false); RETURN 1; END $$;
    CREATE VIEW seen AS SELECT act() AS a;
    CREATE VIEW over_it AS SELECT a FROM seen;
    CREATE VIEW quietly AS SELECT quiet(a) AS a FROM plain;
    CREATE TABLE by_row (a int, b int);
    INSERT INTO by_row VALUES (1, 1);
    CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON by_row
        FOR EACH ROW EXECUTE FUNCTION on_row();
    CREATE TABLE by_statement (a int);
    CREATE TRIGGER t AFTER INSERT ON by_statement EXECUTE FUNCTION on_all();
    CREATE TABLE deferred (a int);
    CREATE CONSTRAINT TRIGGER t AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION on_all();
    CREATE VIEW instead AS SELECT 1 AS a;
    CREATE TRIGGER t INSTEAD OF INSERT ON instead FOR EACH ROW EXECUTE FUNCTION on_row();
    CREATE VIEW onto AS SELECT a, b FROM by_row;
    CREATE TABLE parent (a int PRIMARY KEY);
    CREATE TABLE child (a int REFERENCES parent ON UPDATE CASCADE);
    CREATE TRIGGER t BEFORE UPDATE ON child FOR EACH ROW EXECUTE FUNCTION on_row();
    INSERT INTO parent VALUES (1);
    INSERT INTO child VALUES (1);
    CREATE TABLE emptied (a int PRIMARY KEY);
    CREATE TABLE emptied_too (a int REFERENCES emptied);
    CREATE TRIGGER t BEFORE TRUNCATE ON emptied_too EXECUTE FUNCTION on_all();
    CREATE TABLE above (a int);
    CREATE TABLE below () INHERITS (above);
    CREATE TRIGGER t BEFORE UPDATE ON below FOR EACH ROW EXECUTE FUNCTION on_row();
    INSERT INTO below VALUES (1);
    CREATE TABLE parts (a int) PARTITION BY LIST (a);
    CREATE TABLE part PARTITION OF parts DEFAULT;
    CREATE TRIGGER t BEFORE INSERT ON part FOR EACH ROW EXECUTE FUNCTION on_row();
    CREATE TABLE keyed (a int) PARTITION BY LIST (act_still(a));
    CREATE TABLE key_part PARTITION OF keyed DEFAULT;
    CREATE TABLE deep (a int, b int) PARTITION BY LIST (act_still(a));
    CREATE TABLE deeper PARTITION OF deep FOR VALUES IN (1) PARTITION BY LIST (b);
    CREATE TABLE deepest PARTITION OF deeper FOR VALUES IN (1);
    CREATE TABLE cloned (a int) PARTITION BY LIST (a);
    CREATE TABLE clone PARTITION OF cloned DEFAULT;
    CREATE TRIGGER t BEFORE INSERT ON cloned FOR EACH ROW EXECUTE FUNCTION on_row();

    CREATE TABLE defaults (a int DEFAULT act(), b int);
    CREATE DOMAIN of_q AS bigint DEFAULT nextval('q');
    CREATE DOMAIN of_it AS of_q;
    CREATE DOMAIN of_act AS int DEFAULT act();
    CREATE TABLE by_domain (a of_q, b int);
    CREATE TABLE by_domains (a of_it, b int);
    CREATE TABLE by_acting_domain (a of_act, b int);
    CREATE TABLE generated (a int, b int GENERATED ALWAYS AS (act_still(a)) STORED);
    CREATE TABLE checked (a int CHECK (act_still(a) = a));
    CREATE TABLE indexed (a int);
    CREATE INDEX ON indexed (act_still(a));
    CREATE TABLE some_indexed (a int);
    CREATE INDEX ON some_indexed (a) WHERE act_still(a) > 0;
    CREATE TABLE planned (a int, b varchar(5));
    CREATE INDEX ON planned ((a + act_still(1)));
    CREATE TABLE rechecked (a int, b int[]);
    CREATE INDEX ON rechecked USING gin (b) WITH (fastupdate = off)
        WHERE act_still(a) > 1 OR a > 0;
    INSERT INTO rechecked SELECT i, ARRAY[i % 100, i] FROM generate_series(1, 5000) AS i;
    CREATE TABLE planned_some (a int);
    CREATE INDEX ON planned_some (a) WHERE a > act_still(abs(1));
    CREATE TABLE referred (a int PRIMARY KEY, b int);
    INSERT INTO referred VALUES (1, 1);
    CREATE INDEX ON referred ((b + act_still(1)));
    CREATE TABLE refers (a int REFERENCES referred);
    CREATE TABLE referred_too (a int PRIMARY KEY);
    INSERT INTO referred_too VALUES (1);
    CREATE TABLE refers_too (a int REFERENCES referred_too, b int);
    CREATE INDEX ON refers_too ((b + act_still(1)));
    CREATE TABLE referred_by_key (a int PRIMARY KEY);
    INSERT INTO referred_by_key VALUES (1);
    CREATE TABLE refers_by_key (a int REFERENCES referred_by_key, b int)
        PARTITION BY LIST ((b + act_still(1)));
    CREATE TABLE refers_part PARTITION OF refers_by_key DEFAULT;
    CREATE TABLE referred_deep (a int PRIMARY KEY);
    INSERT INTO referred_deep VALUES (1);
    CREATE TABLE refers_deep (a int REFERENCES referred_deep, b int) PARTITION BY LIST (b);
    CREATE TABLE refers_deeper PARTITION OF refers_deep DEFAULT
        PARTITION BY LIST ((b + act_still(1)));
    CREATE TABLE refers_deepest PARTITION OF refers_deeper DEFAULT;
    CREATE FUNCTION inlined(a int) RETURNS int LANGUAGE sql IMMUTABLE AS
        'SELECT a + act_still(1)';
    CREATE TABLE inlines (a int);
    CREATE INDEX ON inlines (inlined(a));
    CREATE TABLE planned_above (a int);
    CREATE TABLE planned_below (CHECK (a <> act_still(-1))) INHERITS (planned_above);
    CREATE TABLE estimated (a int, b int);
    CREATE STATISTICS s ON (a + act_still(1)), b FROM estimated;
    CREATE TABLE estimated_from (a int, b int);
    CREATE STATISTICS s_from ON (act_still(a)), b FROM estimated_from;
    CREATE AGGREGATE total(int) (SFUNC = sums, STYPE = int, INITCOND = '0');
    CREATE TABLE ruled (a int);
    CREATE RULE r AS ON INSERT TO ruled DO ALSO SELECT act();
    CREATE TABLE answering (a int);
    CREATE RULE r AS ON INSERT TO answering DO ALSO (DELETE FROM plain; SELECT * FROM plain);
    CREATE TABLE notifying (a int);
    CREATE RULE r AS ON UPDATE TO notifying DO ALSO NOTIFY c;
    CREATE TABLE copied (a int);
    CREATE RULE r AS ON INSERT TO copied DO ALSO
        INSERT INTO indexed_not SELECT b FROM (SELECT b FROM plain) AS x;
    CREATE VIEW own_settings AS SELECT * FROM pg_settings;
    CREATE TABLE guarded (a int);
    INSERT INTO guarded VALUES (1);
    ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
    ALTER TABLE guarded FORCE ROW LEVEL SECURITY;
    CREATE POLICY p ON guarded USING (a = act());
    CREATE TABLE guarded_rows (a int);
    ALTER TABLE guarded_rows ENABLE ROW LEVEL SECURITY;
    ALTER TABLE guarded_rows FORCE ROW LEVEL SECURITY;
    CREATE POLICY p ON guarded_rows WITH CHECK (a = act());";

/// What a superuser has made before: nobody else may name a setting that PostgreSQL does not know.
const CONFIGURED: &str = "
    CREATE FUNCTION configured() RETURNS int LANGUAGE sql SET app.a = 'x' AS 'SELECT 1';
    CREATE FUNCTION seeded() RETURNS int LANGUAGE sql SET seed = 0.5 AS 'SELECT 1';
    CREATE FUNCTION in_temp() RETURNS text LANGUAGE sql SET search_path = pg_temp AS
        'SELECT current_schema()';
    CREATE FUNCTION in_temp_too() RETURNS text LANGUAGE plpgsql
        SET search_path = \"$user\", nothing, \"pg_temp\", public AS $$
        BEGIN RETURN current_schema; END $$;
    CREATE FUNCTION not_in_temp() RETURNS text LANGUAGE sql
        SET search_path = pg_catalog, pg_temp AS 'SELECT current_schema()';";

/// What a superuser makes of it then: up to PostgreSQL 14 the triggers of partitions that those of
/// their tables stand for are internal.
pub(super) const AS_BEFORE_15: &str = "
    SET allow_system_table_mods = on;
    UPDATE pg_trigger SET tgisinternal = true WHERE tgrelid = 'clone'::regclass;";

/// What comes before, since the schema uses it.
const BEFORE: &str = "
    CREATE FUNCTION sums(a int, b int) RETURNS int LANGUAGE plpgsql AS $$
        BEGIN PERFORM set_config('app.a', 'x', false); RETURN a + b; END $$;";

/// Texts that come to `act`, each in its own way.
pub(super) const ACTS: &[&str] = &[
    "SELECT act()",
    "SELECT public.act(1)",
    "SELECT x.act FROM abs(1) AS x",
    "SELECT (1).act",
    "SELECT plain.of_plain FROM plain",
    "SELECT x . \"of_plain\" FROM plain AS x",
    "SELECT (x).of_plain FROM plain AS x",
    "SELECT public.plain.of_plain FROM public.plain",
    "SELECT \"act\" ()",
    "SELECT U&\"\\0061ct\"()",
    "SELECT * FROM act()",
    "SELECT quiet(act())",
    "SELECT a.act FROM (SELECT 1) AS x, LATERAL act() AS a(act)",
    "SELECT a FROM plain ORDER BY act_still(a)",
    "SELECT count(*) FROM plain GROUP BY act(a)",
    "SELECT count(*) FROM plain HAVING act() = 1",
    "SELECT count(*) FILTER (WHERE act() = 1) FROM plain",
    "SELECT a FROM plain LIMIT act()",
    "SELECT a FROM plain OFFSET act()",
    "SELECT CASE WHEN act() = 1 THEN 1 END",
    "VALUES (act())",
    "INSERT INTO plain VALUES (act())",
    "INSERT INTO plain (a) VALUES (1) RETURNING act()",
    "UPDATE plain SET b = act()",
    "UPDATE plain SET b = 1 WHERE a = act()",
    "DELETE FROM plain WHERE act() = 2",
    "WITH x AS (SELECT act()) SELECT * FROM x",
    "WITH RECURSIVE x(a) AS (SELECT 1 UNION ALL SELECT act(a) + 1 FROM x WHERE a < 2) TABLE x",
    "MERGE INTO plain USING (VALUES (1)) AS v(a) ON plain.a = v.a \
     WHEN MATCHED THEN UPDATE SET b = act()",
    "SELECT * FROM seen",
    "TABLE over_it",
    "SELECT EXISTS (SELECT * FROM over_it WHERE a > 0)",
    "INSERT INTO plain SELECT a FROM over_it",
    "INSERT INTO by_row VALUES (1, 1)",
    "UPDATE by_row SET b = 2",
    "WITH x AS (UPDATE by_row SET b = 3 RETURNING a) SELECT * FROM x",
    "MERGE INTO by_row USING (VALUES (1)) AS v(a) ON by_row.a = v.a \
     WHEN MATCHED THEN UPDATE SET b = 4",
    "INSERT INTO by_statement VALUES (1)",
    "INSERT INTO deferred VALUES (1)",
    "INSERT INTO instead VALUES (1)",
    "INSERT INTO onto VALUES (1, 1)",
    "UPDATE parent SET a = a + 1",
    "TRUNCATE emptied CASCADE",
    "UPDATE above SET a = 1",
    "INSERT INTO parts VALUES (1)",
    "INSERT INTO keyed VALUES (1)",
    "INSERT INTO deepest VALUES (1, 1)",
    "INSERT INTO clone VALUES (1)",
    "INSERT INTO defaults (b) VALUES (1)",
    "INSERT INTO defaults DEFAULT VALUES",
    "INSERT INTO by_domain (b) VALUES (1)",
    "INSERT INTO by_domains (b) VALUES (1)",
    "INSERT INTO by_acting_domain (b) VALUES (1)",
    "INSERT INTO generated (a) VALUES (1)",
    "INSERT INTO checked VALUES (1)",
    "INSERT INTO indexed VALUES (1)",
    "INSERT INTO refers VALUES (1)",
    "DELETE FROM referred_too WHERE a = 1",
    "DELETE FROM referred_by_key WHERE a = 1",
    "UPDATE referred_deep SET a = 2 WHERE a = 1",
    "INSERT INTO some_indexed VALUES (1)",
    "SELECT pg_get_partition_constraintdef(oid) FROM pg_class WHERE relname = 'refers_part'",
    "SELECT a FROM planned",
    "SELECT a FROM planned_some WHERE a = 1",
    "SELECT a FROM rechecked WHERE a > 0 AND b <@ '{1}'",
    "SELECT a FROM inlines WHERE a = 1",
    "SELECT a FROM planned_above WHERE a = 1",
    "SELECT a FROM estimated WHERE a = 1",
    "UPDATE own_settings SET setting = '1MB' WHERE name = 'work_mem'",
    "SELECT total(a) FROM plain",
    "SELECT total(a) OVER () FROM plain",
    "INSERT INTO ruled VALUES (1)",
    "INSERT INTO guarded_rows VALUES (1)",
    "SELECT configured()",
    "SELECT seeded()",
    "SELECT in_temp()",
    "SELECT in_temp_too()",
    "SELECT by_set()",
    "SELECT by_text()",
    "SELECT by_update()",
    "SELECT in_sql()",
    "SELECT listens()",
    "SELECT locks()",
    "SELECT makes()",
    "SELECT prepares()",
    "SELECT holds()",
    "SELECT seeds()",
    "SELECT counts()",
    "SELECT lower(1)",
    "SELECT lower(a) FROM plain",
    "SELECT treats()",
    "SELECT treats_too()",
    "SELECT within()",
    "SELECT within_names()",
    "SELECT behind_names()",
    "SELECT behind_parameter(1)",
    "SELECT behind_column()",
    "SELECT makes_into()",
    "SELECT explains()",
    "SELECT * FROM set_behind",
    "SELECT * FROM locked_behind",
    "SELECT * FROM configured_behind",
    "INSERT INTO heard VALUES (1)",
    "INSERT INTO made_behind (b) VALUES (1)",
    "INSERT INTO counted (b) VALUES (1)",
    "INSERT INTO numbered (a) VALUES (1)",
    "INSERT INTO numbered_too (a) VALUES (1)",
    "UPDATE numbered SET id = DEFAULT WHERE a = 3",
    "UPDATE numbered SET (a, id) = ROW(3, DEFAULT) WHERE a = 3",
    "WITH x AS (INSERT INTO numbered (a) VALUES (1) RETURNING a) UPDATE by_row SET b = 1",
    "MERGE INTO numbered AS n USING plain ON n.a = -1 WHEN NOT MATCHED THEN INSERT (a) VALUES (1)",
    "DELETE FROM defaulted WHERE k > 49",
    "INSERT INTO seeded_rule VALUES (1)",
    "SELECT * FROM held_rows",
    "SELECT * FROM guarded",
    "UPDATE guarded SET a = a",
];

/// Texts that leave nothing which a look at the session shows, and are not shared either.
pub(super) const UNSEEN: &[&str] = &[
    "INSERT INTO answering VALUES (1)",
    "UPDATE notifying SET a = 1",
    "SELECT current_schemas(true)",
    "SELECT x.current_schemas FROM starts_with('a', 'a') AS x",
    "SELECT SYSTEM_USER",
    "SELECT tells()",
    "SELECT shows()",
    "SELECT shows_too()",
    "SELECT a FROM plain WHERE session_user = system_user",
];

/// What comes with extensions whose machine code nobody has read, or that run what they are given.
pub(super) const EXTENSIONS: &str = "
    CREATE EXTENSION dblink;
    CREATE EXTENSION pageinspect;
    CREATE FUNCTION over_there() RETURNS SETOF int LANGUAGE plpgsql AS $$
        BEGIN RETURN QUERY SELECT a FROM dblink('own', 'SELECT 1') AS t(a int); END $$;
    CREATE FUNCTION loads() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN LOAD 'auto_explain'; RETURN 1; END $$;
    CREATE VIEW far AS SELECT * FROM over_there() AS t(a);
    CREATE EXTENSION file_fdw;
    CREATE EXTENSION postgres_fdw;
    CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
    CREATE SERVER others FOREIGN DATA WRAPPER postgres_fdw;
    CREATE FOREIGN TABLE of_file (a text) SERVER files OPTIONS (filename '/dev/null');
    CREATE FOREIGN TABLE of_others (a text) SERVER others;
    CREATE VIEW of_files AS SELECT a FROM of_file;
    CREATE TABLE parent (a text);
    CREATE FOREIGN TABLE heir () INHERITS (parent) SERVER others;
    CREATE TABLE whole (a int) PARTITION BY LIST (a);
    CREATE FOREIGN TABLE part PARTITION OF whole FOR VALUES IN (1) SERVER others;";

/// Texts that come to those.
pub(super) const FOREIGN: &[&str] = &[
    "SELECT dblink_connect('own', 'dbname=postgres')",
    "SELECT * FROM dblink('own', 'SELECT 1') AS t(a int)",
    "SELECT dblink_exec('own', 'SET work_mem = ''1MB''')",
    "SELECT over_there()",
    "SELECT * FROM far",
    "SELECT get_raw_page('pg_class', 0)",
    "SELECT loads()",
    "SELECT a FROM of_file",
    "SELECT a FROM of_files",
    "SELECT a FROM of_others",
    "UPDATE of_others SET a = ''",
    "SELECT a FROM heir",
    "SELECT a FROM parent",
    "DELETE FROM parent",
    "SELECT a FROM whole",
    "INSERT INTO whole VALUES (1)",
];

/// What no text names. While a database has one of these nothing is shared in it.
pub(super) const UNNAMED: &[(&str, &[&str])] = &[
    (
        "CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = act_pair)",
        &[
            "SELECT 1 === 2",
            "SELECT 1 OPERATOR(public.===) 2",
            "SELECT 1 === ANY (ARRAY[1, 2])",
            "SELECT a FROM plain WHERE a === b",
        ],
    ),
    (
        "CREATE DOMAIN acts AS int CHECK (act_still(VALUE) = VALUE);
         CREATE DOMAIN acts_too AS acts;
         CREATE DOMAIN many AS int[] CHECK (act_still(cardinality(VALUE)) > 0);
         CREATE TYPE composite AS (a acts);
         CREATE TABLE of_domain (a acts);
         CREATE TABLE of_array (a acts[]);
         CREATE TABLE of_composite (a composite)",
        &[
            "SELECT 1::acts",
            "SELECT CAST(a AS public.acts) FROM plain",
            "SELECT acts '1'",
            "SELECT acts(1)",
            "SELECT 1::acts_too",
            "SELECT ARRAY[1]::acts[]",
            "SELECT '{1}'::many",
            "SELECT ROW(1)::composite",
            "INSERT INTO of_domain VALUES (1)",
            "INSERT INTO of_array VALUES ('{1}')",
            "INSERT INTO of_composite VALUES (ROW(1))",
            "SELECT * FROM jsonb_to_recordset('[{\"a\": 1}]') AS r(a acts)",
            "SELECT * FROM jsonb_populate_record(NULL::composite, '{\"a\": 1}')",
        ],
    ),
    (
        "CREATE TYPE pair AS (a int, b int);
         CREATE FUNCTION as_text(pair) RETURNS text LANGUAGE plpgsql AS $$
            BEGIN PERFORM act(); RETURN 'x'; END $$;
         CREATE CAST (pair AS text) WITH FUNCTION as_text(pair) AS ASSIGNMENT;
         CREATE TABLE pairs (p pair, t text);
         INSERT INTO pairs VALUES (ROW(1, 2))",
        &[
            "SELECT ROW(1, 2)::pair::text",
            "INSERT INTO pairs (t) VALUES (ROW(1, 2)::pair)",
            "UPDATE pairs SET t = p",
        ],
    ),
];

/// Texts that do not come to it, and are shared.
pub(super) const QUIET: &[&str] = &[
    "SELECT a FROM plain",
    "SELECT quiet(a) FROM plain",
    "SELECT not_in_temp()",
    "SELECT * FROM quietly",
    "UPDATE plain SET b = b + 1 WHERE a = 1",
    "SELECT a FROM by_row",
    "SELECT b FROM defaults",
    "SELECT a FROM by_domain",
    "SELECT a FROM indexed",
    "SELECT a FROM checked",
    "SELECT a FROM estimated_from WHERE a = 1",
    "SELECT a FROM notifying",
    "SELECT a FROM answering",
    "INSERT INTO copied VALUES (1)",
    "UPDATE by_key SET a = 2",
    "INSERT INTO keys_only VALUES (1)",
    "DELETE FROM key_target",
    "UPDATE numbered SET a = 4 WHERE id = 4",
    "UPDATE numbered SET id = 100 WHERE id = 1",
    "DELETE FROM numbered WHERE id = 7",
    "SELECT a FROM numbered FOR UPDATE",
    "UPDATE numbered_too SET a = 2",
    "UPDATE made_behind SET b = 1",
    "DELETE FROM counted",
];
