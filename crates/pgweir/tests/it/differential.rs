//! The same conversation with PostgreSQL and through pgweir gives the same messages.
//!
//! What differs all the same is a [`Difference`], and each of those has its reason in
//! `docs/differences.md`.

use std::collections::BTreeSet;
use std::fs;
use std::sync::LazyLock;

use pgweir_testkit::frames::query;
use pgweir_testkit::{Login, Pgweir, Script, WireClient, assert_same_transcript};

use crate::stage::{self, CLUSTER, PROGRAM};

mod batches;
mod copy;
mod large;
mod prepared;
mod queries;
mod shuffled;
mod startup;
mod unnamed;
mod violations;

/// Role and database of all scripts.
const NAME: &str = "differential";

/// Sizes of the pieces in which everything is sent once more.
const CHUNKS: [usize; 3] = [1, 3, 7];

static POOLERS: LazyLock<Poolers> = LazyLock::new(|| {
    stage::create_database(&CLUSTER, NAME);
    stage::superuser(&CLUSTER, NAME).query(SCHEMA);
    let start = |mode: &str, pipelining: &str| {
        let config = stage::trusting(&CLUSTER, NAME)
            .general("admin_username", "\"admin\"")
            .general("admin_password", "\"admin\"")
            .general("pipelining", &format!("\"{pipelining}\""))
            .pool("pool_mode", &format!("\"{mode}\""))
            .user(NAME, "", 4);
        Pgweir::start(PROGRAM, |port| config.text(port))
    };
    let [transaction, session, statement] =
        ["transaction", "session", "statement"].map(|mode| start(mode, "auto"));
    Poolers { transaction, shared: start("transaction", "2x8"), session, statement }
});

struct Poolers {
    transaction: Pgweir,
    /// The same, where what may share a server does so at once: with `auto` nobody who is alone
    /// does.
    shared: Pgweir,
    session: Pgweir,
    statement: Pgweir,
}

/// What scripts work on. They change none of it for good, nor the order in which rows lie, in which
/// some read them: they run side by side, several times.
const SCHEMA: &str = "
    CREATE TABLE kept (a int PRIMARY KEY, b text);
    INSERT INTO kept SELECT n, 'row ' || n FROM generate_series(1, 5) AS n;
    CREATE TABLE child (a int REFERENCES kept DEFERRABLE INITIALLY DEFERRED);
    CREATE TABLE sink (a int, b text);
    CREATE FUNCTION noisy(n int) RETURNS int LANGUAGE plpgsql AS
        $$ BEGIN RAISE NOTICE 'n is %', n USING HINT = 'none'; RETURN n; END $$;
    GRANT ALL ON kept, child, sink TO differential;
";

/// A way in which pgweir may differ, with its heading in `docs/differences.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    /// A client that breaks off the framing is told why.
    Farewell,
    /// A Flush that has a body ends the connection.
    FlushBody,
    /// PostgreSQL complains to a client that says goodbye in the middle of a COPY.
    GoodbyeInCopy,
    /// GSSAPI encryption is refused.
    Gssapi,
    /// Notices about startup parameters are not passed on.
    LoginNotices,
    /// Who speaks protocol 2 is refused in words of protocol 3.
    Protocol2,
    /// Protocol 3.2 is spoken, which PostgreSQL 15 does not speak.
    Protocol32,
    /// An error of our own has no place in PostgreSQL's source.
    SourcePlace,
}

impl Difference {
    const ALL: [Self; 8] = [
        Self::Farewell,
        Self::FlushBody,
        Self::GoodbyeInCopy,
        Self::Gssapi,
        Self::LoginNotices,
        Self::Protocol2,
        Self::Protocol32,
        Self::SourcePlace,
    ];

    fn heading(self) -> &'static str {
        match self {
            Self::Farewell => "Words of farewell",
            Self::FlushBody => "A Flush with a body",
            Self::GoodbyeInCopy => "Terminate inside COPY",
            Self::Gssapi => "GSSAPI encryption",
            Self::LoginNotices => "Notices at login",
            Self::Protocol2 => "Protocol 2",
            Self::Protocol32 => "Protocol 3.2",
            Self::SourcePlace => "No place in PostgreSQL's source",
        }
    }

    /// The transcript with what this difference is about taken out of it.
    fn masked(self, mut transcript: Vec<String>) -> Vec<String> {
        match self {
            Self::Farewell | Self::Protocol2 => {
                transcript.retain(|line| !line.contains("V=\"FATAL\""));
                transcript
            }
            Self::FlushBody => {
                let ready = transcript.iter().position(|line| line == "ReadyForQuery I");
                transcript.truncate(ready.map_or(0, |ready| ready + 1));
                transcript
            }
            Self::Gssapi => {
                transcript[0] = transcript[0].replace('G', "N");
                transcript
            }
            Self::GoodbyeInCopy => {
                transcript.retain(|line| !line.starts_with("ErrorResponse"));
                transcript
            }
            Self::LoginNotices => {
                transcript.retain(|line| !line.starts_with("NoticeResponse"));
                transcript
            }
            Self::Protocol32 => {
                let differs = ["NegotiateProtocolVersion", "BackendKeyData"];
                transcript.retain(|line| !differs.iter().any(|name| line.starts_with(name)));
                transcript
            }
            Self::SourcePlace => transcript
                .into_iter()
                .map(|line| match line.find(" F=\"") {
                    Some(end) if line.starts_with("ErrorResponse") => line[..end].to_owned(),
                    _ => line,
                })
                .collect(),
        }
    }
}

/// A conversation of the role that everything belongs to.
fn script() -> Script {
    Script::new(login())
}

fn login() -> Login {
    stage::login(NAME)
}

/// Compares in transaction mode, sent at once and in pieces, and on servers that are shared; in
/// session mode; and in statement mode what leaves no transaction open.
#[track_caller]
fn same(script: &Script) {
    same_but(&[], script);
}

/// As [`same`], where PostgreSQL and pgweir differ in the ways given: each of them must show.
#[track_caller]
fn same_but(differences: &[Difference], script: &Script) {
    let Poolers { transaction, shared, session, statement } = &*POOLERS;
    let direct = script.run(CLUSTER.address());
    let compare = |pooled: Vec<String>| {
        for omitted in differences {
            let others: Vec<_> = differences.iter().copied().filter(|d| d != omitted).collect();
            assert_ne!(
                masked(&others, direct.clone()),
                masked(&others, pooled.clone()),
                "{omitted:?} does not show"
            );
        }
        let direct = masked(differences, direct.clone());
        assert_same_transcript(&direct, &masked(differences, pooled));
    };
    compare(script.run(transaction.address()));
    compare(script.run(shared.address()));
    compare(script.run(session.address()));
    let in_block = |line: &String| line.starts_with("ReadyForQuery") && !line.ends_with('I');
    if !direct.iter().any(in_block) {
        compare(script.run(statement.address()));
    }
    for chunk in CHUNKS {
        compare(script.run_split(transaction.address(), chunk));
    }
    stage::assert_sound(transaction);
    stage::assert_sound(shared);
    stage::assert_sound(session);
    stage::assert_sound(statement);
}

fn masked(differences: &[Difference], transcript: Vec<String>) -> Vec<String> {
    differences.iter().fold(transcript, |transcript, difference| difference.masked(transcript))
}

/// What is compared on shared servers has shared one indeed.
#[test]
fn what_is_closed_shares_a_server() {
    let selects = (0..3).fold(script(), |script, _| script.ask(&query("SELECT b FROM kept")));
    same(&selects);
    let admin = Login::new("admin").password("admin").database("pgweir");
    let mut admin = WireClient::login(POOLERS.shared.address(), &admin).unwrap();
    let rows = admin.query("SHOW PIPELINING");
    let units = rows.last().and_then(|row| row.rsplit('|').next());
    assert!(units.is_some_and(|units| units.parse::<u64>().unwrap() >= 3), "{rows:?}");
}

#[test]
fn every_difference_has_its_reason() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/differences.md");
    let text = fs::read_to_string(path).unwrap();
    // Behind it stands what no script can show, and gaps: other tests' affair.
    let (text, _) = text.split_once("# What a pooler cannot hide").unwrap();
    let written: BTreeSet<_> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let known = Difference::ALL.map(Difference::heading);
    assert_eq!(written, BTreeSet::from(known));
}
