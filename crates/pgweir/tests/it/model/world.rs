use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::LazyLock;

use pgweir_testkit::{Login, Pgweir, WireClient};

use super::PoolOf;
use super::clauses::{self, CHANNELS, LOCKS};
use super::dice::Dice;
use super::op::{Leaves, Look, Op, Text, Unit};
use super::speaker::Speaker;
use crate::stage::{self, CLUSTER, PROGRAM};

const CLIENTS: usize = 20;
const SERVERS: usize = 3;

/// Servers that may be kept.
const MAX_PINNED: usize = 2;

/// Steps that a transcript shows.
const SHOWN: usize = 40;

/// Role and database of pgweir's clients, and the database of their twins.
const NAME: &str = "model";
const TWINS: &str = "model_twins";

/// What clients find. They change none of it.
const SCHEMA: &str = "
    CREATE TABLE t1 (a int);
    INSERT INTO t1 VALUES (1);
    CREATE SCHEMA plain;
    CREATE SCHEMA \"Odd one\";
    CREATE TABLE plain.only_plain (a int);
    CREATE TABLE \"Odd one\".only_plain AS SELECT 1 AS a;
    GRANT USAGE ON SCHEMA plain, \"Odd one\" TO public;
    GRANT ALL ON t1, plain.only_plain, \"Odd one\".only_plain TO public;
";

static DATABASES: LazyLock<()> = LazyLock::new(|| {
    stage::create_database(&CLUSTER, NAME);
    let mut client = stage::superuser(&CLUSTER, "postgres");
    client.query("ALTER ROLE model SUPERUSER");
    client.query("CREATE ROLE model_low");
    client.query(&format!("CREATE DATABASE {TWINS} OWNER {NAME}"));
    for database in [NAME, TWINS] {
        stage::superuser(&CLUSTER, database).query(SCHEMA);
    }
});

/// All clients, and what they have to do with each other.
pub(super) struct World {
    pgweir: Pgweir,
    speakers: Vec<Speaker>,
    /// Sessions straight to the databases of the clients and of their twins.
    watchers: [WireClient; 2],
    /// How often all channels were notified from outside.
    notified: usize,
    /// What was done last.
    last: VecDeque<String>,
}

impl World {
    pub(super) fn new(pool: PoolOf) -> Self {
        LazyLock::force(&DATABASES);
        let config = stage::trusting(&CLUSTER, NAME)
            .pool("server_choice", "\"never_same\"")
            .pool("max_pinned", &MAX_PINNED.to_string())
            .pool("prepared_statements_cache_size", &pool.statements.to_string())
            .pool("pipelining", &format!("\"{}\"", pool.pipelining))
            .user(NAME, "", SERVERS as u32);
        let pgweir = Pgweir::start(PROGRAM, |port| config.text(port));
        let speakers = (0..CLIENTS).map(|number| speaker(&pgweir, number)).collect();
        let watchers = [NAME, TWINS].map(|database| stage::superuser(&CLUSTER, database));
        Self { pgweir, speakers, watchers, notified: 0, last: VecDeque::new() }
    }

    /// What can happen next.
    pub(super) fn next_op(&self, dice: &mut Dice) -> Op {
        if dice.chance(5) {
            return Op::LookAround;
        }
        let holders: Vec<_> = self.speakers.iter().filter(|it| it.holds()).collect();
        let who = match holders.len() {
            SERVERS => dice.pick(&holders).number,
            1.. if dice.chance(50) => dice.pick(&holders).number,
            _ => dice.below(CLIENTS),
        };
        if dice.chance(2) {
            return Op::Leave { who, politely: dice.chance(50) };
        }
        let speaker = &self.speakers[who];
        let look =
            *dice.pick(&[Look::Not, Look::Short, Look::Short, Look::Names, Look::NamesInSql]);
        for _ in 0..20 {
            let units = clauses::units(dice, speaker.mood());
            if self.may_say(who, &units) {
                return Op::Say { who, units, look };
            }
        }
        let units = vec![Unit::Query(vec![Text::new("ROLLBACK", Leaves::Nothing)])];
        Op::Say { who, units, look }
    }

    /// Has it happen, if that is possible.
    pub(super) fn take(&mut self, op: &Op) -> Result<(), String> {
        let done = match op {
            Op::Say { who, units, look } if self.may_say(*who, units) => {
                self.note(op);
                let said = self.speakers[*who].say(units);
                said.and_then(|lines| {
                    self.note_answer(&lines);
                    self.look_at(*who, *look)
                })
            }
            Op::Say { .. } => Ok(()),
            Op::Leave { who, politely } => {
                self.note(op);
                let next = speaker(&self.pgweir, *who);
                std::mem::replace(&mut self.speakers[*who], next).pair.leave(*politely);
                self.compare_locks()
            }
            Op::LookAround => {
                self.note(op);
                self.look_around()
            }
        };
        done.map_err(|error| format!("{op}\n{error}"))
    }

    /// Everybody lets go of everything: no server is kept.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        self.look_around()?;
        let mut order: Vec<_> = (0..CLIENTS).collect();
        order.sort_by_key(|who| !self.speakers[*who].holds());
        for who in order {
            for sql in ["ROLLBACK", "DISCARD ALL"] {
                let unit = Unit::Query(vec![Text::new(sql, Leaves::Reset)]);
                self.speakers[who]
                    .say(&[unit])
                    .map_err(|it| format!("client {who}: {sql}\n{it}"))?;
            }
        }
        self.look_around()?;
        let mut console = self.console();
        let mut pins = Vec::new();
        for _ in 0..TRIES {
            pins = console.query("SHOW PINS");
            if pins.iter().all(|row| row.split('|').nth(4) == Some("0")) {
                let log = self.pgweir.log();
                let wrong = |line: &&str| line.contains("panicked") || line.contains("a bug of");
                return log.lines().find(wrong).map_or(Ok(()), |line| Err(line.to_owned()));
            }
        }
        Err(format!("servers are still kept: {pins:#?}"))
    }

    /// What was done last, a line for each step, and who has a server now.
    pub(super) fn transcript(&self) -> String {
        let mut lines: Vec<_> = self.last.iter().cloned().collect();
        for it in self.speakers.iter().filter(|it| it.holds()) {
            lines.push(format!("holding, perhaps: {:?}", it.mood()));
        }
        lines.extend(self.console().query("SHOW CLIENTS"));
        lines.extend(self.console().query("SHOW SERVERS"));
        lines.iter().map(|line| format!("  {line}\n")).collect()
    }

    fn console(&self) -> WireClient {
        let login = Login::new("admin").password("admin").database("pgweir");
        WireClient::login(self.pgweir.address(), &login).unwrap()
    }

    /// Whether a client may have a server for this, and keep it if it would, and its twin would be
    /// told the same.
    fn may_say(&self, who: usize, units: &[Unit]) -> bool {
        let speaker = &self.speakers[who];
        self.may_run(who)
            && !speaker.differs(units)
            && (!speaker.would_keep(units) || self.may_keep(who))
    }

    /// Whether there is a server for a client.
    fn may_run(&self, who: usize) -> bool {
        let holders = self.speakers.iter().filter(|it| it.holds()).count();
        self.speakers[who].holds() || holders < SERVERS
    }

    /// Whether pgweir would let it keep one.
    fn may_keep(&self, who: usize) -> bool {
        let others = self.speakers.iter().filter(|it| it.keeps && it.number != who);
        others.count() < MAX_PINNED
    }

    fn look_at(&mut self, who: usize, look: Look) -> Result<(), String> {
        let look = match look {
            Look::Names | Look::NamesInSql if !self.may_keep(who) => Look::Short,
            other => other,
        };
        if self.may_run(who) {
            self.speakers[who].is_looked_at(look).map_err(|it| format!("looked at: {it}"))?;
        }
        Ok(())
    }

    fn look_around(&mut self) -> Result<(), String> {
        self.compare_locks()?;
        self.notified += 1;
        for channel in CHANNELS {
            let text = format!("NOTIFY \"{channel}\", 'to all {}'", self.notified);
            self.watchers.iter_mut().for_each(|watcher| drop(watcher.query(&text)));
        }
        for who in 0..CLIENTS {
            let speaker = &mut self.speakers[who];
            if !speaker.in_block {
                speaker.pair.compare_heard().map_err(|it| format!("client {who}: {it}"))?;
            }
            self.look_at(who, Look::Names).map_err(|it| format!("client {who}: {it}"))?;
        }
        Ok(())
    }

    /// From outside, the same locks can be had in both databases. What somebody has left who is
    /// gone may be there for a moment yet.
    fn compare_locks(&mut self) -> Result<(), String> {
        let text = format!(
            "SELECT k, CASE WHEN pg_try_advisory_lock(k) THEN pg_advisory_unlock(k)::text \
             ELSE 'held' END FROM generate_series(1, {}) AS k",
            LOCKS + CLIENTS
        );
        let mut free = [Vec::new(), Vec::new()];
        for _ in 0..TRIES {
            free = self.watchers.each_mut().map(|watcher| watcher.query(&text));
            if free[0] == free[1] {
                return Ok(());
            }
        }
        Err(format!("through pgweir and directly others get these locks: {free:#?}"))
    }

    fn note(&mut self, op: &Op) {
        self.last.push_back(op.to_string());
        if self.last.len() > SHOWN {
            self.last.pop_front();
        }
    }

    fn note_answer(&mut self, lines: &[String]) {
        if let Some(last) = self.last.back_mut() {
            let words: Vec<_> = lines.iter().map(|line| in_short(line)).collect();
            // A String takes everything.
            let _written = write!(last, "  ->  {}", words.join(", "));
        }
    }
}

/// So often something is looked for that comes about by itself.
const TRIES: usize = 5000;

/// A new client. Some ask for something at their login.
fn speaker(pgweir: &Pgweir, number: usize) -> Speaker {
    let with = |login: Login| match number % 5 {
        1 => login.parameter("application_name", "starter").parameter("work_mem", "5MB"),
        2 => login.parameter("DateStyle", "SQL, DMY").parameter("options", "-c app.tenant=first"),
        3 => login.parameter("search_path", "plain, public"),
        _ => login,
    };
    let logins = [NAME, TWINS].map(|database| with(Login::new(NAME).database(database)));
    let [pooled, direct] = logins;
    Speaker::new(number, (pgweir.address(), pooled), (CLUSTER.address(), direct))
}

/// What came, and for an error which.
fn in_short(line: &str) -> &str {
    match line.strip_prefix("ErrorResponse") {
        Some(fields) => {
            fields.split(" P=").next().unwrap_or(fields).split(" F=").next().unwrap_or(fields)
        }
        None => line,
    }
}
