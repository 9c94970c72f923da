//! Checker of invariants in every run: of all frames on the wire, and of the hosts that it can inspect.

mod flow;
mod host;
mod received;
mod segment;

use std::collections::{BTreeMap, BTreeSet};

use inhost_base::{Duration, Endpoint, Instant, IpAddr};
use inhost_socket::Host;

use crate::network::Seen;
use crate::segment::describe;
use flow::Flow;
use segment::FlowKey;
pub(crate) use segment::SegmentView;

/// Violations that are kept; the first one is what matters.
const VIOLATIONS_KEPT: usize = 16;
/// Time between two looks for who is late.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time between two looks for what may be forgotten.
const FORGET_IDLE_EVERY: Duration = Duration::from_secs(60);
/// A connection of which its host knows nothing any more is forgotten after so long without a segment: none lives
/// longer. That is more than RFC 9293's two minutes, because a queue of a thousand packets at 56 kbit/s holds one for
/// three and a half.
const SEGMENT_LIFE: Duration = Duration::from_secs(300);
/// Flows found without a search: a power of two.
const RECENT_FLOWS: usize = 1024;
/// Marks an empty slot.
const NOBODY: u32 = u32::MAX;
/// Rounds of a host between two looks into it, at least.
const ROUNDS_A_LOOK: u64 = 8;
/// ... and time: what was wrong is wrong then, too.
const LOOK_INTO_EVERY: Duration = Duration::from_millis(2);
/// ... for each connection that is to be looked at.
const LOOK_INTO_EVERY_A_FLOW: Duration = Duration::from_micros(200);

/// Until when a slow host may be late. It is not the end of time, which marks a host without memory.
const ALWAYS: Instant = Instant::from_nanos(Instant::FAR_FUTURE.as_nanos() - 1);

/// Segments of each end whose checksums are looked at from the first on, and then one in so many.
const SUMS_AT_FIRST: u64 = 1000;
const SUMS_EVERY: u64 = 16;

/// Watches TCP on the wire, by frames alone: nothing is acknowledged, by number or by SACK, that was not received; no
/// window shrinks or is overrun; numbers are used in order, and none again that was acknowledged; data in order is
/// acknowledged in time, and data that is not acknowledged is repeated; options and marks are as agreed; checksums are
/// right.
///
/// Into hosts it looks for what frames do not show: both ledgers hold all of each connection's time, a timer runs
/// wherever data waits, and memory stays within its limit.
#[derive(Debug, Default)]
pub struct Checker {
    names: BTreeMap<(usize, Endpoint, Endpoint), usize>,
    flows: Vec<Entry>,
    /// Places in `flows` that were forgotten.
    free: Vec<usize>,
    /// By what spreads their glances; empty before the first flow.
    recent: Vec<u32>,
    owners: BTreeMap<IpAddr, usize>,
    /// Hosts that pass on what others say.
    routers: Vec<usize>,
    /// Some link spoils frames, and who passes them on does not see it.
    may_be_spoilt: bool,
    hosts: Vec<OfHost>,
    violations: Vec<String>,
    segments: u64,
    payload_bytes: u64,
    look_at: Instant,
    forget_idle_at: Instant,
}

/// One end, and what is known of it. What every segment needs lies together.
#[derive(Debug)]
#[repr(C)]
struct Entry {
    /// Its name, short: from its own end to the peer's.
    key: FlowKey,
    host: usize,
    /// When the last segment of it was seen.
    seen_at: Instant,
    /// Whether the host answers for it, and does not only pass it on.
    is_own: bool,
    flow: Flow,
    name: Name,
}

/// State of a host.
#[derive(Clone, Copy, Debug, Default)]
struct OfHost {
    /// It may be late until then.
    busy_until: Instant,
    /// Bytes of memory that were out at the last look.
    out_bytes: usize,
    /// Rounds since then, and when the next look is due.
    rounds: u64,
    look_at: Instant,
}

/// Whose end, and which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Name {
    host: usize,
    own: Endpoint,
    peer: Endpoint,
    /// Whether a neighbour may have to be asked for first.
    is_ethernet: bool,
}

impl Name {
    fn of(host: usize, segment: &SegmentView<'_>, speaks: bool, frame: &Seen<'_>) -> Name {
        let (from, to) = segment.ends();
        let (own, peer) = if speaks { (from, to) } else { (to, from) };
        Name { host, own, peer, is_ethernet: frame.is_ethernet }
    }
}

impl Checker {
    /// What is wrong so far, in words.
    pub fn violations(&self) -> &[String] {
        &self.violations
    }
    /// Whether something is wrong.
    pub fn has_violations(&self) -> bool {
        !self.violations.is_empty()
    }
    /// Segments seen as they were sent.
    pub fn segments(&self) -> u64 {
        self.segments
    }
    /// Bytes of data in them.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }
    /// Addresses that belong to `host`: it answers for what they say, and not for what it passes on.
    pub(crate) fn knows(&mut self, host: usize, is_router: bool, addresses: impl Iterator<Item = IpAddr>) {
        self.owners.extend(addresses.map(|address| (address, host)));
        if is_router {
            self.routers.push(host);
        }
    }
    /// From now on frames may be spoilt.
    pub(crate) fn expects_noise(&mut self) {
        self.may_be_spoilt = true;
    }
    /// Whether `host` answers for what `address` says.
    fn is_own(&self, host: usize, address: IpAddr) -> bool {
        match self.owners.get(&address) {
            Some(&owner) => owner == host,
            None => !self.routers.contains(&host),
        }
    }
    /// `host` may be late until `until`.
    pub(crate) fn excuse(&mut self, host: usize, until: Instant) {
        let of_host = self.of_host(host);
        of_host.busy_until = of_host.busy_until.max(until);
    }
    /// `host` may always be late: its work takes time.
    pub(crate) fn is_slow(&mut self, host: usize) {
        self.of_host(host).busy_until = ALWAYS;
    }
    /// The memory of `host` was limited anew, while so much of it is out. It may be late from now on.
    pub(crate) fn becomes_scarce(&mut self, host: usize, out_bytes: usize) {
        let of_host = self.of_host(host);
        (of_host.busy_until, of_host.out_bytes) = (Instant::FAR_FUTURE, out_bytes);
    }
    fn of_host(&mut self, host: usize) -> &mut OfHost {
        if self.hosts.len() <= host {
            self.hosts.resize(host + 1, OfHost::default());
        }
        &mut self.hosts[host]
    }
    pub(crate) fn report_violation(&mut self, why: String) {
        if self.violations.len() < VIOLATIONS_KEPT {
            self.violations.push(why);
        }
    }
    pub(crate) fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        let Some(segment) = SegmentView::of(frame) else { return };
        let entry = self.entry(host, &segment, true, frame);
        if !entry.is_own {
            return;
        }
        let flow = &mut entry.flow;
        // A sender that is wrong is wrong always, or soon again; sums cost more than all the rest.
        let is_sampled = flow.says_count < SUMS_AT_FIRST || flow.says_count.is_multiple_of(SUMS_EVERY);
        flow.says_count += 1;
        let said = match !is_sampled || segment.checksums_ok() {
            true => flow.says(&segment, frame.at),
            false => Err("sends a wrong checksum"),
        };
        self.segments += 1;
        self.payload_bytes += segment.payload_bytes as u64;
        if let Err(why) = said {
            // A host without memory may have refused what brought the acknowledgment.
            let is_scarce = self.of_host(host).busy_until == Instant::FAR_FUTURE;
            if !(is_scarce && why == flow::REPEATS) {
                self.report_violation(format!("{:?} host {host} {why}: {}", frame.at, describe(frame)));
            }
        }
    }
    pub(crate) fn delivered(&mut self, host: usize, frame: &Seen<'_>) {
        let Some(segment) = SegmentView::of(frame) else { return };
        // What no checksum covers (IPv6's class, label and hop limit) may be spoilt, and the segment is whole.
        if (!frame.is_intact || self.may_be_spoilt) && !segment.checksums_ok() {
            return;
        }
        let entry = self.entry(host, &segment, false, frame);
        if entry.is_own {
            entry.flow.receives(&segment, frame.at);
        }
    }
    /// Time has come to `now`: who is late?
    pub(crate) fn passes(&mut self, now: Instant, hosts: &dyn Fn(usize) -> Host) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK_EVERY;
        self.forget_idle(now, hosts);
        let mut late = Vec::new();
        for Entry { name, flow, .. } in &mut self.flows {
            let busy_until = self.hosts.get(name.host).copied().unwrap_or_default().busy_until;
            if let Some(why) = flow.is_late(now, busy_until) {
                flow.forgive();
                late.push((*name, why));
            }
        }
        for (name, why) in late {
            // On an Ethernet its neighbour may not answer; and a connection that is no more owes nothing.
            if !name.is_ethernet && host::is_alive(&hosts(name.host), name.own, name.peer) {
                let Name { host, own, peer, .. } = name;
                self.report_violation(format!("{now:?} host {host} {why}: {own} > {peer}"));
            }
        }
    }
    /// Forgets, now and then, connections that have been over for longer than a segment lives.
    fn forget_idle(&mut self, now: Instant, hosts: &dyn Fn(usize) -> Host) {
        if now < self.forget_idle_at {
            return;
        }
        self.forget_idle_at = now + FORGET_IDLE_EVERY;
        let names = &self.names;
        let is_old = |entry: &&Entry| now.since(entry.seen_at) > SEGMENT_LIFE;
        let old: Vec<Name> =
            names.values().map(|&at| &self.flows[at]).filter(is_old).map(|e| e.name).collect();
        let mut known = BTreeMap::<usize, BTreeSet<(Endpoint, Endpoint)>>::new();
        for name in old {
            let known = known.entry(name.host).or_insert_with(|| host::connections(&hosts(name.host)));
            if !known.contains(&(name.own, name.peer)) {
                self.forget(name);
            }
        }
    }
    fn forget(&mut self, name: Name) {
        let Some(index) = self.names.remove(&(name.host, name.own, name.peer)) else { return };
        self.flows[index].flow = Flow::default();
        self.recent.iter_mut().filter(|at| **at as usize == index).for_each(|at| *at = NOBODY);
        self.free.push(index);
    }
    /// Ends of connections that are remembered.
    pub fn remembered(&self) -> usize {
        self.names.len()
    }
    /// Looks into a host now and then.
    pub(crate) fn looks_into(&mut self, number: usize, host: &Host, now: Instant) {
        let flows = self.names.len() as u64;
        let of_host = self.of_host(number);
        of_host.rounds += 1;
        if now < of_host.look_at || of_host.rounds < ROUNDS_A_LOOK.max(flows / 2) {
            return;
        }
        of_host.rounds = 0;
        of_host.look_at = now + LOOK_INTO_EVERY.max(LOOK_INTO_EVERY_A_FLOW.times(flows));
        if let Some(why) = host::wrong_in(host, &mut of_host.out_bytes) {
            self.report_violation(format!("host {number}: {why}"));
        }
    }
    /// Entry of the sender, or else the receiver, of this segment.
    fn entry(
        &mut self,
        host: usize,
        segment: &SegmentView<'_>,
        speaks: bool,
        frame: &Seen<'_>,
    ) -> &mut Entry {
        let key = if speaks { segment.key } else { segment.key.reversed() };
        let place = key.hash().wrapping_add(host) % RECENT_FLOWS;
        let recent = self.recent.get(place).and_then(|&at| self.flows.get(at as usize));
        let is_it = recent.is_some_and(|entry| {
            entry.key == key
                && entry.host == host
                && (key.is_exact || entry.name == Name::of(host, segment, speaks, frame))
        });
        if !is_it {
            let index = self.look_up(Name::of(host, segment, speaks, frame), key);
            self.recent[place] = index as u32;
        }
        let index = self.recent[place] as usize;
        let entry = &mut self.flows[index];
        entry.seen_at = frame.at;
        entry
    }
    fn look_up(&mut self, name: Name, key: FlowKey) -> usize {
        let full_name = (name.host, name.own, name.peer);
        if let Some(&index) = self.names.get(&full_name) {
            return index;
        }
        let is_own = self.is_own(name.host, name.own.address);
        let host = name.host;
        let entry = Entry { key, host, seen_at: Instant::ZERO, is_own, flow: Flow::default(), name };
        let index = self.free.pop().unwrap_or(self.flows.len());
        match self.flows.get_mut(index) {
            Some(free) => *free = entry,
            None => self.flows.push(entry),
        }
        self.names.insert(full_name, index);
        self.recent.resize(RECENT_FLOWS, NOBODY);
        index
    }
}

#[cfg(test)]
mod tests;
