//! `inhost ping`: does a host answer, and how fast?

use crate::args::Ping;
use crate::failure::{Failure, print_error};
use crate::target::{Schemes, Target};
use crate::through::{Private, note_private, seen_at};
use futures_lite::future::or;
use inhost_base::{Duration, Instant, IpAddr};
use inhost_runtime::{Signal, Signals};
use inhost_socket::{EchoSocket, Host};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;

/// How long the last answer may take by default.
const WAIT: Duration = Duration::from_secs(2);
/// Largest payload that is read back.
const ANSWER_BYTES: usize = 65_536;

/// Statistics over all requests.
#[derive(Default)]
struct Tally {
    sent: u32,
    /// The round trips of the answers that came, in the order in which they came.
    round_trips: Vec<Duration>,
    duplicates: u32,
    /// Times that somebody on the way said that a request cannot arrive.
    failures: u32,
    /// When each request was sent that has no answer yet; their numbers come round again.
    unanswered: BTreeMap<u16, Instant>,
}

/// Sends the requests and reports.
pub fn run(arguments: &Ping) -> Result<(), Failure> {
    let name = name(&arguments.host)?;
    let seconds = arguments.interval;
    if !(0.01..=3600.0).contains(&seconds) {
        return Err(Failure::usage(format!("--interval {seconds}: give seconds from 0.01 to 3600")));
    }
    // Echo is of the host, not of a socket: who asks has its own host.
    note_private(&arguments.common, arguments.link.as_deref());
    let private = Private::new(arguments.link.as_deref())?;
    let Private { mut runtime, links, names, reaches_loopback } = private;
    let host = runtime.host().clone();
    let signals = Signals::new(runtime.handle(), &[Signal::Interrupt, Signal::Terminate])
        .map_err(|e| Failure::operation(format!("signals cannot be received: {e}")))?;
    let interrupted = async {
        signals.next().await;
        Err(Failure::operation(format!("{name}: interrupted")))
    };
    let found = async {
        let addresses = names.look_up(&name).await.map_err(|e| Failure::operation(e.to_string()))?;
        let family = arguments.common.family();
        let wanted = addresses.iter().find(|address| family.wants(address)).copied();
        wanted.ok_or_else(|| Failure::operation(family.missing(&name)))
    };
    let work = async {
        let asked_for = or(found, interrupted).await?;
        let to = seen_at(asked_for, reaches_loopback);
        if !arguments.json {
            let role = if to == asked_for { "" } else { "this machine, which is the gateway " };
            say(&format!("{} bytes to {} ({role}{to})", arguments.size, name));
        }
        let tally = requests(&host, to, arguments, &signals).await?;
        Ok((to, tally))
    };
    let done: Result<(IpAddr, Tally), Failure> =
        runtime.run(work).map_err(|e| Failure::operation(format!("the host cannot wait: {e}")))?;
    let (to, tally) = done?;
    drop(links);
    report(to, &tally, arguments);
    match tally.round_trips.is_empty() {
        true => Err(Failure::operation(format!(
            "{to} answered none of {} requests; {}",
            tally.sent,
            hint(&tally, reaches_loopback)
        ))),
        false => Ok(()),
    }
}

/// The host. Of a URL nothing else counts.
fn name(text: &str) -> Result<String, Failure> {
    let target = Target::parse(text, Schemes::Any)?;
    let is_host = target.port.is_none() && target.user.is_none() && target.path.is_none();
    match target.scheme.is_some() || is_host {
        true => Ok(target.host),
        false => Err(Failure::usage(format!(
            "{text:?}: an echo request has no user, port or path; give {}",
            target.host
        ))),
    }
}

/// Advice when no host answered.
fn hint(tally: &Tally, is_user_link: bool) -> &'static str {
    match tally.failures > 0 && is_user_link {
        true => "does a route lead there, and may this user ping (see sysctl net.ipv4.ping_group_range)?",
        false => "is it up, and does a route lead there?",
    }
}

async fn requests(host: &Host, to: IpAddr, arguments: &Ping, signals: &Signals) -> Result<Tally, Failure> {
    let socket = host.echo().map_err(|e| Failure::operation(format!("no echo socket: {e}")))?;
    let mut tally = Tally::default();
    let seconds = |s: f64| Duration::from_nanos((s * 1e9) as u64);
    let interrupted = async {
        signals.next().await;
        Wake::Interrupted
    };
    let mut interrupted = std::pin::pin!(interrupted);
    let mut next = host.now();
    let payload = vec![0xa5; usize::from(arguments.size)];
    while arguments.count == 0 || tally.sent < arguments.count {
        let sent_at = host.now();
        let sequence = tally.sent as u16;
        tally.unanswered.insert(sequence, sent_at);
        if let Err(error) = socket.send(to, sequence, &payload).await {
            print_error(format_args!("request {sequence} to {to}: {error}"));
        }
        tally.sent += 1;
        let last = tally.sent == arguments.count;
        next += seconds(arguments.interval);
        let until = if last { sent_at + arguments.common.limit().unwrap_or(WAIT) } else { next };
        loop {
            let received = or(answer(&socket), async {
                host.sleep_until(until).await;
                Wake::Time
            });
            match or(received, interrupted.as_mut()).await {
                Wake::Answer(answer) => {
                    let received = tally.take(&answer, host.now(), !arguments.json);
                    if !received || (last && tally.unanswered.is_empty()) {
                        return Ok(tally);
                    }
                }
                Wake::Time => break,
                Wake::Interrupted => return Ok(tally),
                Wake::Failed(why) => {
                    print_error(format_args!("{to}: {why}"));
                    tally.failures += 1;
                }
            }
        }
    }
    Ok(tally)
}

impl Tally {
    /// Counts an answer, and says so. False when nobody listens to that.
    fn take(&mut self, answer: &Answer, now: Instant, shown: bool) -> bool {
        let Answer { sequence, from, bytes } = *answer;
        let sent_at = self.unanswered.remove(&sequence);
        let result = match sent_at.map(|at| now.since(at)) {
            Some(time) => {
                self.round_trips.push(time);
                time.to_string()
            }
            None => {
                self.duplicates += 1;
                "again".to_owned()
            }
        };
        !shown || say(&format!("{bytes} bytes from {from}: request {sequence}, {result}"))
    }
}

/// A line on standard output. False when nobody reads it.
fn say(line: &str) -> bool {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}

enum Wake {
    Answer(Answer),
    Time,
    Interrupted,
    Failed(String),
}

struct Answer {
    sequence: u16,
    from: IpAddr,
    bytes: usize,
}

async fn answer(socket: &EchoSocket) -> Wake {
    let mut payload = vec![0; ANSWER_BYTES];
    match socket.receive(&mut payload).await {
        Ok(info) => {
            let (sequence, from, bytes) = (info.sequence, info.from, info.length_bytes);
            Wake::Answer(Answer { sequence, from, bytes })
        }
        Err(error) => Wake::Failed(error.to_string()),
    }
}

fn report(to: IpAddr, tally: &Tally, arguments: &Ping) {
    let received = tally.round_trips.len() as u32;
    let lost = 100.0 * f64::from(tally.sent.saturating_sub(received)) / f64::from(tally.sent.max(1));
    let mut sorted = tally.round_trips.clone();
    sorted.sort();
    let middle = sorted.get(sorted.len() / 2).copied();
    let (least, most) = (sorted.first().copied(), sorted.last().copied());
    let ns = |d: Option<Duration>| d.map(Duration::as_nanos);
    let text = if arguments.json {
        let report = json!({
            "to": to.to_string(), "sent": tally.sent, "received": received,
            "duplicates": tally.duplicates, "lost_percent": lost,
            "round_trip_ns": { "min": ns(least), "median": ns(middle), "max": ns(most) },
        });
        report.to_string()
    } else {
        let times = match (least, middle, most) {
            (Some(a), Some(b), Some(c)) => format!("\nround trip {a} / {b} / {c} (min / median / max)"),
            _ => String::new(),
        };
        format!("{to}: {} sent, {received} answered, {lost:.1} % lost{times}", tally.sent)
    };
    // A closed standard output (EPIPE) is no error.
    let _ = say(&text);
}
