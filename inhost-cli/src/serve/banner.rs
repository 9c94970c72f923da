//! Banner of `inhost serve`: services, addresses, and the commands that reach them.

use crate::config::Config;
use crate::links::Links;
use inhost_common::service::{Description, Reach};
use inhost_gateway::{Forward, Transport};
use std::net::SocketAddr;
use std::path::Path;

/// The descriptions of the services.
pub type Said = [(&'static str, Description)];

/// Addresses of a running host.
pub struct Banner<'a> {
    config: &'a Config,
    links: &'a Links,
    control: &'a Path,
    forwards: Vec<&'a Forward>,
    /// As this program was called.
    program: String,
    /// Whether a person reads it: a password is shown to nobody else.
    is_terminal: bool,
}

impl<'a> Banner<'a> {
    pub fn new(config: &'a Config, links: &'a Links, control: &'a Path, is_terminal: bool) -> Banner<'a> {
        let forwards = links.gateways.iter().flat_map(|running| running.gateway.forwards()).collect();
        Banner { config, links, control, forwards, program: program(), is_terminal }
    }

    /// All of it.
    pub fn text(&self, said: &Said) -> String {
        let mut text = String::from("inhost: an Internet host in a process\n\n");
        for line in &self.links.lines {
            text += &format!("  link      {line}\n");
        }
        text += &format!("  control   {}\n", self.control.display());
        for (name, description) in said {
            text += &format!("  {name:<8}  {}\n", description.summary);
        }
        for forward in &self.forwards {
            let transport = match forward.transport {
                Transport::Tcp => "tcp",
                Transport::Udp => "udp",
            };
            text += &format!("  forward   {transport} {} -> {}\n", forward.outside, forward.guest_port);
        }
        text += "\nType in another terminal:\n";
        for (command, what) in self.commands(said) {
            text += &format!("  {command:<34}  {what}\n");
        }
        for notice in said.iter().filter_map(|(_, description)| description.notice.as_ref()) {
            let words = if self.is_terminal { &notice.on_terminal } else { &notice.elsewhere };
            text += &format!("\n{words}\n");
        }
        text + "\nPress the interrupt key (Ctrl-C) to end.\n"
    }

    /// Commands that reach each service and inspect the host.
    fn commands(&self, said: &Said) -> Vec<(String, String)> {
        let mut commands = Vec::new();
        for Reach { transport, port, command, purpose } in said.iter().flat_map(|(_, said)| &said.reach) {
            commands.push(match self.outside(*transport, *port) {
                Some(at) => (command(at), purpose.clone()),
                None => (format!("(port {port} cannot be reached)"), self.how_to_reach(*transport, *port)),
            });
        }
        commands.push((format!("{} netstat{}", self.program, self.via()), "see inside".into()));
        commands
    }

    /// The address at which a caller outside reaches `port`.
    fn outside(&self, transport: Transport, port: u16) -> Option<SocketAddr> {
        let leads = |f: &&&Forward| f.transport == transport && f.guest_port == port;
        let forward = self.forwards.iter().find(leads).map(|f| f.outside);
        let own = self.links.addresses.first().map(|&address| SocketAddr::new(address, port));
        forward.or(own)
    }

    /// What to do about a port that no forward leads to, on a host without its own address.
    fn how_to_reach(&self, transport: Transport, port: u16) -> String {
        if !self.links.dhcp.is_empty() {
            return format!("at the address of the lease: {} netstat interfaces{}", self.program, self.via());
        }
        if self.links.user.is_empty() {
            let link = self.config.link.first().map_or("tap:NAME", String::as_str);
            return format!("the host has no address; give the link one: {link},address=10.9.0.2/24");
        }
        let outside = if port < 1024 { port + 2000 } else { port };
        let transport = match transport {
            Transport::Tcp => "",
            Transport::Udp => "udp:",
        };
        format!("add to the user link: forward={transport}127.0.0.1:{outside}->{port}")
    }

    /// The flag that names a control socket of the user's choice.
    fn via(&self) -> String {
        let chosen = self.config.control.as_ref();
        chosen.map(|path| format!(" --via {}", path.display())).unwrap_or_default()
    }
}

/// As this program was called.
pub fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "inhost".into())
}
