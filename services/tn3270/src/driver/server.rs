//! A session of the server over any stream.

use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_lite::future::or;
use inhost_base::Duration;
use inhost_common::{Clock, LocalFuture, Over, Permit};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::files::Files;
use crate::codec::Resource;
use crate::server::{
    Action, Closing, Device, Devices, Dialog, Entered, FileAction, FileAnswer, Next, Origin, Panels, Session,
    SessionConfig, Visitor,
};
use crate::transfer::TransferCommand;

/// Octets that are read at a time.
const READ_BYTES: usize = 8 << 10;
/// How long a peer may take to read the last octets, and to close.
const FAREWELL: Duration = Duration::from_secs(5);
/// Octets that are read meanwhile.
const FAREWELL_BYTES: usize = 1 << 20;

/// What the sessions of a server share.
pub struct Server<'a, C> {
    /// What sessions do, and how long they wait.
    pub config: SessionConfig,
    /// The names of devices.
    pub devices: Devices,
    /// The source of panels.
    pub panels: &'a dyn Panels,
    /// The time.
    pub clock: &'a C,
    /// Takes what is to be logged.
    pub log: &'a dyn Fn(DeviceEvent<'_>),
}

/// Something for the log. Names of devices are graphic characters of ASCII; those of files may hold anything that a
/// person can type.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum DeviceEvent<'a> {
    /// A terminal or a printer is ready.
    Ready {
        /// Its type.
        device_type: &'a str,
        /// Its name.
        device: &'a str,
    },
    /// A transfer is over.
    Transferred {
        /// The command.
        command: &'a TransferCommand,
        /// The octets, or why it failed.
        outcome: &'a Result<u64, String>,
    },
    /// A print is done, or failed.
    Printed {
        /// Whether it is done.
        is_done: bool,
    },
}

/// How a session ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Ended {
    /// It was closed.
    Closed(Closing),
    /// The peer closed the connection, or it was lost.
    Disconnected,
    /// The service wanted it to end.
    Over(Over),
}

/// Serves a client until the session ends, or `permit` is over. The stream is to be reset unless it ended with
/// [`Ended::Closed`].
pub async fn serve<S, C: Clock>(stream: S, origin: Origin, server: &Server<'_, C>, permit: &Permit) -> Ended
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut session = Session::new(server.config.clone());
    session.start(server.clock.now());
    let serving = Serving {
        stream,
        session,
        server,
        permit,
        origin,
        device: None,
        dialog: None,
        asking: None,
        files: Some(Files::default()),
        filing: None,
        input: vec![0; READ_BYTES],
        unread: 0..0,
        needs_flush: false,
    };
    serving.run().await
}

/// A dialog with what it said.
type Asking = LocalFuture<(Box<dyn Dialog>, Next)>;
/// The files with their answer.
type Filing = LocalFuture<(Files, FileAnswer)>;

struct Serving<'a, S, C> {
    stream: S,
    session: Session,
    server: &'a Server<'a, C>,
    permit: &'a Permit,
    origin: Origin,
    device: Option<Device>,
    dialog: Option<Box<dyn Dialog>>,
    asking: Option<Asking>,
    files: Option<Files>,
    filing: Option<Filing>,
    input: Vec<u8>,
    /// The part of it that the session has not taken.
    unread: Range<usize>,
    needs_flush: bool,
}

/// What has happened.
enum Wake {
    Received(usize),
    /// What was sent has made room for input that was read already.
    Room,
    Answered(Box<dyn Dialog>, Next),
    Filed(Files, FileAnswer),
    Job(Vec<String>),
    Deadline,
    Over(Over),
    Lost,
}

impl<S: AsyncRead + AsyncWrite + Unpin, C: Clock> Serving<'_, S, C> {
    async fn run(mut self) -> Ended {
        loop {
            while let Some(action) = self.session.action() {
                if let Some(closing) = self.act(action) {
                    self.farewell().await;
                    return Ended::Closed(closing);
                }
            }
            if !self.unread.is_empty() && self.session.takes_input() {
                self.feed();
                continue;
            }
            let mut sleep = self.session.deadline().map(|at| self.server.clock.sleep_until(at));
            let wake = poll_fn(|cx| {
                let wake = self.poll(cx);
                match (wake.is_pending(), sleep.as_mut()) {
                    (true, Some(sleep)) => sleep.as_mut().poll(cx).map(|()| Wake::Deadline),
                    _ => wake,
                }
            })
            .await;
            let now = self.server.clock.now();
            match wake {
                Wake::Received(count) => self.unread = 0..count,
                Wake::Room => {}
                Wake::Answered(dialog, next) => {
                    self.dialog = Some(dialog);
                    self.answered(next);
                }
                Wake::Filed(files, answer) => {
                    self.files = Some(files);
                    self.session.file(answer, now);
                }
                Wake::Job(lines) => self.session.print(&lines, now),
                Wake::Deadline => self.session.expire(now),
                Wake::Over(over) => return Ended::Over(over),
                Wake::Lost => return Ended::Disconnected,
            }
        }
    }

    /// Gives the session what was read.
    fn feed(&mut self) {
        let mut octets = self.input.get(self.unread.clone()).unwrap_or_default();
        self.session.receive(&mut octets, self.server.clock.now());
        self.unread.start = self.unread.end - octets.len();
    }

    /// Polls all that can go on.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Wake> {
        if let Poll::Ready(over) = self.permit.poll_over(cx) {
            return Poll::Ready(Wake::Over(over));
        }
        match self.poll_write(cx) {
            Poll::Ready(Err(_)) => return Poll::Ready(Wake::Lost),
            Poll::Ready(Ok(())) | Poll::Pending => {}
        }
        if let Some(asking) = &mut self.asking
            && let Poll::Ready((dialog, next)) = asking.as_mut().poll(cx)
        {
            self.asking = None;
            return Poll::Ready(Wake::Answered(dialog, next));
        }
        if let Some(filing) = &mut self.filing
            && let Poll::Ready((files, answer)) = filing.as_mut().poll(cx)
        {
            self.filing = None;
            return Poll::Ready(Wake::Filed(files, answer));
        }
        if self.session.is_idle_printer()
            && let Some(device) = &self.device
            && let Poll::Ready(job) = device.poll_job(cx)
        {
            return Poll::Ready(Wake::Job(job));
        }
        match (self.session.takes_input(), self.unread.is_empty()) {
            (false, _) => return Poll::Pending,
            // Nothing else wakes the session for input that is here.
            (true, false) => return Poll::Ready(Wake::Room),
            (true, true) => {}
        }
        let mut buffer = ReadBuf::new(&mut self.input);
        match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                Poll::Ready(Wake::Received(buffer.filled().len()))
            }
            Poll::Ready(_) => Poll::Ready(Wake::Lost),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.session.pending().is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, self.session.pending()) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => {
                    self.session.sent(count);
                    self.needs_flush = true;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        if self.needs_flush {
            match Pin::new(&mut self.stream).poll_flush(cx) {
                Poll::Ready(done) => {
                    self.needs_flush = false;
                    return Poll::Ready(done);
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn act(&mut self, action: Action) -> Option<Closing> {
        match action {
            Action::Device { device_type, resource } => {
                // A client that asks again gives back what it had.
                self.device = None;
                match self.server.devices.request(&device_type, resource.as_ref(), self.origin) {
                    Ok(device) => {
                        self.session.device(Ok(device.name()));
                        self.device = Some(device);
                    }
                    Err(reason) => self.session.device(Err(reason)),
                }
            }
            Action::Ready { device_type, wanted, .. } => {
                if self.device.is_none() {
                    // Without TN3270E nobody can be told that a device is in use: another one is given.
                    let devices = &self.server.devices;
                    let request = |resource| devices.request(&device_type, resource, self.origin).ok();
                    let wanted = wanted.map(Resource::Connect);
                    self.device = request(wanted.as_ref()).or_else(|| request(None));
                }
                let device = self.device.as_ref().map_or("", Device::name);
                (self.server.log)(DeviceEvent::Ready { device_type: &device_type, device });
                let visitor = Visitor::new(self.origin.address, &device_type, device);
                self.dialog = Some(self.server.panels.open(&visitor));
            }
            Action::Ask(entered) => self.ask(entered),
            Action::File(action) => {
                if let Some(mut files) = self.files.take() {
                    if matches!(action, FileAction::OpenRead { .. } | FileAction::OpenWrite { .. }) {
                        files = Files::of(self.dialog.as_ref().and_then(|dialog| dialog.files()));
                    }
                    self.filing = Some(Box::pin(async move {
                        let answer = files.act(action).await;
                        (files, answer)
                    }));
                }
            }
            Action::Transferred { command, outcome } => {
                (self.server.log)(DeviceEvent::Transferred { command: &command, outcome: &outcome });
            }
            Action::Printed(outcome) => {
                (self.server.log)(DeviceEvent::Printed { is_done: outcome.is_ok() });
            }
            Action::Close(closing) => return Some(closing),
        }
        None
    }
    fn ask(&mut self, entered: Entered) {
        if let Some(mut dialog) = self.dialog.take() {
            self.asking = Some(Box::pin(async move {
                let next = dialog.next(entered).await;
                (dialog, next)
            }));
        }
    }
    fn answered(&mut self, next: Next) {
        let next = match next {
            Next::Print { lines, panel } => {
                let device = self.device.as_ref().map_or("", Device::name);
                Next::Show(Box::new(match self.server.devices.print(device, lines) {
                    Ok(()) => panel.note("It is printed"),
                    Err(error) => panel.error(&error.to_string()),
                }))
            }
            next => next,
        };
        self.session.next(next, self.server.clock.now());
    }

    /// Sends what is left, closes, and waits for the peer to close.
    async fn farewell(&mut self) {
        let clock = self.server.clock;
        let late = clock.sleep_until(clock.now() + FAREWELL);
        let work = async {
            let last = self.session.pending().to_vec();
            self.stream.write_all(&last).await.ok()?;
            self.stream.shutdown().await.ok()?;
            let mut received = 0;
            while received < FAREWELL_BYTES {
                match self.stream.read(&mut self.input).await.ok()? {
                    0 => break,
                    count => received += count,
                }
            }
            Some(())
        };
        or(async { work.await.unwrap_or_default() }, late).await;
    }
}
