//! Other hosts to which jobs go: how they are reached.

use crate::failure::Failure;
use crate::ftp::authorities;
use inhost_common::LocalFuture;
use inhost_common::tls::read_secret;
use inhost_ftp::driver::TlsClient;
use inhost_jobs::client::Client;
use inhost_jobs::remote::{Dial, Duplex};
use inhost_jobs::service::{HostPlace, Way};
use inhost_names::Names;
use std::io;
use std::rc::Rc;

/// Connects to one of them by name.
struct Dialer {
    names: Rc<Names>,
    host: String,
    port: u16,
    tls: Option<TlsClient>,
}

impl Dial for Dialer {
    fn dial(&self) -> LocalFuture<io::Result<Box<dyn Duplex>>> {
        let (names, host, port) = (self.names.clone(), self.host.clone(), self.port);
        let tls = self.tls.as_ref().map(TlsClient::parts);
        Box::pin(async move {
            let stream = names.connect(&host, port).await.map_err(io::Error::other)?;
            stream.set_nagle(false);
            let Some((config, name)) = tls else { return Ok(Box::new(stream) as Box<dyn Duplex>) };
            let shaken = tokio_rustls::TlsConnector::from(config).connect(name, stream).await?;
            Ok(Box::new(shaken) as Box<dyn Duplex>)
        })
    }
}

/// How a place is reached. It reads the files of its password and its certificates.
pub fn way(place: &HostPlace, names: &Rc<Names>) -> Result<Way, Failure> {
    let wrong = |why: String| Failure::operation(format!("jobs.places: {}: {why}", place.host));
    let password = read_secret("jobs", "password", &place.password_file).map_err(|e| wrong(e.to_string()))?;
    let password = String::from_utf8(password).map_err(|_| wrong("the password is not UTF-8".into()))?;
    let password = password.trim_end_matches(['\r', '\n']);
    let client = Client::new(&place.host, &place.user, password).map_err(|e| wrong(e.to_string()))?;
    let tls = match place.cleartext {
        true => None,
        false => {
            let trust = authorities(place.ca.as_deref())?;
            Some(TlsClient::new(&place.host, &trust).map_err(|e| wrong(format!("TLS: {e}")))?)
        }
    };
    let (names, host, port) = (names.clone(), place.host.clone(), place.port);
    Ok((client, Rc::new(Dialer { names, host, port, tls })))
}
