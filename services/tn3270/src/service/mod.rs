//! The server as a service of a host: configuration, users, panels, log.

mod panels;
mod section;

use std::cell::RefCell;
use std::future::{poll_fn, ready};
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

use futures_lite::future::or;
use inhost_base::IpAddr;
use inhost_common::service::{
    Description, Doors, HostFiles, Operator, Problem, Reach, Service, ServiceContext,
};
use inhost_common::storage::{Folder, Storage};
use inhost_common::tls::read_certificate;
use inhost_common::users::{Authenticate, Source, ThreadAuthenticator, Verdict};
use inhost_common::{Admission, LocalFuture, Permit, SessionEvent, Transport, session_log};
use inhost_socket::{Host, Stream};
use tracing::info;

use crate::driver::{DeviceEvent, Ended, Server, TlsServer, serve};
use crate::server::{Devices, Origin, SessionConfig};
use crate::transfer::Direction;
use panels::{HostPanels, HostText};
pub use section::{PORT, Section};

/// Most of a news file that is shown.
const NEWS_BYTES: u64 = 64 << 10;
/// Send queue limit of a terminal's connection.
const SEND_BUFFER_BYTES: usize = 128 << 10;

/// Writes the log of sessions.
const LOG: fn(SessionEvent<'_>) = session_log!("tn3270");

/// What is read from disk.
pub struct Prepared {
    config: SessionConfig,
    tls: Option<TlsServer>,
    folder: Option<Folder>,
}

/// The running server.
pub struct Tn3270 {
    shared: Rc<Shared>,
    doors: Doors,
    ports: (u16, u16),
}

struct Shared {
    host: Host,
    devices: Devices,
    authenticator: ThreadAuthenticator,
    netstat: Rc<dyn Fn() -> String>,
    operator: Rc<dyn Operator>,
    current: RefCell<Rc<Current>>,
}

/// What can change while the server runs.
struct Current {
    section: Section,
    prepared: Prepared,
}

impl Service for Tn3270 {
    const NAME: &'static str = "tn3270";
    type Section = Section;
    type Prepared = Prepared;

    fn check(section: &Section) -> Result<(), Problem> {
        section.check()
    }
    fn is_enabled(section: &Section) -> bool {
        section.enabled
    }
    fn prepare(section: &Section, _: &HostFiles) -> Result<Prepared, Problem> {
        section.check()?;
        let tls = match (&section.certificate, &section.key) {
            (Some(certificate), Some(key)) => {
                let (chain, key) = read_certificate("tn3270", certificate, key)?;
                let refused = |e| Problem::operation(format!("tn3270: {}: {e}", certificate.display()));
                Some(TlsServer::from_pem(&chain, &key).map_err(refused)?)
            }
            _ => None,
        };
        let open = |path: &PathBuf| {
            let refused =
                |e| Problem::operation(format!("tn3270: cannot open the folder {}: {e}", path.display()));
            Folder::open(path).map_err(refused)
        };
        let folder = section.root.as_ref().map(open).transpose()?;
        let may_write = section.may_write()?;
        let folder = folder.map(|folder| if may_write { folder } else { folder.read_only() });
        Ok(Prepared { config: section.session()?, tls, folder })
    }
    fn start(section: &Section, prepared: Prepared, context: &ServiceContext) -> Result<Tn3270, Problem> {
        let users = Source::FileOrElse(context.files.users()?.to_owned(), Default::default());
        let authenticator = ThreadAuthenticator::start(users)?;
        let limits = section.limits()?;
        let shared = Rc::new(Shared {
            host: context.host.clone(),
            devices: Devices::new(limits.sessions),
            authenticator,
            netstat: context.netstat.clone(),
            operator: context.operator.clone(),
            current: RefCell::new(Rc::new(Current { section: section.clone(), prepared })),
        });
        let admission = Admission::sharing(limits, &context.denials);
        let doors = Doors::new(Self::NAME, &context.host, &context.callers, admission, LOG);
        let ports = (section.port, section.tls_port);
        for (port, is_tls) in [(section.port, false), (section.tls_port, true)] {
            if port == 0 {
                continue;
            }
            let own = shared.clone();
            doors.listen(port, move |stream, caller, permit| {
                session(own.clone(), stream, caller.address, Rc::new(permit), is_tls)
            })?;
        }
        Ok(Tn3270 { shared, doors, ports })
    }
    fn reload(&self, section: &Section, prepared: Prepared) -> Result<(), Problem> {
        let limits = section.limits()?;
        self.doors.admission().set_limits(limits);
        self.shared.devices.set_most(limits.sessions);
        self.shared.current.replace(Rc::new(Current { section: section.clone(), prepared }));
        Ok(())
    }
    fn effect(key: &str) -> Option<&'static str> {
        (!matches!(key, "enabled" | "port" | "tls_port")).then_some("for new sessions")
    }
    fn describe(&self) -> Description {
        let (port, tls_port) = self.ports;
        let clear = (port > 0).then(|| format!("port {port}"));
        let tls = (tls_port > 0).then(|| format!("with TLS from the start port {tls_port}"));
        let summary: Vec<String> = clear.into_iter().chain(tls).collect();
        let mut reach = Vec::new();
        if port > 0 {
            let command = |at: SocketAddr| format!("c3270 {at}");
            reach.push(Reach::new(Transport::Tcp, port, "a 3270 terminal's menu", command));
        }
        if tls_port > 0 {
            let command = |at: SocketAddr| format!("c3270 L:{at}");
            reach.push(Reach::new(Transport::Tcp, tls_port, "the same with TLS", command));
        }
        Description { summary: summary.join(", "), reach, notice: None }
    }
    fn doors(&self) -> &Doors {
        &self.doors
    }
}

async fn session(shared: Rc<Shared>, mut stream: Stream, peer: IpAddr, permit: Rc<Permit>, is_tls: bool) {
    // A screen is one write, and nothing follows it.
    stream.set_nagle(false);
    stream.set_send_buffer_limit(SEND_BUFFER_BYTES);
    let current = shared.current.borrow().clone();
    let panels = HostPanels {
        host: Rc::new(SessionText { shared: shared.clone(), current: current.clone() }),
        clock: shared.host.clone(),
        permit: permit.clone(),
        title: current.section.title.clone(),
        attempts: current.section.attempts,
    };
    let log = |event: DeviceEvent<'_>| log(peer, event);
    let server = Server {
        config: current.prepared.config.clone(),
        devices: shared.devices.clone(),
        panels: &panels,
        clock: &shared.host,
        log: &log,
    };
    let origin = Origin { address: peer, is_tls };
    let ended = match (is_tls, &current.prepared.tls) {
        (false, _) => serve(&mut stream, origin, &server, &permit).await,
        (true, None) => Ended::Disconnected,
        (true, Some(tls)) => match or(tls.accept(&mut stream, &shared.host), over(&permit)).await {
            Ok(secured) => serve(secured, origin, &server, &permit).await,
            Err(error) => {
                info!(target: "tn3270", %peer, "TLS failed: {error}");
                Ended::Disconnected
            }
        },
    };
    let why = match &ended {
        Ended::Closed(closing) => Some(closing.to_string()),
        Ended::Disconnected => None,
        Ended::Over(over) => Some(over.to_string()),
    };
    LOG(SessionEvent::Closed { peer, user: None, why: why.as_deref() });
    if !matches!(ended, Ended::Closed(_)) {
        stream.abort();
    }
}

/// The end of a handshake that the service no longer wants.
async fn over<T>(permit: &Permit) -> std::io::Result<T> {
    poll_fn(|cx| permit.poll_over(cx)).await;
    Err(std::io::ErrorKind::ConnectionAborted.into())
}

/// One line of the log for each event. What a client named is a field: it is quoted and its control octets are escaped.
fn log(peer: IpAddr, event: DeviceEvent<'_>) {
    match event {
        DeviceEvent::Ready { device_type, device } => {
            info!(target: "tn3270", %peer, device_type, device, "connected");
        }
        DeviceEvent::Transferred { command, outcome } => {
            let name = &*command.name;
            let verb = if command.direction == Direction::Upload { "PUT" } else { "GET" };
            match outcome {
                Ok(bytes) => info!(target: "tn3270", %peer, verb, name, bytes, "transferred"),
                Err(why) => info!(target: "tn3270", %peer, verb, name, "transfer failed: {why}"),
            }
        }
        DeviceEvent::Printed { is_done: true } => info!(target: "tn3270", %peer, "printed"),
        DeviceEvent::Printed { is_done: false } => info!(target: "tn3270", %peer, "the printer failed"),
    }
}

/// What the panels of one session show.
struct SessionText {
    shared: Rc<Shared>,
    current: Rc<Current>,
}

impl HostText for SessionText {
    fn news(&self) -> LocalFuture<String> {
        match self.current.section.news.clone() {
            None => Box::pin(ready("No news.".to_owned())),
            Some(path) => Box::pin(blocking::unblock(move || read_news(&path))),
        }
    }
    fn netstat(&self) -> String {
        (self.shared.netstat)()
    }
    fn operator(&self) -> Rc<dyn Operator> {
        self.shared.operator.clone()
    }
    fn authenticate(&self, user: String, password: String) -> LocalFuture<Verdict> {
        self.shared.authenticator.authenticate(user, password)
    }
    fn files(&self) -> Option<Rc<dyn Storage>> {
        let folder = self.current.prepared.folder.clone()?;
        Some(Rc::new(folder))
    }
}

fn read_news(path: &std::path::Path) -> String {
    let mut text = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(NEWS_BYTES).read_to_end(&mut text));
    match read {
        Ok(_) => String::from_utf8_lossy(&text).into_owned(),
        Err(_) => "The news cannot be read.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_checked() {
        let section = |text: &str| toml::from_str::<Section>(text).unwrap();
        assert_eq!(section(""), Section::default());
        assert!(Tn3270::check(&Section::default()).is_ok());
        let wrong = |text: &str| Tn3270::check(&section(text)).unwrap_err().to_string();
        assert!(wrong("rights = \"all\"").contains("tn3270.rights"));
        assert!(wrong("code_page = \"ascii\"").contains("tn3270.code_page"));
        assert!(wrong("upload = \"much\"").contains("tn3270.upload"));
        assert!(wrong("tls_port = 992").contains("tn3270.certificate"));
        assert!(wrong("port = 0").contains("both 0"));
        assert!(toml::from_str::<Section>("prot = 1").is_err());
        let config = section("idle_min = 0\ntn3270e = false\ncode_page = \"1047\"").session().unwrap();
        assert_eq!((config.idle_time, config.machine.has_tn3270e), (None, false));
        assert_eq!(config.code_page.number(), 1047);
    }
}
