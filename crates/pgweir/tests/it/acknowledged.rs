//! Clients write through servers that they share, and servers end all the while, by a word or by
//! SIGKILL, which makes PostgreSQL end all of them and recover. What was acknowledged is there,
//! once; what was refused is not; of what nobody knows there is one at most; and each connection's
//! rows are in its order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pgweir_testkit::frames::{bind, execute, parse, query, sync};
use pgweir_testkit::{Cluster, Login, WireClient, eventually, eventually_some};

use crate::stage::Stage;

const NAME: &str = "acknowledged";
const CLIENTS: usize = 16;
const ROUNDS: usize = 120;
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
}

/// One client, and the connection that it has now.
struct Writer<'a> {
    stage: &'a Stage,
    id: usize,
    connection: usize,
    client: WireClient,
    /// Its last reply said that a transaction block is open.
    in_block: bool,
}

impl<'a> Writer<'a> {
    fn new(stage: &'a Stage, id: usize) -> Self {
        Self { stage, id, connection: 0, client: connected(stage), in_block: false }
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
        match self.client.send(unit).and_then(|()| self.client.read_until_ready()) {
            Ok(reply) => {
                self.in_block = reply.last().is_some_and(|ready| ready.body != *b"I");
                match reply.iter().find(|message| message.tag == b'E') {
                    Some(error) => of_error(&error.sqlstate()),
                    None => Told::Written,
                }
            }
            Err(_) => {
                self.reconnect();
                Told::Unknown
            }
        }
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

    /// Sends a row and is gone.
    fn vanishes(&mut self, row: usize) -> Told {
        let sent = self.client.send(&query(&self.insert(row)));
        let gone = std::mem::replace(&mut self.client, connected(self.stage));
        let _ended_already = gone.reset();
        self.connection += 1;
        if sent.is_ok() { Told::Unknown } else { Told::Refused }
    }

    fn cancels(&mut self, row: usize) -> Told {
        let key = self.client.cancel_key();
        if self.client.send(&query(&self.insert(row))).is_err() {
            self.reconnect();
            return Told::Unknown;
        }
        let _came_too_late = key.map(|key| key.cancel(self.stage.address()));
        self.runs(&[])
    }

    /// Its own rows, and nobody else's.
    fn reads(&mut self) -> bool {
        let text = format!("SELECT id, count(*) FROM rows WHERE id = {} GROUP BY id", self.id);
        let sent = self.client.send(&query(&text));
        let Ok(reply) = sent.and_then(|()| self.client.read_until_ready()) else {
            self.reconnect();
            return false;
        };
        for row in reply.iter().filter(|message| message.tag == b'D') {
            let id = Some(self.id.to_string().into_bytes());
            assert_eq!(row.values()[0], id, "somebody else's row");
        }
        reply.iter().all(|message| message.tag != b'E')
    }

    fn works(mut self, done: &AtomicUsize) -> Account {
        let mut account = Account::default();
        for round in 0..ROUNDS {
            let connection = self.connection;
            let told = match (self.id + round) % 8 {
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
                _ => {
                    account.read += usize::from(self.reads());
                    None
                }
            };
            if let Some(told) = told {
                account.rows.insert(round, (connection, told));
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
        eventually("it to go on", || self.runs(&query("SELECT 1")) == Told::Written);
        account
    }
}

/// A connection to pgweir, as soon as there is one: PostgreSQL refuses newcomers as it recovers.
fn connected(stage: &Stage) -> WireClient {
    eventually_some("a login", || WireClient::login(stage.address(), &stage.login()).ok())
}

fn of_error(code: &str) -> Told {
    let is_unknown = code.starts_with("08") || code.starts_with("57P0") || code == "40003";
    if is_unknown { Told::Unknown } else { Told::Refused }
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

#[test]
fn what_is_acknowledged_is_there_once_whoever_is_killed() {
    for pipelining in ["3x8", "auto", "off"] {
        all_goes_well(pipelining);
    }
}

fn all_goes_well(pipelining: &str) {
    let cluster = Cluster::builder().setting("synchronous_commit", "on").start();
    let stage = Stage::on(&cluster, NAME, 4, |config| {
        config.general("pipelining", &format!("\"{pipelining}\""))
    });
    stage.ask(&format!(
        "CREATE TABLE rows
             (id int, connection int, n int, at timestamptz DEFAULT clock_timestamp());
         ALTER TABLE rows OWNER TO {NAME}"
    ));
    let done = AtomicUsize::new(0);
    let accounts: Vec<Account> = thread::scope(|scope| {
        let start = |id| {
            let (stage, done) = (&stage, &done);
            scope.spawn(move || Writer::new(stage, id).works(done))
        };
        let clients: Vec<_> = (0..CLIENTS).map(start).collect();
        for end in 1..=ENDS {
            let enough = end * CLIENTS * ROUNDS / (ENDS + 1);
            eventually("more to be done", || done.load(Ordering::Relaxed) >= enough);
            let of_pool = format!("FROM pg_stat_activity WHERE usename = '{NAME}'");
            if end % 3 == 0 {
                let pid = asked(&cluster, &format!("SELECT pid {of_pool} LIMIT 1")).concat();
                pid.parse().into_iter().for_each(|pid| cluster.kill_backend(pid));
            } else {
                asked(&cluster, &format!("SELECT pg_terminate_backend(pid) {of_pool} LIMIT 2"));
            }
        }
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let mut told = BTreeMap::new();
    for (id, account) in accounts.iter().enumerate() {
        let sql = format!("SELECT connection || ' ' || n FROM rows WHERE id = {id} ORDER BY at");
        let there: Vec<(usize, usize)> = asked(&cluster, &sql)
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
        let last = accounts[id].rows.len() + ROUNDS;
        for connection in 0..last {
            let of_it = there.iter().filter(|(its, _)| *its == connection).map(|(_, n)| *n);
            assert!(of_it.is_sorted(), "c{id}: rows out of order: {there:?}");
        }
    }
    assert!(told["Written"] > CLIENTS * ROUNDS / 4, "{told:?}");
    assert!(accounts.iter().map(|account| account.read).sum::<usize>() > 0);
}
