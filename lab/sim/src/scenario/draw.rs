//! A scenario from a seed.

use inhost_base::{Duration, Random};
use inhost_stack::{KeepAlive, TcpConfig};
use inhost_tcp::{CongestionChoice, EcnMode, PathMtuProbing};

use super::{ConnectionPlan, Event, HostPlan, Orphan, Scenario, Shape, What};
use crate::clock::Clock;
use crate::jump::JumpPlan;
use crate::link::LinkConfig;
use crate::loss::{GilbertElliott, Loss};
use crate::queue::{CodelConfig, Discipline, FqCodelConfig, QueueConfig, QueueLimit, WhenFull};
use crate::stream::Talk;

/// A call's listener is at this port, the next call's at the next.
const FIRST_PORT: u16 = 2000;
/// The port of the first orphan's listener.
const FIRST_ORPHAN_PORT: u16 = 3000;
/// Most hosts that talk.
const MOST_HOSTS: usize = 5;
/// Packets that every path of IPv6 takes (RFC 8200 §5).
const IPV6_LEAST_BYTES: u32 = 1280;
/// Events come within this time from the beginning.
const EVENTFUL_MICROS: u32 = 8_000_000;

impl Scenario {
    /// The scenario of a seed.
    pub fn draw(seed: u64) -> Scenario {
        let draw = &mut Draw(Random::from_number(seed ^ 0x0005_ce4a_7105));
        let shape =
            draw.of([Shape::Pair, Shape::Pair, Shape::Pair, Shape::Star, Shape::Tree, Shape::Dumbbell]);
        let host_count = match shape {
            Shape::Pair => 2,
            _ => 2 + draw.below(MOST_HOSTS as u32 - 1) as usize,
        };
        let link_count = match shape {
            Shape::Pair => 1,
            Shape::Star => host_count,
            Shape::Tree | Shape::Dumbbell => host_count + 1,
        };
        let is_ethernet = draw.one_in(3);
        let mut mtu_bytes = draw.of([1500, 1500, 1500, 1280, 9000, 1500 - 8]);
        let worst = draw.of([0, 10, 30, 120]);
        let mut links: Vec<_> = (0..link_count).map(|_| [draw.link(worst), draw.link(worst)]).collect();
        // From their own source: what else a seed means is older.
        let large = &mut Draw(Random::from_number(seed ^ 0x00c0_a1e5_ced0));
        let (gso, gro) = (!large.one_in(4), !large.one_in(4));
        links.iter_mut().flatten().for_each(|direction| direction.offloads = large.one_in(2));
        links.iter_mut().flatten().for_each(|direction| direction.gathers = large.one_in(2));
        if shape == Shape::Dumbbell
            && draw.one_in(2)
            && let Some(between) = links.last_mut()
        {
            // Routers tell who sends too much at once.
            between.iter_mut().for_each(|direction| direction.mtu_bytes = Some(1300));
        }
        // Two faults in one frame might hide each other from its checksum.
        let noisy = draw.below(link_count as u32) as usize;
        for (_, quiet) in links.iter_mut().enumerate().filter(|&(link, _)| link != noisy) {
            quiet.iter_mut().for_each(|direction| direction.corrupted_per_million = 0);
        }
        let profile = draw.of([TcpConfig::rfc, TcpConfig::rfc, TcpConfig::linux]);
        // Routers say what they cannot deliver. Who forgets a handshake for that, as Linux does, resets a caller that
        // has heard its answer: no fault of the stream.
        let mut profile = profile();
        profile.policy.soft_errors_end_handshakes &= shape != Shape::Dumbbell;
        let mut hosts: Vec<_> = (0..host_count).map(|_| draw.host(profile.clone())).collect();
        let most_bytes = draw.of([20_000, 60_000, 60_000, 60_000, 400_000]);
        let call_count = draw.of([1u16, 1, 2, 4]);
        let mut calls: Vec<_> =
            (0..call_count).map(|i| draw.call(seed, i, most_bytes, host_count as u32)).collect();
        let event_count = draw.of([0, 0, 1, 3]);
        let mut events: Vec<_> =
            (0..event_count).map(|_| draw.event(&links, host_count as u32, worst)).collect();
        events.extend(draw.widths(link_count as u32, &calls, &mut hosts));
        let wide = &mut Draw(Random::from_number(seed ^ 0x0000_51de_b17e));
        if wide.one_in(4) {
            // What was written lies in more pieces than leave in a segment, but not in so many that a congestion window is a burst
            // of hundreds of small ones.
            mtu_bytes = wide.of([mtu_bytes, 16_384, 65_535]);
            for talk in calls.iter_mut().flat_map(|call| &mut call.talks) {
                talk.lend_most_bytes = wide.of([0, u32::from(mtu_bytes) / 8]);
            }
        }
        let jumps = (Draw(Random::from_number(seed ^ 0x001e_a9ed_0b17))).jumps(hosts.len());
        let orphans = (Draw(Random::from_number(seed ^ 0x0000_0fa9_5eed))).orphans(hosts.len());
        Scenario {
            seed,
            shape,
            is_ethernet,
            mtu_bytes,
            gso,
            gro,
            links,
            hosts,
            calls,
            events,
            jumps,
            orphans,
        }
    }
}

struct Draw(Random);

impl Draw {
    fn of<T: Clone, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[self.0.public_below(N as u32) as usize].clone()
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
            jitter: if self.one_in(4) { self.micros(0, 10_000) } else { Duration::ZERO },
            rate_bits_per_second: self.of(rates),
            queue: self.queue(),
            offloads: false,
            gathers: false,
            coalescing: self.of([Duration::ZERO, Duration::ZERO, Duration::ZERO, Duration::from_micros(50)]),
            mtu_bytes: None,
            loss: self.loss(worst),
            duplicated_per_million: 1000 * self.below(worst + 1),
            reordered_per_million: 1000 * self.below(4 * worst + 1),
            corrupted_per_million: 1000 * self.below(worst / 2 + 1),
        }
    }
    fn queue(&mut self) -> QueueConfig {
        let packets = self.of([2, 5, 20, 100, 1000]);
        let limit = self.of([QueueLimit::Packets(packets), QueueLimit::Bytes(packets * 1500)]);
        let when_full = self.of([WhenFull::Refuse, WhenFull::Drop]);
        let marks = self.one_in(2);
        let codel = CodelConfig { marks, ..CodelConfig::default() };
        let fq_codel = FqCodelConfig { codel, queues: 64, ..FqCodelConfig::default() };
        let in_order = Discipline::TailDrop;
        let discipline =
            self.of([in_order, in_order, in_order, Discipline::Codel(codel), Discipline::FqCodel(fq_codel)]);
        let mark_from = self.one_in(4).then_some(QueueLimit::Packets(packets / 4));
        QueueConfig { limit, when_full, discipline, mark_from }
    }
    fn loss(&mut self, worst: u32) -> Loss {
        match self.below(6) {
            0 => Loss::GilbertElliott(GilbertElliott {
                to_bad_per_million: 100 * worst,
                to_good_per_million: 1000 * (100 + self.below(400)),
                lost_in_good_per_million: 10 * self.below(worst + 1),
                lost_in_bad_per_million: 300_000 + self.below(600_000),
            }),
            1 if worst > 0 => Loss::EveryNth(u64::from(5 + self.below(100))),
            2 if worst > 0 => Loss::Scripted((0..8).map(|_| u64::from(1 + self.below(60))).collect()),
            _ => Loss::per_mille(self.below(worst + 1)),
        }
    }
    fn host(&mut self, profile: TcpConfig) -> HostPlan {
        let clock = match self.one_in(3) {
            true => Clock {
                ahead: self.micros(0, 5_000_000),
                fast_per_million: self.below(20_001) as i32 - 10_000,
            },
            false => Clock::default(),
        };
        HostPlan { tcp: self.tcp(profile), clock }
    }
    fn tcp(&mut self, profile: TcpConfig) -> TcpConfig {
        let sack = !self.one_in(4);
        let mut tcp = profile;
        tcp.send_buffer_limit_bytes = self.of([256 << 10, 256 << 10, 16 << 10, 3000]);
        tcp.receive_buffer_limit_bytes = self.of([1 << 20, 1 << 20, 128 << 10, 16 << 10]);
        tcp.nagle = !self.one_in(3);
        tcp.acknowledgment_delay = Duration::from_millis(self.of([40, 40, 0, 200]));
        // On the worst wires a quarter of an hour may pass without an acknowledgment; the test is about the
        // stream.
        tcp.user_timeout = Duration::from_secs(4 * 3600);
        tcp.orphan_timeout = Duration::from_secs(4 * 3600);
        tcp.connect_timeout = Duration::from_secs(3600);
        tcp.syn_retries = u8::MAX;
        tcp.syn_answer_retries = u8::MAX;
        // A peer that missed the reset discovers it.
        tcp.keep_alive =
            Some(KeepAlive { idle: Duration::from_secs(600), interval: Duration::from_secs(60), probes: 20 });
        tcp.timestamps = !self.one_in(4);
        tcp.window_scaling = !self.one_in(4);
        tcp.sack = sack;
        tcp.duplicate_sack = sack && !self.one_in(4);
        tcp.rack = !self.one_in(4);
        tcp.tail_loss_probe = !self.one_in(4);
        tcp.proportional_rate_reduction = !self.one_in(4);
        tcp.forward_rto = !self.one_in(4);
        tcp.undo = !self.one_in(4);
        tcp.rto_restart = !self.one_in(4);
        tcp.ecn = self.of([EcnMode::Off, EcnMode::Accept, EcnMode::Request]);
        tcp.pacing = !self.one_in(3);
        tcp.path_mtu_probing = self.of([
            PathMtuProbing::Off,
            PathMtuProbing::BlackHoles,
            PathMtuProbing::BlackHoles,
            PathMtuProbing::Always,
        ]);
        tcp.congestion = self.of([CongestionChoice::Cubic, CongestionChoice::NewReno]);
        tcp
    }
    fn call(&mut self, seed: u64, number: u16, most_bytes: u32, hosts: u32) -> ConnectionPlan {
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
            lend_most_bytes: 0,
            read_most_bytes: self.of([1000, 9000, 60_000]),
            write_pause: self.of([Duration::ZERO, Duration::ZERO, Duration::from_millis(20)]),
            read_pause: self.of([Duration::ZERO, Duration::ZERO, Duration::from_millis(50)]),
            urgent_one_in: self.of([0, 0, 0, 10]),
        });
        let caller = self.below(hosts);
        ConnectionPlan {
            caller: caller as usize,
            called: ((caller + 1 + self.below(hosts - 1)) % hosts) as usize,
            is_ipv6: self.one_in(2),
            port: FIRST_PORT + number,
            starts_after: self.micros(0, 100_000),
            talks,
            aborts_after: self.one_in(8).then(|| self.micros(0, 2_000_000)),
        }
    }
    fn event(&mut self, links: &[[LinkConfig; 2]], hosts: u32, worst: u32) -> Event {
        let (link, host) = (self.below(links.len() as u32) as usize, self.below(hosts) as usize);
        let after = self.micros(0, EVENTFUL_MICROS);
        let time = if self.one_in(3) { self.micros(1000, 20_000_000) } else { self.micros(1000, 500_000) };
        let end = self.below(2) as usize;
        let what = match self.below(6) {
            0 => What::Cut { link, direction: None, time },
            1 => What::Cut { link, direction: Some(end), time },
            2 => What::Partition { host, time },
            3 => What::Pause { host, time },
            4 => What::Memory { host, limit_bytes: self.of([64 << 10, 256 << 10, 1 << 20]), time },
            _ => {
                let LinkConfig { mtu_bytes, corrupted_per_million, offloads, gathers, .. } = links[link][end];
                let config =
                    LinkConfig { mtu_bytes, corrupted_per_million, offloads, gathers, ..self.link(worst) };
                What::Change { link, end, config }
            }
        };
        Event { after, what }
    }
    /// Links whose MTU changes, and black holes.
    fn widths(&mut self, links: u32, calls: &[ConnectionPlan], hosts: &mut [HostPlan]) -> Vec<Event> {
        let mut events = Vec::new();
        if self.one_in(6) {
            for _ in 0..self.of([1, 1, 2, 4]) {
                let link = self.below(links) as usize;
                let mtu_bytes = self.of([1280, 1300, 1420, 1500, 9000]);
                events.push(Event {
                    after: self.moment(),
                    what: What::Mtu { link, mtu_bytes, time: self.spell() },
                });
            }
        }
        if self.one_in(6) {
            let is_ipv6 = calls.iter().any(|call| call.is_ipv6);
            let time = self.one_in(2).then(|| self.spell());
            for _ in 0..self.of([1, 1, 2]) {
                let (link, end) = (self.below(links) as usize, self.below(2) as usize);
                let mtu_bytes = match self.of([IPV6_LEAST_BYTES, 1300, 1420, 1000, 600]) {
                    bytes if is_ipv6 => bytes.max(IPV6_LEAST_BYTES),
                    bytes => bytes,
                };
                events.push(Event {
                    after: self.moment(),
                    what: What::BlackHole { link, end, mtu_bytes, time },
                });
            }
            if time.is_none() {
                // Nobody else ever gets through.
                let off = hosts.iter_mut().filter(|host| host.tcp.path_mtu_probing == PathMtuProbing::Off);
                off.for_each(|host| host.tcp.path_mtu_probing = PathMtuProbing::BlackHoles);
            }
        }
        events
    }
    /// Jumps in sequence space, in every other seed: as little as a byte, and as much as all numbers.
    fn jumps(&mut self, hosts: usize) -> Vec<(usize, JumpPlan)> {
        if self.one_in(2) {
            return Vec::new();
        }
        let count = self.of([1, 1, 2, 3, 6]);
        (0..count)
            .map(|_| {
                let most_frames = self.of([8, 30, 100, 1000]);
                let [send_by, receive_by] = [(); 2].map(|()| {
                    let any = self.below(u32::MAX);
                    self.of([0, 1 << 31, 1 << 31, u32::MAX, any, any >> 8, any >> 16])
                });
                let after_frames = u64::from(self.below(most_frames));
                (self.below(hosts as u32) as usize, JumpPlan { after_frames, send_by, receive_by })
            })
            .collect()
    }
    /// Connections that are let go behind closed windows, in every fourth seed.
    fn orphans(&mut self, hosts: usize) -> Vec<Orphan> {
        if !self.one_in(4) {
            return Vec::new();
        }
        let count = self.of([1u16, 1, 3]);
        (0..count)
            .map(|number| {
                let caller = self.below(hosts as u32) as usize;
                Orphan {
                    caller,
                    called: (caller + 1 + self.below(hosts as u32 - 1) as usize) % hosts,
                    port: FIRST_ORPHAN_PORT + number,
                    starts_after: self.micros(0, 100_000),
                    // Some windows take all of the least.
                    write_bytes: self.of([1000, 100_000, 2_000_000]),
                }
            })
            .collect()
    }
    /// When something happens: often from the beginning.
    fn moment(&mut self) -> Duration {
        if self.one_in(3) { Duration::ZERO } else { self.micros(0, EVENTFUL_MICROS) }
    }
    /// How long something lasts.
    fn spell(&mut self) -> Duration {
        if self.one_in(2) { self.micros(1000, 20_000_000) } else { self.micros(1000, 500_000) }
    }
}
