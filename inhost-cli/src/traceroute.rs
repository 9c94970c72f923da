//! `inhost traceroute`: the routers on the way to a host, how fast they answer, and how large a packet may be.

mod show;

use crate::args::{Method, Traceroute};
use crate::failure::Failure;
use crate::target::{Schemes, Target};
use crate::through::{Private, note_private};
use futures_lite::future::{or, zip};
use inhost_base::{Duration, Instant, IpAddr};
use inhost_names::Names;
use inhost_runtime::{Signal, Signals};
use inhost_socket::Host;
use inhost_stack::ProbeMethod;
use inhost_traceroute::{Config, Event, Hop, TraceError, TraceOutcome};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Timeout of a hop's name lookup.
const NAME_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an answer may take at most, by default and if asked for.
const WAIT: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// First UDP port of probes, by convention unused.
const UDP_PORT: u16 = 33_434;
/// Which port is called, when none is named.
const TCP_PORT: u16 = 80;

/// Traces and reports.
pub fn run(arguments: &Traceroute) -> Result<(), Failure> {
    let target = Target::parse(&arguments.host, Schemes::Any)?;
    if arguments.common.limit().is_some_and(|limit| limit > LONGEST_WAIT) {
        return Err(Failure::usage(format!("--timeout: give at most {} seconds", LONGEST_WAIT.as_secs())));
    }
    // Of a URL only the host counts: its port is for who follows it.
    let named = target.port.filter(|_| target.scheme.is_none());
    let port = Target { port: named, ..Target::default() }.port_or(arguments.port)?;
    let arguments = &Traceroute { host: target.host, port, ..arguments.clone() };
    if arguments.first > arguments.max {
        let Traceroute { first, max, .. } = arguments;
        return Err(Failure::usage(format!("--first {first} is behind --max {max}")));
    }
    let Some(link) = &arguments.link else {
        return Err(Failure::usage(
            "traceroute needs a link of its own, as --link tap:in0,address=10.9.0.2/24,host=10.9.0.1/24,\
             gateway=10.9.0.1; the link user hides the hops",
        ));
    };
    if link == "user" || link.starts_with("user,") {
        return Err(Failure::usage(
            "the link user hides the hops, because the system's own sockets send there; give another, such as \
             tap:in0,address=10.9.0.2/24,host=10.9.0.1/24,gateway=10.9.0.1",
        ));
    }
    note_private(&arguments.common, Some(link));
    let Private { mut runtime, links, names, .. } = Private::new(Some(link))?;
    let host = runtime.host().clone();
    let signals = Signals::new(runtime.handle(), &[Signal::Interrupt, Signal::Terminate])
        .map_err(|e| Failure::operation(format!("signals cannot be received: {e}")))?;
    let interrupted = async {
        signals.next().await;
        Err(Failure::operation(format!("{}: interrupted", arguments.host)))
    };
    let work = or(trace(&host, &names, arguments), interrupted);
    let done = runtime.run(work).map_err(|e| Failure::operation(format!("the host cannot wait: {e}")))?;
    drop(links);
    done
}

/// The address of the destination, of the family that is wanted.
async fn destination(names: &Names, arguments: &Traceroute) -> Result<IpAddr, Failure> {
    let found = names.look_up(&arguments.host).await.map_err(|e| Failure::operation(e.to_string()))?;
    let family = arguments.common.family();
    let wanted = found.iter().find(|address| family.wants(address)).copied();
    wanted.ok_or_else(|| Failure::operation(family.missing(&arguments.host)))
}

async fn trace(host: &Host, names: &Names, arguments: &Traceroute) -> Result<(), Failure> {
    let to = destination(names, arguments).await?;
    let method = match (arguments.method, arguments.port) {
        (Method::Udp, port) => ProbeMethod::Datagram { port: port.unwrap_or(UDP_PORT) },
        (Method::Icmp, None) => ProbeMethod::Echo,
        (Method::Icmp, Some(_)) => {
            return Err(Failure::usage("an echo request has no port; leave out --port"));
        }
        (Method::Tcp, port) => ProbeMethod::Call { port: port.unwrap_or(TCP_PORT) },
    };
    let mut config = Config::default();
    (config.first_hop, config.last_hop) = (arguments.first, arguments.max);
    (config.probes_per_hop, config.parallel) = (arguments.queries, arguments.parallel);
    config.wait = arguments.common.limit().unwrap_or(WAIT);
    config.packet_bytes = arguments.size;
    config.measure_from_bytes = arguments.mtu.then(|| link_mtu_bytes(host));
    if !arguments.json {
        show::begin(arguments, to);
    }
    let news = News::default();
    let tracing = async {
        let done = inhost_traceroute::run(host, method, config, to, |event| news.add(event.clone())).await;
        news.end();
        done
    };
    let telling = tell(host, names, arguments, &news);
    let (outcome, hops) = zip(tracing, telling).await;
    let outcome = outcome.map_err(|why| failed(arguments, to, why))?;
    if arguments.json {
        let report = json!({
            "host": arguments.host, "to": to.to_string(), "method": show::method(arguments.method),
            "packet_bytes": arguments.size, "hops": hops, "outcome": show::outcome_json(outcome),
        });
        show::say(&report.to_string());
    } else {
        show::say(&show::outcome(to, outcome));
    }
    match outcome {
        TraceOutcome::Reached { .. } => Ok(()),
        TraceOutcome::Stopped { .. } => Err(Failure::operation(format!("{to} cannot be reached that way"))),
        TraceOutcome::TooFar => Err(Failure::operation(format!(
            "{to} did not answer; it may be beyond hop {} (--max), or keep silent: try --method icmp or tcp",
            arguments.max
        ))),
    }
}

fn failed(arguments: &Traceroute, to: IpAddr, why: TraceError) -> Failure {
    let hint = match why {
        TraceError::Send(_) => "; does the link have a gateway= that leads there?",
        _ => "",
    };
    Failure::operation(format!("no probe could be sent to {} ({to}): {why}{hint}", arguments.host))
}

/// What the first link takes in one piece. A private host has one.
fn link_mtu_bytes(host: &Host) -> u16 {
    let mtu = host.with_stack(|stack, _| {
        let ip = stack.ip();
        stack
            .links()
            .filter(|link| link.0 != 0)
            .filter_map(|link| Some(ip.interface(link)?.config().mtu_bytes))
            .min()
    });
    mtu.unwrap_or(1500)
}

/// Says what is found, hop after hop, with names, while the trace goes on. Gives all of it for `--json`.
async fn tell(host: &Host, names: &Names, arguments: &Traceroute, news: &News) -> Vec<Value> {
    let mut known = BTreeMap::new();
    let (mut all, mut last_mtu) = (Vec::new(), None);
    while let Some(event) = news.next().await {
        let Event::Hop(hop) = event else { continue };
        if !arguments.numeric {
            learn(host, names, &hop, &mut known).await;
        }
        if arguments.json {
            all.push(show::hop_json(&hop, &known));
        } else {
            show::say(&show::hop(&hop, &known, &mut last_mtu));
        }
    }
    all
}

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
struct News(RefCell<(VecDeque<Event>, bool, Option<Waker>)>);

impl News {
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
