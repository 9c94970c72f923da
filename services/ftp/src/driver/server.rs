//! One session of the server.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use inhost_base::{Duration, Endpoint, Instant};
use inhost_common::{Alarm, Attempt, LogOn, Over, Permit, Refusal, within};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::data::Shared;
use super::services::{Entry, Granted, Services, Transferred};
use super::transfer::{Early, Transfer, drain};
use super::{Caller, Clock, Lease, MaybeTls, Network, SessionEvent, TlsServer, Urgent, files};
use crate::server::{
    Action, Closing, FileReply, LogIn, ServerConfig, Session, Task, TlsPolicy, TransferError, TransferEvent,
    TransferRequest,
};
use inhost_common::LocalFuture;
use inhost_common::storage::StorageResult;

/// Steps of one poll, after which others get their turn.
const STEPS: usize = 32;
/// Octets of one read.
const READ_BYTES: usize = 2048;
/// Polling interval for urgent data while input is not read.
const URGENT_LOOK: Duration = Duration::from_millis(100);

/// Reason for the end of a session.
#[derive(Debug)]
pub enum SessionEnd {
    /// It was not admitted.
    Refused(Refusal),
    /// It was ended from this side, or by the user.
    Closed(Closing),
    /// The client closed the connection.
    Disconnected,
    /// The connection failed.
    Failed(io::Error),
}

/// Serves one client at `local`, from the greeting until the connection can be dropped. With `implicit`, TLS comes
/// before anything is said.
pub async fn serve_session<S, V>(
    mut stream: S,
    local: Endpoint,
    peer: Endpoint,
    implicit: bool,
    config: Rc<ServerConfig>,
    services: Rc<V>,
) -> SessionEnd
where
    S: AsyncRead + AsyncWrite + Urgent + Unpin + 'static,
    V: Services,
{
    let caller = Caller::of(services.callers(), peer);
    let from = caller.address;
    let now = services.clock().now();
    let permit = match services.admission().admit(from, now) {
        Ok(permit) => permit,
        Err(refusal) => {
            services.record(SessionEvent::Refused { peer: from, refusal });
            let text = format!("421 {refusal}.\r\n");
            let goodbye = async {
                if !implicit {
                    let _ = stream.write_all(text.as_bytes()).await;
                }
                let _ = stream.shutdown().await;
            };
            within(services.clock(), config.closing_time, goodbye).await;
            return SessionEnd::Refused(refusal);
        }
    };
    services.record(SessionEvent::Opened { peer: from });
    let server = services.tls().filter(|_| config.tls != TlsPolicy::Off);
    let server = server.map(|server| server.of_session());
    let stream = match (implicit, &server) {
        (false, _) => MaybeTls::Clear(stream),
        (true, Some(server)) => {
            let handshake = server.accept(stream, true);
            match within(services.clock(), config.handshake_time, handshake).await {
                Some(Ok(stream)) => MaybeTls::Tls(Box::new(stream)),
                Some(Err(error)) => return SessionEnd::Failed(error),
                None => return SessionEnd::Closed(Closing::Tls),
            }
        }
        (true, None) => return SessionEnd::Closed(Closing::Tls),
    };
    let session = Session::new(config.clone(), local, peer, implicit, now);
    let mut driver = Driver {
        control: Control::Open(stream),
        session: if caller.is_forwarded { session.forwarded_from(from) } else { session },
        config,
        local,
        caller,
        server,
        can_resume: true,
        permit,
        granted: None,
        log_on: None,
        file: None,
        lease: None,
        early: None,
        transfer: None,
        refusing: None,
        ended: None,
        shared: Rc::default(),
        what: String::new(),
        alarm: Alarm::default(),
        closing: None,
        services,
    };
    let end = poll_fn(|cx| driver.poll(cx)).await;
    (driver.transfer, driver.refusing) = (None, None);
    let (services, closing) = (driver.services.clone(), driver.closing);
    let why = closing.map(Closing::as_str);
    services.record(SessionEvent::Closed { peer: from, user: driver.session.user(), why });
    if closing.is_some() {
        let time = driver.config.closing_time;
        within(services.clock(), time, driver.farewell()).await;
    }
    end
}

/// The control connection, which is away while TLS begins or ends.
enum Control<S> {
    Open(MaybeTls<S>),
    /// With an octet that was said behind TLS.
    Changing(LocalFuture<io::Result<(MaybeTls<S>, Option<u8>)>>),
    Gone,
}

struct Driver<S, V: Services> {
    control: Control<S>,
    session: Session,
    config: Rc<ServerConfig>,
    local: Endpoint,
    caller: Caller,
    server: Option<TlsServer>,
    /// Whether the client can be asked to resume the session of the control connection. CCC ends that; a client that
    /// does not end it itself, as `curl --ftp-ssl-ccc-mode passive`, has made it one that OpenSSL resumes no more.
    can_resume: bool,
    permit: Permit,
    granted: Option<Rc<Granted>>,
    log_on: Option<LogOn<Entry>>,
    file: Option<LocalFuture<StorageResult<FileReply>>>,
    lease: Option<Lease<V::Network>>,
    /// A passive data connection in TLS, which takes the lease.
    early: Option<Early<<V::Network as Network>::Stream>>,
    transfer: Option<LocalFuture<Result<u64, TransferError>>>,
    /// Takes the rest of an upload that could not be stored, until the next transfer.
    refusing: Option<LocalFuture<()>>,
    /// Result of the transfer, kept until all earlier events are reported.
    ended: Option<Result<u64, TransferError>>,
    shared: Rc<Shared>,
    what: String,
    alarm: Alarm,
    closing: Option<Closing>,
    services: Rc<V>,
}

impl<S, V> Driver<S, V>
where
    S: AsyncRead + AsyncWrite + Urgent + Unpin + 'static,
    V: Services,
{
    /// Does what can be done. Input comes before the transfer, so that ABOR and a lost connection count before the
    /// file's end.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<SessionEnd> {
        for _ in 0..STEPS {
            let mut busy = self.timers(cx);
            match self.network(cx) {
                Ok(more) => busy |= more,
                Err(end) => return Poll::Ready(end),
            }
            busy |= self.outcomes(cx);
            busy |= self.actions();
            if let Some(closing) = self.closing {
                return Poll::Ready(SessionEnd::Closed(closing));
            }
            match self.send(cx) {
                Ok(more) => busy |= more,
                Err(error) => return Poll::Ready(SessionEnd::Failed(error)),
            }
            if !busy {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn timers(&mut self, cx: &mut Context<'_>) -> bool {
        match self.permit.poll_over(cx) {
            Poll::Ready(Over::HostEnds) => self.session.host_ends(),
            Poll::Ready(Over::Dropped) => self.session.dropped(),
            Poll::Pending => {}
        }
        let clock = self.services.clock();
        let now = clock.now();
        let deadline = self.session.deadline();
        if deadline.is_some_and(|at| at <= now) {
            self.session.timeout(now);
            return true;
        }
        let look = (!self.session.takes_input()).then(|| now + URGENT_LOOK);
        self.alarm.poll(clock, deadline.into_iter().chain(look).min(), cx)
    }

    fn network(&mut self, cx: &mut Context<'_>) -> Result<bool, SessionEnd> {
        let now = self.services.clock().now();
        match &mut self.control {
            Control::Changing(changing) => {
                let Poll::Ready(changed) = changing.as_mut().poll(cx) else { return Ok(false) };
                let (ok, mut early) = (changed.is_ok(), None);
                self.control = match changed {
                    Ok((stream, octet)) => {
                        early = octet;
                        self.can_resume &= early.is_none();
                        Control::Open(stream)
                    }
                    Err(_) => Control::Gone,
                };
                self.session.tls_started(ok, now);
                self.session.tls_ended(ok, now);
                if let Some(octet) = early {
                    self.session.network(&[octet], now);
                }
                Ok(true)
            }
            Control::Gone => Err(SessionEnd::Disconnected),
            Control::Open(stream) => {
                if stream.urgent_ahead().is_some() {
                    self.session.urgent();
                }
                if !self.session.takes_input() {
                    return Ok(false);
                }
                let mut bytes = [0; READ_BYTES];
                let mut buf = ReadBuf::new(&mut bytes);
                match Pin::new(stream).poll_read(cx, &mut buf) {
                    Poll::Ready(Ok(())) if buf.filled().is_empty() => Err(SessionEnd::Disconnected),
                    Poll::Ready(Ok(())) => {
                        self.session.network(buf.filled(), now);
                        Ok(true)
                    }
                    Poll::Ready(Err(error)) => Err(SessionEnd::Failed(error)),
                    Poll::Pending => Ok(false),
                }
            }
        }
    }

    /// Completed operations.
    fn outcomes(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = false;
        let now = self.services.clock().now();
        if let Some(early) = &mut self.early {
            early.poll(cx);
        }
        busy |= self.log_on(cx, now);
        if let Some(file) = &mut self.file
            && let Poll::Ready(outcome) = file.as_mut().poll(cx)
        {
            self.file = None;
            self.session.file_done(outcome, now);
            busy = true;
        }
        busy | self.transfer_outcomes(cx, now)
    }

    fn transfer_outcomes(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        if let Some(transfer) = &mut self.transfer {
            let polled = transfer.as_mut().poll(cx);
            self.session.progress(self.shared.moved_bytes.get());
            if let Poll::Ready(outcome) = polled {
                self.transfer = None;
                self.refusing = self.shared.refusing.take();
                self.record_transfer(&outcome);
                self.ended = Some(outcome);
            }
        }
        if self.refusing.as_mut().is_some_and(|refusing| refusing.as_mut().poll(cx).is_ready()) {
            self.refusing = None;
        }
        let mut busy = false;
        while self.session.takes_events()
            && let Some(event) = self.next_event()
        {
            self.session.transfer_event(event, now);
            busy = true;
        }
        busy
    }

    fn next_event(&mut self) -> Option<TransferEvent> {
        let event = self.shared.events.borrow_mut().pop_front();
        event.or_else(|| self.ended.take().map(TransferEvent::Ended))
    }

    fn record_transfer(&self, outcome: &Result<u64, TransferError>) {
        let (peer, user) = (self.caller.address, self.session.user().unwrap_or_default());
        let why = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let outcome = outcome.as_ref().map(|bytes| *bytes).map_err(|_| &*why);
        self.services.record_transfer(Transferred { peer, user, what: &self.what, outcome });
    }

    /// Goes on with an attempt to log in; whether it has come to a verdict.
    fn log_on(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let Some(log_on) = &mut self.log_on else { return false };
        let check = |user, password| self.services.log_in(user, password);
        let Poll::Ready(judged) = log_on.poll(&self.permit, check, now, cx) else { return false };
        let name = log_on.user().to_owned();
        self.log_on = None;
        match judged {
            Ok((attempt, entry)) => self.entered(name, attempt, entry, now),
            Err(_) => self.session.authenticated(LogIn::TooMany, now),
        }
        true
    }

    fn entered(&mut self, name: String, attempt: Attempt, entry: Entry, now: Instant) {
        let peer = self.caller.address;
        let verdict = match entry {
            Entry::Granted(granted) => {
                self.permit.logged_in(&name);
                // Who has to say ACCT too is not known yet.
                if let Some(server) = self.server.as_ref().filter(|_| granted.account.is_none()) {
                    server.logged_in(&name);
                }
                self.services.record(SessionEvent::LoggedIn { peer, user: &name });
                let verdict = LogIn::Granted { rights: granted.rights, account: granted.account.clone() };
                self.granted = Some(Rc::new(granted));
                verdict
            }
            Entry::Denied => {
                self.services.record(SessionEvent::Denied { peer, user: &name });
                attempt.denied(now);
                LogIn::Denied
            }
            Entry::Busy => LogIn::Busy,
            Entry::Unavailable(reason) => {
                self.services.record(SessionEvent::Unavailable { reason: &reason });
                LogIn::Unavailable
            }
        };
        self.session.authenticated(verdict, now);
    }

    fn actions(&mut self) -> bool {
        let mut busy = false;
        // TLS begins and ends behind what is still to be sent; so does the connection itself.
        while !matches!(self.control, Control::Changing(_)) {
            let Some(action) = self.session.action() else { break };
            busy = true;
            match action {
                Action::Authenticate { user, password } => {
                    self.granted = None;
                    self.log_on = Some(LogOn::new(user, password));
                }
                Action::Denied => drop(self.permit.denied(self.services.clock().now())),
                Action::StartTls => self.start_tls(),
                Action::EndTls => self.end_tls(),
                Action::File(request) => {
                    if let Some(granted) = &self.granted {
                        let now = self.services.unix_time();
                        self.file = Some(Box::pin(files::serve(granted.storage.clone(), request, now)));
                    }
                }
                Action::Listen(_) => self.listen(),
                Action::StopListening => (self.lease, self.early) = (None, None),
                Action::Transfer(request) => self.transfer(request),
                Action::AbortTransfer => {
                    (self.transfer, self.ended) = (None, None);
                    self.shared.events.borrow_mut().clear();
                }
                Action::Close(closing) => self.closing = Some(closing),
            }
        }
        busy
    }

    /// Pending replies; it goes with the stream into whatever changes it.
    fn take_pending(&mut self) -> Vec<u8> {
        let pending = self.session.pending().to_vec();
        self.session.sent(pending.len(), self.services.clock().now());
        pending
    }

    fn start_tls(&mut self) {
        let pending = self.take_pending();
        let Control::Open(MaybeTls::Clear(mut stream)) = core::mem::replace(&mut self.control, Control::Gone)
        else {
            return;
        };
        let Some(server) = self.server.clone() else { return };
        self.control = Control::Changing(Box::pin(async move {
            stream.write_all(&pending).await?;
            stream.flush().await?;
            // CCC may want the stream back, whole.
            Ok((MaybeTls::Tls(Box::new(server.accept(stream, true).await?)), None))
        }));
    }

    fn end_tls(&mut self) {
        let pending = self.take_pending();
        let Control::Open(MaybeTls::Tls(mut stream)) = core::mem::replace(&mut self.control, Control::Gone)
        else {
            return;
        };
        self.control = Control::Changing(Box::pin(async move {
            stream.write_all(&pending).await?;
            stream.flush().await?;
            let (stream, early) = stream.end().await?;
            Ok((MaybeTls::Clear(stream), early))
        }));
    }

    fn listen(&mut self) {
        (self.lease, self.early) = (None, None);
        let peer = (!self.config.third_party).then_some(self.caller);
        let leased = self.services.ports().lease(self.local.address, peer);
        let at = leased.as_ref().ok().map(Lease::local);
        self.lease = leased.ok();
        if let Some(server) = self.server.clone().filter(|_| self.session.is_data_protected()) {
            self.early = self.lease.take().map(|lease| Early::new(lease, server));
        }
        self.session.listening(at, self.services.clock().now());
    }

    fn transfer(&mut self, request: TransferRequest) {
        let Some(granted) = &self.granted else { return };
        self.what = match &request.task {
            Task::Retrieve { path, .. } => format!("sent {path}"),
            Task::Store { path, .. } => format!("stored {path}"),
            Task::List { path, .. } => format!("listed {path}"),
        };
        self.refusing = None;
        self.shared = Rc::new(Shared::with_markers());
        let transfer = Transfer {
            services: self.services.clone(),
            config: self.config.clone(),
            storage: granted.storage.clone(),
            lease: self.lease.take(),
            early: self.early.take(),
            tls: self.server.clone(),
            must_resume: self.config.resumption_required && self.can_resume,
            user: self.session.user().unwrap_or_default().to_owned(),
            local: self.local.address,
            rate: granted.rate_bytes_per_second,
            shared: self.shared.clone(),
        };
        self.transfer = Some(Box::pin(transfer.run(request)));
    }

    fn send(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let now = self.services.clock().now();
        let Control::Open(stream) = &mut self.control else { return Ok(false) };
        let mut any = false;
        while !self.session.pending().is_empty() {
            match Pin::new(&mut *stream).poll_write(cx, self.session.pending()) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => self.session.sent(count, now),
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
            any = true;
        }
        if let Poll::Ready(Err(error)) = Pin::new(&mut *stream).poll_flush(cx) {
            return Err(error);
        }
        Ok(any)
    }

    /// Sends the last reply and drains the input, so that unread data does not cause a reset.
    async fn farewell(&mut self) {
        let Control::Open(stream) = &mut self.control else { return };
        let pending = self.session.pending().to_vec();
        if stream.write_all(&pending).await.is_err() || stream.shutdown().await.is_err() {
            return;
        }
        drain(stream).await;
    }
}
