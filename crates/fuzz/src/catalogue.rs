//! What a server says of the catalogue of a database: names and bodies of functions, which are text
//! of whoever may make one.

use pgweir_engine::{Address, CatalogueRows, Database};
use pgweir_sql::Loud;

/// Rows, a line each, of cells with a tab between; and all of it as the body of one row. What has
/// seven cells is an object, what has six says that one object uses another.
pub(crate) fn run(text: &[u8]) {
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let rows: Vec<_> = lines.iter().map(|line| row(line)).collect();
    let (uses, objects): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| cells(row) == 6);
    let all = loud(objects.iter().chain(&uses));
    for (name, _) in all.iter() {
        let is_there = |line: &&[u8]| line.split(|byte| *byte == b'\t').any(|cell| is(cell, name));
        assert!(lines.iter().any(is_there), "nobody says {}", name.escape_ascii());
    }
    // In whatever order it comes.
    let reversed = loud(objects.iter().chain(uses.iter().rev()));
    is_no_more_than(&all, &reversed);
    is_no_more_than(&reversed, &all);
    // What more is said makes nothing quieter. It takes as long again.
    if text.len().is_multiple_of(4) {
        // What all of it says as one row nobody knows.
        let _ = loud([text.to_vec()].iter());
        is_no_more_than(&loud(objects.iter()), &all);
    }
}

fn loud<'r>(rows: impl Iterator<Item = &'r Vec<u8>>) -> Loud {
    let address = Address { host: "127.0.0.1".to_owned(), port: 5432 };
    let quiet = "quiet, public.believed".to_owned();
    let database = Database { address, name: "db".to_owned(), quiet };
    CatalogueRows::of(database, rows.map(Vec::as_slice)).loud()
}

/// What is loud stays loud, and leaves no less.
fn is_no_more_than(less: &Loud, more: &Loud) {
    if let Some(news) = less.news_since(more) {
        panic!("{news:?} is not there any more");
    }
}

/// Whether a cell says this name, of which the list has the lower case.
fn is(cell: &[u8], name: &[u8]) -> bool {
    String::from_utf8_lossy(cell).as_bytes().eq_ignore_ascii_case(name)
}

/// The body of a DataRow that has these cells.
fn row(line: &[u8]) -> Vec<u8> {
    let cells: Vec<_> = line.split(|byte| *byte == b'\t').collect();
    let mut body = (cells.len() as u16).to_be_bytes().to_vec();
    for cell in cells {
        body.extend_from_slice(&(cell.len() as u32).to_be_bytes());
        body.extend_from_slice(cell);
    }
    body
}

fn cells(row: &[u8]) -> u16 {
    u16::from_be_bytes([row[0], row[1]])
}
