//! The Telnet server as a service of a host: its users, its shells, its log.

use std::cell::RefCell;
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, IpAddr, Ipv6Addr};
use inhost_common::service::{
    Description, Doors, HostFiles, Notice, Problem, Reach, Service, ServiceContext, ServiceSession,
};
use inhost_common::users::{
    ONE_TIME_ENTROPY_BYTES, Source, ThreadAuthenticator, UserError, Users, one_time_password,
};
use inhost_common::{Admission, AdmissionLimits, Callers, Transport};
use inhost_socket::{Host, Listener, Stream};
use inhost_stack::ListenOptions;
use serde::{Deserialize, Serialize};
use tracing::{error, info, warn};

use crate::driver::{HostServices, Services as _, SessionEvent, ShellSettings, serve_session};
use crate::pty;
use crate::server::{Closing, ServerConfig};

/// `[telnet]` of `host.toml`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Section {
    /// Whether it runs. Default true.
    pub enabled: bool,
    /// Its port. Default 23.
    pub port: u16,
    /// File of users and password hashes.
    pub users: Option<PathBuf>,
    /// Program started for logged-in users. Default: $SHELL, else /bin/sh.
    pub shell: Option<PathBuf>,
    /// Text of the NEWS command.
    pub news: Option<PathBuf>,
    /// Sessions at a time. Default 32.
    pub sessions: usize,
    /// Sessions of one peer at a time. Default 8.
    pub sessions_per_peer: usize,
    /// Connections of one peer in a minute. Default 60.
    pub connections_per_minute: u32,
    /// Minutes without a byte from the user after which a session ends; 0 is never. Default 60.
    pub idle_min: u64,
    /// Password attempts in one session. Default 3.
    pub attempts: u32,
}

impl Default for Section {
    fn default() -> Self {
        Section {
            enabled: true,
            port: 23,
            users: None,
            shell: None,
            news: None,
            sessions: 32,
            sessions_per_peer: 8,
            connections_per_minute: 60,
            idle_min: 60,
            attempts: 3,
        }
    }
}

/// Send queue limits of a terminal's connection: unsent, and in all.
const NOT_SENT_BYTES: usize = 8 << 10;
const SEND_BUFFER_BYTES: usize = 128 << 10;

/// The user of a host for which none was made.
const ONE_TIME_USER: &str = "guest";

type TelnetServices = HostServices<Host, ThreadAuthenticator>;

/// User and password that were made for one run.
type OneTime = (&'static str, String);

/// The running server.
pub struct Telnet {
    services: Rc<TelnetServices>,
    doors: Doors,
    config: Rc<RefCell<ServerConfig>>,
    news: Rc<RefCell<Option<PathBuf>>>,
    port: u16,
    notice: Option<(OneTime, String)>,
    descriptor_limit: Option<u64>,
}

/// How long the processes of ended sessions may take to end: they are hung up first, and killed two seconds later.
const SHELLS_END: std::time::Duration = std::time::Duration::from_secs(5);

impl Service for Telnet {
    const NAME: &'static str = "telnet";
    type Section = Section;
    type Prepared = ();

    fn check(_: &Section) -> Result<(), Problem> {
        Ok(())
    }
    fn is_enabled(section: &Section) -> bool {
        section.enabled
    }
    fn prepare(_: &Section, _: &HostFiles) -> Result<(), Problem> {
        Ok(())
    }
    fn start(section: &Section, (): (), context: &ServiceContext) -> Result<Telnet, Problem> {
        let host = context.host.clone();
        let (source, one_time) = source(context)?;
        let authenticator = ThreadAuthenticator::start(source)
            .map_err(|e| Problem::operation(format!("the thread that checks passwords cannot start: {e}")))?;
        let news = Rc::new(RefCell::new(section.news.clone()));
        let (shown, netstat) = (news.clone(), context.netstat.clone());
        let descriptor_limit = context.descriptor_limit;
        let services = HostServices::new(
            host.clone(),
            authenticator,
            Admission::sharing(limits(section), &context.denials),
            shell(section, descriptor_limit),
            context.reactor.clone(),
        )
        .with_news(move || read_news(shown.borrow().as_deref()))
        .with_netstat(move || netstat())
        .with_operator(context.operator.clone())
        .with_log(log);
        let port = section.port;
        let at = Endpoint::new(Ipv6Addr::UNSPECIFIED, port);
        let services = Rc::new(services);
        let config = Rc::new(RefCell::new(server_config(section)));
        let (doors, callers) = (Doors::default(), context.callers.clone());
        let (served, current) = (services.clone(), config.clone());
        doors.add(move || {
            let listener = host
                .listen(at, ListenOptions::default())
                .map_err(|e| Problem::operation(format!("cannot listen for Telnet at port {port}: {e}")))?;
            let accepting = accept(host.clone(), listener, served.clone(), current.clone(), callers.clone());
            Ok::<_, Problem>(host.spawn(accepting))
        })?;
        let users = context
            .files
            .users
            .as_ref()
            .filter(|_| context.files.are_users_named)
            .map(|path| format!(" --users {}", path.display()));
        let make = format!("{} user add NAME{}", context.program, users.unwrap_or_default());
        let notice = one_time.map(|one_time| (one_time, make));
        Ok(Telnet { services, doors, config, news, port, notice, descriptor_limit })
    }
    fn reload(&self, section: &Section, _: Result<(), Problem>) {
        self.services.admission().set_limits(limits(section));
        self.services.set_shell(shell(section, self.descriptor_limit));
        self.config.replace(server_config(section));
        self.news.replace(section.news.clone());
    }
    fn effect(key: &str) -> Option<&'static str> {
        (!matches!(key, "enabled" | "port" | "users")).then_some("for new sessions")
    }
    fn describe(&self) -> Description {
        let command = |at: SocketAddr| match at.port() {
            23 => format!("telnet {}", at.ip()),
            port => format!("telnet {} {port}", at.ip()),
        };
        let notice = self.notice.as_ref().map(|((user, password), make)| Notice {
            on_terminal: format!(
                "No user is configured. For this run only: user {user}, password {password}\n\
                 Make one that stays with: {make}"
            ),
            elsewhere: format!(
                "No user is configured, and this is no terminal to show a one-time password on. \
                 Make one that stays with: {make}"
            ),
        });
        Description {
            summary: format!("port {}", self.port),
            reach: vec![Reach::new(Transport::Tcp, self.port, "log in, after LOGON", command)],
            notice,
        }
    }
    fn doors(&self) -> &Doors {
        &self.doors
    }
    fn end_session(&self, number: u64) -> bool {
        self.services.admission().end(number)
    }
    fn sessions(&self) -> Vec<ServiceSession> {
        self.services.admission().list(Self::NAME)
    }
    fn finish(&self) {
        if !pty::wait_for_sessions(SHELLS_END) {
            warn!(target: "telnet", "processes of ended sessions are left behind");
        }
    }
}

/// The users file, with a one-time user until there is one in it.
fn source(context: &ServiceContext) -> Result<(Source, Option<OneTime>), Problem> {
    let path = context.files.users()?.to_owned();
    let known = Users::read_or_empty(&path).map_err(|e: UserError| Problem::operation(e.to_string()))?;
    if known.accounts().next().is_some() {
        return Ok((Source::File(path), None));
    }
    let random = context.entropy()?;
    let mut drawn = [0; ONE_TIME_ENTROPY_BYTES];
    drawn.copy_from_slice(&random[..ONE_TIME_ENTROPY_BYTES]);
    let password = one_time_password(drawn);
    let mut users = Users::default();
    users.add(ONE_TIME_USER, &password, None).map_err(|e| Problem::operation(e.to_string()))?;
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

fn limits(section: &Section) -> AdmissionLimits {
    let mut limits = AdmissionLimits::default();
    limits.sessions = section.sessions;
    limits.sessions_per_peer = section.sessions_per_peer;
    limits.connections_per_window = section.connections_per_minute;
    limits
}

fn server_config(section: &Section) -> ServerConfig {
    ServerConfig {
        attempts: u8::try_from(section.attempts).unwrap_or(u8::MAX).max(1),
        idle_time: (section.idle_min > 0).then(|| Duration::from_secs(section.idle_min.saturating_mul(60))),
        ..ServerConfig::default()
    }
}

fn shell(section: &Section, descriptor_limit: Option<u64>) -> ShellSettings {
    let mut settings = ShellSettings { descriptor_limit, ..ShellSettings::default() };
    let own = std::env::var_os("SHELL").map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(program) = section.shell.clone().or(own) {
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
        SessionEvent::NotOperator { peer, user } => {
            warn!(target: "telnet", %peer, user, "refused: not an operator");
        }
        SessionEvent::Operating { peer, user } => info!(target: "telnet", %peer, user, "is operator"),
        SessionEvent::Ordered { peer, user, order } => {
            // As a text, it is quoted and escaped.
            let order = &*order.to_string();
            info!(target: "telnet", %peer, user, order, "operator's order");
        }
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
                Some(Closing::Dropped) => "ended by an operator",
                Some(Closing::Violation(_)) => "broke the protocol's limits",
            };
            info!(target: "telnet", %peer, user, "ended: {why}");
        }
    }
}
