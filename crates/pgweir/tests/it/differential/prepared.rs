//! Statements under names, whichever server their client gets.

use pgweir_testkit::WireClient;
use pgweir_testkit::frames::{
    bind, bind_with_formats, close_statement, describe_statement, execute, parse, query, sync,
};

use super::shuffled::{PID, Shuffled, ask, outcome};
use super::{same, script};

/// What a batch that runs a statement gives: a value, or the SQLSTATE of its error.
fn run(client: &mut WireClient, name: &str) -> String {
    outcome(&ask(client, &[bind("", name, &[]), execute("", 0), sync()]))
}

fn prepare(client: &mut WireClient, name: &str, text: &str) -> String {
    outcome(&ask(client, &[parse(name, text, &[]), sync()]))
}

#[test]
fn it_follows_its_client_to_another_server() {
    let mut shuffled = Shuffled::new("prepared_follows");
    let mut client = shuffled.stage.client();
    assert_eq!(prepare(&mut client, "s", PID), "nothing");
    let first = shuffled.keep_last_server();
    let second = run(&mut client, "s");
    assert_ne!(second, first, "the other client keeps that server");
    shuffled.let_go();
    assert!([first, second].contains(&run(&mut client, "s")));
    let reply = ask(&mut client, &[describe_statement("s"), sync()]);
    assert_eq!(reply.iter().map(|message| message.tag).collect::<Vec<_>>(), *b"tTZ");
}

/// More clients than servers, each with a statement of the same name, and one that all have.
#[test]
fn each_client_has_its_own_names() {
    let shuffled = Shuffled::new("prepared_names");
    let mut clients: Vec<_> = (0..8).map(|_| shuffled.stage.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        prepare(client, "own", &format!("SELECT 'of {number}'"));
        prepare(client, &format!("s{number}"), "SELECT 'of all'");
    }
    for _ in 0..3 {
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(run(client, "own"), format!("of {number}"));
            assert_eq!(run(client, &format!("s{number}")), "of all");
            assert_eq!(run(client, "none"), "26000");
        }
    }
    let shared = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%of all%'";
    assert_eq!(clients[0].query(shared), ["1"], "one statement serves all");
}

/// Directly it is refused once its rows are not what they were, and prepared again it works.
#[test]
fn other_rows_are_an_error_wherever_it_is_run() {
    let mut shuffled = Shuffled::new("prepared_rows");
    shuffled.stage.ask("CREATE TABLE prepared_rows (a int); GRANT ALL ON prepared_rows TO public");
    shuffled.stage.ask("INSERT INTO prepared_rows VALUES (1)");
    let (mut direct, mut client) = (shuffled.direct(), shuffled.stage.client());
    let text = "SELECT * FROM prepared_rows";
    let both = |does: &dyn Fn(&mut WireClient) -> String,
                direct: &mut WireClient,
                client: &mut WireClient| (does(direct), does(client));
    let twice = |told: &str| (told.to_owned(), told.to_owned());
    let prepares = |client: &mut WireClient| prepare(client, "s", text);
    let runs = |client: &mut WireClient| run(client, "s");
    let closes = |client: &mut WireClient| outcome(&ask(client, &[close_statement("s"), sync()]));
    assert_eq!(both(&prepares, &mut direct, &mut client), twice("nothing"));
    shuffled.keep_last_server();
    assert_eq!(both(&runs, &mut direct, &mut client), twice("1"));
    shuffled.let_go();
    shuffled.stage.ask("ALTER TABLE prepared_rows ADD COLUMN b int");
    for _ in 0..2 {
        assert_eq!(both(&runs, &mut direct, &mut client), twice("0A000"));
        shuffled.keep_last_server();
        assert_eq!(both(&runs, &mut direct, &mut client), twice("0A000"));
        shuffled.let_go();
    }
    assert_eq!(both(&closes, &mut direct, &mut client), twice("nothing"));
    assert_eq!(both(&prepares, &mut direct, &mut client), twice("nothing"));
    shuffled.keep_last_server();
    assert_eq!(both(&runs, &mut direct, &mut client), twice("1"));
}

/// A client sends its values as what it was told that they are, whatever the column is by now.
#[test]
fn its_parameters_stay_what_they_were() {
    for (kind, changed) in [("int8", "1"), ("float4", "1"), ("text", "42883")] {
        let name = format!("prepared_{kind}");
        let mut shuffled = Shuffled::new(&name);
        let table = format!("CREATE TABLE t (a int, b int); GRANT ALL ON t TO {name}");
        shuffled.stage.ask(&format!("{table}; INSERT INTO t VALUES (1, 0), (2, 0)"));
        let (mut direct, mut client) = (shuffled.direct(), shuffled.stage.client());
        let update = "UPDATE t SET b = b + 1 WHERE a = $1";
        let returning = format!("{update} RETURNING 1");
        let value = 1_i32.to_be_bytes();
        let bind = |name: &str| bind_with_formats("", name, &[1], &[Some(&value)], &[0]);
        for client in [&mut direct, &mut client] {
            for (name, text) in [("s", &*returning), ("u", update), ("", &*returning)] {
                ask(client, &[parse(name, text, &[]), describe_statement(name), sync()]);
            }
        }
        let run = |client: &mut WireClient, name: &str| {
            outcome(&ask(client, &[bind(name), execute("", 0), sync()]))
        };
        assert_eq!(run(&mut client, "s"), "1");
        shuffled.keep_last_server();
        assert_eq!(run(&mut client, "u"), "nothing");
        shuffled.let_go();
        let rows = |stage: &crate::stage::Stage| stage.value("SELECT max(b) FROM t");
        assert_eq!(rows(&shuffled.stage), "2");
        shuffled.stage.ask(&format!("ALTER TABLE t ALTER a TYPE {kind}"));
        for _ in 0..3 {
            for name in ["s", "u", ""] {
                let expected = if name == "u" && changed == "1" { "nothing" } else { changed };
                assert_eq!(run(&mut direct, name), expected, "{kind}, direct, {name:?}");
                assert_eq!(run(&mut client, name), expected, "{kind}, {name:?}");
            }
            shuffled.let_go();
            shuffled.keep_last_server();
        }
        let expected = if changed == "1" { "20" } else { "2" };
        assert_eq!(rows(&shuffled.stage), expected, "{kind}: all of them were carried out");
    }
}

/// A Parse that has failed, or was skipped, gives no name; the name may be given behind it.
#[test]
fn what_was_not_made_has_no_name() {
    let mut shuffled = Shuffled::new("prepared_failed");
    let mut client = shuffled.stage.client();
    assert_eq!(prepare(&mut client, "s", "SELECT nothing"), "42703");
    assert_eq!(run(&mut client, "s"), "26000");
    ask(&mut client, &[execute("none", 0), parse("s", "SELECT 'skipped'", &[]), sync()]);
    shuffled.keep_last_server();
    assert_eq!(run(&mut client, "s"), "26000");
    assert_eq!(prepare(&mut client, "s", "SELECT 'made'"), "nothing");
    shuffled.let_go();
    assert_eq!(run(&mut client, "s"), "made");
    assert_eq!(prepare(&mut client, "s", "SELECT 'twice'"), "42P05");
    assert_eq!(run(&mut client, "s"), "made");
}

/// By SQL too, and the server is free for others.
#[test]
fn a_name_is_removed_by_sql() {
    for (removal, left) in [
        ("DEALLOCATE s", "kept"),
        ("DEALLOCATE PREPARE \"s\"", "kept"),
        ("DEALLOCATE ALL", "26000"),
        ("DISCARD ALL", "26000"),
    ] {
        let mut shuffled = Shuffled::new(&format!("prepared_{}", removal.len()));
        let mut client = shuffled.stage.client();
        prepare(&mut client, "s", "SELECT 'gone'");
        prepare(&mut client, "t", "SELECT 'kept'");
        client.query(removal);
        shuffled.keep_last_server();
        assert_eq!((run(&mut client, "s"), run(&mut client, "t")), ("26000".into(), left.into()));
        shuffled.let_go();
        assert_eq!(run(&mut client, "s"), "26000");
        assert_eq!(prepare(&mut client, "s", "SELECT 'new'"), "nothing");
        assert_eq!(run(&mut client, "s"), "new");
        let count = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%gone%'";
        assert!(client.query(count).concat().parse::<u32>().unwrap() <= 1);
    }
}

/// Errors about names abort the transaction, as directly.
#[test]
fn names_that_are_wrong_abort_a_transaction() {
    same(
        &script()
            .ask(&query("BEGIN"))
            .ask(&[parse("s", "SELECT 4", &[]), parse("s", "SELECT 5", &[]), sync()].concat())
            .ask(&query("SELECT 1"))
            .ask(&query("ROLLBACK"))
            .ask(&[bind("", "s", &[]), execute("", 0), sync()].concat())
            .ask(&query("BEGIN"))
            .ask(&[bind("", "none", &[]), sync()].concat())
            .ask(&query("SELECT 1"))
            .ask(&query("COMMIT"))
            .ask(&[describe_statement("s"), sync()].concat())
            .ask(&[close_statement("s"), sync()].concat()),
    );
}

/// In one string, and in a pipeline without a look at the answers.
#[test]
fn statements_come_and_go() {
    let pipeline = [
        parse("s", "SELECT 2", &[]),
        sync(),
        query("DEALLOCATE ALL"),
        bind("", "s", &[]),
        execute("", 0),
        sync(),
        parse("s", "SELECT 3", &[]),
        sync(),
        query("DISCARD ALL"),
        describe_statement("s"),
        sync(),
        parse("s", "SELECT 4", &[]),
        bind("", "s", &[]),
        execute("", 0),
        close_statement("s"),
        parse("s", "SELECT 5", &[]),
        bind("", "s", &[]),
        execute("", 0),
        sync(),
        query("DEALLOCATE s"),
        query("DEALLOCATE s"),
        bind("", "s", &[]),
        sync(),
    ];
    let units = 9;
    let sent = script().ask(&query("PREPARE p AS SELECT 1; EXECUTE p; DEALLOCATE ALL; EXECUTE p"));
    let sent = sent.send(&pipeline.concat());
    same(&(0..units).fold(sent, |script, _| script.read_until_ready()));
}

/// SQL finds what was prepared by the protocol, and the protocol what was prepared by SQL.
#[test]
fn both_ways_of_preparing_share_their_names() {
    same(
        &script()
            .ask(&[parse("s", "SELECT $1::int + 1", &[23]), sync()].concat())
            .ask(&query("EXECUTE s (1)"))
            .ask(&query("PREPARE s AS SELECT 1"))
            .ask(&query("PREPARE t AS SELECT 'sql'"))
            .ask(&[parse("t", "SELECT 1", &[]), sync()].concat())
            .ask(&[bind("", "t", &[]), execute("", 0), sync()].concat())
            .ask(&query("DEALLOCATE s; EXECUTE s (2)"))
            .ask(&[bind("", "s", &[Some("3")]), execute("", 0), sync()].concat())
            .ask(&query("DEALLOCATE ALL"))
            .ask(&[bind("", "t", &[]), sync()].concat()),
    );
}
