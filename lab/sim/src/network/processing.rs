//! Hosts whose work takes time: one step after the other.

use std::collections::VecDeque;

use inhost_base::{Duration, Instant};
use inhost_buf::{Device, Frame, Full, Offers, Packet};
use inhost_wire::ethernet;
use inhost_wire::ipv4::Ipv4View;
use inhost_wire::offload::complete;

use super::{End, Network, Seen};
use crate::buffers::Buffers;
use crate::jump::PacketDirection;
use crate::link::Direction;
use crate::processor::{Charges, FrameWork, INTERRUPTS, LINE_WAIT, Processor, Spent, Step, Used, Work};
use crate::segment::ip_of;

/// Steps without cost that a host makes at one instant before others have a turn.
const FREE_STEPS: usize = 64;
/// Polls of tasks in a step.
const POLLS_A_STEP: usize = 1;

/// A host's processor, and what it does.
pub(super) struct Cpu {
    processor: Box<dyn Processor>,
    charges: Charges,
    used: Used,
    doing: Doing,
    /// Frames that the stack has made and the processor has not worked on.
    outbox: VecDeque<Outgoing>,
}

enum Doing {
    Nothing,
    /// A step, until it is over.
    Step {
        ends_at: Instant,
        /// Octets that had moved at the host when the end was last computed.
        octets: u64,
        departing: Option<Outgoing>,
        when_done: Vec<Box<dyn FnOnce(Instant)>>,
    },
    /// It waits until the medium of a link has sent a frame.
    Waiting {
        link: usize,
        since: Instant,
        /// Octets that had moved at the host by then.
        octets: u64,
    },
}

struct Outgoing {
    link: usize,
    end: usize,
    frame: Packet,
}

impl Cpu {
    /// What it was at is not done, and what it had in hand is lost.
    pub(super) fn forget(&mut self) {
        self.doing = Doing::Nothing;
        self.outbox.clear();
    }
}

impl Network {
    /// Gives a host a processor: from now on its work takes time. Gives the handle by which its applications charge
    /// for what they do.
    pub fn set_processor(&mut self, host: usize, processor: Box<dyn Processor>) -> Charges {
        let charges = Charges::default();
        self.hosts[host].cpu = Some(Box::new(Cpu {
            processor,
            charges: charges.clone(),
            used: Used::default(),
            doing: Doing::Nothing,
            outbox: VecDeque::new(),
        }));
        // Its acknowledgments come when it has time.
        self.watch.checker.is_slow(host);
        charges
    }
    /// How long the processor of a host was busy, by kind of work. A step counts from its beginning. Interrupts for
    /// octets count whether it had work or not.
    pub fn used(&self, host: usize) -> Used {
        let Some(cpu) = &self.hosts[host].cpu else { return Used::default() };
        let mut used = cpu.used.clone();
        let interrupts = cpu.processor.octet_interrupt().times(self.octets(host));
        if interrupts > Duration::ZERO {
            used.add(INTERRUPTS, interrupts);
        }
        used
    }
    /// Whether a host has work in progress, so that it takes nothing new.
    pub(super) fn is_working(&self, host: usize) -> bool {
        self.hosts[host].cpu.as_ref().is_some_and(|cpu| !matches!(cpu.doing, Doing::Nothing))
    }
    /// The medium of a link has sent a frame of the host.
    pub(super) fn medium_has_room(&mut self, host: usize, link: usize, at: Instant) {
        let octets = self.octets(host);
        if let Some(cpu) = &mut self.hosts[host].cpu
            && let Doing::Waiting { link: waits_for, since, octets: seen } = cpu.doing
            && waits_for == link
        {
            // Interrupts are counted by themselves.
            let interrupts = cpu.processor.octet_interrupt().times(octets - seen);
            let waited = at.since(since);
            cpu.used.add(LINE_WAIT, waited - interrupts.min(waited));
            cpu.doing = Doing::Nothing;
        }
        if !self.is_working(host) {
            self.wake(host, at);
        }
    }

    /// One round of a host with a processor.
    pub(super) fn slow_round(&mut self, number: usize) {
        self.wakes.set(number, Instant::FAR_FUTURE);
        if let Some(until) = self.hosts[number].paused_until.take_if(|until| *until > self.now) {
            self.hosts[number].paused_until = Some(until);
            return self.wakes.set(number, until);
        }
        for _ in 0..FREE_STEPS {
            if !self.has_finished(number) {
                return;
            }
            if !self.begin_step(number) {
                return self.rest(number);
            }
        }
        if !self.is_working(number) {
            self.wakes.set(number, self.now);
        }
    }
    /// Whether the step in progress is over; it is finished then. Else the host is woken when it may be.
    fn has_finished(&mut self, number: usize) -> bool {
        let (now, octets) = (self.now, self.octets(number));
        let Some(cpu) = &mut self.hosts[number].cpu else { return true };
        match &mut cpu.doing {
            Doing::Nothing => return true,
            Doing::Waiting { .. } => return false,
            Doing::Step { ends_at, octets: seen, .. } => {
                // Each octet that moved meanwhile has taken its time from the step.
                let stolen = cpu.processor.octet_interrupt().times(octets - *seen);
                *ends_at += stolen;
                *seen = octets;
                if *ends_at > now {
                    let at = *ends_at;
                    self.wakes.set(number, at);
                    return false;
                }
            }
        }
        let Doing::Step { ends_at, departing, when_done, .. } =
            std::mem::replace(&mut cpu.doing, Doing::Nothing)
        else {
            return true;
        };
        when_done.into_iter().for_each(|then| then(ends_at));
        match departing {
            Some(outgoing) => self.depart(number, outgoing),
            None => true,
        }
    }
    /// Sends a frame on which the processor has worked; whether the host goes on at once.
    fn depart(&mut self, number: usize, Outgoing { link, end, frame }: Outgoing) -> bool {
        self.links[link].directions[end].send(frame, self.now, &mut self.buffers);
        self.look_again(link, end);
        if !matches!(self.links[link].ends[1 - end], End::Medium { .. }) {
            return true;
        }
        let octets = self.octets(number);
        self.pass_to_medium(link, end);
        match &mut self.hosts[number].cpu {
            // A frame that was lost on the way to the medium is not waited for.
            Some(cpu) if cpu.processor.waits_for_line() && !self.links[link].directions[end].is_empty() => {
                cpu.doing = Doing::Waiting { link, since: self.now, octets };
                false
            }
            _ => true,
        }
    }
    /// Begins the first step that is possible; false when there is none.
    fn begin_step(&mut self, number: usize) -> bool {
        let Some(cpu) = &self.hosts[number].cpu else { return false };
        cpu.processor.order(self.frames_in_card(number)).into_iter().any(|step| match step {
            Step::Input => self.input(number),
            Step::Tasks => self.tasks(number),
            Step::Output => self.output(number),
        })
    }
    /// Frames that have come to a host's card.
    fn frames_in_card(&self, number: usize) -> usize {
        let waiting = |&(link, end): &(usize, usize)| {
            let flying = self.links[link].directions[1 - end].flying();
            flying.take_while(|flying| flying.at <= self.now).count()
        };
        self.hosts[number].ports.iter().map(waiting).sum()
    }
    fn input(&mut self, number: usize) -> bool {
        let now = self.now;
        let Some(cpu) = &self.hosts[number].cpu else { return false };
        let card_frames = cpu.processor.card_frames();
        let mut first: Option<(Instant, usize, usize)> = None;
        for &(link, end) in &self.hosts[number].ports {
            let direction = &mut self.links[link].directions[1 - end];
            direction.overflow(card_frames, now, &mut self.buffers);
            let at = direction.next_look();
            if at <= now && first.is_none_or(|(earliest, ..)| at < earliest) {
                first = Some((at, link, end));
            }
        }
        let Some((_, link, end)) = first else { return false };
        let End::Host { id, .. } = self.links[link].ends[end] else { return false };
        let Some(flying) = self.links[link].directions[1 - end].arrived(now, &mut self.buffers) else {
            return false;
        };
        let (place, buffers) = (&self.hosts[number], &mut self.buffers);
        let packet = place.host.with_stack(|stack, _| buffers.hand_over(flying.frame, stack.pool()));
        let Some(mut packet) = packet else { return true };
        let is_ethernet = self.links[link].is_ethernet;
        let seen =
            Seen { at: now, link, end, bytes: packet.bytes(), is_ethernet, is_intact: flying.is_intact };
        self.watch.delivered(number, &seen);
        let work = Work::Input(FrameWork::of(&seen));
        self.jumpers[number].translate(packet.bytes_mut(), is_ethernet, PacketDirection::In);
        let _ = self.batch.push(packet);
        place.host.receive(id, &mut self.batch, place.clock.shows(now));
        self.begin(number, work, None);
        true
    }
    fn tasks(&mut self, number: usize) -> bool {
        let place = &self.hosts[number];
        let shown = place.clock.shows(self.now);
        let is_due = place.host.deadline().is_some_and(|at| at <= shown);
        if !is_due && !place.host.has_runnable() {
            return false;
        }
        let polls = place.host.run(shown, POLLS_A_STEP);
        self.hosts[number].polled(polls, self.now);
        if polls > 0 {
            self.begin(number, Work::Tasks { polls, timers: is_due }, None);
        }
        polls > 0
    }
    fn output(&mut self, number: usize) -> bool {
        let Some(cpu) = &self.hosts[number].cpu else { return false };
        if cpu.outbox.is_empty() {
            for port in 0..self.hosts[number].ports.len() {
                let (link, end) = self.hosts[number].ports[port];
                // A datagram that waits for its neighbour makes no frame, and the question for the neighbour comes next.
                let mut tries = 0..FREE_STEPS;
                while tries.next().is_some() && self.collect(number, link, end) {}
            }
        }
        let Some(cpu) = &mut self.hosts[number].cpu else { return false };
        let Some(outgoing) = cpu.outbox.pop_front() else { return false };
        let Outgoing { link, end, ref frame } = outgoing;
        let is_ethernet = self.links[link].is_ethernet;
        let seen = Seen { at: self.now, link, end, bytes: frame.bytes(), is_ethernet, is_intact: true };
        let work = Work::Output(FrameWork::of(&seen));
        self.begin(number, work, Some(outgoing));
        true
    }
    /// Lets the stack make a frame for a link, if it has one and the link has room. Whether it made none and may make
    /// another.
    fn collect(&mut self, number: usize, link: usize, end: usize) -> bool {
        let (now, place) = (self.now, &mut self.hosts[number]);
        let End::Host { id, .. } = self.links[link].ends[end] else { return false };
        if !place.host.wants_transmit(id) {
            return false;
        }
        let shown = place.clock.shows(now);
        let is_ethernet = self.links[link].is_ethernet;
        let mut made = Made {
            direction: &mut self.links[link].directions[end],
            buffers: &mut self.buffers,
            network_offset: if is_ethernet { ethernet::LENGTH } else { 0 },
            now,
            frames: Vec::new(),
            room_at: None,
        };
        place.host.transmit(id, shown, 1, &mut made);
        let (frames, room_at) = (made.frames, made.room_at);
        let may_make_another = frames.is_empty() && room_at.is_none();
        for mut frame in frames {
            self.jumpers[number].translate(frame.bytes_mut(), is_ethernet, PacketDirection::Out);
            let seen = Seen { at: now, link, end, bytes: frame.bytes(), is_ethernet, is_intact: true };
            self.watch.sent(number, &seen);
            if let Some(cpu) = &mut self.hosts[number].cpu {
                cpu.outbox.push_back(Outgoing { link, end, frame });
            }
        }
        if let Some(at) = room_at {
            self.wake(number, at);
        }
        may_make_another
    }
    /// A step begins: it takes what the processor says, and what tasks charged.
    fn begin(&mut self, number: usize, work: Work, departing: Option<Outgoing>) {
        let (now, octets) = (self.now, self.octets(number));
        let Some(cpu) = &mut self.hosts[number].cpu else { return };
        let mut spent = Spent::default();
        cpu.processor.cost(&work, &mut spent);
        let (charged, when_done) = cpu.charges.take(&spent);
        cpu.used.add_all(&spent);
        cpu.used.add_all(&charged);
        let ends_at = now + spent.total() + charged.total();
        cpu.doing = Doing::Step { ends_at, octets, departing, when_done };
    }
    /// The host has nothing to do: when it is woken besides by frames.
    fn rest(&mut self, number: usize) {
        let place = &self.hosts[number];
        let own = place.host.deadline().map(|at| place.clock.when(at)).unwrap_or(Instant::FAR_FUTURE);
        for &(link, end) in &place.ports {
            self.arrivals.set(2 * link + 1 - end, self.links[link].directions[1 - end].next_look());
        }
        if self.watch.checks {
            self.watch.checker.looks_into(number, &place.host, self.now);
        }
        self.wakes.set(number, own.max(self.now + super::round::ROUND_TIME).min(self.wakes.of(number)));
    }
}

impl FrameWork {
    fn of(seen: &Seen<'_>) -> FrameWork {
        let (protocol, data_bytes) = match ip_of(seen) {
            Some((_, _, protocol, payload)) => (protocol, data_bytes(protocol, payload)),
            None => fragment_of(seen).unwrap_or_default(),
        };
        FrameWork { link: seen.link, bytes: seen.bytes.len(), data_bytes, protocol }
    }
}

/// Protocol and data of a fragment of IPv4.
fn fragment_of(seen: &Seen<'_>) -> Option<(u8, usize)> {
    let header_bytes = if seen.is_ethernet { ethernet::LENGTH } else { 0 };
    let view = Ipv4View::new(seen.bytes.get(header_bytes..)?).ok()?;
    view.is_fragment().then(|| (view.protocol(), view.payload().len()))
}

fn data_bytes(protocol: u8, payload: &[u8]) -> usize {
    use inhost_wire::protocol::{TCP, UDP};
    use inhost_wire::tcp::TcpView;
    match protocol {
        TCP => TcpView::new(payload).map_or(0, |view| view.payload().len()),
        UDP => payload.len().saturating_sub(inhost_wire::udp::LENGTH),
        _ => payload.len(),
    }
}

/// The device of a host with a processor: it keeps the frames that the stack makes.
struct Made<'a> {
    direction: &'a mut Direction,
    buffers: &'a mut Buffers,
    network_offset: usize,
    now: Instant,
    frames: Vec<Packet>,
    /// When a link that refused has room again.
    room_at: Option<Instant>,
}

impl Device for Made<'_> {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        if !self.frames.is_empty() {
            return Err(Full);
        }
        if let Some(at) = self.direction.refuses(frame.len(), self.now, self.buffers) {
            self.room_at = Some(at);
            return Err(Full);
        }
        let Made { buffers, frames, network_offset, .. } = self;
        complete(frame, *network_offset, |frame| {
            let mut packet = buffers.take(frame.len());
            frame.write_to(packet.bytes_mut());
            frames.push(packet);
        });
        Ok(())
    }
    fn offers(&self) -> Offers {
        Offers::NONE
    }
}
