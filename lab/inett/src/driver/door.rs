//! The server's listener: the next connection, and the clients that come while a test runs.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use inhost_base::{Duration, Endpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::within;
use crate::face::Face;
use crate::iperf3::State;

/// Connections that are told that the server is busy, at the same time; more are closed without a word.
const LEAVING_MAX: usize = 16;
/// Time that a connection that was told so has to close.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);
/// Pause after an error of the listener.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// The next connection and its peer; `None` after an error of the listener and a pause. An error such as a lack of descriptors
/// stays for a while, and a loop without a pause would use a whole processor.
pub async fn accept<F: Face>(face: &F, listener: &F::Listener) -> Option<(F::Stream, Endpoint)> {
    match face.accept(listener).await {
        Ok(accepted) => Some(accepted),
        Err(_) => {
            face.sleep_until(face.now() + AFTER_ERROR).await;
            None
        }
    }
}

/// The listener while a client is served.
pub struct Door<'a, F: Face> {
    face: &'a F,
    listener: &'a F::Listener,
    leaving: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + 'a>>>,
}

impl<'a, F: Face> Door<'a, F> {
    /// For one client.
    pub fn new(face: &'a F, listener: &'a F::Listener) -> Door<'a, F> {
        Door { face, listener, leaving: FuturesUnordered::new() }
    }
    /// The next connection and its peer, as [`accept`].
    pub async fn accept(&self) -> Option<(F::Stream, Endpoint)> {
        accept(self.face, self.listener).await
    }
    /// Tells each client that comes that the server is busy.
    pub async fn deny_all(&mut self) -> Infallible {
        loop {
            let accepted = tokio::select! {
                biased;
                Some(()) = self.leaving.next(), if !self.leaving.is_empty() => None,
                accepted = accept(self.face, self.listener) => accepted,
            };
            if let Some((stream, _)) = accepted {
                self.deny(stream);
            }
        }
    }
    /// Tells a client that the server is busy.
    pub fn deny(&mut self, mut stream: F::Stream) {
        if self.leaving.len() >= LEAVING_MAX {
            return;
        }
        let face = self.face;
        self.leaving.push(Box::pin(async move {
            let leave = async {
                stream.write_all(&[State::AccessDenied.byte()]).await?;
                stream.shutdown().await?;
                // Closing over what it sent would reset the connection, and the byte could be lost with it.
                let mut rest = [0; 256];
                while stream.read(&mut rest).await? > 0 {}
                io::Result::Ok(())
            };
            let _ = within(face, LEAVE_WITHIN, leave).await;
        }));
    }
}
