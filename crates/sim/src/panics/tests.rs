use super::caught;

#[test]
fn a_panic_is_an_error_with_its_place() {
    let text = caught::<()>(|| panic!("number {}", 7)).expect_err("it panics");
    assert!(text.starts_with("EngineState: number 7\nat ") && text.contains("tests.rs:"), "{text}");
    assert_eq!(caught(|| Ok(1)), Ok(1));
    assert_eq!(caught::<()>(|| Err("wrong".to_owned())), Err("wrong".to_owned()));
}
