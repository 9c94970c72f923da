//! `inhost serve`: a host that runs until it is stopped.

mod banner;
mod courier;
mod handover;
mod history;
mod layers;
mod names;
mod notify;
mod operator;
mod places;
mod probes;
mod record;

use crate::args::Serve;
use crate::config::{self, Config, FILE_NAME};
use crate::dhcp;
use crate::failure::Failure;
use crate::links::Links;
use crate::log;
use crate::registry::{Kind, PreparedAgain, Services, prepare};
use crate::time::unix_time;
use banner::Banner;
use futures_lite::future::or;
use handover::{Requests, Taken};
use inhost_base::Duration;
use inhost_common::Denials;
use inhost_common::service::{ServiceContext, Sessions};
use inhost_dashboard::{Dashboard, Instruments, Views};
use inhost_dhcp::driver::Dhcp;
use inhost_jobs::service::Jobs;
use inhost_mail::service::Mail;
use inhost_names::service::NameServer;
use inhost_runtime::control::{self, Client, Reply, Server};
use inhost_runtime::{
    HeldSignals, LinkChange, LinkState, Runtime, Shutdown, Signal, Signals, entropy, raise_descriptor_limit,
};
use inhost_stack::{DuplicateDetection, StackConfig};
use serde_json::json;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::rc::Rc;
use tracing::{error, info, warn};

/// Runs the host.
pub fn run(flags: &Serve) -> Result<(), Failure> {
    let has_file = Config::has_file(flags);
    let mut config = Config::read(flags)?;
    // Dropped last: what is said while the host ends is written, too.
    let kept_log = inhost_dashboard::Log::default();
    let _log = log::start(&config.log, flags.quiet, &kept_log)?;
    // Each forwarded connection and each file needs a descriptor.
    let descriptors = raise_descriptor_limit()
        .inspect_err(|error| warn!(target: "host", "the limit of open descriptors stays as it is: {error}"))
        .ok()
        .and_then(|limit| limit.before);
    let mut stack = StackConfig::default();
    stack.memory_limit_bytes = config.memory_bytes()?;
    stack.tcp = config.tcp.connections()?;
    let mut runtime =
        Runtime::new(stack).map_err(|e| Failure::operation(format!("the host cannot start: {e}")))?;
    record::start(&mut runtime, &config.record)?;
    runtime.set_busy_poll(config.busy_poll()?);
    runtime.on_link_change(log_link_change);
    let path = config.control.clone().unwrap_or_else(control::default_path);
    let mut taken = match flags.take_over {
        true => Some(Taken::ask(&path, &config)?),
        // Before its links are refused: what to do about a running host is known here.
        false if Client::open(&path).is_ok() => {
            let running = io::Error::new(io::ErrorKind::AddrInUse, "a host is running there already");
            return Err(no_control(&path, &running));
        }
        false => None,
    };
    // The addresses were in use until now.
    let detection = if taken.is_some() { DuplicateDetection::Off } else { DuplicateDetection::BeforeUse };
    let mut links = Links::new(detection);
    for link in &config.link {
        links.add_from(&mut runtime, link, |spec| {
            match taken.as_mut().and_then(|taken| taken.device(spec)) {
                Some((handover, kept)) => inhost_link::take_over(spec, handover, kept),
                None => inhost_link::open(spec),
            }
        })?;
    }
    config::note(&config).iter().for_each(|note| warn!(target: "host", "{note}"));
    let host = runtime.host().clone();
    let summary = Rc::new(control::Summary::new(&host));
    let sessions = Sessions::default();
    let desk = operator::Desk::new(&host, &summary, &sessions, runtime.recorder(&host));
    let context = ServiceContext {
        host: host.clone(),
        reactor: runtime.handle().clone(),
        callers: links.callers.clone(),
        denials: Denials::default(),
        sessions: sessions.clone(),
        files: config.files(),
        resolvers: names::resolvers(&config, &links),
        program: banner::program(),
        descriptor_limit: descriptors,
        netstat: Rc::new(move || crate::netstat::summary(&summary.state())),
        operator: Rc::new(desk.clone()),
        unix_time,
        entropy,
    };
    let services = Rc::new(Services::start(|kind| config.section(kind), &context)?);
    let control = start_control(&runtime, &path, taken.as_mut())?;
    control.show_links(runtime.links());
    if let Some(recorder) = runtime.recorder(&host) {
        control.show_recorder(&recorder);
    }
    layers::start(&mut runtime, &control, &config.instruments);
    let records = match runtime.recorder(&host) {
        Some(recorder) => history::start(&host, &recorder, &config.history)?,
        None => None,
    };
    let views = Views::new(
        &host,
        Instruments {
            recorder: runtime.recorder(&host),
            links: runtime.links(),
            log: kept_log,
            name: config.record.name.clone().unwrap_or_else(record::name),
            sessions: sessions.clone(),
        },
    );
    views.offer(&control);
    desk.open(&views, &services);
    if let Some(dashboard) = services.find::<Dashboard>() {
        dashboard.show(&views);
    }
    let dhcp = dhcp::start(&host, &links.dhcp, &config.dhcp)?;
    let forwarder = services.find::<NameServer>();
    let resolver = names::answer(&runtime, &control, &config, &links, dhcp.as_ref(), forwarder)?;
    probes::answer(&runtime, &control, &links, &resolver);
    if let Some(mail) = services.find::<Mail>() {
        mail.use_names(&resolver);
    }
    if let Some(jobs) = services.find::<Jobs>() {
        let (host, control) = (host.clone(), control.path().to_owned());
        let courier = courier::Commands { host, control, config: flags.config.clone() };
        jobs.queue().set_courier(Rc::new(courier));
        jobs.reach(|place| places::way(place, &resolver))?;
    }
    if let (Some(forwarder), Some(dhcp)) = (forwarder, &dhcp) {
        host.spawn(names::follow(forwarder.clone(), dhcp.clone())).detach();
    }
    let shown = dhcp.clone();
    control.handle("leases", move |_, _| {
        let leases = dhcp::views(shown.as_ref());
        async move { Ok(Reply::from(json!({ "leases": leases }))) }
    });
    let asking = [Signal::Interrupt, Signal::Terminate, Signal::Hangup];
    let no_signals = |e: io::Error| Failure::operation(format!("signals cannot be received: {e}"));
    // A second one, when nobody waits for it any more, does not cut off the end.
    HeldSignals::new(&asking).map_err(no_signals)?.for_good();
    let signals = Signals::new(runtime.handle(), &asking).map_err(no_signals)?;
    if !flags.quiet {
        let mut out = io::stdout().lock();
        let banner =
            Banner::new(&config, &links, control.path(), out.is_terminal()).text(&services.describe());
        // A closed standard output (EPIPE) is not an error.
        let _ = out.write_all(banner.as_bytes()).and_then(|()| out.flush());
    }
    let requests = Requests::serve(&control);
    // Forwarded ports that another process still has, which was to take over and did not.
    let ports_wait = Cell::new(false);
    if let Some(taken) = taken.take() {
        taken.ready(&host, &control)?;
        info!(target: "host", connections = taken.connections(), "taken over; the connections stay where they are");
    }
    notify::ready();
    let cannot_wait = |e: io::Error| Failure::operation(format!("the host cannot wait: {e}"));
    let next = || {
        let shutdown = async {
            control.shutdown_requested().await;
            Event::Shutdown
        };
        let asked = async { Event::HandOver(requests.next().await) };
        let again = async {
            match ports_wait.get() {
                true => host.sleep(PORTS_AGAIN_AFTER).await,
                false => std::future::pending().await,
            }
            Event::ListenAgain
        };
        or(async { Event::Signal(signals.next().await) }, or(shutdown, or(asked, again)))
    };
    // What was asked while the configuration was read.
    let mut asked = VecDeque::new();
    let mut was_handed_over = false;
    loop {
        let event = match asked.pop_front() {
            Some(event) => event,
            None => runtime.run(next()).map_err(cannot_wait)?,
        };
        match event {
            Event::Shutdown | Event::Signal(Signal::Interrupt | Signal::Terminate) => break,
            Event::ListenAgain => {
                ports_wait.set(handover::listen_again(&mut links).is_err());
                continue;
            }
            Event::HandOver(request) => {
                let process = request.process;
                match request.carry_out(&mut runtime, &mut links, &control) {
                    Err(why) => error!(target: "host", "{why}"),
                    Ok(successor) => {
                        let limit = Duration::from_secs(config.take_over_s);
                        let ready = async { Ok(successor.is_ready().await) };
                        let signal = async { Err(signals.next().await) };
                        let late = async {
                            host.sleep(limit).await;
                            Ok(false)
                        };
                        let ready = runtime.run(or(ready, or(signal, late))).map_err(cannot_wait)?;
                        if ready == Ok(true) {
                            requests.refuse();
                            let connections = host.open_connections();
                            info!(target: "host", process, connections, "handed over; the connections stay until they end");
                            host.spawn(handover::watch(host.clone(), process)).detach();
                            was_handed_over = true;
                            break;
                        }
                        warn!(target: "host", process, "not handed over: the other process has ended, or was not ready \
                               within {limit}; this one goes on");
                        successor.take_back(&mut runtime, &mut links, &control);
                        if let Err(error) = handover::listen_again(&mut links) {
                            warn!(target: "host", "{error}; tried again until it works");
                            ports_wait.set(true);
                        }
                        if let Err(signal) = ready {
                            asked.push_front(Event::Signal(signal));
                        }
                    }
                }
                continue;
            }
            Event::Signal(_) => {}
        }
        notify::reloading();
        let (flags, kinds) = (flags.clone(), services.kinds());
        let reading = blocking::unblock(move || Again::read(&flags, has_file, &kinds));
        // Further requests meanwhile are served next, but for that to end: a disk may never answer.
        let mut reading = std::pin::pin!(reading);
        let mut is_asked_again = false;
        let again = loop {
            let early = or(async { Err(reading.as_mut().await) }, async { Ok(next().await) });
            match runtime.run(early).map_err(cannot_wait)? {
                Err(again) => break Some(again),
                Ok(Event::ListenAgain) => ports_wait.set(handover::listen_again(&mut links).is_err()),
                Ok(later @ Event::HandOver(_)) => asked.push_back(later),
                Ok(Event::Signal(Signal::Hangup)) => is_asked_again = true,
                Ok(_) => break None,
            }
        };
        let Some(again) = again else { break };
        reload(again, &mut config, &services);
        runtime.set_busy_poll(config.busy_poll()?);
        notify::ready();
        if is_asked_again {
            asked.push_front(Event::Signal(Signal::Hangup));
        }
    }
    let mut limit = Duration::from_secs(config.shutdown_s);
    if was_handed_over {
        let within = Duration::from_secs(config.handover_s);
        if !runtime.run(sessions_end(&host, &sessions, &signals, within)).map_err(cannot_wait)? {
            limit = Duration::ZERO;
        }
    } else {
        notify::stopping();
    }
    services.open_all();
    // A lease goes on with who took the link over.
    let leases = dhcp.filter(|_| config.dhcp.release && !was_handed_over);
    let ended = end(&mut runtime, &signals, limit, leases)
        .map_err(|e| Failure::operation(format!("unclean shutdown: {e}")))?;
    if ended.aborted > 0 {
        warn!(target: "host", connections = ended.aborted, "not closed in time, reset");
    }
    services.finish();
    if let Some(records) = records {
        records.finish();
    }
    Ok(())
}

/// What the host is to do.
enum Event {
    Signal(Signal),
    /// A client asks it to end.
    Shutdown,
    /// Another process asks to take over.
    HandOver(handover::Request),
    /// Ports that could not be listened at are tried again.
    ListenAgain,
}

/// Waits until no connection and no session is left, for `limit` at most. A signal that ends a host ends this, too; whether
/// one did.
async fn sessions_end(
    host: &inhost_socket::Host,
    sessions: &Sessions,
    signals: &Signals,
    limit: Duration,
) -> bool {
    let until = host.now() + limit;
    let ended = async {
        while (host.open_connections() > 0 || !sessions.all().is_empty()) && host.now() < until {
            host.sleep(LOOK_FOR_SESSIONS).await;
        }
        false
    };
    let asked = async {
        while signals.next().await == Signal::Hangup {}
        true
    };
    or(ended, asked).await
}

/// How often forwarded ports are tried again that another process has.
const PORTS_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Polling interval for what is left after a handover.
const LOOK_FOR_SESSIONS: Duration = Duration::from_millis(50);

fn log_link_change(change: &LinkChange) {
    match change.state {
        LinkState::Up => info!(target: "link", "{change}"),
        LinkState::Down { .. } => error!(target: "link", "{change}"),
    }
}

/// Lets the connections close within `limit`, another signal means at once; then gives `leases` back.
fn end(
    runtime: &mut Runtime,
    signals: &Signals,
    limit: Duration,
    leases: Option<Dhcp>,
) -> io::Result<Shutdown> {
    let host = runtime.host().clone();
    let until = host.now() + limit;
    host.drain();
    let closed = async {
        while host.open_connections() > 0 && host.now() < until {
            host.sleep(LOOK_AGAIN).await;
        }
        false
    };
    let again = async {
        while signals.next().await == Signal::Hangup {}
        true
    };
    let at_once = runtime.run(or(closed, again))?;
    if let Some(leases) = leases {
        runtime.run(dhcp::release(host.clone(), leases))?;
    }
    runtime.shutdown(if at_once { Duration::ZERO } else { until.since(host.now()) })
}

/// Polling interval for open connections at shutdown: the end of one wakes nobody.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What was read again. Reading waits for the disk, so that the host's thread leaves it to another.
struct Again {
    config: Result<Config, Failure>,
    prepared: PreparedAgain,
}

impl Again {
    /// Reads, with what the services that run need.
    fn read(flags: &Serve, had_file: bool, running: &[&'static Kind]) -> Again {
        let is_gone = had_file && !Config::has_file(flags);
        let gone =
            || Failure::operation(format!("{FILE_NAME} is gone; without it the host needs another start"));
        match if is_gone { Err(gone()) } else { Config::read(flags) } {
            Err(failure) => Again { config: Err(failure), prepared: Vec::new() },
            Ok(config) => Again {
                prepared: prepare(running, |kind| config.section(kind), &config.files()),
                config: Ok(config),
            },
        }
    }
}

/// Takes over what was read again and says what changed. What would need another start is named.
fn reload(again: Again, config: &mut Config, services: &Services) {
    match again.config {
        Err(failure) => error!(target: "host", "the configuration stays as it was: {failure}"),
        Ok(new) => {
            let changes = new.changes_from(config);
            if changes.is_empty() {
                info!(target: "host", "configuration read again, nothing changed");
            }
            for change in changes {
                info!(target: "host", "{change} ({})", effect(&change.key, services));
            }
            services.reload(|kind| new.section(kind), again.prepared);
            *config = new;
        }
    }
}

/// When a changed key takes effect.
fn effect(key: &str, services: &Services) -> &'static str {
    match key {
        "shutdown_s" | "handover_s" | "take_over_s" | "busy_poll_us" | "dhcp.release" => "at once",
        key => services.effect(key).unwrap_or("after a restart"),
    }
}

fn start_control(
    runtime: &Runtime,
    path: &std::path::Path,
    taken: Option<&mut Taken>,
) -> Result<Server, Failure> {
    let (host, reactor) = (runtime.host(), runtime.handle());
    let adopted = taken.and_then(|taken| taken.control(host, reactor, path));
    adopted.unwrap_or_else(|| Server::open(host, reactor, path)).map_err(|error| no_control(path, &error))
}

fn no_control(path: &std::path::Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; end it, take it over with --take-over, or name another with --control PATH"
        }
        _ => "; name another with --control PATH",
    };
    Failure::operation(format!("cannot open the control socket {}: {error}{hint}", path.display()))
}
