//! `inhost serve`: a host that runs until it is told to end.

mod banner;
mod ftp;
mod login;
mod names;
mod tftp;

use crate::args::Serve;
use crate::config::Config;
use crate::dhcp;
use crate::failure::Failure;
use crate::links::Links;
use crate::log;
use banner::{Banner, Running};
use futures_lite::future::or;
use inhost_base::Duration;
use inhost_common::storage::Folder;
use inhost_common::{Callers, Denials};
use inhost_dhcp::driver::Dhcp;
use inhost_little::{Little, LittleConfig};
use inhost_runtime::control::{self, Reply, Server};
use inhost_runtime::{LinkChange, LinkState, Runtime, Shutdown, Signal, Signals, raise_descriptor_limit};
use inhost_stack::{DuplicateDetection, StackConfig};
use serde_json::json;
use std::io::{self, IsTerminal, Write};
use std::time::SystemTime;
use tracing::{error, info, warn};

/// Runs the host.
pub fn run(flags: &Serve) -> Result<(), Failure> {
    let mut config = Config::read(flags)?;
    // Dropped last: what is said while the host ends is written, too.
    let _log = log::start(&config.log, flags.quiet)?;
    // Each forwarded connection and each file needs a descriptor.
    let descriptors = raise_descriptor_limit()
        .inspect_err(|error| warn!(target: "host", "the limit of open descriptors stays as it is: {error}"))
        .ok()
        .and_then(|limit| limit.before);
    let stack = StackConfig {
        memory_limit_bytes: config.memory_bytes()?,
        tcp: config.tcp.connections()?,
        ..StackConfig::default()
    };
    let mut runtime =
        Runtime::new(stack).map_err(|e| Failure::operation(format!("the host cannot start: {e}")))?;
    runtime.set_busy_poll(config.busy_poll()?);
    runtime.on_link_change(log_link_change);
    let mut links = Links::new(DuplicateDetection::BeforeUse);
    for link in &config.link {
        links.add(&mut runtime, link)?;
    }
    let host = runtime.host().clone();
    let little = start_little(&host, &config, &links.callers)?;
    // Whoever guesses passwords has the same number of guesses at all services together.
    let denials = Denials::default();
    let login = config
        .telnet
        .enabled
        .then(|| login::start(&runtime, &config.telnet, &links.callers, &denials, descriptors))
        .transpose()?;
    let ftp =
        config.ftp.enabled.then(|| ftp::start(&runtime, &config, &links.callers, &denials)).transpose()?;
    let tftp = config.tftp.enabled.then(|| tftp::start(&host, &config.tftp, &links.callers)).transpose()?;
    let forwarder = config.names.enabled.then(|| names::start(&host, &config, &links)).transpose()?;
    let control = start_control(&runtime, &config)?;
    control.show_links(runtime.links());
    let dhcp = dhcp::start(&host, &links.dhcp, &config.dhcp)?;
    names::answer(&runtime, &control, &config, &links, dhcp.as_ref(), forwarder.as_ref())?;
    if let (Some(forwarder), Some(dhcp)) = (&forwarder, &dhcp) {
        host.spawn(forwarder.clone().follow(dhcp.clone())).detach();
    }
    let shown = dhcp.clone();
    control.handle("leases", move |_, _| {
        let leases = dhcp::views(shown.as_ref());
        async move { Ok(Reply::from(json!({ "leases": leases }))) }
    });
    let signals = Signals::new(runtime.handle(), &[Signal::Interrupt, Signal::Terminate, Signal::Hangup])
        .map_err(|e| Failure::operation(format!("signals cannot be received: {e}")))?;
    if !flags.quiet {
        let running = Running {
            telnet: login.is_some(),
            little: little.is_some(),
            ftp: ftp.is_some(),
            tftp: tftp.is_some(),
            names: forwarder.is_some(),
            one_time: login.as_ref().and_then(login::Login::one_time),
        };
        let mut out = io::stdout().lock();
        let banner = Banner::new(&config, &links, control.path(), out.is_terminal()).text(&running);
        // Who closed our output does not want it.
        let _ = out.write_all(banner.as_bytes()).and_then(|()| out.flush());
    }
    let cannot_wait = |e: io::Error| Failure::operation(format!("the host cannot wait: {e}"));
    let next = || {
        or(async { Some(signals.next().await) }, async {
            control.shutdown_requested().await;
            None
        })
    };
    let mut signal = runtime.run(next()).map_err(cannot_wait)?;
    while signal == Some(Signal::Hangup) {
        let (flags, serves) = (flags.clone(), (ftp.is_some(), tftp.is_some()));
        let reading = blocking::unblock(move || Again::read(&flags, serves));
        // Whatever else is asked for meanwhile comes next.
        let mut reading = std::pin::pin!(reading);
        let early = or(async { Err(reading.as_mut().await) }, async { Ok(next().await) });
        let (again, asked) = match runtime.run(early).map_err(cannot_wait)? {
            Err(again) => (again, None),
            Ok(Some(Signal::Hangup)) => {
                (runtime.run(reading.as_mut()).map_err(cannot_wait)?, Some(Some(Signal::Hangup)))
            }
            Ok(_) => break,
        };
        reload(again, &mut config, login.as_ref(), ftp.as_ref(), tftp.as_ref());
        runtime.set_busy_poll(config.busy_poll()?);
        if let Some(forwarder) = &forwarder {
            runtime.run(forwarder.reload(&config)).map_err(cannot_wait)?;
        }
        signal = match asked {
            Some(asked) => asked,
            None => runtime.run(next()).map_err(cannot_wait)?,
        };
    }
    let limit = Duration::from_secs(config.shutdown_s);
    let leases = dhcp.filter(|_| config.dhcp.release);
    let ended = end(&mut runtime, &signals, limit, leases)
        .map_err(|e| Failure::operation(format!("unclean shutdown: {e}")))?;
    if ended.aborted > 0 {
        warn!(target: "host", connections = ended.aborted, "not closed in time, reset");
    }
    if login.is_some() && !inhost_telnet::pty::wait_for_sessions(SHELLS_END) {
        warn!(target: "telnet", "processes of ended sessions are left behind");
    }
    Ok(())
}

fn log_link_change(change: &LinkChange) {
    match change.state {
        LinkState::Up => info!(target: "link", "{change}"),
        LinkState::Down { .. } => error!(target: "link", "{change}"),
    }
}

/// How long the processes of ended sessions may take to end: they are hung up first, and killed two seconds later.
const SHELLS_END: std::time::Duration = std::time::Duration::from_secs(5);

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

/// How often a host that ends looks whether its connections have closed: the end of one wakes nobody.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What was read again. Reading waits for the disk, so that the host's thread leaves it to another.
struct Again {
    config: Result<Config, Failure>,
    ftp: Option<Result<ftp::Places, Failure>>,
    tftp: Option<Result<Folder, Failure>>,
}

impl Again {
    /// Reads, with what FTP and TFTP need where they are served.
    fn read(flags: &Serve, (has_ftp, has_tftp): (bool, bool)) -> Again {
        match Config::read(flags) {
            Err(failure) => Again { config: Err(failure), ftp: None, tftp: None },
            Ok(config) => Again {
                ftp: has_ftp.then(|| ftp::read_again(&config)),
                tftp: has_tftp.then(|| tftp::folder(&config.tftp)),
                config: Ok(config),
            },
        }
    }
}

/// Takes over what was read again and says what changed. What would need another start is named.
fn reload(
    again: Again,
    config: &mut Config,
    login: Option<&login::Login>,
    ftp: Option<&ftp::Files>,
    tftp: Option<&inhost_tftp::driver::Server>,
) {
    match again.config {
        Err(failure) => error!(target: "host", "the configuration stays as it was: {failure}"),
        Ok(new) => {
            let changes = new.changes_from(config);
            if changes.is_empty() {
                info!(target: "host", "configuration read again, nothing changed");
            }
            for change in changes {
                info!(target: "host", "{change} ({})", effect(&change.key, login.is_some(), ftp.is_some()));
            }
            if let Some(login) = login {
                login.reload(&new.telnet);
            }
            if let (Some(ftp), Some(places)) = (ftp, again.ftp) {
                ftp.reload(&new, places);
            }
            if let (Some(tftp), Some(folder)) = (tftp, again.tftp) {
                tftp::reload(tftp, &new.tftp, folder);
            }
            *config = new;
        }
    }
}

/// When a changed key takes effect.
fn effect(key: &str, has_telnet: bool, has_ftp: bool) -> &'static str {
    match key {
        "shutdown_s" | "busy_poll_us" | "dhcp.release" => "at once",
        "telnet.enabled" | "telnet.port" | "telnet.users" => "after a restart",
        "names.enabled" | "names.port" => "after a restart",
        names if names.starts_with("names.") => "at once",
        "ftp.enabled" | "ftp.port" | "ftp.implicit_port" | "ftp.passive_ports" => "after a restart",
        "tftp.enabled" | "tftp.port" => "after a restart",
        tftp if tftp.starts_with("tftp.") => "for new transfers",
        ftp if has_ftp && ftp.starts_with("ftp.") => "for new sessions",
        telnet if has_telnet && telnet.starts_with("telnet.") => "for new sessions",
        _ => "after a restart",
    }
}

fn start_little(
    host: &inhost_socket::Host,
    config: &Config,
    callers: &Callers,
) -> Result<Option<Little>, Failure> {
    if !config.little.enabled {
        return Ok(None);
    }
    let little = LittleConfig {
        connections_limit: config.little.connections,
        connections_per_peer: config.little.connections_per_peer,
        ..LittleConfig::default()
    };
    inhost_little::serve(host, little, callers.clone(), unix_seconds)
        .map(Some)
        .map_err(|e| Failure::operation(e.to_string()))
}

// The wall clock, for daytime alone.
#[allow(clippy::disallowed_methods)]
fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn start_control(runtime: &Runtime, config: &Config) -> Result<Server, Failure> {
    let path = config.control.clone().unwrap_or_else(control::default_path);
    Server::open(runtime.host(), runtime.handle(), &path).map_err(|e| {
        let hint = match e.kind() {
            io::ErrorKind::AddrInUse => "; end it, or name another with --control PATH",
            _ => "; name another with --control PATH",
        };
        Failure::operation(format!("cannot open the control socket {}: {e}{hint}", path.display()))
    })
}
