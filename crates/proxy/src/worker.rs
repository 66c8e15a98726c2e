use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use pgweir_config::{SocketName, TcpOptions};
use pgweir_engine::{Address, Endpoint, Ends, Engine, Mark, Member, Refusals, TICK, Time};
use socket2::SockRef;
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle as Task, spawn_local};

use crate::batch::Batch;
use crate::clock::Clock;
use crate::driver::{Driver, Handover, Read, Request, SILENCES};
use crate::listener::{Accepting, Listeners};
use crate::mail::{Arrival, Mail, Mailboxes, News, Renewal};
use crate::piece::Piece;
use crate::sock_diag::SockDiag;
use crate::socket::{Socket, Stream, configure};
use crate::sync::{Inbox, oneshot};

/// How often a connection is read in a row before the others have their turn.
const TURNS: usize = 8;

/// In so many turns what a connection is still sent is thrown away, before it is closed all the
/// same.
const DISCARDS: usize = 8;

/// How many clients are accepted in a row before the others have their turn: one that is refused
/// gives its descriptor back then.
const ACCEPTS: usize = 4;

/// After a failed accept (no descriptor is left, for instance) the next one waits this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long those are let in who have come before a door is closed. In a storm there is always
/// somebody, and what is lacking to take them may lack for good.
const CLOSING: Duration = Duration::from_secs(1);

/// After a failed accept the next one waits this long there: those who were let in are told to go,
/// and give their descriptors back at once.
const CLOSING_PAUSE: Duration = Duration::from_millis(5);

/// Behind a unix socket whose queue is full the next attempt waits this long.
const QUEUE_PAUSE: Duration = Duration::from_millis(10);

/// What a worker starts with, besides its configuration.
pub(crate) struct Post {
    pub(crate) member: Member,
    pub(crate) peers: Mailboxes,
    pub(crate) inbox: Inbox<Mail>,
    pub(crate) clock: Clock,
    pub(crate) news: mpsc::UnboundedSender<News>,
}

/// Starts a worker's thread.
pub(crate) fn start(
    post: Post,
    configuration: Renewal,
    seed: [u8; 32],
) -> io::Result<JoinHandle<io::Result<()>>> {
    let index = post.member.index();
    std::thread::Builder::new().name(format!("worker {index}")).spawn(move || {
        let _farewell = Farewell(index, post.news.clone());
        let runtime = runtime()?;
        let ended = runtime.block_on(run(post, configuration, seed));
        // A name that is being looked up, in a thread of its own, is not waited for.
        runtime.shutdown_background();
        ended
    })
}

fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())
}

/// What a worker's thread does, until it is told to end.
async fn run(post: Post, configuration: Renewal, seed: [u8; 32]) -> io::Result<()> {
    let Post { member, peers, inbox, clock, news } = post;
    let Renewal { plan, tcp, listeners } = configuration;
    let shared = Rc::new(Shared {
        index: member.index(),
        driver: RefCell::new(Driver::new(Engine::with(member, plan, seed))),
        peers,
        clock,
        tcp: Cell::new(tcp),
        news,
        unfinished: Notify::new(),
        draining: Cell::new(false),
    });
    shared.run(listeners, inbox).await
}

/// Tells that the thread of a worker has ended, in whatever way.
struct Farewell(usize, mpsc::UnboundedSender<News>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.1.send(News::Ended(self.0));
    }
}

/// What the tasks of a worker share. All of them run on its thread, one at a time.
struct Shared {
    /// Which of the workers this is.
    index: usize,
    driver: RefCell<Driver<Rc<Socket>>>,
    peers: Mailboxes,
    clock: Clock,
    tcp: Cell<TcpOptions>,
    news: mpsc::UnboundedSender<News>,
    /// The driver's turn is to be ended.
    unfinished: Notify,
    draining: Cell<bool>,
}

impl Shared {
    async fn run(self: Rc<Self>, listeners: Listeners, mut inbox: Inbox<Mail>) -> io::Result<()> {
        let mut watching = spawn_local(Rc::clone(&self).watch());
        let mut doors = Vec::new();
        if let Some(error) = self.open_doors(&mut doors, listeners).await.pop() {
            Mark::DoorlessAtStart.hit();
            return Err(error);
        }
        let ticking = spawn_local(Rc::clone(&self).tick());
        let finishing = spawn_local(Rc::clone(&self).finish());
        loop {
            match inbox.recv().await {
                Some(Mail::Arrival(arrival)) => self.receive(*arrival),
                Some(Mail::ClientsLeft(asker)) => {
                    answer(asker, self.driver.borrow().engine().clients());
                }
                Some(Mail::ConsoleReply(client, reply)) => {
                    self.drive(|driver, now| driver.console_reply(now, client, &reply));
                }
                Some(Mail::Catalogue(database, read)) => {
                    self.drive(|driver, now| driver.catalogue_read(now, &database, read));
                }
                Some(Mail::Nudge) => self.drive(|driver, now| driver.nudged(now)),
                Some(Mail::Snapshot(asker)) => {
                    answer(asker, self.driver.borrow().snapshot(self.clock.now()));
                }
                Some(Mail::Reload(renewal)) => {
                    let Renewal { plan, tcp, listeners } = *renewal;
                    if self.tcp.replace(tcp) != tcp {
                        Mark::WatchRenewed.hit();
                        watching.abort();
                        watching = spawn_local(Rc::clone(&self).watch());
                    }
                    self.change_doors(&mut doors, listeners).await;
                    self.drive(|driver, now| driver.reload(now, plan));
                }
                Some(Mail::Listen(listeners, asker)) => {
                    self.change_doors(&mut doors, listeners).await;
                    answer(asker, ());
                }
                Some(Mail::Drain) => {
                    self.draining.set(true);
                    self.drive(|driver, now| driver.drain(now));
                    // From now on whoever comes in is told that this is the end.
                    self.close_doors(&mut doors).await;
                }
                Some(Mail::ShutDown) => {
                    self.drive(|driver, now| driver.shut_down(now));
                    self.peers.has_shut_down(self.index);
                    self.close_doors(&mut doors).await;
                    // Those who were let in now, and have not said what they want.
                    self.drive(|driver, now| driver.shut_down(now));
                    break;
                }
                // No mark: each has a way to its own mailbox, so there is always another letter.
                Some(Mail::Stop) | None => break,
            }
        }
        watching.abort();
        finishing.abort();
        ticking.abort();
        // What was said before the end is still told.
        self.drive(|driver, now| driver.finish(now, |all| all.iter_mut().for_each(Piece::write)));
        // The tasks of connections that were closed read what we did not: with that unread, the
        // process's end would reset them, and their clients might lose our last words.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Lets clients in where a reload has it, unless the process is about to end.
    async fn change_doors(self: &Rc<Self>, doors: &mut Vec<Door>, listeners: Listeners) {
        if self.draining.get() {
            return Mark::DoorsStayClosed.hit();
        }
        for error in self.open_doors(doors, listeners).await {
            self.tell(News::ListenFailed(error));
        }
    }

    /// Lets nobody in any more, but those who have come by now: what they are told is up to the
    /// engine.
    async fn close_doors(self: &Rc<Self>, doors: &mut Vec<Door>) {
        for door in doors.drain(..) {
            self.close_door(door).await;
        }
    }

    /// Closes a door behind those who have come to it by now.
    async fn close_door(self: &Rc<Self>, mut door: Door) {
        door.task.abort();
        // Until it has ended it has the socket too.
        let _ = (&mut door.task).await;
        let let_in = tokio::time::timeout(CLOSING, self.let_in(&door.listener)).await;
        Mark::ClosingGivenUp.hit_if(let_in.is_err());
    }

    /// Takes all clients that have come to a door by now.
    async fn let_in(self: &Rc<Self>, listener: &Accepting) {
        let mut accepts = 0;
        loop {
            match listener.accept_now() {
                Ok((stream, ends)) => {
                    self.take(stream, ends);
                    accepts += 1;
                    if accepts % ACCEPTS == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    Mark::AcceptFailedAtClose.hit();
                    tokio::time::sleep(CLOSING_PAUSE).await;
                }
            }
        }
    }

    /// Lets clients in where they are expected now, and nowhere else. Gives what went wrong: the
    /// other doors are open all the same.
    async fn open_doors(
        self: &Rc<Self>,
        doors: &mut Vec<Door>,
        listeners: Listeners,
    ) -> Vec<io::Error> {
        let stays = |door: &Door| listeners.iter().any(|(name, _)| *name == door.name);
        let (kept, mut others): (Vec<_>, Vec<_>) =
            std::mem::take(doors).into_iter().partition(stays);
        *doors = kept;
        self.close_doors(&mut others).await;
        let mut errors = Vec::new();
        for (name, listener) in listeners {
            let Some(listener) = listener else { continue };
            match Accepting::new(listener) {
                Ok(listener) => {
                    let listener = Rc::new(listener);
                    let task = spawn_local(Rc::clone(self).accept(Rc::clone(&listener)));
                    doors.push(Door { name, listener, task });
                }
                Err(error) => {
                    Mark::DoorNotOpened.hit();
                    errors.push(error);
                }
            }
        }
        for error in doors.iter().filter_map(|door| door.listener.configure(&self.tcp.get()).err())
        {
            Mark::DoorNotConfigured.hit();
            errors.push(error);
        }
        errors
    }

    async fn accept(self: Rc<Self>, listener: Rc<Accepting>) {
        let mut refusals = Refusals::default();
        let mut accepts = 0;
        loop {
            match listener.accept().await {
                Ok((stream, ends)) => {
                    self.take(stream, ends);
                    accepts += 1;
                    if accepts % ACCEPTS == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                Err(error) => {
                    Mark::AcceptFailed.hit();
                    if let Some(times) = refusals.note(self.clock.now()) {
                        self.tell(News::AcceptFailed(error, times));
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn take(self: &Rc<Self>, stream: Stream, ends: Option<Ends>) {
        let socket = Socket::new(stream);
        let io = Rc::clone(&socket);
        let endpoint = self.drive(|driver, now| {
            let endpoint = driver.accept(now, io, ends);
            // Clients speak first, and most have by now.
            driver.readable(now, endpoint);
            endpoint
        });
        spawn_local(serve(Rc::clone(self), endpoint, socket));
    }

    /// A client comes from another worker.
    fn receive(self: &Rc<Self>, arrival: Arrival) {
        let Arrival { connection, handed, input } = arrival;
        match connection.attach() {
            Ok(stream) => {
                let socket = Socket::new(stream);
                let io = Rc::clone(&socket);
                let endpoint = self.drive(|driver, _| driver.handed_over(io, handed, input));
                spawn_local(serve(Rc::clone(self), endpoint, socket));
            }
            Err(error) => {
                Mark::NotTaken.hit();
                self.lose(error);
            }
        }
    }

    /// Gives a client to another worker.
    fn hand_over(self: &Rc<Self>, handover: Handover<Rc<Socket>>) {
        let Handover { worker, io, handed, input } = handover;
        match io.detach() {
            Ok(connection) => {
                let arrival = Arrival { connection, handed, input };
                self.peers.tell(worker, Mail::Arrival(Box::new(arrival)));
            }
            Err(error) => {
                Mark::NotGiven.hit();
                self.lose(error);
            }
        }
    }

    /// A client does not get from one worker to another: it sees its connection closed, and whoever
    /// counts clients is told.
    fn lose(self: &Rc<Self>, cause: io::Error) {
        self.drive(|driver, _| driver.lost_on_the_way());
        self.tell(News::AcceptFailed(cause, 1));
    }

    async fn connect(self: Rc<Self>, endpoint: Endpoint, address: Address) {
        let attempt = async {
            match address.unix_socket() {
                Some(name) => connect_unix(&name).await.map(Stream::Unix),
                None => self.connect_tcp(&address).await.map(Stream::Tcp),
            }
        };
        let connected = tokio::select! {
            connected = attempt => connected,
            // With it goes its socket, which the kernel would try to connect for minutes.
            () = self.gives_up(endpoint) => return Mark::AttemptGivenUp.hit(),
        };
        match connected {
            Ok(stream) => {
                let socket = Socket::new(stream);
                let io = Rc::clone(&socket);
                let wanted = self.drive(|driver, now| driver.connected(now, endpoint, io).is_ok());
                if wanted {
                    serve(self, endpoint, socket).await;
                }
            }
            Err(error) => {
                let cause = error.to_string();
                self.drive(|driver, now| driver.connect_failed(now, endpoint, &cause));
            }
        }
    }

    async fn connect_tcp(&self, address: &Address) -> io::Result<TcpStream> {
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
        configure(&SockRef::from(&stream), &self.tcp.get())?;
        Ok(stream)
    }

    /// Waits until nobody wants this connection any more.
    async fn gives_up(&self, endpoint: Endpoint) {
        while self.driver.borrow().engine().awaits(endpoint) {
            tokio::time::sleep(TICK).await;
        }
    }

    async fn tick(self: Rc<Self>) {
        loop {
            tokio::time::sleep(TICK).await;
            self.drive(|driver, now| driver.tick(now));
        }
    }

    /// Looks for peers that have vanished, so often that one has been silent for `user_timeout`
    /// when it is found, and for half as much again at most.
    async fn watch(self: Rc<Self>) {
        let Some(limit) = self.tcp.get().user_timeout else { return };
        // Where clients come over a unix socket there is perhaps no other to ask about.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let kernel = match listener.and_then(|listener| SockDiag::open(listener.local_addr()?)) {
            Ok(kernel) => kernel,
            Err(error) => {
                Mark::NoSockDiag.hit();
                return self.tell(News::NoSockDiag(error));
            }
        };
        let pause = TICK.max(limit / (SILENCES - 1));
        loop {
            tokio::time::sleep(pause).await;
            self.drive(|driver, now| driver.reap(now, |socket| socket.silence(&kernel)));
        }
    }

    /// Ends the driver's turns. A task that is woken runs behind those that are ready.
    ///
    /// Where clients share servers, those who were written to go first where they wait for this
    /// processor: they answer meanwhile, and the next turn finds more at once. Measured with 16
    /// clients that select, one shared server and two processors: 1.08 times as many transactions.
    async fn finish(self: Rc<Self>) {
        let mut batch = Batch::new();
        loop {
            self.unfinished.notified().await;
            let is_sharing = self.drive(|driver, now| {
                driver.finish(now, |pieces| batch.write(pieces));
                driver.engine().is_sharing()
            });
            if is_sharing {
                std::thread::yield_now();
            }
        }
    }

    /// Tells the driver something, and sees to what it cannot do itself.
    fn drive<R>(self: &Rc<Self>, event: impl FnOnce(&mut Driver<Rc<Socket>>, Time) -> R) -> R {
        let now = self.clock.now();
        let mut driver = self.driver.borrow_mut();
        let result = event(&mut driver, now);
        if driver.is_unfinished() {
            self.unfinished.notify_one();
        }
        if driver.has_requests() {
            let requests = driver.take_requests();
            drop(driver);
            for request in requests {
                self.see_to(request);
            }
        }
        result
    }

    fn see_to(self: &Rc<Self>, request: Request<Rc<Socket>>) {
        match request {
            Request::Connect(endpoint, address) => {
                spawn_local(Rc::clone(self).connect(endpoint, address));
            }
            Request::Console(client, text) => {
                let number = self.driver.borrow().engine().client_number(client);
                self.tell(News::Console { worker: self.index, client, number, text });
            }
            Request::JudgeCatalogue(rows) => {
                self.tell(News::Catalogue { worker: self.index, rows });
            }
            Request::HandOver(handover) => self.hand_over(*handover),
            Request::Nudge => self.peers.nudge_others(self.index),
            Request::Log(event) => self.tell(News::Log(event)),
        }
    }

    /// News that nobody listens to is no news: the process is ending.
    fn tell(&self, news: News) {
        Mark::NewsUnheard.hit_if(self.news.send(news).is_err());
    }
}

/// Answers a letter. Whoever has asked may have left.
fn answer<T>(asker: oneshot::Sender<T>, answer: T) {
    Mark::AskerLeft.hit_if(asker.send(answer).is_err());
}

/// Where clients come in.
struct Door {
    name: String,
    listener: Rc<Accepting>,
    task: Task<()>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Where many connect at once, a connection over TCP waits in the server's queue; one over a unix
/// socket that does not block is refused while the queue is full, and is tried again.
async fn connect_unix(name: &SocketName) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(name.address()).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Mark::ServerQueueFull.hit();
                tokio::time::sleep(QUEUE_PAUSE).await;
            }
            done => return done,
        }
    }
}

/// Waits for one connection, as long as it is open.
async fn serve(shared: Rc<Shared>, endpoint: Endpoint, socket: Rc<Socket>) {
    let mut broken = None;
    poll_fn(|cx| poll(&shared, endpoint, &socket, &mut broken, cx)).await;
    discard(|| !socket.is_detached() && socket.discard_input()).await;
}

/// Throws away what comes, as long as there may be more, but not for ever.
async fn discard(mut may_be_more: impl FnMut() -> bool) {
    for _ in 0..DISCARDS {
        if !may_be_more() {
            return;
        }
        tokio::task::yield_now().await;
    }
    Mark::DiscardsGivenUp.hit();
}

/// The end of a connection that is not read, while that is waited for.
type Broken<'a> = Option<Pin<Box<dyn Future<Output = io::Error> + 'a>>>;

fn poll<'a>(
    shared: &Rc<Shared>,
    endpoint: Endpoint,
    socket: &'a Rc<Socket>,
    broken: &mut Broken<'a>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    for _ in 0..TURNS {
        let Some(interest) = shared.driver.borrow_mut().interest(endpoint) else {
            return Poll::Ready(());
        };
        let mut idle = true;
        if interest.write
            && let Poll::Ready(ready) = socket.poll_write_ready(cx)
        {
            // The runtime is shutting down. No mark: it drops its tasks before, and asks none.
            if ready.is_err() {
                return Poll::Ready(());
            }
            let full = shared.drive(|driver, now| {
                driver.writable(now, endpoint);
                driver.interest(endpoint).is_some_and(|interest| interest.write)
            });
            if full {
                socket.clear_write_ready();
            }
            idle = false;
        }
        if interest.read
            && let Poll::Ready(ready) = socket.poll_read_ready(cx)
        {
            if ready.is_err() {
                return Poll::Ready(());
            }
            match shared.drive(|driver, now| driver.readable(now, endpoint)) {
                Read::Drained => socket.clear_read_ready(),
                Read::More => {}
            }
            idle = false;
        }
        if idle {
            if !interest.reset {
                *broken = None;
            } else if let waiting = broken.get_or_insert_with(|| Box::pin(socket.broken()))
                && let Poll::Ready(cause) = waiting.as_mut().poll(cx)
            {
                shared.drive(|driver, now| driver.reset(now, endpoint, &cause.to_string()));
                return Poll::Ready(());
            }
            socket.wait(cx);
            return Poll::Pending;
        }
    }
    // No mark: this is not rare, where one connection has much to say.
    cx.waker().wake_by_ref();
    Poll::Pending
}

#[cfg(test)]
mod tests;
