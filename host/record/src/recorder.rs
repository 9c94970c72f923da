//! The recorder: its rings, its traps, and what they caught.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use inhost_base::{Duration, Endpoint, Instant, LinkId};
use inhost_buf::{Batch, Device, Frame, Full, Offers, Shareable};
use inhost_event::{Drop, Ended, Event, Mask, RetransmittedWhy, Sink};

use crate::ends::Ends;
use crate::frames::{Frames, HEAD_BYTES};
use crate::notes::{self, Notes, Whose};
use crate::trap::{Condition, Trap};

/// Notices that wait to be taken; further ones are lost.
const MAX_NOTICES: usize = 64;
/// The most traps.
const MAX_TRAPS: usize = 64;
/// A trap that has sprung springs again after this time at the earliest.
const REARM: Duration = Duration::from_secs(10);
/// Accounts of connections that wait to be taken; further ones are lost.
const MAX_ENDED: usize = 16_384;
/// Bytes of a frame that an offence shows.
const SHOWN_BYTES: usize = HEAD_BYTES;
/// Default of [`Config::memory_bytes`]: some 8,000 frames.
const MEMORY_BYTES: usize = 1 << 20;

/// The events that are recorded from the beginning.
fn first_mask() -> Mask {
    let mask = Mask::DROP.union(Mask::IP).union(Mask::CONNECTION).union(Mask::RECOVERY);
    // A span ends with the account of its connection.
    if cfg!(feature = "tracing") { mask.union(Mask::ENDED) } else { mask }
}

/// What a recorder is.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Memory for the heads of frames. Default: 1 MiB, of which nothing is taken before frames come.
    pub memory_bytes: usize,
    /// Nanoseconds from 1970 to the zero of the host's clock. Default: 0.
    pub epoch_ns: u64,
    /// Name of the host in comments. Default: `inhost`.
    pub host: String,
}
impl Default for Config {
    fn default() -> Config {
        Config { memory_bytes: MEMORY_BYTES, epoch_ns: 0, host: "inhost".to_owned() }
    }
}

/// A trap sprang.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sprung {
    /// Which.
    pub trap: Trap,
    /// When.
    pub at: Instant,
    /// Source and destination of the frame, or local and remote end; none where the frame does not tell.
    pub ends: Option<(Endpoint, Endpoint)>,
}

/// A received frame that breaks a protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offence {
    /// When it came.
    pub at: Instant,
    /// Where it came in.
    pub link: LinkId,
    /// What is wrong.
    pub why: Drop,
    /// Its first bytes.
    pub head: Vec<u8>,
    /// From whom to whom it is, where it shows.
    pub ends: Option<(Endpoint, Endpoint)>,
}

/// The head of a frame that is held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Its number, from 0.
    pub number: u64,
    /// When: nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// Where.
    pub link: LinkId,
    /// Whether it begins with an Ethernet header, rather than with that of IP.
    pub is_ethernet: bool,
    /// Whether it left, rather than came.
    pub is_sent: bool,
    /// Bytes of the whole frame.
    pub frame_bytes: u32,
    /// Its first bytes.
    pub head: Vec<u8>,
}

/// Something that somebody should see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// A trap sprang.
    Sprung(Sprung),
    /// A frame breaks a protocol.
    Offence(Offence),
}

/// Accounts of connections, each with when it ended.
type Accounts = VecDeque<(Instant, Box<Ended>)>;

/// The recorder of one host. Clones are the same one; it stays on its thread.
#[derive(Clone, Debug)]
pub struct Recorder {
    shared: Rc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: Config,
    frames: RefCell<Frames>,
    /// The number of the next frame, as of the end of the last batch or pass.
    next_frame: Cell<u64>,
    notes: RefCell<Notes>,
    links: RefCell<Vec<Link>>,
    traps: RefCell<Vec<Armed>>,
    /// Whether a trap has to see each frame.
    looks: Cell<bool>,
    notices: RefCell<VecDeque<Notice>>,
    lost_notices: Cell<u64>,
    waiting: RefCell<Option<Waker>>,
    /// The accounts of connections that ended, while somebody takes them.
    ended: RefCell<Option<Accounts>>,
    lost_ended: Cell<u64>,
    waiting_ended: RefCell<Option<Waker>>,
    retransmissions: Cell<u64>,
    mask: Cell<Mask>,
    /// From whom to whom the last frame was that left, while a trap sees each frame.
    last_sent: Cell<Option<(Endpoint, Endpoint)>>,
    /// The frame that the host looks at on its slow path.
    current: RefCell<Vec<u8>>,
    #[cfg(feature = "tracing")]
    spans: RefCell<crate::spans::Spans>,
}

#[derive(Debug)]
struct Link {
    id: LinkId,
    name: String,
    is_ethernet: bool,
}

#[derive(Debug)]
struct Armed {
    trap: Trap,
    sprung_at: Option<Instant>,
    times: u64,
}

impl Recorder {
    /// One that has seen nothing.
    pub fn new(config: Config) -> Recorder {
        let frames = RefCell::new(Frames::new(config.memory_bytes));
        Recorder {
            shared: Rc::new(Shared {
                config,
                frames,
                next_frame: Cell::new(0),
                notes: RefCell::default(),
                links: RefCell::default(),
                traps: RefCell::default(),
                looks: Cell::new(false),
                last_sent: Cell::new(None),
                notices: RefCell::default(),
                lost_notices: Cell::new(0),
                waiting: RefCell::default(),
                ended: RefCell::default(),
                lost_ended: Cell::new(0),
                waiting_ended: RefCell::default(),
                retransmissions: Cell::new(0),
                mask: Cell::new(first_mask()),
                current: RefCell::default(),
                #[cfg(feature = "tracing")]
                spans: RefCell::default(),
            }),
        }
    }
    /// Names a link; those that are not named are not recorded in files.
    pub fn add_link(&self, id: LinkId, name: &str, is_ethernet: bool) {
        self.shared.links.borrow_mut().push(Link { id, name: name.to_owned(), is_ethernet });
    }
    /// The number that the next frame gets.
    pub fn next_frame(&self) -> u64 {
        self.shared.next_frame.get()
    }

    /// The number of the oldest frame that is held.
    pub fn oldest_frame(&self) -> u64 {
        self.shared.frames.borrow().oldest()
    }

    /// The heads of frames from number `from` on, at most `most`; those that are no longer held are left out.
    pub fn heads(&self, from: u64, most: usize) -> Vec<Seen> {
        let frames = self.shared.frames.borrow();
        let first = frames.oldest().max(from);
        let seen = |number: u64| {
            let head = frames.find(number)?;
            let is_ethernet = self.is_ethernet(head.link());
            Some(Seen {
                number,
                at_unix_ns: self.unix_ns(head.at()),
                link: head.link(),
                is_ethernet,
                is_sent: head.is_sent(),
                frame_bytes: head.frame_bytes(is_ethernet),
                head: head.bytes().to_vec(),
            })
        };
        (first..frames.next()).take(most).filter_map(seen).collect()
    }
    /// The name of a link, as [`Recorder::add_link`] was told.
    pub fn link_name(&self, link: LinkId) -> Option<String> {
        let links = self.shared.links.borrow();
        links.iter().find(|known| known.id == link).map(|known| known.name.clone())
    }
    pub(crate) fn config(&self) -> &Config {
        &self.shared.config
    }
    pub(crate) fn frames(&self) -> Ref<'_, Frames> {
        self.shared.frames.borrow()
    }
    pub(crate) fn notes(&self) -> Ref<'_, Notes> {
        self.shared.notes.borrow()
    }
    /// Segments that the host has sent again.
    pub fn retransmissions(&self) -> u64 {
        self.shared.retransmissions.get()
    }

    /// Records frames that came in by `link`.
    #[inline]
    pub fn received(&self, link: LinkId, batch: &Batch, at: Instant) {
        if batch.is_empty() {
            return;
        }
        let frames = &mut *self.shared.frames.borrow_mut();
        // Packets with the payload of a scattered frame, whose head came before.
        let mut pieces = 0;
        for packet in batch.iter() {
            if pieces > 0 {
                pieces -= 1;
                continue;
            }
            pieces = packet.pieces();
            if !frames.quick(at, link, false, packet.bytes()) {
                self.add(frames, at, link, false, packet.bytes());
            }
        }
        self.shared.next_frame.set(frames.next());
    }
    /// Adds a frame that takes more than a copy.
    #[cold]
    fn add(&self, frames: &mut Frames, at: Instant, link: LinkId, is_sent: bool, head: &[u8]) {
        frames.add(at, link, is_sent, head);
        if self.shared.looks.get() {
            self.look(link, is_sent, head, at);
        }
    }
    /// The device of `link`, with each frame that it takes recorded.
    pub fn device<'a>(&'a self, link: LinkId, at: Instant, device: &'a mut dyn Device) -> Recorded<'a> {
        Recorded { recorder: self, frames: self.shared.frames.borrow_mut(), link, at, device }
    }
    /// Adds a line about the connection between two ends.
    pub fn note(&self, at: Instant, ends: (Endpoint, Endpoint), text: String) {
        let before = self.next_frame();
        self.shared.notes.borrow_mut().text(at, before, Whose::Ends(ends.0, ends.1), text);
    }

    /// Arms a trap; false when there are too many.
    pub fn arm(&self, trap: Trap) -> bool {
        let mut traps = self.shared.traps.borrow_mut();
        if traps.len() >= MAX_TRAPS {
            return false;
        }
        traps.push(Armed { trap, sprung_at: None, times: 0 });
        self.set_looks(&traps);
        true
    }
    /// Disarms every trap that is like this one; how many there were.
    pub fn disarm(&self, trap: &Trap) -> usize {
        let mut traps = self.shared.traps.borrow_mut();
        let before = traps.len();
        traps.retain(|armed| armed.trap != *trap);
        self.set_looks(&traps);
        before - traps.len()
    }
    fn set_looks(&self, traps: &[Armed]) {
        let looks = traps.iter().any(|armed| armed.trap.needs_frames());
        self.shared.looks.set(looks);
        self.shared.frames.borrow_mut().set_looks(looks);
    }
    /// The traps, and how often each has sprung.
    pub fn traps(&self) -> Vec<(Trap, u64)> {
        self.shared.traps.borrow().iter().map(|armed| (armed.trap, armed.times)).collect()
    }
    /// Springs the traps of this condition, for whoever watches what the recorder does not see: shares of ledgers. A trap
    /// of another address or port stays.
    pub fn spring(&self, at: Instant, ends: (Endpoint, Endpoint), holds: impl Fn(&Condition) -> bool) {
        self.each_trap(at, Some(ends), holds);
    }
    /// The next notice.
    pub async fn notice(&self) -> Notice {
        poll_fn(|context| {
            if let Some(notice) = self.shared.notices.borrow_mut().pop_front() {
                return Poll::Ready(notice);
            }
            *self.shared.waiting.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
    /// Notices that were lost since the last call, because too many waited.
    pub fn take_lost_notices(&self) -> u64 {
        self.shared.lost_notices.take()
    }

    /// Keeps the account of each connection that ends from now on, for [`Recorder::take_ended`].
    pub fn keep_ended(&self) {
        self.shared.ended.borrow_mut().get_or_insert_default();
        self.shared.mask.set(self.shared.mask.get().union(Mask::ENDED));
    }
    /// Waits until there is an account to take.
    pub async fn has_ended(&self) {
        poll_fn(|context| {
            if self.shared.ended.borrow().as_ref().is_some_and(|waiting| !waiting.is_empty()) {
                return Poll::Ready(());
            }
            *self.shared.waiting_ended.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
    /// The accounts of connections that ended since the last call, the first first, at most `most`; and how many were lost,
    /// because too many waited.
    pub fn take_ended(&self, most: usize) -> (Vec<(Instant, Box<Ended>)>, u64) {
        let mut ended = self.shared.ended.borrow_mut();
        let taken = ended.as_mut().map_or_else(Vec::new, |waiting| {
            let most = most.min(waiting.len());
            waiting.drain(..most).collect()
        });
        (taken, self.shared.lost_ended.take())
    }

    pub(crate) fn is_ethernet(&self, link: LinkId) -> bool {
        self.shared.links.borrow().iter().any(|known| known.id == link && known.is_ethernet)
    }
    /// Shows a frame to the traps.
    fn look(&self, link: LinkId, is_sent: bool, head: &[u8], at: Instant) {
        let Some(ends) = Ends::of(head, self.is_ethernet(link)) else { return };
        let between = Some((ends.source, ends.destination));
        if is_sent {
            // Whether it is a retransmission is told when the device has taken it.
            self.shared.last_sent.set(between);
        }
        let holds = |condition: &Condition| match condition {
            Condition::Frame => true,
            Condition::Reset => ends.is_reset,
            Condition::ZeroWindow => ends.is_window_closed,
            _ => false,
        };
        self.each_trap(at, between, holds);
    }
    fn each_trap(&self, at: Instant, ends: Option<(Endpoint, Endpoint)>, holds: impl Fn(&Condition) -> bool) {
        for armed in &mut *self.shared.traps.borrow_mut() {
            let is_rested = armed.sprung_at.is_none_or(|before| at.since(before) >= REARM);
            let trap = armed.trap;
            if is_rested && holds(&trap.condition) && ends.is_none_or(|(one, other)| trap.has(one, other)) {
                (armed.sprung_at, armed.times) = (Some(at), armed.times + 1);
                self.tell(Notice::Sprung(Sprung { trap, at, ends }));
            }
        }
    }
    fn tell(&self, notice: Notice) {
        let mut notices = self.shared.notices.borrow_mut();
        if notices.len() >= MAX_NOTICES {
            self.shared.lost_notices.set(self.shared.lost_notices.get() + 1);
            return;
        }
        notices.push_back(notice);
        if let Some(waker) = self.shared.waiting.borrow_mut().take() {
            waker.wake();
        }
    }
    /// A frame went no further. Gives whose it is, where its head tells.
    fn dropped(&self, at: Instant, link: LinkId, why: Drop) -> Whose {
        let head = std::mem::take(&mut *self.shared.current.borrow_mut());
        let ends = Ends::of(&head, self.is_ethernet(link)).map(|ends| (ends.source, ends.destination));
        let whose = ends.map_or(Whose::Host, |(source, destination)| Whose::Ends(destination, source));
        let offends = [Drop::Malformed, Drop::Checksum, Drop::BadOption, Drop::Fragment, Drop::NotCredible];
        if !offends.contains(&why) {
            return whose;
        }
        if why == Drop::Checksum {
            self.each_trap(at, ends, |condition| *condition == Condition::BadChecksum);
        }
        self.tell(Notice::Offence(Offence { at, link, why, head, ends }));
        whose
    }
}

impl Sink for Recorder {
    fn mask(&self) -> Mask {
        self.shared.mask.get()
    }
    fn record(&mut self, at: Instant, event: Event) {
        #[cfg(feature = "tracing")]
        self.shared.spans.borrow_mut().tell(&event);
        if let Event::Ended(account) = event {
            match &mut *self.shared.ended.borrow_mut() {
                // Nobody takes them.
                None => return,
                Some(waiting) if waiting.len() < MAX_ENDED => waiting.push_back((at, account)),
                Some(_) => self.shared.lost_ended.set(self.shared.lost_ended.get() + 1),
            }
            if let Some(waker) = self.shared.waiting_ended.borrow_mut().take() {
                waker.wake();
            }
            return;
        }
        let mut whose = notes::socket(&event).map_or(Whose::Host, Whose::Socket);
        if let Event::Retransmitted(of) = &event
            && of.why != RetransmittedWhy::Probe
        {
            self.shared.retransmissions.set(self.shared.retransmissions.get() + 1);
        }
        match &event {
            Event::FrameDropped(of) => whose = self.dropped(at, of.link, of.why),
            Event::Retransmitted(of) if of.why != RetransmittedWhy::Probe && self.shared.looks.get() => {
                self.each_trap(at, self.shared.last_sent.get(), |of| *of == Condition::Retransmission);
            }
            _ => {}
        }
        let before = self.shared.next_frame.get();
        self.shared.notes.borrow_mut().event(at, before, whose, event);
    }
    fn looks_at(&mut self, frame: &[u8]) {
        let mut current = self.shared.current.borrow_mut();
        current.clear();
        current.extend_from_slice(&frame[..frame.len().min(SHOWN_BYTES)]);
    }
}

/// A device whose frames are recorded.
pub struct Recorded<'a> {
    recorder: &'a Recorder,
    frames: RefMut<'a, Frames>,
    link: LinkId,
    at: Instant,
    device: &'a mut dyn Device,
}

impl Recorded<'_> {
    #[inline]
    fn sent(&mut self, frame: &Frame<'_>) {
        if !self.frames.quick(self.at, self.link, true, frame.header) {
            self.recorder.add(&mut self.frames, self.at, self.link, true, frame.header);
        }
    }
}

impl std::ops::Drop for Recorded<'_> {
    fn drop(&mut self) {
        self.recorder.shared.next_frame.set(self.frames.next());
    }
}

impl Device for Recorded<'_> {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        self.device.transmit(frame)?;
        self.sent(frame);
        Ok(())
    }
    fn transmit_shared(&mut self, frame: &Frame<'_>, payload: Shareable<'_>) -> Result<(), Full> {
        self.device.transmit_shared(frame, payload)?;
        self.sent(frame);
        Ok(())
    }
    fn offers(&self) -> Offers {
        self.device.offers()
    }
}

impl fmt::Debug for Recorded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded").field("link", &self.link).finish_non_exhaustive()
    }
}
