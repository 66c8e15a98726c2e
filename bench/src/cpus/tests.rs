use super::*;

#[test]
fn a_half_is_made_of_whole_cores() {
    let siblings = (0..4).map(|cpu| vec![cpu, cpu + 4]).collect();
    let halves = Halves::of(siblings).unwrap();
    assert_eq!(halves.pooler, Cpus(vec![0, 1, 4, 5]));
    assert_eq!(halves.others, Cpus(vec![2, 3, 6, 7]));
    assert_eq!(Halves::of(vec![vec![0, 1]]), None);
}

#[test]
fn siblings_are_told_by_the_first_of_them() {
    assert_eq!(first_in("6-7\n"), Some(6));
    assert_eq!(first_in("2,10\n"), Some(2));
    assert_eq!(first_in("3\n"), Some(3));
    assert_eq!(first_in(""), None);
}

#[test]
fn a_list_is_read_as_it_is_written() {
    let cpus = Cpus(vec![0, 3, 12]);
    assert_eq!(cpus.to_string(), "0,3,12");
    assert_eq!(cpus.to_string().parse(), Ok(cpus));
    for wrong in ["", "0-3", "1,", "99999"] {
        assert!(wrong.parse::<Cpus>().is_err(), "{wrong}");
    }
}

#[test]
fn the_cores_of_this_machine_are_its_processors() {
    let allowed = Cpus::allowed().unwrap();
    assert_eq!(Cpus::of(allowed.cores()), allowed);
}
