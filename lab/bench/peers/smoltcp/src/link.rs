//! smoltcp at one end of a TUN or TAP device; the kernel is at the other end.

use crate::tun::Tun;
use crate::two::socket;
use crate::{Answer, consume};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::Socket;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr};
use std::time::Duration;

/// Bytes of each buffer of the connection; larger ones leave the cache and are slower.
const BUFFER_BYTES: usize = 512 << 10;
/// The kernel takes a moment to bring up a device that somebody has attached to; until then it sends nothing.
const COMING_UP: Duration = Duration::from_millis(100);
const PIECE_BYTES: usize = 64 << 10;

pub fn measure(link: &str, load: &str, length: Duration) -> Result<Answer, String> {
    let (ethernet, offload) = match link {
        "tun-plain" => (false, false),
        "tun-offload" => (false, true),
        "tap-plain" => (true, false),
        "tap-offload" => (true, true),
        _ => return Err(format!("{link:?} is not a link of this one")),
    };
    let mut host = Host::new(Tun::open("bench", ethernet, offload)?, ethernet);
    std::thread::sleep(COMING_UP);
    let settings = format!(
        "no congestion control, SACK, timestamps or Nagle; buffers of 512 KiB{}",
        if offload { ", segmentation and checksums left to the device" } else { "" }
    );
    let figures = match load {
        "send" => host.send(length)?,
        "receive" => host.receive(length)?,
        "echo" => host.echo(length)?,
        "consume" => host.consume(length)?,
        _ => return Err(format!("{load:?} is not a load")),
    };
    Ok(Answer { settings, figures })
}

struct Host {
    interface: Interface,
    device: Tun,
    sockets: SocketSet<'static>,
    began: std::time::Instant,
}

type Figures = Vec<(&'static str, f64)>;

impl Host {
    fn new(mut device: Tun, ethernet: bool) -> Host {
        let hardware = match ethernet {
            true => HardwareAddress::Ethernet(EthernetAddress([2, 0, 0, 0, 0, 2])),
            false => HardwareAddress::Ip,
        };
        let mut config = Config::new(hardware);
        config.random_seed = u64::from(std::process::id());
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            // There is room for eight.
            let _ = addresses.push(IpCidr::new(IpAddress::v4(10, 9, 0, 2), 24));
        });
        Host { interface, device, sockets: SocketSet::new(Vec::new()), began: std::time::Instant::now() }
    }
    fn now(&self) -> Instant {
        Instant::from_micros(self.began.elapsed().as_micros() as i64)
    }
    fn poll(&mut self) {
        let now = self.now();
        self.interface.poll(now, &mut self.device, &mut self.sockets);
    }
    /// Sleeps until there is something to do.
    fn wait(&mut self) {
        let now = self.now();
        let limit = self.interface.poll_delay(now, &self.sockets);
        if limit.is_none_or(|limit| limit.total_micros() > 0) {
            self.device.wait(limit);
        }
    }
    fn connect(&mut self, port: u16) -> Result<SocketHandle, String> {
        let handle = self.sockets.add(socket(BUFFER_BYTES));
        let local = 49_152 + (std::process::id() % 10_000) as u16;
        let context = self.interface.context();
        let socket = self.sockets.get_mut::<Socket>(handle);
        socket.connect(context, (IpAddress::v4(10, 9, 0, 1), port), local).map_err(|e| e.to_string())?;
        while self.began.elapsed().as_secs() < 5 {
            self.poll();
            if self.sockets.get::<Socket>(handle).may_send() {
                return Ok(handle);
            }
            self.wait();
        }
        Err("no connection".into())
    }
    fn send(&mut self, length: Duration) -> Result<Figures, String> {
        let handle = self.connect(9)?;
        let text = vec![0x5a; PIECE_BYTES];
        while self.began.elapsed() < length {
            let socket = self.sockets.get_mut::<Socket>(handle);
            if !socket.may_send() {
                break;
            }
            while matches!(socket.send_slice(&text), Ok(1..)) {}
            self.poll();
            if !self.sockets.get::<Socket>(handle).can_send() {
                self.wait();
            }
        }
        Ok(Vec::new())
    }
    fn receive(&mut self, length: Duration) -> Result<Figures, String> {
        let handle = self.connect(10)?;
        let mut place = vec![0; PIECE_BYTES];
        while self.began.elapsed() < length {
            self.poll();
            let socket = self.sockets.get_mut::<Socket>(handle);
            let mut count = 0;
            while let Ok(more @ 1..) = socket.recv_slice(&mut place) {
                count += more;
            }
            if !socket.may_recv() {
                break;
            }
            if count == 0 {
                self.wait();
            }
        }
        Ok(Vec::new())
    }
    fn consume(&mut self, length: Duration) -> Result<Figures, String> {
        let handle = self.sockets.add(consume::socket()?);
        let mut count = 0;
        while self.began.elapsed() < length {
            self.poll();
            if !consume::all(self.sockets.get_mut(handle), &mut count) {
                self.wait();
            }
        }
        Ok(Vec::new())
    }
    fn echo(&mut self, length: Duration) -> Result<Figures, String> {
        let handle = self.connect(7)?;
        self.sockets.get_mut::<Socket>(handle).set_ack_delay(None);
        let (mut place, mut each) = ([0; 16], Vec::with_capacity(1 << 20));
        let mut last = self.began.elapsed();
        while last < length {
            let socket = self.sockets.get_mut::<Socket>(handle);
            socket.send_slice(b"x").map_err(|e| e.to_string())?;
            self.poll();
            while !matches!(self.sockets.get_mut::<Socket>(handle).recv_slice(&mut place), Ok(1..)) {
                if self.began.elapsed() > length + Duration::from_secs(5) {
                    return Err("an echo did not come".into());
                }
                self.wait();
                self.poll();
            }
            let now = self.began.elapsed();
            each.push((now - last).as_nanos() as f64 / 1e3);
            last = now;
        }
        let mut each = each.split_off(each.len() / 5);
        each.sort_by(f64::total_cmp);
        let at = |percent: usize| each.get(each.len() * percent / 100).copied().unwrap_or(f64::NAN);
        Ok(vec![("p50", at(50)), ("p99", at(99))])
    }
}
