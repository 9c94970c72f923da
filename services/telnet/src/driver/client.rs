//! The client's driver: one terminal, several streams.

use std::fs::File;
use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use inhost_base::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Clock, READ_BYTES, URGENT_LOOK_MS, Urgent, poll_send};
use crate::client::{ClientAction, Console, SessionId, Start};
use inhost_common::Alarm;

/// Steps of one poll, after which others get their turn.
const STEPS: usize = 32;
/// Longest time to flush output of a closed session.
const LEAVING_TIME: Duration = Duration::from_secs(5);
/// How long a pipe may take to bring more for a session that has ended, or to end: what comes later is not missed.
const REST_TIME: Duration = Duration::from_millis(500);
/// After so long without an answer, and again each time, it is asked what is wrong with a connection.
const LOOK_TIME: Duration = Duration::from_secs(2);
/// Octets of one read of the keyboard.
const KEY_BYTES: usize = 256;

/// Opens connections for the client.
pub trait Connect {
    /// The transport of a connection.
    type Stream: AsyncRead + AsyncWrite + Urgent + Unpin;
    /// Connects to a host, given by name or address, and a port. The error is one line for a person.
    fn connect(&self, host: &str, port: u16) -> Connecting<Self::Stream>;
    /// Lines about a connection, for `status`; none by default.
    fn statistics(&self, stream: &Self::Stream) -> Vec<String> {
        let _ = stream;
        Vec::new()
    }
    /// What the network says is wrong with a connection that goes on all the same (a soft error: UCLA §2.4); none by
    /// default.
    fn trouble(&self, stream: &Self::Stream) -> Option<String> {
        let _ = stream;
        None
    }
}

/// A connection on its way.
type Connecting<S> = Pin<Box<dyn Future<Output = Result<Connected<S>, String>>>>;

/// A connection that is open.
pub struct Connected<S> {
    /// The connection.
    pub stream: S,
    /// The address that the name led to.
    pub address: String,
}

/// The user's terminal: reading gives keys as they are typed, writing shows octets as they are.
pub trait TerminalUi: AsyncRead + AsyncWrite + Unpin {
    /// Its columns and rows.
    fn window(&self) -> (u16, u16);
    /// Something about the terminal has changed.
    fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<TerminalChange>;
    /// Gives the terminal back to the shell until that brings the client to the front again.
    fn suspend(&mut self) -> io::Result<()>;
}

/// Events of a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TerminalChange {
    /// Its window has another size.
    Resized,
}

/// Reason for the client's end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientEnd {
    /// As the user wanted, or with its last session.
    Done,
    /// The connection that it was to begin with could not be opened, or was lost, or ended before all of a pipe was
    /// sent; why, in one line.
    Failed(String),
}

/// Runs the client until it ends. An error is one of the terminal.
pub async fn run_client<U, K, C>(ui: &mut U, connect: &K, clock: &C, start: Start) -> io::Result<ClientEnd>
where
    U: TerminalUi,
    K: Connect,
    C: Clock,
{
    let mut console = Console::new(start);
    let (columns, rows) = ui.window();
    console.resized(columns, rows);
    let mut driver = Driver {
        ui,
        connect,
        clock,
        console,
        sessions: Vec::new(),
        typescript: None,
        look: Alarm::default(),
        watch: Alarm::default(),
        held_since: None,
        ending: false,
        ending_input: Vec::new(),
        leaving_until: None,
        leaving: Alarm::default(),
        rest_until: None,
        rest: Alarm::default(),
    };
    poll_fn(|cx| driver.poll(cx)).await?;
    Ok(driver.console.take_failure().map_or(ClientEnd::Done, ClientEnd::Failed))
}

struct Driver<'a, U, K: Connect, C> {
    ui: &'a mut U,
    connect: &'a K,
    clock: &'a C,
    console: Console,
    sessions: Vec<Session<K::Stream>>,
    typescript: Option<File>,
    look: Alarm,
    watch: Alarm,
    held_since: Option<Instant>,
    ending: bool,
    /// Sessions whose sending half is to be closed.
    ending_input: Vec<SessionId>,
    /// When sessions that were left are given up.
    leaving_until: Option<Instant>,
    leaving: Alarm,
    /// When a pipe that brings nothing more counts as empty.
    rest_until: Option<Instant>,
    rest: Alarm,
}

struct Session<S> {
    id: SessionId,
    state: State<S>,
    /// When something was sent that nothing has answered, or when it was last asked why.
    unanswered: Option<Instant>,
    /// What the user was told is wrong.
    trouble: Option<String>,
}

impl<S> Session<S> {
    fn new(id: SessionId, state: State<S>) -> Session<S> {
        Session { id, state, unanswered: None, trouble: None }
    }
}

enum State<S> {
    Connecting(Connecting<S>),
    Open(S),
    /// Nothing more is sent; what the other end still says is taken.
    HalfClosed(S),
    /// Ends once this is sent, or when it has taken too long.
    Leaving(S, Vec<u8>),
}

impl<U: TerminalUi, K: Connect, C: Clock> Driver<'_, U, K, C> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        for _ in 0..STEPS {
            let mut busy = self.keyboard(cx)?;
            busy |= self.sessions(cx)?;
            busy |= self.actions(cx)?;
            busy |= self.screen(cx)?;
            self.typescript();
            if self.leaving.poll(self.clock, self.leaving_until, cx) {
                self.leaving_until = None;
                self.sessions.retain(|session| !matches!(session.state, State::Leaving(..)));
                busy = true;
            }
            if self.ending && self.sessions.is_empty() && self.console.screen().is_empty() {
                ready!(Pin::new(&mut *self.ui).poll_flush(cx))?;
                return self.rest(cx);
            }
            if !busy {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn keyboard(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        if self.ending {
            return Ok(false);
        }
        let mut busy = false;
        while let Poll::Ready(TerminalChange::Resized) = self.ui.poll_change(cx) {
            let (columns, rows) = self.ui.window();
            self.console.resized(columns, rows);
            busy = true;
        }
        if !self.console.takes_keys() {
            return Ok(busy);
        }
        let mut bytes = [0; KEY_BYTES];
        let mut buf = ReadBuf::new(&mut bytes);
        match Pin::new(&mut *self.ui).poll_read(cx, &mut buf) {
            Poll::Ready(result) => {
                result?;
                match buf.filled() {
                    [] => self.console.keys_ended(),
                    keys => self.console.typed(keys),
                }
                Ok(true)
            }
            Poll::Pending => Ok(busy),
        }
    }

    /// Finds out whether a pipe has more for a session that has ended.
    fn rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.console.awaits_rest() {
            return Poll::Ready(Ok(()));
        }
        let mut bytes = [0; KEY_BYTES];
        let mut buf = ReadBuf::new(&mut bytes);
        if let Poll::Ready(result) = Pin::new(&mut *self.ui).poll_read(cx, &mut buf) {
            result?;
        } else {
            let until = *self.rest_until.get_or_insert(self.clock.now() + REST_TIME);
            if !self.rest.poll(self.clock, Some(until), cx) {
                return Poll::Pending;
            }
        }
        self.console.rest(!buf.filled().is_empty());
        Poll::Ready(Ok(()))
    }

    fn screen(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut busy = false;
        while !self.console.screen().is_empty() {
            match Pin::new(&mut *self.ui).poll_write(cx, self.console.screen()) {
                Poll::Ready(count) => match count? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    count => self.console.shown(count),
                },
                Poll::Pending => break,
            }
            busy = true;
        }
        Ok(busy)
    }

    fn sessions(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let (mut busy, mut held) = (false, false);
        let (mut ended, mut gone) = (Vec::new(), Vec::new());
        for session in &mut self.sessions {
            let sends = matches!(session.state, State::Open(_));
            match &mut session.state {
                State::Connecting(connecting) => {
                    let Poll::Ready(outcome) = connecting.as_mut().poll(cx) else { continue };
                    busy = true;
                    match outcome {
                        Ok(connected) => {
                            session.state = State::Open(connected.stream);
                            self.console.opened(session.id, &connected.address);
                        }
                        Err(reason) => self.console.failed(session.id, &reason),
                    }
                }
                State::Open(stream) | State::HalfClosed(stream) => {
                    let console = &mut self.console;
                    let mut carrier = Carrier { id: session.id, stream, console, sends };
                    match carrier.carry(self.clock.now(), cx) {
                        Ok(carried) => {
                            busy |= carried.received || carried.sent;
                            held |= carried.held;
                            if carried.received {
                                session.unanswered = None;
                                if session.trouble.take().is_some() {
                                    self.console.trouble(session.id, None);
                                }
                            } else if carried.sent {
                                session.unanswered.get_or_insert_with(|| self.clock.now());
                            }
                        }
                        Err(end) => ended.push((session.id, end)),
                    }
                }
                State::Leaving(stream, last) => {
                    let (left, more) = leave(stream, last, cx);
                    busy |= more;
                    if left {
                        gone.push(session.id);
                    }
                }
            }
        }
        busy |= !gone.is_empty();
        self.sessions.retain(|session| !gone.contains(&session.id));
        for (id, end) in ended {
            // What has been typed, or the end of it, came before the end of the session.
            self.keyboard(cx)?;
            match end {
                Ended::Closed => self.console.closed(id, "closed by the server", false),
                Ended::Broken(reason) => self.console.closed(id, &reason, true),
            }
            busy = true;
        }
        busy |= self.end_input(cx);
        busy |= self.look_for_trouble(cx);
        Ok(busy | self.look_for_urgent(held, cx))
    }

    /// Tells of what is wrong with connections on which nothing answers, so that the user can decide when to give up.
    fn look_for_trouble(&mut self, cx: &mut Context<'_>) -> bool {
        let first = self.sessions.iter().filter_map(|session| session.unanswered).min();
        let due = self.watch.poll(self.clock, first.map(|since| since + LOOK_TIME), cx);
        if !due {
            return false;
        }
        let now = self.clock.now();
        for session in &mut self.sessions {
            let State::Open(stream) = &session.state else {
                session.unanswered = None;
                continue;
            };
            if session.unanswered.is_none_or(|since| now < since + LOOK_TIME) {
                continue;
            }
            session.unanswered = Some(now);
            let found = self.connect.trouble(stream);
            if found != session.trouble {
                self.console.trouble(session.id, found.as_deref());
                session.trouble = found;
            }
        }
        true
    }

    /// Half-closes sessions at the end of input, once all keys are sent.
    fn end_input(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = false;
        for id in core::mem::take(&mut self.ending_input) {
            let pending = self.console.connection(id).map(|connection| connection.telnet().pending_bytes());
            let place = self.sessions.iter_mut().position(|session| session.id == id);
            match (pending, place) {
                (Some(0), Some(place)) => {
                    let Session { state, .. } = self.sessions.swap_remove(place);
                    if let State::Open(mut stream) = state {
                        // A socket's shutdown never waits.
                        let _ = Pin::new(&mut stream).poll_shutdown(cx);
                        self.sessions.push(Session::new(id, State::HalfClosed(stream)));
                    }
                    busy = true;
                }
                (Some(_), Some(_)) => self.ending_input.push(id),
                _ => {}
            }
        }
        busy
    }

    /// While a session is not read, urgent data is looked for now and then: a Synch must get through.
    fn look_for_urgent(&mut self, held: bool, cx: &mut Context<'_>) -> bool {
        if !held {
            self.held_since = None;
            return false;
        }
        let since = *self.held_since.get_or_insert_with(|| self.clock.now());
        let due = self.look.poll(self.clock, Some(since + Duration::from_millis(URGENT_LOOK_MS)), cx);
        if due {
            self.held_since = None;
        }
        due
    }

    fn actions(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut busy = false;
        while let Some(action) = self.console.action() {
            busy = true;
            match action {
                ClientAction::Connect { id, host, port } => {
                    let connecting = self.connect.connect(&host, port);
                    self.sessions.push(Session::new(id, State::Connecting(connecting)));
                }
                ClientAction::Disconnect(id, last) => {
                    if let Some(index) = self.sessions.iter().position(|session| session.id == id)
                        && let State::Open(stream) = self.sessions.swap_remove(index).state
                    {
                        self.sessions.push(Session::new(id, State::Leaving(stream, last)));
                        self.leaving_until = Some(self.clock.now() + LEAVING_TIME);
                    }
                }
                ClientAction::EndInput(id) => self.ending_input.push(id),
                ClientAction::Suspend => {
                    // What is on the screen's way goes first; what does not, comes after.
                    let _ = self.screen(cx)?;
                    self.ui.suspend()?;
                    let (columns, rows) = self.ui.window();
                    self.console.resized(columns, rows);
                    self.console.resumed();
                }
                ClientAction::OpenTypescript(path) => {
                    let file = File::options().create(true).append(true).mode(0o600).open(&path);
                    let outcome = match file {
                        Ok(file) => {
                            self.typescript = Some(file);
                            Ok(())
                        }
                        Err(error) => Err(format!("{path}: {error}")),
                    };
                    self.console.typescript(outcome);
                }
                ClientAction::CloseTypescript => self.typescript = None,
                ClientAction::Statistics(id) => {
                    let lines = self.sessions.iter().find(|session| session.id == id);
                    let lines = match lines.map(|session| &session.state) {
                        Some(State::Open(stream) | State::HalfClosed(stream)) => {
                            self.connect.statistics(stream)
                        }
                        _ => Vec::new(),
                    };
                    self.console.statistics(&lines);
                }
                ClientAction::Quit => self.ending = true,
            }
        }
        Ok(busy)
    }

    fn typescript(&mut self) {
        let shown = self.console.take_log();
        let Some(file) = &mut self.typescript else { return };
        if let Err(error) = file.write_all(&shown) {
            self.typescript = None;
            self.console.typescript(Err(error.to_string()));
        }
    }
}

/// Reason for a connection's end.
enum Ended {
    /// The other end closed it.
    Closed,
    /// It broke, and why.
    Broken(String),
}

/// Sends the last octets of a session that was left, then begins the close; dropping the stream leaves the rest to its
/// host. Gives whether that is done, and whether something was sent.
fn leave<S: AsyncWrite + Unpin>(stream: &mut S, last: &mut Vec<u8>, cx: &mut Context<'_>) -> (bool, bool) {
    let mut busy = false;
    while !last.is_empty() {
        match Pin::new(&mut *stream).poll_write(cx, last) {
            Poll::Ready(Ok(count @ 1..)) => drop(last.drain(..count.min(last.len()))),
            Poll::Ready(_) => break,
            Poll::Pending => return (false, busy),
        }
        busy = true;
    }
    let _ = Pin::new(stream).poll_shutdown(cx);
    (true, busy)
}

struct Carrier<'a, S> {
    id: SessionId,
    stream: &'a mut S,
    console: &'a mut Console,
    /// Whether the sending half is open. Where it is not, answers to what the other end still asks are dropped.
    sends: bool,
}

#[derive(Default)]
struct Carried {
    received: bool,
    sent: bool,
    held: bool,
}

impl<S: AsyncRead + AsyncWrite + Urgent + Unpin> Carrier<'_, S> {
    /// Reads and writes one session. The error is how it has ended.
    fn carry(&mut self, now: Instant, cx: &mut Context<'_>) -> Result<Carried, Ended> {
        let Some(connection) = self.console.connection(self.id) else {
            return Ok(Carried::default());
        };
        if let Some(ahead) = self.stream.urgent_ahead() {
            connection.telnet().urgent(ahead);
        }
        let mut carried = Carried { held: !self.console.takes_input(self.id), ..Carried::default() };
        if !carried.held {
            let mut bytes = [0; READ_BYTES];
            let mut buf = ReadBuf::new(&mut bytes);
            match Pin::new(&mut *self.stream).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if buf.filled().is_empty() => {
                    return Err(Ended::Closed);
                }
                Poll::Ready(Ok(())) => {
                    self.console.network(self.id, buf.filled(), now);
                    carried.received = true;
                }
                Poll::Ready(Err(error)) => return Err(Ended::Broken(error.to_string())),
                Poll::Pending => {}
            }
        }
        let Some(connection) = self.console.connection(self.id) else { return Ok(carried) };
        if !self.sends {
            connection.telnet().sent(usize::MAX);
            return Ok(carried);
        }
        match poll_send(self.stream, connection.telnet(), cx) {
            Poll::Ready(Ok(sent)) => carried.sent = sent,
            Poll::Ready(Err(error)) => return Err(Ended::Broken(error.to_string())),
            Poll::Pending => {}
        }
        Ok(carried)
    }
}
