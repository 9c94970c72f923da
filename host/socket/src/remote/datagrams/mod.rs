//! UDP sockets for other threads.

pub(crate) mod groups;
mod ring;
pub(crate) mod shared;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use inhost_base::Endpoint;
use inhost_stack::{DatagramInfo, SendDatagrams, SocketOption, UdpOptions, UdpSocketId};

use super::host::RemoteHost;
use super::readiness::StreamReadiness;
use crate::datagram::UdpSocket;
use crate::error::DatagramError;
use crate::host::{Host, udp};
use crate::memory::WATCH_INTERVAL;
use crate::tasks::Sleep;
use shared::{ReceivedDatagrams, Shared, Step};

/// A UDP socket that is `Send`: two bounded rings of datagrams, which a task of the host fills and empties. Clones are
/// the same socket; when the last is dropped, queued datagrams are still sent.
///
/// A call that sends puts the datagram into a ring, and would block when that is full: nothing is dropped on the way to
/// the stack. Received datagrams wait in the other ring, and when it is full in the stack, up to
/// [`UdpOptions::receive_limit_bytes`]; those beyond are dropped and [counted](RemoteUdpSocket::dropped).
///
/// Each ring holds as much as the stack's queue may: [`UdpOptions::send_limit_bytes`] and
/// [`UdpOptions::receive_limit_bytes`]. Beyond 4 KiB it takes part in the memory that all remote sockets of a host share,
/// and holds less when that is used up. No memory is allocated for a datagram.
///
/// An error that a router or the other end reported is returned by the next call of a connected socket. When the stack
/// refuses a datagram after the call that queued it, the next call returns that, of an unconnected socket the next that
/// sends.
#[derive(Clone)]
pub struct RemoteUdpSocket {
    outer: Arc<Outer>,
    host: RemoteHost,
    socket: UdpSocketId,
}

struct Outer(Arc<Shared>);

impl Drop for Outer {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl RemoteUdpSocket {
    pub(crate) fn start(host: &Host, socket: UdpSocket, options: &UdpOptions) -> RemoteUdpSocket {
        let shared = Shared::new(socket.local(), options, host.remote_memory());
        let key = socket.socket();
        host.spawn(serve(host.clone(), socket, shared.clone())).detach();
        RemoteUdpSocket { outer: Arc::new(Outer(shared)), host: host.remote(), socket: key }
    }
    /// Our end: as it was bound, or with the source address that was chosen when it was connected.
    pub fn local(&self) -> Endpoint {
        self.outer.0.ends().0
    }
    /// The other end, when it is connected.
    pub fn remote(&self) -> Option<Endpoint> {
        self.outer.0.ends().1
    }
    /// The host it belongs to.
    pub fn host(&self) -> &RemoteHost {
        &self.host
    }
    /// The socket's name, for [`Host::with_stack`].
    pub fn socket(&self) -> UdpSocketId {
        self.socket
    }
    /// Datagrams that arrived and were dropped because the limit on what waits was reached, as the host last said.
    pub fn dropped(&self) -> u64 {
        self.outer.0.dropped()
    }
    /// Sends to `remote` from now on where nothing else is said, receives only from there, and learns of errors on the
    /// way.
    pub async fn connect(&self, remote: Endpoint) -> Result<(), DatagramError> {
        let (socket, shared) = (self.socket, self.outer.0.clone());
        let connect = move |host: Host| async move {
            host.core(|core| udp(core).connect(socket, remote))?;
            if let Some((local, _)) = host.core(|core| core.stack.endpoints(socket)) {
                shared.connected(local, remote);
            }
            Ok(())
        };
        self.host.call(connect).await.unwrap_or(Err(DatagramError::Stopped))
    }
    /// Sets an option without waiting for the host. One that the socket refuses has no effect.
    pub fn queue_option(&self, option: SocketOption) {
        self.outer.0.set_option(option);
    }
    /// The error that waits to be reported, which counts as reported then.
    pub fn take_error(&self) -> Option<DatagramError> {
        self.outer.0.take_error()
    }

    /// Sends one datagram to `to`, or to the connected end; waits while the ring is full.
    pub async fn send_to(&self, bytes: &[u8], to: Option<Endpoint>) -> Result<(), DatagramError> {
        let mut how = SendDatagrams::default();
        how.to = to;
        poll_fn(|context| self.poll_send(context, bytes, &how)).await
    }
    /// Sends one datagram, or with [`SendDatagrams::segment_bytes`] several; waits while the ring is full.
    pub fn poll_send(
        &self,
        context: &Context<'_>,
        bytes: &[u8],
        how: &SendDatagrams,
    ) -> Poll<Result<(), DatagramError>> {
        self.outer.0.poll_send(context, bytes, how)
    }
    /// As [`RemoteUdpSocket::poll_send`]; `None` while the ring is full.
    pub fn try_send(&self, bytes: &[u8], how: &SendDatagrams) -> Option<Result<(), DatagramError>> {
        self.outer.0.try_send(bytes, how)
    }

    /// The next datagram, of which as much as fits is put into `into`; or an error that an earlier one met.
    pub async fn receive_from(&self, into: &mut [u8]) -> Result<DatagramInfo, DatagramError> {
        poll_fn(|context| self.poll_receive(context, into)).await
    }
    /// One step of [`RemoteUdpSocket::receive_from`].
    pub fn poll_receive(
        &self,
        context: &Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<DatagramInfo, DatagramError>> {
        self.outer.0.poll_receive(context, |arrived| arrived.take(into))
    }
    /// As [`RemoteUdpSocket::poll_receive`]; `None` when nothing waits.
    pub fn try_receive(&self, into: &mut [u8]) -> Option<Result<DatagramInfo, DatagramError>> {
        self.outer.0.try_receive(|arrived| arrived.take(into))
    }
    /// The next datagram, shown to `read` where it lies. Other calls on the socket wait for `read`, which must not make
    /// any.
    pub fn poll_receive_with<R>(
        &self,
        context: &Context<'_>,
        read: impl FnOnce(&DatagramInfo, &[u8]) -> R,
    ) -> Poll<Result<R, DatagramError>> {
        self.outer.0.poll_receive(context, |arrived| arrived.take_with(read))
    }
    /// As [`RemoteUdpSocket::poll_receive_with`]; `None` when nothing waits.
    pub fn try_receive_with<R>(
        &self,
        read: impl FnOnce(&DatagramInfo, &[u8]) -> R,
    ) -> Option<Result<R, DatagramError>> {
        self.outer.0.try_receive(|arrived| arrived.take_with(read))
    }
    /// The next datagram, and with it those that follow as long as they are of the same size, between the same ends and
    /// with the same mark, and fit.
    pub fn poll_receive_gro(
        &self,
        context: &Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<ReceivedDatagrams, DatagramError>> {
        self.outer.0.poll_receive(context, |arrived| arrived.take_all_alike(into))
    }
    /// As [`RemoteUdpSocket::poll_receive_gro`]; `None` when nothing waits.
    pub fn try_receive_gro(&self, into: &mut [u8]) -> Option<Result<ReceivedDatagrams, DatagramError>> {
        self.outer.0.try_receive(|arrived| arrived.take_all_alike(into))
    }
    /// Copies the next datagram without taking it.
    pub fn poll_peek(
        &self,
        context: &Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<DatagramInfo, DatagramError>> {
        self.outer.0.poll_receive(context, |arrived| arrived.peek(into))
    }
    /// As [`RemoteUdpSocket::poll_peek`]; `None` when nothing waits.
    pub fn try_peek(&self, into: &mut [u8]) -> Option<Result<DatagramInfo, DatagramError>> {
        self.outer.0.try_receive(|arrived| arrived.peek(into))
    }

    /// What can be done without waiting.
    pub fn readiness(&self) -> StreamReadiness {
        self.outer.0.readiness()
    }
    /// Waits until there is a datagram or an error.
    pub fn poll_readable(&self, context: &Context<'_>) -> Poll<StreamReadiness> {
        self.poll_ready(context, |ready| ready.readable)
    }
    /// Waits until there is room for what was last refused, or an error.
    pub fn poll_writable(&self, context: &Context<'_>) -> Poll<StreamReadiness> {
        self.poll_ready(context, |ready| ready.writable)
    }
    /// Waits until something holds of what can be done.
    pub fn poll_ready(
        &self,
        context: &Context<'_>,
        holds: impl Fn(StreamReadiness) -> bool,
    ) -> Poll<StreamReadiness> {
        self.outer.0.poll_ready(context, holds)
    }
}

impl core::fmt::Debug for RemoteUdpSocket {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (local, remote) = self.outer.0.ends();
        f.debug_struct("RemoteUdpSocket").field("local", &local).field("remote", &remote).finish()
    }
}

/// The host's task behind a remote socket.
async fn serve(host: Host, socket: UdpSocket, shared: Arc<Shared>) {
    let guard = Guard(shared, host.clone());
    let mut watch: Option<Sleep> = None;
    poll_fn(|context| {
        let step = guard.0.step(&host, &socket, context);
        match step {
            Step::Ended => return Poll::Ready(()),
            Step::Again => context.waker().wake_by_ref(),
            Step::Watches if watch.is_none() => watch = Some(host.sleep(WATCH_INTERVAL)),
            Step::Watches | Step::Waits => {}
        }
        if let Some(sleep) = &mut watch
            && Pin::new(sleep).poll(context).is_ready()
        {
            watch = None;
            if guard.0.release_unused() {
                let mut sleep = host.sleep(WATCH_INTERVAL);
                let _ = Pin::new(&mut sleep).poll(context);
                watch = Some(sleep);
            }
        }
        Poll::Pending
    })
    .await;
}

/// When the task is gone, tells the holders, and leaves the groups.
struct Guard(Arc<Shared>, Host);
impl Drop for Guard {
    fn drop(&mut self) {
        self.0.stop();
        self.0.leave_groups(&self.1);
    }
}
