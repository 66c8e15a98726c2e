use super::*;

fn row(cells: [Option<&str>; 3]) -> Vec<u8> {
    let mut row = vec![0, 3];
    for cell in cells {
        let length = cell.map_or(-1, |text| i32::try_from(text.len()).expect("a short text"));
        row.extend(length.to_be_bytes());
        row.extend(cell.unwrap_or_default().bytes());
    }
    row
}

#[test]
fn a_servers_answer_is_read() {
    let room = |cells| read(&row(cells));
    let old = Room { connections_max: 100, reserved: 3 };
    assert_eq!(room([Some("100"), Some("3"), None]), Some(old));
    let new = Room { connections_max: 100, reserved: 10 };
    assert_eq!(room([Some("100"), Some("3"), Some("7")]), Some(new));
    assert_eq!(room([Some("100"), None, None]), None);
    assert_eq!(room([Some("many"), Some("3"), None]), None);
    assert_eq!(read(&row([Some("100"), Some("3"), None])[..12]), None);
    assert_eq!(read(b""), None);
}
