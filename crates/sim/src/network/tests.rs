use std::io::ErrorKind;
use std::rc::Rc;

use pgweir_proxy::Transport;

use super::{Loss, Stirs, WireId, connection};

#[test]
fn bytes_arrive_in_order_and_the_end_behind_them() {
    let stirs = Stirs::default();
    let (outer, inner, [inwards, _]) = connection(WireId(0), [4, 4], &stirs);
    assert_eq!(outer.try_write(b"abcdef").ok(), Some(4));
    assert_eq!(outer.try_write(b"ef").map_err(|e| e.kind()), Err(ErrorKind::WouldBlock));
    let mut buffer = [0; 8];
    assert_eq!(inner.try_read(&mut buffer).map_err(|e| e.kind()), Err(ErrorKind::WouldBlock));
    assert_eq!(inwards.borrow_mut().deliver(1, Loss::UnderWay), 3);
    assert_eq!(inner.try_read(&mut buffer).ok(), Some(1));
    outer.shutdown();
    assert_eq!(inwards.borrow_mut().deliver(3, Loss::UnderWay), 0);
    assert_eq!(inner.try_read(&mut buffer).ok(), Some(3));
    assert_eq!(&buffer[..3], b"bcd");
    assert_eq!(inner.try_read(&mut buffer).ok(), Some(0));
}

#[test]
fn unread_input_makes_a_close_a_reset() {
    let stirs = Stirs::default();
    let (outer, inner, [inwards, outwards]) = connection(WireId(0), [64, 64], &stirs);
    assert_eq!(inner.try_write(b"reply").ok(), Some(5));
    assert_eq!(outer.try_write(b"unread").ok(), Some(6));
    inwards.borrow_mut().deliver(6, Loss::UnderWay);
    drop(inner);
    outwards.borrow_mut().deliver(5, Loss::Unread);
    let mut buffer = [0; 8];
    let read = outer.try_read(&mut buffer).map_err(|error| error.kind());
    assert_eq!(read, Err(ErrorKind::ConnectionReset));
    assert_eq!(Rc::strong_count(&stirs), 2);
}
