use super::*;

#[test]
fn a_group_means_all_its_cases_and_a_name_only_one() {
    let meant = |name: &str| Case::all().iter().filter(|case| case.is_meant_by(name)).count();
    assert_eq!(meant("simple"), CLIENTS.len());
    assert_eq!(meant("simple-1"), 1);
    assert_eq!(meant("rate"), 2);
    assert_eq!(meant("simple-"), 0);
}

#[test]
fn ratios_are_to_somebody_who_takes_part() {
    for case in Case::all() {
        assert!(case.admits(case.base), "{}", case.name);
    }
}

#[test]
fn several_pools_are_for_pgweir_alone() {
    let pgweir = [Contender::Pgweir, Contender::TwoWorkers, Contender::FourWorkers];
    for case in Case::all().into_iter().filter(|case| case.pools() > 1) {
        assert!(case.contenders.iter().all(|one| pgweir.contains(one)), "{}", case.name);
    }
}
