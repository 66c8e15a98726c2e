//! What a client has set may be refused later, when another server is brought to it: the client is
//! told so in PostgreSQL's words, nothing of its unit is run, and nobody else notices.

use pgweir_testkit::frames::{
    bind, close_statement, copy_data, copy_done, describe_portal, execute, extended, flush,
    function_call, parse, query, sync,
};
use pgweir_testkit::{Message, WireClient};

use crate::stage::{CLUSTER, Stage};

/// A setting that is taken when it is set, and refused later.
struct Case {
    /// Of its database, and of the role that its clients log in as.
    name: &'static str,
    /// What the superuser makes first.
    made: &'static str,
    set: &'static str,
    /// What the superuser does behind the client's back.
    spoilt: &'static str,
    show: &'static str,
    shown: &'static str,
    /// What the superuser does to make it good again.
    mended: &'static str,
}

const CASES: [Case; 8] = [
    Case {
        name: "refused_role",
        made: "CREATE ROLE refused_r; GRANT refused_r TO refused_role",
        set: "SET ROLE refused_r",
        spoilt: "DROP ROLE refused_r",
        show: "SELECT current_user",
        shown: "refused_r",
        mended: "CREATE ROLE refused_r; GRANT refused_r TO refused_role",
    },
    Case {
        name: "refused_member",
        made: "CREATE ROLE refused_m; GRANT refused_m TO refused_member",
        set: "SET ROLE refused_m",
        spoilt: "REVOKE refused_m FROM refused_member",
        show: "SELECT current_user",
        shown: "refused_m",
        mended: "GRANT refused_m TO refused_member",
    },
    Case {
        name: "refused_session",
        made: "CREATE ROLE refused_s; ALTER ROLE refused_session SUPERUSER",
        set: "SET SESSION AUTHORIZATION refused_s",
        spoilt: "DROP ROLE refused_s",
        show: "SELECT session_user",
        shown: "refused_s",
        mended: "CREATE ROLE refused_s",
    },
    Case {
        name: "refused_space",
        made: "SET allow_in_place_tablespaces = on; CREATE TABLESPACE refused_t LOCATION ''",
        set: "SET default_tablespace = refused_t",
        spoilt: "DROP TABLESPACE refused_t",
        show: "SHOW default_tablespace",
        shown: "refused_t",
        mended: "SET allow_in_place_tablespaces = on; CREATE TABLESPACE refused_t LOCATION ''",
    },
    Case {
        name: "refused_temp_space",
        made: "SET allow_in_place_tablespaces = on; CREATE TABLESPACE refused_u LOCATION ''; \
               GRANT CREATE ON TABLESPACE refused_u TO refused_temp_space",
        set: "SET temp_tablespaces = refused_u",
        spoilt: "DROP TABLESPACE refused_u",
        show: "SHOW temp_tablespaces",
        shown: "refused_u",
        mended: "CREATE TABLESPACE refused_u LOCATION ''; \
                 GRANT CREATE ON TABLESPACE refused_u TO refused_temp_space",
    },
    Case {
        name: "refused_search",
        made: "CREATE TEXT SEARCH CONFIGURATION public.refused_c (COPY = simple)",
        set: "SET default_text_search_config = 'public.refused_c'",
        spoilt: "DROP TEXT SEARCH CONFIGURATION public.refused_c",
        show: "SHOW default_text_search_config",
        shown: "public.refused_c",
        mended: "CREATE TEXT SEARCH CONFIGURATION public.refused_c (COPY = simple)",
    },
    Case {
        name: "refused_access",
        made: "CREATE ACCESS METHOD refused_a TYPE TABLE HANDLER heap_tableam_handler",
        set: "SET default_table_access_method = refused_a",
        spoilt: "DROP ACCESS METHOD refused_a",
        show: "SHOW default_table_access_method",
        shown: "refused_a",
        mended: "CREATE ACCESS METHOD refused_a TYPE TABLE HANDLER heap_tableam_handler",
    },
    Case {
        name: "refused_right",
        made: "GRANT SET ON PARAMETER log_min_messages TO refused_right",
        set: "SET log_min_messages = error",
        spoilt: "REVOKE SET ON PARAMETER log_min_messages FROM refused_right",
        show: "SHOW log_min_messages",
        shown: "error",
        mended: "GRANT SET ON PARAMETER log_min_messages TO refused_right",
    },
];

/// Everything that a unit can be, each of which would leave something if it was run, and the number
/// of its replies.
fn units() -> Vec<(Vec<u8>, usize)> {
    let insert = "INSERT INTO t VALUES (1)";
    let run = |sql: &str| [parse("", sql, &[]), bind("", "", &[]), execute("", 0)].concat();
    let long = format!("INSERT INTO t VALUES (length('{}'))", "x".repeat(100_000));
    let copy = [copy_data(b"1\n"), copy_done()].concat();
    let named = [bind("", "kept", &[]), describe_portal(""), execute("", 0), sync()].concat();
    let new = [parse("new", insert, &[]), bind("", "new", &[]), execute("", 0), sync()].concat();
    vec![
        (query(insert), 1),
        (extended(insert, &[]), 1),
        (query("BEGIN; INSERT INTO t VALUES (1); COMMIT"), 1),
        ([run("BEGIN"), run(insert), run("COMMIT"), sync()].concat(), 1),
        ([run(insert), sync(), run(insert), sync(), query(insert)].concat(), 3),
        ([run("SELECT 1"), flush(), run(insert), sync()].concat(), 1),
        (named, 1),
        (new, 1),
        ([close_statement("none"), run(insert), sync()].concat(), 1),
        (query(&long), 1),
        (extended(&long, &[]), 1),
        ([query("COPY t FROM STDIN"), copy.clone()].concat(), 1),
        ([run("COPY t FROM STDIN"), copy, sync()].concat(), 1),
        // nextval
        (function_call(1574, 0, &[Some(b"s")]), 1),
    ]
}

/// SQLSTATE and text of an error.
fn words(error: &Message) -> (String, Option<String>) {
    (error.sqlstate(), error.field(b'M'))
}

/// The error of a reply that consists of it and ReadyForQuery.
#[track_caller]
fn refusal(client: &mut WireClient) -> Message {
    let mut reply = client.read_until_ready().unwrap();
    let tags: Vec<_> = reply.iter().map(|message| char::from(message.tag)).collect();
    assert_eq!(tags, ['E', 'Z'], "{}", reply[0]);
    assert_eq!(reply[0].field(b'S').as_deref(), Some("ERROR"));
    assert_eq!(reply[1].body, b"I");
    reply.remove(0)
}

/// What the stage of a case is like before anything is refused.
struct Refused {
    stage: Stage,
    /// As many as there are servers, one of them with a role of its own.
    others: [WireClient; 2],
    client: WireClient,
    /// What PostgreSQL says to who sets it now.
    said: (String, Option<String>),
}

impl Refused {
    fn new(case: &Case) -> Self {
        let stage = Stage::new(case.name, 2);
        stage.ask("CREATE TABLE t (a int); CREATE SEQUENCE s; GRANT ALL ON t, s TO public");
        stage.ask(&format!("GRANT pg_monitor TO {}", case.name));
        // A tablespace is made outside a transaction.
        case.made.split("; ").for_each(|statement| drop(stage.ask(statement)));
        let mut others = [stage.client(), stage.client()];
        others[1].query("SET ROLE pg_monitor");
        let mut client = stage.client();
        client.send(&[parse("kept", "INSERT INTO t VALUES (1)", &[]), sync()].concat()).unwrap();
        client.read_until_ready().unwrap();
        client.query(case.set);
        let mut refused = Self { stage, others, client, said: Default::default() };
        refused.others_have_all_servers();
        assert_eq!(refused.client.query(case.show), [case.shown]);
        refused.others_have_all_servers();
        case.spoilt.split("; ").for_each(|statement| drop(refused.stage.ask(statement)));
        let mut direct = WireClient::login(CLUSTER.address(), &refused.stage.login()).unwrap();
        refused.said = words(&direct.try_query(case.set).unwrap_err());
        refused
    }

    /// Behind this, no server is set as the client wants it.
    #[track_caller]
    fn others_have_all_servers(&mut self) {
        let expected = [&self.stage.name, "pg_monitor"];
        for (other, role) in self.others.iter_mut().zip(expected) {
            other.query("BEGIN");
            assert_eq!(other.query("SELECT current_user"), [role]);
        }
        for other in &mut self.others {
            other.query("COMMIT");
        }
    }

    #[track_caller]
    fn assert_nothing_was_run(&self) {
        assert_eq!(self.stage.ask("SELECT count(*), (SELECT is_called FROM s) FROM t"), ["0|f"]);
    }
}

#[test]
fn nothing_of_a_unit_is_run_until_the_setting_is_good_again() {
    for case in &CASES {
        let mut refused = Refused::new(case);
        for (unit, replies) in units() {
            refused.client.send(&unit).unwrap();
            for _ in 0..replies {
                assert_eq!(words(&refusal(&mut refused.client)), refused.said);
            }
            refused.assert_nothing_was_run();
            refused.others_have_all_servers();
        }
        case.mended.split("; ").for_each(|statement| drop(refused.stage.ask(statement)));
        for _ in 0..3 {
            refused.others_have_all_servers();
            assert_eq!(refused.client.query(case.show), [case.shown]);
        }
    }
}

/// A client gets going again by what would do on a connection of its own.
#[test]
fn what_takes_the_setting_back_is_run() {
    let cures = [
        ("role", &["RESET ROLE", "SET ROLE NONE", "DISCARD ALL"][..]),
        ("temp", &["RESET temp_tablespaces", "SET temp_tablespaces = ''", "RESET ALL"]),
        ("search", &["SET default_text_search_config = 'pg_catalog.simple'", "DISCARD ALL"]),
    ];
    for (kind, cures) in cures {
        for (at, cure) in cures.iter().enumerate() {
            for by_query in [true, false] {
                // Cases are of one database each, and this one is spoilt again and again.
                let case = CASES.iter().find(|case| case.name.contains(kind)).unwrap();
                let name: &str = format!("cured_{kind}_{at}_{by_query}").leak();
                let own = |text: &str| -> &'static str {
                    text.replace(case.name, name).replace("refused_", &format!("{name}_")).leak()
                };
                let [made, set, spoilt] = [case.made, case.set, case.spoilt].map(own);
                let [shown, mended] = [case.shown, case.mended].map(own);
                let case = Case { name, made, set, spoilt, shown, mended, ..*case };
                let mut refused = Refused::new(&case);
                refused.client.send(&query(case.show)).unwrap();
                assert_eq!(words(&refusal(&mut refused.client)), refused.said);
                let unit = if by_query { query(cure) } else { extended(cure, &[]) };
                refused.client.send(&unit).unwrap();
                let reply = refused.client.read_until_ready().unwrap();
                assert!(reply.iter().all(|message| message.tag != b'E'), "{cure}: {}", reply[0]);
                for _ in 0..2 {
                    refused.others_have_all_servers();
                    assert_ne!(refused.client.query(case.show), [case.shown], "{cure}");
                }
            }
        }
    }
}

/// Without its BEGIN the INSERT would be committed: the client is ended before it is read.
#[test]
fn what_stands_behind_a_begin_that_was_refused_is_not_run() {
    // A text search configuration is of one database, so that this test can make it too.
    let case = CASES.iter().find(|case| case.name == "refused_search").unwrap();
    let mut refused = Refused::new(&Case { name: "refused_begin", ..*case });
    let insert = query("INSERT INTO t VALUES (1)");
    refused.client.send(&[query("BEGIN"), insert, query("COMMIT")].concat()).unwrap();
    let end = refused.client.read_to_end().unwrap();
    let [error] = &end[..] else { panic!("{end:?}") };
    assert_eq!(error.field(b'S').as_deref(), Some("FATAL"));
    assert_eq!(words(error), refused.said);
    refused.assert_nothing_was_run();
    refused.others_have_all_servers();
}
