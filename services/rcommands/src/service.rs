//! The servers of rlogin and rsh as services of a host: who may come, shells, log.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

use inhost_base::{Cidr, Duration, Endpoint, IpAddr};
use inhost_common::service::{
    Description, Doors, HostFiles, Limits, Problem, Reach, Service, ServiceContext,
};
use inhost_common::users::{Source, ThreadAuthenticator};
use inhost_common::{
    Admission, AdmissionLimits, LocalFuture, Over, Permit, SessionEvent, Transport, session_log,
};
use inhost_runtime::Reactor;
use inhost_socket::{ConnectError, Host, Stream};
use inhost_stack::{ConnectOptions, KeepAlive, Local};
use inhost_telnet::driver::{HostServices, ShellSettings, TelnetEvent};
use inhost_telnet::pty;
use serde::{Deserialize, Serialize};
use tracing::{error, info, warn};

use crate::server::{
    Closing, Command, Program, Reception, RshEnd, Rule, SessionConfig, Table, drain, is_reserved,
    serve_rlogin, serve_rsh,
};

/// The port of rsh.
const RSH_PORT: u16 = 514;
/// How long the processes of ended sessions may take to end.
const SHELLS_END: std::time::Duration = std::time::Duration::from_secs(5);
/// How long a request of rsh may take, and the connection for errors.
const REQUEST_WITHIN: Duration = Duration::from_secs(60);
/// How long a client may take to close after the last output.
const DRAIN_WITHIN: Duration = Duration::from_secs(10);
/// How a client that says nothing is probed, where the host's configuration does not say so: a command may take as long
/// as it likes, but not for somebody who is gone. Such a client is noticed after some 15 minutes.
const KEEP_ALIVE: KeepAlive =
    KeepAlive { idle: Duration::from_secs(10 * 60), interval: Duration::from_secs(60), probes: 5 };
/// Ports that are tried for the connection for errors.
const PORT_TRIES: u16 = 16;

/// `[[rlogin.allow]]` and `[[rsh.allow]]` of `host.toml`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Allow {
    /// Addresses and networks: "10.9.0.0/24", "fd00::1".
    pub from: Vec<String>,
    /// Users of the caller's host; "*" is every one. Default: every one.
    pub users: Vec<String>,
    /// As whom they may come. Default: each as the user of the same name.
    #[serde(rename = "as")]
    pub names: Vec<String>,
}

fn table(key: &str, allow: &[Allow]) -> Result<Table, Problem> {
    let rule = |of: &Allow| {
        let network = |text: &String| {
            let alone = text.parse::<IpAddr>().ok().and_then(|address| {
                let bits = if matches!(address, IpAddr::V4(_)) { 32 } else { 128 };
                Cidr::new(address, bits).ok()
            });
            let expected = "give an address or a network such as 10.9.0.0/24";
            alone.or_else(|| text.parse().ok()).ok_or_else(|| Problem::setting(key, text, expected))
        };
        let mut rule = Rule::new(of.from.iter().map(network).collect::<Result<_, _>>()?);
        if !of.users.is_empty() {
            rule.users.clone_from(&of.users);
        }
        rule.names.clone_from(&of.names);
        Ok(rule)
    };
    allow.iter().map(rule).collect::<Result<_, _>>().map(Table::new)
}

/// They write the logs of sessions.
const RLOGIN_LOG: fn(SessionEvent<'_>) = session_log!("rlogin");
const RSH_LOG: fn(SessionEvent<'_>) = session_log!("rsh");

/// Callers that are taken where `limits` does not say.
const RLOGIN_LIMITS: AdmissionLimits = AdmissionLimits::per_minute(32, 8, 60);

/// `[rlogin]` of `host.toml`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RloginSection {
    /// Whether it runs. Default false: those in its table give no password, and all is clear text.
    pub enabled: bool,
    /// Its port. Default 513.
    pub port: u16,
    /// Whether callers must come from a port from 512 to 1023. Default true.
    pub reserved_ports: bool,
    /// Whether a caller who is not in the table may log in with a password of the users file. Default true.
    pub password: bool,
    /// Program started for logged-in users. Default: $SHELL, else /bin/sh.
    pub shell: Option<PathBuf>,
    /// How many callers it takes. Default: 32 sessions, 8 of one peer, 60 connections of one peer in a minute.
    pub limits: Limits,
    /// Minutes without a byte from the user after which a session ends; 0 is never. Default 60.
    pub idle_min: u64,
    /// Who may come from where as whom, without a password.
    pub allow: Vec<Allow>,
}

impl Default for RloginSection {
    fn default() -> Self {
        RloginSection {
            enabled: false,
            port: crate::rlogin::PORT,
            reserved_ports: true,
            password: true,
            shell: None,
            limits: Limits::default(),
            idle_min: 60,
            allow: Vec::new(),
        }
    }
}

/// The same of rsh.
const RSH_LIMITS: AdmissionLimits = AdmissionLimits::per_minute(32, 8, 120);

/// `[rsh]` of `host.toml`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RshSection {
    /// Whether it runs. Default false: those in its table give no password, and all is clear text.
    pub enabled: bool,
    /// Its port. Default 514.
    pub port: u16,
    /// Whether callers must come from a port from 512 to 1023. Default true.
    pub reserved_ports: bool,
    /// The shell that runs commands. Default: $SHELL, else /bin/sh.
    pub shell: Option<PathBuf>,
    /// How many callers it takes; each command is a session. Default: 32 sessions, 8 of one peer, 120 connections of one peer in a minute.
    pub limits: Limits,
    /// Who may come from where as whom. Default: nobody.
    pub allow: Vec<Allow>,
}

impl Default for RshSection {
    fn default() -> Self {
        RshSection {
            enabled: false,
            port: RSH_PORT,
            reserved_ports: true,
            shell: None,
            limits: Limits::default(),
            allow: Vec::new(),
        }
    }
}

fn shell(program: Option<&PathBuf>, descriptor_limit: Option<u64>) -> ShellSettings {
    let mut settings = ShellSettings::default();
    settings.descriptor_limit = descriptor_limit;
    let own = std::env::var_os("SHELL").map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(program) = program.cloned().or(own) {
        settings.program = program;
    }
    settings
}

type RloginServices = HostServices<Host, ThreadAuthenticator>;

/// The running server of rlogin.
pub struct Rlogin {
    services: Rc<RloginServices>,
    policy: Rc<RefCell<RloginPolicy>>,
    descriptor_limit: Option<u64>,
    doors: Doors,
    port: u16,
}

/// What can change while it runs.
#[derive(Clone)]
struct RloginPolicy {
    table: Rc<Table>,
    needs_reserved_port: bool,
    takes_password: bool,
    config: SessionConfig,
}

impl RloginPolicy {
    fn of(section: &RloginSection) -> Result<RloginPolicy, Problem> {
        let idle_time =
            (section.idle_min > 0).then(|| Duration::from_secs(section.idle_min.saturating_mul(60)));
        let config = SessionConfig { idle_time, ..SessionConfig::default() };
        Ok(RloginPolicy {
            table: Rc::new(table("rlogin.allow.from", &section.allow)?),
            needs_reserved_port: section.reserved_ports,
            takes_password: section.password,
            config,
        })
    }
}

impl RloginSection {
    fn limits(&self) -> Result<AdmissionLimits, Problem> {
        self.limits.or(Rlogin::NAME, RLOGIN_LIMITS)
    }
}

impl Service for Rlogin {
    const NAME: &'static str = "rlogin";
    type Section = RloginSection;
    type Prepared = ();

    fn check(section: &RloginSection) -> Result<(), Problem> {
        section.limits()?;
        RloginPolicy::of(section).map(drop)
    }
    fn is_enabled(section: &RloginSection) -> bool {
        section.enabled
    }
    fn prepare(_: &RloginSection, _: &HostFiles) -> Result<(), Problem> {
        Ok(())
    }
    fn start(section: &RloginSection, (): (), context: &ServiceContext) -> Result<Rlogin, Problem> {
        let host = context.host.clone();
        let users = context.files.users()?.to_owned();
        let authenticator = ThreadAuthenticator::start(Source::File(users))?;
        let descriptor_limit = context.descriptor_limit;
        let admission = Admission::sharing(section.limits()?, &context.denials);
        let doors = Doors::new(Self::NAME, &host, &context.callers, admission.clone(), RLOGIN_LOG);
        let settings = shell(section.shell.as_ref(), descriptor_limit);
        let services =
            HostServices::new(host.clone(), authenticator, admission, settings, context.reactor.clone());
        let notes = |event: TelnetEvent<'_>| {
            if let TelnetEvent::NoShell { user, error } = event {
                error!(target: "rlogin", user, "no shell: {error}");
            }
        };
        let services = Rc::new(services.with_log(RLOGIN_LOG).with_notes(notes));
        let policy = Rc::new(RefCell::new(RloginPolicy::of(section)?));
        let current = policy.clone();
        let doors = doors.taking(move |Endpoint { address, port }| {
            let takes = !current.borrow().needs_reserved_port || is_reserved(port);
            if !takes {
                info!(target: "rlogin", peer = %address, port, "refused: the port is not a reserved one");
            }
            takes
        });
        let (served, current) = (services.clone(), policy.clone());
        doors.listen(section.port, move |stream, caller, permit| {
            rlogin_session(stream, caller, permit, served.clone(), current.borrow().clone())
        })?;
        Ok(Rlogin { services, policy, descriptor_limit, doors, port: section.port })
    }
    fn reload(&self, section: &RloginSection, (): ()) -> Result<(), Problem> {
        let (policy, limits) = (RloginPolicy::of(section)?, section.limits()?);
        self.doors.admission().set_limits(limits);
        self.services.set_shell(shell(section.shell.as_ref(), self.descriptor_limit));
        self.policy.replace(policy);
        Ok(())
    }
    fn effect(key: &str) -> Option<&'static str> {
        (!matches!(key, "enabled" | "port")).then_some("for new sessions")
    }
    fn describe(&self) -> Description {
        describe(self.port, crate::rlogin::PORT, "log in from a closed net", |options, at| {
            format!("rlogin {options}{at}")
        })
    }
    fn doors(&self) -> &Doors {
        &self.doors
    }
    fn finish(&self) {
        if !pty::wait_for_sessions(SHELLS_END) {
            warn!(target: "rlogin", "processes of ended sessions are left behind");
        }
    }
}

/// Has a caller probed who says nothing; how.
fn probe(stream: &Stream) -> KeepAlive {
    let configured = stream.options().ok().and_then(|options| options.tcp.keep_alive);
    let keep_alive = configured.unwrap_or(KEEP_ALIVE);
    stream.set_keep_alive(Some(keep_alive));
    keep_alive
}

fn describe(
    port: u16,
    usual: u16,
    about: &str,
    command: impl Fn(&str, std::net::IpAddr) -> String + 'static,
) -> Description {
    // The system's own client: ours has no reserved port over the link `user`, and needs the running host for any other.
    let with_port = move |at: SocketAddr| match at.port() {
        port if port == usual => command("", at.ip()),
        port => command(&format!("-p {port} "), at.ip()),
    };
    Description {
        summary: format!("port {port}"),
        reach: vec![Reach::new(Transport::Tcp, port, about, with_port)],
        notice: None,
    }
}

async fn rlogin_session(
    stream: Stream,
    caller: Endpoint,
    permit: Permit,
    services: Rc<RloginServices>,
    policy: RloginPolicy,
) {
    stream.set_nagle(false);
    probe(&stream);
    let decide = |client_user: &str, server_user: &str| {
        let is_let_in = policy.table.lets_in(caller.address, client_user, server_user);
        let decided = is_let_in.then_some(true).or_else(|| policy.takes_password.then_some(false));
        let peer = caller.address;
        info!(target: "rlogin", %peer, client_user, server_user, "asks: {}", match decided {
            Some(true) => "is in the table",
            Some(false) => "gives a password",
            None => "refused",
        });
        decided
    };
    let ended = serve_rlogin(stream, caller, permit, policy.config.clone(), (&*services, &decide)).await;
    let why = ended.map(Closing::as_str);
    RLOGIN_LOG(SessionEvent::Closed { peer: caller.address, user: None, why });
}

/// The running server of rsh.
pub struct Rsh {
    shared: Rc<RshShared>,
    doors: Doors,
    port: u16,
}

struct RshShared {
    host: Host,
    reactor: Reactor,
    descriptor_limit: Option<u64>,
    policy: RefCell<RshPolicy>,
}

#[derive(Clone)]
struct RshPolicy {
    table: Rc<Table>,
    needs_reserved_port: bool,
    shell: ShellSettings,
}

impl RshPolicy {
    fn of(section: &RshSection, descriptor_limit: Option<u64>) -> Result<RshPolicy, Problem> {
        Ok(RshPolicy {
            table: Rc::new(table("rsh.allow.from", &section.allow)?),
            needs_reserved_port: section.reserved_ports,
            shell: shell(section.shell.as_ref(), descriptor_limit),
        })
    }
    /// The command of a user, for the shell.
    fn command(&self, user: &str, line: &str) -> Command {
        let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
        let environment = [
            ("PATH", self.shell.path.clone()),
            ("HOME", text(&self.shell.home)),
            ("SHELL", text(&self.shell.program)),
            ("USER", user.to_owned()),
            ("LOGNAME", user.to_owned()),
        ];
        Command {
            program: self.shell.program.clone(),
            arguments: vec!["-c".into(), line.to_owned()],
            environment: environment.map(|(name, value)| (name.to_owned(), value)).into(),
            directory: Some(self.shell.home.clone()).filter(|home| home.is_dir()),
            descriptor_limit: self.shell.descriptor_limit,
        }
    }
}

impl RshSection {
    fn limits(&self) -> Result<AdmissionLimits, Problem> {
        self.limits.or(Rsh::NAME, RSH_LIMITS)
    }
}

impl Service for Rsh {
    const NAME: &'static str = "rsh";
    type Section = RshSection;
    type Prepared = ();

    fn check(section: &RshSection) -> Result<(), Problem> {
        section.limits()?;
        RshPolicy::of(section, None).map(drop)
    }
    fn is_enabled(section: &RshSection) -> bool {
        section.enabled
    }
    fn prepare(_: &RshSection, _: &HostFiles) -> Result<(), Problem> {
        Ok(())
    }
    fn start(section: &RshSection, (): (), context: &ServiceContext) -> Result<Rsh, Problem> {
        let descriptor_limit = context.descriptor_limit;
        let shared = Rc::new(RshShared {
            host: context.host.clone(),
            reactor: context.reactor.clone(),
            descriptor_limit,
            policy: RefCell::new(RshPolicy::of(section, descriptor_limit)?),
        });
        let admission = Admission::sharing(section.limits()?, &context.denials);
        let doors = Doors::new(Self::NAME, &context.host, &context.callers, admission, RSH_LOG);
        let own = shared.clone();
        let doors = doors.taking(move |Endpoint { address, port }| {
            let takes = !own.policy.borrow().needs_reserved_port || is_reserved(port);
            if !takes {
                info!(target: "rsh", peer = %address, port, "refused: the port is not a reserved one");
            }
            takes
        });
        let own = shared.clone();
        doors.listen(section.port, move |stream, caller, permit| {
            rsh_session(own.clone(), stream, caller, permit)
        })?;
        Ok(Rsh { shared, doors, port: section.port })
    }
    fn reload(&self, section: &RshSection, (): ()) -> Result<(), Problem> {
        let policy = RshPolicy::of(section, self.shared.descriptor_limit)?;
        self.doors.admission().set_limits(section.limits()?);
        self.shared.policy.replace(policy);
        Ok(())
    }
    fn effect(key: &str) -> Option<&'static str> {
        (!matches!(key, "enabled" | "port")).then_some("for new commands")
    }
    fn describe(&self) -> Description {
        describe(self.port, RSH_PORT, "run a command from a closed net", |options, at| {
            format!("rsh {options}{at} COMMAND")
        })
    }
    fn doors(&self) -> &Doors {
        &self.doors
    }
}

async fn rsh_session(shared: Rc<RshShared>, mut stream: Stream, caller: Endpoint, permit: Permit) {
    let policy = shared.policy.borrow().clone();
    let (peer, remote) = (caller.address, stream.remote());
    let begun = std::cell::Cell::new(false);
    let keep_alive = Some(probe(&stream));
    let call_back = |port: u16| calls_back(&shared.host, Endpoint::new(remote.address, port), keep_alive);
    let decide = |client_user: &str, server_user: &str| {
        let is_let_in = policy.table.lets_in(peer, client_user, server_user);
        if !is_let_in {
            warn!(target: "rsh", %peer, client_user, server_user, "not let in");
        }
        is_let_in
    };
    let start = |user: &str, line: &str, has_errors: bool| {
        begun.set(true);
        permit.logged_in(user);
        info!(target: "rsh", %peer, user, line, "runs a command");
        Program::start(&policy.command(user, line), has_errors, &shared.reactor)
    };
    let reception = Reception { call_back: &call_back, decide: &decide, start: &start };
    let served = async { RshOutcome::Served(serve_rsh(&mut stream, reception).await) };
    // A request takes its time; a command takes as long as it likes.
    let late = async {
        shared.host.sleep(REQUEST_WITHIN).await;
        if begun.get() { std::future::pending().await } else { RshOutcome::Late }
    };
    let over = async { RshOutcome::Over(std::future::poll_fn(|cx| permit.poll_over(cx)).await) };
    let ended = futures_lite::future::or(futures_lite::future::or(served, late), over).await;
    let closed = |why: &str| RSH_LOG(SessionEvent::Closed { peer, user: None, why: Some(why) });
    match ended {
        RshOutcome::Served(RshEnd::Done) => {
            closed("the command has ended");
            let _ = shared.host.timeout(DRAIN_WITHIN, drain(&mut stream)).await;
        }
        RshOutcome::Served(RshEnd::Malformed(why)) => closed(&why.to_string()),
        RshOutcome::Served(RshEnd::NotStarted(why)) => error!(target: "rsh", "no command: {why}"),
        RshOutcome::Served(RshEnd::Failed(why)) => closed(&why.to_string()),
        RshOutcome::Served(RshEnd::Denied) => {}
        RshOutcome::Late => {
            closed("no command came in time");
            stream.abort();
        }
        RshOutcome::Over(over) => {
            closed(&over.to_string());
            stream.abort();
        }
    }
}

/// How a session of rsh ended.
enum RshOutcome {
    Served(RshEnd),
    /// No command came in time.
    Late,
    /// The host or an operator ended it.
    Over(Over),
}

/// Connects to the port at which a client waits for errors, from a reserved port. Another one is tried where that is
/// taken, and only there.
fn calls_back(host: &Host, to: Endpoint, keep_alive: Option<KeepAlive>) -> LocalFuture<io::Result<Stream>> {
    use inhost_stack::ConnectError::{InUse, NoPort};
    let host = host.clone();
    Box::pin(async move {
        let mut failure = io::Error::from(io::ErrorKind::AddrInUse);
        // Each time another port, so that one that was just used rests.
        let skipped = (host.now().as_nanos() / 1_000_000 % 511) as u16;
        for place in 0..PORT_TRIES {
            let mut options = ConnectOptions::default();
            options.local = Local { address: None, port: 1023 - (skipped + place) % 512 };
            let called = host.timeout(REQUEST_WITHIN, host.connect_with(to, options)).await;
            match called {
                Ok(Ok(stream)) => {
                    stream.set_nagle(false);
                    stream.set_keep_alive(keep_alive);
                    return Ok(stream);
                }
                Ok(Err(error @ ConnectError::Begin(InUse | NoPort))) => failure = io::Error::other(error),
                Ok(Err(error)) => return Err(io::Error::other(error)),
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        Err(failure)
    })
}

#[cfg(test)]
#[path = "../../little/tests/network/mod.rs"]
mod network;
#[cfg(test)]
mod tests;
