use std::cell::Cell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use pgweir_engine::Mark;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// `NLMSG_HDRLEN`, what is read of a `struct nlmsghdr` and where, and the length of
/// `struct inet_diag_msg`.
const NLMSG_HDR_LEN: usize = 16;
const NLMSG_TYPE: usize = 4;
const NLMSG_SEQ: usize = 8;
const DIAG_MSG_LEN: usize = 72;

/// The type of an answer that is an error: behind its header stands the negated errno.
const NLMSG_ERROR: u16 = 2;

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
const TCPI_LAST_DATA_RECV: usize = 52;
const TCPI_LAST_ACK_RECV: usize = 56;

/// A peer whose window is closed leaves up to two probes in a row unanswered, because it answers
/// nothing twice within half a second (`tcp_invalid_ratelimit`); and a probe may get lost.
const PROBES: u8 = 3;

/// Asks the kernel how a TCP connection fares (sock_diag(7)). The answer is that of
/// `getsockopt(TCP_INFO)`, for which no library has a safe call.
pub(crate) struct SockDiag {
    kernel: OwnedFd,
    /// The number of the last question.
    asked: Cell<u32>,
}

impl SockDiag {
    /// An error where the kernel, or who confines us, does not offer it: that shows only when it is
    /// asked. It is asked about a socket that listens here.
    pub(crate) fn open(listener: SocketAddr) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = Some(netlink::SOCK_DIAG);
        let kernel = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, protocol)?;
        let opened = Self { kernel, asked: Cell::new(0) };
        let nobody = SocketAddr::new(unspecified(listener.ip()), 0);
        let answer = opened.ask(request(listener, nobody))?;
        let known = answer.is_some_and(|answer| tcp_info(&answer).and_then(last_heard).is_some());
        if known {
            return Ok(opened);
        }
        Mark::ListenerUnknown.hit();
        Err(io::ErrorKind::Unsupported.into())
    }

    /// How long nothing has come from the peer of a connection that the kernel repeats itself to:
    /// it has sent something again, or asks whether a closed window has opened. `None` if it does
    /// neither, if the peer has answered, or if there is no such connection.
    pub(crate) fn silence(
        &self,
        local: SocketAddr,
        peer: SocketAddr,
    ) -> io::Result<Option<Duration>> {
        let answer = self.ask(request(local, peer))?;
        Ok(answer.and_then(|answer| silence(tcp_info(&answer)?)))
    }

    /// The answer to a request; `None` if there is no such connection.
    fn ask(&self, mut request: Vec<u8>) -> io::Result<Option<Vec<u8>>> {
        let number = self.asked.get().wrapping_add(1);
        self.asked.set(number);
        request[NLMSG_SEQ..][..4].copy_from_slice(&number.to_ne_bytes());
        sendto(&self.kernel, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut answer = vec![0; 1024];
        loop {
            // The kernel has answered by now.
            let (n, _) = recv(&self.kernel, &mut answer[..], RecvFlags::empty())?;
            // Behind a call that failed, the answer to the question before may come first.
            if bytes_at(&answer[..n], NLMSG_SEQ) == Some(number.to_ne_bytes()) {
                answer.truncate(n);
                break;
            }
            Mark::AnswerToBefore.hit();
        }
        match failure(&answer) {
            Some(error) if error.kind() == io::ErrorKind::NotFound => {
                Mark::ConnectionUnknown.hit();
                return Ok(None);
            }
            Some(error) => {
                Mark::QuestionRefused.hit();
                return Err(error);
            }
            None => {}
        }
        // In place of a connection that is gone, the kernel finds the socket that listens there.
        let ends = |bytes: &[u8], at: usize| bytes.get(at..at + ENDS_LEN).map(<[u8]>::to_vec);
        let asked_for = ends(&answer, ANSWER_ID) == ends(&request, REQUEST_ID);
        Mark::AnswerOfListener.hit_if(!asked_for);
        Ok(asked_for.then_some(answer))
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
    // The number of the question, which whoever asks puts in, and a port that the kernel knows.
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

fn unspecified(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// What an answer says instead of answering.
fn failure(answer: &[u8]) -> Option<io::Error> {
    if bytes_at(answer, NLMSG_TYPE).map(u16::from_ne_bytes) != Some(NLMSG_ERROR) {
        return None;
    }
    let negated = bytes_at(answer, NLMSG_HDR_LEN).map_or(0, i32::from_ne_bytes);
    Some(io::Error::from_raw_os_error(negated.wrapping_neg()))
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
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
    let silence = last_heard(tcp_info)?;
    // A peer that has no room left may refuse the same bytes again and again: that is an answer.
    let unanswered = milliseconds(tcp_info, TCPI_LAST_DATA_SENT)? < silence;
    let repeats = byte(TCPI_RETRANSMITS)? > 0 && unanswered || byte(TCPI_PROBES)? >= PROBES;
    repeats.then_some(silence)
}

/// How long nothing has come from the peer. What comes and acknowledges nothing new may count as
/// data only (`tcp_rcv_established`, Linux).
fn last_heard(tcp_info: &[u8]) -> Option<Duration> {
    let data = milliseconds(tcp_info, TCPI_LAST_DATA_RECV)?;
    Some(data.min(milliseconds(tcp_info, TCPI_LAST_ACK_RECV)?))
}

fn milliseconds(tcp_info: &[u8], at: usize) -> Option<Duration> {
    let bytes = bytes_at(tcp_info, at)?;
    Some(Duration::from_millis(u32::from_ne_bytes(bytes).into()))
}

#[cfg(test)]
mod tests;
