use super::*;

#[test]
fn debug_shows_nothing() {
    assert_eq!(format!("{:?}", Secret::new("pencil")), "Secret(..)");
    assert_eq!(format!("{:#?}", [Secret::new("")]), "[\n    Secret(..),\n]");
}

#[test]
fn only_the_same_bytes_match() {
    let secret = Secret::new("pencil");
    assert!(secret.matches(b"pencil"));
    for other in ["", "p", "penci", "pencil ", "pencil\0", "Pencil", "pencils"] {
        assert!(!secret.matches(other.as_bytes()), "{other:?}");
    }
    assert_eq!(secret, Secret::new(b"pencil".to_vec()));
    assert_ne!(secret, Secret::new("pen"));
}
