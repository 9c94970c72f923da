//! The delay of small requests beside a bulk transfer.

use std::cell::RefCell;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint};
use inhost_sim::LinkConfig;
use inhost_socket::Host;
use inhost_stack::{ListenOptions, TcpConfig};
use inhost_tcp::EcnMode;
use serde::{Deserialize, Serialize};

use crate::common::{
    CongestionControl, FRAME_BYTES, QueueDiscipline, SEGMENT_BYTES, line, mbps, milliseconds, percent,
    percentile, tcp_of_today, wire,
};
use crate::star::{Star, read_all, text, write_all};
use crate::{Measured, measured};
use inhost_sim::setup::{SetupError, failed, within};

/// Bytes of a request and of its answer.
const REQUEST_BYTES: usize = 100;
/// Requests begin, and the measurement with them, when bulk transfers have filled the queue.
const WARM_UP: Duration = Duration::from_secs(5);

/// Bulk transfers fill the queue of a bottleneck, and small requests wait in it (J. Gettys, K. Nichols, "Bufferbloat: Dark
/// Buffers in the Internet", ACM Queue 9(11), 2011; RFC 7567). A full buffer delays each packet by its size over the
/// bottleneck's rate. The cures are a small buffer, CoDel (RFC 8289), FQ-CoDel (RFC 8290), both with ECN (RFC 3168) or by
/// drops, and a sender that is paced below the bottleneck's rate.
///
/// A host at home takes the bulk transfers from hosts beyond the bottleneck, and sends requests of 100 bytes to another one
/// there, whose answers of 100 bytes come back through the same queue.
///
/// Gives `request_mean_ms`, `request_p50_ms`, `request_p95_ms`, `request_max_ms`, `round_trip_ms` without a queue,
/// `buffer_ms` (how long a full buffer takes), `bulk_mbps`, `bulk_percent` of the bottleneck, `dropped_percent` of frames,
/// `marked_percent`, `requests`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Bufferbloat {
    /// Discipline of the bottleneck's queue. Default: `tail-drop`.
    pub queue: QueueDiscipline,
    /// Packets that may wait at the bottleneck; 1 to 10,000. Default: 256.
    pub buffer_packets: u32,
    /// Hosts ask for ECN and use it. Default: no.
    pub ecn: bool,
    /// Bulk transfers leave no faster than this together, in Mbit/s of payload; 0 for no limit, to 1,000. Default: 0.
    pub pace_mbps: f64,
    /// Congestion control of all. Default: `cubic`.
    pub congestion: CongestionControl,
    /// Bulk transfers; 0 to 20. Default: 1.
    pub bulk_flows: u32,
    /// Rate of the bottleneck, in Mbit/s; 0.1 to 1,000. Default: 5.
    pub bottleneck_mbps: f64,
    /// Round trip without a queue, in milliseconds; 1 to 1,000. Default: 40.
    pub round_trip_ms: f64,
    /// From an answer to the next request, in milliseconds; 1 to 10,000. Default: 50.
    pub think_ms: f64,
    /// Time that is measured, in seconds; 1 to 600. Default: 30.
    pub duration_s: u32,
}

impl Default for Bufferbloat {
    fn default() -> Self {
        Bufferbloat {
            queue: QueueDiscipline::TailDrop,
            buffer_packets: 256,
            ecn: false,
            pace_mbps: 0.0,
            congestion: CongestionControl::Cubic,
            bulk_flows: 1,
            bottleneck_mbps: 5.0,
            round_trip_ms: 40.0,
            think_ms: 50.0,
            duration_s: 30,
        }
    }
}

impl Bufferbloat {
    pub(crate) fn run(&self, seed: u64) -> Result<Measured, SetupError> {
        self.check()?;
        let mut star = Star::new(seed);
        let one_way = milliseconds(self.round_trip_ms / 2.0);
        let bottleneck = LinkConfig {
            queue: self.queue.queue(self.buffer_packets),
            ..line(self.bottleneck_mbps, Duration::ZERO)
        };
        let home = star.add(self.tcp(), wire(Duration::ZERO), bottleneck)?;
        star.serve_sink(home)?;
        let server = star.add(self.tcp(), wire(one_way), wire(one_way))?;
        for _ in 0..self.bulk_flows {
            let sender = star.add(self.tcp(), wire(one_way), wire(one_way))?;
            let after = star.some_time(Duration::from_secs(1));
            star.start_bulk(sender, home, after);
        }
        star.pass(WARM_UP)?;
        let times: Rc<RefCell<Vec<f64>>> = Rc::default();
        serve_answers(&star, server)?;
        let requests = request(star.host(home), star.at(server), milliseconds(self.think_ms), times.clone());
        star.spawn(home, requests);
        let (bytes, port) = (star.received().total(), star.port(home));
        let time = Duration::from_secs(u64::from(self.duration_s));
        star.pass(time)?;
        let (bytes, after) = (star.received().total() - bytes, star.port(home));
        let mut times = times.take();
        times.sort_by(f64::total_cmp);
        let bulk_mbps = mbps(bytes, time);
        let frame_ms = FRAME_BYTES as f64 * 8.0 / 1e3 / self.bottleneck_mbps;
        let capacity_mbps = self.bottleneck_mbps * f64::from(SEGMENT_BYTES) / FRAME_BYTES as f64;
        let frames = (after.sent - port.sent) as f64;
        let dropped = after.overflowed + after.dropped_early - port.overflowed - port.dropped_early;
        Ok(measured([
            ("request_mean_ms", times.iter().sum::<f64>() / times.len().max(1) as f64),
            ("request_p50_ms", percentile(&times, 50.0)),
            ("request_p95_ms", percentile(&times, 95.0)),
            ("request_max_ms", percentile(&times, 100.0)),
            ("requests", times.len() as f64),
            ("round_trip_ms", self.round_trip_ms),
            ("buffer_ms", frame_ms * f64::from(self.buffer_packets)),
            ("bulk_mbps", bulk_mbps),
            ("bulk_percent", percent(bulk_mbps, capacity_mbps)),
            ("dropped_percent", percent(dropped as f64, frames)),
            ("marked_percent", percent((after.marked - port.marked) as f64, frames)),
        ]))
    }
    fn check(&self) -> Result<(), SetupError> {
        within("buffer_packets", self.buffer_packets, 1..=10_000)?;
        within("pace_mbps", self.pace_mbps, 0.0..=1000.0)?;
        within("bulk_flows", self.bulk_flows, 0..=20)?;
        within("bottleneck_mbps", self.bottleneck_mbps, 0.1..=1000.0)?;
        within("round_trip_ms", self.round_trip_ms, 1.0..=1000.0)?;
        within("think_ms", self.think_ms, 1.0..=10_000.0)?;
        within("duration_s", self.duration_s, 1..=600)
    }
    fn tcp(&self) -> TcpConfig {
        let mut tcp = tcp_of_today(self.congestion);
        tcp.ecn = if self.ecn { EcnMode::Request } else { EcnMode::Off };
        if self.pace_mbps > 0.0 {
            let each = self.pace_mbps * 1e6 / 8.0 / f64::from(self.bulk_flows.max(1));
            tcp.max_pacing_rate_bytes_per_second = Some(each.max(1.0) as u64);
        }
        tcp
    }
}

/// Answers each request.
fn serve_answers(star: &Star, server: usize) -> Result<(), SetupError> {
    let listener = star.host(server).listen(star.at(server), ListenOptions::default()).map_err(failed)?;
    star.spawn(server, async move {
        let stream = listener.accept().await.map_err(text)?;
        loop {
            read_all(&stream, REQUEST_BYTES).await?;
            write_all(&stream, &[1; REQUEST_BYTES]).await?;
        }
    });
    Ok(())
}

/// Sends one request after the other, and notes how long each takes.
async fn request(
    host: Host,
    to: Endpoint,
    think: Duration,
    times: Rc<RefCell<Vec<f64>>>,
) -> Result<(), String> {
    let stream = host.connect(to).await.map_err(text)?;
    loop {
        host.sleep(think).await;
        let since = host.now();
        write_all(&stream, &[1; REQUEST_BYTES]).await?;
        read_all(&stream, REQUEST_BYTES).await?;
        times.borrow_mut().push(host.now().since(since).as_secs_f64() * 1e3);
    }
}
