use super::{Lock, Locks};

fn lock(key: u32) -> Lock {
    Lock { cluster: 0, database: "db".to_owned(), key }
}

#[test]
fn a_lock_is_free_again_when_its_holder_has_it_no_more() {
    let mut locks = Locks::default();
    assert!(!locks.has(1, vec![lock(1), lock(1)]));
    assert!(locks.is_free(1, &lock(1)) && !locks.is_free(2, &lock(1)));
    // Taken twice, and given back once.
    assert!(!locks.has(1, vec![lock(1)]));
    assert!(locks.has(1, vec![]));
    assert!(locks.is_free(2, &lock(1)));
}

#[test]
fn who_waits_for_himself_is_found() {
    let mut locks = Locks::default();
    for process_id in 1..=3 {
        locks.has(process_id, vec![lock(process_id as u32)]);
    }
    locks.awaits(1, lock(2));
    locks.awaits(2, lock(3));
    assert!(!locks.is_deadlocked(1));
    locks.awaits(3, lock(1));
    assert!((1..=3).all(|process_id| locks.is_deadlocked(process_id)));
    // One that waits for others that are deadlocked is not so itself.
    locks.awaits(4, lock(1));
    assert!(!locks.is_deadlocked(4));
    locks.goes_on(2);
    assert!(!locks.is_deadlocked(1));
}
