use super::*;

fn line(text: &str) -> Option<Next> {
    Some(Next::Line(text.as_bytes().to_vec()))
}

#[test]
fn lines_beyond_the_room_are_lost_and_told_of_behind_the_others() {
    let mut queue = Queue::new(5);
    for text in ["abc", "def", "gh", "i"] {
        queue.put(text.as_bytes());
    }
    assert_eq!(queue.take(), line("abc"));
    queue.written(true);
    assert_eq!(queue.take(), line("gh"));
    queue.written(true);
    assert_eq!(queue.take(), Some(Next::Lost(2)));
    assert!(!queue.is_settled());
    queue.written(true);
    assert!(queue.is_settled());
}

#[test]
fn that_lines_were_lost_is_told_once_one_could_be_written() {
    let mut queue = Queue::new(100);
    queue.put(b"a");
    assert_eq!(queue.take(), line("a"));
    queue.written(false);
    assert_eq!((queue.take(), queue.is_settled(), queue.lost()), (None, true, 1));
    queue.put(b"b");
    assert_eq!(queue.take(), line("b"));
    queue.written(true);
    assert_eq!(queue.take(), Some(Next::Lost(1)));
    queue.written(false);
    assert_eq!((queue.take(), queue.lost()), (None, 1), "the notice itself was lost");
}
