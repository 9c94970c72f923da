//! One connection: its figures, its verdict, and how it went of late.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::rc::Rc;

use inhost_base::{Duration, Instant, Key};
use inhost_explain::{Known, Options, Verdict};
use inhost_record::{Recorder, Selection, Writer};
use inhost_runtime::control;
use inhost_socket::Host;
use inhost_stack::{SocketId, SocketInfo};
use inhost_tcp::{Info, Ledgers};
use serde::Serialize;
use serde_json::{Value, json};

use crate::row::id_text;

/// Connections that are sampled at a time.
const SAMPLED: usize = 16;
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// Ten minutes of samples.
const KEPT: usize = 6000;
/// A connection that nobody has asked for is no longer sampled.
const FORGOTTEN: Duration = Duration::from_secs(30);

/// A socket's name as a number.
pub(crate) fn socket(text: &str) -> Option<SocketId> {
    Some(SocketId(Key::from_bits(u64::from_str_radix(text, 16).ok()?)))
}

/// What the host knows of a connection now; none when it is over.
pub(crate) fn info(host: &Host, socket: SocketId) -> Option<SocketInfo> {
    host.with_stack(|stack, now| stack.instruments().info(socket, now)).filter(|info| info.tcp.is_some())
}

/// All figures of a connection.
pub(crate) fn figures(info: &SocketInfo) -> Value {
    let mut whole = control::socket(info);
    let tcp = whole["tcp"].take();
    let causes = |side: &str| -> Vec<Value> {
        let times: Vec<(&String, u64)> = tcp[side]["ledger_ns"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(cause, ns)| (cause, ns.as_u64().unwrap_or(0)))
            .collect();
        let all = times.iter().map(|(_, ns)| *ns as f64).sum::<f64>().max(1.0);
        let mut spent: Vec<_> = times.into_iter().filter(|(_, ns)| *ns > 0).collect();
        spent.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        spent.into_iter().map(|(cause, ns)| json!([cause, 100.0 * ns as f64 / all, ns])).collect()
    };
    json!({
        "id": id_text(info.socket.0.to_bits()),
        "local": whole["local"],
        "remote": whole["remote"],
        "state": whole["state"],
        "age_ns": whole["age_ns"],
        "causes": {"send": causes("send"), "receive": causes("receive")},
        "tcp": tcp,
    })
}

/// The frames of a connection that the recorder holds, as pcapng.
pub(crate) fn frames(recorder: &Recorder, info: &SocketInfo) -> io::Result<Vec<u8>> {
    let Some(remote) = info.remote else { return Ok(Vec::new()) };
    let (own, ends) = (info.socket.0, (info.local, remote));
    let mut writer = Writer::new(Vec::new())?;
    let selection = Selection::of([info.local, remote]);
    // Of other sockets' events nothing is wanted.
    recorder.write(&mut writer, &mut 0, &selection, &|socket| (socket == own).then_some(ends))?;
    Ok(writer.into_inner())
}

/// The verdict on a connection, from what the host knows and what the recorder holds. `now_ns` is the time of both, in
/// nanoseconds since 1970. It takes some milliseconds.
pub(crate) fn verdict(info: &SocketInfo, frames: &[u8], now_ns: Option<u64>) -> Result<Verdict, String> {
    let (Some(remote), Some(tcp)) = (info.remote, &info.tcp) else {
        return Err("not a connection".to_owned());
    };
    let known = Known { now_ns, ..Known::new(info.local.into(), remote.into(), tcp) };
    inhost_explain::live(&known, frames, &Options::default()).map_err(|why| why.to_string())
}

/// A connection at one moment. Bytes count from the beginning of the stream.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    at_ns: u64,
    sent: u64,
    acknowledged: u64,
    /// Up to where the peer's window lets it send.
    edge: u64,
    received: u64,
    in_flight: u32,
    congestion_window: u32,
    peer_window: u32,
    rtt_ns: Option<u64>,
    retransmitted: u32,
    /// What most of the time since the sample before was waited for.
    cause: &'static str,
    receive_cause: &'static str,
}

impl Sample {
    /// A sample is always taken at the same place of a round, so that what holds then is not what holds most of the time: the
    /// ledgers of the sample `before` tell.
    fn new(at: Instant, info: &Info, before: &Ledgers) -> Sample {
        let spent = info.ledgers.send.iter().map(|(cause, time)| (cause, time - before.send.of(cause)));
        let cause = spent.max_by_key(|(_, time)| *time).map_or(info.send_cause, |(cause, _)| cause);
        let spent = info.ledgers.receive.iter().map(|(cause, time)| (cause, time - before.receive.of(cause)));
        let receive_cause =
            spent.max_by_key(|(_, time)| *time).map_or(info.receive_cause, |(cause, _)| cause);
        let outstanding = u64::from(info.send_next.since(info.send_unacknowledged));
        Sample {
            at_ns: at.as_nanos(),
            sent: info.sent_bytes + outstanding,
            acknowledged: info.sent_bytes,
            edge: info.sent_bytes + u64::from(info.send_window_bytes),
            received: info.received_bytes,
            in_flight: info.in_flight_bytes,
            congestion_window: info.congestion_window_bytes,
            peer_window: info.send_window_bytes,
            rtt_ns: info.smoothed_round_trip.map(Duration::as_nanos),
            retransmitted: info.retransmitted_segments,
            cause: cause.text(),
            receive_cause: receive_cause.text(),
        }
    }
}

struct Looked {
    asked: Instant,
    samples: VecDeque<Sample>,
    /// At the last sample.
    ledgers: Option<Ledgers>,
}

/// Samples of the connections that somebody looks at.
pub(crate) struct Sampler {
    host: Host,
    looked: RefCell<BTreeMap<SocketId, Looked>>,
    runs: Cell<bool>,
}

impl Sampler {
    pub(crate) fn new(host: &Host) -> Rc<Sampler> {
        Rc::new(Sampler { host: host.clone(), looked: RefCell::default(), runs: Cell::new(false) })
    }
    /// The samples of a connection later than `after_ns`; from now on it is sampled. None where too many are.
    pub(crate) fn samples(self: &Rc<Sampler>, socket: SocketId, after_ns: u64) -> Option<Vec<Sample>> {
        let now = self.host.now();
        let mut looked = self.looked.borrow_mut();
        if looked.len() >= SAMPLED && !looked.contains_key(&socket) {
            return None;
        }
        let of = looked.entry(socket).or_insert_with(|| Looked {
            asked: now,
            samples: VecDeque::new(),
            ledgers: None,
        });
        of.asked = now;
        let found = of.samples.iter().filter(|sample| sample.at_ns > after_ns).cloned().collect();
        drop(looked);
        if !self.runs.replace(true) {
            let sampler = self.clone();
            self.host.spawn(async move { sampler.run().await }).detach();
        }
        Some(found)
    }
    async fn run(&self) {
        while self.sample() {
            self.host.sleep(SAMPLE_EVERY).await;
        }
        self.runs.set(false);
    }
    /// Takes one sample of each; false when nobody looks any more.
    fn sample(&self) -> bool {
        let mut looked = self.looked.borrow_mut();
        self.host.with_stack(|stack, now| {
            looked.retain(|_, of| now.since(of.asked) < FORGOTTEN);
            for (socket, of) in looked.iter_mut() {
                let info = stack.instruments().info(*socket, now);
                let Some(tcp) = info.and_then(|info| info.tcp) else { continue };
                let Some(before) = of.ledgers.replace(tcp.ledgers) else { continue };
                if of.samples.len() == KEPT {
                    of.samples.pop_front();
                }
                of.samples.push_back(Sample::new(now, &tcp, &before));
            }
        });
        !looked.is_empty()
    }
}
