//! Datagrams at a fixed rate to a consumer with a declared cost for each: what arrives when once, twice and four times
//! as many come as can be worked off.

use super::place::{KERNEL, PROCESS};
use inhost_base::Instant;
use inhost_runtime::Clock;
use std::net::UdpSocket;
use std::time::Duration;

/// Bytes of a datagram.
const DATAGRAM_BYTES: usize = 200;
/// The consumer answers each such number of datagrams with their count.
const DATAGRAMS_AN_ANSWER: u64 = 32;
/// Datagrams under way while the capacity is found.
const WINDOW: u64 = 4 * DATAGRAMS_AN_ANSWER;
/// Without an answer for so long, what is under way counts as lost.
const STALL: Duration = Duration::from_millis(50);
/// The longest wait for the first answer.
const STARTING: Duration = Duration::from_secs(5);
/// What a queue of the longest kind takes to be worked off.
const DRAINING: Duration = Duration::from_millis(30);
/// Datagrams sent between two looks at what came back.
const BURST: u64 = 16;
/// Loads beyond the capacity, with the names of their figures.
const LOADS: [(&str, &str, f64); 3] =
    [("goodput-1", "offered-1", 1.0), ("goodput-2", "offered-2", 2.0), ("goodput-4", "offered-4", 4.0)];

/// The sender, and the replies that it received.
struct Flood {
    socket: UdpSocket,
    clock: Clock,
    began: Instant,
    sent: u64,
    /// When the last answer came, in seconds.
    received_at: f64,
    /// The count in it.
    received: u64,
}

/// All phases, of `phase` each: the capacity in datagrams a second, and the goodput at each load in parts of it.
pub fn run(phase: Duration) -> Result<Vec<(String, f64)>, String> {
    let socket = UdpSocket::bind((KERNEL, 9)).map_err(|e| format!("port 9: {e}"))?;
    socket.connect((PROCESS, 9)).map_err(|e| e.to_string())?;
    socket.set_nonblocking(true).map_err(|e| e.to_string())?;
    let clock = Clock::start();
    let began = clock.now();
    let mut flood = Flood { socket, clock, began, sent: 0, received_at: 0.0, received: 0 };
    // The consumer's device may take a while to come up.
    while flood.received == 0 && flood.now() < STARTING.as_secs_f64() {
        flood.windowed(STALL);
    }
    flood.drain();
    let capacity = flood.goodput(phase, |flood| flood.windowed(phase));
    if capacity == 0.0 {
        return Err("the consumer does not answer".into());
    }
    let mut figures = vec![("capacity".to_owned(), capacity)];
    for (goodput, offered, factor) in LOADS {
        flood.drain();
        let mut sent = 0.0;
        let worked_off = flood.goodput(phase, |flood| sent = flood.paced(capacity * factor, phase));
        figures.push((goodput.into(), 100.0 * worked_off / capacity));
        figures.push((offered.into(), sent / capacity));
    }
    Ok(figures)
}

impl Flood {
    /// Seconds since the beginning.
    fn now(&self) -> f64 {
        self.clock.now().since(self.began).as_secs_f64()
    }
    /// As many as are answered.
    fn windowed(&mut self, length: Duration) {
        let until = self.now() + length.as_secs_f64();
        let mut answered = self.sent;
        while self.now() < until {
            let before = self.received;
            self.listen();
            answered += self.received - before;
            if self.now() - self.received_at > STALL.as_secs_f64() {
                answered = self.sent;
                self.received_at = self.now();
            }
            while self.sent - answered.min(self.sent) < WINDOW && self.send() {}
        }
    }
    /// So many a second; gives how many a second it really were.
    fn paced(&mut self, rate: f64, length: Duration) -> f64 {
        let (began, sent) = (self.now(), self.sent);
        loop {
            let age = self.now() - began;
            if age >= length.as_secs_f64() {
                return (self.sent - sent) as f64 / age;
            }
            let due = (age * rate) as u64;
            for _ in 0..due.saturating_sub(self.sent - sent).min(BURST) {
                self.send();
            }
            self.listen();
        }
    }
    /// Whether it went out; what the system has no room for is lost like what the device has none for.
    fn send(&mut self) -> bool {
        self.sent += 1;
        self.socket.send(&[0x5a; DATAGRAM_BYTES]).is_ok()
    }
    fn listen(&mut self) {
        let mut place = [0; 16];
        // A refusal, before the consumer has bound its port, is no answer either.
        while let Ok(8) = self.socket.recv(&mut place) {
            let count = u64::from_be_bytes(place[..8].try_into().unwrap_or_default());
            self.received = self.received.max(count);
            self.received_at = self.now();
        }
    }
    /// Lets the consumer work off what still waits.
    fn drain(&mut self) {
        let until = self.now() + DRAINING.as_secs_f64();
        while self.now() < until {
            self.listen();
        }
    }
    /// Datagrams worked off in a second of `phase`, by the last count that was said in it.
    fn goodput(&mut self, phase: Duration, load: impl FnOnce(&mut Flood)) -> f64 {
        let before = self.received;
        load(self);
        self.listen();
        (self.received - before) as f64 / phase.as_secs_f64()
    }
}
