use super::Listen;

#[test]
fn a_place_to_listen_on_is_host_and_port() {
    let listen = |host: &str, port| Ok(Listen { host: host.to_owned(), port });
    assert_eq!("0.0.0.0:6000".parse(), listen("0.0.0.0", 6000));
    assert_eq!("[::1]:6000".parse(), listen("::1", 6000));
    assert_eq!("localhost:6000".parse(), listen("localhost", 6000));
    for text in ["", "6432", ":6432", "localhost", "localhost:", "localhost:0", "::1:6432", "a:b"] {
        assert!(text.parse::<Listen>().is_err(), "{text}");
    }
}
