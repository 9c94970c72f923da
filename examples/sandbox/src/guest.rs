//! The program that moves: it echoes what its callers send, on a stack of its own.

use std::error::Error;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use inhost_base::Key;
use inhost_link::{Driver, Tunnel, TunnelConfig};
use inhost_stack::{
    AnySocketId, Batch, Duration, Endpoint, Ignore, Instant, InterfaceConfig, Ipv4Addr, LinkId,
    ListenOptions, ListenerId, Medium, SocketId, Stack, StackConfig, StreamError, TcpSocketId,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

const LINK: LinkId = LinkId(1);
const ECHO_PORT: u16 = 7;
/// Most memory of the stack's packets.
const MEMORY_BYTES: usize = 1 << 30;
/// What a caller may have sent that was not echoed.
const PENDING_BYTES: usize = 64 << 10;
/// The longest sleep.
const LONGEST: Duration = Duration::from_secs(1);

/// All of the program, as bytes.
#[derive(Serialize, Deserialize)]
struct Frozen {
    #[serde(with = "serde_bytes")]
    stack: Vec<u8>,
    /// The identifier of its listener.
    listener: u64,
    calls: Vec<FrozenCall>,
    stopped_at_ns: u64,
}

#[derive(Serialize, Deserialize)]
struct FrozenCall {
    /// The identifier of its socket.
    socket: u64,
    #[serde(with = "serde_bytes")]
    pending: Vec<u8>,
}

struct Guest {
    stack: Stack,
    device: Tunnel,
    listener: ListenerId,
    calls: Vec<Call>,
}

/// Who is echoed.
struct Call {
    socket: TcpSocketId,
    /// What was read and is not sent.
    pending: Vec<u8>,
}

/// Runs from the beginning until standard input ends; then all of it goes to standard output.
pub fn run(device: &str, address: &str) -> Result<(), Box<dyn Error>> {
    let device = Tunnel::open(TunnelConfig::new(device, false))?;
    let mut config = StackConfig::default();
    config.memory_limit_bytes = MEMORY_BYTES;
    let mut seed = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut seed)?;
    let mut stack = Stack::new(config, seed, now());
    stack.add_link(InterfaceConfig::new("wire", Medium::Ip).with_address(address.parse()?), now())?;
    let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, ECHO_PORT);
    let listener = stack.tcp(now(), &mut Ignore).listen(at, ListenOptions::default())?;
    let mut guest = Guest { stack, device, listener, calls: Vec::new() };
    while !guest.round(Some(&io::stdin()))? {}
    let stopped_at_ns = now().as_nanos();
    let frozen = Frozen {
        stack: guest.stack.freeze()?,
        listener: SocketId::from(guest.listener).0.to_bits(),
        calls: guest
            .calls
            .into_iter()
            .map(|call| FrozenCall { socket: SocketId::from(call.socket).0.to_bits(), pending: call.pending })
            .collect(),
        stopped_at_ns,
    };
    // With this the device is free for the other process.
    drop(guest.device);
    io::stdout().write_all(&postcard::to_stdvec(&frozen)?)?;
    Ok(())
}

/// Goes on from what standard input has, and says for how many nanoseconds nobody ran.
pub fn resume(device: &str) -> Result<(), Box<dyn Error>> {
    let mut state = Vec::new();
    io::stdin().read_to_end(&mut state)?;
    let frozen: Frozen = postcard::from_bytes(&state)?;
    let stack = Stack::thaw(&frozen.stack, MEMORY_BYTES)?;
    let device = Tunnel::open(TunnelConfig::new(device, false))?;
    let typed = |bits| stack.typed(SocketId(Key::from_bits(bits)));
    let listener = match typed(frozen.listener) {
        Some(AnySocketId::Listener(listener)) => listener,
        _ => return Err("the listener is not in the state".into()),
    };
    let calls = frozen.calls.into_iter().map(|FrozenCall { socket, pending }| {
        let socket = typed(socket).and_then(AnySocketId::tcp).ok_or("a connection is not in the state")?;
        Ok(Call { socket, pending })
    });
    let calls = calls.collect::<Result<Vec<_>, &str>>()?;
    let mut guest = Guest { stack, device, listener, calls };
    let paused_ns = now().as_nanos() - frozen.stopped_at_ns;
    io::stdout().write_all(&paused_ns.to_le_bytes())?;
    io::stdout().flush()?;
    loop {
        guest.round(None)?;
    }
}

/// The system's monotonic clock, which all processes share.
fn now() -> Instant {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

impl Guest {
    /// A round: frames up, timers, the program, frames down; then it waits. Whether `end` has ended.
    fn round(&mut self, end: Option<&io::Stdin>) -> Result<bool, Box<dyn Error>> {
        let (now_in, mut batch) = (now(), Batch::new());
        self.device.advance(now_in);
        self.device.receive(self.stack.pool(), &mut batch)?;
        let had_frames = !batch.is_empty();
        self.stack.receive(LINK, &mut batch, now_in, &mut Ignore);
        self.stack.timeout(now_in, &mut Ignore);
        let has_more = self.echo(now_in);
        let is_blocked = !self.device.can_transmit();
        let sent = match is_blocked {
            true => false,
            false => self.stack.transmit(LINK, now(), 256, &mut self.device, &mut Ignore).more,
        };
        let sleep = match had_frames || has_more || sent {
            true => Duration::ZERO,
            false => self.stack.deadline().map_or(LONGEST, |at| at.since(now())).min(LONGEST),
        };
        self.wait(end, sleep)
    }
    /// Takes callers, and moves what can be moved. Whether there is more to do at once.
    fn echo(&mut self, now: Instant) -> bool {
        let Guest { stack, calls, .. } = self;
        while let Ok(Some(accepted)) = stack.tcp(now, &mut Ignore).accept(self.listener) {
            calls.push(Call { socket: accepted.socket, pending: Vec::new() });
        }
        let mut moved = false;
        calls.retain_mut(|call| {
            let mut place = [0; 16 << 10];
            while call.pending.len() < PENDING_BYTES {
                match stack.tcp(now, &mut Ignore).read(call.socket, &mut place) {
                    Ok(0) if !call.pending.is_empty() => break,
                    Ok(count) if count > 0 => call.pending.extend_from_slice(&place[..count]),
                    Err(StreamError::WouldBlock) => break,
                    // All is echoed, or the connection has failed.
                    Ok(_) | Err(_) => {
                        let _ = stack.close(call.socket, now, &mut Ignore);
                        return false;
                    }
                }
                moved = true;
            }
            if !call.pending.is_empty()
                && let Ok(count) = stack.tcp(now, &mut Ignore).send(call.socket, &call.pending)
            {
                call.pending.drain(..count);
                moved |= count > 0;
            }
            true
        });
        moved
    }
    fn wait(&self, end: Option<&io::Stdin>, sleep: Duration) -> Result<bool, Box<dyn Error>> {
        let interest = if self.device.wants_write() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let descriptor = self.device.descriptor().ok_or("a device has a descriptor")?;
        let mut all = vec![PollFd::from_borrowed_fd(descriptor, interest)];
        let end = end.map(|end| end.as_fd());
        all.extend(end.map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)));
        let sleep =
            Timespec { tv_sec: sleep.as_secs() as _, tv_nsec: (sleep.as_nanos() % 1_000_000_000) as _ };
        poll(&mut all, Some(&sleep))?;
        Ok(all.get(1).is_some_and(|end| !end.revents().is_empty()))
    }
}
