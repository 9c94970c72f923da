//! TLS for SMTP: certificates of servers, and what a client believes.

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use inhost_common::tls::TlsError;
use inhost_common::tls::{AnyCertificate, client_of, client_of_system, client_with, provider, server_config};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// A server's certificate with its key.
#[derive(Clone)]
pub struct TlsServer(TlsAcceptor);

impl TlsServer {
    /// From the PEM texts of a certificate chain and its key.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<TlsServer, TlsError> {
        let config = server_config(chain, key)?;
        Ok(TlsServer(TlsAcceptor::from(Arc::new(config))))
    }
    pub(super) async fn accept<S>(&self, stream: S) -> io::Result<MaybeTls<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        Ok(MaybeTls::Tls(Box::new(self.0.accept(stream).await?.into())))
    }
}

/// What a client believes of servers.
#[derive(Clone)]
pub struct TlsClient {
    verified: TlsConnector,
    unverified: TlsConnector,
}

impl TlsClient {
    /// Servers are believed that an authority of `roots` has certified.
    pub fn new(roots: RootCertStore) -> Result<TlsClient, TlsError> {
        TlsClient::of(client_of(roots)?)
    }
    fn of(verified: ClientConfig) -> Result<TlsClient, TlsError> {
        let unverified = client_with(Arc::new(AnyCertificate::new(provider())))?;
        let connector = |config| TlsConnector::from(Arc::new(config));
        Ok(TlsClient { verified: connector(verified), unverified: connector(unverified) })
    }
    /// The authorities of the system and those of `file` in PEM, which is read; it may wait for the disk.
    pub fn with_system_roots(file: Option<&Path>) -> Result<TlsClient, TlsError> {
        TlsClient::of(client_of_system(file)?)
    }
    /// A handshake with the server `name`; with `verified` its certificate has to be right.
    pub(super) async fn connect<S>(&self, stream: S, name: &str, verified: bool) -> io::Result<MaybeTls<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(io::Error::other)?;
        let connector = if verified { &self.verified } else { &self.unverified };
        Ok(MaybeTls::Tls(Box::new(connector.connect(name, stream).await?.into())))
    }
}

/// A stream, in TLS or not.
pub(super) type MaybeTls<S> = inhost_common::tls::MaybeTls<S, TlsStream<S>>;

/// Version and cipher.
pub(super) fn describe<S>(stream: &MaybeTls<S>) -> Option<String> {
    let MaybeTls::Tls(stream) = stream else { return None };
    let (_, tls) = stream.get_ref();
    let version = tls.protocol_version().map_or("TLS".into(), |version| format!("{version:?}"));
    let suite = tls.negotiated_cipher_suite().map_or(String::new(), |s| format!("{:?}", s.suite()));
    // As others write them: TLSv1.3 TLS_AES_256_GCM_SHA384.
    Some(format!("{} {}", version.replace('_', "."), suite.replace("TLS13_", "TLS_")))
}
