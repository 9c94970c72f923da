//! The flight recorder, for other processes: what it holds, what it sees from now on, and its traps.

use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use inhost_base::{Duration, Endpoint};
use inhost_record::{Recorder, Selection, Trap, Writer};
use inhost_socket::{Either, Host, race};
use rustix::net::SendFlags;
use serde_json::{Value, json};

use super::pump::stream_pair;
use super::reply::{Failure, Handler, Reply, by, memory_file};
use crate::async_fd::AsyncFd;
use crate::reactor::{Interest, Reactor};
use crate::recording::{ends, write_recorded};

/// How often a watcher gets what is new.
const WATCH_EVERY: Duration = Duration::from_millis(20);
/// How often a watcher gets the states of connections.
const STATES_EVERY: Duration = Duration::from_secs(1);
/// Connections whose states a watcher gets.
const MAX_STATES: usize = 100;

/// The requests, and what carries each out.
pub(super) fn requests(reactor: &Reactor, recorder: &Recorder) -> [(&'static str, Handler); 3] {
    let kept = recorder.clone();
    let record = by(move |host, request| {
        let recorder = kept.clone();
        async move { write(&host, &recorder, &request) }
    });
    let (kept, reactor) = (recorder.clone(), reactor.clone());
    let watch = by(move |host, request| {
        let (recorder, reactor) = (kept.clone(), reactor.clone());
        async move { watch(host, recorder, &reactor, &request) }
    });
    let recorder = recorder.clone();
    let traps = by(move |_, request| {
        let recorder = recorder.clone();
        async move { traps(&recorder, &request) }
    });
    [("record", record), ("watch", watch), ("traps", traps)]
}

fn write(host: &Host, recorder: &Recorder, request: &Value) -> Result<Reply, Failure> {
    let selection = selection(&request["only"])?;
    let file = memory_file().map_err(system)?;
    let (file, written) =
        write_recorded(host, recorder, &selection, io::BufWriter::new(file)).map_err(system)?;
    let mut file = file.into_inner().map_err(|why| system(why.into_error()))?;
    file.rewind().map_err(system)?;
    let mut reply = Reply::from(json!({"frames": written.frames, "lost": written.lost}));
    reply.descriptor = Some(OwnedFd::from(file));
    Ok(reply)
}

fn watch(host: Host, recorder: Recorder, reactor: &Reactor, request: &Value) -> Result<Reply, Failure> {
    let selection = selection(&request["only"])?;
    let has_states = request["states"].as_bool().unwrap_or(false);
    let (ours, theirs) = stream_pair(reactor).map_err(system)?;
    let has_past = request["past"].as_bool().unwrap_or(false);
    let from = if has_past { recorder.oldest_frame() } else { recorder.next_frame() };
    let watcher = Watcher { host: host.clone(), recorder, selection, has_states, from };
    host.spawn(async move {
        let hung_up = ours.hung_up();
        if let Either::First(Err(_)) = race(watcher.run(&ours), hung_up).await {
            // The watcher is gone.
        }
    })
    .detach();
    Ok(Reply { descriptor: Some(theirs), ..Reply::default() })
}

/// Somebody who watches.
struct Watcher {
    host: Host,
    recorder: Recorder,
    selection: Selection,
    has_states: bool,
    /// The first frame that is sent.
    from: u64,
}

impl Watcher {
    /// Sends until the other end is gone.
    async fn run(&self, to: &AsyncFd<UnixStream>) -> io::Result<()> {
        let mut writer = Writer::new(Vec::new())?;
        let (mut from, mut states_at) = (self.from, self.host.now());
        loop {
            if self.has_states && self.host.now() >= states_at {
                states_at = self.host.now() + STATES_EVERY;
                self.add_states(&mut writer);
            }
            let ends = |socket| ends(&self.host, socket);
            let written = self.recorder.write(&mut writer, &mut from, &self.selection, &ends)?;
            if written.lost > 0 {
                let words =
                    format!("recorder: {} frames were lost, because they were not read", written.lost);
                writer.comment(&self.recorder.line(self.host.now(), None, &words));
            }
            let bytes = std::mem::take(writer.get_mut());
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let sent =
                    to.io(Interest::Write, |inner| Ok(rustix::net::send(inner, rest, SendFlags::NOSIGNAL)?));
                rest = &rest[sent.await?.min(rest.len())..];
            }
            self.host.sleep(WATCH_EVERY).await;
        }
    }
    /// A line for each connection, as a comment of the next frame.
    fn add_states<W: Write>(&self, writer: &mut Writer<W>) {
        let lines: Vec<String> = self.host.with_stack(|stack, now| {
            let sockets = stack.instruments().sockets(now);
            let meant = sockets.filter_map(|of| Some((of.local, of.remote?, of.tcp?)));
            let meant = meant.filter(|(local, remote, _)| self.selection.has(*local, *remote));
            meant
                .take(MAX_STATES)
                .map(|(local, remote, info)| {
                    let words = format!(
                        "figures state={} flight={} cwnd={} window={} rtt_us={} queue={} waits={}",
                        info.state.text(),
                        info.in_flight_bytes,
                        info.congestion_window_bytes,
                        info.send_window_bytes,
                        info.smoothed_round_trip.map_or(0, |trip| trip.as_nanos() / 1000),
                        info.send_queue_bytes,
                        info.send_cause.text().replace(' ', "-"),
                    );
                    self.recorder.line(now, Some((local, remote)), &words)
                })
                .collect()
        });
        lines.iter().for_each(|line| writer.comment(line));
    }
}

fn traps(recorder: &Recorder, request: &Value) -> Result<Reply, Failure> {
    let trap = |member: &str| -> Result<Option<Trap>, Failure> {
        let text = request[member].as_str();
        text.map(|text| text.parse().map_err(|why: inhost_record::TrapError| Failure::new(why.text)))
            .transpose()
    };
    if let Some(trap) = trap("arm")?
        && !recorder.arm(trap)
    {
        return Err(Failure::new("there are too many traps; disarm one"));
    }
    if let Some(trap) = trap("disarm")?
        && recorder.disarm(&trap) == 0
    {
        return Err(Failure::new(format!("no trap is armed that says: {trap}")));
    }
    let traps = recorder.traps();
    let traps: Vec<Value> =
        traps.iter().map(|(trap, times)| json!({"trap": trap.to_string(), "times": times})).collect();
    Ok(json!({"traps": traps}).into())
}

fn selection(only: &Value) -> Result<Selection, Failure> {
    let mut selection = Selection::default();
    if let Some(text) = only["address"].as_str() {
        let address = text.parse().map_err(|_| Failure::new(format!("{text:?} is not an IP address")))?;
        selection.address = Some(address);
    }
    if let Some(port) = only["port"].as_u64() {
        selection.port = Some(port.try_into().map_err(|_| Failure::new(format!("{port} is not a port")))?);
    }
    if let Some(both) = only["ends"].as_array() {
        let parsed: Option<Vec<Endpoint>> = both
            .iter()
            .map(|end| Some(Endpoint::from(end.as_str()?.parse::<std::net::SocketAddr>().ok()?)))
            .collect();
        let both = parsed.and_then(|ends| <[Endpoint; 2]>::try_from(ends).ok());
        selection.connection =
            Some(both.ok_or_else(|| Failure::new("\"ends\" are two, such as \"10.0.0.1:80\""))?);
    }
    Ok(selection)
}

fn system(why: io::Error) -> Failure {
    Failure { errno: why.raw_os_error(), text: why.to_string() }
}
