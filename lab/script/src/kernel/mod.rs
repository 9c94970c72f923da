//! The Linux kernel: a network namespace of the script's own, a TUN device as the wire, real time.

mod figures;
mod options;
mod sockets;

use crate::language::{Script, SocketCall};
use crate::packet::Ends;
use crate::side::{Came, Figure, Side};
use inhost_base::{Duration, Instant};
use inhost_buf::{Batch, Device, Frame, Offload, Pool, Slices};
use inhost_link::{Driver, Tunnel, TunnelConfig};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sockets::Sockets;
use std::collections::VecDeque;
use std::time;

/// How late the kernel's timers and the scheduler may be.
const SLACK: Duration = Duration::from_millis(20);
/// How long the kernel is given to take a packet in before a call follows it.
const SETTLING: Duration = Duration::from_millis(2);
/// The wire's name.
const DEVICE: &str = "script0";
/// Memory for packets under way.
const POOL_BYTES: usize = 16 << 20;

/// How often it is looked whether the kernel's addresses are usable, every ten milliseconds.
const ADDRESS_CHECKS: usize = 300;
/// `IFA_F_TENTATIVE` of <linux/if_addr.h>.
const TENTATIVE: u32 = 0x40;

/// The kernel under test and the wire.
pub struct Kernel {
    tunnel: Tunnel,
    pool: Pool,
    sent: VecDeque<(Instant, Vec<u8>)>,
    began: time::Instant,
    sockets: Sockets,
}

impl Kernel {
    /// A kernel as `script` wants it. The calling thread moves into its own network namespace, so the thread should be
    /// made for the script.
    pub fn new(script: &Script) -> Result<Kernel, String> {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)
            .map_err(|error| format!("no network namespace of its own ({error}); run as root"))?;
        let mtu_bytes = options::host(script)?;
        let config = TunnelConfig {
            mtu_bytes,
            host_addresses: vec![
                "10.0.0.1/24".parse().map_err(|_| "10.0.0.1/24 is not an address")?,
                "fd00::1/64".parse().map_err(|_| "fd00::1/64 is not an address")?,
            ],
            // A script says what each segment is.
            offload: false,
            ..TunnelConfig::new(DEVICE, false)
        };
        let tunnel = Tunnel::open(config).map_err(|error| error.to_string())?;
        if script.is_ipv6 {
            wait_for_addresses()?;
        }
        options::wire(script, DEVICE)?;
        let ends = Ends::new(script.is_ipv6);
        #[expect(clippy::disallowed_methods, reason = "the kernel lives in real time")]
        let began = time::Instant::now();
        Ok(Kernel {
            tunnel,
            pool: Pool::new(POOL_BYTES),
            sent: VecDeque::new(),
            began,
            sockets: Sockets::new(ends, options::congestion(script)),
        })
    }
    /// Waits for packets for at most `time`, and takes what has come.
    fn wait(&mut self, time: Duration) -> Result<(), String> {
        let Some(descriptor) = self.tunnel.descriptor() else {
            return Err("the wire has no descriptor".into());
        };
        let mut wanted = [PollFd::new(&descriptor, PollFlags::IN)];
        let timeout =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: (time.as_nanos() % 1_000_000_000) as i64 };
        poll(&mut wanted, Some(&timeout)).map_err(|error| format!("cannot wait for the wire: {error}"))?;
        let at = self.now();
        let mut batch = Batch::new();
        self.tunnel
            .receive(&mut self.pool, &mut batch)
            .map_err(|error| format!("the wire is gone: {error}"))?;
        while let Some(packet) = batch.pop() {
            self.sent.push_back((at, packet.bytes().to_vec()));
            self.pool.give(packet);
        }
        Ok(())
    }
}

/// Waits until the kernel takes its own IPv6 addresses as usable, which happens in the background.
fn wait_for_addresses() -> Result<(), String> {
    for _ in 0..ADDRESS_CHECKS {
        let text = std::fs::read_to_string("/proc/thread-self/net/if_inet6").map_err(|e| e.to_string())?;
        // The fifth column holds the flags; one of them says that an address is not usable yet.
        let tentative = |line: &str| {
            let flags = line.split_whitespace().nth(4).and_then(|flags| u32::from_str_radix(flags, 16).ok());
            flags.is_none_or(|flags| flags & TENTATIVE != 0)
        };
        if text.lines().count() > 1 && !text.lines().any(tentative) {
            return Ok(());
        }
        std::thread::park_timeout(time::Duration::from_millis(10));
    }
    Err("the kernel's IPv6 address does not become usable".into())
}

impl Side for Kernel {
    fn now(&self) -> Instant {
        Instant::ZERO + self.began.elapsed().into()
    }
    fn slack(&self, due_in: Duration) -> Duration {
        // Its wheel of timers is coarse: an eighth of the time.
        SLACK + due_in.divided_by(8)
    }
    fn inject(&mut self, packet: &[u8]) -> Result<(), String> {
        if packet.len() > self.tunnel.mtu_bytes() {
            return Err(format!("a packet of {} bytes does not fit the wire to the kernel", packet.len()));
        }
        let frame = Frame { header: packet, payload: Slices::EMPTY, offload: Offload::None };
        self.tunnel.transmit(&frame).map_err(|_| "the kernel takes no packet".to_owned())?;
        if self.sent.is_empty() { self.wait(SETTLING) } else { Ok(()) }
    }
    fn next_packet(&mut self, until: Instant) -> Result<Option<(Instant, Vec<u8>)>, String> {
        let mut asked = false;
        loop {
            if let Some(packet) = self.sent.pop_front() {
                return Ok(Some(packet));
            }
            let left = until.since(self.now());
            if left == Duration::ZERO && asked {
                return Ok(None);
            }
            asked = true;
            self.wait(left)?;
        }
    }
    fn call(&mut self, call: &SocketCall, data: &[u8]) -> Result<Came, String> {
        self.sockets.call(call, data)
    }
    fn figure(&mut self, on: &str, field: &str) -> Result<Option<Figure>, String> {
        match self.sockets.stream(on) {
            Ok(socket) => figures::figure(socket, field),
            Err(why) => Err(why),
        }
    }
    fn is_ready(&mut self, on: &str, field: &str) -> Result<Option<bool>, String> {
        figures::is_ready(self.sockets.stream(on)?, field)
    }
}
