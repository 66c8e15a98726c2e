//! Settings that clients change, in every form and in every surrounding.

use pgweir_testkit::Script;
use pgweir_testkit::frames::query;

use super::{Step, login, pipeline, same, same_as, same_script, simple};

/// A statement that changes a setting, and one that shows it.
struct Form {
    set: &'static str,
    show: &'static str,
}

const fn form(set: &'static str, show: &'static str) -> Form {
    Form { set, show }
}

/// What a transaction is like, and those to come.
const TRANSACTION: &str = "SELECT name, current_setting(name) FROM unnest('{transaction_isolation, \
     transaction_read_only, transaction_deferrable, default_transaction_isolation, \
     default_transaction_read_only, default_transaction_deferrable}'::text[]) AS name";

const FORMS: &[Form] = &[
    form("SET work_mem = '77MB'", "SHOW work_mem"),
    form("SET SESSION work_mem TO 7777", "SHOW work_mem"),
    form("SET LOCAL work_mem = '77MB'", "SHOW work_mem"),
    form("SET TIME ZONE 'Asia/Tokyo'", "SHOW TimeZone"),
    form("SET TIME ZONE -5", "SELECT '2020-01-01 12:00'::timestamptz"),
    form("SET TIME ZONE INTERVAL '-08:00' HOUR TO MINUTE", "SHOW TimeZone"),
    form("SET LOCAL TIME ZONE 'UTC'", "SHOW TimeZone"),
    form("SET SESSION TIME ZONE \"Asia/Tokyo\"", "SHOW TIME ZONE"),
    form("SET TIME ZONE utc", "SHOW TIME ZONE"),
    form("SET TIME ZONE 5.5", "SELECT '2020-01-01 12:00'::timestamptz"),
    form("SET TIME ZONE INTERVAL '03:30'", "SHOW TIME ZONE"),
    form("SET LOCAL TIME ZONE INTERVAL '1' HOUR", "SHOW TIME ZONE"),
    form("SET TIME ZONE INTERVAL '1' DAY", "SHOW TIME ZONE"),
    form("SET NAMES 'LATIN1'", "SHOW client_encoding"),
    form("SET LOCAL NAMES 'LATIN1'", "SHOW client_encoding"),
    form("SET SESSION NAMES 'SQL_ASCII'", "SHOW client_encoding"),
    form("SET SCHEMA 'plain'", "SELECT current_schemas(false)"),
    form("SET LOCAL SCHEMA 'plain'", "SELECT current_schema"),
    form("SET SESSION SCHEMA 'Odd one'", "SHOW search_path"),
    form("SET CATALOG 'sessions'", "SHOW search_path"),
    form("SET search_path = plain, \"Odd one\", 'pg_catalog'", "SHOW search_path"),
    form("SET search_path = ''", "SHOW search_path"),
    form("SET XML OPTION DOCUMENT", "SHOW xmloption"),
    form("SET LOCAL XML OPTION DOCUMENT", "SHOW xmloption"),
    form("SET SESSION XML OPTION CONTENT", "SHOW xmloption"),
    form("SET work_mem FROM CURRENT", "SHOW work_mem"),
    form("SET LOCAL search_path FROM CURRENT", "SHOW search_path"),
    form(
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY",
        "SELECT current_setting('default_transaction_isolation'), \
         current_setting('transaction_isolation'), current_setting('transaction_read_only')",
    ),
    form(
        "SET SESSION CHARACTERISTICS AS TRANSACTION \
         ISOLATION LEVEL REPEATABLE READ READ WRITE DEFERRABLE",
        TRANSACTION,
    ),
    form("SET LOCAL SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", TRANSACTION),
    form("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE", TRANSACTION),
    form("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED READ WRITE", TRANSACTION),
    form("SET LOCAL TRANSACTION ISOLATION LEVEL READ COMMITTED NOT DEFERRABLE", TRANSACTION),
    form("SET SESSION TRANSACTION READ ONLY", TRANSACTION),
    form("SET TRANSACTION SNAPSHOT '00000000-00000000-1'", TRANSACTION),
    form("SET ROLE sessions_low", "SELECT current_user, session_user, current_setting('role')"),
    form("SET SESSION ROLE 'sessions_low'", "SHOW role"),
    form("SET role = sessions_low", "SELECT current_user"),
    form("SET ROLE NONE", "SHOW role"),
    form("SET LOCAL ROLE sessions_low", "SELECT current_user, session_user"),
    form(
        "SET SESSION AUTHORIZATION sessions_other",
        "SELECT current_user, session_user, current_setting('is_superuser')",
    ),
    form("SET LOCAL SESSION AUTHORIZATION sessions_other", "SHOW SESSION AUTHORIZATION"),
    form("SET SESSION SESSION AUTHORIZATION 'sessions_other'", "SELECT session_user"),
    form("SET SESSION AUTHORIZATION DEFAULT", "SELECT session_user"),
    form("SET DateStyle = 'SQL, DMY'", "SELECT DATE '2020-02-01'"),
    form("SET extra_float_digits = 0", "SELECT 0.1::float8 + 0.2::float8"),
    form("SET application_name = 'it''s \\ mine'", "SHOW application_name"),
    form("SET app.tenant = '7'", "SELECT current_setting('app.tenant', true)"),
    form("SET LOCAL app.tenant TO 'local'", "SELECT current_setting('app.tenant', true)"),
    form("SET \"App\".\"Zwölf\" = 'é'", "SELECT current_setting('app.zwölf', true)"),
    form("SET app.a.b = ''", "SELECT current_setting('app.a.b', true) IS NULL"),
    form("SELECT set_config('work_mem', '88MB', false)", "SHOW work_mem"),
    form("SELECT set_config('work_mem', '88MB', true)", "SHOW work_mem"),
    form(
        "SELECT set_config('app.x', 'y', false), set_config('app.z', 'w', true)",
        "SELECT current_setting('app.x', true), current_setting('app.z', true)",
    ),
    form("UPDATE pg_settings SET setting = '66MB' WHERE name = 'work_mem'", "SHOW work_mem"),
    form("SET row_security = off", "SHOW row_security"),
    form("SET standard_conforming_strings = off", "SELECT 'a\\\\b'"),
    form("SET bytea_output = 'escape'", "SELECT '\\x00ff'::bytea"),
    form("SET IntervalStyle = 'iso_8601'", "SELECT INTERVAL '1 day 2 hours'"),
    form("SET lc_messages = 'C'", "SHOW lc_messages"),
    form("SET statement_timeout = '1h'", "SHOW statement_timeout"),
    form("SET work_mem = 'nonsense'", "SHOW work_mem"),
    form("SET no_such_setting = 1", "SHOW work_mem"),
    form("SET ROLE nobody_knows", "SELECT current_user"),
];

/// What a form is put into: each script ends with two looks at what is left.
fn surroundings(form: &Form) -> Vec<Vec<Step>> {
    let Form { set, show } = *form;
    let with_error = format!("{set}; SELECT 1/0");
    let shown = format!("{set}; {show}");
    let mut all: Vec<_> = [
        &[show, set][..],
        &[set, show, "SELECT 1", "BEGIN", show, "COMMIT"],
        &["BEGIN", set, show, "COMMIT"],
        &["BEGIN", set, show, "ROLLBACK"],
        &["BEGIN", "SAVEPOINT a", set, show, "ROLLBACK TO a", show, "COMMIT"],
        &["BEGIN", "SAVEPOINT a", set, "RELEASE a", show, "ROLLBACK"],
        &["BEGIN", set, "SELECT 1/0", show, "ROLLBACK"],
        &["BEGIN", set, "SELECT 1/0", "COMMIT"],
        &[&with_error],
        &[&shown],
        &[set, "RESET ALL"],
        &[set, "SELECT 1", "DISCARD ALL"],
        &[set, "BEGIN", "RESET ALL", show, "ROLLBACK"],
        &[set, "BEGIN", "RESET ALL", show, "COMMIT"],
        &["BEGIN; SELECT 1", set, "COMMIT; BEGIN", show, "ROLLBACK"],
    ]
    .into_iter()
    // Whether a custom setting is empty or was never used shows who has had the server before.
    .filter(|steps| steps[0] != show || !show.contains("'app."))
    .map(simple)
    .collect();
    all.push(vec![Step::Extended(set.to_owned())]);
    all.push(
        ["BEGIN", set, "COMMIT"].iter().map(|text| Step::Extended((*text).to_owned())).collect(),
    );
    for steps in &mut all {
        steps.extend(simple(&[show, show]));
        steps.push(Step::Extended(show.to_owned()));
    }
    all
}

#[test]
fn every_form_in_every_surrounding() {
    for steps in FORMS.iter().flat_map(surroundings) {
        same(&steps);
    }
}

/// What was asked for at login is what RESET goes back to.
#[test]
fn every_form_behind_a_login_that_asks_for_more() {
    let options = "-c work_mem=5MB -c app.tenant=5 -c search_path=plain -c DateStyle=German";
    for steps in FORMS.iter().flat_map(surroundings) {
        let login = login()
            .parameter("options", options)
            .parameter("TimeZone", "Asia/Kolkata")
            .parameter("client_encoding", "UTF8");
        same_as(login, &steps);
    }
}

/// What its client may have changed, what takes it back to what was asked for at login, and what
/// shows it.
const WAYS_BACK: [(&str, &str, &str); 27] = [
    ("work_mem = '7MB'", "RESET work_mem", "SHOW work_mem"),
    ("work_mem = '7MB'", "SET work_mem TO DEFAULT", "SHOW work_mem"),
    ("work_mem = '7MB'", "SET SESSION work_mem = DEFAULT", "SHOW work_mem"),
    ("work_mem = '7MB'", "SET LOCAL work_mem TO DEFAULT", "SHOW work_mem"),
    ("work_mem = '7MB'", "SELECT set_config('work_mem', NULL, false) IS NULL", "SHOW work_mem"),
    ("work_mem = '7MB'", "SELECT set_config('work_mem', NULL, true) IS NULL", "SHOW work_mem"),
    ("work_mem = '7MB'", "DO $$ BEGIN RESET work_mem; END $$", "SHOW work_mem"),
    ("work_mem = '7MB'", "DO $$ BEGIN SET work_mem TO DEFAULT; END $$", "SHOW work_mem"),
    ("work_mem = '7MB'", "RESET enable_sort; SELECT 1", "SHOW work_mem"),
    ("work_mem = '7MB'", "RESET ALL", "SHOW work_mem"),
    ("TimeZone = 'UTC'", "SET TIME ZONE LOCAL", "SHOW TimeZone"),
    ("TimeZone = 'UTC'", "SET TIME ZONE DEFAULT", "SHOW TimeZone"),
    ("TimeZone = 'UTC'", "RESET TIME ZONE", "SHOW TimeZone"),
    ("TimeZone = 'UTC'", "SET LOCAL TIME ZONE LOCAL", "SELECT TIMESTAMPTZ '2020-01-01 00:00Z'"),
    ("NAMES 'UTF8'", "SET NAMES", "SHOW client_encoding"),
    ("NAMES 'UTF8'", "SET NAMES DEFAULT", "SELECT chr(233)"),
    ("client_encoding = UTF8", "RESET client_encoding", "SELECT chr(233)"),
    ("client_encoding = UTF8", "SET LOCAL client_encoding TO DEFAULT", "SELECT chr(233)"),
    ("SCHEMA 'public'", "SET search_path = DEFAULT", "SHOW search_path"),
    ("DateStyle = 'SQL, DMY'", "SET DateStyle TO DEFAULT", "SELECT DATE '2020-02-01'"),
    ("app.tenant = '6'", "RESET app.tenant", "SELECT current_setting('app.tenant')"),
    ("app.tenant = '6'", "SET LOCAL app.tenant TO DEFAULT", "SELECT current_setting('app.tenant')"),
    ("app.tenant = ''", "RESET ALL", "SELECT current_setting('app.tenant'), current_user"),
    ("ROLE NONE", "RESET ROLE", "SELECT current_user, session_user"),
    ("ROLE sessions_low", "SET role TO DEFAULT", "SELECT current_user, session_user"),
    ("SESSION AUTHORIZATION sessions_low", "SET SESSION AUTHORIZATION DEFAULT", "SHOW role"),
    ("ROLE NONE", "RESET SESSION AUTHORIZATION", "SELECT current_user, session_user"),
];

/// Whatever goes back to a default goes back to what was asked for at login, and nothing else does.
#[test]
fn every_way_back_to_the_login() {
    let options = "-c work_mem=5MB -c app.tenant=5 -c search_path=plain -c DateStyle=German \
        -c role=sessions_other";
    for (change, back, show) in WAYS_BACK {
        let set = &*format!("SET {change}");
        let set_local = &*format!("SET LOCAL {change}");
        // What is set to nothing behind a RESET in one string looks like what that has left.
        let to_nothing = change.ends_with("''") || change.ends_with("NONE");
        let set_behind = if to_nothing { "SELECT 1" } else { set };
        let both = &*format!("{back}; {set_behind}");
        let others = "SELECT current_setting('app.tenant'), current_setting('role')";
        for steps in [
            &[set, back, show, "SELECT 1", show][..],
            &[back, show],
            &[set, "BEGIN", back, show, "COMMIT", show],
            &[set, "BEGIN", back, show, "ROLLBACK", show],
            &["BEGIN", set, back, show, "COMMIT", show],
            &["BEGIN", set_local, back, show, "COMMIT", show],
            &[set, "BEGIN", set_local, "SAVEPOINT a", back, show, "ROLLBACK TO a", show, "COMMIT"],
            &["BEGIN", back, set, show, "SELECT 1/0", "ROLLBACK", show],
            &[both, show],
            &["SET app.tenant = ''", back, others],
            &["SET ROLE NONE", back, others],
            &[set, "DISCARD ALL", show],
        ] {
            let login = || {
                login()
                    .parameter("options", options)
                    .parameter("TimeZone", "Asia/Kolkata")
                    .parameter("client_encoding", "LATIN1")
            };
            let extended: Vec<_> = steps.iter().map(|s| Step::Extended((*s).to_owned())).collect();
            same_as(login(), &simple(steps));
            if !steps.iter().any(|text| text.contains(';') && !text.starts_with("DO")) {
                same_as(login(), &extended);
            }
            // What a block takes back no text shows, nor, before it is asked, what was there.
            if !(back.starts_with("DO") && steps.contains(&others)) {
                let units: Vec<_> = steps.iter().map(|text| query(text)).collect();
                same_script(&pipeline(Script::new(login()), &units));
            }
        }
    }
}
