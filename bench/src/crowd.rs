//! A crowd: many clients on few threads, each asking as fast as it is answered.
//!
//! pgbench spends more on a transaction than a pooler's worker does, so it cannot keep several of
//! them busy; and all its clients have the same settings. This spends a read, a write and a
//! comparison: each client knows its own reply to the byte, from [`crate::instant`] or because it
//! asked once before, and the first that is given anything else ends the run. A client has one
//! query under way at a time.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpStream};
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::LocalRuntime;
use tokio::task::spawn_local;

use crate::clock;
use crate::contender::database;
use crate::error::{Doing, Error, Result};
use crate::frontend::{Frontend, TERMINATE, query, readable};
use crate::instant;
use crate::outcome::{Outcome, Tally};
use crate::procfs;

/// Sets of settings that clients have where they differ: as many as there are of either of these.
pub(crate) const SETTINGS: u32 = TIME_ZONES.len() as u32;
const TIME_ZONES: [&str; 4] = ["UTC", "Europe/Vienna", "America/New_York", "Asia/Tokyo"];
const SEARCH_PATHS: [&str; 4] =
    ["public", "pg_catalog, public", "public, pg_catalog", "\"$user\", public"];

/// What a crowd is asked to do.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub(crate) struct Crowd {
    /// Where the pooler listens, on 127.0.0.1
    pub(crate) port: u16,
    /// Databases that clients name
    pub(crate) pools: u32,
    /// Clients of each database
    pub(crate) clients: u32,
    /// Threads that all clients share
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) threads: u32,
    /// How long they ask
    pub(crate) seconds: u32,
    /// What they ask for
    #[arg(long, value_enum, default_value_t = Ask::Numbers)]
    pub(crate) ask: Ask,
    /// Sets of TimeZone and search_path; with more than one, each client has a name of its own too
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4))]
    pub(crate) settings: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Ask {
    /// A number, of a server that answers at once
    Numbers,
    /// A row of pgbench's accounts
    Accounts,
}

impl Ask {
    fn name(self) -> &'static str {
        match self {
            Self::Numbers => "numbers",
            Self::Accounts => "accounts",
        }
    }
}

/// What a crowd has to say when it is done.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct CrowdOutcome {
    pub(crate) outcome: Outcome,
    /// Its own CPU time, in percent of what its threads could have had.
    pub(crate) busy_percent: f64,
}

impl Crowd {
    /// The words behind `bench crowd` that mean this.
    pub(crate) fn args(&self) -> Vec<String> {
        let Self { port, pools, clients, threads, seconds, ask, settings } = self;
        let ask = ask.name();
        let args = format!(
            "{port} {pools} {clients} {threads} {seconds} --ask {ask} --settings {settings}"
        );
        args.split(' ').map(str::to_owned).collect()
    }

    /// Logs everybody in and then asks until the time is over. A transaction that ends later does
    /// not count.
    pub(crate) fn run(&self) -> Result<CrowdOutcome> {
        let groups = self.log_in()?;
        let own_cpu = || procfs::cpu_time(std::process::id());
        let before = own_cpu()?;
        let window = Duration::from_secs(self.seconds.into());
        let end = clock::now() + window;
        let times_us = ask_on_threads(groups, end).doing(|| "ask as a crowd".into())?;
        let cpu = own_cpu()?.saturating_sub(before);
        let transactions = times_us.len() as f64;
        let tally = Tally { tps: transactions / window.as_secs_f64(), transactions, times_us };
        let none = || Error::unfit("the crowd was not answered once");
        let possible = window.as_secs_f64() * f64::from(self.threads);
        Ok(CrowdOutcome {
            outcome: Outcome::of(tally).ok_or_else(none)?,
            busy_percent: cpu.as_secs_f64() / possible * 100.0,
        })
    }

    /// The clients of each thread; databases and threads take turns.
    fn log_in(&self) -> Result<Vec<Vec<Client>>> {
        let mut groups: Vec<Vec<Client>> = (0..self.threads).map(|_| Vec::new()).collect();
        for number in 0..self.pools * self.clients {
            let database = database(number % self.pools);
            let source = Ipv4Addr::LOCALHOST;
            let settings = self.settings_of(number);
            let mut frontend = Frontend::log_in_with(self.port, source, &database, &settings)?;
            let question = match self.ask {
                Ask::Numbers => Question::of_number(number),
                Ask::Accounts => Question::of_account(number + 1, &mut frontend)?,
            };
            let client = Client { stream: frontend.into_stream(), question };
            groups[(number % self.threads) as usize].push(client);
        }
        Ok(groups)
    }

    /// What a client says of itself at login.
    fn settings_of(&self, number: u32) -> Vec<(&'static str, String)> {
        if self.settings == 1 {
            return vec![];
        }
        let set = (number % self.settings) as usize;
        vec![
            ("application_name", format!("client {number}")),
            ("TimeZone", TIME_ZONES[set].to_owned()),
            ("search_path", SEARCH_PATHS[set].to_owned()),
        ]
    }
}

/// The times of all transactions, in µs.
fn ask_on_threads(groups: Vec<Vec<Client>>, end: Instant) -> io::Result<Vec<u32>> {
    thread::scope(|scope| {
        let start = |group| scope.spawn(move || ask_together(group, end));
        let threads: Vec<_> = groups.into_iter().map(start).collect();
        let mut times_us = Vec::new();
        for thread in threads {
            times_us.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic))?);
        }
        Ok(times_us)
    })
}

/// Lets these clients ask on this thread.
fn ask_together(clients: Vec<Client>, end: Instant) -> io::Result<Vec<u32>> {
    LocalRuntime::new()?.block_on(async {
        let start = |client: Client| spawn_local(client.ask_until(end));
        let asking: Vec<_> = clients.into_iter().map(start).collect();
        let mut times_us = Vec::new();
        for client in asking {
            times_us.extend(client.await.map_err(io::Error::other)??);
        }
        Ok(times_us)
    })
}

struct Client {
    stream: TcpStream,
    question: Question,
}

impl Client {
    /// Asks again and again, and says goodbye.
    async fn ask_until(self, end: Instant) -> io::Result<Vec<u32>> {
        self.stream.set_nonblocking(true)?;
        let mut stream = tokio::net::TcpStream::from_std(self.stream)?;
        let mut buffer = self.question.buffer();
        let mut times_us = Vec::new();
        let mut begin = clock::now();
        while begin < end {
            self.question.ask(&mut stream, &mut buffer).await?;
            let now = clock::now();
            if now < end {
                // Nobody waits for more than an hour here.
                times_us.push((now - begin).as_micros() as u32);
            }
            begin = now;
        }
        stream.write_all(TERMINATE).await?;
        Ok(times_us)
    }
}

/// What one client asks, and what it must hear.
struct Question {
    query: Vec<u8>,
    reply: Vec<u8>,
}

impl Question {
    /// No two numbers have the same reply.
    fn of_number(number: u32) -> Self {
        let sql = format!("SELECT {number}");
        Self { query: query(&sql), reply: instant::reply_to(&sql) }
    }

    /// As pgbench selects, and with the key in the reply. Asks once, to know it from then on.
    fn of_account(aid: u32, frontend: &mut Frontend) -> Result<Self> {
        let sql = format!("SELECT aid, abalance FROM pgbench_accounts WHERE aid = {aid}");
        let reply = frontend.reply(&sql)?;
        let value = aid.to_string();
        // The first value of the row, behind its length.
        let row = [&(value.len() as u32).to_be_bytes(), value.as_bytes()].concat();
        if !reply.windows(row.len()).any(|bytes| bytes == row) {
            return Err(Error::unfit(format!("`{sql}` gave {}", readable(&reply))));
        }
        Ok(Self { query: query(&sql), reply })
    }

    /// With room for more than the reply: what is too much shows, and a read that does not fill it
    /// tells the runtime that nothing more is there.
    fn buffer(&self) -> Vec<u8> {
        vec![0; self.reply.len() + 1]
    }

    /// Asks once.
    ///
    /// Errors: those of the stream, its end, and every reply but the right one.
    async fn ask(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        buffer: &mut [u8],
    ) -> io::Result<()> {
        stream.write_all(&self.query).await?;
        let mut read = 0;
        while read < self.reply.len() {
            let more = stream.read(&mut buffer[read..]).await?;
            if more == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            read += more;
            if !self.reply.starts_with(&buffer[..read]) {
                let (asked, heard) = (readable(&self.query), readable(&buffer[..read]));
                return Err(io::Error::other(format!("{asked} was answered by {heard}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
