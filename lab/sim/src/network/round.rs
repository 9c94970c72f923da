//! What happens at one instant, and when the next one is.

use inhost_base::{Duration, Instant};
use inhost_buf::{Device, Frame, Full, Offers, Packet, prefetch_behind};
use inhost_wire::ethernet;
use inhost_wire::offload::complete;

use super::watch::Watch;
use super::{End, HostPlace, Link, Network, Ran, Seen};
use crate::buffers::Buffers;
use crate::check::SegmentView;
use crate::gather::Gather;
use crate::jump::{Jumper, PacketDirection};
use crate::link::Direction;
use crate::switch::Onward;

/// Batches taken from one link in a round.
const BATCHES_A_ROUND: usize = 4;
/// Frames sent on one link in a round.
const FRAMES_A_ROUND: usize = 256;
/// Polls of tasks in a round, for each host.
const POLLS_A_ROUND: usize = 256;
/// What a round takes when there is more to do at once.
pub(super) const ROUND_TIME: Duration = Duration::from_micros(1);
/// A host without a round for longer than this rests.
const REST: Duration = Duration::from_micros(10);
/// Frames that wait for a paused host on each of its links.
const RING_FRAMES: usize = 512;
/// Ways from switch to switch that frames go in one instant, when links take no time.
const SWITCH_HOPS: usize = 16;

impl Network {
    /// Makes rounds, and lets time pass between them to when something happens next, until `done`, but for at most
    /// `limit` of time.
    pub fn run(&mut self, limit: Duration, mut done: impl FnMut(&Network) -> bool) -> Ran {
        let end = self.now + limit;
        self.frames_a_round = usize::MAX;
        self.horizon = end;
        // The caller may have given any host work since the last round.
        (0..self.hosts.len()).for_each(|host| self.wake(host, self.now));
        loop {
            self.step();
            let next = self.next();
            let is_done = done(self);
            if self.watch.checker.has_violations() {
                return Ran::Wrong;
            }
            if self.tasks.has_failed() {
                return Ran::Failed;
            }
            match next {
                Some(next) => self.now = next.min(end),
                None if is_done => {}
                None => return Ran::Silent,
            }
            if is_done {
                return Ran::Done;
            }
            if next.is_some_and(|next| next > end) {
                return Ran::TimeOver;
            }
            if self.rounds >= self.round_limit {
                return Ran::Endless;
            }
        }
    }
    /// Lets `time` pass.
    pub fn pass(&mut self, time: Duration) -> Ran {
        let end = self.now + time;
        let ran = self.run(time, |_| false);
        if ran == Ran::Silent {
            self.now = end;
        }
        ran
    }

    /// Does all that is due now.
    fn step(&mut self) {
        self.rounds += 1;
        self.tasks.now.set(self.now);
        while let Some(change) = self.changes.first_entry()
            && change.key().0 <= self.now
        {
            change.remove()(self);
        }
        for _ in 0..SWITCH_HOPS {
            if !self.switch_frames() {
                break;
            }
        }
        let mut from = 0;
        while let Some(host) = self.wakes.due(from, self.now) {
            self.round(host);
            from = host + 1;
        }
        self.tell_losses();
        if self.watch.checks {
            let hosts = &self.hosts;
            self.watch.checker.passes(self.now, &|host| hosts[host].host.clone());
        }
    }
    /// Frames that have arrived go on through switches, and wake hosts; whether a switch had one.
    pub(super) fn switch_frames(&mut self) -> bool {
        let (mut from, mut any) = (0, false);
        while let Some(direction) = self.arrivals.due(from, self.now) {
            from = direction + 1;
            let (link, end) = (direction / 2, direction % 2);
            match self.links[link].ends[1 - end] {
                End::Host { host, .. } if self.hosts[host].is_down => self.lose_arrived(link, end),
                // It does one thing at a time.
                End::Host { host, .. } if self.is_working(host) => {
                    self.arrivals.set(direction, Instant::FAR_FUTURE);
                }
                // It takes its frames in its round.
                End::Host { host, .. } => {
                    self.wake(host, self.soonest_round(host));
                    if let Some(until) = self.hosts[host].paused_until {
                        self.arrivals.set(direction, until);
                    }
                }
                End::Switch { switch, port } => {
                    any = true;
                    self.pass_on(link, end, switch, port);
                }
                End::Medium { .. } => self.pass_to_medium(link, end),
            }
        }
        any
    }
    /// When a host may take a frame that has arrived: at once, unless it takes each in a round of its own.
    fn soonest_round(&self, host: usize) -> Instant {
        match self.frames_a_round {
            usize::MAX => self.now,
            _ => self.now.max(self.hosts[host].round_at + ROUND_TIME),
        }
    }
    fn pass_on(&mut self, link: usize, end: usize, switch: usize, port: usize) {
        while let Some(flying) = self.links[link].directions[end].arrived(self.now, &mut self.buffers) {
            match self.switches[switch].decide(flying.frame.bytes(), port, self.now) {
                Onward::Port(to) => self.send_from(switch, to, flying.frame),
                Onward::Nowhere => self.buffers.give(flying.frame),
                Onward::Everywhere => {
                    for to in (0..self.switches[switch].ports.len()).filter(|&to| to != port) {
                        let copy = self.buffers.copy(flying.frame.bytes());
                        self.send_from(switch, to, copy);
                    }
                    self.buffers.give(flying.frame);
                }
            }
        }
        self.look_again(link, end);
    }
    fn send_from(&mut self, switch: usize, port: usize, frame: Packet) {
        let (link, end) = self.switches[switch].ports[port];
        self.links[link].directions[end].send(frame, self.now, &mut self.buffers);
        self.look_again(link, end);
    }

    /// One round of a host: frames up, timers and tasks, frames down.
    pub(super) fn round(&mut self, number: usize) {
        let now = self.now;
        if self.hosts[number].cpu.is_some() {
            return self.slow_round(number);
        }
        let pause = self.hosts[number].paused_until.take();
        if pause.is_some_and(|until| until > now) {
            self.hosts[number].paused_until = pause;
            return;
        }
        let (place, is_back) = (&self.hosts[number], pause.is_some());
        #[cfg(feature = "freeze")]
        let mut moment = || {
            if let Some(freezer) = &mut self.freezer {
                freezer.moment(&place.host);
            }
        };
        #[cfg(not(feature = "freeze"))]
        let moment = || {};
        moment();
        let shown = place.clock.shows(now);
        let mut round = Round {
            now,
            shown,
            number,
            place,
            watch: &mut self.watch,
            buffers: &mut self.buffers,
            jumper: &mut self.jumpers[number],
            frames_left: self.frames_a_round,
            next: None,
        };
        round.jumper.jump_if_due(&round.place.host);
        for &(link, end) in &round.place.ports {
            if is_back {
                self.links[link].directions[1 - end].overflow(RING_FRAMES, now, round.buffers);
            }
            if self.arrivals.of(2 * link + 1 - end) <= now {
                round.receive(&mut self.links[link], link, end, &mut self.batch);
                self.arrivals.set(2 * link + 1 - end, self.links[link].directions[1 - end].next_look());
            }
        }
        round.jumper.jump_if_due(&round.place.host);
        moment();
        let polls = round.place.host.run(shown, POLLS_A_ROUND);
        moment();
        for &(link, end) in &round.place.ports {
            if round.transmit(&mut self.links[link], link, end) {
                self.arrivals.set(2 * link + end, self.links[link].directions[end].next_look());
            }
        }
        moment();
        if round.watch.checks {
            round.watch.checker.looks_into(number, &round.place.host, now);
        }
        let own = round.place.host.deadline().map(|at| round.place.clock.when(at));
        let next = own.into_iter().chain(round.next).min();
        self.wakes.set(number, next.map_or(Instant::FAR_FUTURE, |next| next.max(now + ROUND_TIME)));
        self.hosts[number].polled(polls, now);
    }
    /// When something happens next, later than now.
    pub(super) fn next(&mut self) -> Option<Instant> {
        let soon = self.now + ROUND_TIME;
        for number in 0..self.hosts.len() {
            // A host woken by another host's task does not show this in its deadline.
            if self.wakes.of(number) > soon
                && !self.is_working(number)
                && self.hosts[number].host.has_runnable()
            {
                self.hosts[number].is_restless = true;
                self.wake(number, soon);
            }
        }
        let changes = self.changes.first_key_value().map_or(Instant::FAR_FUTURE, |(&(at, _), _)| at);
        let next = self.arrivals.earliest().min(self.wakes.earliest()).min(changes);
        let next = self.run_media(next);
        (next != Instant::FAR_FUTURE).then(|| next.max(soon))
    }
    /// Gives a host a round at `at`, or when its pause is over.
    pub(super) fn wake(&mut self, host: usize, at: Instant) {
        let at = self.hosts[host].paused_until.map_or(at, |until| at.max(until));
        if self.wakes.of(host) > at {
            self.wakes.set(host, at);
        }
    }
    /// The frames of a direction have changed.
    pub(super) fn look_again(&mut self, link: usize, end: usize) {
        self.arrivals.set(2 * link + end, self.links[link].directions[end].next_look());
    }
}

impl HostPlace {
    /// Its round is over, in which so many polls were made.
    pub(super) fn polled(&mut self, polls: usize, now: Instant) {
        if now.since(std::mem::replace(&mut self.round_at, now)) > REST {
            self.observer.rested();
        }
        match std::mem::take(&mut self.is_restless) {
            true => self.observer.restless(polls),
            false => self.observer.busy(POLLS_A_ROUND),
        }
    }
}

/// One host's round, and what it works with.
struct Round<'a> {
    now: Instant,
    shown: Instant,
    number: usize,
    place: &'a HostPlace,
    watch: &'a mut Watch,
    buffers: &'a mut Buffers,
    jumper: &'a mut Jumper,
    /// Frames that it still takes from links.
    frames_left: usize,
    /// When the host has more to do, besides its own deadline.
    next: Option<Instant>,
}

impl Round<'_> {
    fn receive(&mut self, link: &mut Link, name: usize, end: usize, batch: &mut inhost_buf::Batch) {
        let End::Host { id, .. } = link.ends[end] else { return };
        let (from, host) = (&mut link.directions[1 - end], &self.place.host);
        let gathers = from.config().gathers;
        let network_offset = if link.is_ethernet { ethernet::LENGTH } else { 0 };
        let mut gather = gathers.then(Gather::default);
        // What is held still is to have room.
        let most = inhost_buf::Batch::LIMIT - usize::from(gathers);
        for _ in 0..BATCHES_A_ROUND {
            while batch.len() < most
                && self.frames_left > 0
                && let Some(flying) = from.arrived(self.now, self.buffers)
            {
                self.frames_left -= 1;
                // A host without memory loses what comes.
                let buffers = &mut *self.buffers;
                let packet = host.with_stack(|stack, _| buffers.hand_over(flying.frame, stack.pool()));
                let Some(mut packet) = packet else { continue };
                let seen = Seen {
                    at: self.now,
                    link: name,
                    end,
                    bytes: packet.bytes(),
                    is_ethernet: link.is_ethernet,
                    is_intact: flying.is_intact,
                };
                self.watch.delivered(self.number, &seen);
                let is_sound = gathers
                    && flying.is_intact
                    && SegmentView::of(&seen).is_some_and(|segment| segment.checksums_ok());
                self.jumper.translate(packet.bytes_mut(), link.is_ethernet, PacketDirection::In);
                if let Some(gather) = &mut gather {
                    host.with_stack(|stack, _| {
                        gather.add(packet, network_offset, is_sound, stack.pool(), batch)
                    });
                } else {
                    let _ = batch.push(packet);
                }
            }
            let is_full = batch.len() >= most;
            if let Some(gather) = &mut gather {
                gather.finish(batch);
            }
            host.receive(id, batch, self.shown);
            if !is_full {
                return;
            }
        }
        self.again_at(self.now);
    }
    /// Whether anything was sent.
    fn transmit(&mut self, link: &mut Link, name: usize, end: usize) -> bool {
        let End::Host { id, .. } = link.ends[end] else { return false };
        if !self.place.host.wants_transmit(id) {
            return false;
        }
        let mut sending = Sending {
            direction: &mut link.directions[end],
            watch: self.watch,
            buffers: self.buffers,
            jumper: self.jumper,
            seen: Seen {
                at: self.now,
                link: name,
                end,
                bytes: &[],
                is_ethernet: link.is_ethernet,
                is_intact: true,
            },
            host: self.number,
            room_at: None,
        };
        let sent = self.place.host.transmit(id, self.shown, FRAMES_A_ROUND, &mut sending);
        let room_at = sending.room_at;
        if let Some(at) = room_at {
            self.again_at(at);
        } else if sent.more {
            self.again_at(self.now);
        }
        sent.frames > 0
    }
    fn again_at(&mut self, at: Instant) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }
}

/// One end of a link as the device that a host sends to.
struct Sending<'a> {
    direction: &'a mut Direction,
    watch: &'a mut Watch,
    buffers: &'a mut Buffers,
    jumper: &'a mut Jumper,
    seen: Seen<'static>,
    host: usize,
    /// When a device that refused has room again.
    room_at: Option<Instant>,
}

impl Device for Sending<'_> {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        if let Some(at) = self.direction.refuses(frame.len(), self.seen.at, self.buffers) {
            self.room_at = Some(at);
            self.watch.checker.excuse(self.host, at);
            return Err(Full);
        }
        let network_offset = if self.seen.is_ethernet { ethernet::LENGTH } else { 0 };
        complete(frame, network_offset, |frame| self.send(frame));
        Ok(())
    }
    fn offers(&self) -> Offers {
        self.direction.offers()
    }
}

impl Sending<'_> {
    fn send(&mut self, frame: &Frame<'_>) {
        let mut packet = self.buffers.take(frame.len());
        // What waits to be sent was written long ago, in processor's time.
        if let Some(piece) = frame.payload.as_one() {
            prefetch_behind(piece);
        }
        frame.write_to(packet.bytes_mut());
        self.jumper.translate(packet.bytes_mut(), self.seen.is_ethernet, PacketDirection::Out);
        self.put(packet);
    }
    fn put(&mut self, packet: Packet) {
        self.watch.sent(self.host, &Seen { bytes: packet.bytes(), ..self.seen });
        self.direction.send(packet, self.seen.at, self.buffers);
    }
}
