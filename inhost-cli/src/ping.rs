//! `inhost ping`: does a host answer, and how fast?

pub mod requests;

use crate::args::Ping;
use crate::connection::looked_up;
use crate::failure::{Failure, print_error};
use crate::news::News;
use crate::target::{Schemes, Target};
use crate::through::{HostChoice, Private, cannot_wait, client_runtime, interrupted, interrupts, seen_at};
use futures_lite::future::or;
use inhost_base::{Duration, IpAddr};
use requests::{EchoNews, LONGEST, Requests, SHORTEST};
use serde_json::json;
use std::path::PathBuf;

/// How long the last answer may take by default.
const WAIT: Duration = Duration::from_secs(2);

/// Statistics over all requests.
#[derive(Default)]
struct Tally {
    sent: u32,
    /// The round trips of the answers that came, in the order in which they came.
    round_trips: Vec<Duration>,
    duplicates: u32,
    /// Times that somebody on the way said that a request cannot arrive.
    failures: u32,
}

/// Sends the requests and reports.
pub fn run(arguments: &Ping) -> Result<(), Failure> {
    let name = name(&arguments.host)?;
    let seconds = arguments.interval;
    if !(0.01..=3600.0).contains(&seconds) {
        return Err(Failure::usage(format!("--interval {seconds}: give seconds from 0.01 to 3600")));
    }
    let (to, tally, is_user_link) = match HostChoice::find(&arguments.reach)? {
        HostChoice::Private(private) => privately(*private, &name, arguments)?,
        HostChoice::Running(path) => through_running(path, &name, arguments)?,
    };
    report(to, &tally, arguments);
    match tally.round_trips.is_empty() {
        true => Err(Failure::operation(format!(
            "{to} answered none of {} requests; {}",
            tally.sent,
            hint(&tally, is_user_link)
        ))),
        false => Ok(()),
    }
}

/// From a host of its own.
fn privately(private: Private, name: &str, arguments: &Ping) -> Result<(IpAddr, Tally, bool), Failure> {
    let Private { mut runtime, links, names, reaches_loopback } = private;
    let host = runtime.host().clone();
    let signals = interrupts(&runtime)?;
    let found = async {
        let addresses = names.look_up(name).await.map_err(|e| Failure::operation(e.to_string()))?;
        let family = arguments.reach.common.family();
        let wanted = addresses.iter().find(|address| family.wants(address)).copied();
        wanted.ok_or_else(|| Failure::operation(family.missing(name)))
    };
    let work = async {
        let asked_for = or(found, interrupted(&signals, name)).await?;
        let to = seen_at(asked_for, reaches_loopback);
        begin(name, to, if to == asked_for { "" } else { "this machine, which is the gateway " }, arguments);
        let mut tally = Tally::default();
        let sending = async {
            let tell = async |news| tally.take(&news, arguments.json);
            requests::send(&host, &asked(to, arguments), tell).await.map_err(Failure::operation)
        };
        let stopped = async {
            signals.next().await;
            Ok(())
        };
        or(sending, stopped).await?;
        Ok((to, tally, reaches_loopback))
    };
    let done = runtime.run(work).map_err(cannot_wait)?;
    drop(links);
    done
}

/// From the running host.
fn through_running(path: PathBuf, name: &str, arguments: &Ping) -> Result<(IpAddr, Tally, bool), Failure> {
    let mut runtime = client_runtime()?;
    let (reactor, signals) = (runtime.handle().clone(), interrupts(&runtime)?);
    let family = arguments.reach.common.family();
    let found = {
        let (path, name) = (path.clone(), name.to_owned());
        blocking::unblock(move || looked_up(&path, &name, family))
    };
    let work = async {
        let found = async { found.await.map_err(Failure::operation) };
        let to = or(found, interrupted(&signals, name)).await?;
        begin(name, to, if to.is_loopback() { "the running host itself " } else { "" }, arguments);
        let mut tally = Tally::default();
        let sending = async {
            let mut news = News::of(path, &reactor, asked(to, arguments).to_json()).await?;
            loop {
                match news.next().await? {
                    EchoNews::Over { error: None } => return Ok(()),
                    EchoNews::Over { error: Some(why) } => return Err(Failure::operation(why)),
                    news if !tally.take(&news, arguments.json) => return Ok(()),
                    _ => {}
                }
            }
        };
        let stopped = async {
            signals.next().await;
            Ok(())
        };
        or(sending, stopped).await?;
        Ok((to, tally, false))
    };
    runtime.run(work).map_err(cannot_wait)?
}

fn asked(to: IpAddr, arguments: &Ping) -> Requests {
    let interval = Duration::from_nanos((arguments.interval * 1e9) as u64).clamp(SHORTEST, LONGEST);
    let wait = arguments.reach.common.limit().unwrap_or(WAIT);
    Requests { to, count: arguments.count, interval, payload_bytes: arguments.size, wait }
}

fn begin(name: &str, to: IpAddr, role: &str, arguments: &Ping) {
    if !arguments.json {
        say(&format!("{} bytes to {name} ({role}{to})", arguments.size));
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

impl Tally {
    /// Counts what happened, and says so unless `silent`. False when nobody listens to that.
    fn take(&mut self, news: &EchoNews, silent: bool) -> bool {
        match news {
            EchoNews::Sent { number, error } => {
                self.sent += 1;
                if let Some(why) = error {
                    print_error(format_args!("request {number}: {why}"));
                }
                true
            }
            EchoNews::Answer { number, from, bytes, round_trip_ns } => {
                let result = match round_trip_ns.map(Duration::from_nanos) {
                    Some(time) => {
                        self.round_trips.push(time);
                        time.to_string()
                    }
                    None => {
                        self.duplicates += 1;
                        "again".to_owned()
                    }
                };
                silent || say(&format!("{bytes} bytes from {from}: request {number}, {result}"))
            }
            EchoNews::Failed { why } => {
                self.failures += 1;
                print_error(format_args!("{why}"));
                true
            }
            EchoNews::Over { .. } => false,
        }
    }
}

/// A line on standard output. False when nobody reads it.
fn say(line: &str) -> bool {
    crate::output::show_octets(format!("{line}\n").as_bytes())
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
    // A closed standard output (EPIPE) is not an error.
    let _ = say(&text);
}
