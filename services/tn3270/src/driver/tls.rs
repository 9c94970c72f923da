//! TLS of both ends, from the first octet.

use std::io;
use std::path::Path;
use std::sync::Arc;

use inhost_base::Duration;
use inhost_common::Clock;
use inhost_common::tls::{
    AnyCertificate, TlsError, client_of, client_of_system, client_with, provider, server_config,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client};

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

/// What a client believes of servers.
#[derive(Clone)]
pub struct TlsClient(TlsConnector);

impl TlsClient {
    /// Servers are believed that an authority of `roots` has certified.
    pub fn new(roots: RootCertStore) -> Result<TlsClient, TlsError> {
        Ok(TlsClient::of(client_of(roots)?))
    }
    fn of(config: ClientConfig) -> TlsClient {
        TlsClient(TlsConnector::from(Arc::new(config)))
    }
    /// The authorities of the system and those of `file` in PEM, which is read; it may wait for the disk.
    pub fn with_system_roots(file: Option<&Path>) -> Result<TlsClient, TlsError> {
        Ok(TlsClient::of(client_of_system(file)?))
    }
    /// Every server is believed: it keeps out those who listen, not those who stand between.
    pub fn unverified() -> Result<TlsClient, TlsError> {
        Ok(TlsClient::of(client_with(Arc::new(AnyCertificate::new(provider())))?))
    }
    /// A handshake with the server of this name or address, for which it has 30 seconds.
    pub async fn connect<S>(
        &self,
        stream: S,
        name: &str,
        clock: &impl Clock,
    ) -> io::Result<client::TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(io::Error::other)?;
        let late = async {
            clock.sleep_until(clock.now() + HANDSHAKE).await;
            Err(io::ErrorKind::TimedOut.into())
        };
        futures_lite::future::or(self.0.connect(name, stream), late).await
    }
}
