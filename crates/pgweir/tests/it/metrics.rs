//! Metrics over HTTP.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use pgweir_testkit::{Pgweir, PoolerConfig, Port, Stranger, WireClient, eventually};

use crate::console::{Row, cell, show};
use crate::reload::reload;
use crate::stage::{CLUSTER, PROGRAM, Stage, assert_sound, create_database, login, trusting};
use crate::usage::descriptors;

/// What comes of a request.
fn ask(port: &Port, request: &str) -> String {
    let mut stream = TcpStream::connect(port.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

/// A value, and what tells it from others of its name.
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

impl Sample {
    /// As OpenMetrics writes it. No name of a test has a comma, or wants escapes.
    fn parse(line: &str) -> Self {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let labels = labels.strip_suffix('}').unwrap().split(',').filter(|one| !one.is_empty());
        let label = |one: &str| {
            let (name, value) = one.split_once('=').unwrap();
            (name.to_owned(), value.trim_matches('"').to_owned())
        };
        let name = name.strip_prefix("pgweir_").unwrap().to_owned();
        Self { name, labels: labels.map(label).collect(), value: value.parse().unwrap() }
    }
}

fn metrics(port: &Port) -> Vec<Sample> {
    let reply = ask(port, "GET /metrics HTTP/1.1\r\nHost: pgweir\r\n\r\n");
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let form = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.contains(form), "{head}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    body.lines().filter(|line| !line.starts_with('#')).map(Sample::parse).collect()
}

fn named<'a>(samples: &'a [Sample], name: &'a str) -> impl Iterator<Item = &'a Sample> {
    samples.iter().filter(move |sample| sample.name == name)
}

fn served_at(port: &Port, config: PoolerConfig) -> PoolerConfig {
    let number = port.number().to_string();
    let config = config.general("enable_prometheus_exporter", "true");
    config.general("prometheus_exporter_port", &number)
}

#[test]
fn they_say_what_the_console_shows_of_pipelining() {
    let port = Port::take();
    let stage = Stage::with("metrics_shared", 3, |config| {
        served_at(&port, config).general("pipelining", "\"2x8\"")
    });
    let mut clients = [0; 4].map(|_| stage.client());
    let table = "CREATE TABLE of_metrics (n int)";
    clients[0].query(table);
    let is_shared = || {
        clients.iter_mut().for_each(|client| drop(client.query("SELECT count(*) FROM of_metrics")));
        let pool = &show(&stage, "POOLS")[0];
        cell(pool, "shared_percent").parse::<u32>().is_ok_and(|percent| percent > 0)
    };
    eventually("reads to be shared", is_shared);

    let samples = metrics(&port);
    let samples = |name| named(&samples, name);
    let of = |name: &'static str, label: &str, its: &str| {
        let mut found = samples(name).filter(|sample| sample.labels[label] == its);
        found.next().unwrap_or_else(|| panic!("no {name} of {its}")).value
    };
    let of_pool = |name| of(name, "database", &stage.name);
    let pool = &show(&stage, "POOLS")[0];
    let shown = |column: &str| cell(pool, column).parse::<f64>().unwrap();
    assert_eq!(of("pool_shared_servers_max", "access", "read"), shown("sv_shared_max"));
    assert_eq!(of("pool_depth", "access", "write"), shown("depth_writes"));
    assert_eq!(of("pool_clients", "state", "active"), shown("cl_active"));
    let percent = 100.0 * of_pool("shared_transactions_total") / of_pool("transactions_total");
    assert_eq!(percent.floor(), shown("shared_percent"));

    let up_to = |row: &Row| cell(row, "total_up_to").parse::<f64>().unwrap();
    let longest =
        |row: &Row| cell(row, "delay_us").parse().map_or(f64::INFINITY, |us: f64| us / 1e6);
    let shown: Vec<_> =
        show(&stage, "PIPELINING").iter().map(|row| (longest(row), up_to(row))).collect();
    let buckets = samples("head_of_line_delay_seconds_bucket");
    let buckets: Vec<_> =
        buckets.map(|sample| (sample.labels["le"].parse().unwrap(), sample.value)).collect();
    assert_eq!(buckets, shown);
    assert_eq!(of_pool("head_of_line_delay_seconds_count"), shown.last().unwrap().1);
    assert!(samples("resident_memory_bytes").next().unwrap().value > 1e6);
}

#[test]
fn whoever_asks_for_something_else_is_told() {
    let port = Port::take();
    let stage = Stage::with("metrics_asked", 1, |config| served_at(&port, config));
    let first = |request: &str| ask(&port, request).lines().next().unwrap_or_default().to_owned();
    assert_eq!(first("GET / HTTP/1.0\r\n\r\n"), "HTTP/1.0 404 Not Found");
    let post = "POST /metrics HTTP/1.1\r\nHost: pgweir\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(first(post), "HTTP/1.1 405 Method Not Allowed");
    let head = ask(&port, "HEAD /metrics HTTP/1.1\r\nHost: pgweir\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(first("SELECT 1;\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    metrics(&port);
    assert_sound(&stage.pgweir);
}

/// Those who are served at once have descriptors, and the others wait; all in turn have little time
/// to say what they want.
#[test]
fn who_says_nothing_keeps_nobody_out_for_long() {
    let port = Port::take();
    let stage = Stage::with("metrics_silent", 1, |config| served_at(&port, config));
    assert_eq!(stage.value("SELECT 1"), "1");
    let before = descriptors(&stage.pgweir);
    let silent = [0; 12].map(|_| TcpStream::connect(port.address()).unwrap());
    eventually("eight to be served", || descriptors(&stage.pgweir) == before + 8);
    metrics(&port);
    assert_eq!(stage.value("SELECT 1"), "1");
    drop(silent);
}

#[test]
fn a_reload_begins_and_ends_them() {
    let (port, other) = (Port::take(), Port::take());
    create_database(&CLUSTER, "metrics_reload");
    let plain = || trusting(&CLUSTER, "metrics_reload").user("metrics_reload", "", 1);
    let pgweir = Pgweir::start(PROGRAM, |port| plain().text(port));
    let is_served = |at: &Port| TcpStream::connect(at.address()).is_ok();
    assert!(!is_served(&port));
    reload(&pgweir, &served_at(&port, plain()).text(pgweir.port()));
    eventually("metrics to be served", || is_served(&port));
    let before = metrics(&port);
    reload(&pgweir, &served_at(&other, plain()).text(pgweir.port()));
    eventually("metrics to be served elsewhere", || is_served(&other));
    eventually("them to be served only there", || !is_served(&port));
    assert_eq!(metrics(&other).len(), before.len());

    // Somebody else has the port: all else goes on with what was loaded.
    let stranger = Stranger::at(port.address());
    reload(
        &pgweir,
        &served_at(&port, plain().general("log_level", "\"debug\"")).text(pgweir.port()),
    );
    let refused = format!("metrics cannot be served at 127.0.0.1:{}", port.number());
    eventually("the log to say so", || pgweir.log().contains(&refused));
    assert_eq!(metrics(&other).len(), before.len(), "those that were served are served yet");
    drop(stranger);
    reload(&pgweir, &served_at(&port, plain()).text(pgweir.port()));
    eventually("metrics to be served at last", || is_served(&port));
    reload(&pgweir, &plain().text(pgweir.port()));
    eventually("nothing to be served any more", || !is_served(&port));
}

/// What clients connect to and where metrics are change places.
#[test]
fn a_reload_may_give_the_port_of_metrics_to_clients() {
    let port = Port::take();
    let stage = Stage::with("metrics_swap", 1, |config| served_at(&port, config));
    let own = stage.pgweir.port();
    metrics(&port);
    let config = trusting(&CLUSTER, &stage.name).user(&stage.name, "", 1);
    let config = config.general("enable_prometheus_exporter", "true");
    let swapped = config.general("prometheus_exporter_port", &own.to_string());
    reload(&stage.pgweir, &swapped.text(port.number()));
    let login = login(&stage.name);
    let mut client = WireClient::login(port.address(), &login).unwrap();
    assert_eq!(client.query("SELECT 1"), ["1"]);
    eventually("metrics to be where clients were", || {
        stage
            .pgweir
            .log()
            .contains(&format!("metrics are served at http://127.0.0.1:{own}/metrics"))
    });
}

/// Who starts in the place of one that ends finds both ports free.
#[test]
fn one_that_drains_leaves_the_port_to_another() {
    let port = Port::take();
    let stage = Stage::with("metrics_drain", 1, |config| served_at(&port, config));
    let mut client = stage.client();
    client.query("BEGIN");
    stage.pgweir.terminate();
    eventually("the port to be free", || TcpStream::connect(port.address()).is_err());
    let config = trusting(&CLUSTER, &stage.name).user(&stage.name, "", 1);
    let successor = Pgweir::start(PROGRAM, |own| served_at(&port, config).text(own));
    metrics(&port);
    assert_sound(&successor);
    client.query("COMMIT");
}

#[test]
fn a_port_that_somebody_has_is_an_error_at_start() {
    let port = Port::take();
    let _stranger = Stranger::at(port.address());
    create_database(&CLUSTER, "metrics_taken");
    let config = trusting(&CLUSTER, "metrics_taken").user("metrics_taken", "", 1);
    let (status, log) = Pgweir::start_refused(PROGRAM, |own| served_at(&port, config).text(own));
    assert!(!status.success());
    let refused = format!("metrics cannot be served at 127.0.0.1:{}", port.number());
    assert!(log.contains(&refused) && log.contains("in use"), "{log}");
    assert!(!log.contains("listens on"), "nobody was let in before: {log}");
}
