//! TLS at the server's end, from the first octet.

use std::io;
use std::sync::Arc;

use inhost_base::Duration;
use inhost_common::Clock;
use inhost_common::tls::{TlsError, server_config};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// A certificate with its key.
#[derive(Clone)]
pub struct TlsServer(TlsAcceptor);

impl TlsServer {
    /// From the PEM texts of a certificate chain and its key.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<TlsServer, TlsError> {
        Ok(TlsServer(TlsAcceptor::from(Arc::new(server_config(chain, key)?))))
    }
    /// A handshake, for which a client has 30 seconds.
    pub async fn accept<S>(&self, stream: S, clock: &impl Clock) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let late = async {
            clock.sleep_until(clock.now() + HANDSHAKE).await;
            Err(io::ErrorKind::TimedOut.into())
        };
        futures_lite::future::or(self.0.accept(stream), late).await
    }
}
