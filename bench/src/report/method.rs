//! How the figures come about: words, command lines, configurations.

use crate::cluster::{SCALE, SETTINGS, fill_args, initdb_args};
use crate::contender::{
    Address, PIPELINING, POOL_SIZE, pgbouncer_ini, pgweir_toml, pipelining_relay_args, relay_args,
};
use crate::pgbench::{CLIENTS_CONNECTED_PER_SECOND, run_args};
use crate::results::YARDSTICK;

use super::put;

/// Placeholders.
const ADDRESS: Address<'static> =
    Address { port: "PORT", server_port: "SERVER_PORT", pool_size: POOL_SIZE };

/// Appends the chapter, with what the run was configured by.
pub(super) fn write(text: &mut String) {
    text.push_str(METHOD);
    put(text, "");
    put(text, &format!("A round that does not count: the relay is under {YARDSTICK} × PgBouncer."));
    put(
        text,
        &format!(
            "Poolers have {POOL_SIZE} servers for each pool, where a case names no other number."
        ),
    );
    put(text, &format!("pgbench's tables are of scale {SCALE}.\n"));
    commands(text);
    put(text, "\nPostgreSQL has its defaults but:\n\n```ini");
    for (name, value) in SETTINGS {
        put(text, format!("{name} = {value}").trim_end());
    }
    put(text, "```\n\npgbouncer.ini:\n\n```ini");
    text.push_str(&pgbouncer_ini(&ADDRESS, "userlist.txt"));
    put(text, "```\n\npgweir.toml:\n\n```toml");
    text.push_str(&pgweir_toml(&ADDRESS, 1, 1, PIPELINING));
    put(text, "```");
}

/// The whole of what is run, with placeholders in capitals.
fn commands(text: &mut String) {
    put(text, "Commands; a case names its ARGUMENTS of pgbench:\n\n```sh");
    put(text, &format!("initdb {}", initdb_args("DATA").join(" ")));
    put(text, "postgres -D DATA -p SERVER_PORT -c NAME=VALUE   # for each of those below");
    put(text, &format!("pgbench {}", fill_args("SERVER_PORT").join(" ")));
    put(text, "pgbouncer pgbouncer.ini");
    put(text, "pgweir pgweir.toml");
    put(text, &format!("relay {}", relay_args(&ADDRESS).join(" ")));
    let args = pipelining_relay_args(&ADDRESS).join(" ");
    put(text, &format!("relay {args} # the pipelining relay"));
    put(text, "bench delay PORT SERVER_PORT                    # remote-64");
    put(text, "bench instant PORT THREADS                      # workers-4");
    put(text, "bench crowd PORT DATABASES CLIENTS THREADS SECONDS");
    put(
        text,
        "bench crowd PORT 1 CLIENTS THREADS SECONDS --ask accounts --settings SETS # settings-64",
    );
    let args = run_args("SECONDS", "PORT", "LOG", "DATABASE").join(" ");
    put(text, &format!("pgbench ARGUMENTS {args}"));
    put(text, "```\n");
    put(
        text,
        &format!(
            "SECONDS of pgbench are those of the turn, one more, and one for each \
             {CLIENTS_CONNECTED_PER_SECOND} clients: its\nclock runs while they connect, though \
             its rates leave that time out. PORT is the pooler's, or the\nserver's for direct \
             connections. PostgreSQL and PgBouncer refuse to run as root: where the harness\ndoes, \
             they run as `postgres` or `nobody`."
        ),
    );
}

const METHOD: &str = "\
## How it is measured

- `make bench` runs all of it; `make bench CASE=simple-64,connect` runs two cases and keeps the
  others' figures; `make bench CASE=pipelining` runs all that depend on how clients share servers,
  in about three quarters of an hour. So cases may be of different builds and days: each says when
  it was measured, and of which commit of the checkout that the harness ran in. Only ratios within a
  case compare. `make bench-bundle` packs it for a bare machine, and the commit with it.
- What each round of each case gave is in [benchmarks/rounds](benchmarks/rounds), and this page is
  made of that alone.
- How many rounds a case has, and how long its turns are, is the case's own: many short ones where
  many contenders take part. Of fewer or shorter ones (`ROUNDS=1 SECONDS=2`) there is no verdict.
- `pgweir` has the file below. `pgweir, pipelining off` differs in that one line, and so do `pgweir,
  simple protocol` and the workers of `workers-N`, which are compared without pipelining. What was
  measured before pgweir had it by default is under `pgweir, pipelining off`.
- A round is one turn of each contender, in an order that changes from round to round, after a
  warm-up of each. Where many clients ask as fast as they can (`simple-N` and `extended-N` from 64
  clients on), a round counts only if the relay is well ahead of PgBouncer: otherwise something else
  on the machine set the pace. Such a round is repeated, at most as often as rounds are wanted.
  Where one of the two did not run, there is no yardstick, and no verdict. In the other cases
  something else sets the pace by design, and a relay is never so far ahead: the rate that is asked
  for, the round trips of 1 or 16 clients, connects, commits, waits, the way to a remote server. All
  their rounds count.
- Direct's maximum, of which `rate-N` ask for a part, is the best of two medians, with 16 and with
  64 clients, of three runs each. It is measured once in a run of `make bench`, so `CASE=rate` gives
  both cases the same.
- All speak TCP on 127.0.0.1 without encryption, trust authentication, and log no connections.
  Poolers run in transaction mode, on one thread but for `workers-N`.
- Keepalive is the same in both poolers: on, at the kernel's times, and no user timeout. Those are
  PgBouncer's defaults, not pgweir's: left alone, pgweir probes a connection that was silent for 5 s
  (a minute with `config_version = 1`), and looks every few seconds for peers that have vanished
  (`tcp_user_timeout`). The figures do not hold that work.
- Percentiles are of single transactions, from pgbench's logs. Of plain selects a tenth is logged
  (`--sampling-rate`, the same for all; in `mix-…` every one, since the slowest counts): at their
  rate a line for each would slow the load generator. With a rate (`-R`) a transaction's time begins
  when it was due, so that waiting counts; with `-C` it begins when the connection stands. Who
  cannot do the rate that is asked for has a queue that grows through the turn, and its latency is
  that of the queue: beside PgBouncer, a ratio near 0 in `rate-50` says no more than that.
- CPU per transaction is the pooler's user and system time over the turn, divided by the load's
  count of transactions. Memory of an idle client is the growth of the pooler's anonymous memory
  (`/proc/PID/smaps_rollup`) over 10,000 clients that ran one query each; then their pooler's CPU is
  watched for ten seconds of silence. There are no direct connections beside them: those would be
  10,000 backends of the server.
- The pipelining relay has three servers, to which clients belong from their login on: what they
  send goes there behind what others sent, and replies go back in that order. It reads no statement.
  In `prepared-64` all clients of pgbench give a statement the same name, so the first prepares it
  for all of its server; the others are told that it exists, and go on.
- In `settings-64` each client has an `application_name` of its own, and one of four sets of
  `TimeZone` and `search_path`. pgbench would need a process for each, and they would be what is
  measured; so the load is `bench crowd`, a few threads of clients that log in with their settings,
  select one row by its key again and again, and compare the reply with their first one byte by
  byte. `pgweir, equal settings` is the same pgweir, asked by as many clients that are all alike.
  PgBouncer is not there: it takes no `search_path` at login.
- `mix-…` are two pgbench at the same time, sixty clients with selects and four with something else;
  tps and latencies are those of the selects where the table does not say \"of the few\". In
  `mix-view` the four read a view whose PL/pgSQL function sleeps for 200 ms; pgweir is told that
  it is quiet, so it stands among the selects until the 50 ms are over that a shared server gives
  a statement. In `mix-lock` they
  update a row that a client besides, which speaks to PostgreSQL directly, locks for 200 ms again
  and again. Each turn of these two has a pooler that has just been started, and all that it does
  counts. What is looked at there is the slowest transaction, so all that runs is in one scheduling
  group, as services of systemd and containers are. Elsewhere Linux makes each backend of PostgreSQL
  a group of its own (autogroup in sched(7)), and now and then one gets no processor for hundreds of
  milliseconds, whoever its client is.
- In `sweep-…` each is started anew for each turn, and has a turn before it that does not count: 5 s
  for pgweir as it is by default, which has to find its pair, 1 s for those that are given one. A
  large grid's pools would not fit into `max_connections` side by side. `GRID=full` has
  48 pairs, `GRID=1x8,3x16` those that it names. `sweep-16-to-250` and its like have another load
  before, for 4 s, and 5 s of the new one that do not count; 1 s each for those that are given a
  pair.
- Before a turn that updates accounts, or runs TPC-B, what the turn before has left of old versions
  is removed by VACUUM.
- Large results are read into one buffer by the harness itself, again and again for the length of a
  turn, and thrown away; the figure is the median.
- For `remote-64` a forwarder holds every request back for 0.5 ms, direct connections' too. To all
  before it it is a server on TCP; PostgreSQL itself it reaches through the unix socket, for what
  that way takes of the processors a server that is away would not take. A pool's
  server is busy with each transaction for that long, and for as long as it takes the forwarder, one
  thread, to get on a core that it shares with all others. So the number of servers bounds the
  figures more than a pooler's work does. For comparison the case says what ten direct connections
  reach (the median of three runs before the rounds), which is near what poolers without pipelining
  make of their ten servers, and how busy the forwarder was, in percent of a core.
- `workers-N` compare pgweir with itself, without pipelining: the same file but for
  `worker_threads`, with a pool for each of several databases, which all are the server's one. A
  pool lives on one worker; clients are handed over to it. For `workers-2` each database has a
  pgbench of its own, all at the same time, and tps is their sum.
- For `workers-4` PostgreSQL and pgbench would be what is measured. So the server is one that
  answers at once (`bench instant`), and the load (`bench crowd`) has clients that each ask for a
  number of their own, one query after the other, and compare the reply with theirs byte by byte.
  All transactions' times count. The pooler keeps to one half of the machine's cores, load and
  server share the other; without that, figures depend on whom the scheduler puts beside whom. How
  busy the threads of load and server were is in the table: near 100% it is they who set the pace.
";
