//! The client's control connection with its data connections.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use inhost_base::{Duration, Endpoint, IpAddr};
use inhost_common::Callers;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::data::{Moving, Receiving, Sending, Shared};
use super::stall::Stall;
use super::transfer::{drain, shutdown};
use super::{Caller, Clock, MaybeTls, Network, PassivePorts, TlsClient, TlsStream};
use crate::client::{Action, Answer, Client, ClientError, Features, Operation, Passive, Transfer};
use crate::codec::{Family, Parameters, Representation, name_text};
use crate::server::TransferError;
use inhost_common::LocalFuture;
use inhost_common::storage::{Source, StorageError, Storing};
use inhost_common::within;

/// Octets of one read of the control connection.
const READ_BYTES: usize = 4096;
/// Octets of a listing.
const LISTING_BYTES: usize = 256 << 20;

/// Longest wait for the peer to close an upload.
const TICKET_TIME: Duration = Duration::from_secs(1);

/// Timeouts.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ClientLimits {
    /// A data connection to come about, and TLS on it. Default 30 s.
    pub connect_time: Duration,
    /// The server to answer, to the end of its reply. Default 5 minutes: it may be hashing.
    pub reply_time: Duration,
    /// Data not to move. Default 1 minute.
    pub stall_time: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        ClientLimits {
            connect_time: Duration::from_secs(30),
            reply_time: Duration::from_secs(300),
            stall_time: Duration::from_secs(60),
        }
    }
}

/// Source or sink of a transfer's data.
pub enum Flow {
    /// Nowhere.
    None,
    /// From a file, from this octet on.
    Up(Box<dyn Source>, u64),
    /// To a file.
    Down(Storing),
    /// To memory, at most 256 MiB: a listing.
    Text,
}

/// Its progress.
#[derive(Default)]
pub struct Flowed {
    /// The file that was stored to, not committed, with the place behind its last octet.
    pub stored: Option<(Storing, u64)>,
    /// Data received into memory.
    pub text: String,
    /// Octets of the file that moved.
    pub moved_bytes: u64,
    /// Error of the local file.
    failure: Option<StorageError>,
}

/// A control connection.
pub struct Connection<N: Network, C> {
    network: Rc<N>,
    clock: C,
    limits: ClientLimits,
    control: Option<MaybeTls<N::Stream>>,
    client: Client,
    local: IpAddr,
    peer: Endpoint,
    tls: Option<TlsClient>,
    protected: bool,
    moved: Rc<Cell<u64>>,
    log: Option<Log>,
}

/// Result of the data connection.
type Ended = (Result<(), String>, Flowed);
/// Observer of commands and replies.
type Log = Box<dyn Fn(&str)>;
type Opening<S> = LocalFuture<io::Result<S>>;

/// State of a data connection.
enum Data<S> {
    None,
    Opening(Opening<S>),
    Open(S),
    Failed(io::Error),
    Moving(LocalFuture<Ended>),
}

impl<N: Network, C: Clock + Clone + 'static> Connection<N, C> {
    /// Starts a session on a stream and reads the greeting. With `tls`, everything else is encrypted: from the start
    /// where `implicit`, else by AUTH TLS, and a server that refuses gets nothing more from us.
    pub async fn open(
        network: Rc<N>,
        clock: C,
        stream: N::Stream,
        ends: (IpAddr, Endpoint),
        tls: Option<TlsClient>,
        implicit: bool,
    ) -> Result<Connection<N, C>, ClientError> {
        let (local, peer) = ends;
        let (secure, limits) = (tls.is_some(), ClientLimits::default());
        let control = match &tls {
            Some(tls) if implicit => {
                MaybeTls::Tls(Box::new(handshake(&clock, limits.connect_time, tls, stream).await?))
            }
            _ => MaybeTls::Clear(stream),
        };
        let mut connection = Connection {
            network,
            clock,
            limits,
            control: Some(control),
            client: Client::new(Family::of(peer.address)),
            local,
            peer,
            tls,
            protected: secure,
            moved: Rc::default(),
            log: None,
        };
        connection.perform(Operation::Greet).await?;
        if secure {
            let operation = if implicit { Operation::Protect } else { Operation::Secure };
            connection.perform(operation).await?;
            if !matches!(connection.control, Some(MaybeTls::Tls(_))) {
                return Err(ClientError::Protocol("the control connection is not in TLS".into()));
            }
        }
        Ok(connection)
    }
    /// Reports commands and replies from now on.
    pub fn set_log(&mut self, log: impl Fn(&str) + 'static) {
        self.log = Some(Box::new(log));
    }
    /// Features of the server.
    pub fn features(&self) -> &Features {
        self.client.features()
    }
    /// Octets of the file that the running transfer has moved, for a progress display.
    pub fn moved(&self) -> Rc<Cell<u64>> {
        self.moved.clone()
    }
    /// Has the next data connection begin its own TLS session, as clients do that know nothing of resumption.
    pub fn forget_tickets(&mut self) {
        self.tls = self.tls.take().map(TlsClient::without_tickets);
    }
    /// Whether all is encrypted.
    pub fn is_protected(&self) -> bool {
        self.protected
    }
    /// Sends a line and reads the reply.
    pub async fn command(&mut self, line: impl Into<String>) -> Result<crate::codec::Reply, ClientError> {
        match self.perform(Operation::Command(line.into())).await? {
            Answer::Reply(reply) => Ok(reply),
            Answer::Offered(_) => Err(ClientError::Protocol("an address where none was asked for".into())),
        }
    }
    /// Has octets be as they are, which the server is told where it does not know it.
    pub(super) async fn set_image(&mut self) -> Result<(), ClientError> {
        match self.client.representation() {
            Representation::Image => Ok(()),
            _ => self.command("TYPE I").await.map(|_| ()),
        }
    }
    /// Does something that moves no data.
    pub async fn perform(&mut self, operation: Operation) -> Result<Answer, ClientError> {
        self.run(operation, Flow::None, Parameters::default()).await.map(|(answer, _)| answer)
    }
    /// Moves data.
    pub async fn transfer(&mut self, transfer: Transfer, flow: Flow) -> Result<Flowed, ClientError> {
        let parameters = transfer.parameters;
        self.moved.set(0);
        self.run(Operation::Transfer(transfer), flow, parameters).await.map(|(_, flowed)| flowed)
    }

    async fn run(
        &mut self,
        operation: Operation,
        flow: Flow,
        parameters: Parameters,
    ) -> Result<(Answer, Flowed), ClientError> {
        let (mut data, mut flow) = (Data::None, Some(flow));
        let mut flowed = Flowed::default();
        let clock = self.clock.clone();
        let mut stall = Stall::new(&clock, self.limits.reply_time);
        let mut answers = self.client.answers();
        self.client.begin(operation);
        loop {
            while let Some(action) = self.client.action() {
                match action {
                    Action::StartTls => self.start_tls().await?,
                    Action::Connect(at) => data = Data::Opening(self.connect(at)),
                    Action::Listen => data = Data::Opening(self.listen()?),
                    Action::Move => {
                        let flow = flow.take().unwrap_or(Flow::None);
                        data = Data::Moving(self.move_data(data, flow, parameters));
                    }
                    Action::DropData => data = Data::None,
                    Action::Done(outcome) => {
                        // The server's reply reports only that the connection ended.
                        return match (outcome, flowed.failure.take()) {
                            (Ok(answer), _) => Ok((answer, flowed)),
                            (Err(ClientError::Connection(why)), _) => Err(ClientError::Connection(why)),
                            (Err(_), Some(failure)) => Err(ClientError::Local(failure.to_string())),
                            (Err(error), None) => Err(error),
                        };
                    }
                }
            }
            if answers != self.client.answers() {
                answers = self.client.answers();
                stall.moved();
            }
            if let Some((outcome, done)) = self.step(&mut data, &mut stall).await? {
                data = Data::None;
                flowed = done;
                self.client.data_ended(outcome);
            }
        }
    }

    /// Sends, receives and moves data until the operation ends; returns its result.
    async fn step(
        &mut self,
        data: &mut Data<N::Stream>,
        stall: &mut Stall<'_, C>,
    ) -> Result<Option<Ended>, ClientError> {
        let lost = |why: String| Poll::Ready(Err(ClientError::Connection(why)));
        poll_fn(|cx| {
            let Some(control) = &mut self.control else { return lost("the connection is gone".into()) };
            while !self.client.pending().is_empty() {
                if let Some(log) = &self.log {
                    log(&said(self.client.pending()));
                }
                match Pin::new(&mut *control).poll_write(cx, self.client.pending()) {
                    Poll::Ready(Ok(count)) => self.client.sent(count),
                    Poll::Ready(Err(error)) => return lost(error.to_string()),
                    Poll::Pending => break,
                }
            }
            if let Poll::Ready(Err(error)) = Pin::new(&mut *control).poll_flush(cx) {
                return lost(error.to_string());
            }
            match data {
                Data::Opening(opening) => {
                    if let Poll::Ready(opened) = opening.as_mut().poll(cx) {
                        *data = opened.map_or_else(Data::Failed, Data::Open);
                    }
                }
                Data::Moving(moving) => {
                    if let Poll::Ready(ended) = moving.as_mut().poll(cx) {
                        return Poll::Ready(Ok(Some(ended)));
                    }
                    stall.moved();
                }
                _ => {}
            }
            // Before anything is read: a server may send without an end, and say nothing by it.
            if stall.poll(cx) {
                return match self.client.is_midway() {
                    true => lost("the server's reply does not end".into()),
                    false => lost("the server does not answer".into()),
                };
            }
            let mut bytes = [0; READ_BYTES];
            let mut buf = ReadBuf::new(&mut bytes);
            match Pin::new(control).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if buf.filled().is_empty() => {
                    lost("the server closed the connection".into())
                }
                Poll::Ready(Ok(())) => {
                    if let Some(log) = &self.log {
                        log(String::from_utf8_lossy(buf.filled()).trim_end());
                    }
                    self.client.network(buf.filled());
                    Poll::Ready(Ok(None))
                }
                Poll::Ready(Err(error)) => lost(error.to_string()),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    async fn start_tls(&mut self) -> Result<(), ClientError> {
        if self.client.is_midway() {
            return Err(ClientError::Protocol("the server says something between AUTH and TLS".into()));
        }
        let (Some(MaybeTls::Clear(stream)), Some(tls)) = (self.control.take(), &self.tls) else {
            return Err(ClientError::Connection("TLS: it cannot begin here".into()));
        };
        let stream = handshake(&self.clock, self.limits.connect_time, tls, stream).await?;
        self.control = Some(MaybeTls::Tls(Box::new(stream)));
        self.client.tls_started();
        Ok(())
    }

    /// Data goes to the address of the control connection; the address in the PASV reply is ignored.
    fn connect(&self, at: Passive) -> Opening<N::Stream> {
        let port = match at {
            Passive::Port(port) => port,
            Passive::Named(endpoint) => endpoint.port,
        };
        self.network.connect(self.local, Endpoint::new(self.peer.address, port))
    }

    fn listen(&mut self) -> Result<Opening<N::Stream>, ClientError> {
        let callers = Callers::default();
        let peer = Caller::of(&callers, self.peer);
        let ports = PassivePorts::new(self.network.clone(), None, callers);
        let lease = ports
            .lease(self.local, Some(peer))
            .map_err(|error| ClientError::Data(format!("cannot listen: {error}")))?;
        self.client.listening(lease.local());
        Ok(Box::pin(async move { poll_fn(|cx| lease.poll_accept(cx)).await }))
    }

    fn move_data(&self, data: Data<N::Stream>, flow: Flow, parameters: Parameters) -> LocalFuture<Ended> {
        let (clock, limits) = (self.clock.clone(), self.limits);
        let tls = self.tls.clone().filter(|_| self.protected);
        let moved = self.moved.clone();
        Box::pin(async move {
            let mut flowed = Flowed::default();
            let opened = match data {
                Data::Open(stream) => Ok(stream),
                Data::Opening(opening) => match within(&clock, limits.connect_time, opening).await {
                    Some(opened) => opened.map_err(|error| error.to_string()),
                    None => Err("nobody came in time".to_owned()),
                },
                Data::Failed(error) => Err(error.to_string()),
                _ => Err("there is none".to_owned()),
            };
            let stream = match opened {
                Ok(stream) => stream,
                Err(why) => return (Err(why), flowed),
            };
            let mut stream = match &tls {
                None => MaybeTls::Clear(stream),
                Some(tls) => match within(&clock, limits.connect_time, tls.connect(stream)).await {
                    Some(Ok(stream)) => MaybeTls::Tls(Box::new(stream)),
                    Some(Err(error)) => return (Err(format!("TLS: {error}")), flowed),
                    None => return (Err("the TLS handshake takes too long".to_owned()), flowed),
                },
            };
            let shared = Shared::counting(moved);
            let moving = Moving {
                clock: &clock,
                stall_time: limits.stall_time,
                bytes_per_second: None,
                shared: &shared,
                parameters,
            };
            let outcome = carry(&moving, flow, &mut stream, tls.is_some(), &mut flowed).await;
            (outcome, flowed)
        })
    }
}

/// A password is nobody's business.
fn said(octets: &[u8]) -> String {
    let text = String::from_utf8_lossy(octets);
    if text.starts_with("PASS ") { "PASS ***".to_owned() } else { text.trim_end().to_owned() }
}

/// TLS on a control connection.
async fn handshake<C: Clock, S: AsyncRead + AsyncWrite + Unpin>(
    clock: &C,
    time: Duration,
    tls: &TlsClient,
    stream: S,
) -> Result<TlsStream<S>, ClientError> {
    let failed = |why: &str| ClientError::Connection(format!("TLS: {why}"));
    let stream = within(clock, time, tls.connect(stream)).await;
    let stream = stream.ok_or_else(|| failed("the handshake takes too long"))?;
    stream.map_err(|error| failed(&error.to_string()))
}

pub(super) async fn carry<C: Clock, S: AsyncRead + AsyncWrite + Unpin>(
    moving: &Moving<'_, C>,
    flow: Flow,
    stream: &mut S,
    has_tickets: bool,
    flowed: &mut Flowed,
) -> Result<(), String> {
    match flow {
        Flow::None => Ok(()),
        Flow::Up(source, start) => {
            let mut sending = Sending::new(moving, start, true);
            let sent = sending.file(&*source, stream).await;
            sent.map_err(|error| error_text(error, flowed))?;
            flowed.moved_bytes = sending.moved_bytes;
            let ended = within(moving.clock, moving.stall_time, shutdown(stream)).await;
            ended.ok_or_else(|| TransferError::Stalled.to_string())?.map_err(|error| error.to_string())?;
            // Tickets for later data connections come this way; who closes without a word has given none.
            if has_tickets {
                let _ = within(moving.clock, TICKET_TIME, drain(stream)).await;
            }
            Ok(())
        }
        Flow::Down(storing) => {
            let mut receiving = Receiving::new(moving, &storing);
            let outcome = receiving.file(stream).await;
            let position = receiving.position;
            flowed.moved_bytes = position - storing.position;
            flowed.stored = Some((storing, position));
            // Sends close_notify, unless the peer has closed already.
            let _ = within(moving.clock, moving.stall_time, stream.shutdown()).await;
            outcome.map(|_| ()).map_err(|error| error_text(error, flowed))
        }
        Flow::Text => {
            let mut octets = Vec::new();
            let mut place = vec![0; 32 * 1024];
            let mut stall = Stall::new(moving.clock, moving.stall_time);
            loop {
                let mut buf = ReadBuf::new(&mut place);
                let read = poll_fn(|cx| match Pin::new(&mut *stream).poll_read(cx, &mut buf) {
                    Poll::Pending if stall.poll(cx) => Poll::Ready(Err(TransferError::Stalled.to_string())),
                    read => read.map_err(|error| error.to_string()),
                });
                read.await?;
                stall.moved();
                if buf.filled().is_empty() {
                    break;
                }
                octets.extend_from_slice(buf.filled());
                if octets.len() > LISTING_BYTES {
                    return Err("the listing is too long".to_owned());
                }
            }
            flowed.text = name_text(&octets);
            let _ = within(moving.clock, moving.stall_time, stream.shutdown()).await;
            Ok(())
        }
    }
}

/// Text of a transfer error; a local error is recorded as such.
fn error_text(error: TransferError, flowed: &mut Flowed) -> String {
    if let TransferError::Storage(failure) = &error {
        flowed.failure = Some(failure.clone());
    }
    error.to_string()
}
