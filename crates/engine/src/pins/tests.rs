use pgweir_config::PIN_KINDS;

use super::keeping;

/// The configuration names what keeps servers as SHOW CLIENTS does.
#[test]
fn every_reason_that_keeps_a_server_has_a_name_in_the_configuration() {
    let names: Vec<_> = keeping().map(|reason| reason.name()).collect();
    assert_eq!(names, PIN_KINDS);
}
