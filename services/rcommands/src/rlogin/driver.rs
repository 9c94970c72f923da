//! A session over a terminal and a stream.

use super::machine::{Action, Login, Opening};
use inhost_telnet::driver::{TerminalChange, TerminalUi, Urgent};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Steps of one poll, after which others get their turn.
const STEPS: usize = 32;
/// Octets of one read.
const READ_BYTES: usize = 4096;

/// Reason for the end of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// As the user or the server wanted.
    Done,
    /// The server refused to begin, in these words.
    Refused(String),
    /// The connection broke, for this reason.
    Broken(String),
}

/// Runs a session until it ends. An error is one of the terminal.
pub async fn run<U, S>(ui: &mut U, stream: &mut S, opening: &Opening) -> io::Result<End>
where
    U: TerminalUi,
    S: AsyncRead + AsyncWrite + Urgent + Unpin,
{
    let mut session = Session {
        login: Login::new(opening),
        ui,
        stream,
        end: None,
        keys_ended: false,
        is_half_closed: false,
        deaf: None,
    };
    poll_fn(|context| session.poll(context)).await
}

struct Session<'a, U, S> {
    login: Login,
    ui: &'a mut U,
    stream: &'a mut S,
    end: Option<End>,
    keys_ended: bool,
    /// Nothing more is sent: what the server still asks for, such as the window's size, has no answer.
    is_half_closed: bool,
    /// Why nothing more can be sent. What the server said before is still on its way here.
    deaf: Option<String>,
}

impl<U: TerminalUi, S: AsyncRead + AsyncWrite + Urgent + Unpin> Session<'_, U, S> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<End>> {
        for _ in 0..STEPS {
            let mut busy = self.screen(context)?;
            if self.end.is_some() && self.login.screen().is_empty() {
                std::task::ready!(Pin::new(&mut *self.ui).poll_flush(context))?;
                // Begins the close; dropping the stream leaves the rest to its host.
                let _ = Pin::new(&mut *self.stream).poll_shutdown(context);
                return Poll::Ready(Ok(self.end.take().unwrap_or(End::Done)));
            }
            if self.end.is_none() {
                busy |= self.network(context);
                busy |= self.keyboard(context)?;
                busy |= self.output(context);
                busy |= self.actions(context)?;
            }
            if !busy {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
    fn screen(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let mut busy = false;
        while !self.login.screen().is_empty() {
            match Pin::new(&mut *self.ui).poll_write(context, self.login.screen()) {
                Poll::Ready(count) => match count? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    count => self.login.shown(count),
                },
                Poll::Pending => break,
            }
            busy = true;
        }
        if busy {
            let _ = Pin::new(&mut *self.ui).poll_flush(context)?;
        }
        Ok(busy)
    }
    fn network(&mut self, context: &mut Context<'_>) -> bool {
        if let Some(ahead) = self.stream.urgent_ahead() {
            self.login.urgent(ahead);
        }
        if !self.login.takes_network() {
            return false;
        }
        let mut place = [0; READ_BYTES];
        let mut buffer = ReadBuf::new(&mut place);
        match Pin::new(&mut *self.stream).poll_read(context, &mut buffer) {
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => match self.deaf.take() {
                Some(why) => self.end = Some(End::Broken(why)),
                None => self.login.network_ended(),
            },
            Poll::Ready(Ok(())) => self.login.network(buffer.filled()),
            Poll::Ready(Err(error)) => self.end = Some(End::Broken(error.to_string())),
            Poll::Pending => return false,
        }
        true
    }
    fn keyboard(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let mut busy = false;
        while let Poll::Ready(TerminalChange::Resized) = self.ui.poll_change(context) {
            let (columns, rows) = self.ui.window();
            self.login.resized(columns, rows);
            busy = true;
        }
        if self.keys_ended || !self.login.takes_keys() {
            return Ok(busy);
        }
        let mut place = [0; READ_BYTES];
        let mut buffer = ReadBuf::new(&mut place);
        match Pin::new(&mut *self.ui).poll_read(context, &mut buffer) {
            Poll::Ready(done) => {
                done?;
                self.keys_ended = buffer.filled().is_empty();
                self.login.typed(buffer.filled());
                Ok(true)
            }
            Poll::Pending => Ok(busy),
        }
    }
    fn output(&mut self, context: &mut Context<'_>) -> bool {
        let mut busy = false;
        while !self.login.output().is_empty() {
            if self.deaf.is_some() || self.is_half_closed {
                self.login.sent(self.login.output().len());
                break;
            }
            match Pin::new(&mut *self.stream).poll_write(context, self.login.output()) {
                Poll::Ready(Ok(count)) => self.login.sent(count),
                Poll::Ready(Err(error)) => self.deaf = Some(error.to_string()),
                Poll::Pending => break,
            }
            busy = true;
        }
        // Input has ended and all keys are sent: the connection is half-closed, and the server may still send.
        if self.keys_ended && self.login.output().is_empty() {
            self.is_half_closed = true;
            let _ = Pin::new(&mut *self.stream).poll_shutdown(context);
        }
        let _ = Pin::new(&mut *self.stream).poll_flush(context);
        busy
    }
    fn actions(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        match self.login.action() {
            None => return Ok(false),
            Some(Action::Suspend) => {
                let _ = self.screen(context)?;
                self.ui.suspend()?;
                let (columns, rows) = self.ui.window();
                self.login.resized(columns, rows);
            }
            Some(Action::Quit) => self.end = Some(End::Done),
            Some(Action::Refused(why)) => self.end = Some(End::Refused(why)),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
