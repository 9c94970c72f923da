//! Actions of what stands on a path: each looks at a packet and lets it pass, changes it, holds it or drops it.

use super::head::{Head, forged, rewritten};
use inhost_base::{Duration, Instant, Random, Sequence};
use inhost_wire::tcp::{Flags, TcpHeader, TcpOptions};

/// One action on the packets of one way. Several on a way apply in order.
#[derive(Clone, Debug)]
pub enum Action {
    /// Drops the packets that are picked.
    Lose(Pick),
    /// Drops packets above a size without an ICMP error.
    Mtu(usize),
    /// Lets later packets overtake those that are picked, which are held for a time.
    Hold(Pick, Duration),
    /// Sends the packets that are picked twice.
    Duplicate(Pick),
    /// Holds everything that comes within a time after the way's first data, until that time is over.
    Stall {
        /// From the first data on.
        after: Duration,
        /// How long.
        lasts: Duration,
    },
    /// Removes options from SYNs.
    Strip(Options),
    /// Lowers the announced MSS.
    ClampMss(u16),
    /// Lets acknowledgments without data pass at these intervals only, the newest alone.
    Thin(Duration),
    /// Changes a byte of the payload, or of the header where there is none, of the packets that are picked.
    Damage(Pick),
    /// Resets the connection in both directions after so many segments with data, as a device does that dislikes it.
    Reset(u32),
}

/// Options of TCP that a device does not know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Window scaling.
    pub window_scale: bool,
    /// Selective acknowledgments.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
}

/// Which packets.
#[derive(Clone, Debug)]
pub enum Pick {
    /// Each by itself, with this probability. SYNs are spared.
    Random(f64),
    /// In bursts that begin with this probability, and have so many packets. SYNs are spared.
    Burst(f64, u32),
    /// The first transmissions of these segments with data, the first of the way being 1.
    Data(Vec<u32>),
    /// Everything within a time after the way's first data.
    During(Duration, Duration),
    /// The first so many SYNs, with or without ACK.
    Syn(u32),
    /// The first transmission of the segment that ends a message, where all are of so many bytes, with this probability.
    Tail(u32, f64),
}

/// What comes of a packet.
#[derive(Default)]
pub struct Outcome {
    /// It is dropped, by whom.
    pub lost: Option<Why>,
    /// It arrives so much later than it would.
    pub held: Duration,
    /// It arrives again right behind.
    pub twice: bool,
    /// Its bytes were changed.
    pub damaged: bool,
    /// It takes the place of an acknowledgment that is held until the same time.
    pub thins: bool,
    /// Packets that the device made: for the same way, and for the other.
    pub made: [Option<Vec<u8>>; 2],
}

/// Why a packet did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub enum Why {
    /// An action picked it.
    Picked,
    /// The queue had no room.
    Queue,
    /// It was too large.
    Mtu,
    /// An acknowledgment that was thinned.
    Thinned,
    /// One end has vanished.
    Vanished,
}

/// What an action remembers.
#[derive(Default)]
struct Memory {
    data: u32,
    /// The number after the newest data.
    newest: Option<u32>,
    first: Option<u32>,
    syns: u32,
    left_in_burst: u32,
    began: Option<Instant>,
}

/// An action at work.
pub struct Device {
    action: Action,
    memory: Memory,
}

impl Device {
    /// One that has seen nothing.
    pub fn new(action: Action) -> Device {
        Device { action, memory: Memory::default() }
    }
    /// Decides on a packet.
    pub fn pass(&mut self, packet: &mut Vec<u8>, now: Instant, random: &mut Random, out: &mut Outcome) {
        let Some(head) = Head::of(packet) else { return };
        let is_new = self.memory.see(&head, now);
        let mut picks = |pick: &Pick| self.memory.picks(pick, &head, is_new, now, random);
        match &self.action {
            Action::Lose(pick) => {
                if picks(pick) {
                    out.lost = Some(Why::Picked);
                }
            }
            Action::Mtu(bytes) => {
                if packet.len() > *bytes {
                    out.lost = Some(Why::Mtu);
                }
            }
            Action::Hold(pick, time) => {
                if picks(pick) {
                    out.held += *time;
                }
            }
            Action::Duplicate(pick) => out.twice |= picks(pick),
            Action::Stall { after, lasts } => {
                if let Some(from) = self.memory.began.map(|began| began + *after)
                    && (from..from + *lasts).contains(&now)
                {
                    out.held += (from + *lasts).since(now);
                }
            }
            Action::Strip(which) => strip(packet, &head, *which),
            Action::ClampMss(limit) => clamp(packet, &head, *limit),
            Action::Thin(interval) => {
                let others = Flags::SYN.union(Flags::FIN).union(Flags::RST);
                if head.payload_bytes == 0 && !head.flags.intersects(others) {
                    let slot_ns = interval.as_nanos();
                    out.held += Duration::from_nanos(slot_ns - now.as_nanos() % slot_ns);
                    out.thins = true;
                }
            }
            Action::Damage(pick) => {
                if picks(pick)
                    && let Some(last) = packet.last_mut()
                {
                    *last ^= 0x55;
                    out.damaged = true;
                }
            }
            Action::Reset(count) => {
                if is_new && self.memory.data == *count {
                    out.made = reset(packet, &head);
                }
            }
        }
    }
}

impl Memory {
    /// Notes a packet; whether it has data that was not seen before.
    fn see(&mut self, head: &Head, now: Instant) -> bool {
        self.syns += u32::from(head.flags.syn());
        if head.payload_bytes == 0 {
            return false;
        }
        self.began.get_or_insert(now);
        self.first.get_or_insert(head.sequence);
        let newest = *self.newest.get_or_insert(head.sequence);
        let is_new = head.end().wrapping_sub(newest) as i32 > 0;
        if is_new {
            self.newest = Some(head.end());
            self.data += 1;
        }
        is_new
    }
    fn picks(&mut self, pick: &Pick, head: &Head, is_new: bool, now: Instant, random: &mut Random) -> bool {
        let is_syn = head.flags.syn();
        match pick {
            Pick::Random(chance) => !is_syn && random.public_chance(*chance),
            Pick::Burst(chance, length) => {
                if !is_syn && self.left_in_burst == 0 && random.public_chance(*chance) {
                    self.left_in_burst = *length;
                }
                let is_in = self.left_in_burst > 0;
                self.left_in_burst = self.left_in_burst.saturating_sub(1);
                is_in
            }
            Pick::Data(numbers) => is_new && numbers.contains(&self.data),
            Pick::During(after, lasts) => self.began.is_some_and(|began| {
                let from = began + *after;
                (from..from + *lasts).contains(&now)
            }),
            Pick::Syn(count) => is_syn && self.syns <= *count,
            Pick::Tail(bytes, chance) => {
                let end = head.end().wrapping_sub(self.first.unwrap_or(0));
                is_new && end.is_multiple_of(*bytes) && random.public_chance(*chance)
            }
        }
    }
}

fn strip(packet: &mut Vec<u8>, head: &Head, which: Options) {
    if head.flags.syn() {
        change(packet, |options| {
            if which.window_scale {
                options.window_scale = None;
            }
            options.sack_permitted &= !which.sack;
            if which.timestamps {
                options.timestamps = None;
            }
        });
    }
}

fn clamp(packet: &mut Vec<u8>, head: &Head, limit: u16) {
    if head.flags.syn() {
        change(packet, |options| options.mss = options.mss.map(|mss| mss.min(limit)));
    }
}

fn change(packet: &mut Vec<u8>, change: impl FnOnce(&mut TcpOptions)) {
    if let Some(changed) = rewritten(packet, |header| change(&mut header.options)) {
        *packet = changed;
    }
}

/// Hop limit of a device near by.
const NEAR_HOPS: u8 = 250;

/// Resets for both ends, with the numbers that each expects.
fn reset(packet: &[u8], head: &Head) -> [Option<Vec<u8>>; 2] {
    let reset = |header: &TcpHeader| TcpHeader {
        options: TcpOptions::NONE,
        window: 0,
        flags: Flags::RST.union(Flags::ACK),
        ..*header
    };
    let end = Sequence(head.end());
    let onward = forged(packet, false, NEAR_HOPS, |header| TcpHeader { sequence: end, ..reset(header) });
    let back = forged(packet, true, NEAR_HOPS, |header| TcpHeader {
        source_port: header.destination_port,
        destination_port: header.source_port,
        sequence: header.acknowledgment,
        acknowledgment: end,
        ..reset(header)
    });
    [onward, back]
}
