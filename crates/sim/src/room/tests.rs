use super::{Room, Unsaid};

#[test]
fn a_tenth_is_left_to_others() {
    let room = |max_connections, superuser_reserved, reserved| Room::Settings {
        max_connections,
        superuser_reserved,
        reserved,
    };
    assert_eq!(Room::DEFAULT.most(1), Some(87));
    assert_eq!(Room::DEFAULT.most(2), Some(43));
    assert_eq!(room(12, 2, Some(2)).most(1), Some(7));
    // There is one, whatever is kept.
    assert_eq!(room(3, 3, Some(2)).most(1), Some(1));
    assert_eq!(Room::Unsaid(Unsaid::Words).most(1), None);
}
