//! Logged-in connections, however they are reached and encrypted.

use super::network::ClientNetwork;
use super::show::show_said;
use super::url::Url;
use crate::args::FtpOptions;
use crate::failure::Failure;
use crate::progress::Progress;
use inhost_ftp::client::{ClientError, DataVia, Operation};
use inhost_ftp::driver::{Connection, GetOptions, TlsClient, Trust};
use inhost_runtime::{Reactor, Runtime};
use inhost_socket::Host;
use std::io::IsTerminal;
use std::path::Path;
use std::rc::Rc;

/// Advice when a certificate is not trusted.
pub const CERTIFICATE_ADVICE: &str = "if the server has a self-signed certificate, get that from its operator and \
    name it with --ca FILE; --insecure takes any";

/// A control connection.
pub type Session = Connection<ClientNetwork, Host>;

/// The session factory.
#[derive(Clone)]
pub struct Opener {
    /// Makes connections.
    pub network: Rc<ClientNetwork>,
    /// The clock.
    pub host: Host,
    /// The requested name.
    pub options: FtpOptions,
    /// The signal source.
    pub reactor: Reactor,
    trust: Option<Trust>,
}

/// The user.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

impl Opener {
    /// Reads whose certificates count, if any may be needed.
    pub fn new(
        network: ClientNetwork,
        runtime: &Runtime,
        options: &FtpOptions,
        needs_trust: bool,
    ) -> Result<Opener, Failure> {
        let trust = match (needs_trust, options.insecure) {
            (false, _) => None,
            (true, true) => Some(Trust::Anybody),
            (true, false) => Some(authorities(options.ca.as_deref())?),
        };
        Ok(Opener {
            network: Rc::new(network),
            host: runtime.host().clone(),
            options: options.clone(),
            reactor: runtime.handle().clone(),
            trust,
        })
    }
    /// The display of a transfer.
    pub fn progress(&self, name: &str) -> Progress {
        Progress::new(&self.host, name, self.options.quiet || self.options.json)
    }
    /// Options of file transfers.
    pub fn how(&self) -> GetOptions {
        let mut how = GetOptions::default();
        how.resume = !self.options.no_resume;
        how.hash = !self.options.no_hash;
        how.via = if self.options.active { DataVia::Active } else { DataVia::Passive };
        how.in_place = self.options.in_place;
        how
    }
    /// Connects to the host of a URL, encrypted where that was asked for; nobody is logged in yet.
    pub async fn connect(&self, url: &Url) -> Result<Session, ClientError> {
        let (stream, local, peer) =
            self.network.call(&url.host, url.port).await.map_err(ClientError::Connection)?;
        let tls = match (&self.trust, self.options.tls || url.implicit) {
            (Some(trust), true) => Some(
                TlsClient::new(&url.host, trust).map_err(|e| ClientError::Connection(format!("TLS: {e}")))?,
            ),
            (None, true) => return Err(ClientError::Connection("TLS: begin with --tls".into())),
            (_, false) => None,
        };
        let (network, clock) = (self.network.clone(), self.host.clone());
        let opened = Connection::open(network, clock, stream, (local, peer), tls, url.implicit).await;
        let mut session = opened.map_err(|error| match error {
            ClientError::Connection(why) if why.contains("certificate") => {
                ClientError::Connection(format!("{why}; {CERTIFICATE_ADVICE}"))
            }
            other => other,
        })?;
        if self.options.reach.common.verbose {
            session.set_log(show_said);
        }
        Ok(session)
    }
    /// Connects and logs in.
    pub async fn open(&self, url: &Url, who: &Credentials) -> Result<Session, ClientError> {
        let mut session = self.connect(url).await?;
        self.log_in(&mut session, who).await?;
        Ok(session)
    }
    /// Logs in.
    pub async fn log_in(&self, session: &mut Session, who: &Credentials) -> Result<(), ClientError> {
        let Credentials { user, password } = who.clone();
        let account = self.options.account.clone();
        session.perform(Operation::LogIn { user, password, account }).await.map(|_| ())
    }
}

/// User and password for a URL; asks on a terminal for a password that nobody gave.
pub fn credentials(url: &Url, options: &FtpOptions) -> Result<Credentials, Failure> {
    let user = options.user.clone().or_else(|| url.user.clone());
    let Some(user) = user else {
        return Ok(Credentials { user: "anonymous".into(), password: "anonymous@".into() });
    };
    let given = url.password.clone().or_else(|| std::env::var("INHOST_FTP_PASSWORD").ok());
    let password = match given {
        Some(password) => password,
        None if std::io::stdin().is_terminal() => {
            crate::password::ask(&format!("Password of {user} at {}: ", url.host))
                .map_err(|e| Failure::operation(format!("cannot read the password from the terminal: {e}")))?
        }
        None => {
            return Err(Failure::usage(format!(
                "no password for {user}: put it in $INHOST_FTP_PASSWORD, or run on a terminal"
            )));
        }
    };
    Ok(Credentials { user, password })
}

/// Whose certificates are trusted: those of a file, or the system's.
pub fn authorities(ca: Option<&Path>) -> Result<Trust, Failure> {
    if let Some(path) = ca {
        return std::fs::read(path)
            .map(|pem| Trust::from_pem(&pem))
            .map_err(|e| Failure::usage(format!("cannot read --ca {}: {e}", path.display())));
    }
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(Failure::operation(
            "the system trusts no certificate authority; name one with --ca FILE",
        ));
    }
    Ok(Trust::Authorities(found.certs))
}
