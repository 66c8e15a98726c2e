//! The first packet of a connection, before anything is known of who sent it.

use pgweir_engine::readers;
use pgweir_wire::{CancelKey, Initial, MAX_STARTUP_LEN, ProtocolVersion, Startup};

/// Any bytes.
pub(crate) fn run(data: &[u8]) {
    let whole = Initial::parse(data);
    let length = match &whole {
        Ok(Some((_, length))) => *length,
        Ok(None) | Err(_) => data.len(),
    };
    assert!(length <= data.len(), "a packet of more bytes than there are");
    let ends = [length.saturating_sub(1), length, data.len().saturating_sub(1)];
    for end in (0..=data.len().min(64)).chain(ends) {
        match Initial::parse(&data[..end]) {
            Ok(None) => assert!(end < length || whole == Ok(None), "waits for what is there"),
            found => assert_eq!(found, whole, "{end} bytes say something else than all"),
        }
    }
    options(data);
    match whole {
        Ok(Some((initial, length))) => written_again(&initial, &data[..length]),
        Ok(None) => assert!(data.len() < MAX_STARTUP_LEN, "too many bytes are waited for"),
        Err(malformed) => assert!(!malformed.to_string().is_empty()),
    }
}

/// What `options` set they set again in another way of writing: `-c name=value` for each, with a
/// backslash in front of all that is no letter or digit.
fn options(text: &[u8]) {
    let Some(pairs) = readers::startup_options(text) else { return };
    let mut again = Vec::new();
    for (name, value) in &pairs {
        again.extend_from_slice(b" -c ");
        for byte in [name, &b"="[..], value].concat() {
            if !byte.is_ascii_alphanumeric() {
                again.push(b'\\');
            }
            again.push(byte);
        }
    }
    assert_eq!(readers::startup_options(&again), Some(pairs), "{}", again.escape_ascii());
}

/// What was read is written as it came.
fn written_again(initial: &Initial<'_>, packet: &[u8]) {
    let mut written = Vec::new();
    match initial {
        Initial::Startup(startup) => {
            assert!(startup.parameters().all(|(name, _)| !name.is_empty()));
            startup.parameters().for_each(|(_, value)| options(value));
            Startup::write(&mut written, startup.version, startup.parameters());
            let spoken = startup.version.negotiated();
            assert!(spoken == ProtocolVersion::V3_0 || spoken == ProtocolVersion::V3_2);
            assert!(spoken <= startup.version, "more is spoken than was asked for");
        }
        Initial::CancelRequest(key) => {
            key.write_request(&mut written);
            let other = CancelKey { secret: Box::new([0; 4]), ..key.clone() };
            assert_eq!(format!("{key:?}"), format!("{other:?}"), "a secret is shown");
        }
        Initial::SslRequest | Initial::GssEncRequest => return assert_eq!(packet.len(), 8),
    }
    assert_eq!(written, packet);
}
