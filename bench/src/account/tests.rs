use super::*;

const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
                      nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin\n";

#[test]
fn finds_a_user_by_its_whole_name() {
    let nobody = Account { uid: 65_534, gid: 65_533 };
    assert_eq!(Account::named("nobody", PASSWD), Some(nobody));
    assert_eq!(Account::named("nobod", PASSWD), None);
}
