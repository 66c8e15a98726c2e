use super::is_rollback;

#[test]
fn a_rollback_is_told_from_others() {
    for text in [&b"ROLLBACK"[..], b" rollback to chain", b"Abort;", b"rollback and no chain"] {
        assert!(is_rollback(text));
    }
    for text in [&b"COMMIT"[..], b"", b"roll", b"SELECT 'rollback'", b"ROLLBACK AND/**/CHAIN"] {
        assert!(!is_rollback(text));
    }
}
