//! Two hosts on one thread, and a wire between them: a frame is copied once, from the sender's `transmit` into a packet
//! of the receiver's pool. On a wire that is trusted long payloads are handed on where they lie, and only their headers
//! are copied.

use inhost_base::{Cidr, Endpoint, Instant, IpAddr, Ipv4Addr, LinkId};
use inhost_buf::{Batch, Checksum, Device, Frame, Full, Offers, Packet, Shareable};
use inhost_event::Ignore;
use inhost_runtime::Clock;
use inhost_stack::{
    ConnectOptions, DuplicateDetection, InterfaceConfig, ListenOptions, ListenerId, Medium, Stack,
    StackConfig, TcpSocketId,
};

/// The one link of each host.
pub const LINK: LinkId = LinkId(1);
/// Bytes that one pass carries at most: enough to be worth a pass, and little enough to stay in the cache.
const BYTES_A_PASS: usize = 48 << 10;

/// Room for the headers of a frame.
const HEADERS_BYTES: usize = 128;

/// How the wire is.
#[derive(Clone, Copy)]
pub struct WireConfig {
    /// The longest packet.
    pub mtu_bytes: u16,
    /// Whether received packets count as checked.
    pub trusted: bool,
}

impl WireConfig {
    /// Frames of one pass.
    pub fn frames_a_pass(self) -> usize {
        (BYTES_A_PASS / usize::from(self.mtu_bytes)).clamp(4, Batch::LIMIT)
    }
}

/// One direction: empty packets of the receiver's pool, ready to be filled, and those that are.
pub struct Wire {
    config: WireConfig,
    free: Vec<Packet>,
    /// The same for headers.
    free_small: Vec<Packet>,
    /// Frames on their way.
    pub batch: Batch,
    /// Frames carried so far.
    pub frames: u64,
}

impl Device for Wire {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let mut packet = self.free.pop().ok_or(Full)?;
        let length = frame.write_to(packet.spare_mut()).unwrap_or(0);
        packet.extend(length);
        if self.config.trusted {
            packet.set_checksum(Checksum::Verified);
        }
        self.frames += 1;
        // A batch has room for as many as are free.
        self.batch.push(packet).map_err(|_| Full)
    }
    fn transmit_shared(&mut self, frame: &Frame<'_>, payload: Shareable<'_>) -> Result<(), Full> {
        if !self.batch.has_room() {
            return Err(Full);
        }
        let mut head = self.free_small.pop().ok_or(Full)?;
        head.set_checksum(Checksum::Verified);
        self.frames += 1;
        let Wire { batch, .. } = self;
        // There is room for it.
        frame.share(payload, head, |packet| drop(batch.push(packet))).map_err(|_| Full)
    }
    fn offers(&self) -> Offers {
        // Nobody looks at a checksum on a wire that is trusted.
        Offers { checksum: self.config.trusted, sharing: self.config.trusted, ..Offers::NONE }
    }
}

impl Wire {
    /// An empty one.
    pub fn new(config: WireConfig) -> Wire {
        Wire { config, free: Vec::new(), free_small: Vec::new(), batch: Batch::new(), frames: 0 }
    }
    /// Gets empty packets from the receiver.
    pub fn fill(&mut self, to: &mut Stack) {
        while self.free.len() < self.config.frames_a_pass() {
            match to.pool().take(usize::from(self.config.mtu_bytes)) {
                Some(packet) => self.free.push(packet),
                None => break,
            }
        }
        while self.config.trusted
            && self.free_small.len() < self.config.frames_a_pass()
            && let Some(packet) = to.pool().take(HEADERS_BYTES)
        {
            self.free_small.push(packet);
        }
    }
}

/// Both hosts and both directions, under the real clock.
pub struct Two {
    /// Calls.
    pub caller: Stack,
    /// Listens.
    pub called: Stack,
    /// The time of this round.
    pub now: Instant,
    clock: Clock,
    frames_a_pass: usize,
    /// From the caller to the called.
    pub there: Wire,
    /// From the called to the caller.
    pub back: Wire,
}

/// A host with `addresses` from 10.`net`.0.1 on, all on one wire that reaches 10.0.0.0/8.
pub fn host(
    config: StackConfig,
    wire: WireConfig,
    net: u8,
    addresses: u8,
    now: Instant,
) -> Result<Stack, String> {
    let mut stack = Stack::new(config, [net; 32], now);
    let mut interface = InterfaceConfig::new("wire", Medium::Ip);
    interface.mtu_bytes = wire.mtu_bytes;
    interface.duplicate_detection = DuplicateDetection::Off;
    for last in 1..=addresses {
        let address = Cidr::new(address(net, last), 8).map_err(|e| e.to_string())?;
        interface = interface.with_address(address);
    }
    stack.add_link(interface, now).map_err(|e| e.to_string())?;
    Ok(stack)
}

/// An address of a host made by [`host`].
pub fn address(net: u8, last: u8) -> IpAddr {
    Ipv4Addr::new(10, net, 0, last).into()
}

impl Two {
    /// Two hosts with `addresses` each, 10.1.0.1 and 10.2.0.1 and so on.
    pub fn new(config: &StackConfig, wire: WireConfig, addresses: u8) -> Result<Two, String> {
        let clock = Clock::start();
        let now = clock.now();
        Ok(Two {
            caller: host(config.clone(), wire, 1, addresses, now)?,
            called: host(config.clone(), wire, 2, addresses, now)?,
            now,
            clock,
            frames_a_pass: wire.frames_a_pass(),
            there: Wire::new(wire),
            back: Wire::new(wire),
        })
    }
    /// Reads the clock.
    pub fn tick(&mut self) {
        self.now = self.clock.now();
    }
    /// One pass from the caller to the called.
    pub fn pass_there(&mut self) {
        self.send_there();
        self.receive_there();
    }
    /// The first half of such a pass: frames lie in the wire's batch.
    pub fn send_there(&mut self) {
        self.there.fill(&mut self.called);
        self.caller.transmit(LINK, self.now, self.frames_a_pass, &mut self.there, &mut Ignore);
    }
    /// The second.
    pub fn receive_there(&mut self) {
        self.called.receive(LINK, &mut self.there.batch, self.now, &mut Ignore);
    }
    /// One pass from the called to the caller.
    pub fn pass_back(&mut self) {
        self.back.fill(&mut self.caller);
        self.called.transmit(LINK, self.now, self.frames_a_pass, &mut self.back, &mut Ignore);
        self.caller.receive(LINK, &mut self.back.batch, self.now, &mut Ignore);
    }
    /// What is due, and readiness that nobody asks for.
    pub fn timers(&mut self) {
        for stack in [&mut self.caller, &mut self.called] {
            if stack.deadline().is_some_and(|deadline| deadline <= self.now) {
                stack.timeout(self.now, &mut Ignore);
            }
            while stack.ready().is_some() {}
        }
    }
    /// Listens at `port` of every address of the called host.
    pub fn listen(&mut self, port: u16) -> Result<ListenerId, String> {
        let mut options = ListenOptions::default();
        options.backlog = 4096;
        options.syn_queue = 4096;
        let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, port);
        self.called.tcp(self.now, &mut Ignore).listen(at, options).map_err(|e| e.to_string())
    }
    /// Calls `port` at the called host's first address, and accepts there.
    pub fn connect(&mut self, listener: ListenerId, port: u16) -> Result<(TcpSocketId, TcpSocketId), String> {
        let to = Endpoint { address: address(2, 1), port };
        let options = ConnectOptions::default();
        let caller =
            self.caller.tcp(self.now, &mut Ignore).connect(to, options).map_err(|e| e.to_string())?;
        for _ in 0..4 {
            self.pass_there();
            self.pass_back();
            self.timers();
            let accepted =
                self.called.tcp(self.now, &mut Ignore).accept(listener).map_err(|e| e.to_string())?;
            if let Some(accepted) = accepted {
                return Ok((caller, accepted.socket));
            }
        }
        Err("a connection was not accepted within four rounds".into())
    }
}
