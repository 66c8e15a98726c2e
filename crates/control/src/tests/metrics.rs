//! What machines are told, and the page that lists it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use super::snapshot;
use crate::metrics;

/// The lines of one metric.
fn lines(text: &str, name: &str) -> Vec<String> {
    let is_its = |line: &&str| line.starts_with(&format!("pgweir_{name}"));
    text.lines().filter(is_its).map(str::to_owned).collect()
}

#[test]
fn pools_are_told_as_the_console_shows_them() {
    let mut snapshot = snapshot();
    let alice = &mut snapshot.pools[1];
    (alice.hot_most, alice.depth) = (3, 24);
    (alice.write_hot_most, alice.write_depth) = (16, 8);
    (alice.stats.shared, alice.stats.joined) = (7, 5);
    snapshot.servers[0].queue = Some(vec![Some(1)]);
    let text = metrics(snapshot, Some(4_096));
    let alice = |name: &str| -> Vec<String> {
        let its = r#"database="app",user="alice""#;
        let of_alice = |line: &String| line.contains(its).then(|| line.replace(its, "alice"));
        lines(&text, name).iter().filter_map(of_alice).collect()
    };
    let clients = r#"pgweir_pool_clients{alice,state="active"} 2
pgweir_pool_clients{alice,state="waiting"} 2
pgweir_pool_clients{alice,state="active_cancel_req"} 2
pgweir_pool_clients{alice,state="waiting_cancel_req"} 2"#;
    assert_eq!(alice("pool_clients{").join("\n"), clients);
    let servers = r#"pgweir_pool_servers{alice,state="active"} 1
pgweir_pool_servers{alice,state="active_cancel"} 1
pgweir_pool_servers{alice,state="being_canceled"} 1
pgweir_pool_servers{alice,state="idle"} 1
pgweir_pool_servers{alice,state="tested"} 1
pgweir_pool_servers{alice,state="login"} 2"#;
    assert_eq!(alice("pool_servers{").join("\n"), servers);
    assert_eq!(alice("pool_shared_servers{"), ["pgweir_pool_shared_servers{alice} 1"]);
    let shared_max = [
        r#"pgweir_pool_shared_servers_max{alice,access="read"} 3"#,
        r#"pgweir_pool_shared_servers_max{alice,access="write"} 16"#,
    ];
    assert_eq!(alice("pool_shared_servers_max"), shared_max);
    let depth = [
        r#"pgweir_pool_depth{alice,access="read"} 24"#,
        r#"pgweir_pool_depth{alice,access="write"} 8"#,
    ];
    assert_eq!(alice("pool_depth"), depth);
    let pinned = [
        r#"pgweir_pool_pinned_servers{alice,kind="listen"} 2"#,
        r#"pgweir_pool_pinned_servers{alice,kind="temp table"} 0"#,
    ];
    assert_eq!(alice("pool_pinned_servers"), pinned);
    for (name, line) in [
        ("pool_longest_wait", "pgweir_pool_longest_wait_seconds{alice} 3.25"),
        ("transactions", "pgweir_transactions_total{alice} 10"),
        ("shared_transactions", "pgweir_shared_transactions_total{alice} 7"),
        ("joined_transactions", "pgweir_joined_transactions_total{alice} 5"),
        ("received", "pgweir_received_bytes_total{alice} 4000"),
        ("transaction_time", "pgweir_transaction_time_seconds_total{alice} 6.0"),
        ("contained_servers", "pgweir_contained_servers_total{alice} 2"),
        ("pins_total", r#"pgweir_pins_total{alice,kind="listen"} 17"#),
        ("pins_refused", r#"pgweir_pins_refused_total{alice,kind="listen"} 3"#),
    ] {
        assert_eq!(alice(name)[0], line);
    }
    assert_eq!(lines(&text, "resident_memory"), ["pgweir_resident_memory_bytes 4096"]);
    assert!(text.ends_with("\n# EOF\n"));
}

#[test]
fn delays_are_a_histogram() {
    let mut snapshot = snapshot();
    for micros in [0, 0, 6, 7, 300, 9_000_000] {
        snapshot.pools[1].stats.delays.count(Duration::from_micros(micros));
    }
    let text = metrics(snapshot, None);
    let delays = lines(&text, "head_of_line_delay_seconds");
    let of_alice = |suffix: &str, le: &str| {
        format!(
            "pgweir_head_of_line_delay_seconds_{suffix}{{{le}database=\"app\",user=\"alice\"}} "
        )
    };
    for (suffix, le, value) in [
        ("sum", "", "9.000313"),
        ("count", "", "6"),
        ("bucket", "le=\"0.0\",", "2"),
        ("bucket", "le=\"0.000008\",", "4"),
        ("bucket", "le=\"0.000512\",", "5"),
        ("bucket", "le=\"2.097152\",", "5"),
        ("bucket", "le=\"+Inf\",", "6"),
    ] {
        let line = of_alice(suffix, le) + value;
        assert!(delays.contains(&line), "{line}\n{}", delays.join("\n"));
    }
}

/// Names may have any characters, and one reader's line is not another's.
#[test]
fn names_are_escaped() {
    let mut snapshot = snapshot();
    snapshot.pools[1].database = "a\"b\\c\nd\\\\é".to_owned();
    let text = metrics(snapshot, None);
    let expected = r#"pgweir_transactions_total{database="a\"b\\c\nd\\\\é",user="alice"} 10"#;
    assert!(lines(&text, "transactions").contains(&expected.to_owned()), "{text}");
}

/// It goes with its last client, while another of its name is there already.
#[test]
fn a_pool_that_is_removed_is_told_no_more() {
    let mut snapshot = snapshot();
    let mut successor = snapshot.pools[1].clone();
    successor.stats.transactions = 3;
    snapshot.pools[1].removed = true;
    snapshot.pools.push(successor);
    let text = metrics(snapshot, None);
    let of_alice =
        lines(&text, "transactions_total").into_iter().filter(|line| line.contains("alice"));
    let expected = r#"pgweir_transactions_total{database="app",user="alice"} 3"#;
    assert_eq!(of_alice.collect::<Vec<_>>(), [expected]);
}

/// `docs/metrics.md` is what there is. `make docs` writes it.
#[test]
fn the_page_of_metrics_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let text = page(&metrics(snapshot(), Some(1)));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).expect("the folder is there");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/metrics.md is out of date: `make docs` writes it");
}

const INTRODUCTION: &str = "\
# Metrics

With `enable_prometheus_exporter = true` pgweir serves metrics over HTTP, at
`http://HOST:PORT/metrics`: the [host](settings.md#general) that clients connect to, or 127.0.0.1
where there is a unix socket only, and `prometheus_exporter_port` (9930). The form is OpenMetrics
1.0, which Prometheus reads. No password is asked for, as with PgCat: whoever reaches the port reads
names of databases and users, addresses of servers, and how much is done; no statement, and no
secret. What it reads is a second old at most. Both settings take effect with a reload; where the
port is taken then, the log says so and all else goes on. While pgweir drains there are no metrics:
another may have taken its place.

```yaml
scrape_configs:
  - job_name: pgweir
    static_configs: [{ targets: [\"127.0.0.1:9930\"] }]
```

All of them are figures of the console: `database` and `user` name a pool, `state` is a column of
[SHOW POOLS](console.md#show-pools) without its `cl_` or `sv_`, `kind` is as in
[SHOW PINS](console.md#show-pins), `cache` as in SHOW MEM. What [pipelining](pipelining.md) does:

```promql
# The pipelined share: what part of the transactions has shared a server.
sum by (database, user) (rate(pgweir_shared_transactions_total[1m]))
  / sum by (database, user) (rate(pgweir_transactions_total[1m]))

# The head-of-line delay that 99 of 100 units do not exceed, in seconds.
histogram_quantile(0.99, sum by (le) (rate(pgweir_head_of_line_delay_seconds_bucket[1m])))
```

A histogram is three metrics: `NAME_bucket`, with the label `le`, `NAME_sum` and `NAME_count`.

| metric | type | labels | what it is |
|---|---|---|---|
";

/// The page, made of what readers get.
fn page(metrics: &str) -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut about = "";
    let mut names = BTreeSet::new();
    let mut lines = metrics.lines();
    while let Some(line) = lines.next() {
        let comment = line.split(' ').collect::<Vec<_>>();
        match comment[..] {
            ["#", "HELP", name, ..] => about = &line["# HELP  ".len() + name.len()..],
            ["#", "TYPE", name, kind] => {
                let sample = lines.find(|line| !line.starts_with('#')).expect("a sample");
                let (sample_name, labels) = sample.split_once(['{', ' ']).expect("a value");
                assert!(sample_name.starts_with(name), "{name} has no sample here");
                assert!(names.insert(name), "{name} is there twice");
                let name = if kind == "histogram" { name } else { sample_name };
                let labels = labels.split("\",").filter_map(|label| label.split_once("=\""));
                let labels: Vec<_> = labels.map(|(label, _)| format!("`{label}`")).collect();
                let labels = labels.join(", ");
                // Writing to a String does not fail.
                let _ = writeln!(page, "| `{name}` | {kind} | {labels} | {about} |");
            }
            _ => {}
        }
    }
    page
}
