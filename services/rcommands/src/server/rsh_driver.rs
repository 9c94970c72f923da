//! One command of the rsh server: the request, the connection for errors, the program between them.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use inhost_common::LocalFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::process::Program;
use super::request::{Request, RequestError};

/// Steps of one poll, after which others get their turn.
const STEPS: usize = 32;
/// Octets that wait in one direction.
const BUFFER_BYTES: usize = 16 * 1024;

/// How a command ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum RshEnd {
    /// All its output was sent.
    Done,
    /// The request cannot be read.
    Malformed(RequestError),
    /// Who asks may not.
    Denied,
    /// It could not be started.
    NotStarted(io::Error),
    /// The connection failed, or that for errors could not be made.
    Failed(io::Error),
}

/// Makes the connection for errors to this port of the client.
pub type CallBack<'a, S> = &'a dyn Fn(u16) -> LocalFuture<io::Result<S>>;

/// What a command of rsh needs of its host.
pub struct Reception<'a, S> {
    /// Makes the connection for errors.
    pub call_back: CallBack<'a, S>,
    /// Whether the client's user may run commands as the user here.
    pub decide: &'a dyn Fn(&str, &str) -> bool,
    /// Starts the command of a user; the last says whether standard error is by itself.
    pub start: &'a dyn Fn(&str, &str, bool) -> io::Result<Program>,
}

/// Serves one client.
pub async fn serve_rsh<S>(stream: &mut S, reception: Reception<'_, S>) -> RshEnd
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut request = Request::default();
    let mut rest = Vec::new();
    if let Err(end) = read(stream, &mut request, &mut rest).await {
        return end;
    }
    let mut errors = match request.port() {
        None => None,
        Some(port) => match (reception.call_back)(port).await {
            Ok(connection) => Some(connection),
            Err(error) => {
                refuse(stream, &format!("no connection to your port {port}: {error}")).await;
                return RshEnd::Failed(error);
            }
        },
    };
    if let Err(end) = read(stream, &mut request, &mut rest).await {
        return end;
    }
    let Some((client_user, server_user, command)) = request.who_and_what() else { return RshEnd::Denied };
    if !(reception.decide)(client_user, server_user) {
        refuse(stream, "Permission denied.").await;
        return RshEnd::Denied;
    }
    let mut program = match (reception.start)(server_user, command, errors.is_some()) {
        Ok(program) => program,
        Err(error) => {
            refuse(stream, "The command cannot be started.").await;
            return RshEnd::NotStarted(error);
        }
    };
    if let Err(error) = stream.write_all(b"\0").await {
        return RshEnd::Failed(error);
    }
    let mut carrier = Carrier {
        stream,
        errors: &mut errors,
        program: &mut program,
        input: Flow { octets: rest, ..Flow::default() },
        output: Flow::default(),
        error: Flow::default(),
        input_closed: false,
        signals_ended: false,
    };
    match poll_fn(|cx| carrier.poll(cx)).await {
        Ok(()) => {
            if let Some(errors) = &mut errors {
                let _ = errors.shutdown().await;
            }
            let _ = stream.shutdown().await;
            RshEnd::Done
        }
        Err(error) => RshEnd::Failed(error),
    }
}

/// Reads what the client still says, until it closes: a connection that is closed with something unread is reset, and the
/// reset may overtake the last output.
pub async fn drain<S: AsyncRead + Unpin>(stream: &mut S) {
    let mut place = [0; 4096];
    while matches!(stream.read(&mut place).await, Ok(1..)) {}
}

/// Reads until the next thing of the request is there. What follows it goes to `rest`.
async fn read<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    request: &mut Request,
    rest: &mut Vec<u8>,
) -> Result<(), RshEnd> {
    loop {
        let mut input = &rest[..];
        let taken = request.take(&mut input);
        let left = input.len();
        rest.drain(..rest.len() - left);
        match taken {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(why) => {
                refuse(stream, &why.to_string()).await;
                return Err(RshEnd::Malformed(why));
            }
        }
        let mut place = [0; 2048];
        match stream.read(&mut place).await {
            Ok(0) => return Err(RshEnd::Failed(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => rest.extend_from_slice(&place[..count]),
            Err(error) => return Err(RshEnd::Failed(error)),
        }
    }
}

async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, why: &str) {
    let _ = stream.write_all(format!("\x01rsh: {why}\n").as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// Octets on their way.
#[derive(Default)]
struct Flow {
    octets: Vec<u8>,
    ended: bool,
}

impl Flow {
    /// Reads where there is room; whether something came.
    fn fill<R: AsyncRead + Unpin>(&mut self, from: Option<&mut R>, cx: &mut Context<'_>) -> io::Result<bool> {
        let Some(from) = from.filter(|_| !self.ended && self.octets.len() < BUFFER_BYTES) else {
            return Ok(false);
        };
        let mut place = [0; 4096];
        let mut buf = ReadBuf::new(&mut place);
        match Pin::new(from).poll_read(cx, &mut buf) {
            Poll::Ready(read) => {
                read?;
                self.ended = buf.filled().is_empty();
                self.octets.extend_from_slice(buf.filled());
                Ok(true)
            }
            Poll::Pending => Ok(false),
        }
    }
    /// Writes what there is; whether something went.
    fn drain<W: AsyncWrite + Unpin>(&mut self, to: Option<&mut W>, cx: &mut Context<'_>) -> io::Result<bool> {
        let Some(to) = to.filter(|_| !self.octets.is_empty()) else { return Ok(false) };
        match Pin::new(to).poll_write(cx, &self.octets) {
            Poll::Ready(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
            Poll::Ready(Ok(count)) => {
                self.octets.drain(..count);
                Ok(true)
            }
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Ok(false),
        }
    }
    fn is_done(&self) -> bool {
        self.ended && self.octets.is_empty()
    }
}

struct Carrier<'a, S> {
    stream: &'a mut S,
    errors: &'a mut Option<S>,
    program: &'a mut Program,
    input: Flow,
    output: Flow,
    error: Flow,
    /// The program takes no more input.
    input_closed: bool,
    signals_ended: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Carrier<'_, S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        for _ in 0..STEPS {
            let mut busy = self.input.fill(Some(&mut *self.stream), cx)?;
            // A program that has closed its input takes nothing more, and goes on.
            match self.input.drain(self.program.terminal.as_mut().filter(|_| !self.input_closed), cx) {
                Ok(some) => busy |= some,
                Err(_) => self.input_closed = true,
            }
            if self.input_closed {
                self.input.octets.clear();
            } else if self.input.is_done() {
                self.program.end_input();
                self.input_closed = true;
                busy = true;
            }
            // A program that ends without having read all of its input resets the socket behind its output.
            match self.output.fill(self.program.terminal.as_mut(), cx) {
                Ok(some) => busy |= some,
                Err(_) => self.output.ended = true,
            }
            busy |= self.output.drain(Some(&mut *self.stream), cx)?;
            busy |= self.error.fill(self.program.error.as_mut(), cx)?;
            busy |= self.error.drain(self.errors.as_mut(), cx)?;
            busy |= self.signals(cx);
            let has_errors = self.program.error.is_some();
            if self.output.is_done() && (!has_errors || self.error.is_done()) {
                return Poll::Ready(Ok(()));
            }
            if !busy {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
    /// Octets of the connection for errors are signals.
    fn signals(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(errors) = self.errors.as_mut().filter(|_| !self.signals_ended) else { return false };
        let mut place = [0; 64];
        let mut buf = ReadBuf::new(&mut place);
        match Pin::new(errors).poll_read(cx, &mut buf) {
            Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                for &number in buf.filled() {
                    self.program.signal(number);
                }
                true
            }
            Poll::Ready(_) => {
                self.signals_ended = true;
                false
            }
            Poll::Pending => false,
        }
    }
}
