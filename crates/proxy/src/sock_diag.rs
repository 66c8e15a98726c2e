use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// `NLMSG_HDRLEN`, and the length of `struct inet_diag_msg`.
const NLMSG_HDR_LEN: usize = 16;
const DIAG_MSG_LEN: usize = 72;

/// Where a request has its `struct inet_diag_sockid`, and where an answer has it; and how many
/// bytes of it are the two ends of the connection.
const REQUEST_ID: usize = NLMSG_HDR_LEN + 8;
const ANSWER_ID: usize = NLMSG_HDR_LEN + 4;
const ENDS_LEN: usize = 36;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
/// The attribute that holds a `struct tcp_info`, and where that has what is read of it.
const INET_DIAG_INFO: u16 = 2;
const TCPI_RETRANSMITS: usize = 2;
const TCPI_PROBES: usize = 3;
const TCPI_LAST_DATA_SENT: usize = 44;
const TCPI_LAST_ACK_RECV: usize = 56;

/// A peer whose window is closed leaves up to two probes in a row unanswered, because it answers
/// nothing twice within half a second (`tcp_invalid_ratelimit`); and a probe may get lost.
const PROBES: u8 = 3;

/// Asks the kernel how a TCP connection fares (sock_diag(7)). The answer is that of
/// `getsockopt(TCP_INFO)`, for which no library has a safe call.
pub(crate) struct SockDiag(OwnedFd);

impl SockDiag {
    /// An error where the kernel, or who confines us, does not offer it.
    pub(crate) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = Some(netlink::SOCK_DIAG);
        Ok(Self(socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, protocol)?))
    }

    /// How long nothing has come from the peer of a connection that the kernel repeats itself to:
    /// it has sent something again, or asks whether a closed window has opened. `None` if it does
    /// neither, if the peer has answered, or if there is no such connection.
    pub(crate) fn silence(
        &self,
        local: SocketAddr,
        peer: SocketAddr,
    ) -> io::Result<Option<Duration>> {
        let request = request(local, peer);
        sendto(&self.0, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        // The kernel has answered by now.
        let mut answer = [0; 1024];
        let (n, _) = recv(&self.0, &mut answer, RecvFlags::empty())?;
        let answer = &answer[..n];
        let ends = |bytes: &[u8], at: usize| bytes.get(at..at + ENDS_LEN).map(<[u8]>::to_vec);
        // After a failed call the answer might be that of the one before.
        if ends(answer, ANSWER_ID) != ends(&request, REQUEST_ID) {
            return Ok(None);
        }
        Ok(tcp_info(answer).and_then(silence))
    }
}

/// A message with a `struct inet_diag_req_v2`.
fn request(local: SocketAddr, peer: SocketAddr) -> Vec<u8> {
    let (family, interface) = match local {
        SocketAddr::V4(_) => (AF_INET, 0),
        SocketAddr::V6(local) => (AF_INET6, local.scope_id()),
    };
    let mut body = vec![family, IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0];
    let every_state = u32::MAX;
    body.extend(every_state.to_ne_bytes());
    body.extend(local.port().to_be_bytes());
    body.extend(peer.port().to_be_bytes());
    body.extend(address(local.ip()));
    body.extend(address(peer.ip()));
    body.extend(interface.to_ne_bytes());
    let no_cookie = u64::MAX;
    body.extend(no_cookie.to_ne_bytes());
    let length = (NLMSG_HDR_LEN + body.len()) as u32;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    // Sequence number and port, which are for those who ask for more than one thing at a time.
    message.extend([0; 8]);
    message.extend(body);
    message
}

fn address(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&ip.octets());
            bytes
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// The `struct tcp_info` in an answer.
fn tcp_info(answer: &[u8]) -> Option<&[u8]> {
    let mut attributes = answer.get(NLMSG_HDR_LEN + DIAG_MSG_LEN..)?;
    loop {
        let (&length, rest) = attributes.split_first_chunk()?;
        let (&kind, _) = rest.split_first_chunk()?;
        let length = usize::from(u16::from_ne_bytes(length));
        let body = attributes.get(4..length)?;
        if u16::from_ne_bytes(kind) == INET_DIAG_INFO {
            return Some(body);
        }
        // Each begins at a multiple of four.
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn silence(tcp_info: &[u8]) -> Option<Duration> {
    let byte = |at: usize| tcp_info.get(at).copied();
    let milliseconds = |at: usize| {
        let bytes = tcp_info.get(at..)?.first_chunk()?;
        Some(Duration::from_millis(u32::from_ne_bytes(*bytes).into()))
    };
    let silence = milliseconds(TCPI_LAST_ACK_RECV)?;
    // A peer that has no room left may refuse the same bytes again and again: that is an answer.
    let unanswered = milliseconds(TCPI_LAST_DATA_SENT)? < silence;
    let repeats = byte(TCPI_RETRANSMITS)? > 0 && unanswered || byte(TCPI_PROBES)? >= PROBES;
    repeats.then_some(silence)
}

#[cfg(test)]
mod tests;
