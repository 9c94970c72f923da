//! One session of the server.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use inhost_base::{Duration, Instant, IpAddr};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::{Clock, READ_BYTES, Services, SessionEvent, TelnetEvent, URGENT_LOOK_MS, Urgent, poll_send};
use crate::pty::{Shell, TerminalKeys};
use crate::server::{Action, Closing, ServerConfig, Session};
use inhost_common::LocalFuture;
use inhost_common::users::Verdict;
use inhost_common::{Alarm, LogOn, Over, Permit, Refusal, within};

/// Steps of one poll, after which others get their turn.
const STEPS: usize = 32;
/// Time until the first look at whether the shell has read the line before.
const LINE_PAUSE: Duration = Duration::from_millis(5);
/// Each look doubles it, up to this.
const LONGEST_LINE_PAUSE: Duration = Duration::from_millis(100);

/// Reason for the end of a session.
#[derive(Debug)]
pub enum SessionEnd {
    /// It was not admitted.
    Refused(Refusal),
    /// It was ended from this side, or by the user.
    Closed(Closing),
    /// The connection failed.
    Failed(io::Error),
}

/// Serves one client, from the greeting until the connection can be dropped. The shell, if there was one,
/// is hung up when this returns or is dropped.
pub async fn serve_session<S, V>(
    mut stream: S,
    peer: IpAddr,
    config: &ServerConfig,
    services: &V,
) -> SessionEnd
where
    S: AsyncRead + AsyncWrite + Urgent + Unpin,
    V: Services,
{
    let now = services.clock().now();
    let permit = match services.admission().admit(peer, now) {
        Ok(permit) => permit,
        Err(refusal) => {
            services.record(SessionEvent::Refused { peer, refusal });
            let text = format!("{}: {refusal}.\r\n", config.host_name);
            let goodbye = async {
                let _ = stream.write_all(text.as_bytes()).await;
                let _ = stream.shutdown().await;
            };
            within(services.clock(), config.closing_time, goodbye).await;
            return SessionEnd::Refused(refusal);
        }
    };
    services.record(SessionEvent::Opened { peer });
    let mut driver = Driver {
        stream,
        peer,
        services,
        permit,
        session: Session::new(config.clone(), now),
        shell: None,
        user: None,
        log_on: None,
        order: None,
        pause: Pause::default(),
        deadline: Alarm::default(),
        look: Alarm::default(),
        paced: Alarm::default(),
        line_at: None,
        line_pause: LINE_PAUSE,
        line: Alarm::default(),
        held_since: None,
        closing: None,
    };
    let end = poll_fn(|cx| driver.poll(cx)).await;
    if let Some(shell) = &mut driver.shell {
        shell.end();
    }
    let closing = driver.closing;
    let why = closing.map(Closing::as_str);
    services.record(SessionEvent::Closed { peer, user: driver.user.as_deref(), why });
    if closing.is_some() {
        within(services.clock(), config.closing_time, driver.farewell()).await;
    }
    end
}

#[derive(Default)]
struct Pause {
    until: Option<Instant>,
    alarm: Alarm,
}

struct Driver<'a, S, V: Services> {
    stream: S,
    peer: IpAddr,
    services: &'a V,
    permit: Permit,
    session: Session,
    shell: Option<V::Shell>,
    user: Option<String>,
    log_on: Option<LogOn<Verdict>>,
    /// The answer to an operator's order.
    order: Option<LocalFuture<String>>,
    pause: Pause,
    deadline: Alarm,
    look: Alarm,
    paced: Alarm,
    /// When the next line of a client that edits lines may go to the shell.
    line_at: Option<Instant>,
    line_pause: Duration,
    line: Alarm,
    held_since: Option<Instant>,
    closing: Option<Closing>,
}

impl<S, V> Driver<'_, S, V>
where
    S: AsyncRead + AsyncWrite + Urgent + Unpin,
    V: Services,
{
    /// Does what can be done. Input comes before output, so that an interrupt is seen before more of what
    /// it is to stop.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<SessionEnd> {
        for _ in 0..STEPS {
            let mut busy = self.timers(cx);
            match self.network(cx) {
                Ok(more) => busy |= more,
                Err(end) => return Poll::Ready(end),
            }
            busy |= self.actions(cx);
            if let Some(closing) = self.closing {
                return Poll::Ready(SessionEnd::Closed(closing));
            }
            busy |= self.feed_shell(cx);
            busy |= self.drain_shell(cx);
            match poll_send(&mut self.stream, self.session.telnet(), cx) {
                Poll::Ready(Ok(sent)) => busy |= sent,
                Poll::Ready(Err(error)) => return Poll::Ready(SessionEnd::Failed(error)),
                Poll::Pending => {}
            }
            busy |= self.session.resume_typing();
            if !busy {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn timers(&mut self, cx: &mut Context<'_>) -> bool {
        let clock = self.services.clock();
        let mut busy = false;
        match self.permit.poll_over(cx) {
            Poll::Ready(Over::HostEnds) => self.session.host_ends(),
            Poll::Ready(Over::Dropped) => self.session.dropped(),
            Poll::Pending => {}
        }
        if self.deadline.poll(clock, self.session.deadline(), cx) {
            self.session.timeout(clock.now());
            busy = true;
        }
        if self.pause.alarm.poll(clock, self.pause.until, cx) {
            self.pause.until = None;
            self.session.resume();
            busy = true;
        }
        if let Some(order) = &mut self.order
            && let Poll::Ready(answer) = order.as_mut().poll(cx)
        {
            self.order = None;
            self.session.reply(&answer);
            busy = true;
        }
        busy | self.log_on(cx)
    }

    fn log_on(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(log_on) = &mut self.log_on else { return false };
        let judged = self.services.poll_log_on(log_on, &self.permit, self.peer, cx);
        let Poll::Ready(verdict) = judged else { return false };
        self.log_on = None;
        match verdict {
            Some(verdict) => self.session.verdict(verdict),
            None => self.session.too_many_denials(),
        }
        true
    }

    /// Reads from the client. Urgent data is announced to the machine before the octets that lead to it;
    /// while the session takes no input, it is looked for now and then, for a Synch must get through.
    fn network(&mut self, cx: &mut Context<'_>) -> Result<bool, SessionEnd> {
        let clock = self.services.clock();
        if let Some(ahead) = self.stream.urgent_ahead() {
            self.session.telnet().urgent(ahead);
        }
        if self.session.has_input_ended() {
            return Ok(false);
        }
        if !self.session.takes_input() {
            let look = *self.held_since.get_or_insert_with(|| clock.now());
            let look = look + Duration::from_millis(URGENT_LOOK_MS);
            if self.look.poll(clock, Some(look), cx) {
                self.held_since = None;
                return Ok(true);
            }
            return Ok(false);
        }
        self.held_since = None;
        let mut bytes = [0; READ_BYTES];
        let mut buf = ReadBuf::new(&mut bytes);
        match Pin::new(&mut self.stream).poll_read(cx, &mut buf) {
            Poll::Ready(Ok(())) if buf.filled().is_empty() => {
                self.session.end_input(clock.now());
                Ok(true)
            }
            Poll::Ready(Ok(())) => {
                let keys = self.shell.as_ref().map_or_else(TerminalKeys::default, Shell::keys);
                self.session.network(buf.filled(), keys, clock.now());
                Ok(true)
            }
            Poll::Ready(Err(error)) => Err(SessionEnd::Failed(error)),
            Poll::Pending => Ok(false),
        }
    }

    fn actions(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = false;
        while let Some(action) = self.session.action() {
            self.act(action, cx);
            busy = true;
        }
        busy
    }

    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        let now = self.services.clock().now();
        match action {
            Action::Authenticate { user, password } => {
                self.log_on = Some(LogOn::new(user, password));
            }
            Action::News => self.session.reply(&self.services.news()),
            Action::Netstat => self.session.reply(&self.services.netstat()),
            Action::Figures => self.session.reply(&self.services.figures()),
            Action::NotOperator(user) => {
                self.services.note(TelnetEvent::NotOperator { peer: self.peer, user: &user });
            }
            Action::Operate(user) => {
                self.permit.logged_in(&user);
                self.services.note(TelnetEvent::Operating { peer: self.peer, user: &user });
                self.user = Some(user);
            }
            Action::Order(order) => {
                let user = self.user.as_deref().unwrap_or_default();
                self.services.note(TelnetEvent::Ordered { peer: self.peer, user, order: &order });
                self.order = Some(self.services.carry_out(user, order));
            }
            Action::Denied { user, pause } => {
                self.services.record(SessionEvent::Denied { peer: self.peer, user: &user });
                self.pause.until = Some(now + pause);
            }
            Action::StartShell(request) => match self.services.shell(&request) {
                Ok(shell) => {
                    if let Some(of) = &request.application {
                        self.services.note(TelnetEvent::Led { peer: self.peer, to: &of.name });
                    }
                    let user = request.account.name;
                    if !user.is_empty() && self.user.as_ref() != Some(&user) {
                        self.permit.logged_in(&user);
                        self.services.record(SessionEvent::LoggedIn { peer: self.peer, user: &user });
                        self.user = Some(user);
                    }
                    self.shell = Some(shell);
                    self.session.shell_started(now);
                }
                Err(error) => {
                    let user = &request.account.name;
                    self.services.note(TelnetEvent::NoShell { user, error: &error });
                    self.session.shell_failed(now);
                }
            },
            Action::Substituted(charset) => {
                self.services.note(TelnetEvent::Substituted { peer: self.peer, charset });
            }
            Action::Close(closing) => self.closing = Some(closing),
            Action::Resize { columns, rows } => self.with_shell(|shell| shell.resize(columns, rows)),
            Action::Signal(signal) => self.with_shell(|shell| shell.signal(signal)),
            Action::SetCharacters(characters) => self.with_shell(|shell| shell.set_characters(&characters)),
            Action::EditExternally(on) => self.with_shell(|shell| shell.edit_externally(on)),
            Action::Interrupt => self.with_shell(Shell::interrupt),
            Action::DiscardOutput => {
                // Before the key goes on, so that its echo is not among what is dropped. A key behind input
                // that the shell does not take would never arrive: then the signal goes by itself.
                self.with_shell(Shell::discard_output);
                self.feed_shell(cx);
                if !self.session.typed().is_empty() {
                    self.with_shell(Shell::interrupt);
                }
            }
        }
    }

    fn with_shell(&self, act: impl FnOnce(&V::Shell)) {
        if let Some(shell) = &self.shell {
            act(shell);
        }
    }

    fn feed_shell(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(shell) = &mut self.shell else { return false };
        let clock = self.services.clock();
        let mut busy = false;
        while !self.session.typed().is_empty() {
            if self.session.edits_externally() {
                let waits = self.line_at.is_some() && !self.line.poll(clock, self.line_at, cx);
                if waits {
                    break;
                }
                let is_unread = shell.input_waits();
                if !is_unread {
                    self.line_pause = LINE_PAUSE;
                }
                self.line_at = Some(clock.now() + self.line_pause);
                if is_unread {
                    self.line_pause = self.line_pause.times(2).min(LONGEST_LINE_PAUSE);
                    continue;
                }
            }
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
        let Some(shell) = &mut self.shell else { return false };
        let clock = self.services.clock();
        let now = clock.now();
        if !self.session.takes_output(now) {
            // A client that answers no marks is given up in time. Once it is, only its reading makes room.
            let waits = self.session.pace_deadline().filter(|&at| at > now);
            return self.paced.poll(clock, waits, cx);
        }
        let mut bytes = [0; READ_BYTES];
        let mut buf = ReadBuf::new(&mut bytes);
        match Pin::new(&mut *shell).poll_read(cx, &mut buf) {
            Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                self.session.terminal_changed(shell.keys());
                self.session.output(buf.filled(), self.services.clock().now());
            }
            Poll::Ready(_) => {
                shell.end();
                self.shell = None;
                self.session.shell_ended(now);
            }
            Poll::Pending => return false,
        }
        true
    }

    /// The last octets, then the end of the stream.
    async fn farewell(&mut self) {
        let sent = poll_fn(|cx| match poll_send(&mut self.stream, self.session.telnet(), cx) {
            Poll::Ready(Ok(true)) if self.session.telnet().pending_bytes() > 0 => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            other => other,
        });
        if sent.await.is_ok() {
            let _ = self.stream.shutdown().await;
        }
    }
}
