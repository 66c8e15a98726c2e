//! What clients ask for at login, on one server that they take turns on: each finds what it would
//! find on a connection of its own; and what `docs/differences.md` says that it does not.

use pgweir_testkit::{Login, WireClient, frames};

use crate::stage::{self, CLUSTER, Stage};

/// A login with settings.
fn login(stage: &Stage, settings: &[(&str, &str)]) -> Login {
    settings.iter().fold(stage.login(), |login, (name, value)| login.parameter(name, value))
}

/// A client with these settings finds the same on the server that `before` had as on one of its
/// own.
#[track_caller]
fn finds_its_own_behind(
    stage: &Stage,
    before: &[(&str, &str)],
    settings: &[(&str, &str)],
    question: &str,
) {
    stage.client_as(&login(stage, before)).query("SELECT 1");
    let login = login(stage, settings);
    let mut direct = WireClient::login(CLUSTER.address(), &login).unwrap();
    let mut pooled = stage.client_as(&login);
    assert_eq!(pooled.query(question), direct.query(question));
}

#[test]
fn values_are_not_read_in_the_encoding_of_the_client_before() {
    let stage = Stage::new("settings_encoding", 1);
    let question = "SHOW search_path; SHOW a.b; SELECT convert_to(current_setting('a.é'), 'UTF8')";
    let settings = [("search_path", "schéma, \"日本\""), ("a.b", "Zoë's \\ "), ("a.é", "ü")];
    for encoding in ["LATIN1", "SJIS", "WIN1251", "SQL_ASCII"] {
        finds_its_own_behind(&stage, &[("client_encoding", encoding)], &settings, question);
    }
}

/// The value of a setting that the client's encoding has no word for is no error until it is
/// asked for.
#[test]
fn values_may_have_no_word_in_the_clients_encoding() {
    let stage = Stage::new("settings_no_word", 1);
    let settings = [("search_path", "日本"), ("client_encoding", "LATIN1")];
    let question = "SELECT length(current_setting('search_path'))";
    finds_its_own_behind(&stage, &[("search_path", "é")], &settings, question);
}

/// In SJIS the last byte of `Á` and a backslash are one character, and the quote behind it would
/// end the literal.
#[test]
fn values_are_never_read_as_sql() {
    let stage = Stage::new("settings_sql", 1);
    let value = "Á\\', false), pg_catalog.set_config($$x.y$$, $$injected$$, false)] IS NULL --";
    let question = "SHOW a.b; SELECT current_setting('x.y', true)";
    finds_its_own_behind(&stage, &[("client_encoding", "SJIS")], &[("a.b", value)], question);
}

/// A DateStyle may name a part of itself only: the other part is the default's, not that of the
/// client before.
#[test]
fn values_that_build_on_others_do_not_build_on_strangers() {
    let stage = Stage::new("settings_parts", 1);
    let german = [("DateStyle", "German, YMD")];
    finds_its_own_behind(&stage, &german, &[("DateStyle", "DMY")], "SHOW DateStyle");
    finds_its_own_behind(&stage, &german, &[("options", "-c datestyle=sql")], "SHOW DateStyle");
}

/// What row-level security lets a client see by a setting of its own, nobody else sees: however it
/// was set, and whoever had the server before.
#[test]
fn each_tenant_sees_its_own_rows() {
    let stage = Stage::new("settings_tenant", 1);
    stage.ask(
        "CREATE TABLE kept (tenant text, word text); \
         INSERT INTO kept VALUES ('a', 'of a'), ('b', 'of b'), ('c', 'of c'), ('d', 'of d'); \
         ALTER TABLE kept ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY own ON kept USING (tenant = current_setting('app.tenant', true)); \
         GRANT SELECT ON kept TO settings_tenant",
    );
    let mut by_login = stage.client_as(&login(&stage, &[("app.tenant", "a")]));
    let mut by_set = stage.client();
    by_set.query("SET app.tenant = 'b'");
    let mut by_function = stage.client();
    by_function.query("SELECT set_config('app.tenant', 'c', false)");
    let (mut by_transaction, mut nobody) = (stage.client(), stage.client());
    let look = "SELECT word FROM kept";
    for _ in 0..10 {
        assert_eq!(by_login.query(look), ["of a"]);
        assert_eq!(nobody.query(look).len(), 0);
        assert_eq!(by_set.query(look), ["of b"]);
        assert_eq!(by_function.query(look), ["of c"]);
        let alone = format!("BEGIN; SET LOCAL app.tenant = 'd'; {look}; COMMIT");
        assert_eq!(by_transaction.query(&alone), ["of d"]);
        assert_eq!(by_transaction.query(look).len(), 0);
        assert_eq!(nobody.query(look).len(), 0);
    }
}

/// Whose rights count at login is not decided by a role, one's own or a stranger's.
#[test]
fn roles_do_not_take_away_rights_at_login() {
    let stage = Stage::new("settings_role", 1);
    stage.ask("CREATE ROLE settings_low; ALTER ROLE settings_role SUPERUSER");
    let low = [("role", "settings_low")];
    let powerful = [("log_min_messages", "error"), ("role", "settings_low")];
    let question = "SHOW log_min_messages; SELECT current_user, session_user";
    finds_its_own_behind(&stage, &low, &powerful[..1], question);
    finds_its_own_behind(&stage, &low, &powerful, question);
    finds_its_own_behind(&stage, &powerful, &low, question);
    finds_its_own_behind(&stage, &powerful, &[], question);
}

/// By SET they would do something that nothing takes back.
#[test]
fn settings_that_do_nothing_at_login_do_nothing() {
    let stage = Stage::new("settings_in_vain", 1);
    stage.ask("CREATE ROLE settings_other; ALTER ROLE settings_in_vain SUPERUSER");
    let settings = [("seed", "0.5"), ("session_authorization", "settings_other")];
    let question = "SELECT session_user, current_user";
    finds_its_own_behind(&stage, &[], &settings, question);
    let drawn = || {
        stage.client().query("SELECT 1");
        stage.client_as(&login(&stage, &settings)).query("SELECT random()")
    };
    assert_ne!(drawn(), drawn());
}

/// Once a session has used a temporary table its temp_buffers are what they are, whatever is
/// discarded.
#[test]
fn what_a_server_refuses_because_of_the_client_before_a_new_one_takes() {
    let stage = Stage::new("settings_fixed", 1);
    stage.client().query("CREATE TEMP TABLE t AS SELECT 1");
    finds_its_own_behind(&stage, &[], &[("temp_buffers", "16MB")], "SHOW temp_buffers");
}

/// What a session's reset query does to settings no one but the operator knows: each session is
/// brought to all of its own, on the server that another one had with the same, or with some.
#[test]
fn sessions_find_their_own_whatever_the_reset_query_does() {
    let resets = ["RESET ALL", "DISCARD ALL ;", "SET search_path = x; SET work_mem = '9MB'", ""];
    for (n, reset_query) in resets.into_iter().enumerate() {
        let stage = Stage::with(&format!("settings_reset_{n}"), 1, |config| {
            config
                .pool("pool_mode", "\"session\"")
                .pool("server_reset_query", &format!("\"{reset_query}\""))
        });
        let same = [("options", "-c search_path=tenant_a"), ("work_mem", "7MB")];
        let some = [("search_path", "tenant_a"), ("work_mem", "8MB"), ("TimeZone", "Asia/Tokyo")];
        let question = "SHOW search_path; SHOW work_mem; SELECT pg_backend_pid()";
        let rows =
            |settings: &[(&str, &str)]| stage.client_as(&login(&stage, settings)).query(question);
        let own = rows(&same);
        assert_eq!(own[..2], ["tenant_a", "7MB"]);
        for (settings, work_mem) in [(&same[..], "7MB"), (&some, "8MB"), (&same, "7MB")] {
            assert_eq!(rows(settings), ["tenant_a", work_mem, &own[2]], "{reset_query:?}");
        }
        // What a session asks for has no part in what one that asks for nothing finds.
        let expected = match n {
            2 => ["x", "9MB", &own[2]],
            _ => ["\"$user\", public", "4MB", &own[2]],
        };
        assert_eq!(rows(&[]), expected, "{reset_query:?}");
    }
}

/// The client before may have left no time for anything.
#[test]
fn a_strangers_timeout_refuses_nobody() {
    let stage = Stage::new("settings_timeout", 1);
    for _ in 0..20 {
        stage.client_as(&login(&stage, &[("statement_timeout", "1")]));
        let mut client = stage.client_as(&login(&stage, &[("TimeZone", "Asia/Tokyo")]));
        assert_eq!(client.query("SHOW TimeZone; SHOW statement_timeout"), ["Asia/Tokyo", "0"]);
    }
}

/// Whatever a client sets for its session goes with it, by every name that PostgreSQL has for such
/// a setting: one was taken for a part of a transaction by its first letters.
#[test]
fn every_setting_of_a_client_goes_with_it() {
    let stage = Stage::new("settings_every", 1);
    // Of these each has a value that does no harm, and is not what it was. What is left out belongs
    // to the transaction, to the protocol, or to pgweir.
    let question = "SELECT name || '=' || CASE vartype WHEN 'bool' THEN \
                    CASE setting WHEN 'on' THEN 'off' ELSE 'on' END \
                    ELSE (greatest(min_val::numeric, 1) + 60000)::text END \
                    FROM pg_settings WHERE context = 'user' AND (vartype = 'bool' OR \
                    name LIKE '%timeout') AND name NOT IN ('transaction_deferrable', \
                    'transaction_read_only', 'default_transaction_read_only', \
                    'exit_on_error', 'row_security', 'standard_conforming_strings', \
                    'transform_null_equals', 'zero_damaged_pages') ORDER BY name";
    let settings = stage.client().query(question);
    assert!(settings.len() > 40, "{settings:?}");
    for setting in settings {
        let (name, value) = setting.split_once('=').expect("it was put together so");
        let [mut one, mut other] = [stage.client(), stage.client()];
        let show = format!("SELECT setting FROM pg_settings WHERE name = '{name}'");
        let before = one.query(&show);
        one.query(&format!("SET {name} = {value}"));
        assert_eq!(other.query(&show), before, "{name} has stayed");
        assert_eq!(one.query(&show), [value], "{name} is gone");
    }
}

/// In PostgreSQL's own words, and once.
#[test]
fn what_no_server_takes_is_refused() {
    let stage = Stage::new("settings_refused", 1);
    let wrong = login(&stage, &[("work_mem", "much")]);
    let refusal = |address| {
        let mut client = WireClient::open(address).unwrap();
        client.send(&wrong.startup_message()).unwrap();
        let end = client.read_to_end().unwrap();
        let errors: Vec<_> = end.iter().filter(|message| message.tag == b'E').collect();
        assert_eq!(errors.len(), 1);
        (errors[0].sqlstate(), errors[0].field(b'M'))
    };
    for _ in 0..3 {
        assert_eq!(refusal(stage.address()), refusal(CLUSTER.address()));
        assert_eq!(stage.client().query("SHOW work_mem"), ["4MB"]);
    }
    let sessions = stage.backends("true");
    assert_eq!(sessions, 1, "of a pool of one");
}

/// Where PostgreSQL takes no connection more than the pool has, a server is replaced by one that
/// comes when it has gone.
#[test]
fn a_server_is_replaced_where_there_is_room_for_one_only() {
    let stage = Stage::new("settings_limit", 1);
    stage.ask("ALTER ROLE settings_limit CONNECTION LIMIT 1");
    let settings = [("temp_buffers", "16MB")];
    for n in 0..20 {
        stage.client().query(&format!("CREATE TEMP TABLE t_{n} AS SELECT 1"));
        let mut client = stage.client_as(&login(&stage, &settings));
        assert_eq!(client.query("SHOW temp_buffers"), ["16MB"]);
    }
    let log = stage.pgweir.log();
    let refused = log.lines().find(|line| line.contains("too many connections"));
    assert_eq!(refused, None);
}

/// A role may be dropped while a client has it: its statements are refused, and its session goes
/// on.
#[test]
fn settings_that_have_become_wrong_refuse_a_statement() {
    let stage = Stage::new("settings_dropped", 1);
    stage.ask("CREATE ROLE settings_gone; GRANT settings_gone TO settings_dropped");
    let mut client = stage.client_as(&login(&stage, &[("role", "settings_gone")]));
    assert_eq!(client.query("SELECT current_user"), ["settings_gone"]);
    let mut other = stage.client();
    assert_eq!(other.query("SELECT current_user"), ["settings_dropped"]);
    stage::superuser(&CLUSTER, "settings_dropped").query("DROP ROLE settings_gone");
    let refusal = client.try_query("SELECT current_user").unwrap_err();
    assert_eq!((refusal.field(b'S').as_deref(), &refusal.sqlstate()[..]), (Some("ERROR"), "22023"));
    stage.ask("CREATE ROLE settings_gone; GRANT settings_gone TO settings_dropped");
    assert_eq!(client.query("SELECT current_user"), ["settings_gone"]);
    assert_eq!(other.query("SELECT current_user"), ["settings_dropped"]);
}

#[test]
fn a_function_stays_as_it_was_read() {
    let stage = Stage::new("settings_function", 1);
    stage::superuser(&CLUSTER, &stage.name).query(
        "CREATE FUNCTION second() RETURNS text LANGUAGE plpgsql STABLE AS
         $$ BEGIN RETURN extract(epoch FROM timestamptz '2020-01-01'); END $$",
    );
    let zones = ["timezone", "UTC", "Asia/Tokyo"];
    let [direct, pooled] = values(&stage, zones, "SELECT second()");
    assert_ne!(direct[0], direct[1]);
    assert_eq!(pooled, [&*direct[0], &*direct[0]], "docs/differences.md says so");
}

/// A plan keeps what a function has told that calls itself immutable: that is no other client's.
#[test]
fn what_calls_itself_immutable_tells_each_client_of_its_own() {
    let stage = tenants("settings_immutable", "");
    each_is_told_its_own(&stage, ["SELECT tenant()", "SELECT owner FROM docs"]);
}

/// Nor is it that of a client that was another one for a transaction.
#[test]
fn what_was_computed_for_a_transaction_is_for_nobody_else() {
    let stage = tenants("settings_local", "");
    let login = login(&stage, &[("app.tenant", "a")]);
    let [mut alice, mut bob] =
        [(); 2].map(|()| prepared(stage.client_as(&login), "SELECT tenant()"));
    alice.query("BEGIN; SET LOCAL app.tenant = 'b'");
    assert!(value(&mut alice).ends_with(b"b"));
    alice.query("COMMIT");
    assert!(value(&mut bob).ends_with(b"a"));
    assert!(value(&mut alice).ends_with(b"a"));
}

/// PostgreSQL reads a literal anew when something has changed about its table, under the settings
/// of then: by those of a transaction nobody else's is.
#[test]
fn a_literal_that_was_read_anew_in_a_transaction_is_so_for_nobody_else() {
    let stage = Stage::new("settings_literal", 1);
    let mut superuser = stage::superuser(&CLUSTER, &stage.name);
    superuser.query(
        "CREATE TABLE t AS SELECT timestamptz '2023-12-31 20:00 UTC' AS at;
         GRANT SELECT ON t TO public",
    );
    let login = login(&stage, &[("TimeZone", "UTC")]);
    let text = "SELECT count(*)::text FROM t WHERE at >= '2024-01-01'";
    let [mut alice, mut bob] = [(); 2].map(|()| prepared(stage.client_as(&login), text));
    assert!(value(&mut bob).ends_with(b"0"));
    superuser.query("ANALYZE t");
    alice.query("BEGIN; SET LOCAL TimeZone = 'Asia/Tokyo'");
    assert!(value(&mut alice).ends_with(b"1"), "it was read anew");
    alice.query("COMMIT");
    assert!(value(&mut bob).ends_with(b"0"));
    assert!(value(&mut alice).ends_with(b"0"));
}

/// A function in PL/pgSQL keeps its plans, and no statement of a client is theirs.
#[test]
fn what_a_function_has_planned_is_no_other_clients() {
    let stage = tenants("settings_kept", KEEPERS);
    each_is_told_its_own(&stage, ["SELECT told()", "SELECT seen()"]);
}

/// Nor is what it has planned under what a client had set for a transaction, before or behind what
/// others have.
#[test]
fn what_a_function_has_planned_for_a_transaction_is_its_clients_own() {
    let stage = tenants("settings_kept_local", KEEPERS);
    let login = login(&stage, &[("app.tenant", "a")]);
    for text in ["SELECT told()", "SELECT seen()"] {
        let [mut alice, mut bob] = [(); 2].map(|()| prepared(stage.client_as(&login), text));
        assert!(value(&mut bob).ends_with(b"a"));
        alice.query("BEGIN; SET LOCAL app.tenant = 'b'");
        assert!(value(&mut alice).ends_with(b"b"), "{text}");
        alice.query("COMMIT");
        assert!(value(&mut bob).ends_with(b"a"), "{text}");
    }
}

/// Functions that keep in their plans whose the rows are.
const KEEPERS: &str = "
    CREATE FUNCTION told() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN tenant(); END $$;
    CREATE FUNCTION seen() RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN RETURN (SELECT owner FROM docs); END $$;";

/// A pool of one, in whose database rows are their tenant's, who is told by a function.
fn tenants(name: &str, more: &str) -> Stage {
    let stage = Stage::new(name, 1);
    stage::superuser(&CLUSTER, name).query(&format!(
        "CREATE FUNCTION tenant() RETURNS text LANGUAGE plpgsql IMMUTABLE AS
         $$ BEGIN RETURN current_setting('app.tenant'); END $$;
         CREATE TABLE docs (owner text);
         INSERT INTO docs VALUES ('a'), ('b');
         ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
         CREATE POLICY own ON docs USING (owner = tenant());
         GRANT SELECT ON docs TO {name};
         {more}"
    ));
    stage
}

/// Tenants hear what they would on connections of their own.
fn each_is_told_its_own(stage: &Stage, texts: [&str; 2]) {
    for text in texts {
        let [direct, pooled] = values(stage, ["app.tenant", "a", "b"], text);
        assert_ne!(direct[0], direct[1]);
        assert_eq!(pooled, direct, "{text}");
    }
}

/// Two clients differ in a setting, and have both prepared a statement before they execute it: what
/// each hears on a connection of its own, and on the server that they share.
fn values(stage: &Stage, [name, first, second]: [&str; 3], text: &str) -> [Vec<Vec<u8>>; 2] {
    let logins = [first, second].map(|value| login(stage, &[(name, value)]));
    let direct = |login| WireClient::login(CLUSTER.address(), login).unwrap();
    let direct: Vec<_> = logins.iter().map(|login| prepared(direct(login), text)).collect();
    let pooled = |login| prepared(stage.client_as(login), text);
    let pooled: Vec<_> = logins.iter().map(pooled).collect();
    [direct, pooled].map(|mut clients| clients.iter_mut().map(value).collect())
}

/// A client that has prepared a statement.
fn prepared(mut client: WireClient, text: &str) -> WireClient {
    client.send(&[frames::parse("s", text, &[]), frames::sync()].concat()).unwrap();
    client.read_until_ready().unwrap();
    client
}

/// The one value of that.
fn value(client: &mut WireClient) -> Vec<u8> {
    let messages = [frames::bind("", "s", &[]), frames::execute("", 0), frames::sync()];
    client.send(&messages.concat()).unwrap();
    let reply = client.read_until_ready().unwrap();
    let row = reply.into_iter().find(|message| message.tag == b'D').unwrap();
    row.body
}
