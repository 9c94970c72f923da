//! `inhost traceroute`: the routers on the way to a host, how fast they answer, and how large a packet may be.

pub mod asked;
mod report;

use crate::args::{Method, Traceroute};
use crate::connection::looked_up;
use crate::failure::Failure;
use crate::news::News;
use crate::target::{Schemes, Target};
use crate::through::{HostChoice, Private, cannot_wait, client_runtime, interrupted, interrupts, running};
use asked::{Asked, HIDES, LONGEST_WAIT, TraceNews};
use futures_lite::future::or;
use inhost_base::{Duration, IpAddr};
use inhost_names::Names;
use report::OutcomeReport;
use serde_json::{Value, json};
use std::path::PathBuf;

/// How long an answer may take at most by default.
const WAIT: Duration = Duration::from_secs(5);
/// First UDP port of probes, by convention unused.
const UDP_PORT: u16 = 33_434;
/// Which port is called, when none is named.
const TCP_PORT: u16 = 80;

/// Traces and reports.
pub fn run(arguments: &Traceroute) -> Result<(), Failure> {
    let target = Target::parse(&arguments.host, Schemes::Any)?;
    if arguments.reach.common.limit().is_some_and(|limit| limit > LONGEST_WAIT) {
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
    if arguments.method == Method::Icmp && port.is_some() {
        return Err(Failure::usage("an echo request has no port; leave out --port"));
    }
    if arguments.reach.through.link.as_ref().is_some_and(|link| link == "user" || link.starts_with("user,")) {
        return Err(Failure::usage(HIDES));
    }
    let through = &arguments.reach.through;
    if through.link.is_none() && running(through)?.is_none() {
        return Err(Failure::usage(
            "traceroute needs a running host (--via), or a link of its own, as \
             --link tap:in0,address=10.9.0.2/24,host=10.9.0.1/24,gateway=10.9.0.1; the link user hides the hops",
        ));
    }
    match HostChoice::find(&arguments.reach)? {
        HostChoice::Running(path) => through_running(path, arguments),
        HostChoice::Private(private) => privately(*private, arguments),
    }
}

/// From a host of its own.
fn privately(private: Private, arguments: &Traceroute) -> Result<(), Failure> {
    let Private { mut runtime, links, names, .. } = private;
    let host = runtime.host().clone();
    let signals = interrupts(&runtime)?;
    let work = async {
        let to = destination(&names, arguments).await?;
        let mut shown = Shown::begin(arguments, to);
        asked(arguments, to).trace(&host, &names, &links.user, async |news| shown.take(news)).await;
        shown.end()
    };
    let done = runtime.run(or(work, interrupted(&signals, &arguments.host))).map_err(cannot_wait)?;
    drop(links);
    done
}

/// From the running host.
fn through_running(path: PathBuf, arguments: &Traceroute) -> Result<(), Failure> {
    let mut runtime = client_runtime()?;
    let (reactor, signals) = (runtime.handle().clone(), interrupts(&runtime)?);
    let work = async {
        let (there, name, family) = (path.clone(), arguments.host.clone(), arguments.reach.common.family());
        let found = blocking::unblock(move || looked_up(&there, &name, family));
        let to = found.await.map_err(Failure::operation)?;
        let request = serde_json::to_value(asked(arguments, to));
        let request = request.map_err(|e| Failure::operation(e.to_string()))?;
        let mut news = News::of(path, &reactor, request).await?;
        let mut shown = Shown::begin(arguments, to);
        while shown.take(news.next().await?) {}
        shown.end()
    };
    runtime.run(or(work, interrupted(&signals, &arguments.host))).map_err(cannot_wait)?
}

/// The address of the destination, of the family that is wanted.
async fn destination(names: &Names, arguments: &Traceroute) -> Result<IpAddr, Failure> {
    let found = names.look_up(&arguments.host).await.map_err(|e| Failure::operation(e.to_string()))?;
    let family = arguments.reach.common.family();
    let wanted = found.iter().find(|address| family.wants(address)).copied();
    wanted.ok_or_else(|| Failure::operation(family.missing(&arguments.host)))
}

fn asked(arguments: &Traceroute, to: IpAddr) -> Asked {
    let port = match arguments.method {
        Method::Udp => UDP_PORT,
        Method::Icmp => 0,
        Method::Tcp => TCP_PORT,
    };
    Asked {
        op: "traceroute".to_owned(),
        to: to.to_string(),
        method: method(arguments.method).to_owned(),
        port: arguments.port.unwrap_or(port),
        first: arguments.first,
        last: arguments.max,
        probes: arguments.queries,
        parallel: arguments.parallel,
        wait_ns: arguments.reach.common.limit().unwrap_or(WAIT).as_nanos(),
        bytes: arguments.size,
        mtu: arguments.mtu,
        names: !arguments.numeric,
    }
}

fn method(method: Method) -> &'static str {
    match method {
        Method::Udp => "udp",
        Method::Icmp => "icmp",
        Method::Tcp => "tcp",
    }
}

/// What is shown of a trace, as it comes or at its end.
struct Shown<'a> {
    arguments: &'a Traceroute,
    to: IpAddr,
    last_mtu_bytes: Option<u16>,
    hops: Vec<Value>,
    ended: Option<Result<OutcomeReport, String>>,
}

impl<'a> Shown<'a> {
    fn begin(arguments: &'a Traceroute, to: IpAddr) -> Shown<'a> {
        let Traceroute { host, max, size, .. } = arguments;
        let what = match arguments.method {
            Method::Udp => "UDP datagrams",
            Method::Icmp => "ICMP echo requests",
            Method::Tcp => "TCP calls",
        };
        if !arguments.json {
            say(&format!("{host} ({to}), {max} hops at most, {what} of {size} bytes"));
        }
        Shown { arguments, to, last_mtu_bytes: None, hops: Vec::new(), ended: None }
    }
    /// False after the last.
    fn take(&mut self, news: TraceNews) -> bool {
        match news {
            TraceNews::Hop(hop) if self.arguments.json => self.hops.extend(serde_json::to_value(hop)),
            TraceNews::Hop(hop) => say(&hop.line(&mut self.last_mtu_bytes)),
            TraceNews::Over(outcome) => self.ended = Some(Ok(outcome)),
            TraceNews::Failed { why } => self.ended = Some(Err(why)),
        }
        self.ended.is_none()
    }
    fn end(self) -> Result<(), Failure> {
        let Shown { arguments, to, hops, .. } = self;
        let outcome = self.ended.unwrap_or_else(|| Err("the trace has no end".to_owned()));
        let outcome = outcome.map_err(|why| match why == HIDES {
            true => Failure::usage(why),
            false => Failure::operation(format!("{}: {why}", arguments.host)),
        })?;
        if arguments.json {
            let report = json!({
                "host": arguments.host, "to": to.to_string(), "method": method(arguments.method),
                "packet_bytes": arguments.size, "hops": hops, "outcome": outcome,
            });
            say(&report.to_string());
        } else {
            say(&outcome.line(to));
        }
        match outcome {
            OutcomeReport { reached: true, .. } => Ok(()),
            OutcomeReport { hop: Some(_), .. } => {
                Err(Failure::operation(format!("{to} cannot be reached that way")))
            }
            _ => Err(Failure::operation(format!(
                "{to} did not answer; it may be beyond hop {} (--max), or keep silent: try --method icmp or tcp",
                arguments.max
            ))),
        }
    }
}

/// A line on standard output.
fn say(line: &str) {
    crate::output::show(&format!("{line}\n"));
}
