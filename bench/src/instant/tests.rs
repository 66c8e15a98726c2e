use super::*;

/// A frontend's message.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    put(&mut message, kind, &[body]);
    message
}

/// A startup packet, or what may come in its place.
fn packet(code: u32, body: &[u8]) -> Vec<u8> {
    let packet = message(b'?', &[&code.to_be_bytes(), body].concat());
    packet[1..].to_vec()
}

/// The kinds of the messages in a reply.
fn kinds(mut reply: &[u8]) -> String {
    let mut kinds = String::new();
    while let Some((kind, _, behind)) = first_message(reply, true) {
        kinds.extend(kind.map(char::from));
        reply = behind;
    }
    assert_eq!(reply, b"");
    kinds
}

fn started() -> Session {
    Session { started: true }
}

#[test]
fn a_login_is_granted_once_encryption_is_refused() {
    let (mut session, mut outbox) = (Session::default(), Vec::new());
    let asked = packet(SSL_REQUEST, b"");
    assert_eq!(session.answer(&asked, &mut outbox), Some(8));
    assert_eq!(outbox, b"N");
    outbox.clear();
    let startup = packet(0x0003_0000, b"user\0bench\0\0");
    assert_eq!(session.answer(&startup, &mut outbox), Some(startup.len()));
    assert_eq!(kinds(&outbox), format!("R{}KZ", "S".repeat(PARAMETERS.len())));
    assert_eq!(Session::default().answer(&packet(CANCEL_REQUEST, &[0; 8]), &mut outbox), None);
}

#[test]
fn a_reply_is_a_row_with_the_query_in_it() {
    let mut outbox = Vec::new();
    started().answer(&message(b'Q', b"SELECT 7\0"), &mut outbox);
    assert_eq!(kinds(&outbox), "TDCZ");
    assert_eq!(outbox, reply_to("SELECT 7"));
    assert_ne!(outbox, reply_to("SELECT 8"));
}

#[test]
fn a_batch_is_answered_message_by_message() {
    let batch = [
        message(b'P', b"\0SELECT 1\0\0\0"),
        message(b'D', b"S\0"),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'D', b"P\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'C', b"S\0"),
        message(b'H', b""),
        message(b'S', b""),
    ];
    let mut outbox = Vec::new();
    let batch = batch.concat();
    assert_eq!(started().answer(&batch, &mut outbox), Some(batch.len()));
    assert_eq!(kinds(&outbox), "1tT2TDC3Z");
}

#[test]
fn half_a_message_waits_for_its_other_half() {
    let queries = [message(b'Q', b"SELECT 1\0"), message(b'Q', b"SELECT 2\0")].concat();
    for cut in 0..queries.len() {
        let (mut session, mut outbox) = (started(), Vec::new());
        let first = session.answer(&queries[..cut], &mut outbox).unwrap();
        let second = session.answer(&queries[first..], &mut outbox).unwrap();
        assert_eq!(first + second, queries.len());
        assert_eq!(outbox, [reply_to("SELECT 1"), reply_to("SELECT 2")].concat());
    }
}

#[test]
fn goodbye_and_the_unknown_end_the_connection() {
    for kind in [b'X', b'F'] {
        assert_eq!(started().answer(&message(kind, b""), &mut Vec::new()), None);
    }
}
