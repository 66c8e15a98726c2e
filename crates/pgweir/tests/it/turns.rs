//! Clients with several sets of settings on shared servers that are set for them by turns: each
//! reads under its own, whatever becomes of the statement that sets them.

use std::thread;

use pgweir_testkit::{Login, eventually_some};

use crate::course::{self, CLIENTS, Course, LOST_TWICE, Read, read};
use crate::stage::{CLUSTER, Stage};

/// Sets of settings, of which each schema has a table of its own.
const SETS: usize = 5;

/// How often a server is ended.
const KILLS: usize = 8;

/// What each client reads: a table of its own schema, and a time in its own zone.
const HOME: &str = "SELECT n, (timestamptz '2000-01-01 12:00+00')::text FROM home";

fn stage(name: &str, pool_size: u32) -> Stage {
    let stage = Stage::with(name, pool_size, |config| config.general("pipelining", "\"1x16\""));
    for set in 0..SETS {
        stage.ask(&format!(
            "CREATE SCHEMA s{set}; CREATE TABLE s{set}.home AS SELECT {set} AS n;
             GRANT USAGE ON SCHEMA s{set} TO {name}; GRANT SELECT ON s{set}.home TO {name}"
        ));
    }
    stage
}

fn login(stage: &Stage, set: usize) -> Login {
    let path = format!("s{set}");
    stage.login().parameter("search_path", &path).parameter("TimeZone", &format!("Etc/GMT-{set}"))
}

/// The row of a client with this set.
fn row(set: usize) -> [String; 2] {
    [set.to_string(), format!("2000-01-01 {}:00:00+0{set}", 12 + set)]
}

#[test]
fn each_reads_under_its_own_settings_while_servers_end() {
    let stage = stage("turns_kills", 3);
    let course = Course::new(LOST_TWICE);
    thread::scope(|scope| {
        for id in 0..CLIENTS {
            let (stage, course) = (&stage, &course);
            scope.spawn(move || {
                let set = id % SETS;
                let own = row(set).map(|value| Some(value.into_bytes()));
                let mut client = stage.client_as(&login(stage, set));
                while !course.is_over() {
                    let again = || stage.client_as(&login(stage, set));
                    match read(&mut client, HOME, course.lost_read(), again) {
                        Read::Done(rows) => {
                            assert_eq!(rows, std::slice::from_ref(&own), "of set {set}")
                        }
                        Read::InPart => {}
                        Read::Lost => panic!("a read was not run again"),
                    }
                    course.did_one(id);
                }
            });
        }
        course.runs(KILLS, |_| {
            let sql = format!(
                "SELECT pid FROM (SELECT pid FROM pg_stat_activity WHERE usename = '{}' \
                 AND state = 'active' LIMIT 1) AS one WHERE pg_terminate_backend(pid)",
                stage.name
            );
            let pid = eventually_some("a server that works", || stage.ask(&sql).pop());
            stage.wait_for_backends(0, &format!("pid = {pid}"));
        });
    });
    let shared = course::shared(&stage);
    assert!(shared > course.done() / 4, "{shared} of {} were shared", course.done());
}

/// A server that has called a function in PL/pgSQL refuses settings of that name it does not know,
/// and one that has not takes them: so each of these reads is sent behind a statement that fails,
/// and would find the table of whoever was there before.
#[test]
fn what_was_sent_behind_settings_that_are_refused_is_run_again() {
    const ROUNDS: usize = 10;
    let stage = stage("turns_refused", 1);
    stage.ask(
        "CREATE FUNCTION public.calls() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
         GRANT EXECUTE ON FUNCTION public.calls() TO PUBLIC",
    );
    let mut plain = stage.client_as(&login(&stage, 1));
    let mut strange = stage.client_as(&login(&stage, 2).parameter("plpgsql.unknown", "1"));
    for client in [&mut plain, &mut strange] {
        // It is known to be short then.
        (0..3).for_each(|_| drop(client.query(HOME)));
    }
    let before = refusals();
    for _ in 0..ROUNDS {
        (0..2).for_each(|_| assert_eq!(plain.query("SELECT public.calls()"), ["1"]));
        assert_eq!(plain.query(HOME), [row(1).join("|")]);
        assert_eq!(strange.query(HOME), [row(2).join("|")]);
    }
    let refused = refusals() - before;
    assert!(refused >= ROUNDS, "{refused} times it was refused");
}

/// How often a server has refused that setting.
fn refusals() -> usize {
    CLUSTER.log().matches("invalid configuration parameter name \"plpgsql.unknown\"").count()
}
