use super::{PinReason, Pins};

fn pins(reasons: &[PinReason]) -> Pins {
    reasons.iter().fold(Pins::NONE, |pins, &reason| pins.union(reason.into()))
}

#[test]
fn every_reason_has_its_own_bit() {
    for (at, &reason) in PinReason::ALL.iter().enumerate() {
        assert_eq!(reason as usize, at);
        let alone = Pins::from(reason);
        assert_eq!(alone.iter().collect::<Vec<_>>(), [reason]);
        assert_eq!(alone.without(reason), Pins::NONE);
        assert_eq!(pins(&PinReason::ALL).without(reason).iter().count(), PinReason::ALL.len() - 1);
    }
    assert!(Pins::NONE.is_empty());
    assert!(!pins(&PinReason::ALL).is_empty());
}

#[test]
fn a_set_reads_as_a_list() {
    assert_eq!(Pins::NONE.to_string(), "");
    assert_eq!(pins(&[PinReason::Listen]).to_string(), "listen");
    let both = pins(&[PinReason::TempTable, PinReason::Setting]);
    assert_eq!(both.to_string(), "setting, temp table");
    assert_eq!(format!("{both:?}"), "Pins(setting, temp table)");
}

#[test]
fn one_lasting_reason_spoils_the_set() {
    assert!(!Pins::NONE.spoils());
    assert!(!pins(&[PinReason::Setting, PinReason::TempTable]).spoils());
    assert!(pins(&[PinReason::Setting, PinReason::Library]).spoils());
}
