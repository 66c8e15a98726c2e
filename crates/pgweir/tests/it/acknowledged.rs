//! Clients write through servers that they share, and servers end all the while, by a word or by
//! SIGKILL, which makes PostgreSQL end all of them and recover. What was acknowledged is there,
//! once; what was refused is not; of what nobody knows there is one at most; and each client's rows
//! are in its order. Each end leaves no more clients in doubt than it may, and what only reads
//! is run again.

use std::collections::BTreeMap;
use std::thread;

use pgweir_testkit::frames::{bind, execute, parse, query, sync};
use pgweir_testkit::{Cluster, Login, WireClient, eventually, eventually_some};

use crate::course::{CLIENTS, Course, LOST_TWICE, NOT_RUN_AGAIN, Read, losses, read, shared};
use crate::stage::Stage;

const NAME: &str = "acknowledged";
const POOL_SIZE: usize = 4;
const ENDS: usize = 9;

/// What a client was told of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Written,
    Refused,
    /// Nothing that says whether it is there.
    Unknown,
}

/// What a client has done: for each of its rows the connection by which it was sent.
#[derive(Default)]
struct Account {
    rows: BTreeMap<usize, (usize, Told)>,
    read: usize,
    /// So many of its units a cancel has ended.
    cancelled: usize,
    /// For each end of servers how often a unit was left in doubt.
    in_doubt: [usize; ENDS + 1],
    /// How often that only reads, and nothing of its reply had come.
    reads_in_doubt: [usize; ENDS + 1],
}

/// One client, and the connection that it has now.
struct Writer<'a> {
    stage: &'a Stage,
    course: &'a Course,
    account: Account,
    id: usize,
    connection: usize,
    client: WireClient,
    /// Its last reply said that a transaction block is open.
    in_block: bool,
    /// The connection on which it has prepared a statement.
    prepared: Option<usize>,
    /// It has asked for a cancel of what it has sent.
    cancels: bool,
}

impl<'a> Writer<'a> {
    fn new(stage: &'a Stage, course: &'a Course, id: usize) -> Self {
        let client = connected(stage);
        let account = Account::default();
        let (connection, in_block, prepared, cancels) = (0, false, None, false);
        Self { stage, course, account, id, connection, client, in_block, prepared, cancels }
    }

    fn insert(&self, row: usize) -> String {
        let Self { id, connection, .. } = self;
        format!("INSERT INTO rows (id, connection, n) VALUES ({id}, {connection}, {row})")
    }

    /// Another connection takes the place of one that has ended.
    fn reconnect(&mut self) {
        self.connection += 1;
        self.client = connected(self.stage);
    }

    /// Sends a unit. What its reply says of a row that was to be written.
    fn runs(&mut self, unit: &[u8]) -> Told {
        let cancels = std::mem::take(&mut self.cancels);
        let told = match self.client.send(unit).and_then(|()| self.client.read_until_ready()) {
            Ok(reply) => {
                self.in_block = reply.last().is_some_and(|ready| ready.body != *b"I");
                match reply.iter().find(|message| message.tag == b'E').map(|error| error.sqlstate())
                {
                    Some(code) => {
                        let is_cancelled = code == "57014";
                        assert!(cancels || !is_cancelled, "c{} has cancelled nothing", self.id);
                        self.account.cancelled += usize::from(is_cancelled);
                        of_error(&code)
                    }
                    None => Told::Written,
                }
            }
            Err(_) => {
                self.reconnect();
                Told::Unknown
            }
        };
        self.account.in_doubt[self.course.last_end()] += usize::from(told == Told::Unknown);
        told
    }

    fn writes_in_block(&mut self, row: usize) -> Told {
        let (connection, insert) = (self.connection, self.insert(row));
        for text in ["BEGIN", insert.as_str()] {
            if self.runs(&query(text)) != Told::Written {
                self.rolls_back(connection);
                // Without its COMMIT nothing is there.
                return Told::Refused;
            }
        }
        let told = self.runs(&query("COMMIT"));
        self.rolls_back(connection);
        told
    }

    /// Ends what is still open of a transaction. While PostgreSQL recovers no server can be had,
    /// by which it could be ended.
    fn rolls_back(&mut self, connection: usize) {
        eventually("the transaction to end", || {
            let is_over = !self.in_block || self.connection != connection;
            if !is_over {
                self.runs(&query("ROLLBACK"));
            }
            is_over
        });
    }

    /// By a statement that its connection knows by name.
    fn writes_by_name(&mut self, row: usize) -> Told {
        let Self { id, connection, .. } = *self;
        if self.prepared != Some(connection) {
            let text = "INSERT INTO rows (id, connection, n) VALUES ($1, $2, $3)";
            if self.runs(&[parse("writes", text, &[]), sync()].concat()) != Told::Written {
                return Told::Refused;
            }
            self.prepared = Some(connection);
        }
        let values = [id, connection, row].map(|value| value.to_string());
        let values = values.each_ref().map(|value| Some(value.as_str()));
        self.runs(&[bind("", "writes", &values), execute("", 0), sync()].concat())
    }

    /// The second row of two is none that the table takes, so neither is there.
    fn breaks_a_rule(&mut self, row: usize) -> Told {
        let Self { id, connection, .. } = *self;
        let insert = self.insert(row);
        match self.runs(&query(&format!("{insert}, ({id}, {connection}, -1)"))) {
            Told::Written => panic!("two rows are there"),
            told => told,
        }
    }

    /// Sends a row and is gone.
    fn vanishes(&mut self, row: usize) -> Told {
        let sent = self.client.send(&query(&self.insert(row)));
        self.is_gone();
        if sent.is_ok() { Told::Unknown } else { Told::Refused }
    }

    fn is_gone(&mut self) {
        let gone = std::mem::replace(&mut self.client, connected(self.stage));
        let _ended_already = gone.reset();
        self.connection += 1;
        self.in_block = false;
    }

    /// The same within a transaction, of which no COMMIT comes.
    fn vanishes_in_block(&mut self, row: usize) -> Told {
        let connection = self.connection;
        if self.runs(&query("BEGIN")) == Told::Written {
            let _sent_or_not = self.client.send(&query(&self.insert(row)));
            self.is_gone();
        }
        self.rolls_back(connection);
        Told::Refused
    }

    fn cancels_in_block(&mut self, row: usize) -> Told {
        let connection = self.connection;
        if self.runs(&query("BEGIN")) != Told::Written || self.cancels(row) != Told::Written {
            self.rolls_back(connection);
            return Told::Refused;
        }
        let told = self.runs(&query("COMMIT"));
        self.rolls_back(connection);
        told
    }

    fn cancels(&mut self, row: usize) -> Told {
        let key = self.client.cancel_key();
        let Self { id, connection, .. } = self;
        // It takes longer than others may wait for it, so the cancel comes in time.
        let slow = format!(
            "INSERT INTO rows (id, connection, n) SELECT {id}, {connection}, {row} \
             FROM generate_series(1, 2000000) HAVING count(*) > 0"
        );
        let insert = if row % 4 < 2 { slow } else { self.insert(row) };
        if self.client.send(&query(&insert)).is_err() {
            self.reconnect();
            return Told::Unknown;
        }
        let _came_too_late = key.map(|key| key.cancel(self.stage.address()));
        self.cancels = true;
        self.runs(&[])
    }

    /// Its own rows, and nobody else's: each that was acknowledged, and none that was refused.
    fn reads(&mut self) {
        let text = format!("SELECT id, count(*) FROM rows WHERE id = {} GROUP BY id", self.id);
        let mut is_new = false;
        let told = read(&mut self.client, &text, self.course.lost_read(), || {
            is_new = true;
            connected(self.stage)
        });
        self.connection += usize::from(is_new);
        let end = self.course.last_end();
        match told {
            Read::Done(rows) => {
                let id = Some(self.id.to_string().into_bytes());
                assert!(rows.iter().all(|row| row[0] == id), "somebody else's row: {rows:?}");
                let count = rows.first().and_then(|row| String::from_utf8(row[1].clone()?).ok());
                let there = count.map_or(0, |count| count.parse().unwrap());
                let those = |told| self.account.rows.values().filter(|its| its.1 == told).count();
                let written = those(Told::Written);
                let possible = written..=written + those(Told::Unknown);
                assert!(possible.contains(&there), "c{}: {there} of {possible:?}", self.id);
                self.account.read += 1;
            }
            Read::Lost => {
                self.account.in_doubt[end] += 1;
                self.account.reads_in_doubt[end] += 1;
            }
            Read::InPart => self.account.in_doubt[end] += 1,
        }
    }

    fn works(mut self) -> Account {
        for round in (0..).take_while(|_| !self.course.is_over()) {
            let connection = self.connection;
            let told = match (self.id + round) % 12 {
                0 | 1 => Some(self.runs(&query(&self.insert(round)))),
                2 => {
                    let insert = self.insert(round);
                    let batch =
                        [parse("", &insert, &[]), bind("", "", &[]), execute("", 0), sync()];
                    Some(self.runs(&batch.concat()))
                }
                3 | 4 => Some(self.writes_in_block(round)),
                5 if round % 3 == 0 => Some(self.vanishes(round)),
                6 if round % 2 == 0 => Some(self.cancels(round)),
                7 if round % 3 == 0 => Some(self.vanishes_in_block(round)),
                8 if round % 2 == 0 => Some(self.cancels_in_block(round)),
                9 => Some(self.writes_by_name(round)),
                10 => Some(self.breaks_a_rule(round)),
                _ => {
                    self.reads();
                    None
                }
            };
            if let Some(told) = told {
                self.account.rows.insert(round, (connection, told));
            }
            self.course.did_one(self.id);
        }
        eventually("it to go on", || self.runs(&query("SELECT 1")) == Told::Written);
        self.account
    }
}

/// A connection to pgweir, as soon as there is one: PostgreSQL refuses newcomers as it recovers.
fn connected(stage: &Stage) -> WireClient {
    eventually_some("a login", || WireClient::login(stage.address(), &stage.login()).ok())
}

/// An error that was expected: a server was lost, a transaction with it, or what follows it came
/// before its ROLLBACK; or the client has cancelled; or the row is none that the table takes.
fn of_error(code: &str) -> Told {
    match code {
        "08007" | "57P01" | "57P02" => Told::Unknown,
        "40001" | "25P02" | "57014" | "23514" => Told::Refused,
        _ => panic!("{code}"),
    }
}

/// Rows of a question to PostgreSQL itself, as soon as it can be asked.
fn asked(cluster: &Cluster, sql: &str) -> Vec<String> {
    let login = Login::new("postgres").database(NAME);
    eventually_some("PostgreSQL to answer", || {
        let mut client = WireClient::login(cluster.address(), &login).ok()?;
        client.send(&query(sql)).ok()?;
        let reply = client.read_until_ready().ok()?;
        let rows = reply.iter().filter(|message| message.tag == b'D').map(|row| row.values());
        let text = |value: Option<Vec<u8>>| String::from_utf8(value?).ok();
        let is_whole = reply.iter().all(|message| message.tag != b'E');
        is_whole.then(|| rows.map(|row| row.into_iter().filter_map(text).collect()).collect())
    })
}

/// How servers are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// So many by a word: each says why it ends.
    Terminated(usize),
    /// One by SIGKILL, and with it all.
    Crashed,
}

impl End {
    fn of(number: usize) -> Self {
        match number % 3 {
            0 => Self::Crashed,
            servers => Self::Terminated(servers),
        }
    }

    /// Ends them while they run something, or are about to, and waits until they are gone. Where
    /// processors are scarce there are hardly ever two that do at the same moment.
    fn comes(self, cluster: &Cluster) {
        let active = |servers| {
            let sql = format!(
                "SELECT pid FROM pg_stat_activity WHERE usename = '{NAME}' \
                 AND (state = 'active' OR state_change > clock_timestamp() - interval '20 ms') \
                 ORDER BY state <> 'active' LIMIT {servers}"
            );
            eventually_some("servers to run something", || {
                Some(asked(cluster, &sql)).filter(|pids| pids.len() == servers)
            })
        };
        let pids = match self {
            Self::Crashed => {
                let pids = active(1);
                cluster.kill_backend(pids[0].parse().unwrap());
                pids
            }
            Self::Terminated(servers) => {
                let pids = active(servers);
                let each = pids.join("), pg_terminate_backend(");
                asked(cluster, &format!("SELECT pg_terminate_backend({each})"));
                pids
            }
        };
        let of_them = format!("pg_stat_activity WHERE pid IN ({})", pids.join(", "));
        let count = format!("SELECT count(*) FROM {of_them}");
        eventually("them to be gone", || asked(cluster, &count) == ["0"]);
    }

    /// So many clients may be in doubt behind it, whether what they sent reads or changes rows:
    /// of those on a server that says why it ends one, of those on one that does not as many as may
    /// stand there. One that has crashed may have been replaced before the others end with it, and
    /// who stood there stands somewhere again: with `auto` that is everybody twice at most.
    fn most_in_doubt(self, shared: Option<(usize, usize)>) -> usize {
        match (self, shared) {
            (Self::Terminated(servers), _) => servers,
            (Self::Crashed, Some((servers, depth))) => {
                servers * depth + POOL_SIZE - servers + depth.max(1)
            }
            (Self::Crashed, None) => 2 * CLIENTS,
        }
    }

    /// A read is run again alone, on a server that may be lost too: perhaps each but the first.
    fn most_reads_in_doubt(self) -> usize {
        match self {
            Self::Terminated(servers) => servers - 1,
            Self::Crashed => POOL_SIZE - 1,
        }
    }
}

#[test]
fn what_is_acknowledged_is_there_once_whoever_is_killed() {
    // With `auto` it changes how many are shared.
    for (pipelining, shared) in [("2x3", Some((2, 3))), ("auto", None), ("off", Some((0, 0)))] {
        all_goes_well(pipelining, shared);
    }
}

fn all_goes_well(pipelining: &str, most_shared: Option<(usize, usize)>) {
    let cluster = Cluster::builder().setting("synchronous_commit", "on").start();
    let size = u32::try_from(POOL_SIZE).unwrap();
    let stage = Stage::on(&cluster, NAME, size, |config| {
        config.general("pipelining", &format!("\"{pipelining}\""))
    });
    stage.ask(&format!(
        "CREATE TABLE rows
             (id int, connection int, n int CHECK (n >= 0),
              at timestamptz DEFAULT clock_timestamp());
         ALTER TABLE rows OWNER TO {NAME}"
    ));
    let course = Course::new(if pipelining == "off" { NOT_RUN_AGAIN } else { LOST_TWICE });
    let accounts: Vec<Account> = thread::scope(|scope| {
        let start = |id| {
            let (stage, course) = (&stage, &course);
            scope.spawn(move || Writer::new(stage, course, id).works())
        };
        let clients: Vec<_> = (0..CLIENTS).map(start).collect();
        course.runs(ENDS, |number| End::of(number).comes(&cluster));
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let told = what_was_told_is_there(&cluster, &accounts);
    assert!(told["Written"] > course.done() / 4, "{told:?}");
    assert!(accounts.iter().map(|account| account.read).sum::<usize>() > 0);
    assert!(accounts.iter().map(|account| account.cancelled).sum::<usize>() > 0, "none in time");
    for number in 0..=ENDS {
        let sum = |of: fn(&Account) -> &[usize; ENDS + 1]| -> usize {
            accounts.iter().map(|account| of(account)[number]).sum()
        };
        let in_doubt = sum(|account| &account.in_doubt);
        let reads_in_doubt = sum(|account| &account.reads_in_doubt);
        let end = (number > 0).then(|| End::of(number));
        let most = end.map_or(0, |end| end.most_in_doubt(most_shared));
        assert!(in_doubt <= most, "{pipelining}, {number} {end:?}: {in_doubt} do not know");
        let most = if pipelining == "off" { most } else { end.map_or(0, End::most_reads_in_doubt) };
        assert!(reads_in_doubt <= most, "{pipelining}, {number} {end:?}: {reads_in_doubt} reads");
    }
    assert!(losses(&stage) > ENDS / 2, "{} servers were lost", losses(&stage));
    let shared = shared(&stage);
    let wanted = if pipelining == "off" { 0..=0 } else { course.done() / 4..=usize::MAX };
    assert!(wanted.contains(&shared), "{pipelining}: {shared} of {} shared", course.done());
}

/// So much was told of each kind, and all of it is so.
fn what_was_told_is_there(cluster: &Cluster, accounts: &[Account]) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    for (id, account) in accounts.iter().enumerate() {
        let sql = format!("SELECT connection || ' ' || n FROM rows WHERE id = {id} ORDER BY at");
        let there: Vec<(usize, usize)> = asked(cluster, &sql)
            .iter()
            .map(|row| {
                let (connection, n) = row.split_once(' ').unwrap();
                (connection.parse().unwrap(), n.parse().unwrap())
            })
            .collect();
        for (row, (connection, said)) in &account.rows {
            let times = there.iter().filter(|(_, n)| n == row).count();
            let allowed = match said {
                Told::Written => 1..=1,
                Told::Refused => 0..=0,
                Told::Unknown => 0..=1,
            };
            assert!(allowed.contains(&times), "c{id}.{row} is there {times} times: {said:?}");
            let wrong = there.iter().find(|(its, n)| n == row && its != connection);
            assert_eq!(wrong, None, "c{id}.{row} came by another connection");
            *told.entry(format!("{said:?}")).or_insert(0_usize) += 1;
        }
        let last = there.iter().map(|(connection, _)| *connection).max().unwrap_or(0);
        for connection in 0..=last {
            let of_it = there.iter().filter(|(its, _)| *its == connection).map(|(_, n)| *n);
            assert!(of_it.is_sorted(), "c{id}: rows out of order: {there:?}");
        }
        // What was acknowledged was there before the next one was sent, on whichever connection.
        let is_acknowledged =
            |n: &usize| account.rows.get(n).is_some_and(|it| it.1 == Told::Written);
        let acknowledged = there.iter().map(|(_, n)| *n).filter(is_acknowledged);
        assert!(acknowledged.is_sorted(), "c{id}: rows out of order: {there:?}");
    }
    told
}
