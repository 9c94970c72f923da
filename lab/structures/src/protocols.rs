//! IP and TCP of one host: the middle layer, as the structures with layers of their own call it.

use crate::application::WRITE_BYTES;
use crate::wire::{Buffers, End, MTU_BYTES, Sent, pipe};
use bytes::{Buf, Bytes};
use inhost_base::{Cidr, Duration, Endpoint, Instant, Ipv4Addr, LinkId};
use inhost_buf::{Batch, Packet};
use inhost_event::Ignore;
use inhost_stack::{
    ConnectOptions, DuplicateDetection, InterfaceConfig, ListenOptions, Medium, Stack, StackConfig,
    StreamError, TcpSocketId,
};

/// The one link of each host.
pub const LINK: LinkId = LinkId(1);
/// Frames of one pass over the link at most: a batch, as in the round.
pub const PASS_FRAMES: usize = Batch::LIMIT;
/// Bytes of one read at most.
pub const READ_BYTES: usize = 64 << 10;
/// The send buffer: 176 full segments, for which the pipe has buffers. Room in it comes in full segments, so that none is
/// cut because a write met its end.
const SEND_BUFFER_BYTES: usize = 11 * WRITE_BYTES;
/// The receive buffer, of which half is offered as the window: a little more than the send buffer.
const RECEIVE_BUFFER_BYTES: usize = 512 << 10;
/// Time until a segment counts as lost.
const RETRANSMIT_AFTER: Duration = Duration::from_secs(5);
/// Passes within which a handshake is over.
const HANDSHAKE_PASSES: usize = 8;

/// Where the called host listens.
pub fn called() -> Endpoint {
    Endpoint::new(Ipv4Addr::new(10, 0, 0, 2), 23)
}

/// Two hosts with a pipe between them; nothing is connected yet.
pub fn hosts(now: Instant) -> Result<[(Stack, End, Buffers); 2], String> {
    let [(near, near_buffers), (far, far_buffers)] = pipe();
    Ok([(stack(1, now)?, near, near_buffers), (stack(2, now)?, far, far_buffers)])
}

fn stack(last: u8, now: Instant) -> Result<Stack, String> {
    let mut config = StackConfig::default();
    // So that a full segment has the 1460 bytes of the papers' time.
    config.tcp.timestamps = false;
    // Nothing is lost in the pipe. A layer that has to wait for its processor is not to be taken for a loss.
    config.tcp.tail_loss_probe = false;
    config.tcp.min_retransmission_timeout = RETRANSMIT_AFTER;
    config.tcp.send_buffer_initial_bytes = SEND_BUFFER_BYTES;
    config.tcp.send_buffer_limit_bytes = SEND_BUFFER_BYTES;
    config.tcp.receive_buffer_initial_bytes = RECEIVE_BUFFER_BYTES;
    config.tcp.receive_buffer_limit_bytes = RECEIVE_BUFFER_BYTES;
    let mut stack = Stack::new(config, [last; 32], now);
    let address = Cidr::new(Ipv4Addr::new(10, 0, 0, last), 8).map_err(|e| e.to_string())?;
    let mut interface = InterfaceConfig::new("pipe", Medium::Ip);
    interface.mtu_bytes = MTU_BYTES;
    interface.duplicate_detection = DuplicateDetection::Off;
    stack.add_link(interface.with_address(address), now).map_err(|e| e.to_string())?;
    Ok(stack)
}

/// A stack with one connection.
///
/// A turn of the layer is: [`admit`](Protocols::admit) frames while [`has_room`](Protocols::has_room);
/// [`input`](Protocols::input); reads and writes of the application; [`output`](Protocols::output).
pub struct Protocols {
    stack: Stack,
    socket: TcpSocketId,
    batch: Batch,
    buffers: Buffers,
}

impl Protocols {
    /// Whether another frame may be admitted before the next input.
    pub fn has_room(&self) -> bool {
        self.batch.has_room()
    }
    /// Takes a frame from the driver.
    pub fn admit(&mut self, packet: Packet) -> Result<(), String> {
        self.buffers.admit(packet, self.stack.pool(), &mut self.batch)
    }
    /// Works on the frames that were admitted, and on timers that are due.
    pub fn input(&mut self, now: Instant) {
        self.stack.receive(LINK, &mut self.batch, now, &mut Ignore);
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.stack.timeout(now, &mut Ignore);
        }
        // There is one connection: who it concerns need not be asked.
        while self.stack.ready().is_some() {}
    }
    /// Writes from the front of `bytes` what there is room for. Nothing is sent yet.
    pub fn write(&mut self, bytes: &mut Bytes, now: Instant) -> Result<(), String> {
        while !bytes.is_empty() {
            match self.stack.tcp(now, &mut Ignore).send(self.socket, bytes) {
                Ok(count) => bytes.advance(count),
                Err(StreamError::WouldBlock) => break,
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
    /// Reads into `place`; 0 when nothing is there now.
    pub fn read(&mut self, place: &mut [u8], now: Instant) -> Result<usize, String> {
        match self.stack.tcp(now, &mut Ignore).read(self.socket, place) {
            Ok(count) => Ok(count),
            Err(StreamError::WouldBlock) => Ok(0),
            Err(error) => Err(error.to_string()),
        }
    }
    /// Bytes that wait to be read.
    pub fn readable_bytes(&self) -> usize {
        self.stack.instruments().queued(self.socket).map_or(0, |queued| queued.readable_bytes)
    }
    /// Reads what is there into memory of its own, which can go to another layer. `None` when nothing is there now.
    pub fn read_owned(&mut self, now: Instant) -> Result<Option<Bytes>, String> {
        let mut bytes = Vec::with_capacity(self.readable_bytes().min(READ_BYTES));
        // One copy, into memory that need not be cleared before.
        while bytes.len() < bytes.capacity() {
            let mut sink = Ignore;
            let front = self.stack.tcp(now, &mut sink).front(self.socket).map_err(|e| e.to_string())?;
            let front = &front[..front.len().min(bytes.capacity() - bytes.len())];
            if front.is_empty() {
                break;
            }
            let count = front.len();
            bytes.extend_from_slice(front);
            self.stack.tcp(now, &mut Ignore).consume(self.socket, count).map_err(|e| e.to_string())?;
        }
        Ok((!bytes.is_empty()).then(|| bytes.into()))
    }
    /// Sends what is due, at most a pass. Each frame goes to `put`. Returns how many there were.
    pub fn output(&mut self, now: Instant, put: impl FnMut(Packet)) -> usize {
        let mut outbox = self.buffers.outbox(put);
        self.stack.transmit(LINK, now, PASS_FRAMES, &mut outbox, &mut Ignore).frames
    }
    /// Whether [`output`](Protocols::output) would find something to send.
    pub fn wants_output(&self) -> bool {
        self.stack.wants_transmit(LINK)
    }
    /// When [`input`](Protocols::input) is wanted for a timer.
    pub fn deadline(&self) -> Option<Instant> {
        self.stack.deadline()
    }
    /// The buffers of the pipe.
    pub fn buffers(&self) -> &Buffers {
        &self.buffers
    }
    /// What was sent so far.
    pub fn sent(&self) -> Sent {
        self.buffers.sent
    }
}

/// Two hosts with an open connection: the caller first.
pub fn connected(now: Instant) -> Result<[(Protocols, End); 2], String> {
    let mut hosts = hosts(now)?.map(|(stack, end, buffers)| (stack, end, buffers, Batch::new()));
    let listener = hosts[1].0.tcp(now, &mut Ignore).listen(called(), ListenOptions::default());
    let listener = listener.map_err(|e| e.to_string())?;
    let caller = hosts[0].0.tcp(now, &mut Ignore).connect(called(), ConnectOptions::default());
    let caller = caller.map_err(|e| e.to_string())?;
    for _ in 0..HANDSHAKE_PASSES {
        for (stack, end, buffers, batch) in &mut hosts {
            while let Ok(packet) = end.inward.try_recv() {
                buffers.admit(packet, stack.pool(), batch)?;
            }
            stack.receive(LINK, batch, now, &mut Ignore);
            let mut outbox = buffers.outbox(|packet| drop(end.outward.try_send(packet)));
            stack.transmit(LINK, now, PASS_FRAMES, &mut outbox, &mut Ignore);
        }
        let accepted = hosts[1].0.tcp(now, &mut Ignore).accept(listener).map_err(|e| e.to_string())?;
        if let Some(accepted) = accepted {
            let sockets = [caller, accepted.socket];
            let mut sockets = sockets.into_iter();
            return Ok(hosts.map(|(stack, end, buffers, batch)| {
                let socket = sockets.next().unwrap_or(caller);
                (Protocols { stack, socket, batch, buffers }, end)
            }));
        }
    }
    Err(format!("no connection within {HANDSHAKE_PASSES} passes"))
}
