//! What an operator at the Telnet server sees and does (UCLA §2.7): over the views of the dashboard, the recorder, and the
//! services' doors.

use crate::job::listing;
use crate::netstat::table::{Column, table};
use crate::netstat::{log_text, session_age, size};
use crate::registry::{Running, Services};
use crate::views::{Overview, Row, Rows, list};
use Column::{Left, Right};
use inhost_base::{Duration, Instant, Key};
use inhost_common::service::{Operator, Order, Service, ServiceSession, Sessions};
use inhost_common::{Cleaner, LocalFuture};
use inhost_dashboard::Views;
use inhost_event::TcpState;
use inhost_jobs::machine::State;
use inhost_jobs::queue::Queue;
use inhost_jobs::service::Jobs;
use inhost_jobs::store::{Change, Scope, Selection};
use inhost_record::{Recorder, Trap};
use inhost_runtime::control::Summary;
use inhost_socket::Host;
use inhost_stack::SocketId;
use inhost_telnet::service::Telnet;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use tracing::info;

/// Connections, and sessions, in an answer.
const MOST_ROWS: usize = 200;
/// Octets of the log in an answer.
const LOG_BYTES: usize = 30 << 10;
/// Visitors get the same figures for this time, however often they ask.
const FIGURES_LAST: Duration = Duration::from_secs(1);
/// Time over which rates are taken.
const RATES_OVER: Duration = Duration::from_millis(500);
/// Characters of what a service says of its ports.
const PORTS: usize = 44;
/// Characters of why a job waits or has failed.
const WHY: usize = 16;
/// Width of a terminal.
const WIDTH: usize = 79;

/// The operator's desk of a host. A clone is the same.
#[derive(Clone)]
pub struct Desk(Rc<Inner>);

struct Inner {
    host: Host,
    summary: Rc<Summary>,
    sessions: Sessions,
    recorder: Option<Recorder>,
    figures: RefCell<Option<(Instant, String)>>,
    instruments: OnceCell<Instruments>,
}

/// What a host has once its services run. They hold the desk, and the desk does not hold them.
struct Instruments {
    views: Views,
    services: Weak<Services>,
}

/// What was done, or a sentence why it was not.
type Answer = Result<String, String>;

impl Desk {
    /// The desk of `host`, which can show nothing before it [opens](Desk::open).
    pub fn new(host: &Host, summary: &Rc<Summary>, sessions: &Sessions, recorder: Option<Recorder>) -> Desk {
        Desk(Rc::new(Inner {
            host: host.clone(),
            summary: summary.clone(),
            sessions: sessions.clone(),
            recorder,
            figures: RefCell::default(),
            instruments: OnceCell::new(),
        }))
    }
    /// Looks through `views`, and starts and stops `services`.
    pub fn open(&self, views: &Views, services: &Rc<Services>) {
        let instruments = Instruments { views: views.clone(), services: Rc::downgrade(services) };
        let _ = self.0.instruments.set(instruments);
    }
}

impl Operator for Desk {
    fn figures(&self) -> String {
        let now = self.0.host.now();
        let mut last = self.0.figures.borrow_mut();
        if last.as_ref().is_none_or(|(at, _)| now.since(*at) >= FIGURES_LAST) {
            *last = Some((now, self.0.figures()));
        }
        last.as_ref().map_or_else(String::new, |(_, text)| text.clone())
    }
    fn carry_out(&self, user: &str, order: Order) -> LocalFuture<String> {
        let (desk, user) = (self.0.clone(), user.to_owned());
        Box::pin(async move { desk.carry_out(&user, order).await.unwrap_or_else(|why| why) })
    }
}

impl Inner {
    fn figures(&self) -> String {
        let mut by_service = BTreeMap::new();
        for session in self.sessions.all() {
            *by_service.entry(session.service).or_insert(0) += 1;
        }
        let counts: Vec<_> = by_service.iter().map(|(service, count)| format!("{service} {count}")).collect();
        let sessions = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
        let state = self.summary.state();
        let memory = |member: &str| size(state["memory"][member].as_u64().unwrap_or(0));
        format!(
            "Sessions     {sessions}\nConnections  {}\nMemory       {} of {}\n",
            state["sockets"]["connections"].as_u64().unwrap_or(0),
            memory("used_bytes"),
            memory("limit_bytes")
        )
    }
    async fn carry_out(&self, user: &str, order: Order) -> Answer {
        match order {
            Order::System => self.system().await,
            Order::Connections(filter) => self.connections(&filter).await,
            Order::Log(lines) => self.log(lines).await,
            Order::Drop(what) => self.drop(user, what.trim()).await,
            Order::Stop { service, force } => self.stop(user, &service, force).await,
            Order::Start(service) => self.start(user, service.trim()),
            Order::Services => Ok(services_table(&*self.services()?)),
            Order::Traps => self.traps(),
            Order::Arm(words) => self.arm(&words),
            Order::Disarm(words) => self.disarm(&words),
            Order::Why(which) => self.why(&which).await,
            Order::Jobs(which) => self.jobs(&which).await,
            Order::Hold(job) => self.change(user, job, Change::Hold, "held").await,
            Order::Release(job) => self.change(user, job, Change::Release, "released").await,
            Order::Cancel(job) => self.change(user, job, Change::Cancel, "cancelled").await,
            _ => Err("This host does not know that order.".into()),
        }
    }
    fn instruments(&self) -> Result<&Instruments, String> {
        self.instruments.get().ok_or_else(|| "The host is starting.".into())
    }
    fn services(&self) -> Result<Rc<Services>, String> {
        self.instruments()?.services.upgrade().ok_or_else(|| "The host goes down.".into())
    }
    async fn view<T: DeserializeOwned>(&self, target: &str) -> Result<T, String> {
        let bytes = self.instruments()?.views.ask(target).await?;
        serde_json::from_slice(&bytes).map_err(|why| format!("The host's answer is not understood: {why}"))
    }
    fn recorder(&self) -> Result<&Recorder, String> {
        self.recorder.as_ref().ok_or_else(|| "This host has no recorder.".into())
    }

    async fn system(&self) -> Answer {
        let before: Overview = self.view("host").await?;
        self.host.sleep(RATES_OVER).await;
        let now: Overview = self.view("host").await?;
        let seconds = now.uptime_ns.saturating_sub(before.uptime_ns).max(1) as f64 / 1e9;
        let rate = |bytes: fn(&Overview) -> u64| {
            size((bytes(&now).saturating_sub(bytes(&before)) as f64 / seconds) as u64)
        };
        let received = rate(|of| of.links.iter().map(|link| link.received_bytes).sum());
        let sent = rate(|of| of.links.iter().map(|link| link.sent_bytes).sum());
        let sessions = self.sessions.all();
        let mut text = format!(
            "{}, up {}\n{} sessions, {} connections, {} listeners\n\
             Memory {} of {}; receiving {received}, sending {sent} bytes a second\n\n",
            now.name,
            session_age(now.uptime_ns),
            sessions.len(),
            now.sockets.connections,
            now.sockets.listeners,
            size(now.memory.used_bytes),
            size(now.memory.limit_bytes),
        );
        text += &self.sessions_table(&sessions);
        Ok(text)
    }
    fn sessions_table(&self, sessions: &[ServiceSession]) -> String {
        if sessions.is_empty() {
            return "No sessions.\n".into();
        }
        let now = self.host.now();
        let columns = [Left("Session", 14), Left("User", 20), Left("From", 31), Right("Age", 10)];
        let row = |of: &ServiceSession| {
            let user = of.user.as_ref().map_or_else(|| "-".into(), |user| Cleaner::line(user.as_bytes()));
            [name(of), user, of.peer.to_string(), session_age(now.since(of.since).as_nanos())]
        };
        table(columns, sessions.iter().take(MOST_ROWS).map(row)) + &more(sessions.len(), "sessions")
    }

    async fn connections(&self, filter: &str) -> Answer {
        let rows: Rows = self.view(&list("age", false, 0, MOST_ROWS, filter)).await?;
        if rows.rows.is_empty() {
            return Ok(format!("No connection is like that; there are {}.\n", rows.total));
        }
        let columns = [Left("Connection", 44), Left("State", 11), Left("Waits for", 22)];
        let row = |of: &Row| [ends(of), of.state.clone(), of.waits_for()];
        Ok(table(columns, rows.rows.iter().map(row)) + &more(rows.matched, "connections"))
    }

    async fn log(&self, lines: usize) -> Answer {
        let mut log: Value = self.view("log").await?;
        if let Some(all) = log["lines"].as_array_mut() {
            all.drain(..all.len().saturating_sub(lines));
        }
        // The latest count, where not all can be shown.
        let text = log_text(&log);
        let first = text.len().saturating_sub(LOG_BYTES);
        let start =
            text.as_bytes()[first..].iter().position(|&octet| octet == b'\n').map_or(0, |at| first + at + 1);
        Ok(if first > 0 { text[start..].to_owned() } else { text })
    }

    /// A session by its name, or else a connection.
    async fn drop(&self, user: &str, what: &str) -> Answer {
        if let Some((service, number)) = what.split_once('.')
            && let Ok(number) = number.parse()
            && let Some((_, running)) = self.services()?.named(service)
        {
            return match running.end_session(number) {
                true => {
                    info!(target: "operator", user, "ended the session {what}");
                    Ok(format!("The session {what} ends.\n"))
                }
                false => Err(format!("There is no session {what} that can be ended; SYSSTAT lists them.")),
            };
        }
        let found = self.find(what).await?;
        match socket(&found).is_some_and(|socket| self.host.abort(socket)) {
            true => {
                info!(target: "operator", user, "reset the connection {}", ends(&found));
                Ok(format!("Reset {}.\n", ends(&found)))
            }
            false => Err(format!("{} is over by now.", ends(&found))),
        }
    }
    /// The connection with these ends, or the only one that a filter means.
    async fn find(&self, which: &str) -> Result<Row, String> {
        let pair: Option<Vec<SocketAddr>> = which.split('-').map(|end| end.trim().parse().ok()).collect();
        let filter = match pair.as_deref() {
            Some([local, remote]) => format!(
                "src {} sport {} dst {} dport {}",
                local.ip(),
                local.port(),
                remote.ip(),
                remote.port()
            ),
            _ => which.to_owned(),
        };
        let Rows { mut rows, .. } = self.view(&list("age", false, 0, MOST_ROWS, &filter)).await?;
        // The list may be a second old, and in TIME-WAIT a connection is over but for its name.
        rows.retain(|row| self.is_alive(row));
        match (rows.pop(), rows.len()) {
            (Some(row), 0) => Ok(row),
            (None, _) => Err(format!("No connection is {which}; NETSTAT lists them, SYSSTAT sessions.")),
            (Some(_), others) => {
                Err(format!("{} connections are like that; name one by its ends.", others + 1))
            }
        }
    }

    fn is_alive(&self, row: &Row) -> bool {
        let Some(socket) = socket(row) else { return false };
        let info = self.host.with_stack(|stack, now| stack.instruments().info(socket, now));
        info.and_then(|info| info.tcp).is_some_and(|tcp| tcp.state != TcpState::TimeWait)
    }

    async fn stop(&self, user: &str, service: &str, force: bool) -> Answer {
        let services = self.services()?;
        let (service, running) = services.named(service).ok_or_else(|| unknown(&services, service))?;
        if service == Telnet::NAME && !force {
            let why = "Telnet carries you; nobody could log in to start it. STOP telnet FORCE stops it.";
            return Err(why.into());
        }
        if !running.doors().close().await {
            return Ok(format!("{service} is stopped already.\n"));
        }
        info!(target: "operator", user, "stopped {service}");
        let sessions = running.sessions().len();
        Ok(format!("Stopped {service}: it takes no more callers. Sessions that go on: {sessions}.\n"))
    }
    fn start(&self, user: &str, service: &str) -> Answer {
        let services = self.services()?;
        let (service, running) = services.named(service).ok_or_else(|| unknown(&services, service))?;
        match running.doors().open() {
            Ok(true) => {
                info!(target: "operator", user, "started {service}");
                Ok(format!("Started {service}.\n"))
            }
            Ok(false) => Ok(format!("{service} runs.\n")),
            Err(why) => Err(format!("{service} stays stopped: {why}")),
        }
    }

    fn queue(&self) -> Result<Rc<Queue>, String> {
        let services = self.services()?;
        let jobs = services.find::<Jobs>();
        jobs.map(|jobs| jobs.queue()).ok_or_else(|| "This host runs no jobs: [jobs] of host.toml.".into())
    }
    async fn jobs(&self, which: &str) -> Answer {
        let queue = self.queue()?;
        let (mut scope, mut selection) = (Scope::All, Selection::default());
        selection.count = MOST_ROWS;
        match (which.parse::<i64>(), State::named(&which.to_ascii_lowercase())) {
            (Ok(id), _) => match queue.store.job(Scope::All, id).await {
                Ok(job) => return Ok(listing(&[job], queue.now_s(), WHY)),
                Err(_) => selection.array = Some(id),
            },
            (_, Some(state)) => selection.state = Some(state),
            _ if !which.is_empty() => scope = Scope::User(which.to_owned()),
            _ => {}
        }
        let jobs = queue.store.list(scope, selection).await.map_err(|why| format!("{why}."))?;
        Ok(if jobs.is_empty() { "No jobs.\n".into() } else { listing(&jobs, queue.now_s(), WHY) })
    }
    async fn change(&self, user: &str, job: i64, change: Change, done: &str) -> Answer {
        let count = self.queue()?.change(Scope::All, job, change).await.map_err(|why| format!("{why}."))?;
        info!(target: "operator", user, job, count, "{done}");
        Ok(match count {
            0 => format!("Job {job} is {done} already.\n"),
            1 => format!("Job {job} is {done}.\n"),
            count => format!("Job {job}: {count} elements are {done}.\n"),
        })
    }

    fn traps(&self) -> Answer {
        let traps = self.recorder()?.traps();
        if traps.is_empty() {
            return Ok("No trap is armed.\n".into());
        }
        Ok(traps.iter().map(|(trap, times)| format!("{trap}: sprang {times} times\n")).collect())
    }
    fn arm(&self, words: &str) -> Answer {
        let trap: Trap = words.parse().map_err(|why| format!("{why}"))?;
        let is_armed = self.recorder()?.traps().iter().any(|(known, _)| *known == trap);
        match is_armed || self.recorder()?.arm(trap) {
            true => self.traps(),
            false => Err("There are too many traps; disarm one.".into()),
        }
    }
    fn disarm(&self, words: &str) -> Answer {
        let trap: Trap = words.parse().map_err(|why| format!("{why}"))?;
        match self.recorder()?.disarm(&trap) {
            0 => Err(format!("No trap is armed that says: {trap}")),
            _ => self.traps(),
        }
    }

    async fn why(&self, which: &str) -> Answer {
        let found = self.find(which).await?;
        let verdict: Value = self.view(&format!("connections/{}/verdict", found.id)).await?;
        let text = |member: &str| verdict[member].as_str().unwrap_or("-").to_owned();
        let reasons: Vec<_> = verdict["confidence_reasons"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|reason| reason.as_str())
            .collect();
        let because = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
        let sure = format!("{:.2}{because}", verdict["confidence"].as_f64().unwrap_or(0.0));
        let mut answer = format!("{}\n", ends(&found));
        for (title, words) in [("Why", text("diagnosis")), ("Do", text("remedy")), ("Sure", sure)] {
            answer += &paragraph(title, &words);
        }
        Ok(answer)
    }
}

/// The name of a session, by which it can be dropped.
fn name(of: &ServiceSession) -> String {
    of.number.map_or_else(|| of.service.to_owned(), |number| format!("{}.{number}", of.service))
}

/// The name of a connection, by which it can be dropped and explained.
fn ends(of: &Row) -> String {
    format!("{}-{}", of.local, of.remote)
}

fn socket(of: &Row) -> Option<SocketId> {
    u64::from_str_radix(&of.id, 16).ok().map(|bits| SocketId(Key::from_bits(bits)))
}

fn more(all: usize, what: &str) -> String {
    match all.checked_sub(MOST_ROWS) {
        Some(left @ 1..) => format!("and {left} more {what}\n"),
        _ => String::new(),
    }
}

fn services_table(services: &Services) -> String {
    let columns = [Left("Service", 13), Left("State", 8), Right("Sessions", 8), Left(" Ports", PORTS)];
    let row = |(name, service): (&'static str, &dyn Running)| {
        let state = if service.doors().are_open() { "runs" } else { "stopped" };
        let sessions = service.sessions().len().to_string();
        let summary = service.describe().summary;
        let (summary, dots) = match summary.char_indices().nth(PORTS) {
            Some((at, _)) => (&summary[..at], "…"),
            None => (&*summary, ""),
        };
        [name.to_owned(), state.to_owned(), sessions, format!(" {summary}{dots}")]
    };
    table(columns, services.all().map(row))
}

fn unknown(services: &Services, name: &str) -> String {
    let known: Vec<_> = services.all().map(|(name, _)| name).collect();
    format!("{name:?} is not a service that host.toml has switched on; there are {}.", known.join(", "))
}

/// Words behind a title, as many in a line as fit.
fn paragraph(title: &str, words: &str) -> String {
    let (mut text, mut column) = (format!("  {title:<5}"), 7);
    for word in words.split_whitespace() {
        let width = word.chars().count() + 1;
        if column + width > WIDTH {
            text += "\n       ";
            column = 7;
        }
        let _ = write!(text, " {word}");
        column += width;
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_stays_within_the_terminal() {
        let text = paragraph("Why", &"receiver's window ".repeat(20));
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.starts_with("  Why   receiver's window"), "{text}");
    }

    #[test]
    fn what_is_left_out_is_counted() {
        assert_eq!(more(MOST_ROWS, "sessions"), "");
        assert_eq!(more(MOST_ROWS + 3, "sessions"), "and 3 more sessions\n");
    }
}
