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
    let pgweir = [Contender::PgweirOff, Contender::TwoWorkers, Contender::FourWorkers];
    for case in Case::all().into_iter().filter(|case| case.pools() > 1) {
        assert!(case.contenders.iter().all(|one| pgweir.contains(one)), "{}", case.name);
    }
}

#[test]
fn pipelining_means_its_cases_wherever_they_stand() {
    let all = Case::all();
    let meant = |name: &str| {
        let case = all.iter().find(|case| case.name == name).unwrap();
        case.is_meant_by(PIPELINING_CASES)
    };
    assert!(meant("simple-1000") && meant("extended-64") && meant("mix-lock"));
    assert!(!meant("idle-10k") && !meant("connect"));
}

#[test]
fn pairs_are_for_sweeps_alone() {
    let pair = Contender::Fixed(crate::grid::Pair::of(3, 16));
    for case in Case::all() {
        assert_eq!(case.admits(pair), case.name.starts_with("sweep-"), "{}", case.name);
    }
}
