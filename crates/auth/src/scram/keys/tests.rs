use super::*;

/// RFC 7677 §3.
const RFC_SALT: &str = "W22ZaJ0SNY7soEsUEjb6gQ==";
const RFC_AUTH_MESSAGE: &[u8] = b"n=user,r=rOprNGfwEbeRWgbNEkqO,\
    r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
    c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
const RFC_PROOF: &str = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
const RFC_SIGNATURE: &str = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

/// What PostgreSQL 15 stores after `CREATE ROLE … PASSWORD …` of these.
const POSTGRESQL: [(&str, &str); 5] = [
    (
        "pencil",
        "SCRAM-SHA-256$4096:vwzgbNz3TExDYK1DJZwDPQ==\
         $88jkHtxoidxhTPXjzWfKWbGgyPojXF2U376GqeqwdPk=:\
         5J4X+NUNqUt4DhxFW2+A79HpSO20X9jx7H+2LVlFZkU=",
    ),
    (
        "\u{a0}I\u{ad}X \u{2168}",
        "SCRAM-SHA-256$4096:DLwl79woWD4ukvuvmxrkqg==\
         $SF3Mz3L9C5oGgIyXNRIlgV/BtqCU3+pbEk5nnLa0ikw=:\
         Pp0kBc8q9LgxRDSUNv7I79ZSqB4tOoIls//c2MPT06A=",
    ),
    (
        "\u{ad}",
        "SCRAM-SHA-256$4096:C7y3TAS132pmdEfOK4rxYA==\
         $U8nCLp85WABHdsjfk8/XtW12BNv0SvstG5qNZ/uok38=:\
         VbaNXFzYAzOF07sM4URYAGH7fjjGIGcCNJC3Fp/DczU=",
    ),
    (
        "\u{1f130}bc",
        "SCRAM-SHA-256$4096:iM1hQ+wEX5J5VeTA1xbcow==\
         $fZce8dMIY64xp4Q6EmqC0/rqihUyQvOrxswTgX2ChDE=:\
         LlWIqbxCLWzmEwbAjt0d0PApJM8RpCBtSee7Su2+6Gc=",
    ),
    (
        "\u{fb49}",
        "SCRAM-SHA-256$4096:f3VFCaKYAUXYfrlt6RF3gg==\
         $lSnz7YJsMIf2mm1RCC7XvpulKXESBydgbWeypnRboeE=:\
         n2Jni/QXJMOL3U0ml0hf6SKQnU+o0T0hR0g97n2+tI8=",
    ),
];

fn rfc_keys() -> LoginKeys {
    LoginKeys::derive(b"pencil", &BASE64_STANDARD.decode(RFC_SALT).unwrap(), Iterations::DEFAULT)
}

fn few() -> Iterations {
    Iterations::new(2).unwrap()
}

#[test]
fn proof_and_signature_are_those_of_rfc_7677() {
    let keys = rfc_keys();
    assert_eq!(keys.prove(RFC_AUTH_MESSAGE).encode(), RFC_PROOF);
    assert_eq!(keys.server_signature(RFC_AUTH_MESSAGE).encode(), RFC_SIGNATURE);
    let stored = keys.scram_keys();
    assert!(stored.are_proved(&Key::decode(RFC_PROOF.as_bytes()).unwrap(), RFC_AUTH_MESSAGE));
    assert_eq!(stored.server_signature(RFC_AUTH_MESSAGE).encode(), RFC_SIGNATURE);
}

#[test]
fn a_proof_with_any_bit_wrong_proves_nothing() {
    let keys = rfc_keys();
    let stored = keys.scram_keys();
    let proof = keys.prove(RFC_AUTH_MESSAGE);
    for bit in 0..KEY_LEN * 8 {
        let mut flipped = proof.clone();
        flipped.0[bit / 8] ^= 1 << (bit % 8);
        assert!(!stored.are_proved(&flipped, RFC_AUTH_MESSAGE), "bit {bit}");
    }
    assert!(!stored.are_proved(&proof, &RFC_AUTH_MESSAGE[1..]));
}

#[test]
fn keys_are_those_that_postgresql_stores() {
    for (password, stored) in POSTGRESQL {
        let keys = ScramKeys::parse(stored).unwrap();
        assert!(keys.accepts(password.as_bytes()), "{}", password.escape_unicode());
        assert!(!keys.accepts(b"pencils"));
    }
}

#[test]
fn keys_are_made_for_one_salt_and_count() {
    let keys = LoginKeys::derive(b"pencil", b"salt", few());
    assert!(keys.fit(b"salt", few()));
    assert!(!keys.fit(b"sal", few()));
    assert!(!keys.fit(b"tlas", few()));
    assert!(!keys.fit(b"salt", Iterations::new(3).unwrap()));
    assert_ne!(keys, LoginKeys::derive(b"pencil", b"salt", Iterations::new(3).unwrap()));
    assert_ne!(keys, LoginKeys::derive(b"pencil", b"tlas", few()));
}

#[test]
fn only_the_stored_form_is_read() {
    let (_, stored) = POSTGRESQL[0];
    let salt = "vwzgbNz3TExDYK1DJZwDPQ==";
    let stored_key = "88jkHtxoidxhTPXjzWfKWbGgyPojXF2U376GqeqwdPk=";
    assert!(ScramKeys::parse(stored).is_some());
    for (part, instead) in [
        ("SCRAM-SHA-256$", "SCRAM-SHA-256"),
        ("SCRAM-SHA-256$", "SCRAM-SHA-1$"),
        ("SCRAM-SHA-256$", "scram-sha-256$"),
        ("SCRAM-SHA-256$", " SCRAM-SHA-256$"),
        ("SCRAM-SHA-256$", "SCRAM-SHA-256$$"),
        ("4096:", ""),
        ("4096", ""),
        ("4096", "0"),
        ("4096", "04096"),
        ("4096", "-4096"),
        ("4096", "+4096"),
        ("4096", " 4096"),
        ("4096", "0x10"),
        ("4096", "2147483648"),
        ("4096", "99999999999999999999"),
        (salt, ""),
        (salt, "vwzgbNz3TExDYK1DJZwDPQ"),
        (salt, "vwzgbNz3TExDYK1DJZwDPQ=*"),
        (stored_key, ""),
        (stored_key, "88jkHtxoidxhTPXjzWfKWbGgyPojXF2U376GqeqwdA=="),
        (stored_key, "88jkHtxoidxhTPXjzWfKWbGgyPojXF2U376GqeqwdPkA"),
        ("$88", "88"),
        (":5J4", "5J4"),
        ("ZkU=", "ZkU"),
        ("ZkU=", "ZkU=="),
        ("ZkU=", "ZkU= "),
        ("ZkU=", "ZkU=:"),
    ] {
        assert!(stored.contains(part), "{part}");
        let broken = stored.replacen(part, instead, 1);
        assert_eq!(ScramKeys::parse(&broken), None, "{broken}");
    }
    for len in (0..stored.len()).filter(|len| stored.is_char_boundary(*len)) {
        assert_eq!(ScramKeys::parse(&stored[..len]), None, "{}", &stored[..len]);
    }
}

#[test]
fn iterations_are_a_positive_int() {
    let read = |digits: &str| Iterations::parse(digits.as_bytes()).map(Iterations::count);
    assert_eq!(read("1"), Some(1));
    assert_eq!(read("2147483647"), Some(2_147_483_647));
    for digits in ["", "0", "01", "-1", "+1", "1 ", "1.0", "1e3", "2147483648", "4294967297"] {
        assert_eq!(read(digits), None, "{digits:?}");
    }
    assert_eq!(Iterations::new(0), None);
    assert_eq!(Iterations::new(1 << 31), None);
}

#[test]
fn debug_shows_no_key() {
    let shown = format!("{:?}", LoginKeys::derive(b"pencil", b"s", few()));
    assert_eq!(
        shown,
        "LoginKeys { iterations: Iterations(2), salt: [115], client_key: Key(..), \
         server_key: Key(..) }"
    );
    let shown = format!("{:?}", ScramKeys::derive(b"pencil", b"s", few()));
    assert_eq!(
        shown,
        "ScramKeys { iterations: Iterations(2), salt: [115], stored_key: Key(..), \
         server_key: Key(..) }"
    );
}
