//! One connection, its clock, and a scripted peer: segments go in, sent segments are checked, and then there must be no
//! more.

use crate::{
    Changes, Config, Connection, Ecn, Environment, Header, Open, Outcome, ResetReply, SegmentOutput, SendHow,
};
use inhost_base::{Duration, Instant, Sequence};
use inhost_buf::{Full, Pool, Slices};
use inhost_event::{Mask, Recorded, TcpState};
use inhost_wire::tcp::{Flags, TcpOptions};
use std::collections::VecDeque;
use std::sync::Arc;

/// Our SYN's number.
pub const OURS: u32 = 1000;
/// The peer's SYN's number.
pub const THEIRS: u32 = 5000;
/// Payload of full segments both ways, without timestamps.
pub const MSS: u32 = 1000;

pub const ACK: Flags = Flags::ACK;
pub const SYN: Flags = Flags::SYN;
pub const FIN: Flags = Flags::FIN;
pub const RST: Flags = Flags::RST;
pub const URG: Flags = Flags::URG;
pub const PSH: Flags = Flags::PSH;

pub fn open() -> Open {
    Open {
        initial_sequence: Sequence(OURS),
        timestamp_offset: 77,
        path_mtu_mss: MSS as u16,
        default_mss: 536,
        ..Open::default()
    }
}

/// No timestamps and no scaling, so that numbers are easy to read; no pacing, and buffers of fixed size.
pub fn plain() -> Config {
    Config { timestamps: false, window_scaling: false, ..unpaced() }
}
/// Without pacing, and with buffers of fixed size.
pub fn unpaced() -> Config {
    Config {
        pacing: false,
        send_buffer_limit_bytes: 256 << 10,
        send_buffer_initial_bytes: 256 << 10,
        receive_buffer_limit_bytes: 1 << 20,
        receive_buffer_initial_bytes: 1 << 20,
        ..Config::default()
    }
}

/// A sent segment.
#[derive(Clone, Debug)]
pub struct Sent {
    pub header: Header,
    pub payload: Vec<u8>,
}

impl Sent {
    /// Sequence number, counted from our SYN.
    pub fn at(&self) -> u32 {
        self.header.sequence.since(Sequence(OURS))
    }
    /// Acknowledgment, counted from the peer's SYN.
    pub fn acknowledges(&self) -> u32 {
        assert!(self.header.flags.ack());
        self.header.acknowledgment.since(Sequence(THEIRS))
    }
    pub fn flags(&self) -> Flags {
        self.header.flags
    }
    pub fn len(&self) -> usize {
        self.payload.len()
    }
    /// A bare acknowledgment of everything up to `acknowledges`, counted from the peer's SYN.
    #[track_caller]
    pub fn is_ack(&self, acknowledges: u32) -> &Self {
        assert_eq!((self.flags(), self.len()), (ACK, 0), "{self:?}");
        assert_eq!(self.acknowledges(), acknowledges, "{self:?}");
        self
    }
    /// `length` bytes from `at` on, counted from our SYN.
    #[track_caller]
    pub fn is_data(&self, at: u32, length: usize) -> &Self {
        assert_eq!((self.at(), self.len()), (at, length), "{self:?}");
        self
    }
}

/// Gives a run of segments to `out` one after another, as a device without GSO takes them.
pub fn cut(
    out: &mut impl SegmentOutput,
    header: &Header,
    payload: Slices<'_>,
    segment_bytes: u16,
    sums: &[Option<u16>],
    ecn: Ecn,
) -> Result<u32, Full> {
    let (length, step) = (payload.len(), usize::from(segment_bytes.max(1)));
    let mut taken = 0;
    while taken < length {
        let sum = sums.get(taken / step).copied().flatten();
        let part = payload.part(taken, step).with_sum(sum);
        let mut header = Header { sequence: header.sequence + taken as u32, ..*header };
        if taken > 0 {
            header.flags = header.flags.difference(Flags::CWR);
        }
        if taken + part.len() < length {
            header.flags = header.flags.difference(Flags::FIN | Flags::PSH);
        }
        match out.segment(&header, part, ecn) {
            Ok(()) => taken += part.len(),
            Err(_) if taken > 0 => break,
            Err(Full) => return Err(Full),
        }
    }
    Ok(taken as u32)
}

struct Collect<'a> {
    sent: &'a mut VecDeque<Sent>,
    room: usize,
}

impl SegmentOutput for Collect<'_> {
    fn segment(&mut self, header: &Header, payload: Slices<'_>, _: Ecn) -> Result<(), Full> {
        if self.room == 0 {
            return Err(Full);
        }
        self.room -= 1;
        let payload = payload.iter().flatten().copied().collect();
        self.sent.push_back(Sent { header: *header, payload });
        Ok(())
    }
    // Every test also shows that a GSO segment equals its segments sent one after another.
    fn large_bytes(&self) -> u32 {
        60_000
    }
    fn large(
        &mut self,
        header: &Header,
        payload: Slices<'_>,
        segment_bytes: u16,
        sums: &[Option<u16>],
        ecn: Ecn,
    ) -> Result<u32, Full> {
        cut(self, header, payload, segment_bytes, sums, ecn)
    }
}

pub struct Trial {
    pub connection: Connection,
    pub pool: Pool,
    pub sink: Recorded,
    pub now: Instant,
    pub sent: VecDeque<Sent>,
    /// Number of segments that the link accepts in a round.
    pub link_room: usize,
    /// All that has changed so far.
    pub changes: Changes,
    /// The last reset that a timer asked for.
    pub reset: Option<ResetReply>,
}

/// An environment of `$trial`, borrowing all but the connection.
macro_rules! lend {
    ($trial:expr) => {
        &mut $crate::Environment::new(
            $trial.now,
            inhost_base::Key::from_bits(1),
            &mut $trial.pool,
            &mut $trial.sink,
            true,
        )
    };
}
pub(crate) use lend;

impl Trial {
    pub fn around(make: impl FnOnce(&mut Environment<'_>) -> Connection) -> Trial {
        let mut pool = Pool::new(64 << 20);
        let mut sink = Recorded::new(Mask::all(), 100_000);
        let now = Instant::from_millis(1_000);
        let socket = inhost_base::Key::from_bits(1);
        let connection = make(&mut Environment::new(now, socket, &mut pool, &mut sink, true));
        let sent = VecDeque::new();
        let changes = Changes::empty();
        Trial { connection, pool, sink, now, sent, link_room: usize::MAX, changes, reset: None }
    }
    /// An active open; the SYN was sent and not checked.
    pub fn calling(config: Config) -> Trial {
        let mut trial = Trial::around(|env| Connection::connect(&Arc::new(config), open(), env));
        trial.round();
        trial
    }
    /// The peer opens with `syn`; our SYN-ACK was sent, unless held.
    pub fn called_by(config: Config, syn: &Header, hold: bool) -> Trial {
        let mut trial = Trial::around(|env| {
            Connection::accept(&Arc::new(config), Open { hold_syn: hold, ..open() }, syn, env)
        });
        trial.round();
        trial
    }
    /// An active open that the peer answered, with a window of `window` bytes; nothing is left to check.
    pub fn established_with(config: Config, window: u16) -> Trial {
        let mut trial = Trial::calling(config);
        let syn = trial.expect();
        let mut answer = segment(0, SYN | ACK, 1);
        answer.window = window;
        answer.options.mss = Some(MSS as u16);
        answer.options.timestamps = syn.header.options.timestamps.map(|(value, _)| (1, value));
        answer.options.window_scale = syn.header.options.window_scale.map(|_| 0);
        trial.give(answer, b"");
        trial.expect();
        trial.nothing();
        assert_eq!(trial.connection.state(), TcpState::Established);
        trial
    }
    /// One without SACK, and so without RACK and tail probes; `rfc8985::measured_with` has both.
    pub fn established(config: Config) -> Trial {
        Trial::established_with(config, 50_000)
    }

    /// The end of a round: one pass of transmission.
    pub fn round(&mut self) {
        if self.connection.wants_transmit(self.now) {
            let before = self.sent.len();
            let mut out = Collect { sent: &mut self.sent, room: self.link_room };
            let changes = self.connection.transmit(lend!(self), 1000, &mut out);
            self.changes |= changes;
            assert!(self.sent.len() > before || self.link_room == 0, "wanted to transmit, and did not");
        }
        if self.link_room == usize::MAX {
            assert!(
                !self.connection.wants_transmit(self.now),
                "transmits, and still wants to: {:?}",
                self.connection.next_segment()
            );
        }
        let ledgers = self.connection.ledgers(self.now);
        let age = self.now.since(Instant::from_millis(1_000));
        assert_eq!((ledgers.send.total(), ledgers.receive.total()), (age, age));
    }
    /// A segment arrives, without the end of the round.
    pub fn give_early(&mut self, header: Header, payload: &[u8]) -> Outcome {
        let mut packet = self.pool.take(payload.len()).unwrap();
        packet.append(payload);
        let outcome = self.connection.receive(&header, &mut packet, Ecn::NotCapable, true, lend!(self));
        self.pool.give(packet);
        self.changes |= outcome.changes;
        outcome
    }
    /// A segment arrives, and the round ends.
    pub fn give(&mut self, header: Header, payload: &[u8]) -> Outcome {
        let outcome = self.give_early(header, payload);
        self.round();
        outcome
    }
    /// Time passes. Timers fire when they are due, never early, and each ends a round.
    pub fn pass(&mut self, duration: Duration) {
        let until = self.now + duration;
        for step in 0.. {
            assert!(step < 100_000, "timers without end");
            let deadline = self.connection.deadline();
            if deadline > until {
                break;
            }
            self.now = self.now.max(deadline);
            let outcome = self.connection.timeout(lend!(self));
            self.changes |= outcome.changes;
            self.reset = outcome.reset.or(self.reset);
            assert!(self.connection.deadline() > self.now, "a timer that fired is still due");
            self.round();
        }
        self.now = until;
    }
    pub fn pass_ms(&mut self, ms: u64) {
        self.pass(Duration::from_millis(ms));
    }
    /// The application writes, and the round ends.
    pub fn write_how(&mut self, bytes: &[u8], how: SendHow) -> usize {
        let taken = self.connection.send(bytes, how, lend!(self)).unwrap();
        self.round();
        taken
    }
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        self.write_how(bytes, SendHow::default())
    }
    /// The application reads up to `most` bytes, and the round ends.
    pub fn read(&mut self, most: usize) -> Vec<u8> {
        let mut into = vec![0; most];
        let count = self.connection.read(&mut into, lend!(self)).unwrap();
        into.truncate(count);
        self.round();
        into
    }
    pub fn close(&mut self) {
        let outcome = self.connection.close(lend!(self));
        self.changes |= outcome.changes;
        self.round();
    }
    /// The oldest sent segment that was not checked.
    #[track_caller]
    pub fn expect(&mut self) -> Sent {
        self.sent.pop_front().expect("a segment should have left")
    }
    /// No more segments were sent.
    #[track_caller]
    pub fn nothing(&self) {
        assert!(self.sent.is_empty(), "left unexpectedly: {:?}", self.sent);
    }
    /// The changes since the last call.
    pub fn changed(&mut self) -> Changes {
        core::mem::take(&mut self.changes)
    }
}

/// A segment of the peer's: `at` counted from its SYN, `acknowledges` from ours; a window of 50,000.
pub fn segment(at: u32, flags: Flags, acknowledges: u32) -> Header {
    Header {
        sequence: Sequence(THEIRS) + at,
        acknowledgment: if flags.ack() { Sequence(OURS) + acknowledges } else { Sequence(0) },
        flags,
        window: 50_000,
        options: TcpOptions::NONE,
        ..Header::default()
    }
}
pub fn with_window(header: Header, window: u16) -> Header {
    Header { window, ..header }
}
pub fn with_timestamps(mut header: Header, value: u32, echo: u32) -> Header {
    header.options.timestamps = Some((value, echo));
    header
}
/// `length` bytes whose values follow from their place in the stream.
pub fn pattern(from: usize, length: usize) -> Vec<u8> {
    (from..from + length).map(|i| (i * 7 + i / 251) as u8).collect()
}
