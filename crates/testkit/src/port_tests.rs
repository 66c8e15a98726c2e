use std::collections::BTreeSet;

use crate::port::Port;

#[test]
fn a_port_is_taken_once() {
    let ports: Vec<_> = (0..300).map(|_| Port::take()).collect();
    let numbers: BTreeSet<_> = ports.iter().map(Port::number).collect();
    assert_eq!(numbers.len(), ports.len());
}
