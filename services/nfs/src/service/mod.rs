//! The NFS server as a service of a host: its exports, its key, its log.

mod lines;
mod section;

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use futures_lite::future::or;
use inhost_base::{Endpoint, Ipv6Addr};
use inhost_common::service::{Description, Doors, HostFiles, Problem, Reach, Service, ServiceContext};
use inhost_common::{Admission, Callers, Guard, Permit, Rate, SessionEvent, Transport, session_log};
use inhost_socket::{Host, Stream, UdpSocket};
use inhost_stack::UdpOptions;
use tracing::info;

use crate::driver::{DatagramLimits, SessionEnd, SessionLimits, serve_datagrams, serve_stream};
use crate::server::handles::{SECRET_BYTES, secret_in};
use crate::server::{Caller, Exported, MountEvent, Programs, Server};
use lines::{Lines, shown};
pub use section::{ExportSection, Section};

/// Calls of NFS in datagrams that one address may have answered; all others than a client that reads a file as fast as it
/// can are far below.
const FILES_EACH: Rate = Rate { burst: 4096, per_second: 20_000 };
/// The same of all addresses.
const FILES_ALL: Rate = Rate { burst: 16_384, per_second: 50_000 };
/// Calls of the portmapper that one address may have answered: replies are longer than calls, and go to the source that a
/// datagram claims.
const PORTS_EACH: Rate = Rate { burst: 20, per_second: 5 };
/// The same of all addresses.
const PORTS_ALL: Rate = Rate { burst: 200, per_second: 100 };
/// Memory of datagrams that wait: some WRITEs.
const RECEIVE_BYTES: usize = 1 << 20;

/// Writes the log of sessions.
const LOG: fn(SessionEvent<'_>) = session_log!("nfs");

/// What is read from the disk: the exports, and the key if there is one.
pub struct Prepared {
    exports: Vec<Exported>,
    secret: Option<[u8; SECRET_BYTES]>,
}

/// The running server.
pub struct Nfs {
    shared: Rc<Shared>,
    doors: Doors,
    ports: crate::server::Ports,
    exports: Cell<usize>,
}

struct Shared {
    host: Host,
    callers: Callers,
    server: Arc<Server>,
    lines: Arc<Lines>,
}

impl Service for Nfs {
    const NAME: &'static str = "nfs";
    type Section = Section;
    type Prepared = Prepared;

    fn check(section: &Section) -> Result<(), Problem> {
        section.check()
    }
    fn is_enabled(section: &Section) -> bool {
        section.enabled
    }
    fn prepare(section: &Section, _: &HostFiles) -> Result<Prepared, Problem> {
        let path = section.key_file();
        let secret = if path.exists() {
            let wrong = |e| Problem::operation(format!("nfs: cannot read the key {}: {e}", path.display()));
            Some(secret_in(&path, [0; SECRET_BYTES]).map_err(wrong)?)
        } else {
            None
        };
        Ok(Prepared { exports: section.exports()?, secret })
    }
    fn start(section: &Section, prepared: Prepared, context: &ServiceContext) -> Result<Nfs, Problem> {
        let secret = match prepared.secret {
            Some(secret) => secret,
            None => {
                let path = section.key_file();
                let fresh = context.entropy()?;
                let wrong =
                    |e| Problem::operation(format!("nfs: cannot keep a key in {}: {e}", path.display()));
                secret_in(&path, fresh).map_err(wrong)?
            }
        };
        let [a, b, c, d, e, f, g, h, ..] = context.entropy()?;
        let verifier = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let lines = Arc::new(Lines::new());
        let own = lines.clone();
        let server = Server::new(&secret, verifier).with_observer(move |event| log(&own, event));
        let server = Arc::new(server);
        let exports = Cell::new(prepared.exports.len());
        server.set_exports(prepared.exports);
        server.set_ports(section.ports());
        let shared =
            Rc::new(Shared { host: context.host.clone(), callers: context.callers.clone(), server, lines });
        let admission = Admission::sharing(section.limits()?, &context.denials);
        let own = shared.clone();
        let log = move |event: SessionEvent<'_>| own.log(event);
        let doors = Doors::new(Self::NAME, &context.host, &context.callers, admission, log);
        let ports = section.ports();
        for (port, programs) in [(ports.files, Programs::Files), (ports.portmapper, Programs::Ports)] {
            if port == 0 {
                continue;
            }
            let own = shared.clone();
            doors.listen(port, move |stream, caller, permit| {
                session(own.clone(), stream, caller, permit, programs)
            })?;
            if ports.has_datagrams {
                let at = Endpoint::new(Ipv6Addr::UNSPECIFIED, port);
                let mut options = UdpOptions::default();
                options.receive_limit_bytes = RECEIVE_BYTES;
                options.send_limit_bytes = RECEIVE_BYTES;
                let own = shared.clone();
                doors.bind(at, options, move |socket| datagrams(own.clone(), socket, programs))?;
            }
        }
        Ok(Nfs { shared, doors, ports, exports })
    }
    fn reload(&self, section: &Section, prepared: Prepared) -> Result<(), Problem> {
        self.doors.admission().set_limits(section.limits()?);
        self.exports.set(prepared.exports.len());
        self.shared.server.set_exports(prepared.exports);
        Ok(())
    }
    fn effect(key: &str) -> Option<&'static str> {
        match key {
            "enabled" | "port" | "portmapper_port" | "udp" | "state" => None,
            key if key.starts_with("limits") => Some("for new connections"),
            _ => Some("at once"),
        }
    }
    fn describe(&self) -> Description {
        let port = self.ports.files;
        let transports = if self.ports.has_datagrams { "TCP and UDP" } else { "TCP" };
        let portmapper = match self.ports.portmapper {
            0 => String::new(),
            port => format!(", portmapper at port {port}"),
        };
        let count = self.exports.get();
        let command = |at: std::net::SocketAddr| {
            let (address, port) = (at.ip(), at.port());
            format!(
                "mount -t nfs -o vers=3,nolock,port={port},mountport={port},mountproto=tcp {address}:PATH FOLDER"
            )
        };
        Description {
            summary: format!(
                "port {port} ({transports}){portmapper}, {count} export{}",
                if count == 1 { "" } else { "s" }
            ),
            reach: vec![Reach::new(Transport::Tcp, port, "mount a folder", command)],
            notice: None,
        }
    }
    fn doors(&self) -> &Doors {
        &self.doors
    }
}

impl Shared {
    /// Writes a line of the log, at a limited rate: a stranger can cause it.
    fn log(&self, event: SessionEvent<'_>) {
        let (SessionEvent::Refused { peer, .. } | SessionEvent::Closed { peer, .. }) = event else { return };
        if let Some(left_out) = self.lines.admit(peer, self.host.now()) {
            LOG(event);
            if left_out > 0 {
                info!(target: "nfs", left_out, "lines were left out");
            }
        }
    }
}

async fn datagrams(shared: Rc<Shared>, socket: UdpSocket, programs: Programs) {
    let guard = match programs {
        Programs::Files => Guard::new(FILES_EACH, FILES_ALL),
        Programs::Ports => Guard::new(PORTS_EACH, PORTS_ALL),
    };
    let outer = |from| shared.callers.of(Transport::Udp, from);
    let service = (&shared.server, programs);
    serve_datagrams(&socket, &shared.host, service, DatagramLimits::default(), guard, outer).await;
}

async fn session(
    shared: Rc<Shared>,
    mut stream: Stream,
    outer: Endpoint,
    permit: Permit,
    programs: Programs,
) {
    // Replies that are made together leave together, and none waits for an acknowledgment.
    stream.set_nagle(false);
    let caller = Caller {
        address: outer.address,
        port: outer.port,
        local: stream.local().address,
        is_datagram: false,
    };
    let limits = SessionLimits::default();
    let served = async {
        let (host, server) = (&shared.host, &shared.server);
        Ok(serve_stream(&mut stream, host, server, caller, programs, limits).await)
    };
    // A client connects again, and sends its calls again.
    let over = async { Err(poll_fn(|cx| permit.poll_over(cx)).await) };
    let why = match or(served, over).await {
        Ok(SessionEnd::Closed) => return,
        Ok(end) => end.to_string(),
        Err(over) => over.to_string(),
    };
    shared.log(SessionEvent::Closed { peer: outer.address, user: None, why: Some(&why) });
    stream.abort();
}

/// One line of the log for each mount, at a limited rate: a datagram is enough to cause one.
fn log(lines: &Lines, event: MountEvent<'_>) {
    let peer = event.caller.address;
    let Some(left_out) = lines.admit(peer, event.at) else { return };
    let path = shown(event.path);
    match event.refusal {
        None => info!(target: "nfs", %peer, path, left_out, "mounted"),
        Some(why) => info!(target: "nfs", %peer, path, left_out, "mount refused: {why}"),
    }
}
