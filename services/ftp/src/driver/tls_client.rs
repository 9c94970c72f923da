//! TLS from the client's end.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use inhost_common::tls::{AnyCertificate, KnownCertificate, client_with, provider};
use rustls::client::{ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConnection, NamedGroup};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{TlsError, TlsStream};

/// Tickets that are kept for data connections to come.
const TICKETS: usize = 16;

/// Whose certificates count.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Those that these authorities have signed, and these themselves: servers of one's own often sign theirs
    /// themselves.
    Authorities(Vec<CertificateDer<'static>>),
    /// Any: encrypted, and to whomever.
    Anybody,
}

impl Trust {
    /// The authorities of a text in PEM; what is not a certificate is passed over.
    pub fn from_pem(pem: &[u8]) -> Trust {
        Trust::Authorities(CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect())
    }
}

/// One control connection's TLS, and that of its data connections, which resume it.
#[derive(Clone)]
pub struct TlsClient {
    config: Arc<rustls::ClientConfig>,
    name: ServerName<'static>,
}

impl TlsClient {
    /// For a server of this name or address.
    pub fn new(name: &str, trust: &Trust) -> Result<TlsClient, TlsError> {
        let mut config = match trust {
            Trust::Anybody => client_with(Arc::new(AnyCertificate::new(provider())))?,
            Trust::Authorities(known) => {
                client_with(Arc::new(KnownCertificate::new(&[], known.clone())?.under_any_name()))?
            }
        };
        config.resumption = Resumption::store(Arc::new(Tickets::default()));
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| TlsError::Pem(format!("{name} is not a name that a certificate can bear")))?;
        Ok(TlsClient { config: Arc::new(config), name })
    }

    /// The same, with no session to resume.
    pub(super) fn without_tickets(self) -> TlsClient {
        let mut config = (*self.config).clone();
        config.resumption = Resumption::disabled();
        TlsClient { config: Arc::new(config), ..self }
    }

    /// The configuration and the server's name, for a connection that is not of FTP.
    pub fn parts(&self) -> (Arc<rustls::ClientConfig>, ServerName<'static>) {
        (self.config.clone(), self.name.clone())
    }
    /// Does a handshake.
    pub(super) async fn connect<S>(&self, io: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let connection =
            ClientConnection::new(self.config.clone(), self.name.clone()).map_err(io::Error::other)?;
        TlsStream::handshake(io, connection.into(), false).await
    }
}

/// The sessions of one control connection. A ticket of TLS 1.3 serves once; the data connection that it served brings
/// another, which has to be read also where data goes the other way, or they run out after a few uploads.
#[derive(Default)]
struct Tickets {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl Tickets {
    fn with<T>(&self, work: impl FnOnce(&mut Kept) -> T) -> T {
        work(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets")
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.with(|kept| kept.group = Some(group));
    }
    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.with(|kept| kept.group)
    }
    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.with(|kept| kept.tls12 = Some(value));
    }
    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.with(|kept| kept.tls12.clone())
    }
    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.with(|kept| kept.tls12 = None);
    }
    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.with(|kept| {
            if kept.tls13.len() == TICKETS {
                kept.tls13.pop_front();
            }
            kept.tls13.push_back(value);
        });
    }
    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        // The newest lives longest; the older ones are for when a server gives none in return.
        self.with(|kept| kept.tls13.pop_back())
    }
}
