use super::{Op, Scene, Step, parse};

#[test]
fn an_op_is_written_as_it_is_read() {
    for (place, op) in Op::ALL.into_iter().enumerate() {
        assert_eq!(op as usize, place, "{op:?}");
        let script = [&[0, 0][..], &op.bytes()].concat();
        assert_eq!(parse(&script).1, [Step::Do(op)]);
    }
}

#[test]
fn any_bytes_are_a_script() {
    let settle = Op::Settle.bytes();
    let whole = [&[1, 2][..], b"ab", &settle, b"c", &settle].concat();
    let (scene, steps) = parse(&whole);
    assert_eq!(scene, Scene([1, 2]));
    let settle = Step::Do(Op::Settle);
    assert_eq!(steps, [Step::Send(b"ab"), settle, Step::Send(b"c"), settle]);
    assert_eq!(parse(&whole[..4]).1, [Step::Send(b"ab")]);
    // A mark without its op, a script without its scene.
    assert_eq!(parse(&whole[..6]).1, [Step::Send(b"ab")]);
    assert_eq!(parse(&whole[..1]), (Scene([1, 0]), vec![]));
    assert_eq!(parse(b""), (Scene([0, 0]), vec![]));
}

#[test]
fn a_scene_gives_independent_choices() {
    let choices = |scene: Scene| [0, 1, 2, 3, 4, 5, 6, 7].map(|nth| scene.choice(nth, 4));
    assert_eq!(choices(Scene([0b11_10_01_00, 0b00_01_10_11])), [0, 1, 2, 3, 3, 2, 1, 0]);
    assert_eq!(Scene([3, 0]).choice(0, 3), 0);
}
