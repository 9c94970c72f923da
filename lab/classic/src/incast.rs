//! Many servers that answer at once.

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint};
use inhost_sim::{LinkConfig, QueueConfig, QueueLimit, WhenFull};
use inhost_socket::Host;
use inhost_stack::{ListenOptions, TcpConfig};
use serde::{Deserialize, Serialize};

use crate::common::{
    CongestionControl, FRAME_BYTES, SEGMENT_BYTES, line, mbps, milliseconds, percent, tcp_of_today, wire,
};
use crate::star::{Star, read_all, text, write_all};
use crate::{Measured, measured};
use inhost_sim::setup::{SetupError, failed, within};

/// Bytes of a request.
const REQUEST_BYTES: usize = 8;
/// Packets arrive with a jitter of so small a part of a link's delay, so that seeds differ.
const JITTER: u64 = 10;
/// Most time for a block.
const BLOCK_LIMIT: Duration = Duration::from_secs(60);

/// How hosts recover losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Recovery {
    /// SACK and three duplicate acknowledgments, then the timer: TCP of the time in which incast was described.
    Classic,
    /// All that the stack has: RACK and tail loss probes (RFC 8985), pacing.
    Today,
}

/// A client reads a block that is striped over many servers, which all answer at once through one switch port with a small
/// buffer. The block is done when the slowest server is. With many servers whole windows are lost, and only the
/// retransmission timer helps: goodput collapses by the ratio of the timer's minimum to the time of a block, and a small
/// minimum restores it (V. Vasudevan et al., "A (In)Cast of Thousands", CMU-PDL-09-101, and SIGCOMM 2009).
///
/// Gives `goodput_mbps`, `goodput_percent` of the port, `block_ms` (mean), `timeouts` and `dropped` (frames) of all blocks.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Incast {
    /// Servers; 1 to 128. Default: 16.
    pub servers: u32,
    /// Bytes of a block, over all servers; 1,000 to 16,777,216. Default: 1,048,576.
    pub block_bytes: u32,
    /// Blocks, one after the other; 1 to 1,000. Default: 10.
    pub blocks: u32,
    /// Rate of all links, in Mbit/s; 1 to 10,000. Default: 1,000.
    pub port_mbps: f64,
    /// Bytes that may wait at the client's port; 1,514 to 16,777,216. Default: 65,536.
    pub buffer_bytes: u32,
    /// Round trip without a queue, in milliseconds; 0.01 to 100. Default: 0.1.
    pub round_trip_ms: f64,
    /// Least margin of the retransmission timer above the round trip (`min_retransmission_timeout`), in milliseconds; 0.1
    /// to 10,000. Default: 200. Delayed acknowledgments are as long at most as half of it.
    pub min_timeout_ms: f64,
    /// How losses are recovered. Default: `classic`.
    pub recovery: Recovery,
}

impl Default for Incast {
    fn default() -> Self {
        Incast {
            servers: 16,
            block_bytes: 1 << 20,
            blocks: 10,
            port_mbps: 1000.0,
            buffer_bytes: 65_536,
            round_trip_ms: 0.1,
            min_timeout_ms: 200.0,
            recovery: Recovery::Classic,
        }
    }
}

impl Incast {
    pub(crate) fn run(&self, seed: u64) -> Result<Measured, SetupError> {
        self.check()?;
        let mut star = Star::new(seed);
        let quarter = milliseconds(self.round_trip_ms / 4.0);
        let queue = QueueConfig {
            limit: QueueLimit::Bytes(self.buffer_bytes as usize),
            when_full: WhenFull::Drop,
            ..QueueConfig::default()
        };
        let port = LinkConfig { queue, ..line(self.port_mbps, quarter) };
        let client = star.add(self.tcp(), wire(quarter), port)?;
        let share = (self.block_bytes / self.servers).max(1) as usize;
        let mut servers = Vec::new();
        for _ in 0..self.servers {
            let up = LinkConfig { jitter: quarter.divided_by(JITTER), ..line(self.port_mbps, quarter) };
            let server = star.add(self.tcp(), up, wire(quarter))?;
            let listener =
                star.host(server).listen(star.at(server), ListenOptions::default()).map_err(failed)?;
            star.spawn(server, async move {
                let stream = listener.accept().await.map_err(text)?;
                let answer = vec![1; share];
                loop {
                    read_all(&stream, REQUEST_BYTES).await?;
                    write_all(&stream, &answer).await?;
                }
            });
            servers.push((server, star.at(server)));
        }
        let spent = Rc::new(Cell::new(None));
        let at = servers.iter().map(|&(_, at)| at).collect();
        star.spawn(client, read_blocks(star.host(client), at, share, self.blocks, spent.clone()));
        let done = spent.clone();
        star.run_until(BLOCK_LIMIT.times(u64::from(self.blocks)), move |_| done.get().is_some())?;
        let Some(time) = spent.get() else { return Err(failed("blocks took too long")) };
        let timeouts = servers
            .iter()
            .flat_map(|&(server, _)| star.connections(server))
            .map(|info| f64::from(info.timeouts));
        let bytes = share as u64 * u64::from(self.servers) * u64::from(self.blocks);
        let goodput_mbps = mbps(bytes, time);
        let capacity_mbps = self.port_mbps * f64::from(SEGMENT_BYTES) / FRAME_BYTES as f64;
        Ok(measured([
            ("goodput_mbps", goodput_mbps),
            ("goodput_percent", percent(goodput_mbps, capacity_mbps)),
            ("block_ms", time.as_secs_f64() * 1e3 / f64::from(self.blocks)),
            ("timeouts", timeouts.sum()),
            ("dropped", star.port(client).overflowed as f64),
        ]))
    }
    fn check(&self) -> Result<(), SetupError> {
        within("servers", self.servers, 1..=128)?;
        within("block_bytes", self.block_bytes, 1000..=16 << 20)?;
        within("blocks", self.blocks, 1..=1000)?;
        within("port_mbps", self.port_mbps, 1.0..=10_000.0)?;
        within("buffer_bytes", self.buffer_bytes, 1514..=16 << 20)?;
        within("round_trip_ms", self.round_trip_ms, 0.01..=100.0)?;
        within("min_timeout_ms", self.min_timeout_ms, 0.1..=10_000.0)
    }
    fn tcp(&self) -> TcpConfig {
        let mut tcp = tcp_of_today(CongestionControl::NewReno);
        tcp.min_retransmission_timeout = milliseconds(self.min_timeout_ms);
        let delay = tcp.acknowledgment_delay;
        tcp.acknowledgment_delay = delay.min(milliseconds(self.min_timeout_ms / 2.0));
        // A window that survives from block to block, as in the papers' stacks at a busy time.
        tcp.restart_after_idle = false;
        if self.recovery == Recovery::Classic {
            tcp.rack = false;
            tcp.tail_loss_probe = false;
            tcp.rto_restart = false;
            tcp.pacing = false;
        }
        tcp
    }
}

/// Reads blocks, each from all servers, and notes how long all took together.
async fn read_blocks(
    host: Host,
    servers: Vec<Endpoint>,
    share: usize,
    blocks: u32,
    spent: Rc<Cell<Option<Duration>>>,
) -> Result<(), String> {
    let mut streams = Vec::new();
    for at in servers {
        streams.push(host.connect(at).await.map_err(text)?);
    }
    let since = host.now();
    for _ in 0..blocks {
        for stream in &streams {
            write_all(stream, &[1; REQUEST_BYTES]).await?;
        }
        for stream in &streams {
            read_all(stream, share).await?;
        }
    }
    spent.set(Some(host.now().since(since)));
    // The connections stay, so that their figures can be read.
    std::future::pending().await
}
