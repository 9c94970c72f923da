//! Benchmark of the simulator: one long transfer.

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant};
use inhost_stack::{ListenOptions, StackConfig, TcpConfig};

use crate::link::LinkConfig;
use crate::network::{Network, Ran};
use crate::queue::{QueueConfig, QueueLimit};
use crate::scenario::{address, interface};

/// Rounds, which are never reached.
const ROUND_LIMIT: u64 = u64::MAX;
/// Bytes of a write and of a read.
const PIECE_BYTES: usize = 64 << 10;
/// Port of the receiver.
const PORT: u16 = 9;

/// Statistics of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transferred {
    /// Bytes received.
    pub bytes: u64,
    /// Segments sent by both ends.
    pub segments: u64,
    /// Rounds.
    pub rounds: u64,
    /// Time on the network's clock.
    pub virtual_time: Duration,
}

/// Sends `bytes` from one host to another over a link of `rate_bits_per_second` and 0.1 ms each way,
/// whose cards tell of frames every 20 us, with the checker on
/// when `checks`.
pub fn transfer(bytes: u64, rate_bits_per_second: Option<u64>, checks: bool) -> Result<Transferred, String> {
    let mut network = Network::new(Instant::ZERO, ROUND_LIMIT);
    if !checks {
        network.check_nothing();
    }
    let mut tcp = TcpConfig::default();
    tcp.send_buffer_limit_bytes = 1 << 20;
    tcp.receive_buffer_limit_bytes = 8 << 20;
    let hosts = [1, 2].map(|seed| {
        let mut config = StackConfig::default();
        config.tcp = tcp.clone();
        network.add_host(config, seed)
    });
    let queue = QueueConfig { limit: QueueLimit::Packets(4000), ..QueueConfig::default() };
    let coalescing = Duration::from_micros(20);
    let link = LinkConfig {
        rate_bits_per_second,
        queue,
        delay: Duration::from_micros(100),
        coalescing,
        ..LinkConfig::default()
    };
    let ends = hosts.map(|host| (host, interface(host, false, 1500)));
    network.join(ends, link, 3).map_err(|why| why.to_string())?;
    let at = Endpoint::new(address(1, false), PORT);
    let listener = network.host(1).listen(at, ListenOptions::default()).map_err(|why| why.to_string())?;
    let received = Rc::new(Cell::new(0));
    let counts = received.clone();
    let receiver = async move {
        let Ok(stream) = listener.accept().await else { return };
        let mut place = vec![0; PIECE_BYTES];
        while let Ok(count @ 1..) = stream.receive(&mut place).await {
            counts.set(counts.get() + count as u64);
        }
    };
    network.host(1).spawn(receiver).detach();
    let host = network.host(0).clone();
    let sender = async move {
        let Ok(stream) = host.connect(at).await else { return };
        let piece = vec![7; PIECE_BYTES];
        while stream.send(&piece, Default::default()).await.is_ok() {}
    };
    network.host(0).spawn(sender).detach();
    let ran = network.run(Duration::from_secs(3600), |_| received.get() >= bytes);
    if ran != Ran::Done {
        return Err(format!("{ran:?} after {} bytes: {:?}", received.get(), network.checker().violations()));
    }
    let sent = [0, 1].map(|end| network.statistics(0, end).sent);
    Ok(Transferred {
        bytes: received.get(),
        segments: sent.iter().sum(),
        rounds: network.rounds(),
        virtual_time: network.now().since(Instant::ZERO),
    })
}
