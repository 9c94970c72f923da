//! Calls from reserved ports, as the r-utilities make them, and the call that a server makes back.

use crate::args::{Calling, Common};
use crate::client::ClientHost;
use crate::connection::{Connection, Family, Maker, within};
use crate::failure::Failure;
use crate::through::{HostChoice, open_host, seen_at};
use futures_lite::future::or;
use inhost_base::{Duration, Endpoint, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_names::Names;
use inhost_rcommands::rsh::RESERVED_PORTS;
use inhost_runtime::control::{CallOptions, ListenerClient};
use inhost_runtime::{AsyncFd, Reactor};
use inhost_socket::{ConnectError, Host, Listener};
use inhost_stack::{ConnectOptions, ListenOptions, Local};
use serde_json::json;
use std::future::Future;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Timeout of the server's second connection.
const CALL_BACK_TIMEOUT: Duration = Duration::from_secs(30);
/// Reserved ports that are tried.
const PORTS_TRIED: u16 = 32;

/// Makes the calls of one client.
pub struct Caller {
    maker: Maker,
    common: Common,
    /// Tells the time.
    pub clock: Host,
    /// Waits for signals.
    pub reactor: Reactor,
}

/// A call that was answered.
pub struct Called {
    /// The connection.
    pub stream: Connection,
    /// The peer that answered.
    pub remote: Endpoint,
}

/// Listener at a reserved port, for the server's second connection.
pub struct ReservedListener {
    /// The port.
    pub port: u16,
    at: ListenerKind,
}

enum ListenerKind {
    Private(Listener),
    Running(Arc<ListenerClient>, Reactor),
}

/// Runs a client that calls, on the host that the flags name.
pub fn run<T, F>(calling: &Calling, work: impl FnOnce(Caller) -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut client = ClientHost::start(HostChoice::find(&calling.reach)?)?;
    let caller = Caller::new(&client, calling.reach.common.clone());
    let done = client.runtime.run(work(caller));
    let done = done.map_err(|e| Failure::operation(format!("the client cannot wait: {e}")))?;
    client.end()?;
    done
}

/// The user's name here, as the system knows it.
pub fn local_user(calling: &Calling) -> Result<String, Failure> {
    if let Some(name) = &calling.local_user {
        return Ok(name.clone());
    }
    let uid = std::fs::metadata("/proc/self").map(|about| about.uid()).ok();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let own = uid.and_then(|uid| {
        users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
        })
    });
    own.or_else(|| std::env::var("LOGNAME").ok())
        .ok_or_else(|| Failure::usage("the system does not know your name; give it with --local-user"))
}

/// Reserved ports in turn, from one that nobody can foretell: that of the last call may not be free yet.
fn ports() -> impl Iterator<Item = u16> {
    let (first, last) = (*RESERVED_PORTS.start(), *RESERVED_PORTS.end());
    let count = last - first + 1;
    let begin = inhost_runtime::entropy().map_or(0, |seed| u16::from_be_bytes([seed[0], seed[1]])) % count;
    (0..PORTS_TRIED).map(move |step| first + (begin + count - step) % count)
}

impl Caller {
    /// One that calls from the host on which `client` runs.
    pub fn new(client: &ClientHost, common: Common) -> Caller {
        let (clock, reactor) = (client.runtime.host().clone(), client.runtime.handle().clone());
        Caller { maker: client.maker.clone(), common, clock, reactor }
    }
    /// Calls `name` from a reserved port.
    pub async fn call(&self, name: &str, port: u16) -> Result<Called, Failure> {
        let opening = self.open(name, port);
        let called = within(&self.clock, self.common.limit(), name, port, opening).await;
        let called = called.map_err(Failure::operation)?;
        self.common.note(format_args!("connected to {}", called.remote));
        Ok(called)
    }
    async fn open(&self, name: &str, port: u16) -> Result<Called, String> {
        match self.maker.clone() {
            Maker::Private { host, names, reaches_loopback } => {
                self.privately(&host, &names, reaches_loopback, name, port).await
            }
            Maker::Running { path, reactor } => {
                let (name, family) = (name.to_owned(), self.common.family());
                let opened = blocking::unblock(move || through_running(&path, &name, port, family)).await;
                opened.and_then(|opened| {
                    let stream = AsyncFd::new(&reactor, opened.stream).map_err(|e| e.to_string())?;
                    let stream = Connection::Running(stream, opened.socket);
                    Ok(Called { stream, remote: opened.remote })
                })
            }
        }
    }
    async fn privately(
        &self,
        host: &Host,
        names: &Rc<Names>,
        reaches_loopback: bool,
        name: &str,
        port: u16,
    ) -> Result<Called, String> {
        let found = names.look_up(name).await.map_err(|e| e.to_string())?;
        let family = self.common.family();
        let mut why = family.missing(name);
        for &address in found.iter().filter(|address| family.wants(address)) {
            let to = Endpoint::new(seen_at(address, reaches_loopback), port);
            for from in ports() {
                let local = Local { address: None, port: from };
                let mut options = ConnectOptions::default();
                options.local = local;
                match host.connect_with(to, options).await {
                    Ok(stream) => {
                        // These protocols speak in turns, a few octets at a time.
                        stream.set_nagle(false);
                        let remote = stream.remote();
                        return Ok(Called { stream: Connection::Private(stream), remote });
                    }
                    Err(ConnectError::Begin(inhost_stack::ConnectError::InUse)) => {}
                    Err(error) => {
                        why = format!("cannot connect to {name} port {port}: {address}: {error}");
                        break;
                    }
                }
            }
        }
        Err(why)
    }
    /// Listens at a reserved port for the call back of who was called.
    pub async fn listen(&self, called: &Called) -> Result<ReservedListener, Failure> {
        if let Maker::Private { reaches_loopback: true, .. } = self.maker {
            return Err(Failure::usage(
                "on the link user nobody can call back for the command's errors; give --one-channel, or another --link",
            ));
        }
        let any = match called.remote.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let mut why = "no reserved port is free".to_owned();
        for port in ports() {
            let at = Endpoint::new(any, port);
            let listened = match self.maker.clone() {
                Maker::Private { host, .. } => {
                    let listener = host.listen(at, ListenOptions::default());
                    listener.map(ListenerKind::Private).map_err(|e| e.to_string())
                }
                Maker::Running { path, reactor } => {
                    let listener = blocking::unblock(move || {
                        let mut client = open_host(&path).map_err(|e| e.text())?;
                        client.listen(at).map_err(|e| e.to_string())
                    });
                    listener.await.map(|listener| ListenerKind::Running(Arc::new(listener), reactor))
                }
            };
            match listened {
                Ok(at) => return Ok(ReservedListener { port, at }),
                Err(error) => why = error,
            }
        }
        Err(Failure::operation(format!("no port for the command's errors: {why}; try --one-channel")))
    }
    /// The call back. Others who call are sent away.
    pub async fn called_back(&self, listener: ReservedListener, by: IpAddr) -> Result<Connection, Failure> {
        let late = async {
            self.clock.sleep(CALL_BACK_TIMEOUT).await;
            Err(Failure::operation(format!(
                "{by} did not call back for the command's errors; try --one-channel"
            )))
        };
        let accepted = async {
            loop {
                let (stream, remote) = listener.accept().await?;
                // A server's call comes from where it is, and from a reserved port as well.
                if remote.address == by && RESERVED_PORTS.contains(&remote.port) {
                    return Ok(stream);
                }
            }
        };
        or(accepted, late).await
    }
}

impl ReservedListener {
    async fn accept(&self) -> Result<(Connection, Endpoint), Failure> {
        match &self.at {
            ListenerKind::Private(listener) => {
                let stream = listener.accept().await.map_err(|e| Failure::operation(e.to_string()))?;
                let remote = stream.remote();
                Ok((Connection::Private(stream), remote))
            }
            ListenerKind::Running(listener, reactor) => {
                let listener = listener.clone();
                let caller = blocking::unblock(move || listener.accept()).await;
                let caller = caller.map_err(|e| Failure::operation(e.to_string()))?;
                let stream =
                    AsyncFd::new(reactor, caller.stream).map_err(|e| Failure::operation(e.to_string()))?;
                Ok((Connection::Running(stream, caller.socket), caller.remote))
            }
        }
    }
}

/// Has the running host look the name up and call its addresses in turn, from reserved ports.
fn through_running(
    path: &Path,
    name: &str,
    port: u16,
    family: Family,
) -> Result<inhost_runtime::control::Connected, String> {
    let mut client = open_host(path).map_err(|e| e.text())?;
    let (reply, _) = client.request(&json!({"op": "look_up", "name": name})).map_err(|e| e.to_string())?;
    let addresses = reply["addresses"].as_array().cloned().unwrap_or_default();
    let mut why = family.missing(name);
    let addresses = addresses.iter().filter_map(|address| address.as_str()?.parse::<IpAddr>().ok());
    for address in addresses.filter(|address| family.wants(address)) {
        for from in ports() {
            let mut calling = CallOptions::default();
            (calling.from_port, calling.nagle) = (Some(from), false);
            match client.connect_with(Endpoint::new(address, port), calling) {
                Ok(connected) => return Ok(connected),
                Err(error) => why = format!("cannot connect to {name} port {port}: {address}: {error}"),
            }
            if !why.contains("connected already") {
                break;
            }
        }
    }
    Err(why)
}
