//! TLS of services: a certificate and its key from files, a client that takes any certificate, and a stream in TLS or not.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
    WantsVerifier,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Urgent;
use crate::service::Problem;

/// Why TLS cannot be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// The certificate or the key cannot be read.
    Pem(String),
    /// They do not belong together, or are none that rustls takes.
    Config(rustls::Error),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Pem(why) => f.write_str(why),
            TlsError::Config(error) => write!(f, "certificate and key cannot be used: {error}"),
        }
    }
}
impl std::error::Error for TlsError {}

/// The cryptography of all services: ring's.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificates of a text in PEM; an error where one of them is not.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    chain.map_err(|error| TlsError::Pem(format!("the certificate is not PEM: {error}")))
}

/// A server's configuration from the PEM texts of a certificate chain and its key.
pub fn server_config(chain: &[u8], key: &[u8]) -> Result<ServerConfig, TlsError> {
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| TlsError::Pem(format!("the key is not PEM: {error}")))?;
    ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Config)?
        .with_no_client_auth()
        .with_single_cert(certificates(chain)?, key)
        .map_err(TlsError::Config)
}

/// Reads a file of the section `service` that nobody else may read; `what` is it, "key" or "password". It waits for the disk.
pub fn read_secret(service: &str, what: &str, path: &Path) -> Result<Vec<u8>, Problem> {
    let shown = path.display();
    let failed = |error| Problem::operation(format!("{service}: cannot read {shown}: {error}"));
    let mode = fs::metadata(path).map_err(failed)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(Problem::operation(format!(
            "{service}: {shown}: others may read this {what}, its mode is {mode:04o}; try chmod 600 {shown}"
        )));
    }
    fs::read(path).map_err(failed)
}

/// The PEM texts of a certificate chain and of its key, which nobody else may read. It waits for the disk.
pub fn read_certificate(
    service: &str,
    certificate: &Path,
    key: &Path,
) -> Result<(Vec<u8>, Vec<u8>), Problem> {
    let failed =
        |error| Problem::operation(format!("{service}: cannot read {}: {error}", certificate.display()));
    let chain = fs::read(certificate).map_err(failed)?;
    Ok((chain, read_secret(service, "key", key)?))
}

/// A client that believes servers which an authority of `roots` has certified.
pub fn client_of(roots: RootCertStore) -> Result<ClientConfig, TlsError> {
    Ok(client()?.with_root_certificates(roots).with_no_client_auth())
}

/// A client that believes the authorities of the system and those of `file` in PEM, and a server with a certificate of that file.
/// It may wait for the disk.
///
/// # Errors
/// The file cannot be read, or has no certificate.
pub fn client_of_system(file: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let authorities = rustls_native_certs::load_native_certs().certs;
    let Some(path) = file else {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities);
        return client_of(roots);
    };
    let pem =
        fs::read(path).map_err(|error| TlsError::Pem(format!("cannot read {}: {error}", path.display())))?;
    client_with(Arc::new(KnownCertificate::new(&authorities, certificates(&pem)?)?))
}

/// A client that believes the servers which `verifier` does.
pub fn client_with(verifier: Arc<dyn ServerCertVerifier>) -> Result<ClientConfig, TlsError> {
    Ok(client()?.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn client() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, TlsError> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Config)
}

/// Takes every certificate, and makes sure that the server has its key: it keeps out those who listen, not those who
/// stand between (RFC 7435).
#[derive(Debug)]
pub struct AnyCertificate(Arc<CryptoProvider>);

impl AnyCertificate {
    /// With the signatures that `provider` knows.
    pub fn new(provider: Arc<CryptoProvider>) -> AnyCertificate {
        AnyCertificate(provider)
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Takes what the authorities have signed, and a certificate that is one of those that were named.
#[derive(Debug)]
pub struct KnownCertificate {
    signed: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
    has_any_name: bool,
}

impl KnownCertificate {
    /// Both `authorities` and `named` certify others; a server may also have one of `named` itself, as one that was signed by
    /// nobody else.
    ///
    /// # Errors
    /// There is no certificate among them that can be read.
    pub fn new(
        authorities: &[CertificateDer<'static>],
        named: Vec<CertificateDer<'static>>,
    ) -> Result<KnownCertificate, TlsError> {
        let mut roots = RootCertStore::empty();
        let (taken, _) = roots.add_parsable_certificates(authorities.iter().chain(&named).cloned());
        if taken == 0 {
            return Err(TlsError::Pem("no certificate authority is known".into()));
        }
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|error| TlsError::Pem(error.to_string()))?;
        Ok(KnownCertificate { signed, named, has_any_name: false })
    }
    /// The same, whatever a server is called that has one of the named certificates itself.
    pub fn under_any_name(self) -> KnownCertificate {
        KnownCertificate { has_any_name: true, ..self }
    }
}

impl ServerCertVerifier for KnownCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.named.iter().any(|named| named.as_ref() == certificate.as_ref()) {
            if !self.has_any_name {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        self.signed.verify_server_cert(certificate, between, name, ocsp, now)
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls12_signature(message, certificate, signed)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls13_signature(message, certificate, signed)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

/// A stream in clear text or in TLS, `S` or `T`.
pub enum MaybeTls<S, T> {
    /// In clear text.
    Clear(S),
    /// In TLS.
    Tls(Box<T>),
}

/// What `call` does with the stream that it is.
macro_rules! with_stream {
    ($stream:expr, $one:ident => $call:expr) => {
        match $stream {
            MaybeTls::Clear($one) => $call,
            MaybeTls::Tls($one) => $call,
        }
    };
}

impl<S: AsyncRead + Unpin, T: AsyncRead + Unpin> AsyncRead for MaybeTls<S, T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        with_stream!(self.get_mut(), stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl<S: AsyncWrite + Unpin, T: AsyncWrite + Unpin> AsyncWrite for MaybeTls<S, T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        with_stream!(self.get_mut(), stream => Pin::new(stream).poll_write(cx, octets))
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_stream!(self.get_mut(), stream => Pin::new(stream).poll_flush(cx))
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_stream!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(cx))
    }
}

impl<S: Urgent + Unpin, T: Urgent + Unpin> Urgent for MaybeTls<S, T> {
    fn poll_send_urgent(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            MaybeTls::Clear(stream) => Pin::new(stream).poll_send_urgent(cx, octets),
            MaybeTls::Tls(stream) => Pin::new(&mut **stream).poll_send_urgent(cx, octets),
        }
    }
    fn urgent_ahead(&self) -> Option<usize> {
        with_stream!(self, stream => stream.urgent_ahead())
    }
}
