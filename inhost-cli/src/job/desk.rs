//! The queue that is meant: that of this machine, whose folder is opened, or that of another host.

use crate::args::JobQueue;
use crate::connection::{Connector, Maker};
use crate::failure::{Failure, print_error};
use crate::ftp::{CERTIFICATE_ADVICE, authorities};
use crate::password::password;
use crate::registry::section;
use crate::target::{Schemes, Target};
use crate::time::unix_time;
use inhost_base::Duration;
use inhost_ftp::driver::{TlsClient, Trust};
use inhost_jobs::client::{Client, ClientError};
use inhost_jobs::codec::{Job, Submission};
use inhost_jobs::queue::{Output, Piece, Queue};
use inhost_jobs::remote::Duplex;
use inhost_jobs::server::PORT;
use inhost_jobs::service::{Jobs, Section};
use inhost_jobs::store::{Change, Scope, Selection, Store};
use inhost_socket::Host;
use inhost_telnet::driver::Connect as _;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

const SCHEMES: Schemes = Schemes::Of(&["http", "https"]);
/// How long a connection and an answer may take, where nothing was said.
const WITHIN: Duration = Duration::from_secs(30);
/// How often a request is sent again whose connection was lost.
const ATTEMPTS: usize = 4;
/// Why a host may close a connection before it answers.
const TURNED_AWAY: &str = "a host turns callers away for a minute after many wrong passwords or connections";
/// How long a host is asked again that has answered before: it may have been started anew.
const AGAIN_WITHIN: Duration = Duration::from_secs(60);
const AGAIN_EVERY: Duration = Duration::from_millis(500);

/// Where the queue is, before there is a host.
pub enum Place {
    /// A folder.
    Here(Box<Section>),
    /// Another host, as a user there.
    There { target: Target, client: Client },
}

impl Place {
    /// What the arguments mean. It may ask for a password.
    pub fn find(at: &JobQueue) -> Result<Place, Failure> {
        let Some(server) = &at.server else {
            let mut section: Section = section::<Jobs>(at.config.as_deref())?;
            if at.queue.is_some() {
                section.folder.clone_from(&at.queue);
            }
            return Ok(Place::Here(Box::new(section)));
        };
        let target = Target::parse(server, SCHEMES)?;
        target.without_path("a queue of jobs")?;
        let wrong = |why: String| Failure::usage(format!("--server {server:?}: {why}"));
        let user = target.user_name()?.ok_or_else(|| wrong("write USER@HOST[:PORT]".into()))?;
        let client = Client::new(&target.host, &user, &password(at.password_file.as_deref())?);
        Ok(Place::There { client: client.map_err(|e| wrong(e.to_string()))?, target })
    }
}

/// A queue to ask.
pub enum Desk {
    /// That of a folder.
    Here(Box<Queue>),
    /// That of another host.
    There(Box<There>),
}

impl Desk {
    /// Opens the queue in the folder that the section names. `host` tells the time.
    pub fn here(section: &Section, host: &Host) -> Result<Desk, Failure> {
        let folder = section.folder();
        let store = Store::open(&folder)
            .map_err(|e| Failure::operation(format!("the queue {}: {e}", folder.display())))?;
        let queue = Queue::new(store, section.queue(), Rc::new(host.clone()), unix_time);
        Ok(Desk::Here(Box::new(queue)))
    }
    /// Asks another host, by connections of `maker`.
    pub fn there(
        target: Target,
        client: Client,
        at: &JobQueue,
        maker: Maker,
        host: &Host,
    ) -> Result<Desk, Failure> {
        let mut common = at.reach.common.clone();
        common.timeout.get_or_insert(WITHIN.as_secs_f64());
        // A password goes out in clear text only to those who say so.
        let is_clear = target.scheme.as_deref() == Some("http");
        let tls = match (is_clear, at.insecure) {
            (true, _) => None,
            (false, true) => Some(Trust::Anybody),
            (false, false) => Some(authorities(at.ca.as_deref())?),
        };
        let tls = tls.map(|trust| TlsClient::new(&target.host, &trust)).transpose();
        let tls = tls.map_err(|e| Failure::operation(format!("TLS: {e}")))?;
        let connector = Connector { maker, common, clock: host.clone() };
        Ok(Desk::There(Box::new(There {
            target,
            client,
            tls,
            connector,
            open: RefCell::default(),
            is_known: Cell::default(),
        })))
    }
}

/// What was heard of a job's output.
pub struct Heard {
    /// What it is.
    pub octets: Vec<u8>,
    /// Of which attempt.
    pub attempt: u32,
    /// Whether more may come, of this attempt or of another.
    pub is_open: bool,
}

/// Another host.
pub struct There {
    target: Target,
    client: Client,
    tls: Option<TlsClient>,
    connector: Connector,
    /// A connection for the next request.
    open: RefCell<Option<Box<dyn Duplex>>>,
    /// Whether it has answered.
    is_known: Cell<bool>,
}

/// Why a request has no answer.
enum Trouble {
    /// It was refused.
    Refused(String),
    /// There is no connection.
    Unreachable(String),
    /// The connection was lost. It may have been an old one, which the server has closed meanwhile.
    Lost { why: String, was_kept: bool },
}

impl There {
    async fn connect(&self) -> Result<Box<dyn Duplex>, String> {
        let port = self.target.port.unwrap_or(PORT);
        let stream = self.connector.connect(&self.target.host, port).await?.stream;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let (config, name) = tls.parts();
        let shaken = tokio_rustls::TlsConnector::from(config).connect(name, stream).await;
        Ok(Box::new(shaken.map_err(|e| match (e.kind(), e.to_string()) {
            (_, text) if text.contains("certificate") => format!("TLS: {text}; {CERTIFICATE_ADVICE}"),
            (io::ErrorKind::InvalidData, text) => {
                format!(
                    "TLS: {text}; if that host has no TLS, http://USER@HOST sends the password in the clear"
                )
            }
            (_, text) => format!("TLS: {text}; {TURNED_AWAY}"),
        })?))
    }
    /// Asks once.
    async fn ask_once<T>(
        &self,
        request: impl AsyncFn(&mut Box<dyn Duplex>) -> Result<T, ClientError>,
    ) -> Result<T, Trouble> {
        let clock = &self.connector.clock;
        let limit = self.connector.common.limit().unwrap_or(WITHIN);
        let kept = self.open.take();
        let was_kept = kept.is_some();
        let late = |what: &str| format!("no {what} within {} s (--timeout)", limit.as_secs_f64());
        let mut stream = match kept {
            Some(stream) => stream,
            None => match clock.timeout(limit, self.connect()).await {
                Ok(connected) => connected.map_err(Trouble::Unreachable)?,
                Err(_) => return Err(Trouble::Unreachable(late("connection"))),
            },
        };
        let why = match clock.timeout(limit, request(&mut stream)).await {
            Ok(Ok(answer)) => {
                self.open.replace(Some(stream));
                return Ok(answer);
            }
            Ok(Err(error @ ClientError::Refused(..))) => return Err(Trouble::Refused(error.to_string())),
            Ok(Err(error)) => error.to_string(),
            Err(_) => late("answer"),
        };
        Err(Trouble::Lost { why, was_kept })
    }
    /// Asks, and asks again where the connection was lost: a request that was carried out gives the same answer. A host that
    /// has answered before is given time to come back.
    async fn ask<T>(
        &self,
        request: impl AsyncFn(&mut Box<dyn Duplex>) -> Result<T, ClientError>,
    ) -> Result<T, String> {
        let clock = &self.connector.clock;
        let (began, mut attempts) = (clock.now(), 0);
        loop {
            let why = match self.ask_once(&request).await {
                Ok(answer) => {
                    self.is_known.set(true);
                    return Ok(answer);
                }
                Err(Trouble::Refused(why)) => return Err(why),
                Err(Trouble::Unreachable(why)) if !self.is_known.get() => return Err(why),
                Err(Trouble::Lost { was_kept: true, .. }) => continue,
                Err(Trouble::Unreachable(why) | Trouble::Lost { why, .. }) => why,
            };
            attempts += 1;
            if !self.is_known.get() {
                match attempts {
                    ATTEMPTS.. => return Err(format!("{why}; {TURNED_AWAY}")),
                    _ => continue,
                }
            }
            if clock.now().since(began) >= AGAIN_WITHIN {
                return Err(format!("{why}, for {} s", AGAIN_WITHIN.as_secs_f64()));
            }
            if attempts == 1 {
                let seconds = AGAIN_WITHIN.as_secs_f64();
                print_error(format_args!("job: {why}; it is asked again for up to {seconds} s"));
            }
            clock.sleep(AGAIN_EVERY).await;
        }
    }
}

impl Desk {
    /// Submits a job; its number.
    pub async fn submit(&self, key: &str, submission: Submission) -> Result<i64, String> {
        match self {
            Desk::Here(queue) => {
                let done = queue.submit(&own_name(), Some(key), submission).await;
                done.map(|submitted| submitted.id).map_err(|e| e.to_string())
            }
            Desk::There(there) => {
                there.ask(async |stream| there.client.submit(stream, key, &submission).await).await
            }
        }
    }
    /// What the user should know about where jobs run.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Desk::Here(queue) if !queue.store.is_served() => {
                Some("no host runs the jobs of this queue: start inhost serve with [jobs] enabled = true")
            }
            _ => None,
        }
    }
    /// A job.
    pub async fn job(&self, id: i64) -> Result<Job, String> {
        match self {
            Desk::Here(queue) => queue.store.job(Scope::All, id).await.map_err(|e| e.to_string()),
            Desk::There(there) => there.ask(async |stream| there.client.job(stream, id).await).await,
        }
    }
    /// Jobs.
    pub async fn list(&self, selection: Selection) -> Result<Vec<Job>, String> {
        match self {
            Desk::Here(queue) => queue.store.list(Scope::All, selection).await.map_err(|e| e.to_string()),
            Desk::There(there) => there.ask(async |stream| there.client.list(stream, &selection).await).await,
        }
    }
    /// A piece of the output of an attempt, the latest one for `None`, from an offset.
    pub async fn output(
        &self,
        id: i64,
        output: Output,
        attempt: Option<u32>,
        offset: u64,
    ) -> Result<Heard, String> {
        match self {
            Desk::Here(queue) => {
                let piece = queue.output(Scope::All, id, output, attempt, offset).await;
                let Piece { octets, attempt, is_open, .. } = piece.map_err(|e| e.to_string())?;
                Ok(Heard { octets, attempt, is_open })
            }
            Desk::There(there) => {
                let ask = async |stream: &mut Box<dyn Duplex>| {
                    there.client.output(stream, id, output, attempt, offset).await
                };
                let piece = there.ask(ask).await?;
                Ok(Heard { octets: piece.body, attempt: piece.attempt, is_open: piece.is_open })
            }
        }
    }
    /// Holds, releases or cancels.
    pub async fn change(&self, id: i64, change: Change) -> Result<(), String> {
        match self {
            Desk::Here(queue) => {
                queue.change(Scope::All, id, change).await.map(drop).map_err(|e| e.to_string())
            }
            Desk::There(there) => {
                there.ask(async |stream| there.client.change(stream, id, change).await).await
            }
        }
    }
}

/// The name of who runs the command.
fn own_name() -> String {
    let named = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| "root".into())
}
