//! A link of a running host: its driver, its state, and its part of a round.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::{fmt, io};

use inhost_base::{Duration, Instant, LinkId};
use inhost_buf::{Batch, Device, Frame, Full, Offers, Packet};
use inhost_event::{Ignore, Layer};
use inhost_ip::PREFERENCE_CONFIGURED;
use inhost_link::{Driver, FrameFormat, Handover, NotBack, Statistics};
use inhost_record::Recorder;
use inhost_socket::Host;
use inhost_stack::ConfigureError;

use crate::layers::{FrameHead, LayerWatch, MarkedDevice, within};
use crate::reactor::Reactor;

/// Batches taken from one link in a round: what more has come waits in the device, or is lost there before any work is
/// spent on it.
pub const BATCHES_A_ROUND: usize = 4;
/// Bytes received after which no further batch is taken in a round, where all data comes from one sender: it is to be
/// acknowledged. A sender on another core goes on with each acknowledgment; one for everything makes the system send all of the
/// rest at once, within our call that brings it. Of several senders one goes on while others wait.
const BYTES_AN_ANSWER: u64 = 32 << 10;
/// After so many batches that left one socket, and no second one, with something to send, all data comes from one sender.
const ALONE_AFTER_BATCHES: u32 = 16;
/// Frames sent on one link in a round, whatever has come in.
pub const FRAMES_A_ROUND: usize = 256;
/// How soon a link that died is opened again for the first time; each later try waits twice as long.
const FIRST_TRY: Duration = Duration::from_secs(1);
/// The longest wait between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Whether a link works.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// Frames pass, as far as its driver knows.
    Up,
    /// The link is down. Frames are lost, and connections wait as on a cut wire.
    Down {
        /// The error of the driver, or of the last try to reopen it.
        why: String,
        /// When it died.
        since: Instant,
        /// How often it was opened in vain since.
        tries: u32,
        /// Whether it is tried again.
        returns: bool,
    },
}

/// A link died or is up again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkChange {
    /// Which.
    pub link: LinkId,
    /// Description for people.
    pub description: String,
    /// The new state.
    pub state: LinkState,
    /// How long it was down, when it is up again.
    pub was_down: Duration,
}

impl fmt::Display for LinkChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {}, {}: ", self.link.0, self.description)?;
        match &self.state {
            LinkState::Up => write!(f, "up again after {}", self.was_down),
            LinkState::Down { why, returns: true, .. } => {
                write!(f, "down: {why}; it is opened again when it is back")
            }
            LinkState::Down { why, .. } => {
                write!(f, "down for good: {why}; start the host anew to use it again")
            }
        }
    }
}

/// The drivers of a runtime's links, to look at from tasks. Clones look at the same links.
#[derive(Clone, Default)]
pub struct Links(Rc<RefCell<Vec<Rc<Shared>>>>);

/// State of a link's driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkReport {
    /// Description of its driver.
    pub description: String,
    /// Counters of the driver.
    pub statistics: Statistics,
    /// Whether it works.
    pub state: LinkState,
    /// Frames that were to leave while it was down.
    pub lost_frames: u64,
}

impl Links {
    /// The report of one of `host`'s links; none of the loopback, which has no driver.
    pub fn report(&self, host: &Host, link: LinkId) -> Option<LinkReport> {
        let links = self.0.borrow();
        let shared = links.iter().find(|shared| shared.id == link && shared.host.is(host))?;
        let driver = shared.driver.try_borrow().ok()?;
        Some(LinkReport {
            description: driver.describe(),
            statistics: driver.statistics(),
            state: shared.state.borrow().clone(),
            lost_frames: shared.lost_frames.get(),
        })
    }
    pub(crate) fn add(&self, link: &Link) {
        self.0.borrow_mut().push(link.shared.clone());
    }
    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}

/// State shared with tasks.
struct Shared {
    host: Host,
    id: LinkId,
    driver: RefCell<Box<dyn Driver>>,
    state: RefCell<LinkState>,
    lost_frames: Cell<u64>,
}

pub(crate) struct Link {
    shared: Rc<Shared>,
    recorder: Option<Recorder>,
    /// Its number in the reactor.
    token: u32,
    /// The descriptor was readable, or the last batch was full: look again without waiting.
    look: bool,
    /// Batches in a row after which one socket and no second one had something to send.
    lone_batches: u32,
    /// The descriptor is watched for room.
    watches_room: bool,
    /// Another process has the device, or had it and may have ended.
    is_given: bool,
    /// More is to be sent than the last round allowed.
    more: bool,
    /// While it is down and may come back: when it is tried next, and how long the wait before was.
    retry: Option<(Instant, Duration)>,
    /// The change that was not reported yet.
    change: Option<LinkChange>,
}

impl Link {
    pub(crate) fn new(
        host: Host,
        id: LinkId,
        token: u32,
        driver: Box<dyn Driver>,
        recorder: Option<Recorder>,
    ) -> Link {
        if let Some(recorder) = &recorder {
            let is_ethernet = matches!(driver.frame_format(), FrameFormat::Ethernet(_));
            recorder.add_link(id, &driver.describe(), is_ethernet);
        }
        let (driver, state) = (RefCell::new(driver), RefCell::new(LinkState::Up));
        let shared = Rc::new(Shared { host, id, driver, state, lost_frames: Cell::new(0) });
        Link {
            shared,
            recorder,
            token,
            look: true,
            lone_batches: 0,
            watches_room: false,
            is_given: false,
            more: true,
            retry: None,
            change: None,
        }
    }
    /// Looks at the driver in the next round if `ready`.
    pub(crate) fn look_again(&mut self, ready: bool) {
        self.look |= ready;
    }
    pub(crate) fn is_busy(&self) -> bool {
        let driver = self.shared.driver.borrow();
        self.is_up() && (self.look || driver.has_received() || (self.more && driver.can_transmit()))
    }
    /// When the link wants the next round.
    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        match self.is_up() {
            true => self.shared.driver.borrow().deadline(now),
            false => self.retry.map(|(at, _)| at),
        }
    }
    /// Takes a change of state, once.
    pub(crate) fn take_change(&mut self) -> Option<LinkChange> {
        self.change.take()
    }
    fn is_up(&self) -> bool {
        *self.shared.state.borrow() == LinkState::Up
    }

    /// Tells the driver the time, and opens one that died when it is due; whether there may be something to receive.
    pub(crate) fn advance(&mut self, now: Instant, reactor: &Reactor) -> bool {
        if !self.is_up() {
            self.try_again(now, reactor);
        }
        let mut driver = self.shared.driver.borrow_mut();
        driver.advance(now);
        self.look || driver.has_received() || driver.descriptor().is_none()
    }
    /// Receives frames, and says how many bytes they had. `told` is told the layers.
    pub(crate) fn receive(
        &mut self,
        batch: &mut Batch,
        now: Instant,
        reactor: &Reactor,
        told: Option<&dyn LayerWatch>,
    ) -> u64 {
        if !self.is_up() {
            return 0;
        }
        let mut bytes = 0;
        self.look = false;
        for _ in 0..BATCHES_A_ROUND {
            let host = &self.shared.host;
            let mut driver = self.shared.driver.borrow_mut();
            let received =
                within(told, Layer::Link, || host.with_stack(|stack, _| driver.receive(stack.pool(), batch)));
            if let Some(watch) = told {
                tell(watch, batch, link_bytes(driver.frame_format()));
            }
            drop(driver);
            if let Some(recorder) = &self.recorder {
                within(told, Layer::Recorder, || recorder.received(self.shared.id, batch, now));
            }
            let full = batch.is_full();
            bytes += batch.iter().map(|frame| frame.len() as u64).sum::<u64>();
            host.receive(self.shared.id, batch, now);
            match host.with_stack(|stack, _| stack.senders(self.shared.id)) {
                0 => {}
                1 => self.lone_batches = self.lone_batches.saturating_add(1),
                _ => self.lone_batches = 0,
            }
            self.take_offer();
            match received {
                Ok(_) => {
                    self.look = full;
                    let is_alone = self.lone_batches >= ALONE_AFTER_BATCHES;
                    if !full || (is_alone && bytes >= BYTES_AN_ANSWER) {
                        return bytes;
                    }
                }
                Err(error) => {
                    self.died(error.to_string(), now, reactor);
                    return bytes;
                }
            }
        }
        bytes
    }
    fn died(&mut self, why: String, now: Instant, reactor: &Reactor) {
        if let Some(descriptor) = self.shared.driver.borrow().descriptor() {
            reactor.forget_level(descriptor);
        }
        self.retry = Some((now + FIRST_TRY, FIRST_TRY));
        self.turn(LinkState::Down { why, since: now, tries: 0, returns: true }, Duration::ZERO);
    }
    /// Opens the link again when it is time to.
    fn try_again(&mut self, now: Instant, reactor: &Reactor) {
        let Some((_, waited)) = self.retry.filter(|(at, _)| *at <= now) else { return };
        let LinkState::Down { since, tries, .. } = *self.shared.state.borrow() else { return };
        let reopened = self.reopen(reactor);
        let tries = tries.saturating_add(1);
        match reopened {
            Ok(()) => {
                (self.retry, self.look, self.watches_room) = (None, true, false);
                self.is_given = false;
                self.turn(LinkState::Up, now.since(since));
            }
            Err(NotBack::Yet(why)) => {
                let wait = (waited + waited).min(LONGEST_WAIT);
                self.retry = Some((now + wait, wait));
                *self.shared.state.borrow_mut() = LinkState::Down { why, since, tries, returns: true };
            }
            Err(NotBack::Ever(why)) => {
                self.retry = None;
                self.turn(LinkState::Down { why, since, tries, returns: false }, Duration::ZERO);
            }
        }
    }
    fn reopen(&self, reactor: &Reactor) -> Result<(), NotBack> {
        let mut driver = self.shared.driver.borrow_mut();
        driver.reopen()?;
        let Some(descriptor) = driver.descriptor() else { return Ok(()) };
        let watched = reactor.watch_level(descriptor, self.token);
        watched.map_err(|error| NotBack::Yet(format!("its descriptor cannot be watched: {error}")))
    }
    /// Gives the device to another process; see [`Driver::hand_over`].
    pub(crate) fn hand_over(&mut self, reactor: &Reactor) -> io::Result<Handover> {
        let mut driver = self.shared.driver.borrow_mut();
        // Watched again where that fails: the driver then has the descriptor that it had.
        if let Some(descriptor) = driver.descriptor() {
            reactor.forget_level(descriptor);
        }
        let handed = driver.hand_over();
        if let Some(descriptor) = driver.descriptor() {
            reactor.watch_level(descriptor, self.token)?;
        }
        (self.look, self.watches_room) = (true, false);
        self.is_given = handed.is_ok();
        handed
    }
    /// Takes the device back from another process, unless the link took it back when it found that one gone.
    pub(crate) fn take_back(&mut self, now: Instant, reactor: &Reactor) -> io::Result<()> {
        if !self.is_given {
            return Ok(());
        }
        if let Some(descriptor) = self.shared.driver.borrow().descriptor() {
            reactor.forget_level(descriptor);
        }
        (self.look, self.watches_room) = (true, false);
        self.reopen(reactor).map_err(|(NotBack::Yet(why) | NotBack::Ever(why))| io::Error::other(why))?;
        self.is_given = false;
        // The link may have found the other process gone before.
        let LinkState::Down { since, .. } = *self.shared.state.borrow() else { return Ok(()) };
        self.retry = None;
        self.turn(LinkState::Up, now.since(since));
        Ok(())
    }
    /// Whether it is this link of `host`.
    pub(crate) fn is(&self, host: &Host, id: LinkId) -> bool {
        self.shared.id == id && self.shared.host.is(host)
    }
    fn turn(&mut self, state: LinkState, was_down: Duration) {
        let description = self.shared.driver.borrow().describe();
        self.change = Some(LinkChange { link: self.shared.id, description, state: state.clone(), was_down });
        *self.shared.state.borrow_mut() = state;
    }

    /// The address that the other end of a serial line has given us (MIT §5.4), with the gateway that it is. One
    /// that the host cannot take, because it has too many, is as if none had come.
    fn take_offer(&mut self) {
        let Shared { host, id, driver, .. } = &*self.shared;
        let Some(offer) = driver.borrow_mut().take_offer() else { return };
        let _: Result<(), ConfigureError> = host.with_stack(|stack, now| {
            stack.with_ip(now, &mut Ignore, |ip, environment| {
                ip.add_address(*id, offer.address, environment)?;
                ip.add_gateway(*id, offer.gateway, PREFERENCE_CONFIGURED)
            })
        });
    }
    /// Sends what is due; `told` is told the layers.
    pub(crate) fn send(&mut self, now: Instant, reactor: &Reactor, told: Option<&dyn LayerWatch>) {
        let up = self.is_up();
        let Shared { host, id, driver, lost_frames, .. } = &*self.shared;
        self.more = host.wants_transmit(*id);
        let mut driver = driver.borrow_mut();
        if !up {
            if self.more {
                let mut cut = Cut { offers: driver.offers(), lost_frames };
                self.more = host.transmit(*id, now, FRAMES_A_ROUND, &mut cut).more;
            }
            return;
        }
        if self.more && driver.can_transmit() {
            let link_bytes = Some(link_bytes(driver.frame_format()));
            let device: &mut dyn Device = &mut **driver;
            let sent = match (&self.recorder, told) {
                (Some(recorder), None) => {
                    host.transmit(*id, now, FRAMES_A_ROUND, &mut recorder.device(*id, now, device))
                }
                (Some(recorder), Some(watch)) => {
                    let device = &mut MarkedDevice::new(device, watch, Layer::Link, link_bytes);
                    let device = &mut recorder.device(*id, now, device);
                    let device = &mut MarkedDevice::new(device, watch, Layer::Recorder, None);
                    host.transmit(*id, now, FRAMES_A_ROUND, device)
                }
                (None, Some(watch)) => {
                    let device = &mut MarkedDevice::new(device, watch, Layer::Link, link_bytes);
                    host.transmit(*id, now, FRAMES_A_ROUND, device)
                }
                (None, None) => host.transmit(*id, now, FRAMES_A_ROUND, device),
            };
            self.more = sent.more;
        }
        let wants_room = driver.wants_write();
        if wants_room != self.watches_room
            && let Some(descriptor) = driver.descriptor()
            && reactor.set_level(descriptor, self.token, wants_room).is_ok()
        {
            self.watches_room = wants_room;
        }
    }
}

/// Shows a watch the frames that came in.
fn tell(watch: &dyn LayerWatch, batch: &Batch, link_bytes: usize) {
    let mut packets = batch.iter();
    while let Some(packet) = packets.next() {
        // A scattered frame has its payload in the packets that follow.
        let payload_bytes: usize = packets.by_ref().take(packet.pieces()).map(Packet::len).sum();
        let length_bytes = packet.len() + payload_bytes;
        watch.frame(FrameHead { is_sent: false, head: packet.bytes(), link_bytes, length_bytes });
    }
}

/// Bytes of the link header in frames of a format.
fn link_bytes(format: FrameFormat) -> usize {
    match format {
        FrameFormat::Ethernet(_) => inhost_wire::ethernet::LENGTH,
        FrameFormat::Ip => 0,
    }
}

/// A wire that is cut: connections find it out by their timers, as on any other.
struct Cut<'a> {
    offers: Offers,
    lost_frames: &'a Cell<u64>,
}

impl Device for Cut<'_> {
    fn transmit(&mut self, _: &Frame<'_>) -> Result<(), Full> {
        self.lost_frames.set(self.lost_frames.get() + 1);
        Ok(())
    }
    fn offers(&self) -> Offers {
        self.offers
    }
}
