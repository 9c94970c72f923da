//! One session of the rlogin server over a stream.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use inhost_base::{Endpoint, Instant};
use inhost_common::users::Verdict;
use inhost_common::{Alarm, LogOn, Over, Permit, within};
use inhost_telnet::driver::{Clock, Services, SessionEvent, TelnetEvent, Urgent};
use inhost_telnet::pty::{Shell, TerminalKeys};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::drain;
use super::rlogin::{Action, Closing, Session, SessionConfig};

/// Steps of one poll, after which others get their turn.
const STEPS: usize = 32;
/// Octets of one read.
const READ_BYTES: usize = 2048;
/// Longest time to send the last output.
const CLOSING_TIME: inhost_base::Duration = inhost_base::Duration::from_secs(5);

/// Says of the client's user and the user here: let in without a password, with one, or (`None`) not at all.
pub type Decide<'a> = &'a dyn Fn(&str, &str) -> Option<bool>;

/// Serves one client that was admitted; why the session ended, and `None` when the connection failed.
pub async fn serve_rlogin<S, V>(
    stream: S,
    peer: Endpoint,
    permit: Permit,
    config: SessionConfig,
    (services, decide): (&V, Decide<'_>),
) -> Option<Closing>
where
    S: AsyncRead + AsyncWrite + Urgent + Unpin,
    V: Services,
{
    let session = Session::new(config, services.clock().now());
    let mut driver = Driver {
        stream,
        peer,
        permit,
        services,
        decide,
        session,
        shell: None,
        log_on: None,
        is_asked: false,
        pause: None,
        alarm: Alarm::default(),
        user: None,
        closing: None,
    };
    services.record(SessionEvent::Opened { peer: peer.address });
    let ended = poll_fn(|cx| driver.poll(cx)).await;
    if let Some(shell) = &mut driver.shell {
        shell.end();
    }
    if ended.is_ok() {
        within(services.clock(), CLOSING_TIME, driver.farewell()).await;
    }
    ended.ok()
}

struct Driver<'a, S, V: Services> {
    stream: S,
    peer: Endpoint,
    permit: Permit,
    services: &'a V,
    decide: Decide<'a>,
    session: Session,
    shell: Option<V::Shell>,
    log_on: Option<LogOn<Verdict>>,
    /// Whether a password was asked for.
    is_asked: bool,
    /// When the pause after a wrong password is over.
    pause: Option<Instant>,
    alarm: Alarm,
    user: Option<String>,
    closing: Option<Closing>,
}

impl<S, V> Driver<'_, S, V>
where
    S: AsyncRead + AsyncWrite + Urgent + Unpin,
    V: Services,
{
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Closing>> {
        for _ in 0..STEPS {
            let mut busy = self.times(cx);
            busy |= self.network(cx)?;
            busy |= self.log_on(cx);
            busy |= self.actions();
            if let Some(closing) = self.closing {
                return Poll::Ready(Ok(closing));
            }
            busy |= self.feed_shell(cx);
            busy |= self.drain_shell(cx);
            busy |= self.send(cx)?;
            if !busy {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
    fn times(&mut self, cx: &mut Context<'_>) -> bool {
        match self.permit.poll_over(cx) {
            Poll::Ready(Over::HostEnds) => self.session.host_ends(),
            Poll::Ready(Over::Dropped) => self.session.dropped(),
            Poll::Pending => {}
        }
        let clock = self.services.clock();
        let now = clock.now();
        if self.pause.is_some_and(|at| now >= at) {
            self.pause = None;
            self.session.denied();
            return true;
        }
        let due = [self.pause, self.session.deadline()].into_iter().flatten().min();
        let is_due = self.alarm.poll(clock, due, cx);
        if is_due {
            self.session.timeout(clock.now());
        }
        is_due
    }
    fn keys(&self) -> TerminalKeys {
        self.shell.as_ref().map_or_else(TerminalKeys::default, Shell::keys)
    }
    fn network(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        if !self.session.takes_input() {
            return Ok(false);
        }
        let mut bytes = [0; READ_BYTES];
        let mut buf = ReadBuf::new(&mut bytes);
        match Pin::new(&mut self.stream).poll_read(cx, &mut buf) {
            Poll::Ready(read) => {
                read?;
                let (keys, now) = (self.keys(), self.services.clock().now());
                match buf.filled() {
                    [] => self.session.end_input(),
                    octets => self.session.network(octets, keys, now),
                }
                Ok(true)
            }
            Poll::Pending => Ok(false),
        }
    }
    fn log_on(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(log_on) = &mut self.log_on else { return false };
        let judged = self.services.poll_log_on(log_on, &self.permit, self.peer.address, cx);
        let Poll::Ready(verdict) = judged else { return false };
        self.log_on = None;
        match verdict {
            Some(verdict) => self.session.verdict(verdict),
            None => self.session.denied(),
        }
        true
    }
    fn actions(&mut self) -> bool {
        let mut busy = false;
        while let Some(action) = self.session.action() {
            self.act(action);
            busy = true;
        }
        busy
    }
    fn act(&mut self, action: Action) {
        let (now, peer) = (self.services.clock().now(), self.peer.address);
        match action {
            Action::Decide { client_user, server_user } => {
                let decided = (self.decide)(&client_user, &server_user);
                self.is_asked = decided == Some(false);
                if decided.is_none() {
                    self.services.record(SessionEvent::Denied { peer, user: &server_user });
                }
                self.session.decide(decided);
            }
            Action::Authenticate { user, password } => self.log_on = Some(LogOn::new(user, password)),
            Action::Denied { user, pause } => {
                self.services.record(SessionEvent::Denied { peer, user: &user });
                self.pause = Some(now + pause);
            }
            Action::StartShell(request) => match self.services.shell(&request) {
                Ok(shell) => {
                    let user = request.account.name;
                    self.permit.logged_in(&user);
                    self.services.record(SessionEvent::LoggedIn { peer, user: &user });
                    (self.user, self.shell) = (Some(user), Some(shell));
                    self.session.shell_started(self.is_asked, now);
                }
                Err(error) => {
                    self.services.note(TelnetEvent::NoShell { user: &request.account.name, error: &error });
                    self.session.shell_failed(self.is_asked);
                }
            },
            Action::Resize { columns, rows } => {
                self.shell.iter().for_each(|shell| shell.resize(columns, rows));
            }
            Action::DiscardOutput => self.shell.iter().for_each(Shell::discard_output),
            Action::Close(closing) => self.closing = Some(closing),
        }
    }
    fn feed_shell(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(shell) = &mut self.shell else { return false };
        let mut busy = false;
        while !self.session.typed().is_empty() {
            match Pin::new(&mut *shell).poll_write(cx, self.session.typed()) {
                Poll::Ready(Ok(count)) if count > 0 => self.session.taken(count),
                // The shell takes nothing more; its end comes as the end of its output.
                Poll::Ready(_) => self.session.taken(usize::MAX),
                Poll::Pending => break,
            }
            busy = true;
        }
        busy
    }
    fn drain_shell(&mut self, cx: &mut Context<'_>) -> bool {
        let takes = self.session.takes_output();
        let Some(shell) = self.shell.as_mut().filter(|_| takes) else { return false };
        let mut bytes = [0; READ_BYTES];
        let mut buf = ReadBuf::new(&mut bytes);
        match Pin::new(&mut *shell).poll_read(cx, &mut buf) {
            Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                let keys = shell.keys();
                self.session.output(buf.filled(), keys, self.services.clock().now());
            }
            Poll::Ready(_) => self.session.shell_ended(),
            Poll::Pending => return false,
        }
        true
    }
    fn send(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut busy = false;
        while self.session.pending_bytes() > 0 {
            let (bytes, is_urgent) = self.session.pending();
            let sent = match is_urgent {
                true => Pin::new(&mut self.stream).poll_send_urgent(cx, bytes),
                false => Pin::new(&mut self.stream).poll_write(cx, bytes),
            };
            match sent {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => self.session.sent(count),
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
            busy = true;
        }
        Ok(busy)
    }
    /// The last octets, then the end of the stream.
    async fn farewell(&mut self) {
        let sent = poll_fn(|cx| match self.send(cx) {
            Ok(_) if self.session.pending_bytes() > 0 => Poll::Pending,
            other => Poll::Ready(other),
        });
        if sent.await.is_ok() && self.stream.shutdown().await.is_ok() {
            drain(&mut self.stream).await;
        }
    }
}
