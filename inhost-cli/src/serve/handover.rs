//! `inhost serve --take-over`: a new process takes links and listeners of the running host over; the old one keeps its
//! sessions until they end.
//!
//! The new process asks at the control socket. The reply names what the old one keeps, and has a channel on which each
//! device comes with its channel for frames, and then the control socket itself. When its services listen, the new
//! process says `ready` on that channel. If it ends before, the old one goes on as if nothing had been.

use crate::config::Config;
use crate::failure::Failure;
use crate::links::Links;
use inhost_base::Endpoint;
use inhost_link::{Handover, Kept, KeptFlow, Kind, Spec};
use inhost_runtime::control::{Client, ClientError, Parcels, Reply, Server};
use inhost_runtime::{AsyncFd, Interest, Reactor, Runtime};
use inhost_socket::Host;
use inhost_stack::SocketKind;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use tracing::warn;

/// The request at the control socket.
const OPERATION: &str = "handover";
/// The parcel with the control socket.
const CONTROL: &str = "control";
/// What the new process says when its services listen.
const READY: &str = "ready";

/// A request for the handover, which the host's main loop carries out.
pub struct Request {
    /// The process that asks.
    pub process: u64,
    /// The devices of its links.
    devices: Vec<String>,
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
    wanted: &[String],
    runtime: &mut Runtime,
    links: &mut Links,
    control: &Server,
) -> io::Result<(Successor, Reply)> {
    // First what can fail without a trace.
    if let Some(fixed) = links.fixed.first() {
        let why = format!("the link {fixed} cannot be handed over");
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    if let Some((name, _)) = links.devices.iter().find(|(name, _)| !wanted.contains(name)) {
        let why =
            format!("it has the link {name}, which is not among the new one's; give both the same links");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let host = runtime.host().clone();
    let (here, there) = Parcels::pair()?;
    let successor = Successor(AsyncFd::new(runtime.handle(), here)?);
    for (name, link) in &links.devices {
        let Handover { device, channel } = runtime.hand_over(&host, *link)?;
        successor.0.inner().send(name, &[device.as_fd(), channel.as_fd()])?;
    }
    let listener = control.hand_over()?;
    successor.0.inner().send(CONTROL, &[listener.as_fd()])?;
    links.gateways.iter_mut().for_each(|running| running.gateway.stop_forwarding());
    let (flows, udp_ports) = kept(&host);
    let mut reply = Reply::from(json!({ "flows": flows, "udp": udp_ports }));
    reply.descriptor = Some(OwnedFd::from(there));
    Ok((successor, reply))
}

/// The connections of a host by their ends, and the ports of its UDP sockets.
fn kept(host: &Host) -> (Vec<[String; 2]>, Vec<u16>) {
    host.with_stack(|stack, now| {
        let (mut flows, mut udp_ports) = (Vec::new(), Vec::new());
        for info in stack.instruments().sockets(now) {
            match (info.kind, info.remote) {
                (SocketKind::Connection, Some(remote)) => {
                    flows.push([info.local.to_string(), remote.to_string()])
                }
                (SocketKind::Udp, _) => udp_ports.push(info.local.port),
                _ => {}
            }
        }
        (flows, udp_ports)
    })
}

impl Successor {
    /// Waits until the new process serves; false when it ended before.
    pub async fn is_ready(&self) -> bool {
        loop {
            match self.0.io(Interest::Read, Parcels::receive).await {
                Ok(Some((text, _))) if text == READY => return true,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return false,
            }
        }
    }
}

/// Takes back what a handover gave away, because the new process has ended. The devices come back by themselves, as
/// links that were down.
pub fn take_back(links: &mut Links, control: &Server) {
    match control.resume() {
        Ok(()) => control.own_file(),
        Err(error) => warn!(target: "host", "the control socket stays closed: {error}"),
    }
    for running in &mut links.gateways {
        if let Err(error) = running.gateway.resume_forwarding() {
            warn!(target: "host", "{error}");
        }
    }
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
        let devices: Vec<String> = config.link.iter().filter_map(|link| device_of(link)).collect();
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
        let mut taken = Taken {
            devices: BTreeMap::new(),
            control: None,
            kept: Kept::new(flows, udp),
            parcels,
            connections,
        };
        // They were sent before the reply.
        while taken.control.is_none() {
            let parcel = taken
                .parcels
                .receive()
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
    /// Says that this process serves, now that `host` has all its sockets.
    pub fn ready(&self, host: &Host, control: &Server) -> Result<(), Failure> {
        let (_, bound) = kept(host);
        bound.into_iter().for_each(|port| self.kept.take_udp_port(port));
        self.parcels
            .send(READY, &[])
            .map_err(|e| Failure::operation(format!("the host to be taken over has ended: {e}")))?;
        control.own_file();
        Ok(())
    }
}

/// The device's name of a link, where it has one that can be handed over.
fn device_of(link: &str) -> Option<String> {
    let spec = link.parse::<Spec>().ok()?;
    matches!(spec.kind, Kind::Tun | Kind::Tap).then_some(spec.device)
}

fn flows(value: &Value) -> Option<Vec<KeptFlow>> {
    let end = |value: &Value| value.as_str()?.parse::<SocketAddr>().ok().map(Endpoint::from);
    value.as_array()?.iter().map(|flow| Some((end(&flow[0])?, end(&flow[1])?))).collect()
}
