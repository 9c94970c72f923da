//! Services that a session requires of its host.

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use inhost_base::{Endpoint, IpAddr};

use super::{Clock, Passage};
use crate::codec::{Charset, Function};
use crate::pty::{Pty, Shell, ShellCommand, TerminalKeys, TerminalSignal};
use crate::server::{ShellRequest, Target};
use inhost_common::LocalFuture;
use inhost_common::service::{NoOperator, Operator, Order};
use inhost_common::users::{Authenticate, Verdict};
use inhost_common::{Admission, LogOn, Permit, SessionEvent};
use inhost_runtime::Reactor;
use inhost_socket::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The host, as a session sees it.
pub trait Services {
    /// Its time.
    type Clock: Clock;
    /// Program started for a user.
    type Shell: Shell;
    /// The clock.
    fn clock(&self) -> &Self::Clock;
    /// Counts and rates of sessions.
    fn admission(&self) -> &Admission;
    /// Whether a user may log in.
    fn authenticate(&self, user: String, password: String) -> LocalFuture<Verdict>;
    /// Starts a shell.
    fn shell(&self, request: &ShellRequest) -> io::Result<Self::Shell>;
    /// The text of NEWS.
    fn news(&self) -> String;
    /// The text of NETSTAT.
    fn netstat(&self) -> String;
    /// The text of SYSSTAT for a visitor.
    fn figures(&self) -> String;
    /// Carries out what the operator `user` orders, and says what was done.
    fn carry_out(&self, user: &str, order: Order) -> LocalFuture<String>;
    /// Something for the log.
    fn record(&self, event: SessionEvent<'_>);
    /// Has a password checked, as soon as its caller at `peer` may have one more wrong one; counts and logs what comes of it. Ready
    /// with the verdict, or with `None` for a caller who has had too many wrong ones.
    fn poll_log_on(
        &self,
        log_on: &mut LogOn<Verdict>,
        permit: &Permit,
        peer: IpAddr,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Verdict>> {
        let now = self.clock().now();
        let check = |user, password| self.authenticate(user, password);
        Poll::Ready(match ready!(log_on.poll(permit, check, now, cx)) {
            Ok((attempt, verdict)) => {
                match &verdict {
                    Verdict::Denied => attempt.denied(now),
                    Verdict::Unavailable(reason) => self.record(SessionEvent::Unavailable { reason }),
                    Verdict::Granted(_) | Verdict::Busy => {}
                }
                Some(verdict)
            }
            Err(refusal) => {
                self.record(SessionEvent::Refused { peer, refusal });
                None
            }
        })
    }
    /// Something for the log that Telnet alone has. Default: it is passed over.
    fn note(&self, event: TelnetEvent<'_>) {
        let _ = event;
    }
}

/// Log events that sessions of Telnet have beside [those of every service](SessionEvent).
#[derive(Clone, Copy, Debug)]
pub enum TelnetEvent<'a> {
    /// A visitor or a user is led to a named application.
    Led {
        /// From where.
        peer: IpAddr,
        /// Its name.
        to: &'a str,
    },
    /// A user with the right password asked for the operator's prompt, and is not an operator.
    NotOperator {
        /// From where.
        peer: IpAddr,
        /// Who.
        user: &'a str,
    },
    /// An operator has the operator's prompt.
    Operating {
        /// From where.
        peer: IpAddr,
        /// Who.
        user: &'a str,
    },
    /// An operator gives an order.
    Ordered {
        /// From where.
        peer: IpAddr,
        /// Who.
        user: &'a str,
        /// What; may hold anything a person can type.
        order: &'a Order,
    },
    /// The charset of a session lacks characters, and its substitute stands for them.
    Substituted {
        /// Whose session it is.
        peer: IpAddr,
        /// The charset.
        charset: Charset,
    },
    /// A shell could not be started.
    NoShell {
        /// For whom.
        user: &'a str,
        /// Why.
        error: &'a io::Error,
    },
}

/// Configuration of shells.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ShellSettings {
    /// The program, unless the user's own is set. Default `/bin/sh`.
    pub program: PathBuf,
    /// Its arguments. Default `-l`, a login shell; not given to a user's own shell that is not a Unix shell by
    /// name (none of sh, bash, dash, zsh, ksh, fish, ash).
    pub arguments: Vec<String>,
    /// PATH. Default the system's usual.
    pub path: String,
    /// HOME and where it starts. Default that of the process.
    pub home: PathBuf,
    /// User and group to run as, where the host may change them. Default those of the host.
    pub identity: Option<(u32, u32)>,
    /// Descriptor limit of the shell. Some programs look at each number below it, so a host that raised its own limit
    /// gives the one it was started with. Default that of the process.
    pub descriptor_limit: Option<u64>,
}

impl Default for ShellSettings {
    fn default() -> Self {
        ShellSettings {
            program: "/bin/sh".into(),
            arguments: vec!["-l".into()],
            path: "/usr/local/bin:/usr/bin:/bin".into(),
            home: std::env::var_os("HOME").map_or_else(|| "/".into(), PathBuf::from),
            identity: None,
            descriptor_limit: None,
        }
    }
}

impl ShellSettings {
    /// The command for one user: TERM and LANG as validated, and nothing else of the peer's.
    pub fn command(&self, request: &ShellRequest) -> ShellCommand {
        let shell = request.account.shell.clone().unwrap_or_else(|| self.program.clone());
        let named = request.application.as_ref().and_then(|of| match &of.target {
            Target::Program(words) => words.split_first(),
            _ => None,
        });
        let program = named.map_or_else(|| shell.clone(), |(program, _)| program.into());
        let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let usual = ["sh", "bash", "dash", "zsh", "ksh", "fish", "ash"].contains(&name);
        let takes_arguments = usual || program == self.program;
        let mut environment = vec![
            ("TERM".to_owned(), request.terminal.clone()),
            ("PATH".to_owned(), self.path.clone()),
            ("HOME".to_owned(), self.home.to_string_lossy().into_owned()),
            ("SHELL".to_owned(), shell.to_string_lossy().into_owned()),
        ];
        if !request.account.name.is_empty() {
            let user = &request.account.name;
            environment.extend(["USER", "LOGNAME"].map(|name| (name.to_owned(), user.clone())));
        }
        if let Some(language) = &request.language {
            environment.push(("LANG".to_owned(), language.clone()));
        }
        let arguments = match named {
            Some((_, arguments)) => arguments.to_vec(),
            None if takes_arguments => self.arguments.clone(),
            None => Vec::new(),
        };
        ShellCommand {
            program,
            arguments,
            environment,
            directory: Some(self.home.clone()).filter(|home| home.is_dir()),
            identity: self.identity,
            descriptor_limit: self.descriptor_limit,
            window: request.window,
        }
    }
}

/// What a user is led to: a program on a pty, or another host.
pub enum HostShell {
    /// On this system.
    Program(Box<Pty>),
    /// Telnet at another host.
    Passage(Box<Passage<Stream>>),
}

impl HostShell {
    fn as_shell(&self) -> &dyn Shell {
        match self {
            HostShell::Program(pty) => &**pty,
            HostShell::Passage(passage) => &**passage,
        }
    }
    fn pinned(self: Pin<&mut Self>) -> Pin<&mut dyn Shell> {
        match self.get_mut() {
            HostShell::Program(pty) => Pin::new(&mut **pty as &mut dyn Shell),
            HostShell::Passage(passage) => Pin::new(&mut **passage as &mut dyn Shell),
        }
    }
}

impl Shell for HostShell {
    fn resize(&self, columns: u16, rows: u16) {
        self.as_shell().resize(columns, rows);
    }
    fn input_waits(&self) -> bool {
        self.as_shell().input_waits()
    }
    fn signal(&self, signal: TerminalSignal) {
        self.as_shell().signal(signal);
    }
    fn set_characters(&self, characters: &[(Function, u8)]) {
        self.as_shell().set_characters(characters);
    }
    fn edit_externally(&self, on: bool) {
        self.as_shell().edit_externally(on);
    }
    fn keys(&self) -> TerminalKeys {
        self.as_shell().keys()
    }
    fn interrupt(&self) {
        self.as_shell().interrupt();
    }
    fn discard_output(&self) {
        self.as_shell().discard_output();
    }
    fn end(&mut self) {
        Pin::new(self).pinned().end();
    }
}

impl AsyncRead for HostShell {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.pinned().poll_read(cx, buf)
    }
}

impl AsyncWrite for HostShell {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.pinned().poll_write(cx, bytes)
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pinned().poll_flush(cx)
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pinned().poll_shutdown(cx)
    }
}

/// Opens a connection to another host.
type Caller = Box<dyn Fn(Endpoint) -> LocalFuture<io::Result<Stream>>>;
/// A text that a host makes when it is asked for.
type Text = Box<dyn Fn() -> String>;
/// Observer of session events.
type Log = Box<dyn Fn(SessionEvent<'_>)>;
/// Observer of the events that Telnet alone has.
type Notes = Box<dyn Fn(TelnetEvent<'_>)>;

/// [`Services`] with shells in ptys, put together from parts.
pub struct HostServices<C, A> {
    clock: C,
    authenticator: A,
    admission: Admission,
    shell: RefCell<ShellSettings>,
    reactor: Reactor,
    news: Text,
    netstat: Text,
    operator: Rc<dyn Operator>,
    caller: Option<Caller>,
    log: Log,
    notes: Notes,
}

impl<C: Clock, A: Authenticate> HostServices<C, A> {
    /// Shells whose ptys `reactor` watches; no news, an empty NETSTAT, no operator, no other hosts, no log.
    pub fn new(
        clock: C,
        authenticator: A,
        admission: Admission,
        shell: ShellSettings,
        reactor: Reactor,
    ) -> Self {
        HostServices {
            clock,
            authenticator,
            admission,
            shell: RefCell::new(shell),
            reactor,
            news: Box::new(|| "No news.".to_owned()),
            netstat: Box::new(String::new),
            operator: Rc::new(NoOperator),
            caller: None,
            log: Box::new(|_| ()),
            notes: Box::new(|_| ()),
        }
    }
    /// With this text for NEWS.
    pub fn with_news(mut self, news: impl Fn() -> String + 'static) -> Self {
        self.news = Box::new(news);
        self
    }
    /// With this text for NETSTAT.
    pub fn with_netstat(mut self, netstat: impl Fn() -> String + 'static) -> Self {
        self.netstat = Box::new(netstat);
        self
    }
    /// With what operators can do.
    pub fn with_operator(mut self, operator: Rc<dyn Operator>) -> Self {
        self.operator = operator;
        self
    }
    /// With a way to other hosts.
    pub fn with_caller(
        mut self,
        caller: impl Fn(Endpoint) -> LocalFuture<io::Result<Stream>> + 'static,
    ) -> Self {
        self.caller = Some(Box::new(caller));
        self
    }
    /// With this log.
    pub fn with_log(mut self, log: impl Fn(SessionEvent<'_>) + 'static) -> Self {
        self.log = Box::new(log);
        self
    }
    /// With this log of the events that Telnet alone has.
    pub fn with_notes(mut self, notes: impl Fn(TelnetEvent<'_>) + 'static) -> Self {
        self.notes = Box::new(notes);
        self
    }
    /// Other shells from now on.
    pub fn set_shell(&self, shell: ShellSettings) {
        *self.shell.borrow_mut() = shell;
    }
}

/// The port of Telnet, at which a client begins the negotiation.
const PORT: u16 = 23;

impl<C: Clock + Clone + 'static, A: Authenticate> Services for HostServices<C, A> {
    type Clock = C;
    type Shell = HostShell;
    fn clock(&self) -> &C {
        &self.clock
    }
    fn admission(&self) -> &Admission {
        &self.admission
    }
    fn authenticate(&self, user: String, password: String) -> LocalFuture<Verdict> {
        self.authenticator.authenticate(user, password)
    }
    fn shell(&self, request: &ShellRequest) -> io::Result<HostShell> {
        if let Some(Target::Host(to)) = request.application.as_ref().map(|of| &of.target) {
            let caller = self.caller.as_ref().ok_or(io::ErrorKind::Unsupported)?;
            let clock = self.clock.clone();
            let (terminal, starts) = (&request.terminal, to.port == PORT);
            let passage = Passage::new(caller(*to), terminal, request.window, starts, move || clock.now());
            let translates = request.application.as_ref().is_some_and(|of| of.translation.is_some());
            let passage = if translates { passage.without_charset() } else { passage };
            return Ok(HostShell::Passage(Box::new(passage)));
        }
        let pty = Pty::spawn(&self.shell.borrow().command(request), &self.reactor)?;
        Ok(HostShell::Program(Box::new(pty)))
    }
    fn news(&self) -> String {
        (self.news)()
    }
    fn netstat(&self) -> String {
        (self.netstat)()
    }
    fn figures(&self) -> String {
        self.operator.figures()
    }
    fn carry_out(&self, user: &str, order: Order) -> LocalFuture<String> {
        self.operator.carry_out(user, order)
    }
    fn record(&self, event: SessionEvent<'_>) {
        (self.log)(event);
    }
    fn note(&self, event: TelnetEvent<'_>) {
        (self.notes)(event);
    }
}
