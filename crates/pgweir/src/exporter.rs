//! Metrics over HTTP, for Prometheus and whatever reads like it.
//!
//! Few readers are served at a time, each for a short while and for one request, and all who ask
//! within a second are told the same: however many come, and however slow they are, they hold up
//! neither traffic nor the end of the process, and take a known number of descriptors.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use pgweir_config::{Exporter, General};
use pgweir_proxy::Mailboxes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};

use crate::resident::resident_bytes;

/// So many are served at once; others wait until one is done.
pub(crate) const READERS: usize = 8;

/// So long one may take to ask.
const ASKING: Duration = Duration::from_secs(2);

/// So long one may take for all of it. Prometheus waits no longer either, if it is not told to.
const TIME: Duration = Duration::from_secs(10);

/// So long all are told the same: workers have better things to do than to count.
const FRESH: Duration = Duration::from_secs(1);

/// Where the system has no descriptor left, or no memory, it is asked again so much later.
const PAUSE: Duration = Duration::from_secs(1);

/// Where metrics are.
const PATH: &str = "/metrics";

const TEXT: &str = "text/plain; charset=utf-8";

/// They are written as OpenMetrics 1.0 has it.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What serves metrics, if anything does.
#[derive(Debug, Default)]
pub(crate) struct Exporting(Option<Serving>);

#[derive(Debug)]
struct Serving {
    at: Exporter,
    /// It has the socket and all connections, which end with it.
    task: JoinHandle<()>,
}

/// A port that is listened on, where nobody is served yet.
#[derive(Debug)]
pub(crate) struct Opened {
    at: Exporter,
    listener: TcpListener,
}

impl Opened {
    /// Listens there.
    ///
    /// # Errors
    ///
    /// Where that cannot be had, in words.
    pub(crate) async fn at(at: &Exporter) -> Result<Self, String> {
        let listener = TcpListener::bind((&*at.host, at.port)).await.map_err(|error| {
            format!("metrics cannot be served at {}:{}: {error}", at.host, at.port)
        })?;
        Ok(Self { at: at.clone(), listener })
    }
}

impl Exporting {
    /// Serves what these workers do. To be called within the runtime.
    pub(crate) fn serve(&mut self, opened: Opened, workers: &Mailboxes) {
        let Opened { at, listener } = opened;
        if let Ok(address) = listener.local_addr() {
            tracing::info!("metrics are served at http://{address}{PATH}");
        }
        let source = Source { workers: workers.clone(), told: Mutex::default() };
        let task = tokio::spawn(serve(listener, Arc::new(source)));
        self.0 = Some(Serving { at, task });
    }

    /// Whether that is served already which a configuration wants.
    pub(crate) fn is_at(&self, wanted: Option<&Exporter>) -> bool {
        self.0.as_ref().map(|serving| &serving.at) == wanted
    }

    /// Serves from now on where a configuration wants it, and nowhere else.
    ///
    /// # Errors
    ///
    /// Where that cannot be listened on, in words. What was served goes on, unless it had the same
    /// port of another address.
    pub(crate) async fn renew(
        &mut self,
        wanted: Option<&Exporter>,
        workers: &Mailboxes,
    ) -> Result<(), String> {
        let Some(at) = wanted else {
            self.end().await;
            return Ok(());
        };
        // Both may be the same port of one machine.
        self.end_at(at.port).await;
        let opened = Opened::at(at).await?;
        self.end().await;
        self.serve(opened, workers);
        Ok(())
    }

    /// Leaves its port to clients, if they are to have it: where it was.
    pub(crate) async fn make_way(&mut self, general: &General) -> Option<Exporter> {
        if general.host.is_empty() {
            return None;
        }
        self.end_at(general.port).await
    }

    /// Ends at once what is served; its port is free soon.
    pub(crate) fn stop(&mut self) {
        if let Some(Serving { task, .. }) = self.0.take() {
            task.abort();
        }
    }

    /// Ends what is served at this port: where it was. The port is free then.
    async fn end_at(&mut self, port: u16) -> Option<Exporter> {
        self.0.as_ref().filter(|serving| serving.at.port == port)?;
        self.end().await
    }

    async fn end(&mut self) -> Option<Exporter> {
        let Serving { at, task } = self.0.take()?;
        task.abort();
        // It is over, one way or the other.
        let _ = task.await;
        Some(at)
    }
}

/// Where texts come from.
struct Source {
    workers: Mailboxes,
    /// What was told last, and when.
    told: Mutex<Option<(Instant, Bytes)>>,
}

impl Source {
    /// What is to be told now; `None`: nothing any more, the workers end.
    async fn text(&self) -> Option<Bytes> {
        let mut told = self.told.lock().await;
        if let Some((at, text)) = &*told
            && at.elapsed() < FRESH
        {
            return Some(text.clone());
        }
        let snapshot = self.workers.snapshot().await?;
        let text = spawn_blocking(|| pgweir_control::metrics(snapshot, resident_bytes()));
        let text = Bytes::from(text.await.ok()?);
        *told = Some((Instant::now(), text.clone()));
        Some(text)
    }
}

/// Serves whoever comes.
async fn serve(listener: TcpListener, source: Arc<Source>) {
    let places = Arc::new(Semaphore::new(READERS));
    let mut readers = JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        while readers.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let source = Arc::clone(&source);
                readers.spawn(async move {
                    // Whoever is too slow, or goes away, has heard all that it will.
                    let _ = timeout(TIME, serve_one(stream, &source)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!("metrics: a connection was not accepted: {error}");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Answers one request: the next comes over another connection.
async fn serve_one(stream: TcpStream, source: &Source) -> hyper::Result<()> {
    let service = service_fn(async |request| Ok::<_, Infallible>(answer(&request, source).await));
    http1::Builder::new()
        .half_close(true)
        .header_read_timeout(ASKING)
        .keep_alive(false)
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await
}

async fn answer(request: &Request<Incoming>, source: &Source) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH {
        let elsewhere = format!("try {PATH}\n");
        return says(StatusCode::NOT_FOUND, (CONTENT_TYPE, TEXT), elsewhere.into());
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return says(StatusCode::METHOD_NOT_ALLOWED, (ALLOW, "GET, HEAD"), Bytes::new());
    }
    match source.text().await {
        Some(text) => says(StatusCode::OK, (CONTENT_TYPE, OPEN_METRICS), text),
        None => {
            let ends = Bytes::from_static(b"pgweir is about to end\n");
            says(StatusCode::SERVICE_UNAVAILABLE, (CONTENT_TYPE, TEXT), ends)
        }
    }
}

fn says(
    status: StatusCode,
    (name, value): (HeaderName, &'static str),
    text: Bytes,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text));
    *response.status_mut() = status;
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}
