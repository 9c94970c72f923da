//! `inhost serve --take-over`: a new process takes links and listeners of the running host over; the old one keeps its
//! sessions until they end.
//!
//! The new process asks at the control socket. The reply names what the old one keeps, and has a channel on which each
//! device comes with its channel for frames, and then the control socket itself. When its services listen, the new
//! process says `ready` on that channel, and moves nothing before the old one has answered `go`. If it ends before, or is
//! not ready in time, the old one takes everything back and goes on as if nothing had been.

use crate::config::Config;
use crate::failure::Failure;
use crate::links::Links;
use inhost_base::Endpoint;
use inhost_gateway::StartError;
use inhost_link::{Handover, Kept, KeptFlow, Kind, Spec};
use inhost_runtime::control::{Client, ClientError, Parcels, Reply, Server};
use inhost_runtime::{AsyncFd, Interest, Reactor, Runtime};
use inhost_socket::Host;
use inhost_stack::{SocketKind, TcpState};
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use tracing::{error, warn};

/// The request at the control socket.
const OPERATION: &str = "handover";
/// The parcel with the control socket.
const CONTROL: &str = "control";
/// Of a connection of which nothing but TIME-WAIT is left.
const OVER: &str = "over";
/// What the new process says when its services listen.
const READY: &str = "ready";
/// What the old process says to that.
const GO: &str = "go";
/// What it says when that came too late.
const TOO_LATE: &str = "too late";
/// How often it is seen whether the new process is there.
const WATCHED_EVERY: inhost_base::Duration = inhost_base::Duration::from_secs(1);
/// How long the new process waits for either.
const ANSWER_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);

/// A request for the handover, which the host's main loop carries out.
pub struct Request {
    /// The process that asks.
    pub process: u64,
    /// The shapes of its links' devices.
    devices: Vec<Shape>,
    reply: async_channel::Sender<Result<Reply, inhost_runtime::control::Failure>>,
}

/// Requests, as they come.
pub struct Requests(async_channel::Receiver<Request>);

impl Requests {
    /// Answers requests of `control`.
    pub fn serve(control: &Server) -> Requests {
        let (sender, receiver) = async_channel::bounded(1);
        control.handle(OPERATION, move |_, request| {
            let sender = sender.clone();
            async move {
                let busy = || inhost_runtime::control::Failure::new("a handover is under way already");
                let (reply, answer) = async_channel::bounded(1);
                let process = request["process"].as_u64().unwrap_or_default();
                let devices = serde_json::from_value(request["devices"].clone()).unwrap_or_default();
                sender.try_send(Request { process, devices, reply }).map_err(|_| busy())?;
                answer.recv().await.map_err(|_| busy())?
            }
        });
        Requests(receiver)
    }
    /// The next one.
    pub async fn next(&self) -> Request {
        match self.0.recv().await {
            Ok(request) => request,
            // The server keeps the other end.
            Err(_) => std::future::pending().await,
        }
    }
    /// Refuses those who asked meanwhile, and all who ask from now on: another process has taken over.
    pub fn refuse(&self) {
        self.0.close();
        while let Ok(late) = self.0.try_recv() {
            let why = "another process has taken over just now; ask again, and that one answers";
            let _ = late.reply.try_send(Err(inhost_runtime::control::Failure::new(why)));
        }
    }
}

/// Tells when the process ends that took over: nobody serves new callers for long then.
pub async fn watch(host: Host, process: u64) {
    let id = i32::try_from(process).ok().and_then(Pid::from_raw);
    while id.is_some_and(|id| test_kill_process(id).is_ok()) {
        host.sleep(WATCHED_EVERY).await;
    }
    error!(target: "host", process, "the process that took over has ended; this one keeps its sessions, and ends with the last of \
           them: start inhost serve anew then");
}

/// What both processes must agree on of a device, for its frames have that form.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Shape {
    device: String,
    kind: String,
    offload: bool,
    mtu_bytes: Option<usize>,
}

impl Shape {
    /// Of a link that can be handed over.
    fn of(spec: &Spec) -> Option<Shape> {
        let kind = match spec.kind {
            Kind::Tun => "tun",
            Kind::Tap => "tap",
            Kind::User | Kind::Serial | Kind::Memory => return None,
        };
        Some(Shape {
            device: spec.device.clone(),
            kind: kind.to_owned(),
            offload: spec.offload,
            mtu_bytes: spec.mtu_bytes,
        })
    }
    fn differs(&self, other: &Shape) -> Option<String> {
        let offload = |shape: &Shape| if shape.offload { "on" } else { "off" };
        let mtu = |shape: &Shape| shape.mtu_bytes.map_or("as usual".to_owned(), |bytes| bytes.to_string());
        let (what, ours, theirs) = match () {
            () if self.kind != other.kind => ("kind", self.kind.clone(), other.kind.clone()),
            () if self.offload != other.offload => ("offload", offload(self).into(), offload(other).into()),
            () if self.mtu_bytes != other.mtu_bytes => ("mtu", mtu(self), mtu(other)),
            () => return None,
        };
        Some(format!("{what} is {ours} here and {theirs} there"))
    }
}

/// The channel to the process that took over.
pub struct Successor(AsyncFd<Parcels>);

impl Request {
    /// Gives devices, control socket and forwarded ports away. What fails leaves all as it was.
    pub fn carry_out(
        self,
        runtime: &mut Runtime,
        links: &mut Links,
        control: &Server,
    ) -> Result<Successor, String> {
        let done = give(&self.devices, runtime, links, control);
        match done {
            Ok((successor, reply)) => {
                // A client that is gone is seen by its channel.
                let _ = self.reply.try_send(Ok(reply));
                Ok(successor)
            }
            Err(error) => {
                let text = format!("the running host cannot hand over: {error}");
                let _ = self.reply.try_send(Err(inhost_runtime::control::Failure::new(&*text)));
                Err(text)
            }
        }
    }
}

fn give(
    wanted: &[Shape],
    runtime: &mut Runtime,
    links: &mut Links,
    control: &Server,
) -> io::Result<(Successor, Reply)> {
    // First what can fail without a trace.
    if let Some(fixed) = links.fixed.first() {
        let why = format!("the link {fixed} cannot be handed over");
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    for own in links.devices.iter().filter_map(|(spec, _)| Shape::of(spec)) {
        let device = &own.device;
        let why = match wanted.iter().find(|other| other.device == *device) {
            None => format!("it has the link {device}, which is not among the new one's"),
            Some(other) => match own.differs(other) {
                Some(how) => format!("of the link {device}, {how}"),
                None => continue,
            },
        };
        let why = format!("{why}; give both the same links");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let host = runtime.host().clone();
    let (here, there) = Parcels::pair()?;
    let successor = Successor(AsyncFd::new(runtime.handle(), here)?);
    for (spec, link) in &links.devices {
        let Handover { device, channel } = runtime.hand_over(&host, *link)?;
        successor.0.inner().send(&spec.device, &[device.as_fd(), channel.as_fd()])?;
    }
    let listener = control.hand_over()?;
    successor.0.inner().send(CONTROL, &[listener.as_fd()])?;
    links.gateways.iter_mut().for_each(|running| running.gateway.stop_forwarding());
    let (flows, udp_ports) = kept(&host);
    let mut reply = Reply::from(json!({ "flows": flows, "udp": udp_ports }));
    reply.descriptor = Some(OwnedFd::from(there));
    Ok((successor, reply))
}

/// The connections of a host by their ends and states, and the ports of its UDP sockets.
fn kept(host: &Host) -> (Vec<[String; 3]>, Vec<u16>) {
    host.with_stack(|stack, now| {
        let (mut flows, mut udp_ports) = (Vec::new(), Vec::new());
        for info in stack.instruments().sockets(now) {
            match (info.kind, info.remote) {
                (SocketKind::Connection, Some(remote)) => {
                    let state = if info.state == Some(TcpState::TimeWait) { OVER } else { "open" };
                    flows.push([info.local.to_string(), remote.to_string(), state.to_owned()])
                }
                (SocketKind::Udp, _) => udp_ports.push(info.local.port),
                _ => {}
            }
        }
        (flows, udp_ports)
    })
}

impl Successor {
    /// Waits until the new process serves, and lets it go on; false when it ended before.
    pub async fn is_ready(&self) -> bool {
        loop {
            match self.0.io(Interest::Read, Parcels::receive).await {
                Ok(Some((text, _))) if text == READY => return self.0.inner().send(GO, &[]).is_ok(),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return false,
            }
        }
    }
    /// Takes back what the handover gave away: the new process has ended, or was not ready in time, and learns that when it
    /// asks.
    pub fn take_back(self, runtime: &mut Runtime, links: &mut Links, control: &Server) {
        let _ = self.0.inner().send(TOO_LATE, &[]);
        let host = runtime.host().clone();
        for (spec, link) in &links.devices {
            if let Err(error) = runtime.take_back(&host, *link) {
                // It is tried again, as a link that is down.
                warn!(target: "host", "{} is not back yet: {error}", spec.device);
            }
        }
        match control.resume() {
            Ok(()) => control.own_file(),
            Err(error) => warn!(target: "host", "the control socket stays closed: {error}"),
        }
    }
}

/// Listens again at forwarded ports that this process gave up.
///
/// # Errors
/// Why one of them cannot be had, such as that another process still has it.
pub fn listen_again(links: &mut Links) -> Result<(), StartError> {
    links.gateways.iter_mut().map(|running| running.gateway.resume_forwarding()).fold(Ok(()), Result::and)
}

/// What the running host gave to this process.
pub struct Taken {
    devices: BTreeMap<String, Handover>,
    /// The listening control socket.
    control: Option<UnixListener>,
    kept: Kept,
    parcels: Parcels,
    connections: usize,
}

impl Taken {
    /// Asks the host whose control socket is at `path`, whose links must be those of `config`.
    pub fn ask(path: &Path, config: &Config) -> Result<Taken, Failure> {
        let no_host = |e: io::Error| {
            Failure::operation(format!(
                "no host to take over at {}: {e}; start without --take-over, or name its socket with --control",
                path.display()
            ))
        };
        let mut client = Client::open(path).map_err(no_host)?;
        let spec = |link: &String| link.parse::<Spec>().ok();
        let devices: Vec<Shape> =
            config.link.iter().filter_map(spec).filter_map(|spec| Shape::of(&spec)).collect();
        let request = json!({ "op": OPERATION, "process": std::process::id(), "devices": devices });
        let (reply, descriptor) = client.request(&request).map_err(|e| match e {
            ClientError::Refused { text, .. } => Failure::operation(text),
            other => Failure::operation(format!("the handover failed: {other}")),
        })?;
        let not_understood =
            || Failure::operation("the running host's answer is not understood; is it older?");
        let parcels = Parcels::from(descriptor.ok_or_else(not_understood)?);
        let flows = flows(&reply["flows"]).ok_or_else(not_understood)?;
        let udp: Vec<u16> = serde_json::from_value(reply["udp"].clone()).map_err(|_| not_understood())?;
        let connections = flows.len();
        let kept = Kept::new(flows.iter().map(|&(flow, _)| flow), udp);
        flows.iter().filter(|(_, is_over)| *is_over).for_each(|(flow, _)| kept.note_over(flow));
        let mut taken = Taken { devices: BTreeMap::new(), control: None, kept, parcels, connections };
        // They were sent before the reply.
        while taken.control.is_none() {
            let parcel = taken
                .parcels
                .receive_within(ANSWER_WITHIN)
                .map_err(|e| Failure::operation(format!("the handover failed: {e}")))?;
            let (text, descriptors) = parcel.ok_or_else(not_understood)?;
            let mut descriptors = descriptors.into_iter();
            match (descriptors.next(), descriptors.next()) {
                (Some(listener), None) if text == CONTROL => taken.control = Some(listener.into()),
                (Some(device), Some(channel)) => {
                    taken.devices.insert(text, Handover { device, channel });
                }
                _ => return Err(not_understood()),
            }
        }
        Ok(taken)
    }
    /// The device that a link's SPEC names, with what the old process keeps of it.
    pub fn device(&mut self, spec: &Spec) -> Option<(Handover, Kept)> {
        Some((self.devices.remove(&spec.device)?, self.kept.clone()))
    }
    /// Connections that stay with the old process.
    pub fn connections(&self) -> usize {
        self.connections
    }
    /// Serves the control socket.
    pub fn control(&mut self, host: &Host, reactor: &Reactor, path: &Path) -> Option<io::Result<Server>> {
        Some(Server::adopt(host, reactor, path, self.control.take()?))
    }
    /// Says that this process serves, now that `host` has all its sockets, and waits until the old one lets it.
    pub fn ready(&self, host: &Host, control: &Server) -> Result<(), Failure> {
        let (_, bound) = kept(host);
        bound.into_iter().for_each(|port| self.kept.take_udp_port(port));
        let too_late = || {
            Failure::operation(
                "this process was not ready in time, and the host that was to be taken over goes on; find out what holds \
                 it up, or give that host a longer take_over_s",
            )
        };
        match self.parcels.send(READY, &[]).and_then(|()| self.parcels.receive_within(ANSWER_WITHIN)) {
            Ok(Some((text, _))) if text == GO => {}
            Ok(Some(_)) => return Err(too_late()),
            // It ended after it had given everything away.
            Ok(None) => warn!(target: "host", "the host that is taken over has ended, with its connections"),
            Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                return Err(too_late());
            }
            Err(e) => {
                return Err(Failure::operation(format!("the host to be taken over does not answer: {e}")));
            }
        }
        control.own_file();
        Ok(())
    }
}

/// Connections, and whether each is over but for its last state.
fn flows(value: &Value) -> Option<Vec<(KeptFlow, bool)>> {
    let end = |value: &Value| value.as_str()?.parse::<SocketAddr>().ok().map(Endpoint::from);
    let is_over = |state: &Value| state == OVER;
    value.as_array()?.iter().map(|flow| Some(((end(&flow[0])?, end(&flow[1])?), is_over(&flow[2])))).collect()
}
