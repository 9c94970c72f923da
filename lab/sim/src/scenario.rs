//! What happens under one seed: hosts, a link, its faults, and the calls between the hosts.

use inhost_base::{Duration, Endpoint, HardwareAddress, IpAddr, Ipv4Addr, Ipv6Addr, Random};
use inhost_stack::{DuplicateDetection, InterfaceConfig, KeepAlive, Medium, TcpConfig};
use inhost_tcp::CongestionChoice;

use crate::link::LinkConfig;
use crate::loss::Loss;
use crate::queue::{QueueConfig, QueueLimit, WhenFull};
use crate::stream::Talk;

/// A call's listener is at this port, the next call's at the next.
const FIRST_PORT: u16 = 2000;

/// A whole run, drawn from a seed. Its `Debug` form says all there is to it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it was drawn from.
    pub seed: u64,
    /// Ethernet, or bare IP.
    pub is_ethernet: bool,
    /// Bytes of the largest packet.
    pub mtu_bytes: u16,
    /// How the link carries what each host sends.
    pub links: [LinkConfig; 2],
    /// The knobs of TCP at each host.
    pub tcp: [TcpConfig; 2],
    /// What the hosts say to each other.
    pub calls: Vec<Call>,
}

/// One connection.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which host calls.
    pub caller: usize,
    /// By IPv6, not IPv4.
    pub is_ipv6: bool,
    /// The listener's port.
    pub port: u16,
    /// When it is made, from the beginning.
    pub starts_after: Duration,
    /// The caller's part, and that of who is called.
    pub talks: [Talk; 2],
    /// The caller aborts after so long.
    pub aborts_after: Option<Duration>,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn draw(seed: u64) -> Scenario {
        let draw = &mut Draw(Random::from_number(seed ^ 0x0005_ce4a_7105));
        let is_ethernet = draw.one_in(3);
        let mtu_bytes = draw.of([1500, 1500, 1500, 1280, 9000, 1500 - 8]);
        let worst = draw.of([0, 10, 30, 120]);
        let links = [draw.link(worst), draw.link(worst)];
        let tcp = [draw.tcp(), draw.tcp()];
        let most_bytes = draw.of([20_000, 60_000, 60_000, 60_000, 400_000]);
        let calls = (0..draw.of([1u16, 1, 2, 4])).map(|i| draw.call(seed, i, most_bytes)).collect();
        Scenario { seed, is_ethernet, mtu_bytes, links, tcp, calls }
    }
    /// The interface of one of the two hosts.
    pub fn interface(&self, host: usize) -> InterfaceConfig {
        let last = host as u8 + 1;
        let medium = match self.is_ethernet {
            true => Medium::Ethernet(HardwareAddress([2, 0, 0, 0, 0, last])),
            false => Medium::Ip,
        };
        let mut config = InterfaceConfig::new("wire", medium);
        config.mtu_bytes = self.mtu_bytes;
        config.duplicate_detection = DuplicateDetection::Off;
        config.accept_router_advertisements = false;
        for is_ipv6 in [false, true] {
            let prefix_bits = if is_ipv6 { 64 } else { 24 };
            config.addresses.extend(inhost_base::Cidr::new(address(host, is_ipv6), prefix_bits));
        }
        config
    }
}

impl Call {
    /// Where the caller calls.
    pub fn remote(&self) -> Endpoint {
        Endpoint { address: address(1 - self.caller, self.is_ipv6), port: self.port }
    }
    /// Where it is waited for.
    pub fn listens_at(&self) -> Endpoint {
        match self.is_ipv6 {
            true => Endpoint::new(Ipv6Addr::UNSPECIFIED, self.port),
            false => Endpoint::new(Ipv4Addr::UNSPECIFIED, self.port),
        }
    }
}

/// The address of a host on the link: 10.0.0.1 and .2, fd00::1 and ::2.
pub fn address(host: usize, is_ipv6: bool) -> IpAddr {
    let last = host as u8 + 1;
    match is_ipv6 {
        true => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(last)).into(),
        false => Ipv4Addr::new(10, 0, 0, last).into(),
    }
}

struct Draw(Random);

impl Draw {
    fn of<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[self.0.public_below(N as u32) as usize]
    }
    fn one_in(&mut self, count: u32) -> bool {
        self.0.public_below(count) == 0
    }
    fn below(&mut self, limit: u32) -> u32 {
        self.0.public_below(limit)
    }
    fn micros(&mut self, least: u32, most: u32) -> Duration {
        Duration::from_micros(u64::from(least + self.below(most - least + 1)))
    }
    fn link(&mut self, worst: u32) -> LinkConfig {
        let rates = [None, None, Some(56_000), Some(1_000_000), Some(20_000_000), Some(1_000_000_000)];
        LinkConfig {
            delay: self.micros(20, 40_000),
            rate_bits_per_second: self.of(rates),
            queue: QueueConfig {
                limit: QueueLimit::Packets(self.of([2, 5, 20, 100, 1000])),
                when_full: self.of([WhenFull::Refuse, WhenFull::Drop]),
                ..QueueConfig::default()
            },
            loss: Loss::per_mille(self.below(worst + 1)),
            duplicated_per_million: 1000 * self.below(worst + 1),
            reordered_per_million: 1000 * self.below(4 * worst + 1),
            corrupted_per_million: 1000 * self.below(worst / 2 + 1),
            ..LinkConfig::default()
        }
    }
    fn tcp(&mut self) -> TcpConfig {
        TcpConfig {
            send_buffer_limit_bytes: self.of([256 << 10, 256 << 10, 16 << 10, 3000]),
            receive_buffer_limit_bytes: self.of([1 << 20, 1 << 20, 128 << 10, 16 << 10]),
            nagle: !self.one_in(3),
            acknowledgment_delay: Duration::from_millis(self.of([40, 40, 0, 200])),
            // On the worst wires a quarter of an hour may pass without an acknowledgment; the test is about the
            // stream.
            user_timeout: Duration::from_secs(4 * 3600),
            connect_timeout: Duration::from_secs(3600),
            // Whoever was aborted, and did not hear of it, finds out.
            keep_alive: Some(KeepAlive {
                idle: Duration::from_secs(600),
                interval: Duration::from_secs(60),
                probes: 20,
            }),
            timestamps: !self.one_in(4),
            window_scaling: !self.one_in(4),
            congestion: self.of([CongestionChoice::Cubic, CongestionChoice::NewReno]),
            ..TcpConfig::default()
        }
    }
    fn call(&mut self, seed: u64, number: u16, most_bytes: u32) -> Call {
        let keys = [0, 1].map(|end| seed << 8 | u64::from(number) << 1 | end);
        // One direction often carries much more than the other.
        let small = self.of([1, 10, 100]);
        let bytes = [1 + most_bytes, 1 + most_bytes / small].map(|most| u64::from(self.below(most)));
        let bytes = if self.one_in(2) { bytes } else { [bytes[1], bytes[0]] };
        let talks = [0, 1].map(|end| Talk {
            send_key: keys[end],
            send_bytes: bytes[end],
            receive_key: keys[1 - end],
            receive_bytes: bytes[1 - end],
            write_most_bytes: self.of([100, 1460, 5000, 60_000]),
            read_most_bytes: self.of([1000, 9000, 60_000]),
            write_pause: self.of([Duration::ZERO, Duration::ZERO, Duration::from_millis(20)]),
            read_pause: self.of([Duration::ZERO, Duration::ZERO, Duration::from_millis(50)]),
            urgent_one_in: self.of([0, 0, 0, 10]),
        });
        Call {
            caller: usize::from(self.one_in(4)),
            is_ipv6: self.one_in(2),
            port: FIRST_PORT + number,
            starts_after: self.micros(0, 100_000),
            talks,
            aborts_after: self.one_in(8).then(|| self.micros(0, 2_000_000)),
        }
    }
}
