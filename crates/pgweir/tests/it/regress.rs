//! PostgreSQL's regression tests, by psql: what it prints through pgweir, in transaction mode and
//! while others shuffle its servers, is what it prints without.
//!
//! The files are not here: `make pg-regress REGRESS=dir` says where they are, and each is run on a
//! fresh database. None of them says what is right; PostgreSQL does, in a run of its own. In lines
//! that two of those print differently, the numbers of objects do not matter, nor the order; where
//! they differ in more, pgweir is compared with neither.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use pgweir_testkit::{Cluster, Login, Pgweir, WireClient};

use crate::stage::{self, PROGRAM, assert_sound};

/// The database of every run; its name may be printed.
const DATABASE: &str = "regression";

/// Servers that psql shares with as many clients, and one.
const SERVERS: u32 = 5;
const OTHERS: u32 = SERVERS + 1;

/// No file takes as long by far.
const SECONDS_EACH: &str = "300";

/// As `pg_regress` sets them.
const ENVIRONMENT: [(&str, &str); 3] = [
    ("PGTZ", "PST8PDT"),
    ("PGDATESTYLE", "Postgres, MDY"),
    ("PGOPTIONS", "-c intervalstyle=postgres_verbose"),
];

/// What prints something else through pgweir, for a reason that docs/compatibility.md gives.
const EXPLAINED: [&str; 4] = ["constraints", "sequence", "stats", "temp"];

/// Of all files, so many print the same at least.
const SAME: usize = 205;

/// How a file fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Same,
    /// Through pgweir something else is printed.
    Other,
    /// Direct runs differ from one another.
    Unsteady,
}

#[test]
#[ignore = "needs PostgreSQL's files: make pg-regress REGRESS=dir"]
fn psql_prints_the_same() {
    let folder = std::env::var_os("REGRESS").expect("REGRESS says where the files are");
    let chosen = std::env::var("FILES").unwrap_or_default();
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| {
        let name = name_of(file);
        let is_chosen = chosen.is_empty() || chosen.split_whitespace().any(|one| one == name);
        is_chosen && file.extension().is_some_and(|extension| extension == "sql")
    });
    files.sort();
    assert!(!files.is_empty(), "no file of SQL is in {}", folder.display());
    let shelf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("regress");
    fs::create_dir_all(&shelf).unwrap();

    let next = Mutex::new(files.iter());
    let fates = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let cluster = Cluster::builder().setting("max_connections", "60").start();
                loop {
                    let file = next.lock().unwrap().next();
                    let Some(file) = file else { break };
                    let (fate, turns) = fate_of(&cluster, file, &shelf);
                    println!("{} {fate:?} ({turns} turns of others)", name_of(file));
                    fates.lock().unwrap().push((name_of(file), fate, turns));
                }
            });
        }
    });
    let mut fates = fates.into_inner().unwrap();
    fates.sort();
    let of = |wanted: Fate| -> Vec<&str> {
        let its = fates.iter().filter(|(_, fate, _)| *fate == wanted);
        its.map(|(name, ..)| name.as_str()).collect()
    };
    let (same, other, unsteady) = (of(Fate::Same), of(Fate::Other), of(Fate::Unsteady));
    println!("{} of {} files print the same.", same.len(), files.len());
    println!("Differ through pgweir: {}", other.join(" "));
    println!("Differ from run to run: {}", unsteady.join(" "));
    println!("What they print is in {}.", shelf.display());
    let unexplained: Vec<_> =
        other.iter().filter(|&name| !EXPLAINED.contains(name)).copied().collect();
    assert_eq!(unexplained, [""; 0], "differ, and docs/compatibility.md does not say why");
    let alone: Vec<_> = fates.iter().filter(|(.., turns)| *turns == 0).collect();
    assert!(alone.is_empty(), "nobody else had a server meanwhile: {alone:?}");
    assert!(!chosen.is_empty() || same.len() >= SAME, "that is less than {SAME}");
}

/// And how many turns others had meanwhile.
fn fate_of(cluster: &Cluster, file: &Path, shelf: &Path) -> (Fate, u64) {
    let direct = run(cluster, cluster.port(), file, shelf, "direct");
    let (pooled, turns) = pooled(cluster, file, shelf);
    if direct == pooled {
        return (Fate::Same, turns);
    }
    let again = run(cluster, cluster.port(), file, shelf, "again");
    let [direct, again, pooled] = [direct, again, pooled].map(|printed| lines(&printed));
    let unsteady: Vec<_> = direct.iter().zip(&again).map(|(one, other)| one != other).collect();
    let fate = match (fits(&direct, &again, &unsteady), fits(&direct, &pooled, &unsteady)) {
        (true, true) => Fate::Same,
        (true, false) => Fate::Other,
        (false, _) => Fate::Unsteady,
    };
    (fate, turns)
}

fn lines(printed: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(printed).lines().map(str::to_owned).collect()
}

/// Whether the same is printed, where lines that are unsteady are so for the numbers of objects,
/// and the order that these bring about.
fn fits(one: &[String], other: &[String], unsteady: &[bool]) -> bool {
    let steady = |lines: &[String]| {
        let lines = lines.iter().zip(unsteady).filter(|(_, unsteady)| !**unsteady);
        lines.map(|(line, _)| line.clone()).collect::<Vec<_>>()
    };
    let masked = |lines: &[String]| {
        let lines = lines.iter().zip(unsteady).filter(|(_, unsteady)| **unsteady);
        let mut lines: Vec<_> = lines.map(|(line, _)| without_objects(line)).collect();
        lines.sort();
        lines
    };
    one.len() == other.len() && steady(one) == steady(other) && masked(one) == masked(other)
}

/// A line without the numbers that objects may have which somebody has made.
fn without_objects(line: &str) -> String {
    const FIRST: u64 = 16384;
    let runs = line.as_bytes().chunk_by(|one, next| one.is_ascii_digit() == next.is_ascii_digit());
    let runs = runs.map(|run| String::from_utf8_lossy(run));
    runs.map(|run| if run.parse().is_ok_and(|it: u64| it >= FIRST) { "#".into() } else { run })
        .collect()
}

/// What is printed through pgweir, while others have servers in turn with psql, and how many turns
/// these had.
fn pooled(cluster: &Cluster, file: &Path, shelf: &Path) -> (Vec<u8>, u64) {
    renew(cluster);
    let config = stage::trusting(cluster, DATABASE)
        .user("postgres", "", SERVERS)
        .user_setting("min_pool_size", &SERVERS.to_string());
    let pgweir = Pgweir::start(PROGRAM, |port| config.text(port));
    let (over, turns) = (AtomicBool::new(false), AtomicU64::new(0));
    let printed = thread::scope(|scope| {
        for _ in 0..OTHERS {
            scope.spawn(|| shuffle(&pgweir, &over, &turns));
        }
        let printed = print(cluster, pgweir.port(), file, shelf, "pgweir");
        over.store(true, Ordering::Relaxed);
        printed
    });
    assert_sound(&pgweir);
    (printed, turns.into_inner())
}

/// Takes a server again and again, until psql is done. As many clients as there are servers and one
/// do so: psql gets whichever is free first.
fn shuffle(pgweir: &Pgweir, over: &AtomicBool, turns: &AtomicU64) {
    let is_over = || over.load(Ordering::Relaxed);
    let login = Login::new("postgres").database(DATABASE);
    while !is_over() {
        // What a file does to the whole database may end this client too, or keep it out.
        let Ok(mut client) = WireClient::login(pgweir.address(), &login) else {
            continue;
        };
        while !is_over() && client.try_query("SELECT pg_sleep(0.002)").is_ok() {
            turns.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn run(cluster: &Cluster, port: u16, file: &Path, shelf: &Path, how: &str) -> Vec<u8> {
    renew(cluster);
    print(cluster, port, file, shelf, how)
}

/// What psql prints, which is kept on the shelf too.
fn print(cluster: &Cluster, port: u16, file: &Path, shelf: &Path, how: &str) -> Vec<u8> {
    let kept = shelf.join(format!("{}.{how}", name_of(file)));
    let out = File::create(&kept).unwrap();
    let psql = cluster.tool("psql");
    let mut command = std::process::Command::new("timeout");
    command.arg(SECONDS_EACH).arg(psql.get_program()).args(["-X", "-a", "-q", "-d", DATABASE]);
    for (name, value) in psql.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let errors = out.try_clone().unwrap();
    command
        .envs(ENVIRONMENT)
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", port.to_string())
        .stdin(Stdio::from(File::open(file).unwrap()))
        .stdout(out)
        .stderr(errors)
        .status()
        .unwrap();
    fs::read(kept).unwrap()
}

/// A fresh database, and none of the roles that the last file has left.
fn renew(cluster: &Cluster) {
    // A subscription keeps its database; the catalogue of them is that of all databases.
    if cluster.psql("SELECT count(*) FROM pg_subscription") != "0" {
        let mut client = stage::superuser(cluster, DATABASE);
        for name in client.query("SELECT quote_ident(subname) FROM pg_subscription") {
            client.query(&format!("ALTER SUBSCRIPTION {name} DISABLE"));
            client.query(&format!("ALTER SUBSCRIPTION {name} SET (slot_name = NONE)"));
            client.query(&format!("DROP SUBSCRIPTION {name}"));
        }
    }
    cluster.psql(&format!("DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)"));
    let roles = cluster.psql(
        "SELECT quote_ident(rolname) FROM pg_roles \
         WHERE rolname <> 'postgres' AND rolname !~ '^pg_'",
    );
    for role in roles.lines() {
        cluster.psql(&format!("DROP OWNED BY {role}"));
        cluster.psql(&format!("DROP ROLE {role}"));
    }
    for space in cluster.psql("SELECT quote_ident(spcname) FROM pg_tablespace").lines() {
        if !space.starts_with("pg_") {
            cluster.psql(&format!("DROP TABLESPACE {space}"));
        }
    }
    cluster.psql(&format!("CREATE DATABASE {DATABASE} TEMPLATE template0"));
}

fn name_of(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
