//! A terminal on a stream.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use inhost_base::{Duration, Instant};
use inhost_common::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::client::Terminal;
use crate::client::script::{Failure, Run, Script, Step};

/// Octets that are read at a time.
const READ_BYTES: usize = 8 << 10;
/// How long the last keys of a script may take to be sent.
const LAST_KEYS: Duration = Duration::from_secs(10);

/// A terminal on a stream. The owner presses keys on the terminal, and calls [`exchange`](Connection::exchange).
pub struct Connection<'a, S, C> {
    stream: S,
    clock: &'a C,
    /// The terminal.
    pub terminal: Terminal,
    input: Vec<u8>,
    /// The part of it that the terminal has not taken.
    unread: Range<usize>,
    needs_flush: bool,
}

/// What has happened.
enum Wake {
    Received(usize),
    /// What was sent has made room for input that was read already.
    Room,
    Late,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin, C: Clock> Connection<'a, S, C> {
    /// A terminal on a stream that is connected.
    pub fn new(stream: S, terminal: Terminal, clock: &'a C) -> Connection<'a, S, C> {
        Connection { stream, clock, terminal, input: vec![0; READ_BYTES], unread: 0..0, needs_flush: false }
    }
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.terminal.pending().is_empty() {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, self.terminal.pending()))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => {
                    self.terminal.sent(count);
                    self.needs_flush = true;
                }
            }
        }
        if self.needs_flush {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.needs_flush = false;
        }
        Poll::Ready(Ok(()))
    }
    /// Sends all that the terminal has to say. False where it waited until `until` in vain.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub async fn flush(&mut self, until: Instant) -> io::Result<bool> {
        let mut sleep = self.clock.sleep_until(until);
        poll_fn(|cx| match self.poll_send(cx) {
            Poll::Ready(done) => Poll::Ready(done.map(|()| true)),
            Poll::Pending => sleep.as_mut().poll(cx).map(|()| Ok(false)),
        })
        .await
    }
    /// Sends what the terminal has to say and takes what the host says, once; or waits until `until`. False where it waited
    /// in vain, or the host has closed the connection.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub async fn exchange(&mut self, until: Instant) -> io::Result<bool> {
        let mut sleep = self.clock.sleep_until(until);
        let wake = poll_fn(|cx| {
            if let Poll::Ready(Err(error)) = self.poll_send(cx) {
                return Poll::Ready(Err(error));
            }
            // A host that reads nothing is not read from.
            if self.terminal.has_room() && !self.terminal.is_closed() {
                if !self.unread.is_empty() {
                    return Poll::Ready(Ok(Wake::Room));
                }
                let mut buffer = ReadBuf::new(&mut self.input);
                if let Poll::Ready(done) = Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                    done?;
                    return Poll::Ready(Ok(Wake::Received(buffer.filled().len())));
                }
            }
            sleep.as_mut().poll(cx).map(|()| Ok(Wake::Late))
        })
        .await?;
        self.terminal.advance(self.clock.now());
        match wake {
            Wake::Late => return Ok(false),
            Wake::Received(0) => {
                self.terminal.close();
                return Ok(false);
            }
            Wake::Received(count) => self.unread = 0..count,
            Wake::Room => {}
        }
        let mut octets = self.input.get(self.unread.clone()).unwrap_or_default();
        self.terminal.receive(&mut octets);
        self.unread.start = self.unread.end - octets.len();
        Ok(true)
    }
}

/// What a script needs of its owner: local files, and a place for what it shows.
pub trait ScriptFiles {
    /// The contents of a local file.
    fn read(&mut self, path: &str) -> io::Result<Vec<u8>>;
    /// Writes a local file.
    fn write(&mut self, path: &str, data: &[u8]) -> io::Result<()>;
    /// Shows text, which has no control characters but line ends.
    fn show(&mut self, text: &str) -> io::Result<()>;
    /// Shows a screen as JSON, on one line.
    fn show_screen(&mut self, screen: &crate::screen::Snapshot) -> io::Result<()>;
}

/// Why a script did not come to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum ScriptError {
    /// A line failed.
    Failed(Failure),
    /// A screen cannot be shown.
    Show(io::Error),
    /// The connection failed.
    Stream(io::Error),
    /// The host has not taken the last keys in time.
    LastKeys,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScriptError::Failed(failure) => failure.fmt(f),
            ScriptError::Show(error) | ScriptError::Stream(error) => error.fmt(f),
            ScriptError::LastKeys => f.write_str("the host has not taken the last keys in time"),
        }
    }
}
impl std::error::Error for ScriptError {}

/// Takes the terminal of a connection through a script.
pub async fn run_script<S, C>(
    connection: &mut Connection<'_, S, C>,
    script: Script,
    files: &mut dyn ScriptFiles,
) -> Result<(), ScriptError>
where
    S: AsyncRead + AsyncWrite + Unpin,
    C: Clock,
{
    let mut run = Run::new(script);
    loop {
        let now = connection.clock.now();
        match run.step(&mut connection.terminal, now).map_err(ScriptError::Failed)? {
            Step::Wait(until) => {
                connection.exchange(until).await.map_err(ScriptError::Stream)?;
            }
            Step::Show(text) => files.show(&text).map_err(ScriptError::Show)?,
            Step::ShowJson => {
                let screen = connection.terminal.screen().snapshot();
                files.show_screen(&screen).map_err(ScriptError::Show)?;
            }
            Step::Read(path) => match files.read(&path) {
                Ok(data) => run.file_read(data),
                Err(error) => return Err(ScriptError::Failed(run.failure(format!("{path}: {error}")))),
            },
            Step::Write { path, data } => {
                if let Err(error) = files.write(&path, &data) {
                    return Err(ScriptError::Failed(run.failure(format!("{path}: {error}"))));
                }
            }
            Step::Done => {
                // The last keys are sent, though nothing is waited for.
                return match connection.flush(now + LAST_KEYS).await {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(ScriptError::LastKeys),
                    Err(error) => Err(ScriptError::Stream(error)),
                };
            }
        }
    }
}
