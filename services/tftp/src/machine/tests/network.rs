//! Two ends and what is between them.

use inhost_base::Duration;

use super::super::*;
use crate::codec::HEADER_BYTES;

pub const CLIENT: Endpoint =
    Endpoint { address: inhost_base::IpAddr::V4(inhost_base::Ipv4Addr::new(10, 9, 0, 1)), port: 2000 };
pub const SERVER: Endpoint =
    Endpoint { address: inhost_base::IpAddr::V4(inhost_base::Ipv4Addr::new(10, 9, 0, 2)), port: 3000 };
const STEPS: usize = 3_000_000;

/// Octets without a short period, with line ends among them.
pub fn pattern(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Result of a run.
#[derive(Debug)]
pub struct Report {
    pub outcomes: [Option<Result<Summary, TransferError>>; 2],
    pub data_sent: u64,
    pub lost: u64,
    arrived: Vec<u8>,
}

impl Report {
    pub fn is_good(&self, file: &[u8]) -> bool {
        let bytes = file.len() as u64;
        self.arrived == file
            && self.outcomes.iter().all(|outcome| matches!(outcome, Some(Ok(s)) if s.file_bytes == bytes))
    }
}

/// It loses, repeats, delays and so reorders as its seed says. Chances are per mille.
pub struct Network {
    random: u64,
    pub loss: u64,
    pub copies: u64,
    pub jitter_ms: u64,
    pub delay_us: u64,
    /// One packet, by its number, is so late.
    pub late: Option<(u64, Duration)>,
    pub client: Settings,
    pub server: Settings,
    now: Instant,
    sent: u64,
    lost: u64,
    under_way: std::collections::BTreeMap<(Instant, u64), (bool, Vec<u8>)>,
}

impl Network {
    pub fn new(seed: u64) -> Network {
        let give_up_after = Duration::from_secs(300);
        let settings = Settings { give_up_after, dally: Duration::from_secs(60), ..Settings::default() };
        Network {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            loss: 0,
            copies: 0,
            jitter_ms: 0,
            delay_us: 2_000,
            late: None,
            client: settings,
            server: settings,
            now: Instant::from_millis(1),
            sent: 0,
            lost: 0,
            under_way: Default::default(),
        }
    }
    pub fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % limit.max(1)
    }
    fn send(&mut self, to_server: bool, bytes: &[u8]) {
        let copies = 1 + usize::from(self.below(1_000) < self.copies);
        for _ in 0..copies {
            self.sent += 1;
            if self.below(1_000) < self.loss {
                self.lost += 1;
                continue;
            }
            let mut delay = Duration::from_micros(self.delay_us);
            delay += Duration::from_millis(self.below(self.jitter_ms + 1));
            if let Some((number, late)) = self.late
                && number == self.sent
            {
                delay += late;
            }
            self.under_way.insert((self.now + delay, self.sent), (to_server, bytes.to_vec()));
        }
    }

    /// Runs a transfer of `file` to its end.
    pub fn run(&mut self, request: Request, file: &[u8]) -> Report {
        let mut client = Transfer::ask(request.clone(), SERVER, self.client, self.now);
        let mut server: Option<Transfer> = None;
        let (mut given, mut arrived, mut data_sent) = (0, Vec::new(), 0);
        let limits = Limits { block_size: 1428, window: 64 };
        let mut packet = Vec::new();
        for _ in 0..STEPS {
            for (to_server, end) in [(true, Some(&mut client)), (false, server.as_mut())] {
                let Some(end) = end else { continue };
                if end.wants() > 0 && (given <= file.len()) {
                    let piece = &file[given..file.len().min(given + 50_000)];
                    end.supply(piece);
                    given += piece.len().max(1);
                }
                while end.transmit(&mut packet, self.now).is_some() {
                    data_sent += u64::from(packet[1] == 3 && packet.len() >= HEADER_BYTES);
                    self.send(to_server, &packet);
                }
                if let Some(piece) = end.file() {
                    arrived.append(piece);
                }
                if end.is_whole() {
                    end.stored(self.now);
                    // It is acknowledged in the next step.
                    self.send(!to_server, &[]);
                }
            }
            let is_over = client.is_over() && server.as_ref().is_none_or(Transfer::is_over);
            if is_over {
                break;
            }
            let deadlines = [client.deadline(), server.as_ref().and_then(Transfer::deadline)];
            let next = self.under_way.first_key_value().map(|(&(at, _), _)| at);
            let Some(at) = deadlines.into_iter().flatten().chain(next).min() else { break };
            self.now = self.now.max(at);
            if let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to_server, bytes) = entry.remove();
                match (to_server, &mut server) {
                    (false, _) => client.datagram(SERVER, &bytes, self.now),
                    (true, Some(server)) => server.datagram(CLIENT, &bytes, self.now),
                    (true, None) => {
                        let Ok(Packet::Request(asked)) = Packet::parse(&bytes) else { continue };
                        let size = Some(file.len() as u64);
                        let answered = Transfer::answer(asked, CLIENT, size, &limits, self.server, self.now);
                        server = Some(answered);
                    }
                }
            }
            client.timeout(self.now);
            server.iter_mut().for_each(|server| server.timeout(self.now));
        }
        let outcomes =
            [client.outcome().cloned(), server.as_ref().and_then(|server| server.outcome().cloned())];
        Report { outcomes, data_sent, lost: self.lost, arrived }
    }
}
