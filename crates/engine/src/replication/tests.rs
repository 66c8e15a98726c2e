use pgweir_wire::{Initial, SqlState};

use super::*;

/// What a packet with these parameters asks for.
fn asked(parameters: &[(&str, &str)]) -> Result<Option<Replication>, Report> {
    let mut packet = Vec::new();
    let bytes = parameters.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    Startup::write(&mut packet, ProtocolVersion::V3_0, bytes);
    let (initial, _) = Initial::parse(&packet).unwrap().unwrap();
    let Initial::Startup(startup) = initial else { panic!("{initial:?}") };
    Replication::of_startup(&startup)
}

#[test]
fn the_words_are_postgresqls() {
    let kind = |value| asked(&[("replication", value)]).map(|one| one.map(|it| it.kind));
    for on in ["true", "t", "TRUE", "yes", "y", "on", "On", "1"] {
        assert_eq!(kind(on), Ok(Some(ReplicationKind::Physical)), "{on}");
    }
    for off in ["false", "f", "no", "n", "off", "of", "0"] {
        assert_eq!(kind(off), Ok(None), "{off}");
    }
    assert_eq!(kind("database"), Ok(Some(ReplicationKind::Logical)));
    for wrong in ["", "o", "truth", "Database", "10"] {
        let code = kind(wrong).map_err(|report| report.code);
        assert_eq!(code, Err(SqlState::INVALID_PARAMETER_VALUE), "{wrong}");
    }
    assert_eq!(asked(&[("user", "x")]), Ok(None));
    let twice = [("replication", "maybe"), ("replication", "off")];
    assert_eq!(asked(&twice), Ok(None), "the last one counts");
}

#[test]
fn everything_but_the_name_is_passed_on() {
    let parameters = [
        ("user", "x"),
        ("replication", "1"),
        ("database", "y"),
        ("_pq_.new", "on"),
        ("PgWeir.pipelining", "off"),
        ("options", "-c a.b=c"),
    ];
    let replication = asked(&parameters).unwrap().unwrap();
    let passed = [("replication", "1"), ("options", "-c a.b=c")];
    let passed = passed.map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into()));
    assert_eq!(replication.parameters, passed);
}
