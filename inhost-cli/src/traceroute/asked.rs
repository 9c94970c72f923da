//! A trace as it is asked for and told, on whichever host.

use super::report::{HopReport, OutcomeReport};
use futures_lite::future::{or, zip};
use inhost_base::{Duration, Instant, IpAddr, LinkId};
use inhost_names::Names;
use inhost_socket::Host;
use inhost_stack::ProbeMethod;
use inhost_traceroute::{
    Config, Event, Hop, LARGEST_PARALLEL, LARGEST_PROBES_PER_HOP, TraceError, TraceOutcome,
};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Timeout of a hop's name lookup.
const NAME_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait for an answer that can be asked for.
pub const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// What every IPv4 link takes in one piece, where nothing is known.
const MTU_BYTES: u16 = 1500;
/// Shortest probe.
const SHORTEST_BYTES: u16 = 60;

/// What is asked for, also as a request of the control socket.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Asked {
    /// The kind of request: `traceroute`.
    pub op: String,
    /// The destination's address.
    pub to: String,
    /// `udp`, `icmp` or `tcp`.
    pub method: String,
    /// The destination's port; 0 for `icmp`.
    pub port: u16,
    /// The first hop and the last.
    pub first: u8,
    pub last: u8,
    /// Probes for each hop, and on their way at once.
    pub probes: u8,
    pub parallel: u8,
    /// Longest wait for an answer.
    pub wait_ns: u64,
    /// Of a probe, with its IP header.
    pub bytes: u16,
    /// Whether the path MTU is measured.
    pub mtu: bool,
    /// Whether names are looked up.
    pub names: bool,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "snake_case")]
pub enum TraceNews {
    /// All is known of one hop.
    Hop(HopReport),
    /// The end.
    Over(OutcomeReport),
    /// It was not made, or not to its end.
    Failed {
        /// Why.
        why: String,
    },
}

impl Asked {
    /// Traces from `host`, whose links in `user` are refused, since they hide the hops. It goes on while `tell` says true.
    pub async fn trace(
        &self,
        host: &Host,
        names: &Names,
        user: &[LinkId],
        mut tell: impl AsyncFnMut(TraceNews) -> bool,
    ) {
        let last = match self.traced(host, names, user, &mut tell).await {
            Ok(outcome) => TraceNews::Over(OutcomeReport::of(outcome)),
            Err(why) => TraceNews::Failed { why },
        };
        let _ = tell(last).await;
    }
    async fn traced(
        &self,
        host: &Host,
        names: &Names,
        user: &[LinkId],
        tell: &mut impl AsyncFnMut(TraceNews) -> bool,
    ) -> Result<TraceOutcome, String> {
        let to = self.to.parse().map_err(|_| format!("{:?} is not an address", self.to))?;
        let path = host.with_stack(|stack, now| stack.ip_mut().paths_mut().route(to, None, None, now));
        let link = path.as_ref().ok().map(|path| path.link);
        if link.is_some_and(|link| user.contains(&link)) {
            return Err(HIDES.to_owned());
        }
        let (method, config) = (self.method()?, self.config(host, link)?);
        let news = Events::default();
        let tracing = async {
            let done =
                inhost_traceroute::run(host, method, config, to, |event| news.add(event.clone())).await;
            news.end();
            done
        };
        let (outcome, ()) = zip(tracing, self.tell(host, names, &news, tell)).await;
        outcome.map_err(|why| match why {
            TraceError::Send(_) => format!(
                "no probe could be sent to {to}: {why}; does the link have a gateway= that leads there?"
            ),
            _ => format!("no probe could be sent to {to}: {why}"),
        })
    }
    fn method(&self) -> Result<ProbeMethod, String> {
        match self.method.as_str() {
            "udp" => Ok(ProbeMethod::Datagram { port: self.port }),
            "icmp" => Ok(ProbeMethod::Echo),
            "tcp" => Ok(ProbeMethod::Call { port: self.port }),
            other => Err(format!("there is no method {other:?}: udp, icmp or tcp")),
        }
    }
    fn config(&self, host: &Host, link: Option<LinkId>) -> Result<Config, String> {
        let counts = 1..=self.last;
        let fits = counts.contains(&self.first)
            && (1..=LARGEST_PROBES_PER_HOP).contains(&self.probes)
            && (1..=LARGEST_PARALLEL).contains(&self.parallel)
            && self.bytes >= SHORTEST_BYTES
            && self.wait_ns <= LONGEST_WAIT.as_nanos();
        if !fits {
            return Err("the trace has a number that is too large or too small".to_owned());
        }
        let mut config = Config::default();
        (config.first_hop, config.last_hop) = (self.first, self.last);
        (config.probes_per_hop, config.parallel) = (self.probes, self.parallel);
        config.wait = Duration::from_nanos(self.wait_ns);
        config.packet_bytes = self.bytes;
        let mtu_bytes = || {
            host.with_stack(|stack, _| Some(stack.ip().interface(link?)?.config().mtu_bytes))
                .unwrap_or(MTU_BYTES)
        };
        config.measure_from_bytes = self.mtu.then(mtu_bytes);
        Ok(config)
    }
    /// Says what is found, hop after hop, with names, while the trace goes on.
    async fn tell(
        &self,
        host: &Host,
        names: &Names,
        news: &Events,
        tell: &mut impl AsyncFnMut(TraceNews) -> bool,
    ) {
        let mut known = BTreeMap::new();
        while let Some(event) = news.next().await {
            let Event::Hop(hop) = event else { continue };
            if self.names {
                learn(host, names, &hop, &mut known).await;
            }
            if !tell(TraceNews::Hop(HopReport::of(&hop, &known))).await {
                return;
            }
        }
    }
}

/// That nothing is to be seen on a link.
pub const HIDES: &str = "the link user hides the hops, because the system's own sockets send there; give another, such as \
                         tap:in0,address=10.9.0.2/24,host=10.9.0.1/24,gateway=10.9.0.1";

/// Looks up the names of those who answered.
async fn learn(host: &Host, names: &Names, hop: &Hop, known: &mut BTreeMap<IpAddr, Option<String>>) {
    let until: Instant = host.now() + NAME_TIMEOUT;
    for reply in hop.replies.iter().flatten() {
        if known.contains_key(&reply.from) {
            continue;
        }
        let late = async {
            host.sleep_until(until).await;
            None
        };
        let name = or(names.name_of(reply.from), late).await;
        known.insert(reply.from, name);
    }
}

/// News on its way from the trace to who tells it.
#[derive(Default)]
struct Events(RefCell<(VecDeque<Event>, bool, Option<Waker>)>);

impl Events {
    fn add(&self, event: Event) {
        let mut inner = self.0.borrow_mut();
        inner.0.push_back(event);
        inner.2.take().into_iter().for_each(Waker::wake);
    }
    fn end(&self) {
        let mut inner = self.0.borrow_mut();
        inner.1 = true;
        inner.2.take().into_iter().for_each(Waker::wake);
    }
    /// The next; `None` at the end.
    async fn next(&self) -> Option<Event> {
        poll_fn(|context| {
            let mut inner = self.0.borrow_mut();
            match inner.0.pop_front() {
                Some(event) => Poll::Ready(Some(event)),
                None if inner.1 => Poll::Ready(None),
                None => {
                    inner.2 = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}
