//! The end that has the file: a window of blocks, numbered, sent again from the first that is missing.

use inhost_base::{Duration, Instant};

use crate::codec::netascii;
use crate::codec::numbering::Rollover;
use crate::codec::options::Terms;
use crate::codec::{HEADER_BYTES, Mode, Packet};
use crate::machine::timer::{GaveUp, Timer};

/// Octets that are asked for beyond the window, so that the disk is ahead of the network.
const AHEAD_BYTES: usize = 256 * 1024;

/// Effect of an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Acknowledged {
    /// It told nothing new.
    Nothing,
    /// Blocks have arrived.
    Progress,
    /// All have.
    All,
}

/// It. Memory is bounded by the window and by what is ahead of it.
#[derive(Debug)]
pub(crate) struct Sender {
    block_bytes: usize,
    window: u64,
    rollover: Rollover,
    mode: Mode,
    /// File data behind the acknowledged blocks, from `start` on.
    buffer: Vec<u8>,
    start: usize,
    /// Nothing follows what is in the buffer.
    ended: bool,
    /// All blocks up to this one have arrived.
    acknowledged: u64,
    /// The next block to be sent.
    next: u64,
    /// The last block that was sent ever.
    sent: u64,
    /// Blocks up to this one were sent more than once, so that an acknowledgment of them may be an echo.
    repeated: u64,
    /// When the first block of the window was sent.
    began: Instant,
    /// The shortest time from there to an acknowledgment.
    least_round_trip: Option<Duration>,
    /// Blocks that were sent again.
    pub(crate) blocks_again: u64,
    /// Octets of the file that were given.
    pub(crate) file_bytes: u64,
}

impl Sender {
    pub(crate) fn new(terms: &Terms, mode: Mode, now: Instant) -> Sender {
        Sender {
            block_bytes: usize::from(terms.block_bytes),
            window: u64::from(terms.window),
            rollover: terms.rollover.unwrap_or_default(),
            mode,
            buffer: Vec::new(),
            start: 0,
            ended: false,
            acknowledged: 0,
            next: 1,
            sent: 0,
            repeated: 0,
            began: now,
            least_round_trip: None,
            blocks_again: 0,
            file_bytes: 0,
        }
    }
    /// Octets of the file that it would take now; none when it has enough.
    pub(crate) fn wants(&self) -> usize {
        let enough = self.block_bytes * self.window as usize + AHEAD_BYTES;
        if self.ended { 0 } else { enough.saturating_sub(self.buffer.len() - self.start) }
    }
    /// The next octets of the file; with none, its end.
    pub(crate) fn supply(&mut self, file: &[u8]) {
        self.file_bytes += file.len() as u64;
        if file.is_empty() {
            self.ended = true;
        }
        if self.start > 0 && self.buffer.len() + file.len() > self.buffer.capacity() {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        match self.mode {
            Mode::Octet => self.buffer.extend_from_slice(file),
            Mode::Netascii => netascii::encode(file, &mut self.buffer),
        }
    }

    /// Writes the next packet that is due; false when there is none.
    pub(crate) fn transmit(&mut self, into: &mut Vec<u8>, timer: &mut Timer, now: Instant) -> bool {
        if self.next > self.acknowledged + self.window {
            return false;
        }
        let Some(range) = self.range(self.next) else { return false };
        into.reserve(HEADER_BYTES + range.len());
        Packet::Data(self.rollover.wire(self.next), &self.buffer[range]).write(into);
        if self.next == self.acknowledged + 1 {
            self.began = now;
        }
        if self.next <= self.sent {
            self.blocks_again += 1;
        } else {
            self.sent = self.next;
        }
        self.next += 1;
        timer.arm(1, now);
        true
    }
    /// Range of the block's octets; `None` while they are not there, and behind the last block.
    fn range(&self, block: u64) -> Option<std::ops::Range<usize>> {
        let index = usize::try_from(block.checked_sub(self.acknowledged + 1)?).ok()?;
        let from = self.start + index.checked_mul(self.block_bytes)?;
        let to = from + self.block_bytes;
        match () {
            () if to <= self.buffer.len() => Some(from..to),
            // The last block is shorter than the others, if by a whole block's length.
            () if self.ended && from <= self.buffer.len() => Some(from..self.buffer.len()),
            () => None,
        }
    }

    /// Takes an acknowledgment.
    pub(crate) fn acknowledge(&mut self, wire: u16, timer: &mut Timer, now: Instant) -> Acknowledged {
        let outstanding = self.sent - self.acknowledged;
        let Some(block) = self.rollover.block(wire, self.acknowledged, outstanding + 1) else {
            return Acknowledged::Nothing;
        };
        if block == self.acknowledged {
            self.reported_again(now);
            return Acknowledged::Nothing;
        }
        let took = now.since(self.began);
        if block > self.repeated {
            // The whole window's way is in it, so that a time-out is never shorter than a window.
            timer.sample(took);
            self.least_round_trip = Some(self.least_round_trip.map_or(took, |least| least.min(took)));
        }
        timer.progress(now);
        let is_last = self.range(block).is_none_or(|range| range.len() < self.block_bytes);
        let passed = (block - self.acknowledged) as usize * self.block_bytes;
        self.start = (self.start + passed).min(self.buffer.len());
        self.acknowledged = block;
        if is_last {
            timer.stop();
            return Acknowledged::All;
        }
        // RFC 7440 §4: an acknowledgment within the window says that what follows it is missing.
        self.go_back(block + 1);
        timer.arm(1, now);
        Acknowledged::Progress
    }
    /// The block before the window was acknowledged again. RFC 1123 §4.2.3.1: in lock-step that means nothing. With a
    /// window it is how a receiver says that the window's first block is missing, so it counts, but only once, not
    /// earlier than an answer can come, and not when the block was sent twice and this may be the second copy's echo.
    fn reported_again(&mut self, now: Instant) {
        let is_missing = self.window > 1 && self.next > self.acknowledged + 2;
        let is_echo = self.acknowledged <= self.repeated && self.repeated > 0;
        let is_early = self.least_round_trip.is_none_or(|least| now.since(self.began) < least.divided_by(2));
        if is_missing && !is_echo && !is_early {
            self.go_back(self.acknowledged + 1);
        }
    }
    fn go_back(&mut self, to: u64) {
        if to <= self.sent {
            self.repeated = self.sent;
        }
        self.next = to;
    }
    /// Time has passed.
    pub(crate) fn timeout(&mut self, timer: &mut Timer, now: Instant) -> Result<(), GaveUp> {
        if timer.expire(now)? {
            self.go_back(self.acknowledged + 1);
        }
        Ok(())
    }
}
