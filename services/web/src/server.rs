//! The connections of a site on a host.

use std::rc::Rc;

use futures_lite::future::or;
use inhost_base::{Duration, Endpoint};
use inhost_common::{AdmissionLimits, LocalFuture, Permit};
use inhost_socket::{Host, Stream};
use tracing::debug;

use crate::driver::{ConnectionError, serve_connection};
use crate::{Config, Site};

/// How long, and for how many bytes, a client may go on to send a request that is answered already. Closing over unread
/// input would reset the connection, and the response could be lost with it.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 4 << 20;

/// Limits for the pages of one developer: 128 connections, 64 of one peer, 6000 of one peer in a minute. A browser opens
/// six at a time, and a test may open one for each request.
pub const LIMITS: AdmissionLimits = AdmissionLimits::per_minute(128, 64, 6000);

/// Serves the requests of a connection, for [`Doors::listen`](inhost_common::service::Doors::listen).
pub fn sessions(
    host: &Host,
    site: Rc<dyn Site>,
    config: Config,
) -> impl Fn(Stream, Endpoint, Permit) -> LocalFuture<()> + 'static {
    let (host, config) = (host.clone(), Rc::new(config));
    move |stream, caller, permit| {
        Box::pin(session(host.clone(), stream, caller, permit, site.clone(), config.clone()))
    }
}

async fn session(
    host: Host,
    stream: Stream,
    caller: Endpoint,
    permit: Permit,
    site: Rc<dyn Site>,
    config: Rc<Config>,
) {
    // A response's last piece waits for nobody; and what waits for a reader is bounded.
    stream.set_nagle(false);
    stream.set_send_buffer_limit(config.unread_bytes);
    let (draining, closed) = (host.clone(), &permit);
    let end = or(async move { draining.draining().await }, async move {
        std::future::poll_fn(|context| closed.poll_over(context)).await;
    });
    let clock = Rc::new(host.clone());
    let done = serve_connection(&stream, caller, site, config, clock, end).await;
    if let Err(why) = done {
        debug!(target: "web", peer = %caller.address, "{why}");
    }
    finish(&host, &stream, done).await;
}

/// Resets a connection whose client took too long; with another it waits a while for the client to close.
pub async fn finish(host: &Host, stream: &Stream, done: Result<(), ConnectionError>) {
    if done == Err(ConnectionError::TooSlow) {
        return stream.abort();
    }
    stream.shutdown();
    let discard = async {
        let (mut place, mut discarded) = ([0; 2048], 0);
        while let Ok(count) = stream.receive(&mut place).await
            && count > 0
            && discarded < LINGER_BYTES
        {
            discarded += count;
        }
    };
    let _ = host.timeout(LINGER, discard).await;
}
