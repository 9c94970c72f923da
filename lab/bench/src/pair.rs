//! Two hosts on one thread, and a wire that copies each frame once: from the sender's `transmit` into a packet of the
//! receiver's pool.

use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr};
use inhost_buf::{Batch, Device, Frame, Full, Packet};
use inhost_event::Ignore;
use inhost_record::Recorder;
use inhost_stack::{
    ConnectOptions, DuplicateDetection, InterfaceConfig, ListenOptions, ListenerId, Medium, Stack,
    StackConfig, TcpSocketId,
};

/// The one link of each host.
pub const LINK: inhost_base::LinkId = inhost_base::LinkId(1);
/// Frames carried in one pass at most.
pub const FRAMES: usize = 32;
/// Time between rounds; the wire itself takes none.
pub const STEP: Duration = Duration::from_micros(500);
/// The largest frame.
pub const MTU_BYTES: u16 = 1500;

/// The pair, and its clock.
pub struct Pair {
    /// Calls.
    pub caller: Stack,
    /// Listens.
    pub called: Stack,
    /// The time.
    pub now: Instant,
    /// Frames that one pass carries.
    frames_a_pass: usize,
    there: Wire,
    back: Wire,
    /// The flight recorders of both, where they have one.
    recorders: Option<[Recorder; 2]>,
}

/// One direction of the wire: empty packets of the receiver's pool, ready to be filled.
struct Wire {
    free: Vec<Packet>,
    batch: Batch,
}

impl Device for Wire {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let mut packet = self.free.pop().ok_or(Full)?;
        let length = frame.write_to(packet.spare_mut()).unwrap_or(0);
        packet.extend(length);
        // A batch has room for more than are free.
        self.batch.push(packet).map_err(|_| Full)
    }
}

impl Wire {
    fn new() -> Self {
        Wire { free: Vec::with_capacity(FRAMES), batch: Batch::new() }
    }
    /// Gets empty packets from the receiver.
    fn fill(&mut self, to: &mut Stack) {
        while self.free.len() < FRAMES {
            match to.pool().take(usize::from(MTU_BYTES)) {
                Some(packet) => self.free.push(packet),
                None => break,
            }
        }
    }
}

/// One pass of a host's sending side. Not inlined, so that callgrind can tell it apart.
#[inline(never)]
fn transmit_side(stack: &mut Stack, wire: &mut Wire, frames: usize, now: Instant) {
    stack.transmit(LINK, now, frames, wire, &mut Ignore);
}

/// One pass of a host's receiving side.
#[inline(never)]
fn receive_side(stack: &mut Stack, wire: &mut Wire, now: Instant) {
    stack.receive(LINK, &mut wire.batch, now, &mut Ignore);
}

/// The same two with a flight recorder.
#[inline(never)]
fn recorded_transmit_side(stack: &mut Stack, wire: &mut Wire, frames: usize, now: Instant, to: &Recorder) {
    stack.transmit(LINK, now, frames, &mut to.device(LINK, now, wire), &mut to.clone());
}
#[inline(never)]
fn recorded_receive_side(stack: &mut Stack, wire: &mut Wire, now: Instant, to: &Recorder) {
    to.received(LINK, &wire.batch, now);
    stack.receive(LINK, &mut wire.batch, now, &mut to.clone());
}

/// Timers that are due, and readiness that nobody asks for.
#[inline(never)]
fn timer_side(stack: &mut Stack, now: Instant) {
    if stack.deadline().is_some_and(|deadline| deadline <= now) {
        stack.timeout(now, &mut Ignore);
    }
    while stack.ready().is_some() {}
}

/// The host 10.0.0.`last`, with one link that carries packets of IP.
pub fn host(config: StackConfig, last: u8, now: Instant) -> Result<Stack, String> {
    let mut stack = Stack::new(config, [last; 32], now);
    let address = inhost_base::Cidr::new(Ipv4Addr::new(10, 0, 0, last), 8).map_err(|e| e.to_string())?;
    let mut interface = InterfaceConfig::new("wire", Medium::Ip);
    interface.mtu_bytes = MTU_BYTES;
    interface.duplicate_detection = DuplicateDetection::Off;
    stack.add_link(interface.with_address(address), now).map_err(|e| e.to_string())?;
    Ok(stack)
}

impl Pair {
    /// Two hosts, 10.0.0.1 and 10.0.0.2, with room for `sockets` each, and at most `frames_a_pass` in a pass, which
    /// [`FRAMES`] limits.
    pub fn new(sockets: usize, frames_a_pass: usize) -> Result<Pair, String> {
        let now = Instant::from_millis(1_000);
        let mut config = StackConfig::default();
        config.socket_limit = sockets + 16;
        config.orphan_limit = sockets + 16;
        config.memory_limit_bytes = 1 << 30;
        let (caller, called) = (host(config.clone(), 1, now)?, host(config, 2, now)?);
        Ok(Pair {
            caller,
            called,
            now,
            frames_a_pass,
            there: Wire::new(),
            back: Wire::new(),
            recorders: None,
        })
    }
    /// The same with the flight recorders that hosts have.
    pub fn recorded(mut self) -> Pair {
        let mut config = inhost_record::Config::default();
        // Filled before anything is counted.
        config.memory_bytes = 64 << 10;
        self.recorders = Some([(); 2].map(|()| Recorder::new(config.clone())));
        self
    }
    /// Listens at `port` of the called host.
    pub fn listen(&mut self, port: u16) -> Result<ListenerId, String> {
        let mut options = ListenOptions::default();
        options.backlog = 4096;
        options.syn_queue = 4096;
        let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, port);
        self.called.tcp(self.now, &mut Ignore).listen(at, options).map_err(|e| e.to_string())
    }
    /// Calls `port` of the called host, and accepts there.
    pub fn connect(&mut self, listener: ListenerId, port: u16) -> Result<(TcpSocketId, TcpSocketId), String> {
        let to = Endpoint::new(Ipv4Addr::new(10, 0, 0, 2), port);
        let options = ConnectOptions::default();
        let caller =
            self.caller.tcp(self.now, &mut Ignore).connect(to, options).map_err(|e| e.to_string())?;
        for _ in 0..4 {
            self.round();
            let accepted =
                self.called.tcp(self.now, &mut Ignore).accept(listener).map_err(|e| e.to_string())?;
            if let Some(accepted) = accepted {
                return Ok((caller, accepted.socket));
            }
        }
        Err("a connection was not accepted within four rounds".into())
    }
    /// What each has to say goes to the other, once; then time passes.
    pub fn round(&mut self) {
        self.pass_there();
        self.pass_back();
        self.now += STEP;
        timer_side(&mut self.caller, self.now);
        timer_side(&mut self.called, self.now);
    }
    /// One pass from the caller to the called.
    pub fn pass_there(&mut self) {
        self.there.fill(&mut self.called);
        let (there, frames, now) = (&mut self.there, self.frames_a_pass, self.now);
        if let Some([caller, called]) = &self.recorders {
            recorded_transmit_side(&mut self.caller, there, frames, now, caller);
            recorded_receive_side(&mut self.called, there, now, called);
            return;
        }
        transmit_side(&mut self.caller, there, frames, now);
        receive_side(&mut self.called, there, now);
    }
    /// A byte there and back; then time passes.
    pub fn echo(&mut self, caller: TcpSocketId, called: TcpSocketId) -> Result<(), String> {
        let mut place = [0; 16];
        self.caller.tcp(self.now, &mut Ignore).send(caller, b"x").map_err(|e| e.to_string())?;
        self.pass_there();
        let received =
            self.called.tcp(self.now, &mut Ignore).read(called, &mut place).map_err(|e| e.to_string())?;
        self.called.tcp(self.now, &mut Ignore).send(called, &place[..received]).map_err(|e| e.to_string())?;
        self.pass_back();
        match self.caller.tcp(self.now, &mut Ignore).read(caller, &mut place) {
            Ok(1) => {}
            other => return Err(format!("an echo gave {other:?}")),
        }
        self.now += STEP;
        Ok(())
    }
    /// One pass from the called to the caller.
    pub fn pass_back(&mut self) {
        self.back.fill(&mut self.caller);
        let (back, frames, now) = (&mut self.back, self.frames_a_pass, self.now);
        if let Some([caller, called]) = &self.recorders {
            recorded_transmit_side(&mut self.called, back, frames, now, called);
            recorded_receive_side(&mut self.caller, back, now, caller);
            return;
        }
        transmit_side(&mut self.called, back, frames, now);
        receive_side(&mut self.caller, back, now);
    }
}
