//! TLS for SMTP: certificates of servers, and what a client believes.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

pub use inhost_common::tls::TlsError;
use inhost_common::tls::{AnyCertificate, certificates, provider, server_config};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
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
        let builder = || {
            ClientConfig::builder_with_provider(provider())
                .with_safe_default_protocol_versions()
                .map_err(TlsError::Config)
        };
        let verified = builder()?.with_root_certificates(roots).with_no_client_auth();
        let anyone = Arc::new(AnyCertificate::new(provider()));
        let unverified =
            builder()?.dangerous().with_custom_certificate_verifier(anyone).with_no_client_auth();
        Ok(TlsClient {
            verified: TlsConnector::from(Arc::new(verified)),
            unverified: TlsConnector::from(Arc::new(unverified)),
        })
    }
    /// The authorities of the system and those of `file` in PEM, which is read; it may wait for the disk.
    pub fn with_system_roots(file: Option<&Path>) -> Result<TlsClient, TlsError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = file {
            let pem = std::fs::read(path)
                .map_err(|error| TlsError::Pem(format!("cannot read {}: {error}", path.display())))?;
            roots.add_parsable_certificates(certificates(&pem)?);
        }
        TlsClient::new(roots)
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
pub(super) enum MaybeTls<S> {
    Clear(S),
    Tls(Box<TlsStream<S>>),
}

impl<S> MaybeTls<S> {
    /// Version and cipher.
    pub fn describe(&self) -> Option<String> {
        let MaybeTls::Tls(stream) = self else { return None };
        let (_, tls) = stream.get_ref();
        let version = tls.protocol_version().map_or("TLS".into(), |version| format!("{version:?}"));
        let suite = tls.negotiated_cipher_suite().map_or(String::new(), |s| format!("{:?}", s.suite()));
        // As others write them: TLSv1.3 TLS_AES_256_GCM_SHA384.
        Some(format!("{} {}", version.replace('_', "."), suite.replace("TLS13_", "TLS_")))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for MaybeTls<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            MaybeTls::Clear(stream) => Pin::new(stream).poll_read(cx, buf),
            MaybeTls::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for MaybeTls<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            MaybeTls::Clear(stream) => Pin::new(stream).poll_write(cx, octets),
            MaybeTls::Tls(stream) => Pin::new(stream).poll_write(cx, octets),
        }
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            MaybeTls::Clear(stream) => Pin::new(stream).poll_flush(cx),
            MaybeTls::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            MaybeTls::Clear(stream) => Pin::new(stream).poll_shutdown(cx),
            MaybeTls::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
