//! The unnamed statement belongs to its client, whichever server the client gets.

use pgweir_testkit::WireClient;
use pgweir_testkit::frames::{bind, close_statement, describe_statement, execute, parse, query};
use pgweir_testkit::frames::{flush, sync};

use super::shuffled::{PID, Shuffled, ask, outcome};

/// What a batch that runs the unnamed statement gives: a value, or the SQLSTATE of its error.
fn run(client: &mut WireClient) -> String {
    outcome(&ask(client, &[bind("", "", &[]), execute("", 0), sync()]))
}

#[test]
fn it_follows_its_client_to_another_server() {
    let mut shuffled = Shuffled::new("unnamed_follows");
    let mut client = shuffled.stage.client();
    ask(&mut client, &[parse("", PID, &[]), sync()]);
    let first = shuffled.keep_last_server();
    let second = run(&mut client);
    assert_ne!(second, first, "the other client keeps that server");
    shuffled.let_go();

    // Described, and run again, wherever.
    let reply = ask(&mut client, &[describe_statement(""), sync()]);
    let tags: Vec<_> = reply.iter().map(|message| message.tag).collect();
    assert_eq!(tags, *b"tTZ");
    assert!([first, second].contains(&run(&mut client)));
}

#[test]
fn nobody_runs_that_of_another() {
    let mut shuffled = Shuffled::new("unnamed_of_another");
    let mut client = shuffled.stage.client();
    ask(&mut shuffled.other, &[parse("", "SELECT 'secret'", &[]), sync()]);
    // Never parsed anything: on a server that has one, and on one that was told to forget it.
    assert_eq!(run(&mut client), "26000");
    assert_eq!(run(&mut client), "26000");
    let reply = ask(&mut client, &[describe_statement(""), sync()]);
    assert_eq!(outcome(&reply), "26000");
    assert_eq!(run(&mut shuffled.other), "secret");

    ask(&mut client, &[parse("", "SELECT 'own'", &[]), sync()]);
    assert_eq!(run(&mut shuffled.other), "secret");
    assert_eq!(run(&mut client), "own");
    // Closed, or ended by a simple Query: it does not come back, and the other's stays.
    ask(&mut client, &[close_statement(""), sync()]);
    assert_eq!(run(&mut client), "26000");
    assert_eq!(run(&mut shuffled.other), "secret");
    client.query("SELECT 1");
    assert_eq!(run(&mut client), "26000");
    shuffled.other.query("SELECT 1");
    assert_eq!(run(&mut shuffled.other), "26000");
}

#[test]
fn a_failed_parse_leaves_none() {
    let mut shuffled = Shuffled::new("unnamed_failed");
    let mut client = shuffled.stage.client();
    ask(&mut client, &[parse("", "SELECT 'good'", &[]), sync()]);
    ask(&mut client, &[parse("", "SELECT nothing", &[]), sync()]);
    assert_eq!(run(&mut client), "26000");
    shuffled.keep_last_server();
    assert_eq!(run(&mut client), "26000");
    // A Parse that was skipped changes nothing.
    ask(&mut client, &[parse("", "SELECT 'kept'", &[]), sync()]);
    ask(&mut client, &[execute("none", 0), parse("", "SELECT 'skipped'", &[]), sync()]);
    shuffled.let_go();
    assert_eq!(run(&mut client), "kept");
}

#[test]
fn with_flushes_and_in_pipelines() {
    let mut shuffled = Shuffled::new("unnamed_pipelines");
    let mut client = shuffled.stage.client();
    ask(&mut client, &[parse("", "SELECT 'a'", &[]), flush(), sync()]);
    shuffled.keep_last_server();
    // Four units at once, the first of which needs the statement made again.
    let units = [
        [bind("", "", &[]), execute("", 0), sync()].concat(),
        query("SELECT 'ends it'"),
        [bind("", "", &[]), execute("", 0), sync()].concat(),
        [parse("", "SELECT 'b'", &[]), bind("", "", &[]), execute("", 0), sync()].concat(),
    ];
    client.send(&units.concat()).unwrap();
    let outcomes = units.each_ref().map(|_| outcome(&client.read_until_ready().unwrap()));
    assert_eq!(outcomes, ["a", "ends it", "26000", "b"]);
    shuffled.let_go();
    assert_eq!(run(&mut client), "b");
}

#[test]
fn too_long_to_be_kept() {
    let mut shuffled = Shuffled::new("unnamed_long");
    let mut client = shuffled.stage.client();
    let text = format!("SELECT 'long' /* {} */", "x".repeat(500_000));
    ask(&mut client, &[parse("", &text, &[]), sync()]);
    shuffled.keep_last_server();
    assert_eq!(run(&mut client), "long");
    ask(&mut client, &[parse("", "SELECT 'short'", &[]), sync()]);
    shuffled.let_go();
    assert_eq!(run(&mut client), "short");
}

/// Directly it is refused once its rows are not what they were; elsewhere nobody would notice.
#[test]
fn other_rows_are_an_error_wherever_it_is_run() {
    let mut shuffled = Shuffled::new("unnamed_rows");
    shuffled.stage.ask("CREATE TABLE unnamed_rows (a int); GRANT ALL ON unnamed_rows TO public");
    shuffled.stage.ask("INSERT INTO unnamed_rows VALUES (1)");
    let mut direct = shuffled.direct();
    let mut client = shuffled.stage.client();
    for client in [&mut direct, &mut client] {
        let made = [parse("", "SELECT * FROM unnamed_rows", &[]), describe_statement(""), sync()];
        ask(client, &made);
    }
    shuffled.keep_last_server();
    assert_eq!((run(&mut direct), run(&mut client)), ("1".to_owned(), "1".to_owned()));
    shuffled.let_go();
    shuffled.stage.ask("ALTER TABLE unnamed_rows ADD COLUMN b int");
    shuffled.keep_last_server();
    assert_eq!((run(&mut direct), run(&mut client)), ("0A000".to_owned(), "0A000".to_owned()));
}
