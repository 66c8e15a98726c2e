//! The log: what happened, in lines for people or in JSON. Whatever becomes of its lines, nobody
//! who writes one waits for it (`pgweir_sink`).

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pgweir_config::{Config, Demand, LogFormat, LogLevel, LogOptions, Room};
use pgweir_engine::{Address, Ends, Event};
use pgweir_proxy::News;
use pgweir_sink::Sink;
use tracing::field::{DisplayValue, display};
use tracing::level_filters::LevelFilter;
use tracing::{Subscriber, subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer, format};
use tracing_subscriber::fmt::{FmtContext, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, registry, reload};

use crate::demand::in_words;
use crate::text_fields::TextFields;

/// The log of this process.
#[derive(Clone)]
pub(crate) struct Log {
    sink: Sink,
    form: Form,
    level: reload::Handle<LevelFilter, Registry>,
}

impl Log {
    /// Sends what is told from now on to standard error.
    pub(crate) fn start() -> io::Result<Self> {
        let form = Form::default();
        let forms = form.clone();
        let sink = Sink::start(io::stderr(), move |lost| lines_were_lost(&forms, lost))?;
        let (filter, level) = reload::Layer::new(LevelFilter::INFO);
        let lines = sink.clone();
        registry().with(filter).with(layer(form.clone(), move || lines.clone())).init();
        Ok(Self { sink, form, level })
    }

    /// Goes on as these options say.
    pub(crate) fn set(&self, options: LogOptions) {
        self.form.json.store(options.format == LogFormat::Json, Ordering::Relaxed);
        let level = match options.level {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
        };
        // It fails only where there is no log any more.
        let _ = self.level.reload(level);
    }

    /// Writes down a panic, and what was told before it, unless that takes long.
    pub(crate) fn panicked(&self, panic: &PanicHookInfo<'_>) {
        tracing::error!("{panic}");
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            backtrace.to_string().lines().for_each(|line| tracing::error!("{line}"));
        }
        self.flush();
    }

    /// Waits until all is written, unless that takes long.
    pub(crate) fn flush(&self) {
        self.sink.flush();
    }
}

/// Writes a line for each setting of a configuration that has no effect.
pub(crate) fn warn(config: &Config) {
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
}

/// Tells of something that happened on a worker; `demands` is what the configuration may open.
pub(crate) fn tell(news: &News, demands: &[Demand]) {
    match news {
        News::AcceptFailed(cause, times) => {
            tracing::error!(%cause, times, "cannot accept a client");
        }
        News::ListenFailed(cause) => {
            tracing::error!(%cause, "a listener is not as the configuration has it");
        }
        News::NoSockDiag(cause) => tracing::warn!(
            %cause,
            "tcp_user_timeout has no effect, because the kernel cannot be asked about connections"
        ),
        News::Log(event) => tell_event(event, demands),
        News::Catalogue { .. } | News::Console { .. } | News::Ended(_) => {}
    }
}

/// The numbers of clients and servers are those that the console shows.
fn tell_event(event: &Event, demands: &[Demand]) {
    match event {
        Event::ClientConnected { client, ends, database, user } => tracing::info!(
            client,
            pool = %format_args!("{database}/{user}"),
            from = from(ends),
            "logged in"
        ),
        Event::ClientLeft { client, pool, cause } => {
            tracing::info!(%cause, client, pool = pool.as_deref(), "left");
        }
        Event::LoginRefused { client, ends, pool, cause } => tracing::warn!(
            cause = cause.as_str(),
            client,
            pool = pool.as_deref(),
            from = from(ends),
            "login refused"
        ),
        Event::ClientEnded { client, pool, cause } => {
            tracing::warn!(cause = cause.as_str(), client, pool = pool.as_str(), "client ended");
        }
        Event::WaitOver { client, pool, cause, times } => tracing::warn!(
            cause = cause.as_str(),
            client,
            pool = pool.as_str(),
            times,
            "no server within query_wait_timeout"
        ),
        Event::PinIdle { server, client, pool, pins } => tracing::warn!(
            cause = pins.as_str(),
            server,
            client,
            pool = pool.as_str(),
            "a client is silent and keeps a server for what it has left there"
        ),
        Event::ServerRefused { server, pool, address, cause } => tracing::warn!(
            cause = cause.as_str(),
            server,
            pool = pool.as_str(),
            %address,
            "no connection to the server"
        ),
        Event::ServerLost { server, client, pool, cause } => tracing::warn!(
            cause = cause.as_str(),
            server,
            client,
            pool = pool.as_str(),
            "a server connection was lost"
        ),
        Event::CancelInDoubt { server, client, pool, cause } => tracing::warn!(
            cause = cause.as_str(),
            server,
            client,
            pool = pool.as_str(),
            "a cancel may still hit a server connection, which is not used again"
        ),
        Event::CatalogueUnread { address, database, cause } => tracing::warn!(
            cause = cause.as_str(),
            %address,
            database = database.as_str(),
            "what functions do to sessions is not known, because the catalogue could not be read"
        ),
        Event::RoomKnown { address, room } => tell_room(address, *room, demands),
        Event::Contained { server, client, pool, cause } => tracing::error!(
            cause = cause.as_str(),
            server,
            client,
            pool = pool.as_str(),
            "a server connection was closed, because its replies do not fit what was asked; \
             this is a bug of pgweir, please report it"
        ),
    }
}

/// Tells what a server has room for, and what may be opened there.
fn tell_room(address: &Address, room: Option<Room>, demands: &[Demand]) {
    let Some(room) = room else {
        return tracing::warn!(%address, "the server does not say what it has room for");
    };
    let is_its = |demand: &&Demand| demand.host == address.host && demand.port == address.port;
    // A reload may have dropped it meanwhile.
    let Some(demand) = demands.iter().find(is_its) else { return };
    let words = in_words(demand, Some(room));
    match demand.fits(room) {
        true => tracing::info!("{words}"),
        false => tracing::warn!("{words}"),
    }
}

fn from(ends: &Option<Ends>) -> Option<DisplayValue<Ends>> {
    ends.map(display)
}

/// What the lines look like, which may change.
#[derive(Clone, Default)]
struct Form {
    json: Arc<AtomicBool>,
}

impl<S, N> FormatEvent<S, N> for Form
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        writer: Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> fmt::Result {
        let format = format().with_target(false);
        if self.json.load(Ordering::Relaxed) {
            let json = format.json().flatten_event(true).with_current_span(false);
            json.with_span_list(false).format_event(context, writer, event)
        } else {
            format.format_event(context, writer, event)
        }
    }
}

fn layer<S>(
    form: Form,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let lines = tracing_subscriber::fmt::layer().fmt_fields(TextFields).event_format(form);
    lines.with_ansi(false).with_writer(writer)
}

/// The line that says that others are missing.
fn lines_were_lost(form: &Form, lines: u64) -> Vec<u8> {
    let page = Page::default();
    let own = page.clone();
    subscriber::with_default(registry().with(layer(form.clone(), move || own.clone())), || {
        tracing::error!(lines, "lines of this log could not be written and are lost");
    });
    std::mem::take(&mut page.0.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Takes a line to have a look at it.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
