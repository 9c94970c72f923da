//! Two connections over a pipe that loses, duplicates, delays and refuses segments, in virtual time. Checks that the data
//! delivered is the data sent, in order, once, and that both ends close.

use super::trial::{cut, pattern};
use crate::{
    Config, CongestionChoice, Connection, Ecn, EcnMode, Environment, Header, Open, SegmentOutput, SendHow,
    StreamError,
};
use bytes::Bytes;
use inhost_base::{Duration, Instant, Key, Random, Sequence};
use inhost_buf::{Full, Pool, Slices};
use inhost_event::{Ignore, TcpState};
use inhost_wire::tcp::SackBlocks;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
struct Faults {
    loss: f64,
    duplicate: f64,
    reorder: f64,
    /// The link refuses a segment.
    refuse: f64,
    delay: Duration,
    /// Maximum payload of a GSO segment; 0 for single segments.
    large_bytes: u32,
}

struct Flying {
    to: usize,
    header: Header,
    ecn: Ecn,
    payload: Vec<u8>,
}

struct End {
    connection: Option<Connection>,
    config: Arc<Config>,
    pool: Pool,
    to_send: usize,
    sent: usize,
    received: usize,
    /// Bytes that the application reads at a time, and how long it then pauses.
    read_size: usize,
    read_rest: Duration,
    next_read: Instant,
    /// Writes as much as fits, whenever it can.
    eager: bool,
    closed: bool,
    at_end: bool,
    /// How far its numbers are ahead of those on the wire.
    jumped: Jumped,
}

/// How far the numbers of a connection are ahead of what its peer knows.
#[derive(Clone, Copy, Debug, Default)]
struct Jumped {
    send: u32,
    receive: u32,
}

impl Jumped {
    /// The header as it is on the wire, of one that this end made.
    fn leaving(self, header: &Header) -> Header {
        let mut header = *header;
        header.sequence = header.sequence.back(self.send);
        header.acknowledgment = header.acknowledgment.back(self.receive);
        header.options.sack = moved(&header.options.sack, self.receive.wrapping_neg());
        header
    }
    /// The header as this end knows it, of one from the wire.
    fn arriving(self, header: &Header) -> Header {
        let mut header = *header;
        header.sequence = header.sequence + self.receive;
        header.acknowledgment = header.acknowledgment + self.send;
        header.options.sack = moved(&header.options.sack, self.send);
        header
    }
}

fn moved(blocks: &SackBlocks, by: u32) -> SackBlocks {
    let mut list = SackBlocks::new();
    for &(start, end) in blocks.iter() {
        list.push((start + by, end + by));
    }
    list
}

struct Pipe<'a> {
    to: usize,
    jumped: Jumped,
    now: Instant,
    faults: Faults,
    random: &'a mut Random,
    flying: &'a mut BTreeMap<(Instant, u64), Flying>,
    serial: &'a mut u64,
}

impl SegmentOutput for Pipe<'_> {
    fn segment(&mut self, header: &Header, payload: Slices<'_>, ecn: Ecn) -> Result<(), Full> {
        if self.random.public_chance(self.faults.refuse) {
            return Err(Full);
        }
        let copies = 1 + usize::from(self.random.public_chance(self.faults.duplicate));
        for _ in 0..copies {
            if self.random.public_chance(self.faults.loss) {
                continue;
            }
            let mut at = self.now + self.faults.delay;
            if self.random.public_chance(self.faults.reorder) {
                at += Duration::from_micros(u64::from(self.random.public_below(20_000)));
            }
            *self.serial += 1;
            let payload: Vec<u8> = payload.iter().flatten().copied().collect();
            // A router that is about to overflow sets CE on ECN-capable packets.
            let marks = ecn != Ecn::NotCapable && self.random.public_chance(self.faults.loss);
            let ecn = if marks { Ecn::CongestionExperienced } else { ecn };
            let header = self.jumped.leaving(header);
            self.flying.insert((at, *self.serial), Flying { to: self.to, header, ecn, payload });
        }
        Ok(())
    }
    fn large_bytes(&self) -> u32 {
        self.faults.large_bytes
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

struct Run {
    seed: u64,
    now: Instant,
    born: [Instant; 2],
    ends: [End; 2],
    random: Random,
    faults: Faults,
    flying: BTreeMap<(Instant, u64), Flying>,
    serial: u64,
    segments: u64,
    /// How often the sequence numbers of an end jump, in a round.
    jumps: f64,
}

fn config_from(random: &mut Random) -> Config {
    let buffers = [4_000, 20_000, 200_000, 1_000_000];
    Config {
        nagle: random.public_chance(0.7),
        timestamps: random.public_chance(0.7),
        window_scaling: random.public_chance(0.7),
        send_buffer_limit_bytes: buffers[random.public_below(4) as usize],
        receive_buffer_limit_bytes: 2 * buffers[random.public_below(4) as usize],
        reassembly_limit_pieces: 1 + random.public_below(50) as usize,
        acknowledgment_delay: Duration::from_millis(u64::from(random.public_below(3)) * 40),
        congestion: if random.public_chance(0.5) {
            CongestionChoice::Cubic
        } else {
            CongestionChoice::NewReno
        },
        // Long enough that losses alone do not reach it.
        user_timeout: Duration::from_secs(6000),
        connect_timeout: Duration::from_secs(6000),
        sack: random.public_chance(0.8),
        duplicate_sack: random.public_chance(0.8),
        rack: random.public_chance(0.8),
        tail_loss_probe: random.public_chance(0.8),
        proportional_rate_reduction: random.public_chance(0.8),
        forward_rto: random.public_chance(0.8),
        undo: random.public_chance(0.8),
        rto_restart: random.public_chance(0.8),
        ecn: [EcnMode::Off, EcnMode::Accept, EcnMode::Request][random.public_below(3) as usize],
        mss_limit_bytes: [100, 536, 1460, 9000][random.public_below(4) as usize],
        ..Config::default()
    }
}

fn open_from(random: &mut Random) -> Open {
    // Half of the initial numbers are near the wrap.
    let near = u32::MAX - random.public_below(30_000);
    let initial_sequence = Sequence(if random.public_chance(0.5) { near } else { random.private_u32() });
    let timestamp_offset = random.private_u32();
    Open { initial_sequence, timestamp_offset, path_mtu_mss: 1460, default_mss: 536, ..Open::default() }
}

macro_rules! env_of {
    ($run:expr, $i:expr) => {
        &mut Environment::new(
            $run.now,
            Key::from_bits($i as u64),
            &mut $run.ends[$i].pool,
            &mut Ignore,
            false,
        )
    };
}

/// Writes by reference, in pieces of which a segment has too many to be lent at once.
fn lend(
    connection: &mut Connection,
    bytes: &[u8],
    how: SendHow,
    env: &mut Environment<'_>,
) -> Result<usize, StreamError> {
    let mut taken = 0;
    for piece in bytes.chunks(200) {
        let mut piece = Bytes::copy_from_slice(piece);
        match connection.lend(&mut piece, how, env) {
            Ok(count) => taken += count,
            Err(StreamError::WouldBlock) if taken > 0 => break,
            Err(error) => return Err(error),
        }
        if !piece.is_empty() {
            break;
        }
    }
    Ok(taken)
}

impl Run {
    fn new(seed: u64, faults: Option<Faults>, bytes: [usize; 2]) -> Run {
        let mut random = Random::from_number(seed);
        let drawn = Faults {
            loss: [0.0, 0.01, 0.05, 0.2][random.public_below(4) as usize],
            duplicate: [0.0, 0.02, 0.2][random.public_below(3) as usize],
            reorder: [0.0, 0.05, 0.5][random.public_below(3) as usize],
            refuse: [0.0, 0.1][random.public_below(2) as usize],
            delay: Duration::from_micros(u64::from(1 + random.public_below(50_000))),
            // Half of the cases, without a random draw, so that the others stay the same.
            large_bytes: if seed.is_multiple_of(2) { 60_000 } else { 0 },
        };
        let end = |random: &mut Random, to_send: usize| End {
            connection: None,
            config: Arc::new(config_from(random)),
            pool: Pool::new(32 << 20),
            to_send,
            sent: 0,
            received: 0,
            read_size: [1, 700, 100_000, 100_000][random.public_below(4) as usize].max(to_send / 300),
            read_rest: Duration::from_millis([0, 0, 1, 30][random.public_below(4) as usize]),
            next_read: Instant::ZERO,
            eager: false,
            closed: false,
            at_end: false,
            jumped: Jumped::default(),
        };
        let ends = [end(&mut random, bytes[0]), end(&mut random, bytes[1])];
        Run {
            seed,
            now: Instant::from_millis(10),
            born: [Instant::ZERO; 2],
            ends,
            faults: faults.unwrap_or(drawn),
            random,
            flying: BTreeMap::new(),
            serial: 0,
            segments: 0,
            jumps: 0.0,
        }
    }

    /// Opens both ends and runs them in virtual time until both are closed.
    fn go(&mut self) {
        let simultaneous = self.random.public_chance(0.1);
        self.connect(0);
        if simultaneous {
            self.connect(1);
        }
        for step in 0.. {
            assert!(step < 400_000, "seed {}: no end", self.seed);
            for i in 0..2 {
                self.application(i);
                self.jump(i);
                self.transmit(i);
            }
            if self.is_over() {
                return self.check_end();
            }
            self.advance();
        }
    }
    /// Moves the numbers of an end, by half of their space, by all of it, or by another amount.
    fn jump(&mut self, i: usize) {
        let Some(connection) = &mut self.ends[i].connection else { return };
        if !self.random.public_chance(self.jumps) {
            return;
        }
        let drawn = 1 + self.random.public_below(u32::MAX);
        let by = [1 << 31, drawn][self.random.public_below(2) as usize];
        let [send_by, receive_by] =
            [0.6, 0.6].map(|chance| if self.random.public_chance(chance) { by } else { 0 });
        if connection.renumber(send_by, receive_by) {
            let Jumped { send, receive } = &mut self.ends[i].jumped;
            (*send, *receive) = (send.wrapping_add(send_by), receive.wrapping_add(receive_by));
        }
    }
    fn connect(&mut self, i: usize) {
        let (open, config) = (open_from(&mut self.random), Arc::clone(&self.ends[i].config));
        let connection = Connection::connect(&config, open, env_of!(self, i));
        self.born[i] = self.now;
        self.ends[i].connection = Some(connection);
    }
    /// Advances to the next event: a segment arrives, a timer expires, an application wakes.
    fn advance(&mut self) {
        let mut next = self.flying.first_key_value().map_or(Instant::FAR_FUTURE, |(key, _)| key.0);
        for end in &self.ends {
            let Some(connection) = &end.connection else { continue };
            next = next.min(connection.deadline());
            if connection.receiver().readable_bytes() > 0
                || (connection.receiver().is_at_end() && !end.at_end)
            {
                next = next.min(end.next_read);
            }
            if connection.wants_transmit(self.now) {
                // The link refused: it is retried a little later.
                next = next.min(self.now + Duration::from_micros(500));
            }
        }
        assert!(next < Instant::FAR_FUTURE, "seed {}: nothing will ever happen\n{}", self.seed, self.state());
        self.now = self.now.max(next);
        while self.flying.first_key_value().is_some_and(|(key, _)| key.0 <= self.now) {
            let Some((_, flying)) = self.flying.pop_first() else { break };
            self.deliver(flying);
        }
        for i in 0..2 {
            let Some(mut connection) = self.ends[i].connection.take() else { continue };
            if connection.deadline() <= self.now {
                connection.timeout(env_of!(self, i));
                assert!(connection.deadline() > self.now, "seed {}: a timer stays due", self.seed);
            }
            self.ends[i].connection = Some(connection);
        }
    }
    fn deliver(&mut self, flying: Flying) {
        let i = flying.to;
        self.segments += 1;
        let mut packet = self.ends[i].pool.take(flying.payload.len().max(1400)).unwrap();
        packet.append(&flying.payload);
        let header = self.ends[i].jumped.arriving(&flying.header);
        match self.ends[i].connection.take() {
            Some(mut connection) => {
                let outcome = connection.receive(&header, &mut packet, flying.ecn, true, env_of!(self, i));
                // After this end has left TIME-WAIT or LAST-ACK, a delayed segment may find no connection.
                let stray = connection.state() == TcpState::Closed;
                assert!(outcome.reset.is_none() || stray, "seed {}: {outcome:?}\n{connection:?}", self.seed);
                if let Some(reset) = outcome.reset {
                    // An end still in LAST-ACK after the other's TIME-WAIT learns from this that the connection is over.
                    self.serial += 1;
                    let (header, ecn) = (self.ends[i].jumped.leaving(&reset.header()), Ecn::NotCapable);
                    let flying = Flying { to: 1 - i, header, ecn, payload: Vec::new() };
                    self.flying.insert((self.now + self.faults.delay, self.serial), flying);
                }
                assert!(connection.error().is_none(), "seed {}: {:?}", self.seed, connection.error());
                self.ends[i].connection = Some(connection);
            }
            None if flying.header.flags.syn() => {
                let open = open_from(&mut self.random);
                let config = Arc::clone(&self.ends[i].config);
                let connection = Connection::accept(&config, open, &flying.header, env_of!(self, i));
                self.born[i] = self.now;
                self.ends[i].connection = Some(connection);
            }
            None => {}
        }
        self.ends[i].pool.give(packet);
    }
    fn application(&mut self, i: usize) {
        let Some(mut connection) = self.ends[i].connection.take() else { return };
        let eager = self.ends[i].eager;
        let how = SendHow {
            push: eager || self.random.public_chance(0.7),
            more: !eager && self.random.public_chance(0.1),
            urgent: !eager && self.random.public_chance(0.02),
            end_of_record: !eager && self.random.public_chance(0.05),
        };
        let (sent, to_send) = (self.ends[i].sent, self.ends[i].to_send);
        if sent < to_send {
            let size = if eager { to_send } else { 1 + self.random.public_below(5000) as usize };
            let bytes = pattern(sent, size.min(to_send - sent).min(connection.sender().writable_bytes() + 1));
            // In a third of the cases, without a random draw, so that the others stay the same.
            let written = match self.seed % 3 == 2 {
                true => lend(&mut connection, &bytes, how, env_of!(self, i)),
                false => connection.send(&bytes, how, env_of!(self, i)),
            };
            match written {
                Ok(taken) => self.ends[i].sent += taken,
                Err(StreamError::WouldBlock) => {}
                Err(error) => panic!("seed {}: {error}", self.seed),
            }
        } else if !self.ends[i].closed && connection.state() != TcpState::SynSent {
            connection.close(env_of!(self, i));
            self.ends[i].closed = true;
        }
        self.read(i, &mut connection);
        self.ends[i].connection = Some(connection);
    }
    fn read(&mut self, i: usize, connection: &mut Connection) {
        if self.now < self.ends[i].next_read {
            return;
        }
        let mut into = vec![0; self.ends[i].read_size];
        match connection.read(&mut into, env_of!(self, i)) {
            Ok(0) => self.ends[i].at_end = true,
            Ok(count) => {
                let expected = pattern(self.ends[i].received, count);
                assert_eq!(into[..count], expected[..], "seed {}: the stream differs", self.seed);
                self.ends[i].received += count;
                self.ends[i].next_read = self.now + self.ends[i].read_rest;
            }
            Err(StreamError::WouldBlock) => {}
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }
    fn transmit(&mut self, i: usize) {
        let Some(mut connection) = self.ends[i].connection.take() else { return };
        if connection.wants_transmit(self.now) {
            let (now, faults, random) = (self.now, self.faults, &mut self.random);
            let mut pipe = Pipe {
                to: 1 - i,
                jumped: self.ends[i].jumped,
                now,
                faults,
                random: &mut Random::from_number(random.public_u64()),
                flying: &mut self.flying,
                serial: &mut self.serial,
            };
            connection.transmit(
                &mut Environment::new(
                    now,
                    Key::from_bits(i as u64),
                    &mut self.ends[i].pool,
                    &mut Ignore,
                    false,
                ),
                64,
                &mut pipe,
            );
        }
        let ledgers = connection.ledgers(self.now);
        let age = self.now.since(self.born[i]);
        assert_eq!((ledgers.send.total(), ledgers.receive.total()), (age, age), "seed {}", self.seed);
        self.ends[i].connection = Some(connection);
    }
    fn is_over(&self) -> bool {
        self.ends.iter().all(|end| {
            end.at_end && end.closed && end.connection.as_ref().is_some_and(|c| c.state() == TcpState::Closed)
        })
    }
    fn check_end(&mut self) {
        for i in 0..2 {
            assert_eq!(self.ends[i].received, self.ends[1 - i].to_send, "seed {}", self.seed);
            let end = &mut self.ends[i];
            let connection = end.connection.as_mut().unwrap();
            let info = connection.info(self.now);
            // Data cut off by a reset in LAST-ACK had arrived, although its acknowledgment had not.
            assert!(info.sent_bytes <= end.to_send as u64);
            assert_eq!(info.received_bytes, end.received as u64);
            connection.clear(&mut end.pool);
            assert_eq!(end.pool.outstanding_bytes(), 0, "seed {}: memory is missing", self.seed);
        }
    }
    fn state(&self) -> String {
        let of = |end: &End| format!("{:?}\n", end.connection);
        format!("{}{}", of(&self.ends[0]), of(&self.ends[1]))
    }
}

/// Number of seeds in the ordinary run.
const SEEDS: u64 = 1500;
/// The same with jumps.
const JUMPING_SEEDS: u64 = 400;

#[test]
fn every_seed_delivers_both_streams_and_closes_both_ends() {
    for seed in 0..SEEDS {
        let mut random = Random::from_number(seed ^ 0xabcd);
        let bytes = [random.public_below(60_000) as usize, random.public_below(60_000) as usize];
        Run::new(seed, None, bytes).go();
    }
}

#[test]
fn every_seed_lives_through_jumps_of_its_numbers() {
    for seed in 0..JUMPING_SEEDS {
        let mut random = Random::from_number(seed ^ 0xbeef);
        let bytes = [random.public_below(60_000) as usize, random.public_below(60_000) as usize];
        let mut run = Run::new(seed, None, bytes);
        run.jumps = 0.1;
        run.go();
    }
}

/// More seeds than the ordinary run.
#[test]
#[ignore = "long run: make test-long"]
fn ten_thousand_seeds_more() {
    for seed in SEEDS..SEEDS + 10_000 {
        let mut random = Random::from_number(seed ^ 0xabcd);
        let bytes = [random.public_below(60_000) as usize, random.public_below(60_000) as usize];
        Run::new(seed, None, bytes).go();
    }
}

#[test]
fn bulk_in_one_direction_fills_a_clean_pipe() {
    let faults = Faults {
        loss: 0.0,
        duplicate: 0.0,
        reorder: 0.0,
        refuse: 0.0,
        delay: Duration::from_millis(5),
        large_bytes: 0,
    };
    let mut run = Run::new(1, Some(faults), [8_000_000, 0]);
    let config = Arc::new(Config::default());
    for end in &mut run.ends {
        end.config = Arc::clone(&config);
        end.read_size = 1 << 20;
        end.read_rest = Duration::ZERO;
        end.eager = true;
    }
    run.go();
    let info = run.ends[0].connection.as_ref().unwrap().info(run.now);
    assert_eq!((info.retransmitted_segments, info.timeouts), (0, 0));
    assert!(info.congestion_window_bytes > 100_000, "{info:?}");
    // 8 MB in segments of 1,448 bytes, and an acknowledgment for every second or fewer.
    assert!(run.segments < 5_530 * 3 / 2 + 50, "{} segments", run.segments);
}

/// Sends 4 MB over a path of 20 ms with this loss; returns the run and its duration.
fn lossy_bulk(seed: u64, loss: f64, congestion: CongestionChoice) -> (Run, Duration) {
    let delay = Duration::from_millis(10);
    let faults = Faults { loss, duplicate: 0.0, reorder: 0.0, refuse: 0.0, delay, large_bytes: 60_000 };
    let mut run = Run::new(seed, Some(faults), [4_000_000, 0]);
    let config = Arc::new(Config { congestion, time_wait: Duration::from_millis(1), ..Config::default() });
    for end in &mut run.ends {
        end.config = Arc::clone(&config);
        end.read_size = 1 << 20;
        end.read_rest = Duration::ZERO;
        end.eager = true;
    }
    run.go();
    let took = run.now.since(run.born[0]);
    (run, took)
}

#[test]
fn bulk_over_losses_neither_stalls_nor_sends_everything_twice() {
    for congestion in [CongestionChoice::Cubic, CongestionChoice::NewReno] {
        for (loss, most_s, most_again) in [(0.001, 2.0, 20), (0.01, 10.0, 60), (0.05, 45.0, 300)] {
            for seed in 0..2 {
                let (run, took) = lossy_bulk(seed, loss, congestion.clone());
                let info = run.ends[0].connection.as_ref().unwrap().info(run.now);
                let what = format!(
                    "{congestion:?} loss {loss} seed {seed}: {took}, {} of 2,763 segments again, {} time-outs",
                    info.retransmitted_segments, info.timeouts
                );
                assert!(took.as_secs_f64() < most_s, "{what}");
                assert!(info.retransmitted_segments < most_again, "{what}");
            }
        }
    }
}
