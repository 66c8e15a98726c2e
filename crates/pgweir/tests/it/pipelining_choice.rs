//! Who shares servers: what a client says of that itself.

use pgweir_testkit::{Login, WireClient};

use crate::stage::Stage;

/// A stage whose servers are shared, and one function that tells whether the server is that it is
/// called on.
fn stage(name: &str, pool_size: u32, pipelining: &str) -> Stage {
    let stage = Stage::with(name, pool_size, |config| {
        let config = config.general("pipelining", &format!("\"{pipelining}\""));
        config.pool("quiet_functions", "\"brake\"")
    });
    stage.ask(&format!(
        "CREATE TABLE seen (brake text); INSERT INTO seen VALUES (NULL);
         CREATE FUNCTION brake() RETURNS text LANGUAGE sql AS
             $$ SELECT current_setting('statement_timeout') $$;
         ALTER TABLE seen OWNER TO {name}"
    ));
    stage
}

/// Whether a client's statement was run on a server that others may share.
fn shares(stage: &Stage, client: &mut WireClient) -> bool {
    client.query("UPDATE seen SET brake = brake()");
    match stage.value("SELECT brake FROM seen").as_str() {
        "50ms" => true,
        "0" => false,
        other => panic!("{other}"),
    }
}

fn says(stage: &Stage, name: &str, value: &str) -> Login {
    stage.login().parameter(name, value)
}

#[test]
fn a_client_says_at_its_login_that_it_shares_no_server() {
    let stage = stage("choice_login", 1, "auto");
    let mut plain = stage.client();
    let mut off = stage.client_as(&says(&stage, "pgweir.pipelining", "off"));
    let mut auto = stage.client_as(&says(&stage, "PgWeir.Pipelining", "AUTO"));
    let options = "-c pgweir.pipelining=off -c work_mem=1MB";
    let mut of_options = stage.client_as(&says(&stage, "options", options));
    for _ in 0..3 {
        assert!(shares(&stage, &mut plain));
        assert!(!shares(&stage, &mut off));
        assert!(shares(&stage, &mut auto));
        assert!(!shares(&stage, &mut of_options));
    }
    assert_eq!(of_options.query("SHOW work_mem"), ["1MB"]);
    // It is no setting of PostgreSQL's, and none that anybody has made.
    let unknown = off.try_query("SHOW pgweir.pipelining").unwrap_err();
    assert_eq!(unknown.sqlstate(), "42704");
    for (name, value) in [("pgweir.pipelining", "on"), ("options", "-c pgweir.pipelining=3x8")] {
        let refused = WireClient::login(stage.address(), &says(&stage, name, value));
        let refused = refused.expect_err(value).to_string();
        assert!(refused.contains("22023"), "{refused}");
    }
}

/// A custom setting for PostgreSQL, with all that holds for such.
#[test]
fn a_client_says_by_set_that_it_shares_no_server() {
    let stage = stage("choice_set", 1, "auto");
    let mut other = stage.client();
    let mut client = stage.client();
    for (text, shown, then) in [
        ("SET pgweir.pipelining = 'off'", "off", false),
        ("BEGIN; SET pgweir.pipelining = 'auto'; ROLLBACK", "off", false),
        ("RESET pgweir.pipelining", "", true),
        ("BEGIN; SET LOCAL pgweir.pipelining = 'off'; COMMIT", "", true),
        ("SELECT set_config('pgweir.pipelining', 'OFF', false)", "OFF", false),
        ("SET pgweir.pipelining = 'auto'", "auto", true),
        ("SET pgweir.pipelining = 'no word for it'", "no word for it", true),
        ("BEGIN; SET pgweir.pipelining = 'off'; COMMIT", "off", false),
        ("DISCARD ALL", "", true),
    ] {
        client.query(text);
        // What comes before it is known what was set shares no server in any case.
        client.query("SELECT 1");
        assert_eq!(shares(&stage, &mut client), then, "{text}");
        assert!(shares(&stage, &mut other), "{text}");
        if shown.is_empty() {
            continue;
        }
        assert_eq!(client.query("SHOW pgweir.pipelining"), [shown], "{text}");
    }
    let mut loner = stage.client_as(&says(&stage, "pgweir.pipelining", "off"));
    assert!(!shares(&stage, &mut loner));
    loner.query("SET pgweir.pipelining = 'auto'");
    loner.query("SELECT 1");
    assert!(shares(&stage, &mut loner));
    loner.query("RESET ALL");
    loner.query("SELECT 1");
    assert!(!shares(&stage, &mut loner), "as at its login");
}
