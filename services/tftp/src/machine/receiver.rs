//! The end that gets the file: blocks in order, acknowledged window by window.

use inhost_base::Instant;

use crate::codec::Mode;
use crate::codec::netascii::Decoder;
use crate::codec::numbering::Rollover;
use crate::codec::options::Terms;
use crate::machine::timer::{GaveUp, Timer};

/// Effect of a received block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrived {
    /// Nothing new: it was there, or is too early.
    Nothing,
    /// The next one.
    Next,
    /// The last one.
    Last,
    /// Longer than was agreed on.
    TooLong,
}

/// It.
#[derive(Debug)]
pub(crate) struct Receiver {
    block_bytes: usize,
    window: u64,
    /// Not known before it happens, where nothing was said about it.
    rollover: Option<Rollover>,
    text: Option<Decoder>,
    /// The next block.
    expected: u64,
    /// Blocks that were not acknowledged yet.
    unacknowledged: u64,
    /// A gap was reported, and nothing has arrived since.
    gap_told: bool,
    /// An acknowledgment of the block before the expected one is due.
    acknowledge: bool,
    /// When the last acknowledgment was sent, if once.
    asked: Option<Instant>,
    /// Octets of the file that nobody has taken yet.
    pub(crate) file: Vec<u8>,
    /// Octets of the file so far.
    pub(crate) file_bytes: u64,
    /// Blocks that came again.
    pub(crate) blocks_again: u64,
}

/// Block 65,536, whose number tells how the sender counts.
const FIRST_ROLLED: u64 = 1 << 16;

impl Receiver {
    pub(crate) fn new(terms: &Terms, mode: Mode) -> Receiver {
        Receiver {
            block_bytes: usize::from(terms.block_bytes),
            window: u64::from(terms.window),
            rollover: terms.rollover,
            text: (mode == Mode::Netascii).then(Decoder::default),
            expected: 1,
            unacknowledged: 0,
            gap_told: false,
            acknowledge: false,
            asked: None,
            file: Vec::new(),
            file_bytes: 0,
            blocks_again: 0,
        }
    }
    /// Whether nothing has come yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.expected == 1
    }
    /// The acknowledgment of all blocks that have come.
    pub(crate) fn acknowledgment(&self) -> u16 {
        self.rollover.unwrap_or_default().wire(self.expected - 1)
    }
    /// The last block is acknowledged now.
    pub(crate) fn acknowledge_all(&mut self) {
        self.acknowledge = true;
        self.file = Vec::new();
    }
    /// A block came after all were acknowledged; the last one asks for that again.
    pub(crate) fn after_the_last(&mut self, wire: u16) {
        self.blocks_again += 1;
        self.acknowledge |= wire == self.acknowledgment();
    }
    /// The acknowledgment that is due, if one is.
    pub(crate) fn take_acknowledgment(&mut self, timer: &mut Timer, now: Instant) -> Option<u16> {
        if !std::mem::take(&mut self.acknowledge) {
            return None;
        }
        self.unacknowledged = 0;
        self.asked = Some(now);
        self.wait(timer, now);
        Some(self.acknowledgment())
    }
    /// The sender repeats itself, too, and does so first: an acknowledgment too many is of no use in lock-step.
    pub(crate) fn wait(&self, timer: &mut Timer, now: Instant) {
        timer.arm(if self.window > 1 { 2 } else { 4 }, now);
    }

    /// Takes a block.
    pub(crate) fn data(&mut self, wire: u16, bytes: &[u8], timer: &mut Timer, now: Instant) -> Arrived {
        if bytes.len() > self.block_bytes {
            return Arrived::TooLong;
        }
        let rollover = self.rollover_of(wire);
        match rollover.block(wire, self.expected, self.window) {
            Some(block) if block == self.expected => self.next(bytes, timer, now),
            Some(_) => {
                // RFC 7440 §4: a gap is reported at once, and once.
                self.acknowledge |= !self.gap_told && !self.is_fresh();
                self.gap_told = true;
                Arrived::Nothing
            }
            None => {
                self.blocks_again += 1;
                // Our acknowledgment was lost. When blocks came since, the end of the window will bring the next.
                let is_last_one = wire == rollover.wire(self.expected - 1) && !self.is_fresh();
                self.acknowledge |= is_last_one && self.unacknowledged == 0;
                Arrived::Nothing
            }
        }
    }
    /// How the sender counts. In lock-step the number of the one block that can come tells; with a window it could
    /// also be that of a later one, and then nobody knows but who was told.
    fn rollover_of(&mut self, wire: u16) -> Rollover {
        if self.rollover.is_none() && self.expected == FIRST_ROLLED && self.window == 1 {
            match wire {
                0 => self.rollover = Some(Rollover::ToZero),
                1 => self.rollover = Some(Rollover::ToOne),
                _ => {}
            }
        }
        self.rollover.unwrap_or_default()
    }
    fn next(&mut self, bytes: &[u8], timer: &mut Timer, now: Instant) -> Arrived {
        if let Some(asked) = self.asked.take() {
            timer.sample(now.since(asked));
        }
        timer.progress(now);
        let before = self.file.len();
        match &mut self.text {
            None => self.file.extend_from_slice(bytes),
            Some(decoder) => decoder.decode(bytes, &mut self.file),
        }
        let is_last = bytes.len() < self.block_bytes;
        if let Some(decoder) = self.text.as_mut().filter(|_| is_last) {
            decoder.finish(&mut self.file);
        }
        self.file_bytes += (self.file.len() - before) as u64;
        self.expected += 1;
        self.unacknowledged += 1;
        self.gap_told = false;
        if is_last {
            timer.stop();
            return Arrived::Last;
        }
        self.acknowledge |= self.unacknowledged >= self.window;
        self.wait(timer, now);
        Arrived::Next
    }
    /// Time has passed; true when what was said first is to be said again.
    pub(crate) fn timeout(&mut self, timer: &mut Timer, now: Instant) -> Result<bool, GaveUp> {
        if !timer.expire(now)? {
            return Ok(false);
        }
        self.asked = None;
        self.gap_told = false;
        self.acknowledge |= !self.is_fresh();
        self.wait(timer, now);
        Ok(self.is_fresh())
    }
}
