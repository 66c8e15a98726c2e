//! The worker with its sockets, on the thread of the test: where the kernel refuses something, or
//! somebody has left. What clients and servers say to each other is tested elsewhere.

use std::fs::OpenOptions;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net;
use std::path::Path;

use pgweir_config::Config;
use pgweir_engine::{Placement, Plan};
use pgweir_wire::{ProtocolVersion, Startup};
use socket2::{Domain, SockAddr, Socket as Socket2, Type};

use super::*;
use crate::listener::Listener;
use crate::socket::Detached;
use crate::tests::{begin, times, took};

mod descriptors;

/// What a test waits for comes long before.
const LONG: Duration = Duration::from_secs(60);

/// Options that are the kernel's own.
const OPTIONS: TcpOptions = TcpOptions {
    keepalives_idle: None,
    keepalives_interval: None,
    keepalives_count: None,
    user_timeout: None,
};

/// Runs a test as a task of a worker's runtime, in which its workers are others.
fn on_a_worker(test: impl Future<Output = ()>) {
    begin();
    let runtime = runtime().expect("a runtime");
    let over = runtime.block_on(async { tokio::time::timeout(LONG, test).await });
    over.expect("what it waits for does not come");
}

async fn eventually(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A worker, and all that is outside of it.
struct Site {
    index: usize,
    mailboxes: Mailboxes,
    /// Those of the other workers.
    inboxes: Vec<Inbox<Mail>>,
    news: mpsc::UnboundedReceiver<News>,
    ended: Task<io::Result<()>>,
}

impl Site {
    /// The only worker.
    fn alone(plan: &Plan, listeners: Listeners) -> Self {
        Self::one_of(Member::alone(), 1, plan, listeners)
    }

    /// One of several.
    fn one_of(member: Member, workers: usize, plan: &Plan, listeners: Listeners) -> Self {
        let (mailboxes, mut inboxes) = Mailboxes::new(workers);
        let (tell, news) = mpsc::unbounded_channel();
        let index = member.index();
        let inbox = inboxes.remove(index);
        let post =
            Post { member, peers: mailboxes.clone(), inbox, clock: Clock::start(), news: tell };
        let renewal = Renewal { plan: plan.clone(), tcp: OPTIONS, listeners };
        let ended = spawn_local(run(post, renewal, [7; 32]));
        Self { index, mailboxes, inboxes, news, ended }
    }

    fn tell(&self, mail: Mail) {
        self.mailboxes.tell(self.index, mail);
    }

    /// Another configuration, in which only these differ.
    fn reload(&self, plan: &Plan, tcp: TcpOptions, listeners: Listeners) {
        self.tell(Mail::Reload(Box::new(Renewal { plan: plan.clone(), tcp, listeners })));
    }

    /// What the worker tells next, but for what the log says.
    async fn told(&mut self) -> News {
        loop {
            match self.news.recv().await.expect("it has not ended") {
                News::Log(_) => {}
                news => return news,
            }
        }
    }

    async fn clients_left(&self) -> usize {
        let (asker, answer) = oneshot::channel();
        self.tell(Mail::ClientsLeft(asker));
        answer.await.expect("it has not ended")
    }

    async fn stops(self) {
        self.mailboxes.stop();
        self.ended.await.expect("it does not panic").expect("it ends well");
    }
}

/// A pool for each of two databases, which so many workers have in turn; where its servers are, and
/// more lines of the section `general`.
fn plan(workers: usize, host: &str, general: &str) -> Plan {
    let pool = |database: &str| {
        format!(
            "[pools.{database}.users.0]\nusername = 'user'\npassword = 'password'\n\
             pool_size = 1\n\
             [pools.{database}.shards.0]\nservers = [['{host}', 5432, 'primary']]\n\
             database = '{database}'\n"
        )
    };
    let pools = ["db", "east"].map(pool).concat();
    let text = format!(
        "[general]\nhost = '127.0.0.1'\nport = 6432\nauth_type = 'trust'\n\
         admin_username = 'admin'\nadmin_password = 'secret'\nadmin_auth_type = 'trust'\n\
         {general}\n{pools}"
    );
    let config = Config::parse(&text, Path::new("worker.toml")).expect("it is valid");
    let mut plan = Plan::new(&config, "0.1.0", [8; 32]).expect("a plan");
    Placement::new(workers).place(&mut plan);
    plan
}

/// One whose servers nobody is to ask for.
fn serverless(workers: usize) -> Plan {
    plan(workers, &abstract_host("nobody"), "")
}

/// The beginning of names that no other test has.
fn abstract_host(name: &str) -> String {
    format!("@pgweir-{}-{name}", std::process::id())
}

/// Where clients come in, for the worker and for the test.
fn door(name: &str) -> ((String, Option<Listener>), TcpListener) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.set_nonblocking(true).expect("it does not block");
    let same = listener.try_clone().expect("a descriptor");
    ((name.to_owned(), Some(Listener::Tcp(listener))), same)
}

/// The same with an address of a unix socket.
fn unix_door(name: &str) -> ((String, Option<Listener>), net::SocketAddr) {
    let address = net::SocketAddr::from_abstract_name(abstract_host(name)).expect("a name");
    let listener = net::UnixListener::bind_addr(&address).expect("nobody else has it");
    listener.set_nonblocking(true).expect("it does not block");
    ((name.to_owned(), Some(Listener::Unix(listener, 6432))), address)
}

fn address(door: &TcpListener) -> SocketAddr {
    door.local_addr().expect("it listens")
}

/// What is no socket, nor anything else that is waited for.
fn no_socket() -> OwnedFd {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    options.open("/dev/null").expect("there is one").into()
}

fn startup(user: &str, database: &str) -> Vec<u8> {
    let parameters = [("user", user), ("database", database)];
    let mut packet = Vec::new();
    let parameters = parameters.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    Startup::write(&mut packet, ProtocolVersion::V3_0, parameters);
    packet
}

/// A client that has sent this, and has not been looked at yet.
fn client(door: &TcpListener, says: &[u8]) -> TcpStream {
    use std::io::Write;
    let mut stream = std::net::TcpStream::connect(address(door)).expect("it listens");
    stream.write_all(says).expect("there is room");
    stream.set_nonblocking(true).expect("it does not block");
    TcpStream::from_std(stream).expect("it can be waited for")
}

/// What it hears up to what ends like this, or up to the end.
async fn hears(client: &TcpStream, end: &[u8]) -> io::Result<Vec<u8>> {
    let mut heard = Vec::new();
    while heard.is_empty() || !heard.ends_with(end) {
        client.readable().await?;
        let mut buffer = [0; 4096];
        match client.try_read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => heard.extend(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(heard)
}

/// Says that whoever comes to this door is let in, to the console.
async fn is_open(door: &TcpListener) {
    is_greeted(&client(door, &startup("admin", "pgweir"))).await;
}

async fn is_greeted(client: &TcpStream) {
    const READY: &[u8] = b"Z\0\0\0\x05I";
    assert!(hears(client, READY).await.expect("no error").ends_with(READY));
}

/// A port whose listener the kernel does not let accept.
fn jam(door: &TcpListener) {
    SockRef::from(door).shutdown(Shutdown::Both).expect("it listens");
}

/// Where nobody can be accepted any more, it is tried for a while and given up.
#[test]
fn a_door_is_closed_though_accept_fails() {
    on_a_worker(async {
        let [(jammed, its), (other, door)] = ["jammed", "other"].map(door);
        let site = Site::alone(&serverless(1), vec![jammed]);
        is_open(&its).await;
        jam(&its);
        site.mailboxes.listen(vec![other]).await;
        assert!(took(Mark::AcceptFailedAtClose) && took(Mark::ClosingGivenUp));
        is_open(&door).await;
        site.stops().await;
    });
}

/// The operator is told, and clients come in elsewhere.
#[test]
fn a_door_that_cannot_be_opened_leaves_the_others_open() {
    on_a_worker(async {
        let (listener, door) = door("door");
        let mut site = Site::alone(&serverless(1), Vec::new());
        let bad = ("bad".to_owned(), Some(Listener::Tcp(no_socket().into())));
        let bad_too = ("bad, too".to_owned(), Some(Listener::Unix(no_socket().into(), 6432)));
        site.mailboxes.listen(vec![bad, listener, bad_too]).await;
        assert!(took(Mark::DoorNotOpened));
        for _ in 0..2 {
            assert!(matches!(site.told().await, News::ListenFailed(_)));
        }
        is_open(&door).await;
        site.stops().await;
    });
}

/// Whoever starts a worker learns it from its end, since clients would find no door.
#[test]
fn a_worker_does_not_begin_without_its_doors() {
    on_a_worker(async {
        let (listener, door) = door("door");
        let bad = ("bad".to_owned(), Some(Listener::Tcp(no_socket().into())));
        let site = Site::alone(&serverless(1), vec![listener, bad]);
        assert!(site.ended.await.expect("it does not panic").is_err());
        assert!(took(Mark::DoorlessAtStart));
        drop(door);
    });
}

/// The kernel takes no more than 32,767 seconds.
#[test]
fn a_door_stays_open_that_does_not_take_an_option() {
    on_a_worker(async {
        let (listener, door) = door("door");
        let plan = serverless(1);
        let mut site = Site::alone(&plan, vec![listener]);
        let tcp = TcpOptions { keepalives_idle: Some(Duration::from_secs(40_000)), ..OPTIONS };
        site.reload(&plan, tcp, vec![("door".to_owned(), None)]);
        assert!(matches!(site.told().await, News::ListenFailed(_)));
        assert!(took(Mark::DoorNotConfigured));
        is_open(&door).await;
        site.stops().await;
    });
}

/// Nobody comes in any more once all are asked to leave, whatever a configuration says of doors.
#[test]
fn no_door_is_opened_while_clients_are_asked_to_leave() {
    on_a_worker(async {
        let [(before, its), (after, door)] = ["before", "after"].map(unix_door);
        let site = Site::alone(&serverless(1), vec![before]);
        site.tell(Mail::Drain);
        site.mailboxes.listen(vec![after]).await;
        assert!(took(Mark::DoorsStayClosed));
        for door in [its, door] {
            let refused = net::UnixStream::connect_addr(&door).map(drop);
            assert_eq!(refused.map_err(|e| e.kind()), Err(io::ErrorKind::ConnectionRefused));
        }
        site.stops().await;
    });
}

#[test]
fn who_asks_and_leaves_holds_nobody_up() {
    on_a_worker(async {
        let site = Site::alone(&serverless(1), Vec::new());
        site.tell(Mail::ClientsLeft(oneshot::channel().0));
        site.tell(Mail::Snapshot(oneshot::channel().0));
        site.tell(Mail::Listen(Vec::new(), oneshot::channel().0));
        assert_eq!(site.clients_left().await, 0);
        assert!(took(Mark::AskerLeft));
        assert_eq!(times(Mark::AskerLeft), 3);
        site.stops().await;
    });
}

/// As while the process ends, when the main thread reads no more.
#[test]
fn a_worker_goes_on_when_nobody_listens_to_it() {
    on_a_worker(async {
        let (listener, door) = door("door");
        let mut site = Site::alone(&serverless(1), vec![listener]);
        site.news.close();
        let refused = client(&door, &startup("nobody", "db"));
        assert!(hears(&refused, b"").await.expect("no error").starts_with(b"E"));
        assert!(took(Mark::NewsUnheard));
        is_open(&door).await;
        site.stops().await;
    });
}

/// It finds its connection closed, the operator is told, and its place is another's.
#[test]
fn who_cannot_be_taken_from_another_worker_is_counted_no_more() {
    on_a_worker(async {
        let (listener, door) = door("door");
        let (plan, members) = (serverless(2), Member::all(2));
        let [first, second] = [(0, vec![listener]), (1, Vec::new())]
            .map(|(index, listeners)| (members[index].clone(), listeners))
            .map(|(member, listeners)| Site::one_of(member, 2, &plan, listeners));
        let (mut first, mut second) = (first, second);
        let post = async |first: &mut Site| match first.inboxes[0].recv().await {
            Some(Mail::Arrival(arrival)) => arrival,
            other => panic!("{other:?}"),
        };

        let lost = client(&door, &startup("user", "east"));
        let mut arrival = post(&mut first).await;
        arrival.connection = Detached::Tcp(no_socket().into());
        second.tell(Mail::Arrival(arrival));
        assert!(matches!(second.told().await, News::AcceptFailed(_, 1)));
        assert!(took(Mark::NotTaken));
        assert_eq!(hears(&lost, b"").await.expect("no error"), b"");
        members[0].check_empty();

        let _client = client(&door, &startup("user", "east"));
        second.tell(Mail::Arrival(post(&mut first).await));
        assert_eq!((first.clients_left().await, second.clients_left().await), (0, 1));
        first.stops().await;
        second.stops().await;
    });
}

/// A server's unix socket, whose queue has room for one, and the one who has it.
fn full_queue(host: &str) -> [Socket2; 2] {
    let name = SocketName::in_folder(host, 5432).expect("a name");
    let name = SockAddr::unix(name.address()).expect("it is short");
    let socket = || Socket2::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
    let (server, first) = (socket(), socket());
    server.bind(&name).expect("nobody else has it");
    server.listen(0).expect("it listens");
    server.set_nonblocking(true).expect("it does not block");
    first.connect(&name).expect("there is room for one");
    let second = socket();
    second.set_nonblocking(true).expect("it does not block");
    let full = second.connect(&name).map_err(|error| error.kind());
    assert_eq!(full, Err(io::ErrorKind::WouldBlock));
    [server, first]
}

/// The kernel lets nobody wait there who does not block.
#[test]
fn a_server_with_a_full_queue_is_asked_until_there_is_room() {
    on_a_worker(async {
        let host = abstract_host("full");
        let [server, _first] = full_queue(&host);
        let (listener, door) = door("door");
        let site = Site::alone(&plan(1, &host, ""), vec![listener]);
        let _client = client(&door, &startup("user", "db"));
        eventually(|| took(Mark::ServerQueueFull)).await;
        let _ = server.accept().expect("the one who was there");
        let mut asked = None;
        eventually(|| {
            asked = server.accept().ok();
            asked.is_some()
        })
        .await;
        let (asked, _) = asked.expect("it has come");
        let asked: net::UnixStream = asked.into();
        asked.set_nonblocking(true).expect("it does not block");
        let mut buffer = [0; 1024];
        let mut read = 0;
        eventually(|| {
            read = io::Read::read(&mut &asked, &mut buffer).unwrap_or(0);
            read > 0
        })
        .await;
        let packet = &buffer[..read];
        assert!(packet.windows(14).any(|part| part == b"user\0user\0data"), "a login");
        site.stops().await;
    });
}

/// The kernel would go on for minutes over TCP, and one that waits for room would for ever.
#[test]
fn an_attempt_that_nobody_waits_for_is_ended() {
    on_a_worker(async {
        let host = abstract_host("given-up");
        let [server, _first] = full_queue(&host);
        let (listener, door) = door("door");
        let general = "connect_timeout = 100\nquery_wait_timeout = 60000";
        let site = Site::alone(&plan(1, &host, general), vec![listener]);
        let client = client(&door, &startup("user", "db"));
        eventually(|| took(Mark::AttemptGivenUp)).await;
        drop(client);
        loop {
            let snapshot = site.mailboxes.snapshot().await.expect("it has not ended");
            if snapshot.clients.is_empty() && snapshot.servers.is_empty() {
                break;
            }
            tokio::time::sleep(TICK).await;
        }
        eventually(|| times(Mark::AttemptGivenUp) == times(Mark::ConnectTooSlow)).await;
        let _ = server.accept().expect("the one who was there");
        let none = server.accept().map(drop).map_err(|error| error.kind());
        assert_eq!(none, Err(io::ErrorKind::WouldBlock));
        site.stops().await;
    });
}

/// What is left unread at a close resets the connection, and its peer may lose our last words.
#[test]
fn who_is_closed_while_it_sends_hears_why() {
    on_a_worker(async {
        let (door, name) = unix_door("talker");
        let site = Site::alone(&serverless(1), vec![door]);

        let stream = net::UnixStream::connect_addr(&name).expect("it listens");
        stream.set_nonblocking(true).expect("it does not block");
        SockRef::from(&stream).set_send_buffer_size(1024 * 1024).expect("it takes it");
        // More than is read at once, which would be all that is looked at.
        let talk = [b"GET / HTTP/1.1\r\n\r\n".as_slice(), &[b' '; 32 * 1024]].concat();
        let mut said = 0;
        while let Ok(n) = io::Write::write(&mut &stream, &talk) {
            said += n;
        }
        assert!(said > 160 * 1024, "there is room for {said} bytes");

        let client = UnixStream::from_std(stream).expect("it can be waited for");
        let mut heard = Vec::new();
        loop {
            client.readable().await.expect("it can be waited for");
            let mut buffer = [0; 1024];
            match client.try_read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => heard.extend(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}, behind {} bytes", heard.len()),
            }
        }
        assert!(heard.starts_with(b"E") && heard.windows(5).any(|part| part == b"08P01"));
        assert!(took(Mark::InputDiscarded));
        site.stops().await;
    });
}

/// It is closed all the same, though it never stops.
#[test]
fn who_sends_without_an_end_is_not_read_for_ever() {
    on_a_worker(async {
        let mut reads = 0;
        discard(|| {
            reads += 1;
            true
        })
        .await;
        assert_eq!(reads, DISCARDS);
        assert!(took(Mark::DiscardsGivenUp));
    });
}
