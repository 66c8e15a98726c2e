use std::error::Error;
use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, SystemTime};

use pgweir_config::{Change, Demand, Explained, Exporter, General, Problem, Warning};
use pgweir_control::{Order, Rates, State};
use pgweir_engine::{CatalogueRows, ClientId, Placement, Plan, TICK};
use pgweir_proxy::{Clock, Listeners, Mail, Mailboxes, News, Renewal, Workers};
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::Sleep;

use crate::descriptors;
use crate::exporter::{Exporting, Opened};
use crate::file::{File, Loaded, Source};
use crate::listen::{Listening, Refused};
use crate::log::{self, Log};
use crate::notify::{self, notify};
use crate::resident::resident_bytes;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How often averages of the console move on, as PgBouncer's `stats_period`.
const RATES_PERIOD: Duration = Duration::from_secs(60);

type Failure = Box<dyn Error>;

/// Serves until a signal or the console says otherwise.
///
/// `file`: where the configuration can be read again, if it is from a file.
pub(crate) fn run(loaded: Loaded, file: Option<File>, log: Log) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // From now on SIGHUP does not end the process.
    let signals = runtime.block_on(async { Signals::new() })?;
    let Loaded { mut config, mut explained, source } = loaded;
    descriptors::raise_limit()?;
    descriptors::settle(&mut config, &mut explained)?;
    let general = &config.general;
    let mut listening = Listening::default();
    let listeners = listening.open(general)?;
    let exporter = match &general.exporter {
        Some(exporter) => Some(runtime.block_on(Opened::at(exporter))?),
        None => None,
    };
    let secret = random()?;
    let mut plan = Plan::new(&config, VERSION, secret)?;
    let count = worker_threads(general);
    let mut placement = Placement::new(count);
    placement.place(&mut plan);
    let (news, mut inbox) = mpsc::unbounded_channel();
    let start = Renewal { plan, tcp: general.tcp, listeners };
    let workers = Workers::start(count, start, random, Clock::start(), &news)?;
    drop(news);
    tracing::info!("pgweir {VERSION} listens on {}", listening.names.join(" and "));

    let mut exporting = Exporting::default();
    let next_look = {
        // It has the timers and the tasks.
        let _runtime = runtime.enter();
        if let Some(exporter) = exporter {
            exporting.serve(exporter, &workers.mailboxes());
        }
        Box::pin(pause_between_looks(general.autoreload))
    };
    let control = Control {
        workers: workers.mailboxes(),
        worker_threads: count,
        placement,
        rates: Rates::new(),
        file,
        log,
        secret,
        source,
        explained,
        demands: config.demands(),
        shutdown_timeout: general.shutdown_timeout,
        autoreload: general.autoreload,
        next_look,
        ending: Ending::No,
        listening,
        exporting,
    };
    runtime.block_on(control.run(signals, &mut inbox))?;
    workers.join()?;
    tracing::info!("pgweir has ended");
    Ok(())
}

/// The control plane: what happens beside the traffic.
struct Control {
    workers: Mailboxes,
    /// How many there are, whatever the file says by now.
    worker_threads: usize,
    placement: Placement,
    rates: Rates,
    file: Option<File>,
    log: Log,
    /// What stays the same for the life of the process, and no client may learn.
    secret: [u8; 32],
    /// What `explained` was made of.
    source: Source,
    explained: Vec<Explained>,
    demands: Vec<Demand>,
    shutdown_timeout: Duration,
    autoreload: Option<Duration>,
    /// When the file is looked at next.
    next_look: Pin<Box<Sleep>>,
    ending: Ending,
    listening: Listening,
    exporting: Exporting,
}

impl Control {
    /// Runs until the workers have ended, which signals and the console bring about.
    async fn run(
        mut self,
        mut signals: Signals,
        inbox: &mut mpsc::UnboundedReceiver<News>,
    ) -> io::Result<()> {
        notify(notify::State::Ready);
        let mut rates = tokio::time::interval(RATES_PERIOD);
        loop {
            tokio::select! {
                news = inbox.recv() => match news {
                    Some(News::Console { worker, client, number, text }) => {
                        self.console(worker, client, Asker::Client(number), &text).await;
                    }
                    Some(News::Catalogue { worker, rows }) => self.judge_catalogue(worker, *rows),
                    // One that ends by itself takes the others with it: its clients are not served.
                    Some(News::Ended(worker)) => match self.ending {
                        Ending::No | Ending::Draining(_) => self.end(Mailboxes::stop),
                        Ending::Now => self.workers.has_ended(worker),
                    },
                    Some(news) => log::tell(&news, &self.demands),
                    // All have dropped their ends.
                    None => return Ok(()),
                },
                asked = signals.recv() => match (asked, &self.ending) {
                    (Asked::Drain(signal), Ending::No) => self.drain(Asker::Signal(signal)),
                    // The second time it is meant.
                    (Asked::Drain(signal), Ending::Draining(_) | Ending::Now)
                    | (Asked::Stop(signal), _) => {
                        self.end_for(Asker::Signal(signal), Mailboxes::stop);
                    }
                    (Asked::Reload(signal), _) => {
                        // Whoever has sent it looks into the log.
                        let _ = self.reload(Asker::Signal(signal)).await;
                    }
                },
                () = &mut self.next_look => match &self.file {
                    Some(file) if file.has_changed() => {
                        let _ = self.reload(Asker::File).await;
                    }
                    Some(_) | None => self.put_off_next_look(),
                },
                () = self.ending.time_is_over() => {
                    tracing::warn!("shutdown_timeout is over: clients are disconnected");
                    self.end(Mailboxes::shut_down);
                }
                () = drained(&self.workers), if self.ending.is_draining() => {
                    self.end(Mailboxes::stop);
                }
                _ = rates.tick() => {
                    if let Some(snapshot) = self.workers.snapshot().await {
                        self.rates.sample(&snapshot);
                    }
                }
            }
        }
    }

    /// Nothing is to be seen in the file for now.
    fn put_off_next_look(&mut self) {
        self.next_look.set(pause_between_looks(self.autoreload));
    }

    /// Goes on with what the file says now, or, if that is wrong, as before. The log says how that
    /// went, and whoever has started us is told when it begins and when it is over. Whoever has
    /// asked for it, the file was looked at.
    async fn reload(&mut self, asker: Asker) -> Result<(), String> {
        let stays = matches!(self.ending, Ending::No);
        if stays {
            notify(notify::State::Reloading);
        }
        let loaded = self.load().await;
        if stays {
            notify(notify::State::Ready);
        }
        self.put_off_next_look();
        let (client, signal) = (asker.client(), asker.signal());
        match &loaded {
            Ok(()) => tracing::info!(client, signal, "the configuration was loaded again"),
            Err(why) => tracing::error!(
                cause = why.as_str(),
                client,
                signal,
                "the configuration was not loaded, all stays as it was"
            ),
        }
        loaded
    }

    async fn load(&mut self) -> Result<(), String> {
        let Some(file) = &mut self.file else {
            return Err("there is no file: a URL is all there was".to_owned());
        };
        let mut loaded = file.load().map_err(|errors| errors.to_string())?;
        let plan = self.plan(&mut loaded)?;
        let listeners = match self.ending {
            Ending::No => self.open_doors(&loaded.config.general).await?,
            // Nobody is let in any more.
            Ending::Draining(_) | Ending::Now => Listeners::new(),
        };
        self.log.set(loaded.config.general.log);
        log::warn(&loaded.config);
        let exporter = loaded.config.general.exporter.clone();
        self.go_on(loaded, plan, listeners);
        if matches!(self.ending, Ending::No) {
            self.export(exporter.as_ref()).await;
        }
        Ok(())
    }

    /// Serves metrics where that is wanted from now on. Traffic does not stand or fall with it.
    async fn export(&mut self, wanted: Option<&Exporter>) {
        if self.exporting.is_at(wanted) {
            return;
        }
        // Doors that they were told to close may have had the port; they answer behind that.
        let _ = self.workers.snapshot().await;
        if let Err(why) = self.exporting.renew(wanted, &self.workers).await {
            tracing::error!("{why}");
        }
    }

    /// Goes on with one change of what was loaded last.
    fn set(&mut self, asker: Asker, change: &Change) -> Result<(), String> {
        let loaded = self.source.changed(change.clone());
        let mut loaded = loaded.map_err(|errors| errors.to_string())?;
        let plan = self.plan(&mut loaded)?;
        let listeners = match self.ending {
            Ending::No => self.listening.unchanged(),
            Ending::Draining(_) | Ending::Now => Listeners::new(),
        };
        self.go_on(loaded, plan, listeners);
        let client = asker.client();
        tracing::info!(client, "until the configuration is loaded again: {change}");
        Ok(())
    }

    /// What workers have to know of a configuration, which is brought to what this process can do.
    fn plan(&self, loaded: &mut Loaded) -> Result<Plan, String> {
        keep_worker_threads(self.worker_threads, loaded);
        descriptors::settle(&mut loaded.config, &mut loaded.explained)?;
        Plan::new(&loaded.config, VERSION, self.secret).map_err(|error| error.to_string())
    }

    /// From now on that is the configuration.
    fn go_on(&mut self, loaded: Loaded, mut plan: Plan, listeners: Listeners) {
        let Loaded { config, explained, source } = loaded;
        self.placement.place(&mut plan);
        self.source = source;
        self.explained = explained;
        self.demands = config.demands();
        self.shutdown_timeout = config.general.shutdown_timeout;
        self.autoreload = config.general.autoreload;
        let tcp = config.general.tcp;
        self.workers.reload(Renewal { plan, tcp, listeners });
    }

    /// Opens what a configuration asks for, metrics out of its way.
    async fn open_doors(&mut self, general: &General) -> Result<Listeners, String> {
        let former = self.exporting.make_way(general).await;
        let opened = self.listen(general).await;
        if opened.is_err() && former.is_some() {
            self.export(former.as_ref()).await;
        }
        opened
    }

    /// Opens what a configuration asks for. Where our own port is in the way it is closed first,
    /// and opened again if the other one cannot be had all the same; who connects just then is
    /// refused.
    async fn listen(&mut self, general: &General) -> Result<Listeners, String> {
        match self.listening.open(general) {
            Err(Refused::InOwnWay(_)) => {}
            opened => return opened.map_err(|refused| refused.to_string()),
        }
        let (port, others) = self.listening.without_port();
        self.workers.listen(others).await;
        let refused = match self.listening.open(general) {
            Ok(listeners) => return Ok(listeners),
            Err(refused) => refused.to_string(),
        };
        match port.map(|port| self.listening.with_port(port, &general.tcp)) {
            Some(Ok(again)) => self.workers.listen(again).await,
            Some(Err(why)) => return Err(format!("{refused}; {why}")),
            None => {}
        }
        Err(refused)
    }

    /// A worker has to know what stands behind the names of a database.
    fn judge_catalogue(&self, worker: usize, rows: CatalogueRows) {
        let workers = self.workers.clone();
        tokio::spawn(async move {
            let database = rows.database().clone();
            let loud = spawn_blocking(move || Arc::new(rows.loud())).await;
            let read = loud.map_err(|error| error.to_string());
            workers.tell(worker, Mail::Catalogue(database, read));
        });
    }

    /// A client of the console, which is `asker` in the log, has given a command.
    async fn console(&mut self, worker: usize, client: ClientId, asker: Asker, text: &[u8]) {
        let Some(snapshot) = self.workers.snapshot().await else { return };
        let order = pgweir_control::order(text, &self.explained);
        // Its reply says how it went; the others end their own client.
        let done = match &order {
            Some(Order::Reload) => self.reload(asker).await,
            Some(Order::Set(change)) => self.set(asker, change),
            Some(Order::Drain | Order::ShutDown) | None => Ok(()),
        };
        let state = State {
            snapshot: &snapshot,
            taken: calendar(),
            rates: &self.rates,
            config: &self.explained,
            demands: &self.demands,
            resident_bytes: resident_bytes(),
        };
        let mut reply = Vec::new();
        pgweir_control::answer(text, &state, done, &mut reply);
        self.workers.tell(worker, Mail::ConsoleReply(client, reply));
        if let Some(order) = order {
            self.carry_out(order, asker);
        }
    }

    fn carry_out(&mut self, order: Order, asker: Asker) {
        match (order, &self.ending) {
            (Order::Drain, Ending::No) => self.drain(asker),
            // It says what for, so that the second time means no more than the first.
            (Order::Drain, Ending::Draining(_) | Ending::Now) => {}
            (Order::ShutDown, _) => self.end_for(asker, Mailboxes::shut_down),
            (Order::Reload | Order::Set(_), _) => {}
        }
    }

    /// Clients may finish what they have begun.
    fn drain(&mut self, asker: Asker) {
        let (client, signal) = (asker.client(), asker.signal());
        tracing::info!(client, signal, "ending: clients may finish their transactions");
        notify(notify::State::Stopping);
        // Another pgweir may come in our place.
        self.exporting.stop();
        self.ending = Ending::Draining(Box::pin(tokio::time::sleep(self.shutdown_timeout)));
        self.workers.tell_all(|| Mail::Drain);
    }

    /// Somebody does not want to wait for anybody.
    fn end_for(&mut self, asker: Asker, how: fn(&Mailboxes)) {
        if !matches!(self.ending, Ending::Now) {
            let (client, signal) = (asker.client(), asker.signal());
            tracing::info!(client, signal, "ending: clients are disconnected");
        }
        self.end(how);
    }

    /// Nobody may finish anything.
    fn end(&mut self, how: fn(&Mailboxes)) {
        if matches!(self.ending, Ending::No) {
            notify(notify::State::Stopping);
        }
        self.exporting.stop();
        self.ending = Ending::Now;
        how(&self.workers);
    }
}

/// How long a file is not looked at.
fn pause_between_looks(autoreload: Option<Duration>) -> Sleep {
    tokio::time::sleep(autoreload.unwrap_or(Duration::MAX))
}

/// Waits until no worker has a client left.
async fn drained(workers: &Mailboxes) {
    while workers.clients_left().await > 0 {
        tokio::time::sleep(TICK / 4).await;
    }
}

/// How near the end of the process is.
enum Ending {
    /// Nobody has asked for it.
    No,
    /// Clients may finish, until then.
    Draining(Pin<Box<Sleep>>),
    /// The workers were told to end.
    Now,
}

impl Ending {
    fn is_draining(&self) -> bool {
        matches!(self, Self::Draining(_))
    }

    /// Waits until clients have had their time.
    async fn time_is_over(&mut self) {
        match self {
            Self::Draining(deadline) => deadline.await,
            Self::No | Self::Now => pending().await,
        }
    }
}

/// Who has asked for something, as the log has it.
#[derive(Clone, Copy)]
enum Asker {
    /// This client of the console, by the number that it has there.
    Client(i32),
    /// The file has changed, and is looked at.
    File,
    /// The signal of this name.
    Signal(&'static str),
}

impl Asker {
    fn client(self) -> Option<i32> {
        match self {
            Self::Client(number) => Some(number),
            Self::File | Self::Signal(_) => None,
        }
    }

    fn signal(self) -> Option<&'static str> {
        match self {
            Self::Signal(name) => Some(name),
            Self::Client(_) | Self::File => None,
        }
    }
}

/// What a signal asks for, and its name where the log has it.
enum Asked {
    Drain(&'static str),
    Reload(&'static str),
    Stop(&'static str),
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
            _ = self.hangup.recv() => Asked::Reload("SIGHUP"),
            _ = self.interrupt.recv() => Asked::Drain("SIGINT"),
            _ = self.quit.recv() => Asked::Stop("SIGQUIT"),
            _ = self.terminate.recv() => Asked::Drain("SIGTERM"),
        }
    }
}

/// How many workers there are to be.
pub(crate) fn worker_threads(general: &General) -> usize {
    general.worker_threads.map_or_else(processors, |count| count as usize)
}

/// How many processors there are to run on.
pub(crate) fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Goes on with as many workers as there are: another number takes a restart, which is told.
fn keep_worker_threads(count: usize, loaded: &mut Loaded) {
    let Loaded { config, explained, source } = loaded;
    let wanted = worker_threads(&config.general);
    if wanted == count {
        return;
    }
    config.general.worker_threads = u32::try_from(count).ok();
    for one in explained.iter_mut().filter(|one| one.key == "general.worker_threads") {
        one.value = Some(count.to_string());
        config.warnings.push(Warning(Problem {
            file: source.path().to_owned(),
            line: one.line,
            key: one.key.clone(),
            message: format!("{wanted} takes a restart: there are {count} until then"),
        }));
    }
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}

#[expect(clippy::disallowed_methods, reason = "the console shows times of the calendar")]
fn calendar() -> SystemTime {
    SystemTime::now()
}
