//! Metrics over HTTP, for Prometheus and whatever reads like it.
//!
//! Few readers are served at a time, each for a short while and for one request: metrics hold up
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
use pgweir_config::Exporter;
use pgweir_proxy::Mailboxes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::run::resident_bytes;

/// So many are served at once; others wait until one is done.
pub(crate) const READERS: usize = 8;

/// So long one may take to ask, and to take what it is told.
const TIME: Duration = Duration::from_secs(10);

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

impl Exporting {
    /// Serves from now on where a configuration wants it. What was served elsewhere ends before, so
    /// that our own port is in nobody's way.
    ///
    /// # Errors
    ///
    /// Where that cannot be listened on, in words; nothing is served then.
    pub(crate) async fn renew(
        &mut self,
        wanted: Option<&Exporter>,
        workers: &Mailboxes,
    ) -> Result<(), String> {
        if self.0.as_ref().map(|serving| &serving.at) == wanted {
            return Ok(());
        }
        if let Some(Serving { task, .. }) = self.0.take() {
            task.abort();
            // It is over, one way or the other.
            let _ = task.await;
        }
        let Some(at) = wanted else { return Ok(()) };
        let listener = TcpListener::bind((&*at.host, at.port)).await.map_err(|error| {
            format!("metrics cannot be served at {}:{}: {error}", at.host, at.port)
        })?;
        tracing::info!("metrics are served at http://{}:{}{PATH}", at.host, at.port);
        let task = tokio::spawn(serve(listener, workers.clone()));
        self.0 = Some(Serving { at: at.clone(), task });
        Ok(())
    }
}

/// Serves whoever comes.
async fn serve(listener: TcpListener, workers: Mailboxes) {
    let places = Arc::new(Semaphore::new(READERS));
    let mut readers = JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        while readers.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let workers = workers.clone();
                readers.spawn(async move {
                    // Whoever is too slow, or goes away, has heard all that it will.
                    let _ = timeout(TIME, serve_one(stream, &workers)).await;
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
async fn serve_one(stream: TcpStream, workers: &Mailboxes) -> hyper::Result<()> {
    let service = service_fn(async |request| Ok::<_, Infallible>(answer(&request, workers).await));
    http1::Builder::new()
        .keep_alive(false)
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await
}

async fn answer(request: &Request<Incoming>, workers: &Mailboxes) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH {
        return says(StatusCode::NOT_FOUND, (CONTENT_TYPE, TEXT), format!("try {PATH}\n"));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return says(StatusCode::METHOD_NOT_ALLOWED, (ALLOW, "GET, HEAD"), String::new());
    }
    match workers.snapshot().await {
        Some(snapshot) => {
            let metrics = pgweir_control::metrics(snapshot, resident_bytes());
            says(StatusCode::OK, (CONTENT_TYPE, OPEN_METRICS), metrics)
        }
        None => {
            let ends = "pgweir is about to end\n".to_owned();
            says(StatusCode::SERVICE_UNAVAILABLE, (CONTENT_TYPE, TEXT), ends)
        }
    }
}

fn says(
    status: StatusCode,
    (name, value): (HeaderName, &'static str),
    text: String,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}
