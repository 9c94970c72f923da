//! Small writes, Nagle's algorithm and delayed acknowledgments.

use std::cell::RefCell;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint};
use inhost_socket::Host;
use inhost_stack::ListenOptions;
use serde::{Deserialize, Serialize};

use crate::common::{CongestionControl, milliseconds, percentile, tcp_of_today, wire};
use crate::star::{Star, read_all, text, write_all};
use crate::{Measured, measured};
use inhost_sim::setup::{SetupError, failed, within};

/// Between two transactions, so that nothing of the last one is on its way.
const THINK: Duration = Duration::from_secs(1);
/// A transaction takes at most so long.
const TRANSACTION_LIMIT: Duration = Duration::from_secs(10);

/// A transaction whose request is two small writes: header and body. With Nagle's algorithm (RFC 896; RFC 9293 §3.7.4) the
/// second write waits for the acknowledgment of the first, and a delayed acknowledgment (RFC 1122 §4.2.3.2; RFC 9293
/// §3.8.6.3) waits for data to go with. So a transaction takes one round trip without Nagle's algorithm, two with it, and
/// the time of a delayed acknowledgment on top with both.
///
/// Gives `transaction_ms` (mean), `transaction_max_ms`, `law_ms`, `segments` (data segments of the client in a transaction).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Nagle {
    /// Nagle's algorithm at the client. Default: on.
    pub nagle: bool,
    /// How long the server delays acknowledgments, in milliseconds; 0 for not at all, to 500. Default: 200.
    pub delayed_ack_ms: f64,
    /// Round trip, in milliseconds; 1 to 1,000. Default: 10.
    pub round_trip_ms: f64,
    /// Bytes of each of both writes; 1 to 700. Default: 100.
    pub write_bytes: u32,
    /// Both writes in one. Default: no.
    pub one_write: bool,
    /// Transactions; 1 to 10,000. Default: 20.
    pub transactions: u32,
}

impl Default for Nagle {
    fn default() -> Self {
        Nagle {
            nagle: true,
            delayed_ack_ms: 200.0,
            round_trip_ms: 10.0,
            write_bytes: 100,
            one_write: false,
            transactions: 20,
        }
    }
}

impl Nagle {
    pub(crate) fn run(&self, seed: u64) -> Result<Measured, SetupError> {
        within("delayed_ack_ms", self.delayed_ack_ms, 0.0..=500.0)?;
        within("round_trip_ms", self.round_trip_ms, 1.0..=1000.0)?;
        within("write_bytes", self.write_bytes, 1..=700)?;
        within("transactions", self.transactions, 1..=10_000)?;
        let mut star = Star::new(seed);
        let one_way = milliseconds(self.round_trip_ms / 2.0);
        let mut tcp = tcp_of_today(CongestionControl::Cubic);
        tcp.nagle = self.nagle;
        // Neither a timeout nor a probe is to come before a delayed acknowledgment.
        tcp.min_retransmission_timeout = Duration::from_secs(1);
        tcp.tail_loss_probe = false;
        let client = star.add(tcp, wire(Duration::ZERO), wire(Duration::ZERO))?;
        let mut tcp = tcp_of_today(CongestionControl::Cubic);
        tcp.acknowledgment_delay = milliseconds(self.delayed_ack_ms);
        let server = star.add(tcp, wire(one_way), wire(one_way))?;

        let request_bytes = 2 * self.write_bytes as usize;
        let listener = star.host(server).listen(star.at(server), ListenOptions::default()).map_err(failed)?;
        star.spawn(server, async move {
            let stream = listener.accept().await.map_err(text)?;
            loop {
                read_all(&stream, request_bytes).await?;
                write_all(&stream, &[1; 1]).await?;
            }
        });
        let times: Rc<RefCell<Vec<f64>>> = Rc::default();
        star.spawn(client, transact(star.host(client), star.at(server), *self, times.clone()));
        let (count, limit) = (self.transactions as usize, THINK + TRANSACTION_LIMIT);
        let done = times.clone();
        let is_done = star.run_until(limit.times(count as u64), move |_| done.borrow().len() >= count)?;
        if !is_done {
            return Err(failed("transactions took too long"));
        }
        let mut times = times.take();
        let mean = times.iter().sum::<f64>() / count as f64;
        times.sort_by(f64::total_cmp);
        let segments = star.tally().of(client).sent_segments as f64 / count as f64;
        Ok(measured([
            ("transaction_ms", mean),
            ("transaction_p50_ms", percentile(&times, 50.0)),
            ("transaction_max_ms", percentile(&times, 100.0)),
            ("law_ms", self.law_ms()),
            ("segments", segments),
        ]))
    }
    fn law_ms(&self) -> f64 {
        match self.nagle && !self.one_write {
            true => 2.0 * self.round_trip_ms + self.delayed_ack_ms,
            false => self.round_trip_ms,
        }
    }
}

async fn transact(
    host: Host,
    to: Endpoint,
    setup: Nagle,
    times: Rc<RefCell<Vec<f64>>>,
) -> Result<(), String> {
    let stream = host.connect(to).await.map_err(text)?;
    let bytes = vec![1; setup.write_bytes as usize];
    let both = vec![1; 2 * setup.write_bytes as usize];
    for _ in 0..setup.transactions {
        host.sleep(THINK).await;
        let since = host.now();
        if setup.one_write {
            write_all(&stream, &both).await?;
        } else {
            write_all(&stream, &bytes).await?;
            // What a program computes between two writes: the first one has left by then.
            host.sleep(Duration::from_micros(10)).await;
            write_all(&stream, &bytes).await?;
        }
        read_all(&stream, 1).await?;
        times.borrow_mut().push(host.now().since(since).as_secs_f64() * 1e3);
    }
    Ok(())
}
