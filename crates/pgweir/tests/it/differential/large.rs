//! Large values and many of them. Whole transcripts would be too long to compare.

use pgweir_testkit::WireClient;
use pgweir_testkit::frames::{bind, execute, parse, query, sync};

use crate::stage::Stage;

const BIG: usize = 20_000_000;

/// The single value that a batch or a query gives.
fn value(client: &mut WireClient, frames: &[u8]) -> Vec<u8> {
    // Sent from the side: neither pgweir nor PostgreSQL reads all of it before it writes.
    let stream = client.stream().try_clone().unwrap();
    let reply = std::thread::scope(|scope| {
        scope.spawn(move || std::io::Write::write_all(&mut &stream, frames).unwrap());
        client.read_until_ready().unwrap()
    });
    let row = reply.iter().find(|message| message.tag == b'D');
    row.unwrap_or_else(|| panic!("{}", reply[0])).values().remove(0).unwrap()
}

#[test]
fn a_value_of_20_megabytes_in_both_directions() {
    let stage = Stage::new("large_values", 1);
    let mut client = stage.client();
    let text: String = ('a'..='z').cycle().take(BIG).collect();

    let batch =
        [parse("", "SELECT $1::text", &[]), bind("", "", &[Some(&text)]), execute("", 0), sync()];
    assert!(value(&mut client, &batch.concat()) == text.as_bytes());
    assert!(value(&mut client, &query(&format!("SELECT '{text}'"))) == text.as_bytes());
    let named = [parse("long", &format!("SELECT length('{text}')"), &[]), bind("", "long", &[])];
    let named = [named.concat(), execute("", 0), sync()].concat();
    assert_eq!(value(&mut client, &named), BIG.to_string().as_bytes());
}

#[test]
fn as_many_parameters_as_there_can_be() {
    let stage = Stage::new("large_counts", 1);
    let mut client = stage.client();
    for count in [32_767, 32_768, 65_535] {
        let list: Vec<_> = (1..=count).map(|n| format!("${n}")).collect();
        let sql = format!("SELECT cardinality(ARRAY[{}])", list.join(","));
        let values = vec![Some("7"); count];
        let types = vec![23; count];
        let batch = [parse("", &sql, &types), bind("", "", &values), execute("", 0), sync()];
        assert_eq!(value(&mut client, &batch.concat()), count.to_string().as_bytes());
    }
}

#[test]
fn long_results_in_long_rows() {
    let stage = Stage::new("large_results", 1);
    let mut client = stage.client();
    let rows = client.query("SELECT n, repeat('x', n % 40000) FROM generate_series(1, 2000) AS n");
    assert_eq!(rows.len(), 2000);
    for (n, row) in (1..).zip(&rows) {
        assert_eq!(row.len(), format!("{n}|").len() + n % 40_000);
    }
}
