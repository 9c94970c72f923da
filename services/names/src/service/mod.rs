//! The caching forwarder as a service of a host.

mod section;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use inhost_base::Endpoint;
use inhost_common::Transport;
use inhost_common::service::{
    Description, Doors, HostFiles, Problem, Reach, Resolvers, Service, ServiceContext,
};
use inhost_socket::Host;
use tracing::error;

use crate::Hosts;
use crate::forward::{ForwardConfig, Forwarding, Home, serve};
pub use section::{Section, server};

/// The running forwarder. A clone is the same.
#[derive(Clone)]
pub struct NameServer {
    running: Rc<Forwarding>,
    asked: Rc<RefCell<Asked>>,
    host: Host,
    port: u16,
}

/// The configured servers.
struct Asked {
    section: Section,
    table: String,
    /// The host's own servers.
    own: Resolvers,
    /// Those that leases bring.
    leased: Vec<Endpoint>,
}

impl Service for NameServer {
    const NAME: &'static str = "names";
    type Section = Section;
    /// The text of the host's table of names.
    type Prepared = String;

    fn check(section: &Section) -> Result<(), Problem> {
        section.check()
    }
    fn is_enabled(section: &Section) -> bool {
        section.enabled
    }
    fn prepare(_: &Section, files: &HostFiles) -> Result<String, Problem> {
        Ok(table(&files.hosts))
    }
    fn start(section: &Section, table: String, context: &ServiceContext) -> Result<NameServer, Problem> {
        let (host, port) = (context.host.clone(), section.port);
        let own = context.resolvers.clone();
        let asked = Asked { section: section.clone(), table, own, leased: Vec::new() };
        let (forward, hosts) = asked.forward(&host)?;
        let running = serve(&host, port, forward, hosts, context.callers.clone(), context.entropy()?)?;
        Ok(NameServer { running: Rc::new(running), asked: Rc::new(RefCell::new(asked)), host, port })
    }
    /// Takes over what the configuration and the table of hosts say now; what cannot be acted on leaves all as it was.
    fn reload(&self, section: &Section, table: String) -> Result<(), Problem> {
        {
            let mut asked = self.asked.borrow_mut();
            asked.section = section.clone();
            asked.table = table;
        }
        self.change()
    }
    fn effect(key: &str) -> Option<&'static str> {
        (!matches!(key, "enabled" | "port")).then_some("at once")
    }
    fn describe(&self) -> Description {
        let dig = |at: std::net::SocketAddr| format!("dig @{} -p {} NAME", at.ip(), at.port());
        Description {
            summary: format!("port {} (TCP and UDP)", self.port),
            reach: vec![Reach::new(Transport::Udp, self.port, "look a name up", dig)],
            notice: None,
        }
    }
    fn doors(&self) -> &Doors {
        self.running.doors()
    }
}

impl NameServer {
    /// The part shared with the host's resolver, and its port.
    pub fn home(&self) -> Home {
        self.running.home()
    }
    /// Asks the servers that leases bring, as long as nothing else is configured.
    pub fn lease(&self, servers: Vec<Endpoint>) {
        if self.asked.borrow().leased != servers {
            self.asked.borrow_mut().leased = servers;
            if let Err(problem) = self.change() {
                error!(target: "names", "stays as it was: {problem}");
            }
        }
    }
    fn change(&self) -> Result<(), Problem> {
        let (forward, hosts) = self.asked.borrow().forward(&self.host)?;
        self.running.change(forward, hosts);
        Ok(())
    }
}

impl Asked {
    /// Configuration of the forwarder. A forwarder must not ask itself.
    fn forward(&self, host: &Host) -> Result<(ForwardConfig, Hosts), Problem> {
        let is_leased = !self.own.is_configured && !self.leased.is_empty();
        let mut forward = self.section.forward(if is_leased { &self.leased } else { &self.own.servers })?;
        let port = self.section.port;
        let is_itself = |at: &Endpoint| {
            at.port == port && host.with_stack(|stack, _| stack.ip().paths().is_local(at.address))
        };
        forward.servers.retain(|server| !is_itself(server));
        match forward.servers.is_empty() && !self.own.may_be_leased {
            true => Err(Problem::usage(
                "names: there is no server to forward to; name one, as in names.servers = [\"10.9.0.1\"]",
            )),
            false => Ok((forward, self.section.table(&self.table))),
        }
    }
}

/// The text of a table of hosts; one that cannot be read is empty.
pub fn table(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
