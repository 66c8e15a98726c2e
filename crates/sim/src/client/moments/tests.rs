use super::Moments;

#[test]
fn what_is_answered_was_sent_before() {
    let mut moments = Moments::new(1);
    moments.sent(10, true, false);
    moments.sent(20, false, false);
    assert_eq!((moments.asked_at, moments.sends, moments.began_at), (10, 2, 10));
    assert_eq!((moments.answered(false), moments.answered(true)), (1, 20));
    moments.sent(30, true, true);
    assert_eq!((moments.asked_at, moments.sends, moments.began_at), (30, 1, 10));
    assert_eq!(moments.answered(false), 20);
}

#[test]
fn a_block_lasts_until_it_is_over() {
    let mut moments = Moments::new(1);
    moments.ready(10, true);
    moments.ready(20, true);
    assert_eq!(moments.in_block_since, Some(10));
    moments.ready(30, false);
    assert_eq!(moments.in_block_since, None);
}
