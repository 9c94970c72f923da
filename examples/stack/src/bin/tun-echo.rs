//! An echo server on a TUN device: one stack, one descriptor, `poll(2)`, and nothing else.

use inhost_stack::{
    AnySocketId, Batch, Device, Endpoint, Frame, Full, Ignore, Instant, InterfaceConfig, Ipv4Addr, LinkId,
    ListenOptions, Medium, Stack, StackConfig, StreamError, TcpSocketId,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;

/// The largest packet of the device.
const MTU_BYTES: usize = 1500;
/// Frames of one [`Stack::transmit`].
const BUDGET_FRAMES: usize = 64;

/// A TUN device: each read and each write is one packet.
struct Tun(File);

impl Tun {
    /// Attaches to the device `name`, and makes it where we may.
    fn open(name: &str) -> io::Result<Tun> {
        let file = File::options().read(true).write(true).open("/dev/net/tun")?;
        let mut request = libc::ifreq {
            ifr_name: [0; libc::IFNAMSIZ],
            ifr_ifru: libc::__c_anonymous_ifr_ifru {
                ifru_flags: (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short,
            },
        };
        // The last octet of the name stays zero.
        for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        // SAFETY: the descriptor is open, and the kernel reads and writes no more than the structure.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let flags = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, flags | rustix::fs::OFlags::NONBLOCK)?;
        Ok(Tun(file))
    }
}

impl Device for Tun {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let mut bytes = [0; MTU_BYTES];
        let Some(length) = frame.write_to(&mut bytes) else { return Ok(()) };
        match self.0.write(&bytes[..length]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Full),
            // What the kernel refuses, because the device is down for example, is lost like any packet.
            _ => Ok(()),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).ok_or("usage: tun-echo DEVICE")?;
    let mut tun = Tun::open(&name)?;
    #[expect(clippy::disallowed_methods, reason = "a driver is where the clock is read")]
    let start = std::time::Instant::now();
    let clock = || Instant::from_nanos(start.elapsed().as_nanos() as u64);

    let mut seed = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut seed)?;
    let mut stack = Stack::new(StackConfig::default(), seed, clock());
    let interface = InterfaceConfig::new(&name, Medium::Ip).with_address("10.0.7.2/24".parse()?);
    let link = stack.add_link(interface, clock())?;
    let here = Endpoint::new(Ipv4Addr::UNSPECIFIED, 7);
    let listener = stack.tcp(clock(), &mut Ignore).listen(here, ListenOptions::default())?;
    println!("echo on 10.0.7.2 port 7, over {name}");

    loop {
        // 1. Frames up. 2. Timers.
        let now = clock();
        receive(&mut stack, link, &mut tun, now)?;
        stack.timeout(now, &mut Ignore);
        // 3. The sockets whose readiness changed, each named once.
        while let Some((socket, _)) = stack.ready() {
            match stack.typed(socket) {
                Some(AnySocketId::Listener(_)) => {
                    while let Some(accepted) = stack.tcp(now, &mut Ignore).accept(listener)? {
                        println!("{} called", accepted.remote);
                        echo(&mut stack, accepted.socket, now);
                    }
                }
                Some(AnySocketId::Tcp(socket)) => echo(&mut stack, socket, now),
                _ => {}
            }
        }
        // 4. Frames down, until nothing is left or the device is full.
        let sent = loop {
            let sent = stack.transmit(link, now, BUDGET_FRAMES, &mut tun, &mut Ignore);
            if !sent.more || sent.device_full {
                break sent;
            }
        };
        // 5. Sleep until a packet comes, a full device has room again, or the deadline.
        let wait = stack.deadline().map(|deadline| deadline.since(clock()));
        let wait = wait.map(|wait| Timespec {
            tv_sec: wait.as_secs() as i64,
            tv_nsec: (wait.as_nanos() % 1_000_000_000) as i64,
        });
        let room = if sent.device_full { PollFlags::OUT } else { PollFlags::empty() };
        poll(&mut [PollFd::new(&tun.0, PollFlags::IN | room)], wait.as_ref())?;
    }
}

/// Hands a batch of packets from the device to the stack. The rest comes in the next round.
fn receive(stack: &mut Stack, link: LinkId, tun: &mut Tun, now: Instant) -> io::Result<()> {
    let mut batch = Batch::new();
    let mut bytes = [0; MTU_BYTES];
    while !batch.is_full() {
        let length = match tun.0.read(&mut bytes) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        };
        // A host without memory loses what comes.
        let Some(mut packet) = stack.pool().take(length) else { continue };
        packet.append(&bytes[..length]);
        let _ = batch.push(packet);
    }
    stack.receive(link, &mut batch, now, &mut Ignore);
    Ok(())
}

/// Sends back what has come, as far as there is room; closes when the peer has.
fn echo(stack: &mut Stack, socket: TcpSocketId, now: Instant) {
    let mut bytes = [0; 16 << 10];
    loop {
        let moved = match stack.tcp(now, &mut Ignore).peek(socket, &mut bytes) {
            Ok(0) => Err(StreamError::Shutdown),
            Ok(count) => stack.tcp(now, &mut Ignore).send(socket, &bytes[..count]),
            Err(error) => Err(error),
        };
        match moved {
            Ok(count) => {
                let _ = stack.tcp(now, &mut Ignore).consume(socket, count);
            }
            // `Stack::ready` names the socket again.
            Err(StreamError::WouldBlock) => return,
            Err(_) => {
                let _ = stack.close(socket, now, &mut Ignore);
                return;
            }
        }
    }
}
