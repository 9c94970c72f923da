//! The Telnet server of a running host: its users, its shells, its log.

use crate::config::Telnet;
use crate::failure::Failure;
use crate::user;
use inhost_base::{Duration, Endpoint, IpAddr, Ipv6Addr};
use inhost_common::users::{
    ONE_TIME_ENTROPY_BYTES, Source, ThreadAuthenticator, UserError, Users, one_time_password,
};
use inhost_common::{Admission, AdmissionLimits, Callers, Denials};
use inhost_runtime::{Runtime, control, entropy};
use inhost_socket::{Host, Listener, Stream};
use inhost_stack::ListenOptions;
use inhost_telnet::driver::{HostServices, Services as _, SessionEvent, ShellSettings, serve_session};
use inhost_telnet::server::{Closing, ServerConfig};
use std::cell::RefCell;
use std::io::Read;
use std::path::PathBuf;
use std::rc::Rc;
use tracing::{error, info, warn};

/// What a terminal's connection may queue beyond what was sent, and in all.
const NOT_SENT_BYTES: usize = 8 << 10;
const SEND_BUFFER_BYTES: usize = 128 << 10;

/// The user of a host for which none was made.
const ONE_TIME_USER: &str = "guest";

type TelnetServices = HostServices<Host, ThreadAuthenticator>;

/// User and password that were made for one run.
type OneTime = (&'static str, String);

/// The running server.
pub struct Login {
    services: Rc<TelnetServices>,
    config: Rc<RefCell<ServerConfig>>,
    news: Rc<RefCell<Option<PathBuf>>>,
    one_time: Option<OneTime>,
    descriptors: Option<u64>,
}

/// Starts listening for logins.
///
/// `descriptors` is how many a shell may have open.
pub fn start(
    runtime: &Runtime,
    telnet: &Telnet,
    callers: &Callers,
    denials: &Denials,
    descriptors: Option<u64>,
) -> Result<Login, Failure> {
    let host = runtime.host().clone();
    let (source, one_time) = source(telnet)?;
    let authenticator = ThreadAuthenticator::start(source)
        .map_err(|e| Failure::operation(format!("the thread that checks passwords cannot start: {e}")))?;
    let news = Rc::new(RefCell::new(telnet.news.clone()));
    let (shown, summary) = (news.clone(), control::Summary::new(&host));
    let services = HostServices::new(
        host.clone(),
        authenticator,
        Admission::sharing(limits(telnet), denials),
        shell(telnet, descriptors),
    )
    .with_news(move || read_news(shown.borrow().as_deref()))
    .with_netstat(move || crate::netstat::summary(&summary.state()))
    .with_log(log);
    let at = Endpoint::new(Ipv6Addr::UNSPECIFIED, telnet.port);
    let listener = host
        .listen(at, ListenOptions::default())
        .map_err(|e| Failure::operation(format!("cannot listen for Telnet at port {}: {e}", telnet.port)))?;
    let services = Rc::new(services);
    let config = Rc::new(RefCell::new(server_config(telnet)));
    let accepting = accept(host.clone(), listener, services.clone(), config.clone(), callers.clone());
    host.spawn(accepting).detach();
    Ok(Login { services, config, news, one_time, descriptors })
}

impl Login {
    /// User and password that were made for this run.
    pub fn one_time(&self) -> Option<(&str, &str)> {
        self.one_time.as_ref().map(|(user, password)| (*user, password.as_str()))
    }
    /// Takes over what can change while sessions run.
    pub fn reload(&self, telnet: &Telnet) {
        self.services.admission().set_limits(limits(telnet));
        self.services.set_shell(shell(telnet, self.descriptors));
        self.config.replace(server_config(telnet));
        self.news.replace(telnet.news.clone());
    }
}

/// The users file, with a one-time user until there is one in it.
fn source(telnet: &Telnet) -> Result<(Source, Option<OneTime>), Failure> {
    let path = user::file(telnet.users.as_deref())?;
    let known = Users::read_or_empty(&path).map_err(|e: UserError| Failure::operation(e.to_string()))?;
    if known.accounts().next().is_some() {
        return Ok((Source::File(path), None));
    }
    let random = entropy().map_err(|e| Failure::operation(format!("the system has no entropy: {e}")))?;
    let mut drawn = [0; ONE_TIME_ENTROPY_BYTES];
    drawn.copy_from_slice(&random[..ONE_TIME_ENTROPY_BYTES]);
    let password = one_time_password(drawn);
    let mut users = Users::default();
    users.add(ONE_TIME_USER, &password, None).map_err(|e| Failure::operation(e.to_string()))?;
    Ok((Source::FileOrElse(path, users), Some((ONE_TIME_USER, password))))
}

async fn accept(
    host: Host,
    listener: Listener,
    services: Rc<TelnetServices>,
    config: Rc<RefCell<ServerConfig>>,
    callers: Callers,
) {
    // The session says why a caller is refused.
    let serve = |stream, caller: Endpoint, ()| {
        session(stream, caller.address, services.clone(), config.borrow().clone())
    };
    inhost_common::accept(host, listener, callers, |_| Some(()), serve).await;
    services.admission().close();
}

async fn session(stream: Stream, caller: IpAddr, services: Rc<TelnetServices>, config: ServerConfig) {
    // Each key's echo leaves at once; what is said in one go is one write.
    stream.set_nagle(false);
    // For clients that answer no timing marks: less of a shell's output lies ahead of its reader.
    stream.set_not_sent_low_water(Some(NOT_SENT_BYTES));
    stream.set_send_buffer_limit(SEND_BUFFER_BYTES);
    serve_session(stream, caller, &config, &*services).await;
}

fn limits(telnet: &Telnet) -> AdmissionLimits {
    AdmissionLimits {
        sessions: telnet.sessions,
        sessions_per_peer: telnet.sessions_per_peer,
        connections_per_window: telnet.connections_per_minute,
        ..AdmissionLimits::default()
    }
}

fn server_config(telnet: &Telnet) -> ServerConfig {
    ServerConfig {
        attempts: u8::try_from(telnet.attempts).unwrap_or(u8::MAX).max(1),
        idle_time: (telnet.idle_min > 0).then(|| Duration::from_secs(telnet.idle_min.saturating_mul(60))),
        ..ServerConfig::default()
    }
}

fn shell(telnet: &Telnet, descriptor_limit: Option<u64>) -> ShellSettings {
    let mut settings = ShellSettings { descriptor_limit, ..ShellSettings::default() };
    let own = std::env::var_os("SHELL").map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(program) = telnet.shell.clone().or(own) {
        settings.program = program;
    }
    settings
}

/// Most of a news file that is shown.
const NEWS_BYTES: u64 = 16 << 10;

fn read_news(path: Option<&std::path::Path>) -> String {
    let Some(path) = path else { return "No news.".into() };
    let mut text = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(NEWS_BYTES).read_to_end(&mut text));
    match read {
        Ok(_) => String::from_utf8_lossy(&text).into_owned(),
        Err(_) => "The news cannot be read.".into(),
    }
}

/// One line of the log for each event. What a caller typed is a field: it is quoted and its control octets are escaped.
fn log(event: SessionEvent<'_>) {
    match event {
        SessionEvent::Refused { peer, refusal } => info!(target: "telnet", %peer, "refused: {refusal}"),
        SessionEvent::Opened { peer } => info!(target: "telnet", %peer, "connected"),
        SessionEvent::Denied { peer, user } => {
            warn!(target: "telnet", %peer, user, "wrong password")
        }
        SessionEvent::Unavailable { reason } => {
            error!(target: "telnet", "no password can be checked: {reason}")
        }
        SessionEvent::LoggedIn { peer, user } => info!(target: "telnet", %peer, user, "logged in"),
        SessionEvent::NoShell { user, error } => error!(target: "telnet", user, "no shell: {error}"),
        SessionEvent::Closed { peer, user, closing } => {
            let why = match closing {
                None => "connection lost",
                Some(Closing::Quit) => "left",
                Some(Closing::Disconnected) => "connection closed",
                Some(Closing::ShellEnded) => "shell ended",
                Some(Closing::Attempts) => "too many wrong passwords",
                Some(Closing::Idle) => "idle too long",
                Some(Closing::NoShell) => "no shell",
                Some(Closing::HostEnds) => "the host goes down",
                Some(Closing::Violation(_)) => "broke the protocol's limits",
            };
            info!(target: "telnet", %peer, user, "ended: {why}");
        }
    }
}
