use std::error::Error;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::time::{Duration, SystemTime};

use pgweir_config::Config;
use pgweir_control::Rates;
use pgweir_engine::{ClientId, Plan, Snapshot};
use pgweir_proxy::{Clock, Mail, News, Worker};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::rand::{GetRandomFlags, getrandom};
use socket2::{Domain, Socket, Type};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use crate::file::File;
use crate::log;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Connections that the kernel queues for us; a storm of clients is longer than the usual 128.
const BACKLOG: i32 = 4_096;

/// How often averages of the console move on, as PgBouncer's `stats_period`.
const RATES_PERIOD: Duration = Duration::from_secs(60);

type Failure = Box<dyn Error>;

/// Serves until a signal says otherwise.
///
/// `file`: where the configuration can be read again, if it is from a file.
pub(crate) fn run(config: &Config, file: Option<File>) -> Result<(), Failure> {
    raise_descriptor_limit()?;
    let general = &config.general;
    let listener = listen(&general.host, general.port)?;
    let address = listener.local_addr()?;
    let secret = random()?;
    let plan = Plan::new(config, VERSION, secret)?;
    let (news, mut inbox) = mpsc::unbounded_channel();
    let worker = Worker::start(plan, general.tcp, random()?, Clock::start(), listener, news)?;
    tracing::info!("pgweir {VERSION} listens on {address}");

    let runtime = Builder::new_current_thread().enable_all().build()?;
    let control = Control {
        mail: worker.mail(),
        rates: Rates::new(),
        file,
        secret,
        shutdown_timeout: general.shutdown_timeout,
        autoreload: general.autoreload,
    };
    runtime.block_on(control.run(&mut inbox))?;
    worker.join()?;
    tracing::info!("pgweir has ended");
    Ok(())
}

/// The control plane: what happens beside the traffic.
struct Control {
    mail: mpsc::UnboundedSender<Mail>,
    rates: Rates,
    file: Option<File>,
    /// What stays the same for the life of the process, and no client may learn.
    secret: [u8; 32],
    shutdown_timeout: Duration,
    autoreload: Option<Duration>,
}

impl Control {
    /// Runs until the worker has ended, which signals bring about.
    async fn run(mut self, inbox: &mut mpsc::UnboundedReceiver<News>) -> io::Result<()> {
        let mut signals = Signals::new()?;
        let mut rates = tokio::time::interval(RATES_PERIOD);
        let mut deadline = std::pin::pin!(tokio::time::sleep(Duration::MAX));
        let mut look = std::pin::pin!(self.before_next_look());
        let mut draining = false;
        loop {
            tokio::select! {
                news = inbox.recv() => match news {
                    Some(News::Console(client, text)) => self.console(client, &text).await,
                    Some(news) => log::tell(&news),
                    // The worker has dropped its end.
                    None => return Ok(()),
                },
                asked = signals.recv() => match asked {
                    Asked::Drain if !draining => {
                        tracing::info!("ending: clients may finish their transactions");
                        draining = true;
                        deadline.set(tokio::time::sleep(self.shutdown_timeout));
                        self.tell(Mail::Drain);
                    }
                    Asked::Drain | Asked::Stop => self.tell(Mail::Stop),
                    Asked::Reload => {
                        self.reload();
                        look.set(self.before_next_look());
                    }
                },
                () = &mut look => {
                    if self.file.as_ref().is_some_and(File::has_changed) {
                        self.reload();
                    }
                    look.set(self.before_next_look());
                }
                () = &mut deadline, if draining => {
                    tracing::warn!("shutdown_timeout is over: clients are disconnected");
                    draining = false;
                    self.tell(Mail::Stop);
                }
                _ = rates.tick() => {
                    if let Some(snapshot) = self.snapshot().await {
                        self.rates.sample(&snapshot);
                    }
                }
            }
        }
    }

    /// How long the file is not looked at.
    fn before_next_look(&self) -> tokio::time::Sleep {
        tokio::time::sleep(self.autoreload.unwrap_or(Duration::MAX))
    }

    /// Goes on with what the file says now, or, if that is wrong, as before.
    fn reload(&mut self) {
        let Some(file) = &mut self.file else {
            return tracing::error!("there is no file to be loaded again: a URL is all there was");
        };
        let loaded = file.load().map_err(|errors| errors.to_string());
        let planned = loaded.and_then(|config| {
            let plan =
                Plan::new(&config, VERSION, self.secret).map_err(|error| error.to_string())?;
            Ok((config, plan))
        });
        let path = file.path().display().to_string();
        match planned {
            Ok((config, plan)) => {
                log::warn(&config);
                self.shutdown_timeout = config.general.shutdown_timeout;
                self.autoreload = config.general.autoreload;
                self.tell(Mail::Reload(Box::new(plan)));
                tracing::info!("{path} was loaded again");
            }
            Err(errors) => {
                tracing::error!("{path} was not loaded, all stays as it was: {errors}");
            }
        }
    }

    async fn console(&mut self, client: ClientId, text: &[u8]) {
        let Some(snapshot) = self.snapshot().await else { return };
        let mut reply = Vec::new();
        pgweir_control::answer(text, &snapshot, calendar(), &self.rates, &mut reply);
        self.tell(Mail::ConsoleReply(client, reply));
    }

    /// What the worker is doing; `None` if it has ended.
    async fn snapshot(&self) -> Option<Snapshot> {
        let (asker, answer) = oneshot::channel();
        self.tell(Mail::Snapshot(asker));
        answer.await.ok()
    }

    fn tell(&self, mail: Mail) {
        // A worker that has ended needs to be told nothing.
        let _ = self.mail.send(mail);
    }
}

/// What a signal asks for.
enum Asked {
    Drain,
    Reload,
    Stop,
}

struct Signals {
    hangup: Signal,
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// SIGTERM and a first SIGINT drain; SIGQUIT and a second of either end at once; SIGHUP
    /// reloads.
    async fn recv(&mut self) -> Asked {
        tokio::select! {
            _ = self.hangup.recv() => Asked::Reload,
            _ = self.interrupt.recv() => Asked::Drain,
            _ = self.quit.recv() => Asked::Stop,
            _ = self.terminate.recv() => Asked::Drain,
        }
    }
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}

/// The first address of `host` that can be listened on.
fn listen(host: &str, port: u16) -> Result<TcpListener, Failure> {
    let mut last = None;
    for address in (host, port).to_socket_addrs()? {
        match bind(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(format!("cannot listen on {address}: {error}")),
        }
    }
    Err(last.unwrap_or_else(|| format!("{host} has no address")).into())
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Every client and every server is a descriptor, and the usual soft limit is 1,024.
fn raise_descriptor_limit() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

#[expect(clippy::disallowed_methods, reason = "the console shows times of the calendar")]
fn calendar() -> SystemTime {
    SystemTime::now()
}
