//! The Telnet server as a service of a host: its users, its shells, its log.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

use futures_lite::future::or;
use inhost_base::{Duration, Endpoint, IpAddr};
use inhost_common::service::{
    Description, Doors, HostFiles, Limits, Notice, Problem, Reach, Service, ServiceContext, endpoint,
};
use inhost_common::users::{
    ONE_TIME_ENTROPY_BYTES, Source, ThreadAuthenticator, UserError, Users, one_time_password,
};
use inhost_common::{Admission, AdmissionLimits, LocalFuture, Transport, session_log};
use inhost_socket::{Host, Stream};
use serde::{Deserialize, Serialize};
use tracing::{error, info, warn};

mod translation;

use crate::driver::{HostServices, ShellSettings, TelnetEvent, serve_session};
use crate::pty;
use crate::server::{Application, Applications, ServerConfig, Target};

/// Callers that are taken where `limits` does not say.
const LIMITS: AdmissionLimits = AdmissionLimits::per_minute(32, 8, 60);

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
    /// How many callers it takes. Default: 32 sessions, 8 of one peer, 60 connections of one peer in a minute.
    pub limits: Limits,
    /// Minutes without a byte from the user after which a session ends; 0 is never. Default 60.
    pub idle_min: u64,
    /// Password attempts in one session. Default 3.
    pub attempts: u32,
    /// Whether clients are asked to edit lines themselves (LINEMODE); one that offers to is let in any case. Default
    /// false.
    pub line_mode: bool,
    /// Whether clients are asked for a charset (CHARSET); one that asks gets one in any case. Default false.
    pub charset: bool,
    /// What `LOGON name` leads to, by name: a program, another host, or a menu.
    pub applications: BTreeMap<String, ApplicationSection>,
}

/// `[telnet.applications.NAME]` of `host.toml`; exactly one of `program`, `host` and `menu`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Default, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ApplicationSection {
    /// What HELP and menus say of it.
    pub about: String,
    /// A program and its arguments, which run as the user of the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
    /// ADDRESS or ADDRESS:PORT of another host's Telnet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Names of applications, among which the caller chooses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub menu: Vec<String>,
    /// Whether a user and a password are asked for first. Default: true for a program, false for all else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<bool>,
    /// The charset of a program or of a host that does not speak UTF-8: ISO-8859-1, US-ASCII, IBM037, IBM273, IBM500 or
    /// IBM1047.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charset: Option<String>,
    /// Columns between tab stops, at most 32, to which tabs are expanded. Default: tabs are left to the terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tabs: Option<u8>,
    /// File of single characters that are translated in another way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<PathBuf>,
    /// A port of its own, at which a caller is led to it at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

impl Default for Section {
    fn default() -> Self {
        Section {
            enabled: true,
            port: 23,
            users: None,
            shell: None,
            news: None,
            limits: Limits::default(),
            idle_min: 60,
            attempts: 3,
            line_mode: false,
            charset: false,
            applications: BTreeMap::new(),
        }
    }
}

impl Section {
    fn limits(&self) -> Result<AdmissionLimits, Problem> {
        self.limits.or(Telnet::NAME, LIMITS)
    }
    fn applications(&self) -> Result<Applications, Problem> {
        self.check_names_and_ports()?;
        let all = self.applications.iter().map(|(name, of)| {
            let key = |field: &str| format!("telnet.applications.{name}{field}");
            let is_name =
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
            if !is_name {
                return Err(Problem::setting(&key(""), name, "a name has letters, digits, '-', '_' and '.'"));
            }
            let target = match (&of.program[..], &of.host, &of.menu[..]) {
                ([program, ..], None, []) if program.starts_with('/') => Target::Program(of.program.clone()),
                ([program, ..], None, []) => {
                    return Err(Problem::setting(&key(".program"), program, "give the program's whole path"));
                }
                ([], Some(text), []) => {
                    let expected = "give an address such as 10.9.0.5 or [fd00::5]:23";
                    let to = endpoint(text, TELNET_PORT);
                    Target::Host(to.ok_or_else(|| Problem::setting(&key(".host"), text, expected))?)
                }
                ([], None, [_, ..]) => {
                    let unknown = of.menu.iter().find(|entry| !self.applications.contains_key(*entry));
                    if let Some(entry) = unknown {
                        return Err(Problem::setting(&key(".menu"), entry, "no application has this name"));
                    }
                    Target::Menu(of.menu.clone())
                }
                _ => {
                    return Err(Problem::setting(
                        &key(""),
                        name,
                        "give exactly one of program, host and menu",
                    ));
                }
            };
            let mut made = Application::new(name, target);
            made.about.clone_from(&of.about);
            made.translation = translation::translation(of, &key)?.map(Rc::new);
            made.needs_password = of.password.unwrap_or(matches!(made.target, Target::Program(_)));
            Ok(made)
        });
        all.collect::<Result<_, _>>().map(Applications::new)
    }
    /// No two applications have the same name, in any case of letters, or the same port.
    fn check_names_and_ports(&self) -> Result<(), Problem> {
        let (mut names, mut ports) = (BTreeMap::new(), BTreeMap::new());
        for (name, of) in &self.applications {
            if let Some(other) = names.insert(name.to_ascii_lowercase(), name) {
                let expected =
                    format!("{other} differs in the case of letters only, which LOGON does not tell apart");
                return Err(Problem::setting(&format!("telnet.applications.{name}"), name, expected));
            }
            let Some(port) = of.port else { continue };
            let expected = match port {
                0 => "give a port from 1 to 65535".to_owned(),
                own if own == self.port => "Telnet itself has this port".to_owned(),
                _ => match ports.insert(port, name) {
                    Some(other) => format!("{other} has this port"),
                    None => continue,
                },
            };
            return Err(Problem::setting(&format!("telnet.applications.{name}.port"), port, expected));
        }
        Ok(())
    }
    /// The ports of applications, with their names.
    fn contacts(&self) -> impl Iterator<Item = (u16, String)> {
        self.applications.iter().filter_map(|(name, of)| Some((of.port?, name.clone())))
    }
}

/// The port of Telnet.
const TELNET_PORT: u16 = 23;

/// How long a call to another host may take.
const CALL_WITHIN: Duration = Duration::from_secs(30);

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
    contacts: Vec<(u16, String)>,
    notice: Option<(OneTime, String)>,
    descriptor_limit: Option<u64>,
}

/// How long the processes of ended sessions may take to end: they are hung up first, and killed two seconds later.
const SHELLS_END: std::time::Duration = std::time::Duration::from_secs(5);

impl Service for Telnet {
    const NAME: &'static str = "telnet";
    type Section = Section;
    type Prepared = ();

    fn check(section: &Section) -> Result<(), Problem> {
        section.limits()?;
        section.applications().map(drop)
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
        let authenticator = ThreadAuthenticator::start(source)?;
        let news = Rc::new(RefCell::new(section.news.clone()));
        let (shown, netstat) = (news.clone(), context.netstat.clone());
        let descriptor_limit = context.descriptor_limit;
        let admission = Admission::sharing(section.limits()?, &context.denials);
        let doors =
            Doors::new(Self::NAME, &host, &context.callers, admission.clone(), session_log!("telnet"));
        let services = HostServices::new(
            host.clone(),
            authenticator,
            admission,
            shell(section, descriptor_limit),
            context.reactor.clone(),
        )
        .with_news(move || read_news(shown.borrow().as_deref()))
        .with_netstat(move || netstat())
        .with_operator(context.operator.clone())
        .with_caller(calls(&host))
        .with_log(session_log!("telnet"))
        .with_notes(note);
        let port = section.port;
        let services = Rc::new(services);
        let config = Rc::new(RefCell::new(server_config(section)?));
        let contacts: Vec<_> = section.contacts().collect();
        let own = contacts.iter().map(|(port, name)| (*port, Some(name.clone())));
        for (port, contact) in std::iter::once((port, None)).chain(own) {
            let (served, current) = (services.clone(), config.clone());
            doors.listen_to_all(port, move |stream, caller| {
                let config = ServerConfig { contact: contact.clone(), ..current.borrow().clone() };
                session(stream, caller.address, served.clone(), config)
            })?;
        }
        let users = context
            .files
            .users
            .as_ref()
            .filter(|_| context.files.are_users_named)
            .map(|path| format!(" --users {}", path.display()));
        let make = format!("{} user add NAME{}", context.program, users.unwrap_or_default());
        let notice = one_time.map(|one_time| (one_time, make));
        Ok(Telnet { services, doors, config, news, port, contacts, notice, descriptor_limit })
    }
    fn reload(&self, section: &Section, (): ()) -> Result<(), Problem> {
        let (config, limits) = (server_config(section)?, section.limits()?);
        self.doors.admission().set_limits(limits);
        self.config.replace(config);
        self.services.set_shell(shell(section, self.descriptor_limit));
        self.news.replace(section.news.clone());
        Ok(())
    }
    fn effect(key: &str) -> Option<&'static str> {
        let needs_restart = matches!(key, "enabled" | "port" | "users")
            || key.starts_with("applications.") && key.ends_with(".port");
        (!needs_restart).then_some("for new sessions")
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
                "No user is configured, and this is not a terminal to show a one-time password on. \
                 Make one that stays with: {make}"
            ),
        });
        Description {
            summary: format!("port {}", self.port),
            reach: std::iter::once(Reach::new(Transport::Tcp, self.port, "log in, after LOGON", command))
                .chain(
                    self.contacts.iter().map(|(port, name)| Reach::new(Transport::Tcp, *port, name, command)),
                )
                .collect(),
            notice,
        }
    }
    fn doors(&self) -> &Doors {
        &self.doors
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

async fn session(stream: Stream, caller: IpAddr, services: Rc<TelnetServices>, config: ServerConfig) {
    // Each key's echo leaves at once; what is said in one go is one write.
    stream.set_nagle(false);
    // For clients that answer no timing marks: less of a shell's output lies ahead of its reader.
    stream.set_not_sent_low_water(Some(NOT_SENT_BYTES));
    stream.set_send_buffer_limit(SEND_BUFFER_BYTES);
    serve_session(stream, caller, &config, &*services).await;
}

fn server_config(section: &Section) -> Result<ServerConfig, Problem> {
    Ok(ServerConfig {
        attempts: u8::try_from(section.attempts).unwrap_or(u8::MAX).max(1),
        idle_time: (section.idle_min > 0).then(|| Duration::from_secs(section.idle_min.saturating_mul(60))),
        applications: Rc::new(section.applications()?),
        line_mode: section.line_mode,
        charset: section.charset,
        ..ServerConfig::default()
    })
}

/// Opens connections to other hosts from this one.
fn calls(host: &Host) -> impl Fn(Endpoint) -> LocalFuture<io::Result<Stream>> + 'static {
    let host = host.clone();
    move |to| {
        let host = host.clone();
        Box::pin(async move {
            let called = or(async { Some(host.connect(to).await) }, async {
                host.sleep(CALL_WITHIN).await;
                None
            });
            let stream = called.await.ok_or(io::ErrorKind::TimedOut)?.map_err(io::Error::other)?;
            stream.set_nagle(false);
            Ok(stream)
        })
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
fn note(event: TelnetEvent<'_>) {
    match event {
        TelnetEvent::Led { peer, to } => info!(target: "telnet", %peer, "led to {to}"),
        TelnetEvent::NotOperator { peer, user } => {
            warn!(target: "telnet", %peer, user, "refused: not an operator");
        }
        TelnetEvent::Operating { peer, user } => info!(target: "telnet", %peer, user, "is operator"),
        TelnetEvent::Ordered { peer, user, order } => {
            // As a text, it is quoted and escaped.
            let order = &*order.to_string();
            info!(target: "telnet", %peer, user, order, "operator's order");
        }
        TelnetEvent::Substituted { peer, charset } => {
            info!(target: "telnet", %peer, "{charset} lacks characters; substitutes stand for them");
        }
        TelnetEvent::NoShell { user, error } => error!(target: "telnet", user, "no shell: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(applications: &[(&str, Option<u16>)]) -> Result<(), String> {
        let mut section = Section::default();
        for (name, port) in applications {
            let of = ApplicationSection { host: Some("10.9.0.5".into()), port: *port, ..Default::default() };
            section.applications.insert((*name).to_owned(), of);
        }
        Telnet::check(&section).map_err(|problem| problem.to_string())
    }

    #[test]
    fn applications_have_names_and_ports_of_their_own() {
        assert_eq!(
            checked(&[("tso", Some(2300)), ("vax", Some(2301)), ("cal", None), ("ada", None)]),
            Ok(())
        );
        let fails = |applications: &[_], key: &str, why: &str| {
            let error = checked(applications).unwrap_err();
            assert!(error.starts_with(key) && error.contains(why), "{error}");
        };
        let port = "telnet.applications.vax.port = ";
        fails(&[("vax", Some(0))], port, "give a port from 1 to 65535");
        fails(&[("vax", Some(23))], port, "Telnet itself has this port");
        fails(&[("tso", Some(2300)), ("vax", Some(2300))], port, "tso has this port");
        fails(&[("VAX", None), ("vax", None)], "telnet.applications.vax = ", "VAX differs in the case");
    }
}
