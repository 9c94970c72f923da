//! What a UDP socket's task on the host and its holders on other threads share.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use inhost_base::{Endpoint, IpAddr, LinkId};
use inhost_stack::{
    self as stack, ConfigureError, DatagramInfo, MAX_GSO_DATAGRAMS, SendDatagrams, SocketOption, UdpOptions,
};

use super::ring::DatagramRing;
use crate::datagram::UdpSocket;
use crate::error::DatagramError;
use crate::host::{Host, udp};
use crate::memory::Allowance;
use crate::remote::locked::Locked;
use crate::remote::readiness::{StreamReadiness, replace_option};
use crate::waiters::{WakerSet, wake_all};

/// Datagrams moved each way in one poll; then other tasks have their turn.
const DATAGRAMS_A_POLL: usize = 64;
/// Bytes moved each way in one poll, but for the last datagram.
const BYTES_A_POLL: usize = 256 * 1024;

/// Datagrams that one call received: one, or several of the same size between the same ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReceivedDatagrams {
    /// The ends, the mark, and the length of all together.
    pub info: DatagramInfo,
    /// GRO size: the length of each datagram but the last, which may be shorter.
    pub segment_bytes: usize,
}

pub(super) struct Shared(Locked<State>);

struct State {
    /// From the host to the holders.
    up: DatagramRing<DatagramInfo>,
    /// The host's task waits for room in `up`.
    up_waits: bool,
    /// The host's task looks in a moment whether `up` still needs its memory.
    up_watched: bool,
    /// From the holders to the host.
    down: DatagramRing<SendDatagrams>,
    /// The longest datagram, or datagrams of one call, for which there was no room.
    down_wanted: Option<usize>,
    /// An error of the socket, which the next call returns.
    error: Option<DatagramError>,
    /// What became of an earlier datagram of an unconnected socket, which the next call that sends returns.
    send_error: Option<DatagramError>,
    /// Options that were set, one of a kind at most, and that the host's task has not seen yet.
    options: Vec<SocketOption>,
    local: Endpoint,
    remote: Option<Endpoint>,
    broadcast: bool,
    dropped: u64,
    /// Groups that it has joined, which it leaves in the end.
    groups: Vec<(LinkId, IpAddr)>,
    stopped: bool,
    abandoned: bool,
    shard: Option<Waker>,
    readers: WakerSet,
    writers: WakerSet,
}

impl Shared {
    pub(super) fn new(local: Endpoint, options: &UdpOptions, allowance: &Arc<Allowance>) -> Arc<Shared> {
        Arc::new(Shared(Locked::new(State {
            up: DatagramRing::new(options.receive_limit_bytes, allowance),
            up_waits: false,
            up_watched: false,
            down: DatagramRing::new(options.send_limit_bytes, allowance),
            down_wanted: None,
            error: None,
            send_error: None,
            options: Vec::new(),
            local,
            remote: None,
            broadcast: options.broadcast,
            dropped: 0,
            groups: Vec::new(),
            stopped: false,
            abandoned: false,
            shard: None,
            readers: WakerSet::default(),
            writers: WakerSet::default(),
        })))
    }
}

/// Calls of the holders. Each is short and none waits.
impl Shared {
    pub(super) fn ends(&self) -> (Endpoint, Option<Endpoint>) {
        let state = self.0.lock();
        (state.local, state.remote)
    }
    pub(super) fn dropped(&self) -> u64 {
        self.0.lock().dropped
    }
    pub(super) fn set_option(&self, option: SocketOption) {
        self.0.change(|state| {
            match option {
                SocketOption::Broadcast(allowed) => state.broadcast = allowed,
                SocketOption::SendBufferLimit(bytes) => state.down.set_limit(bytes),
                SocketOption::ReceiveBufferLimit(bytes) => state.up.set_limit(bytes),
                _ => {}
            }
            replace_option(&mut state.options, option);
            ((), state.shard.take())
        });
    }
    pub(super) fn take_error(&self) -> Option<DatagramError> {
        self.0.lock().take_error()
    }
    pub(super) fn readiness(&self) -> StreamReadiness {
        self.0.lock().readiness()
    }
    pub(super) fn poll_ready(
        &self,
        context: &Context<'_>,
        holds: impl Fn(StreamReadiness) -> bool,
    ) -> Poll<StreamReadiness> {
        self.0.change(|state| state.readiness().poll(holds, context, &mut state.readers, &mut state.writers))
    }
    pub(super) fn try_send(&self, bytes: &[u8], how: &SendDatagrams) -> Option<Result<(), DatagramError>> {
        let (sent, wake) = self.0.lock().send(bytes, how)?;
        wake_all(wake);
        Some(sent)
    }
    pub(super) fn poll_send(
        &self,
        context: &Context<'_>,
        bytes: &[u8],
        how: &SendDatagrams,
    ) -> Poll<Result<(), DatagramError>> {
        self.0.change(|state| match state.send(bytes, how) {
            Some((sent, wake)) => (Poll::Ready(sent), wake),
            None => (Poll::Pending, state.writers.register(context)),
        })
    }
    /// Looks at or takes what came, by `read`; `None` when nothing did.
    pub(super) fn try_receive<R>(
        &self,
        read: impl FnOnce(&mut Arrived<'_>) -> R,
    ) -> Option<Result<R, DatagramError>> {
        self.0.change(|state| match state.receive(read) {
            Some(result) => (Some(result), state.wake_of_reader()),
            None => (None, None),
        })
    }
    pub(super) fn poll_receive<R>(
        &self,
        context: &Context<'_>,
        read: impl FnOnce(&mut Arrived<'_>) -> R,
    ) -> Poll<Result<R, DatagramError>> {
        self.0.change(|state| match state.receive(read) {
            Some(result) => (Poll::Ready(result), state.wake_of_reader()),
            None => (Poll::Pending, state.readers.register(context)),
        })
    }
    /// The last holder is gone. What is queued is still sent.
    pub(super) fn abandon(&self) {
        self.0.change(|state| {
            state.abandoned = true;
            state.up.clear();
            ((), state.shard.take())
        });
    }
}

impl State {
    fn take_error(&mut self) -> Option<DatagramError> {
        self.error.take().or_else(|| self.send_error.take())
    }
    fn is_readable(&self) -> bool {
        self.stopped || self.error.is_some() || !self.up.is_empty()
    }
    fn is_writable(&mut self) -> bool {
        self.stopped
            || self.error.is_some()
            || self.send_error.is_some()
            || self.down.make_room(self.down_wanted.unwrap_or(1))
    }
    fn readiness(&mut self) -> StreamReadiness {
        StreamReadiness {
            readable: self.is_readable(),
            read_closed: self.stopped,
            writable: self.is_writable(),
            write_closed: self.stopped,
            failed: self.stopped || self.error.is_some() || self.send_error.is_some(),
            urgent: false,
        }
    }
    fn send(
        &mut self,
        bytes: &[u8],
        how: &SendDatagrams,
    ) -> Option<(Result<(), DatagramError>, Option<Waker>)> {
        match self.check_send(bytes, how) {
            Err(error) => Some((Err(error), None)),
            Ok(how) if self.down.push(bytes.len(), how, |place| place.copy_from_slice(bytes)) => {
                Some((Ok(()), self.shard.take()))
            }
            Ok(_) => {
                self.down_wanted = self.down_wanted.max(Some(bytes.len()));
                None
            }
        }
    }
    /// The rules of the stack that need no route, so that their errors are those of this call.
    fn check_send(&mut self, bytes: &[u8], how: &SendDatagrams) -> Result<SendDatagrams, DatagramError> {
        if self.stopped {
            return Err(DatagramError::Stopped);
        }
        if let Some(error) = self.take_error() {
            return Err(error);
        }
        let to = how.to.or(self.remote).ok_or(stack::DatagramError::NoDestination)?;
        if bytes.len() > longest_bytes(to) {
            return Err(stack::DatagramError::TooLong.into());
        }
        let segment_bytes = usize::from(how.segment_bytes);
        if segment_bytes > 0 && bytes.len().div_ceil(segment_bytes) > MAX_GSO_DATAGRAMS {
            return Err(stack::DatagramError::TooLong.into());
        }
        if !self.broadcast && to.address == std::net::Ipv4Addr::BROADCAST {
            return Err(stack::DatagramError::Broadcast.into());
        }
        let mut how = *how;
        how.to = Some(to);
        Ok(how)
    }
    fn receive<R>(&mut self, read: impl FnOnce(&mut Arrived<'_>) -> R) -> Option<Result<R, DatagramError>> {
        if let Some(error) = self.error.take() {
            return Some(Err(error));
        }
        if self.up.is_empty() {
            return self.stopped.then_some(Err(DatagramError::Stopped));
        }
        Some(Ok(read(&mut Arrived(&mut self.up))))
    }
    /// The host's task, when it is to look after the ring from which something was taken.
    fn wake_of_reader(&mut self) -> Option<Waker> {
        let has_room = self.up_waits && self.up.is_half_empty();
        let is_idle = self.up.is_empty() && self.up.is_large() && !self.up_watched;
        if has_room || is_idle { self.shard.take() } else { None }
    }
    /// Keeps an error of the socket, or of a datagram that it did not send.
    fn learn(&mut self, error: stack::DatagramError, of_send: bool) {
        let place = if of_send && self.remote.is_none() { &mut self.send_error } else { &mut self.error };
        *place = Some(DatagramError::Stack(error));
    }
}

/// The most that a datagram to `to` carries.
fn longest_bytes(to: Endpoint) -> usize {
    if to.address.is_ipv4() { 65_507 } else { 65_527 }
}

/// Received datagrams, of which there is at least one.
pub(super) struct Arrived<'a>(&'a mut DatagramRing<DatagramInfo>);

impl Arrived<'_> {
    /// Shows the first datagram, which stays.
    pub(super) fn show<R>(&self, to: impl FnOnce(&DatagramInfo, &[u8]) -> R) -> R {
        match self.0.front() {
            Some((info, bytes)) => to(info, bytes),
            None => to(&NOTHING, &[]),
        }
    }
    /// Copies the first datagram, as far as there is room. It stays.
    pub(super) fn peek(&self, into: &mut [u8]) -> DatagramInfo {
        self.show(|info, bytes| {
            let count = bytes.len().min(into.len());
            into[..count].copy_from_slice(&bytes[..count]);
            *info
        })
    }
    /// Takes the first datagram, after `to` has seen it.
    pub(super) fn take_with<R>(&mut self, to: impl FnOnce(&DatagramInfo, &[u8]) -> R) -> R {
        let result = self.show(to);
        self.0.pop();
        result
    }
    /// Takes the first datagram, of which as much as fits is put into `into`.
    pub(super) fn take(&mut self, into: &mut [u8]) -> DatagramInfo {
        let info = self.peek(into);
        self.0.pop();
        info
    }
    /// Takes the first datagram as [`Arrived::take`] does, and those that follow as long as they are of the same size,
    /// between the same ends and with the same mark, and fit. Only the last may be shorter.
    pub(super) fn take_all_alike(&mut self, into: &mut [u8]) -> ReceivedDatagrams {
        let first = self.take(into);
        let segment_bytes = first.length_bytes;
        let (mut end, mut count) = (segment_bytes, 1);
        while count < MAX_GSO_DATAGRAMS
            && let Some((&info, bytes)) = self.0.front()
            && (1..=segment_bytes).contains(&bytes.len())
            && info == (DatagramInfo { length_bytes: bytes.len(), ..first })
            && let Some(place) = into.get_mut(end..end + bytes.len())
        {
            place.copy_from_slice(bytes);
            self.0.pop();
            end += info.length_bytes;
            count += 1;
            if info.length_bytes < segment_bytes {
                break;
            }
        }
        ReceivedDatagrams { info: DatagramInfo { length_bytes: end, ..first }, segment_bytes }
    }
}

/// For a queue that is empty, which [`Arrived`] never is.
const NOTHING: DatagramInfo = DatagramInfo {
    length_bytes: 0,
    from: Endpoint { address: std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), port: 0 },
    to: Endpoint { address: std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), port: 0 },
    link: LinkId(0),
    hop_limit: 0,
    ecn: stack::Ecn::NotCapable,
};

/// What a step of the host's task came to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing is left to do until somebody wakes it.
    Waits,
    /// As it waits, but some memory is to be looked at in a moment.
    Watches,
    /// There is more to do at once.
    Again,
    /// The holders are gone, and all that they sent was passed on.
    Ended,
}

/// Calls of the host's task.
impl Shared {
    /// Moves datagrams both ways.
    pub(super) fn step(&self, host: &Host, socket: &UdpSocket, context: &Context<'_>) -> Step {
        let mut state = self.0.lock();
        if !state.shard.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            state.shard = Some(context.waker().clone());
        }
        while let Some(option) = state.options.pop() {
            // An option that the socket refuses has no effect.
            let _ = socket.set_option(option);
        }
        if let Ok(Some(error)) = host.core(|core| udp(core).take_error(socket.socket())) {
            state.learn(error, false);
        }
        let sent = state.send_down(socket, context);
        let received = if state.abandoned { Moved::NOTHING } else { state.receive_up(host, socket, context) };
        let step = match () {
            () if state.abandoned && state.down.is_empty() => Step::Ended,
            () if sent.is_enough() || received.is_enough() => Step::Again,
            () if state.up.is_large() || state.down.is_large() => Step::Watches,
            () => Step::Waits,
        };
        state.up_watched = step == Step::Watches;
        let woken = state.woken(sent.datagrams > 0);
        drop(state);
        wake_all(woken);
        step
    }
    /// Gives back memory that was not used since the last call. Whether to look again.
    pub(super) fn release_unused(&self) -> bool {
        let mut state = self.0.lock();
        let (up, down) = (state.up.release_unused(), state.down.release_unused());
        state.up_watched = up;
        up || down
    }
    /// Connects the socket.
    pub(super) fn connected(&self, local: Endpoint, remote: Endpoint) {
        let mut state = self.0.lock();
        (state.local, state.remote) = (local, Some(remote));
    }
    /// Adds a group to those that the socket has joined; false when it is one already.
    pub(super) fn add_group(&self, link: LinkId, group: IpAddr) -> bool {
        let groups = &mut self.0.lock().groups;
        let is_new = !groups.contains(&(link, group));
        if is_new {
            groups.push((link, group));
        }
        is_new
    }
    /// Takes a group out; false when the socket has not joined it.
    pub(super) fn remove_group(&self, link: LinkId, group: IpAddr) -> bool {
        let groups = &mut self.0.lock().groups;
        let place = groups.iter().position(|joined| *joined == (link, group));
        place.map(|place| groups.swap_remove(place)).is_some()
    }
    /// Leaves every group that the socket has joined.
    pub(super) fn leave_groups(&self, host: &Host) {
        let groups = std::mem::take(&mut self.0.lock().groups);
        for (link, group) in groups {
            // The link may be gone, too.
            let _ = leave(host, link, group);
        }
    }
    /// The task is gone.
    pub(super) fn stop(&self) {
        self.0.change(|state| {
            state.stopped = true;
            ((), state.readers.take_out().chain(state.writers.take_out()))
        });
    }
}

/// Leaves a group on a link.
pub(super) fn leave(host: &Host, link: LinkId, group: IpAddr) -> Result<(), ConfigureError> {
    host.with_stack_and_sink(|stack, now, sink| {
        stack.with_ip(now, sink, |ip, environment| ip.leave_group(link, group, environment))
    })
}

/// How much was moved in one direction.
#[derive(Clone, Copy)]
struct Moved {
    datagrams: usize,
    bytes: usize,
}

impl Moved {
    const NOTHING: Moved = Moved { datagrams: 0, bytes: 0 };

    fn add(&mut self, bytes: usize) {
        self.datagrams += 1;
        self.bytes += bytes;
    }
    /// Whether it is the turn of other tasks.
    fn is_enough(self) -> bool {
        self.datagrams >= DATAGRAMS_A_POLL || self.bytes >= BYTES_A_POLL
    }
}

impl State {
    fn send_down(&mut self, socket: &UdpSocket, context: &Context<'_>) -> Moved {
        let mut moved = Moved::NOTHING;
        while !moved.is_enough()
            && let Some((how, bytes)) = self.down.front()
        {
            let length = bytes.len();
            let sent = match socket.poll_send_with(context, bytes, how) {
                Poll::Ready(sent) => sent,
                Poll::Pending => break,
            };
            self.down.pop();
            moved.add(length);
            if let Err(DatagramError::Stack(error)) = sent {
                self.learn(error, true);
            }
        }
        moved
    }
    fn receive_up(&mut self, host: &Host, socket: &UdpSocket, context: &Context<'_>) -> Moved {
        let mut moved = Moved::NOTHING;
        self.up_waits = false;
        let is_drained = host.core(|core| {
            let key = socket.socket();
            while !moved.is_enough() {
                let Some(info) = udp(core).next_received(key) else { return true };
                self.up_waits = !self.up.push(info.length_bytes, info, |place| {
                    // It is there, as the stack has just said.
                    let _ = udp(core).receive_from(key, place);
                });
                if self.up_waits {
                    break;
                }
                moved.add(info.length_bytes);
            }
            false
        });
        self.dropped = host.core(|core| udp(core).dropped(socket.socket()));
        if is_drained {
            socket.wait_to_receive(context);
        }
        moved
    }
    /// Those whom a step of the host's task concerns.
    fn woken(&mut self, has_sent: bool) -> impl Iterator<Item = Waker> + use<> {
        let has_failed = self.error.is_some() || self.send_error.is_some();
        let readers = self.is_readable().then(|| self.readers.take_out());
        let is_wanted = has_sent && !self.writers.is_empty();
        let writers = (has_failed || is_wanted && self.is_writable()).then(|| {
            self.down_wanted = None;
            self.writers.take_out()
        });
        readers.into_iter().flatten().chain(writers.into_iter().flatten())
    }
}
