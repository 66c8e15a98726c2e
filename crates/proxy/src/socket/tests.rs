use std::io;

use super::{DISCARDED_BYTES, discard};

#[test]
fn input_without_an_end_is_not_discarded_for_ever() {
    let mut discarded = 0;
    let more = discard(|buffer| {
        discarded += buffer.len();
        assert!(discarded <= DISCARDED_BYTES, "it goes on");
        Ok(buffer.len())
    });
    assert!(more);
}

#[test]
fn input_is_discarded_until_there_is_none() {
    let none = [|| Ok(0), || Err(io::ErrorKind::WouldBlock.into())];
    for none in none {
        let mut reads = 0;
        let more = discard(|_| {
            reads += 1;
            if reads < 3 { Ok(1) } else { none() }
        });
        assert_eq!((more, reads), (false, 3));
    }
}
