use super::Blow;
use crate::faults::Faults;

#[test]
fn each_blow_is_a_fault() {
    for blow in Blow::ALL {
        assert!(Faults::NAMES.contains(&blow.fault()), "{blow:?}");
    }
}
