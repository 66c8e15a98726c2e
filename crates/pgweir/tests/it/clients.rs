//! Real clients: psql, pgbench, pg_dump, psycopg.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use pgweir_testkit::postgres::tool;
use pgweir_testkit::python;

use crate::stage::Stage;

/// A program of PostgreSQL that connects through pgweir as the stage's role.
pub(crate) fn client(stage: &Stage, name: &str) -> Command {
    through(stage, tool(name))
}

fn through(stage: &Stage, mut command: Command) -> Command {
    command
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", stage.pgweir.port().to_string())
        .env("PGUSER", &stage.name)
        .env("PGDATABASE", &stage.name);
    command
}

/// Runs it and gives what it printed.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?} ended with {status}:\n{out}\n{err}");
    out.into_owned()
}

#[test]
fn psql() {
    let stage = Stage::new("client_psql", 1);
    let psql = |arguments: &[&str]| run(client(&stage, "psql").args(["-XAtq"]).args(arguments));
    assert_eq!(psql(&["-c", "SELECT 1", "-c", "SELECT 2"]), "1\n2\n");
    assert_eq!(psql(&["-c", "CREATE TABLE t (a int, b text)"]), "");
    let script = "\\copy t FROM PROGRAM 'seq 3 | sed s/$/,x/' (FORMAT csv)\n\
        BEGIN;\nSELECT count(*) FROM t;\nCOMMIT;\n\\set AUTOCOMMIT off\nDELETE FROM t;\nROLLBACK;\n\
        SELECT a, b FROM t ORDER BY a LIMIT 1 \\gx\n\\copy t TO STDOUT\n";
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("client_psql.sql");
    std::fs::write(&file, script).unwrap();
    let said = psql(&["-v", "ON_ERROR_STOP=1", "-f", file.to_str().unwrap()]);
    assert_eq!(said, "3\na|1\nb|x\n1\tx\n2\tx\n3\tx\n");
    let described = psql(&["-c", "\\d t"]);
    assert!(described.contains("a|integer"), "{described}");
}

#[test]
fn pgbench() {
    let stage = Stage::new("client_pgbench", 4);
    run(client(&stage, "pgbench").args(["-i", "-q", "-s", "1"]));
    for mode in ["simple", "extended", "prepared"] {
        // It waits for what it prepares: a thread with several clients would be waiting for itself.
        let common = ["-n", "-j", "16", "-c", "16", "-M", mode];
        for arguments in [&["-t", "25"][..], &["-t", "100", "-S"], &["-t", "5", "-S", "-C"]] {
            let said = run(client(&stage, "pgbench").args(common).args(arguments));
            assert!(said.contains("number of failed transactions: 0 (0.000%)"), "{said}");
        }
    }
    let sums = "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = sum(delta), count(*) \
        FROM pgbench_history";
    assert_eq!(stage.value(sums), "t|1200");
    assert!(stage.backends("true") <= 4);
}

#[test]
fn pg_dump_into_psql() {
    let (from, to) = (Stage::new("client_dump", 2), Stage::new("client_restore", 2));
    run(client(&from, "pgbench").args(["-i", "-q", "-s", "1", "--foreign-keys"]));
    run(client(&from, "pgbench").args(["-n", "-c", "4", "-t", "50"]));
    let mut dump =
        client(&from, "pg_dump").arg("--no-owner").stdout(Stdio::piped()).spawn().unwrap();
    let restored = run(client(&to, "psql")
        .args(["-Xq", "-v", "ON_ERROR_STOP=1", "-1"])
        .stdin(dump.stdout.take().unwrap()));
    assert!(dump.wait().unwrap().success(), "{restored}");
    for table in ["accounts", "branches", "history", "tellers"] {
        let checksum = format!(
            "SELECT count(*), md5(string_agg(t::text, ',' ORDER BY t::text)) \
             FROM pgbench_{table} AS t"
        );
        assert_eq!(from.value(&checksum), to.value(&checksum), "{table}");
    }
    let keys = "SELECT count(*) FROM pg_constraint WHERE conrelid::regclass::text ~ 'pgbench'";
    assert_eq!(from.value(keys), to.value(keys));
}

#[test]
fn psycopg() {
    let stage = Stage::new("client_psycopg", 2);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/psycopg_client.py");
    let said = run(through(&stage, python()).arg(script));
    assert_eq!(said, "all is well\n");
}
