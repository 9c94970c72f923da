//! The way through to Telnet at another host (UCLA §2.6.1): what a user types goes there, and what is said there comes back.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use inhost_base::Instant;
use inhost_common::{LocalFuture, Urgent};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{READ_BYTES, poll_send};
use crate::codec::Command;
use crate::machine::{Config, Event, Telnet};
use crate::pty::{Shell, TerminalKeys};

/// A connection to Telnet at another host, in the place of a shell. It is opened when it is first read.
pub struct Passage<S> {
    inner: RefCell<Inner<S>>,
    now: Box<dyn Fn() -> Instant>,
}

struct Inner<S> {
    state: State<S>,
    telnet: Telnet,
    /// What the other host said, and how much of it was shown.
    said: Vec<u8>,
    shown: usize,
    /// The negotiation begins here: at Telnet's own port.
    starts: bool,
}

enum State<S> {
    Opening(LocalFuture<io::Result<S>>),
    Open(S),
    Ended,
}

impl<S> Passage<S> {
    /// One that is opened by `opening`. `starts` says whether the negotiation is begun, as at port 23.
    pub fn new(
        opening: LocalFuture<io::Result<S>>,
        terminal: &str,
        window: (u16, u16),
        starts: bool,
        now: impl Fn() -> Instant + 'static,
    ) -> Passage<S> {
        let mut telnet = Telnet::new(Config::client(terminal));
        telnet.set_window(window.0, window.1);
        let state = State::Opening(opening);
        let inner = RefCell::new(Inner { state, telnet, said: Vec::new(), shown: 0, starts });
        Passage { inner, now: Box::new(now) }
    }
    /// One that agrees to no charset, because its owner translates the text.
    pub fn without_charset(self) -> Passage<S> {
        self.inner.borrow_mut().telnet.set_charsets(&[]);
        self
    }
}

impl<S: AsyncRead + AsyncWrite + Urgent + Unpin> Inner<S> {
    /// Reads until something is to be shown, or the end.
    fn poll_said(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.shown < self.said.len() {
                return Poll::Ready(());
            }
            (self.shown, self.said) = (0, Vec::new());
            match &mut self.state {
                State::Ended => return Poll::Ready(()),
                State::Opening(opening) => match opening.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(stream)) => {
                        self.state = State::Open(stream);
                        if self.starts {
                            self.telnet.start();
                        }
                    }
                    Poll::Ready(Err(why)) => {
                        self.said = format!("The host cannot be reached: {why}.\r\n").into_bytes();
                        self.state = State::Ended;
                    }
                },
                State::Open(_) => {
                    if self.poll_receive(now, cx).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
    fn poll_receive(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<()> {
        self.flush(cx);
        let State::Open(stream) = &mut self.state else { return Poll::Ready(()) };
        if !self.telnet.has_room() {
            // The stream wakes this task when it takes more.
            return Poll::Pending;
        }
        if let Some(ahead) = stream.urgent_ahead() {
            self.telnet.urgent(ahead);
        }
        let mut bytes = [0; READ_BYTES];
        let mut buf = ReadBuf::new(&mut bytes);
        match Pin::new(stream).poll_read(cx, &mut buf) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                self.telnet.advance(now);
                let mut rest = buf.filled();
                let mut is_broken = false;
                while let Some(event) = self.telnet.receive(&mut rest) {
                    match event {
                        Event::Data(data) => self.said.extend_from_slice(data),
                        Event::Text(text) => self.said.extend(text),
                        Event::Violation(_) => is_broken = true,
                        _ => {}
                    }
                }
                if is_broken {
                    self.state = State::Ended;
                }
                self.flush(cx);
            }
            Poll::Ready(_) => self.state = State::Ended,
        }
        Poll::Ready(())
    }
    /// Sends what waits, as far as it goes.
    fn flush(&mut self, cx: &mut Context<'_>) {
        if let State::Open(stream) = &mut self.state
            && let Poll::Ready(Err(_)) = poll_send(stream, &mut self.telnet, cx)
        {
            self.state = State::Ended;
        }
    }
    fn poll_type(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.flush(cx);
        match &self.state {
            // Reading opens it, by the same task.
            State::Opening(_) => Poll::Pending,
            State::Ended => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            State::Open(_) if !self.telnet.has_room() => Poll::Pending,
            State::Open(_) => {
                self.telnet.send(bytes);
                self.flush(cx);
                Poll::Ready(Ok(bytes.len()))
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Urgent + Unpin> AsyncRead for Passage<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        let now = (own.now)();
        let inner = own.inner.get_mut();
        std::task::ready!(inner.poll_said(now, cx));
        let rest = &inner.said[inner.shown..];
        let count = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..count]);
        inner.shown += count;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Urgent + Unpin> AsyncWrite for Passage<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().inner.get_mut().poll_type(bytes, cx)
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().end();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Urgent + Unpin> Shell for Passage<S> {
    fn resize(&self, columns: u16, rows: u16) {
        self.inner.borrow_mut().telnet.set_window(columns, rows);
    }
    /// None: every key is the other host's.
    fn keys(&self) -> TerminalKeys {
        TerminalKeys {
            interrupt: 0,
            quit: 0,
            suspend: 0,
            erase: 0,
            kill: 0,
            end_of_file: 0,
            signals: false,
            flow_control: false,
            word_erase: 0,
            reprint: 0,
            literal: 0,
            start: 0,
            stop: 0,
            canonical: false,
            echo: false,
            traps: false,
            return_is_newline: false,
            external: false,
        }
    }
    fn interrupt(&self) {
        let telnet = &mut self.inner.borrow_mut().telnet;
        telnet.send_command(Command::InterruptProcess);
        telnet.send_synch();
    }
    fn discard_output(&self) {
        let mut inner = self.inner.borrow_mut();
        (inner.shown, inner.said) = (0, Vec::new());
    }
    fn end(&mut self) {
        self.inner.get_mut().state = State::Ended;
    }
}
