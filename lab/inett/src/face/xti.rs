//! A host, measured from a task on it by X/Open's transport interface.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use inhost_base::{Endpoint, Instant};
use inhost_socket::Host;
use inhost_socket::errno::Errno;
use inhost_xti::{
    Error, Look, OptionRequest, Provider, SendFlags, Sequence, TransportEndpoint, TransportOption,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::host::figures_of;
use super::{Face, LocalFace, Processor, SocketOptions, StreamFigures};

/// Connect indications that may be outstanding.
const QUEUE_LENGTH: usize = 128;

/// The transport interface of a host. Time is the host's.
#[derive(Clone, Debug)]
pub struct XtiFace {
    host: Host,
    local: LocalFace,
}

impl XtiFace {
    /// The endpoints of this host, whose time may be made up.
    pub fn new(host: Host) -> XtiFace {
        XtiFace { local: LocalFace::new(host.clone()), host }
    }
    /// The endpoints of a host under the real clock.
    #[cfg(feature = "kernel")]
    pub fn under_real_clock(host: Host) -> XtiFace {
        XtiFace { local: LocalFace::under_real_clock(host.clone()), host }
    }
    fn open(&self, provider: Provider, options: &SocketOptions) -> io::Result<TransportEndpoint> {
        let endpoint = TransportEndpoint::open(&self.host, provider);
        negotiate(&endpoint, options)?;
        Ok(endpoint)
    }
}

/// An endpoint that listens, and the indications that were received before one could be accepted.
#[derive(Debug)]
pub struct XtiListener {
    endpoint: TransportEndpoint,
    received: RefCell<VecDeque<Sequence>>,
}

/// A connection on an endpoint, as a stream. Releases and disconnects are received where they are met.
#[derive(Debug)]
pub struct XtiStream(TransportEndpoint);

fn negotiate(endpoint: &TransportEndpoint, options: &SocketOptions) -> io::Result<()> {
    if options.congestion.is_some() {
        let why = "the transport interface has no option for the congestion control";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    let mut list = Vec::new();
    if let Some(bytes) = options.window_bytes {
        list.push(TransportOption::SendBuffer(bytes as usize));
        list.push(TransportOption::ReceiveBuffer(bytes as usize));
    }
    if options.no_delay && endpoint.provider() == Provider::Tcp {
        list.push(TransportOption::NoDelay(true));
    }
    endpoint.optmgmt(OptionRequest::Negotiate, &list).map(drop).map_err(into_io)
}

fn into_io(why: Error) -> io::Error {
    match why {
        Error::System(number) => io::Error::from_raw_os_error(number),
        Error::BadAddress | Error::BadData => io::Error::new(io::ErrorKind::InvalidInput, why),
        Error::AddressBusy => io::Error::new(io::ErrorKind::AddrInUse, why),
        Error::NoAddress => io::Error::new(io::ErrorKind::AddrNotAvailable, why),
        // The reader has received a disconnect: nothing can be sent any more.
        Error::OutState => io::Error::new(io::ErrorKind::BrokenPipe, why),
        why => io::Error::other(why),
    }
}

/// What a disconnect says, where the error is one to receive.
fn received(endpoint: &TransportEndpoint, why: Error) -> io::Error {
    match why {
        Error::Look(Look::Disconnect) => match endpoint.rcvdis() {
            Ok(gone) => gone.why.into_io(),
            Err(why) => into_io(why),
        },
        Error::Look(Look::DatagramError) => match endpoint.rcvuderr() {
            Ok(fault) => io::Error::from_raw_os_error(fault.number),
            Err(why) => into_io(why),
        },
        why => into_io(why),
    }
}

impl AsyncRead for XtiStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let done = ready!(self.0.poll_rcv(context, into.initialize_unfilled()));
        Poll::Ready(match done {
            Ok(received) => {
                into.advance(received.length_bytes);
                Ok(())
            }
            Err(Error::Look(Look::OrderlyRelease)) => self.0.rcvrel().map_err(into_io),
            // The release was received before.
            Err(Error::OutState) => Ok(()),
            Err(why) => Err(received(&self.0, why)),
        })
    }
}

impl AsyncWrite for XtiStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let done = ready!(self.0.poll_snd(context, bytes, SendFlags::default()));
        Poll::Ready(done.map_err(|why| received(&self.0, why)))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match self.0.sndrel() {
            // Both are at the end already.
            Ok(()) | Err(Error::OutState | Error::Look(Look::Disconnect)) => Ok(()),
            Err(why) => Err(into_io(why)),
        })
    }
}

impl XtiListener {
    /// Puts the connection of the oldest indication on an endpoint. What has to be received first is received; then there
    /// is none yet.
    fn accept_oldest(&self, face: &XtiFace) -> Option<io::Result<TransportEndpoint>> {
        let sequence = *self.received.borrow().front()?;
        let onto = TransportEndpoint::open(&face.host, Provider::Tcp);
        match self.endpoint.accept(&onto, sequence) {
            Ok(()) => {
                self.received.borrow_mut().pop_front();
                Some(Ok(onto))
            }
            Err(Error::Look(Look::Listen)) => {
                if let Ok(call) = self.endpoint.try_listen() {
                    self.received.borrow_mut().push_back(call.sequence);
                }
                self.accept_oldest(face)
            }
            Err(Error::Look(Look::Disconnect)) => {
                let gone = self.endpoint.rcvdis().ok().and_then(|gone| gone.sequence);
                self.received.borrow_mut().retain(|sequence| Some(*sequence) != gone);
                None
            }
            Err(why) => Some(Err(into_io(why))),
        }
    }
}

impl Face for XtiFace {
    type Stream = XtiStream;
    type Listener = XtiListener;
    type Datagrams = (TransportEndpoint, Option<Endpoint>);

    fn now(&self) -> Instant {
        self.local.now()
    }
    async fn sleep_until(&self, at: Instant) {
        self.local.sleep_until(at).await;
    }
    fn entropy(&self) -> u64 {
        self.local.entropy()
    }
    fn processor(&self) -> Option<Processor> {
        self.local.processor()
    }
    async fn connect(&self, to: Endpoint, options: &SocketOptions) -> io::Result<XtiStream> {
        let endpoint = self.open(Provider::Tcp, options)?;
        endpoint.bind(None, 0).map_err(into_io)?;
        match endpoint.connect(to).await {
            Ok(_) => Ok(XtiStream(endpoint)),
            Err(why) => Err(received(&endpoint, why)),
        }
    }
    async fn listen(&self, at: Endpoint) -> io::Result<XtiListener> {
        let endpoint = TransportEndpoint::open(&self.host, Provider::Tcp);
        endpoint.bind(Some(at), QUEUE_LENGTH).map_err(into_io)?;
        Ok(XtiListener { endpoint, received: RefCell::default() })
    }
    fn local(&self, listener: &XtiListener) -> io::Result<Endpoint> {
        let addresses = listener.endpoint.addresses().map_err(into_io)?;
        addresses.local.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
    async fn accept(&self, listener: &XtiListener) -> io::Result<(XtiStream, Endpoint)> {
        loop {
            if let Some(accepted) = listener.accept_oldest(self) {
                let endpoint = accepted?;
                let remote = endpoint.addresses().map_err(into_io)?.remote;
                return Ok((XtiStream(endpoint), remote.ok_or(io::ErrorKind::NotConnected)?));
            }
            match listener.endpoint.listen().await {
                Ok(call) => listener.received.borrow_mut().push_back(call.sequence),
                Err(Error::Look(Look::Disconnect)) if !listener.received.borrow().is_empty() => {}
                Err(why) => return Err(received(&listener.endpoint, why)),
            }
        }
    }
    async fn prepare(&self, stream: &XtiStream, options: &SocketOptions) -> io::Result<()> {
        negotiate(&stream.0, options)
    }
    async fn datagrams(
        &self,
        local: Endpoint,
        remote: Option<Endpoint>,
        options: &SocketOptions,
    ) -> io::Result<Self::Datagrams> {
        let endpoint = TransportEndpoint::open(&self.host, Provider::Udp);
        let options = SocketOptions { congestion: None, ..options.clone() };
        negotiate(&endpoint, &options)?;
        endpoint.bind(Some(local), 0).map_err(into_io)?;
        Ok((endpoint, remote))
    }
    async fn send_to(
        &self,
        (endpoint, remote): &Self::Datagrams,
        bytes: &[u8],
        to: Option<Endpoint>,
    ) -> io::Result<()> {
        let to = to.or(*remote).ok_or(io::ErrorKind::InvalidInput)?;
        endpoint.sndudata(bytes, to).await.map_err(|why| received(endpoint, why))
    }
    async fn receive_from(
        &self,
        (endpoint, remote): &Self::Datagrams,
        into: &mut [u8],
    ) -> io::Result<(usize, Endpoint)> {
        // The interface has no connected datagrams: others are left out here.
        poll_fn(|context| {
            loop {
                match ready!(endpoint.poll_rcvudata(context, into)) {
                    Ok(got) if remote.is_none_or(|remote| remote == got.from) => {
                        return Poll::Ready(Ok((got.length_bytes, got.from)));
                    }
                    Ok(_) => {}
                    Err(why) => return Poll::Ready(Err(received(endpoint, why))),
                }
            }
        })
        .await
    }
    async fn figures(&self, stream: &XtiStream) -> StreamFigures {
        figures_of(stream.0.figures())
    }
}
