//! What else there is in the grammar of SET, RESET and DISCARD: what takes settings back, what
//! lasts as long as a transaction, what is no setting at all.

use super::{Step, same, simple};

/// Every text as the batch of an unnamed statement.
fn extended(texts: &[&str]) -> Vec<Step> {
    texts.iter().map(|text| Step::Extended((*text).to_owned())).collect()
}

/// The script by simple queries, by batches, and as one string where that is allowed.
#[track_caller]
fn same_in_all_forms(texts: &[&str]) {
    same(&simple(texts));
    same(&extended(texts));
    same(&simple(&[&texts.join("; ")]));
}

/// How a setting that was set is taken back, and what shows it.
const UNDONE: &[(&str, &str, &str)] = &[
    ("SET work_mem = '77MB'", "RESET work_mem", "SHOW work_mem"),
    ("SET work_mem = '77MB'", "SET work_mem TO DEFAULT", "SHOW work_mem"),
    ("SET work_mem = '77MB'", "SET LOCAL work_mem = DEFAULT", "SHOW work_mem"),
    ("SET LOCAL work_mem = '77MB'", "SET SESSION work_mem TO DEFAULT", "SHOW work_mem"),
    ("SET LOCAL work_mem = '77MB'", "RESET ALL", "SHOW work_mem"),
    ("SET TIME ZONE 'Asia/Tokyo'", "RESET TIME ZONE", "SHOW TIME ZONE"),
    ("SET TIME ZONE 'Asia/Tokyo'", "SET TIME ZONE LOCAL", "SHOW TIME ZONE"),
    ("SET TIME ZONE 'Asia/Tokyo'", "SET TIME ZONE DEFAULT", "SHOW TIME ZONE"),
    ("SET TIME ZONE 'Asia/Tokyo'", "SET LOCAL TIME ZONE DEFAULT", "SHOW TIME ZONE"),
    ("SET NAMES 'LATIN1'", "SET NAMES", "SHOW client_encoding"),
    ("SET NAMES 'LATIN1'", "SET NAMES DEFAULT", "SHOW client_encoding"),
    ("SET SCHEMA 'plain'", "RESET search_path", "SELECT current_schemas(false)"),
    ("SET XML OPTION DOCUMENT", "RESET xmloption", "SHOW xmloption"),
    ("SET ROLE sessions_low", "RESET ROLE", "SELECT current_user"),
    ("SET ROLE sessions_low", "SET ROLE NONE", "SELECT current_user"),
    ("SET ROLE sessions_low", "SET LOCAL ROLE NONE", "SELECT current_user"),
    (
        "SET SESSION AUTHORIZATION sessions_other",
        "RESET SESSION AUTHORIZATION",
        "SELECT session_user, current_user",
    ),
    (
        "SET SESSION AUTHORIZATION sessions_other; SET ROLE sessions_low",
        "SET SESSION AUTHORIZATION DEFAULT",
        "SELECT session_user, current_user",
    ),
    (
        "SET SESSION AUTHORIZATION sessions_other",
        "SET LOCAL SESSION AUTHORIZATION DEFAULT",
        "SELECT session_user, current_user",
    ),
    (
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "RESET default_transaction_isolation",
        "SHOW TRANSACTION ISOLATION LEVEL",
    ),
    (
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "RESET TRANSACTION ISOLATION LEVEL",
        "SHOW TRANSACTION ISOLATION LEVEL",
    ),
    ("SET app.tenant = '7'", "RESET app.tenant", "SELECT current_setting('app.tenant', true)"),
    (
        "SET app.tenant = '7'",
        "SET app.tenant TO DEFAULT",
        "SELECT current_setting('app.tenant', true)",
    ),
    ("SELECT set_config('work_mem', '7MB', false)", "RESET work_mem", "SHOW work_mem"),
    ("SET work_mem = '7MB'", "SELECT set_config('work_mem', NULL, false)", "SHOW work_mem"),
];

#[test]
fn what_is_set_is_taken_back() {
    for (set, undo, show) in UNDONE {
        let scripts = [
            &[*set, show, undo, show, show][..],
            &["BEGIN", set, undo, show, "COMMIT", show],
            &["BEGIN", set, undo, show, "ROLLBACK", "SELECT 1"],
            &[set, "BEGIN", undo, show, "ROLLBACK", show, show],
            &[set, "BEGIN", undo, show, "COMMIT", show, show],
            &[set, "BEGIN", "SAVEPOINT a", undo, "ROLLBACK TO a", show, "COMMIT", show],
            &["BEGIN", set, "SAVEPOINT a", undo, "RELEASE a", show, "COMMIT", show],
            &[set, "BEGIN", undo, "SELECT 1/0", "ROLLBACK", show],
        ];
        for script in scripts {
            same(&simple(script));
        }
        same(&simple(&[&format!("{set}; {undo}; {show}"), show]));
        same(&simple(&[set, &format!("{undo}; SELECT 1/0"), show, show]));
        if !set.contains(';') {
            same(&extended(&[set, show, undo, show, show]));
            same(&extended(&["BEGIN", set, undo, show, "COMMIT", show]));
        }
    }
}

/// The numbers behind a seed are the same for everybody.
#[test]
fn what_comes_behind_a_seed() {
    let random = "SELECT random(), random()";
    let seeds = [
        "SET SEED TO 0.5",
        "SET SESSION seed = -0.25",
        "SET LOCAL seed TO '0.125'",
        "SELECT setseed(0.75)",
        "SELECT setseed(n) FROM generate_series(0, 1) AS n",
        "SELECT set_config('seed', '0.3', false)",
        "SELECT set_config('seed', '0.3', true)",
    ];
    for seed in seeds {
        same_in_all_forms(&[seed, random, "SELECT 1", random]);
        same_in_all_forms(&["BEGIN", seed, random, "COMMIT", random]);
        same_in_all_forms(&["BEGIN", seed, random, "ROLLBACK", random, random]);
        let with_savepoint =
            ["BEGIN", "SAVEPOINT a", seed, random, "ROLLBACK TO a", random, "COMMIT", random];
        same_in_all_forms(&with_savepoint);
        same(&simple(&["BEGIN", seed, "SELECT 1/0", "ROLLBACK", random, random]));
        same(&simple(&[&format!("{seed}; SELECT 1/0"), random, random]));
        for behind in ["SET SEED TO 2", "SELECT setseed(-2)", "SET seed TO DEFAULT", "RESET seed"] {
            same(&simple(&[seed, random, behind, random]));
            same(&simple(&["BEGIN", seed, behind, random, "ROLLBACK", random]));
        }
        for behind in ["RESET ALL", "DISCARD ALL"] {
            same(&simple(&[seed, behind, random, random]));
        }
        for show in ["SHOW seed", "SELECT current_setting('seed')"] {
            same(&simple(&[seed, show]));
        }
    }
    for refused in ["SET SEED TO 1.5", "SET SEED TO nothing", "SELECT setseed('NaN')"] {
        same(&simple(&[refused, seeds[0], random, refused, random]));
    }
}

#[test]
fn constraints_are_set_for_a_transaction() {
    let (missing, there) = ("INSERT INTO child VALUES (99)", "INSERT INTO child VALUES (1)");
    for what in ["ALL", "child_kept", "public.child_kept", "no_such"] {
        let set = |when: &str| format!("SET CONSTRAINTS {what} {when}");
        let (deferred, immediate) = (set("DEFERRED"), set("IMMEDIATE"));
        for script in [
            &["BEGIN", missing, "ROLLBACK"][..],
            &[&deferred, missing],
            &["BEGIN", &deferred, missing, "SELECT 1", "COMMIT", missing],
            &["BEGIN", &deferred, missing, &immediate, "COMMIT"],
            &["BEGIN", &deferred, &immediate, missing, "COMMIT"],
            &["BEGIN", &deferred, there, &immediate, "ROLLBACK", missing],
            &["BEGIN", "SAVEPOINT a", &deferred, "ROLLBACK TO a", missing, "ROLLBACK"],
            &["BEGIN", &deferred, "SAVEPOINT a", missing, "ROLLBACK TO a", "COMMIT", missing],
        ] {
            same_in_all_forms(script);
        }
    }
}

/// A setting of a function is that of whoever has made it.
#[test]
fn functions_have_settings() {
    let make = |clause: &str| {
        format!(
            "CREATE FUNCTION has_settings(OUT a text, OUT b text) LANGUAGE plpgsql {clause} AS \
             $$ BEGIN a := current_setting('work_mem'); \
             b := current_setting('app.tenant', true); END $$"
        )
    };
    let show = "SELECT a, b, current_setting('work_mem') FROM has_settings()";
    for clause in [
        "SET work_mem FROM CURRENT",
        "SET work_mem FROM CURRENT SET app.tenant FROM CURRENT",
        "SET work_mem TO '9MB' SET app.tenant = 'own'",
        "SET SCHEMA FROM CURRENT",
    ] {
        let make = make(clause);
        let steps = [
            "SET work_mem = '77MB'; SET app.tenant = '7'",
            &make,
            show,
            "RESET work_mem",
            show,
            "SET app.tenant = '8'",
            show,
            "BEGIN",
            "SET LOCAL work_mem = '5MB'",
            "ALTER FUNCTION has_settings SET work_mem FROM CURRENT",
            show,
            "COMMIT",
            show,
            "ALTER FUNCTION has_settings RESET ALL",
            show,
            "DROP FUNCTION has_settings",
        ];
        same(&simple(&steps));
    }
}

#[test]
fn what_is_discarded() {
    let scene = [
        "SET work_mem = '77MB'",
        "CREATE TEMP TABLE mine AS SELECT 1",
        "PREPARE p AS SELECT 'p'",
        "DECLARE c CURSOR WITH HOLD FOR SELECT generate_series(1, 3)",
    ];
    let looks = ["SHOW work_mem", "SELECT count(*) FROM mine", "EXECUTE p", "FETCH c"];
    for what in ["ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY", "NOTHING"] {
        let discard = format!("DISCARD {what}");
        let with_block: [&[&str]; 4] = [
            &[&discard],
            &["BEGIN", &discard, "COMMIT"],
            &["BEGIN", &discard, "ROLLBACK"],
            &["BEGIN", "SAVEPOINT a", &discard, "ROLLBACK TO a", "COMMIT"],
        ];
        for discards in with_block {
            let script = [&scene[..], discards, &looks, &looks].concat();
            same(&simple(&script));
            same(&extended(&script));
        }
    }
}
