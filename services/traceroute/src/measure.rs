//! Path MTU up to a hop: reported by routers (RFC 1191, RFC 8201), or searched where they are silent (RFC 4821).

use crate::report::Mtu;
use inhost_base::IpAddr;

/// Packets of one length that may be lost before it is taken not to get there.
const TRIES: u8 = 2;
/// Lengths that are tried at one hop at most.
const LENGTHS: u8 = 20;

/// Result of a hop's measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// More packets are needed.
    Busy,
    /// This length gets there.
    Known(Mtu),
    /// The hop answers nothing.
    Unknown,
}

/// The measurement of one hop after another; what was found at one is where the next begins.
#[derive(Debug)]
pub(crate) struct Measure {
    /// A length that is known to get anywhere: that of the ordinary probes.
    least_bytes: u16,
    /// The length that gets as far as the hops before, and what is known of this one's.
    before: Mtu,
    mtu: Mtu,
    /// Packets of the length that is being tried, of those lost ones.
    lost: u8,
    lengths: u8,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// A packet is to be sent.
    Send(Search),
    /// One is on its way.
    Wait(Search),
    /// It got there.
    Arrived,
    /// None did but the least, which tells nothing: the hop may answer only such.
    Silent,
}

/// What is known of the length: all up to `low` get there, and nothing from `high` on, once that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Search {
    low: u16,
    high: Option<u16>,
    trying: u16,
}

impl Measure {
    pub(crate) fn new(least_bytes: u16, from_bytes: u16) -> Measure {
        let mtu = Mtu { bytes: from_bytes.max(least_bytes), told_by: None, is_black_hole: false };
        let mut measure =
            Measure { least_bytes, before: mtu, mtu, lost: 0, lengths: 0, state: State::Arrived };
        measure.begin();
        measure
    }
    /// Begins with the next hop.
    fn begin(&mut self) {
        (self.before, self.lost, self.lengths) = (self.mtu, 0, 0);
        let search = Search { low: self.least_bytes, high: None, trying: self.mtu.bytes };
        self.state = State::Send(search);
    }
    /// The length of the packet that is to be sent now.
    pub(crate) fn poll(&mut self) -> Option<u16> {
        let State::Send(search) = self.state else { return None };
        self.state = State::Wait(search);
        Some(search.trying)
    }
    /// The packet got there.
    pub(crate) fn arrived(&mut self) {
        let State::Wait(search) = self.state else { return };
        self.mtu.bytes = search.trying;
        match search.high {
            Some(high) => self.halve(search.trying, high),
            None => self.state = State::Arrived,
        }
    }
    /// A router has no room for it.
    pub(crate) fn too_big(&mut self, router: IpAddr, mtu_bytes: Option<u16>) {
        let State::Wait(search) = self.state else { return };
        let told = mtu_bytes.filter(|&bytes| bytes < search.trying && bytes >= self.least_bytes);
        match told {
            Some(bytes) if self.another() => {
                self.mtu = Mtu { bytes, told_by: Some(router), is_black_hole: false };
                self.lost = 0;
                self.state = State::Send(Search { trying: bytes, high: None, ..search });
            }
            // RFC 1191 §5: an old router that says nothing of its MTU.
            _ => {
                self.mtu.told_by = Some(router);
                self.halve(search.low, search.trying);
            }
        }
    }
    /// No reply arrived.
    pub(crate) fn silent(&mut self) {
        let State::Wait(search) = self.state else { return };
        self.lost += 1;
        if self.lost < TRIES {
            self.state = State::Send(search);
            return;
        }
        if search.high.is_none() {
            (self.mtu.told_by, self.mtu.is_black_hole) = (None, true);
        }
        self.halve(search.low, search.trying);
    }
    /// Tries between a length that gets there and one that does not.
    fn halve(&mut self, low: u16, high: u16) {
        self.lost = 0;
        self.mtu.bytes = low;
        let close = high.saturating_sub(low) <= 1;
        self.state = match close || !self.another() {
            true if low == self.least_bytes && self.mtu.told_by.is_none() => State::Silent,
            true => State::Arrived,
            false => State::Send(Search { low, high: Some(high), trying: low + (high - low) / 2 }),
        };
    }
    fn another(&mut self) -> bool {
        self.lengths += 1;
        self.lengths < LENGTHS
    }
    /// What has come of it. A hop that answers no probe at all is not asked (`is_silent`). Once it is known, the next
    /// hop is begun with.
    pub(crate) fn step(&mut self, is_silent: bool) -> Step {
        let known = match self.state {
            State::Send(_) if is_silent => Step::Unknown,
            State::Send(_) | State::Wait(_) => return Step::Busy,
            State::Arrived => Step::Known(self.mtu),
            State::Silent => {
                self.mtu = self.before;
                Step::Unknown
            }
        };
        self.begin();
        known
    }
}
