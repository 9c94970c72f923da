//! One connection over any stream.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use http::{HeaderName, HeaderValue, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use inhost_base::{Endpoint, Instant};
use inhost_common::{Clock, LocalFuture};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::body::{Outgoing, collect};
use crate::io::Io;
use crate::response::Response;
use crate::watch::{Phase, Watch};
use crate::{Config, Request, Site, guard};

/// The most header fields of a request.
const FIELDS: usize = 64;
/// What hyper takes as the least limit of its buffers, in bytes.
const LEAST_BUFFER_BYTES: usize = 8 << 10;

/// What a page may do unless its response says otherwise: load from its own server, and nothing else.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Fields of every response that do not say them otherwise.
const FIELDS_OF_ALL: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Why a connection ended otherwise than by closing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The client took too long to ask, or to read.
    TooSlow,
    /// The client does not speak HTTP, or is gone.
    Protocol,
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConnectionError::TooSlow => "the client takes too long",
            ConnectionError::Protocol => "not HTTP, or the connection is lost",
        })
    }
}
impl std::error::Error for ConnectionError {}

/// Serves the requests of one connection until it closes. When `end` is ready, the response under way is the last, and
/// one without end comes to its end.
pub async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: Endpoint,
    site: Rc<dyn Site>,
    config: Rc<Config>,
    clock: Rc<dyn Clock>,
    end: impl Future<Output = ()>,
) -> Result<(), ConnectionError> {
    let watch = Watch::new(clock);
    let (watching, settings) = (watch.clone(), config.clone());
    let service =
        service_fn(move |request| respond(request, peer, site.clone(), settings.clone(), watching.clone()));
    let io = Io::new(stream, watch.clone());
    let connection = http1::Builder::new()
        .auto_date_header(false)
        .max_headers(FIELDS)
        .max_header_size(config.head_bytes.max(LEAST_BUFFER_BYTES))
        .max_buf_size(config.unread_bytes.max(config.head_bytes).max(LEAST_BUFFER_BYTES))
        .serve_connection(io, service);
    let (mut connection, mut end) = (pin!(connection), pin!(end));
    let mut alarm: Option<(Instant, LocalFuture<()>)> = None;
    poll_fn(|context| {
        if !watch.is_ending() && end.as_mut().poll(context).is_ready() {
            watch.end();
            connection.as_mut().graceful_shutdown();
        }
        if let Poll::Ready(done) = connection.as_mut().poll(context) {
            return Poll::Ready(done.map_err(|_| ConnectionError::Protocol));
        }
        // The connection has just moved what the deadline depends on. An alarm for an earlier time stays: it finds
        // nothing due.
        while let Some(deadline) = watch.deadline(&config) {
            if watch.clock().now() >= deadline {
                return Poll::Ready(Err(ConnectionError::TooSlow));
            }
            if alarm.as_ref().is_none_or(|(at, _)| *at > deadline) {
                alarm = Some((deadline, watch.clock().sleep_until(deadline)));
            }
            if alarm.as_mut().is_some_and(|(_, sleep)| sleep.as_mut().poll(context).is_pending()) {
                break;
            }
            alarm = None;
        }
        Poll::Pending
    })
    .await
}

/// The response to one request, from its head on.
async fn respond(
    request: hyper::Request<Incoming>,
    peer: Endpoint,
    site: Rc<dyn Site>,
    config: Rc<Config>,
    watch: Rc<Watch>,
) -> Result<hyper::Response<Outgoing>, Infallible> {
    watch.enter(Phase::Body);
    let (head, body) = request.into_parts();
    let asked = async {
        let mut request = Request::new(head.method, head.uri, head.headers, peer)?;
        if let Some(refusal) = guard::refuse(&request, &config) {
            return Err(refusal);
        }
        request.body = collect(body, config.body_bytes).await?;
        Ok(request)
    };
    let response = match asked.await {
        Ok(request) => {
            watch.enter(Phase::Response);
            site.respond(request).await
        }
        Err(refusal) => {
            watch.enter(Phase::Response);
            refusal
        }
    };
    Ok(finish(response, &config, watch))
}

/// A response as hyper takes it, with the fields that all have.
fn finish(response: Response, config: &Config, watch: Rc<Watch>) -> hyper::Response<Outgoing> {
    let Response { status, mut headers, body } = response;
    for (name, value) in FIELDS_OF_ALL {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    let date = config.unix_time.map(|unix_time| std::time::UNIX_EPOCH + unix_time());
    if let Some(Ok(date)) = date.map(|date| HeaderValue::from_str(&httpdate::fmt_http_date(date))) {
        headers.insert(header::DATE, date);
    }
    let mut finished = hyper::Response::new(Outgoing::new(body, watch));
    *finished.status_mut() = status;
    *finished.headers_mut() = *headers;
    finished
}
