//! A serial line: a real tty, or a pty, at a rate that the driver itself keeps.
//!
//! A tty that hangs up can be opened again; until then the line is down. A pty can return only by its name, and a name
//! below `/dev/pts` is reused by the next pty, so such a line is gone for good. A pty that was opened through a
//! symbolic link is reopened when the link is made anew.

mod back;
mod framer;
mod pace;
mod place;
mod port;
#[cfg(test)]
mod tests;

pub(crate) use framer::Role;

use crate::{AddressOffer, Discard, Driver, FrameFormat, Framing, NotBack, OpenError, Statistics};
use framer::Framer;
use inhost_base::{Cidr, Duration, Instant, IpAddr, Ipv4Addr, Random};
use inhost_buf::{Batch, Device, Frame, Full, Pool};
use inhost_wire::llp;
use pace::Pace;
use place::Place;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Packets that wait behind the one on the line. Few, because a packet takes a second at 9600 baud: what waits
/// longer waits in TCP, which knows why.
const QUEUE_PACKETS: usize = 2;
/// Octets read, or given to the tty, at once.
const CHUNK_OCTETS: usize = 512;
/// Packets of this length are received whatever the MTU for what is sent: a SLIP peer may send 1006 bytes without
/// asking (RFC 1055), and some send 1500.
const RECEIVE_BYTES: usize = 1500;
/// Reads in one call.
const READS: usize = 8;
/// How long a packet waits for the host's memory before it is tried again.
const MEMORY_RETRY: Duration = Duration::from_millis(10);

/// Configuration of a serial line.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct SerialConfig {
    /// The tty's path; `/dev/ptmx` makes a new pty, and [`Driver::describe`] says where its other end is.
    pub path: String,
    /// Bits a second, ten for each octet; also set on the tty. Default of the kind: 9600.
    pub baud: u32,
    /// SLIP or LLP.
    pub framing: Framing,
    /// The longest IP datagram. Default of the kind: 1006 (RFC 1055); IPv6 needs 1280.
    pub mtu_bytes: usize,
    /// With LLP: the address given to an end that asks, which makes this end the packet concentrator.
    pub offer: Option<SerialOffer>,
    /// With LLP: whether to ask for an address, from the start until an answer comes (MIT §5.4).
    pub ask: bool,
    /// Share of the received octets that are changed on purpose, from 0 to 1. Default 0.
    pub noise: f64,
    /// Seed of the noise.
    pub seed: u64,
}

/// The answer of a packet concentrator to an address request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SerialOffer {
    /// The other end's address.
    pub address: Ipv4Addr,
    /// This end's, with the length of their network's prefix.
    pub own: Cidr,
}

impl SerialOffer {
    fn reply(self) -> Option<llp::AddressReply> {
        match self.own.address() {
            IpAddr::V4(concentrator) => Some(llp::AddressReply {
                address: self.address,
                concentrator,
                prefix_bits: self.own.prefix_bits(),
            }),
            IpAddr::V6(_) => None,
        }
    }
}

/// A serial line. The tty is as it was when this is dropped.
#[derive(Debug)]
pub struct Serial {
    port: Place,
    config: SerialConfig,
    framer: Framer,
    queue: VecDeque<Vec<u8>>,
    pace: Pace,
    /// Octets that have left the line, and that the tty has not taken yet.
    output: Vec<u8>,
    /// The tty is full; its descriptor becomes writable when it is not.
    blocked: bool,
    /// The host had no memory for a packet, until then.
    memory_retry_at: Option<Instant>,
    now: Instant,
    noise: Random,
    received_octets: u64,
    statistics: Statistics,
}

/// Octet counters of a serial line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineUse {
    /// Octets sent, framing included.
    pub sent_octets: u64,
    /// How long the line was busy with them.
    pub sending: Duration,
    /// Octets received, framing included.
    pub received_octets: u64,
    /// How long a line of our rate was busy with them.
    pub receiving: Duration,
}

impl Serial {
    /// Opens the tty and makes it raw.
    pub fn open(config: SerialConfig) -> Result<Serial, OpenError> {
        let port = Place::open(&config.path, config.baud)
            .map_err(|e| OpenError::device(&config.path, "cannot open the serial line", e))?;
        Ok(Serial::new(port, config))
    }
    /// Uses a tty that is open already; `config.path` is only its name.
    pub fn adopt(descriptor: OwnedFd, config: SerialConfig) -> Result<Serial, OpenError> {
        let port = Place::adopt(descriptor, config.baud)
            .map_err(|e| OpenError::device(&config.path, "cannot use the serial line", e))?;
        Ok(Serial::new(port, config))
    }
    fn new(port: Place, config: SerialConfig) -> Serial {
        let role = match (config.offer.and_then(SerialOffer::reply), config.ask) {
            (Some(reply), _) => Role::Offers(reply),
            (None, true) => Role::Asks,
            (None, false) => Role::Addressed,
        };
        Serial {
            port,
            framer: Framer::new(config.framing, config.mtu_bytes.max(RECEIVE_BYTES), role),
            queue: VecDeque::new(),
            pace: Pace::new(config.baud),
            output: Vec::with_capacity(CHUNK_OCTETS),
            blocked: false,
            memory_retry_at: None,
            now: Instant::ZERO,
            noise: Random::from_number(config.seed),
            received_octets: 0,
            statistics: Statistics::default(),
            config,
        }
    }
    /// Counters of the line.
    pub fn line_use(&self) -> LineUse {
        let sent_octets = self.pace.octets();
        LineUse {
            sent_octets,
            sending: self.pace.time(sent_octets),
            received_octets: self.received_octets,
            receiving: self.pace.time(self.received_octets),
        }
    }

    /// Moves octets from the queue over the line into the tty, as far as the time and the tty allow.
    fn pump(&mut self) {
        self.flush();
        while !self.blocked {
            if let Some(octet) = self.pace.finish(self.now) {
                self.output.push(octet);
                if self.output.len() >= CHUNK_OCTETS {
                    self.flush();
                    continue;
                }
            }
            if !self.pace.is_free() {
                break;
            }
            if self.framer.is_ready(self.now)
                && let Some(packet) = self.queue.pop_front()
            {
                self.framer.send(&packet, self.now);
            }
            match self.framer.next_octet(self.pace.begins_at(self.now)) {
                Some(octet) => self.pace.begin(octet, self.now),
                None => {
                    self.pace.rest();
                    break;
                }
            }
        }
        self.flush();
    }
    fn flush(&mut self) {
        if self.output.is_empty() {
            self.blocked = false;
            return;
        }
        let count = self.port.write(&self.output);
        self.output.drain(..count.min(self.output.len()));
        self.blocked = !self.output.is_empty();
    }
    fn hand_up(&mut self, pool: &mut Pool, batch: &mut Batch) -> usize {
        let mut count = 0;
        while !batch.is_full()
            && let Some(bytes) = self.framer.front()
        {
            let Some(mut packet) = pool.take(bytes.len()) else {
                // It stays in its buffer, so that the buffers fill and REQ is left unanswered (MIT §5.3).
                self.memory_retry_at = Some(self.now + MEMORY_RETRY);
                return count;
            };
            packet.append(bytes);
            self.statistics = self.statistics.with_received(packet.len());
            self.framer.pop();
            if let Err(packet) = batch.push(packet) {
                pool.give(packet);
                break;
            }
            count += 1;
        }
        self.memory_retry_at = None;
        count
    }
    fn spoiled(&mut self, octet: u8) -> u8 {
        match self.config.noise > 0.0 && self.noise.public_chance(self.config.noise) {
            true => octet ^ (1 + self.noise.public_below(255) as u8),
            false => octet,
        }
    }
}

impl Device for Serial {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        if frame.len() > self.config.mtu_bytes {
            self.statistics = self.statistics.with_discarded(Discard::TooLong);
            return Ok(());
        }
        if self.queue.len() >= QUEUE_PACKETS {
            self.statistics.full += 1;
            return Err(Full);
        }
        let mut packet = vec![0; frame.len()];
        if crate::offload::complete(frame, &mut packet).is_none() {
            self.statistics = self.statistics.with_discarded(Discard::Framing);
            return Ok(());
        }
        self.statistics = self.statistics.with_transmitted(packet.len());
        self.queue.push_back(packet);
        self.pump();
        Ok(())
    }
}

impl Driver for Serial {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<usize> {
        let mut count = self.hand_up(pool, batch);
        for _ in 0..READS {
            if batch.is_full() {
                break;
            }
            let mut octets = [0; CHUNK_OCTETS];
            let read = self.port.read(&mut octets)?;
            self.received_octets += read as u64;
            for octet in octets.iter().take(read) {
                let octet = self.spoiled(*octet);
                self.framer.receive(octet, self.now);
                if self.framer.front().is_some() {
                    count += self.hand_up(pool, batch);
                }
            }
            if read < CHUNK_OCTETS {
                break;
            }
        }
        self.pump();
        Ok(count)
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.port.as_fd())
    }
    fn wants_write(&self) -> bool {
        // The descriptor is a watch of its own, which is readable when the tty has room again.
        false
    }
    fn has_received(&self) -> bool {
        self.framer.front().is_some() && self.memory_retry_at.is_none_or(|until| until <= self.now)
    }
    fn can_transmit(&self) -> bool {
        self.queue.len() < QUEUE_PACKETS
    }
    fn deadline(&self, _: Instant) -> Option<Instant> {
        let pace = self.pace.deadline(self.framer.following_octets()).filter(|_| !self.blocked);
        // Control octets wait while the tty is full.
        let framer = self.framer.deadline().filter(|at| !self.blocked || *at > self.now);
        [pace, framer, self.memory_retry_at].into_iter().flatten().min()
    }
    fn advance(&mut self, now: Instant) {
        self.now = now;
        self.framer.timeout(now);
        self.pump();
    }
    fn frame_format(&self) -> FrameFormat {
        FrameFormat::Ip
    }
    fn mtu_bytes(&self) -> usize {
        self.config.mtu_bytes
    }
    fn describe(&self) -> String {
        let SerialConfig { path, baud, framing, mtu_bytes, .. } = &self.config;
        let framing = match framing {
            Framing::Slip => "SLIP",
            Framing::Llp => "LLP",
        };
        let other = self.port.other_end().map(|name| format!(", other end {name}")).unwrap_or_default();
        let down = if self.port.is_up() { "" } else { ", hung up" };
        format!("serial {path}{other}, {baud} baud, {framing}, MTU {mtu_bytes}{down}")
    }
    fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics;
        self.framer.count(&mut statistics);
        statistics
    }
    fn take_offer(&mut self) -> Option<AddressOffer> {
        self.framer.take_offer()
    }
    fn reopen(&mut self) -> Result<(), NotBack> {
        self.port.reopen()
    }
}
