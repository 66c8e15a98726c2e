use super::*;

#[test]
fn a_group_means_all_its_cases_and_a_name_only_one() {
    let meant = |name: &str| Case::all().iter().filter(|case| case.is_meant_by(name)).count();
    assert_eq!(meant("simple"), CLIENTS.len());
    assert_eq!(meant("simple-1"), 1);
    assert_eq!(meant("rate"), 2);
    assert_eq!(meant("simple-"), 0);
}
