use pgweir_wire::{TransactionStatus, backend, frontend};

use super::{all_asked, all_told};
use crate::session::{put, write_error, write_fatal};

#[test]
fn what_clients_send_is_named() {
    let mut bytes = Vec::new();
    frontend::write_query(&mut bytes, b"rows c0s1 1;");
    frontend::write_parse(&mut bytes, b"n", b"write c0s2", &[25]);
    frontend::write_bind(&mut bytes, b"", b"n", &[Some(b"c0s3")]);
    frontend::write_execute(&mut bytes, b"", 2);
    bytes.extend_from_slice(&frontend::SYNC);
    let text = "Query \"rows c0s1 1;\" | Parse \"n\" as \"write c0s2\" | \
                Bind portal \"\" to \"n\" for c0s3 | Execute portal \"\", 2 rows at most | Sync";
    assert_eq!(all_asked(&bytes), text);
}

#[test]
fn what_servers_send_is_named() {
    let mut bytes = Vec::new();
    backend::data_row(&mut bytes, [Some(&b"c0s1"[..]), None]);
    write_error(&mut bytes, b"22012", "division by zero [c0s1]");
    write_fatal(&mut bytes, b"57P01", "the end");
    backend::ready_for_query(&mut bytes, TransactionStatus::Failed);
    let text = "DataRow \"c0s1\" NULL | ErrorResponse ERROR 22012 \"division by zero [c0s1]\" | \
                ErrorResponse FATAL 57P01 \"the end\" | ReadyForQuery in a failed transaction";
    assert_eq!(all_told(&bytes), text);
}

#[test]
fn long_text_is_cut_and_nonsense_is_shown() {
    let mut bytes = Vec::new();
    frontend::write_copy_data(&mut bytes, &[b'x'; 100]);
    put(&mut bytes, b'!', |out| out.push(0));
    let text = all_asked(&bytes);
    assert!(text.contains("x…\" (100 bytes) | message type '!' \"\\x00\""), "{text}");
}
