//! Two interfaces on one thread and a wire between them, of buffers that go round: smoltcp writes a frame straight into
//! a buffer, and reads it there.

use smoltcp::iface::{Config, Interface, PollIngressSingleResult, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Frames that wait on the wire at most, at an MTU of 1500. More makes nothing faster.
pub const QUEUE_FRAMES: usize = 64;

/// One direction: frames on their way, and buffers to be used again.
#[derive(Default)]
pub struct Lane {
    frames: VecDeque<Vec<u8>>,
    idle: Vec<Vec<u8>>,
    /// Frames carried so far.
    pub carried: u64,
}

/// One end of the wire.
pub struct End {
    out: Rc<RefCell<Lane>>,
    into: Rc<RefCell<Lane>>,
    mtu_bytes: usize,
    queue_frames: usize,
    trusted: bool,
}

pub struct Received {
    frame: Vec<u8>,
    lane: Rc<RefCell<Lane>>,
}

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        let result = f(&self.frame);
        self.lane.borrow_mut().idle.push(self.frame);
        result
    }
}

pub struct Room<'a>(&'a RefCell<Lane>);

impl TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut lane = self.0.borrow_mut();
        let mut frame = lane.idle.pop().unwrap_or_default();
        frame.resize(length, 0);
        let result = f(&mut frame);
        lane.frames.push_back(frame);
        lane.carried += 1;
        result
    }
}

impl Device for End {
    type RxToken<'a> = Received;
    type TxToken<'a> = Room<'a>;
    fn receive(&mut self, _: Instant) -> Option<(Received, Room<'_>)> {
        let frame = self.into.borrow_mut().frames.pop_front()?;
        Some((Received { frame, lane: self.into.clone() }, Room(&self.out)))
    }
    fn transmit(&mut self, _: Instant) -> Option<Room<'_>> {
        (self.out.borrow().frames.len() < self.queue_frames).then_some(Room(&self.out))
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu_bytes;
        if self.trusted {
            capabilities.checksum = ChecksumCapabilities::ignored();
        }
        capabilities
    }
}

/// A host at one end.
pub struct Host {
    pub interface: Interface,
    pub device: End,
    pub sockets: SocketSet<'static>,
}

impl Host {
    pub fn poll(&mut self, now: Instant) {
        self.interface.poll(now, &mut self.device, &mut self.sockets);
    }
    /// Takes in what has come, and sends nothing but answers of the stack itself.
    pub fn poll_in(&mut self, now: Instant) {
        while self.interface.poll_ingress_single(now, &mut self.device, &mut self.sockets)
            != PollIngressSingleResult::None
        {}
    }
    pub fn socket(&mut self, handle: SocketHandle) -> &mut Socket<'static> {
        self.sockets.get_mut(handle)
    }
}

/// Both hosts, 10.0.0.1 which calls and 10.0.0.2.
pub struct Two {
    pub caller: Host,
    pub called: Host,
    pub there: Rc<RefCell<Lane>>,
    pub back: Rc<RefCell<Lane>>,
    began: std::time::Instant,
}

impl Two {
    pub fn new(mtu_bytes: usize, trusted: bool) -> Two {
        let (there, back) = <(Rc<RefCell<Lane>>, Rc<RefCell<Lane>>)>::default();
        let queue_frames = (QUEUE_FRAMES * 1500 / mtu_bytes).clamp(4, QUEUE_FRAMES);
        let end = |out: &Rc<RefCell<Lane>>, into: &Rc<RefCell<Lane>>| End {
            out: out.clone(),
            into: into.clone(),
            mtu_bytes,
            queue_frames,
            trusted,
        };
        Two {
            caller: host(end(&there, &back), 1),
            called: host(end(&back, &there), 2),
            there,
            back,
            began: std::time::Instant::now(),
        }
    }
    pub fn now(&self) -> Instant {
        Instant::from_micros(self.began.elapsed().as_micros() as i64)
    }
    /// A connection to port 80, established. `buffer_bytes` is the size of each of its buffers.
    pub fn connect(&mut self, buffer_bytes: usize) -> Result<(SocketHandle, SocketHandle), String> {
        let called = self.called.sockets.add(socket(buffer_bytes));
        let caller = self.caller.sockets.add(socket(buffer_bytes));
        self.called.socket(called).listen(80).map_err(|e| e.to_string())?;
        let context = self.caller.interface.context();
        let socket = self.caller.sockets.get_mut::<Socket>(caller);
        socket.connect(context, (IpAddress::v4(10, 0, 0, 2), 80), 49_152).map_err(|e| e.to_string())?;
        for _ in 0..4 {
            let now = self.now();
            self.caller.poll(now);
            self.called.poll(now);
        }
        match self.caller.socket(caller).may_send() && self.called.socket(called).may_recv() {
            true => Ok((caller, called)),
            false => Err("no connection".into()),
        }
    }
}

/// A socket without Nagle's rule.
pub fn socket(buffer_bytes: usize) -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; buffer_bytes]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_nagle_enabled(false);
    socket
}

fn host(mut device: End, last: u8) -> Host {
    let mut config = Config::new(HardwareAddress::Ip);
    config.random_seed = u64::from(last);
    let mut interface = Interface::new(config, &mut device, Instant::ZERO);
    interface.update_ip_addrs(|addresses| {
        // There is room for eight.
        let _ = addresses.push(IpCidr::new(IpAddress::v4(10, 0, 0, last), 24));
    });
    Host { interface, device, sockets: SocketSet::new(Vec::new()) }
}
