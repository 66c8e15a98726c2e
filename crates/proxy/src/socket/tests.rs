use std::io;
use std::time::Duration;

use pgweir_config::TcpOptions;
use socket2::{Domain, Socket as Socket2, Type};

use super::{DISCARDED_BYTES, configure, discard};

#[test]
fn input_without_an_end_is_not_discarded_for_ever() {
    let mut discarded = 0;
    let more = discard(|buffer| {
        discarded += buffer.len();
        assert!(discarded <= DISCARDED_BYTES, "it goes on");
        Ok(buffer.len())
    });
    assert!(more);
}

#[test]
fn input_is_discarded_until_there_is_none() {
    let none = [|| Ok(0), || Err(io::ErrorKind::WouldBlock.into())];
    for none in none {
        let mut reads = 0;
        let more = discard(|_| {
            reads += 1;
            if reads < 3 { Ok(1) } else { none() }
        });
        assert_eq!((more, reads), (false, 3));
    }
}

/// A listener that stays over a reload kept what it had been told before.
#[test]
fn options_that_are_taken_back_are_the_kernels_own() {
    let socket = || Socket2::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let options_of = |socket: &Socket2| TcpOptions {
        keepalives_idle: socket.tcp_keepalive_time().ok(),
        keepalives_interval: socket.tcp_keepalive_interval().ok(),
        keepalives_count: socket.tcp_keepalive_retries().ok(),
        user_timeout: None,
    };
    let asked = TcpOptions {
        keepalives_idle: Some(Duration::from_secs(61)),
        keepalives_interval: Some(Duration::from_secs(62)),
        keepalives_count: Some(63),
        user_timeout: None,
    };
    let none = TcpOptions {
        keepalives_idle: None,
        keepalives_interval: None,
        keepalives_count: None,
        user_timeout: None,
    };
    let listener = socket();
    configure(&listener, &asked).expect("the kernel takes it");
    assert_eq!(options_of(&listener), asked);
    configure(&listener, &none).expect("the kernel takes it");
    assert_eq!(options_of(&listener), options_of(&socket()));
}
