//! What `inhost serve` says when it is up: what is served, where, and what to type to reach it.

use crate::config::Config;
use crate::links::Links;
use inhost_gateway::{Forward, Transport};
use inhost_little::Service;
use std::net::SocketAddr;
use std::path::Path;

/// The services that run.
pub struct Running<'a> {
    pub telnet: bool,
    pub little: bool,
    pub ftp: bool,
    pub tftp: bool,
    pub names: bool,
    /// User and password of a host for which no user was made.
    pub one_time: Option<(&'a str, &'a str)>,
}

/// Where things are on a running host.
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
        let program = std::env::args().next().unwrap_or_else(|| "inhost".into());
        Banner { config, links, control, forwards, program, is_terminal }
    }

    /// All of it.
    pub fn text(&self, running: &Running<'_>) -> String {
        let mut text = String::from("inhost: an Internet host in a process\n\n");
        for line in &self.links.lines {
            text += &format!("  link      {line}\n");
        }
        text += &format!("  control   {}\n", self.control.display());
        text += &self.services(running);
        for forward in &self.forwards {
            let transport = match forward.transport {
                Transport::Tcp => "tcp",
                Transport::Udp => "udp",
            };
            text += &format!("  forward   {transport} {} -> {}\n", forward.outside, forward.guest_port);
        }
        text += "\nType in another terminal:\n";
        for (command, what) in self.commands(running) {
            text += &format!("  {command:<34}  {what}\n");
        }
        text += &self.one_time(running);
        text + "\nPress the interrupt key (Ctrl-C) to end.\n"
    }

    /// A line for each service.
    fn services(&self, running: &Running<'_>) -> String {
        let mut text = String::new();
        if running.telnet {
            text += &format!("  telnet    port {}\n", self.config.telnet.port);
        }
        if running.ftp {
            text += &super::ftp::line(&self.config.ftp);
        }
        if running.tftp {
            text += &format!("  tftp      port {} (UDP)\n", self.config.tftp.port);
        }
        if running.names {
            text += &super::names::line(self.config);
        }
        if running.little {
            let names = Service::ALL.map(|s| format!("{} {}", s.name(), s.port()));
            text += &format!("  little    {} (TCP and UDP)\n", names.join(", "));
        }
        text
    }

    /// What to type to reach each service, and to see inside.
    fn commands(&self, running: &Running<'_>) -> Vec<(String, String)> {
        let program = &self.program;
        let mut commands = Vec::new();
        let mut reach = |transport, port, command: &dyn Fn(SocketAddr) -> String, what: &str| {
            commands.push(match self.outside(transport, port) {
                Some(at) => (command(at), what.to_owned()),
                None => (format!("(port {port} cannot be reached)"), self.how_to_reach(transport, port)),
            });
        };
        if running.telnet {
            let command = |at: SocketAddr| match at.port() {
                23 => format!("telnet {}", at.ip()),
                port => format!("telnet {} {port}", at.ip()),
            };
            reach(Transport::Tcp, self.config.telnet.port, &command, "log in, after LOGON");
        }
        if running.ftp {
            let command = |at| format!("curl ftp://{at}/");
            reach(
                Transport::Tcp,
                self.config.ftp.port,
                &command,
                "list files; ftp://USER@... for a user's own",
            );
        }
        if running.tftp {
            let command = |at| format!("curl tftp://{at}/FILE");
            reach(Transport::Udp, self.config.tftp.port, &command, "fetch a file");
        }
        if running.names {
            let command = |at: SocketAddr| format!("dig @{} -p {} NAME", at.ip(), at.port());
            reach(Transport::Udp, self.config.names.port, &command, "look a name up");
        }
        if running.little {
            let command = |at: SocketAddr| format!("nc {} {}", at.ip(), at.port());
            for service in Service::ALL {
                let what = match service {
                    Service::Echo => "what you type comes back",
                    Service::Discard => "what you type is taken",
                    Service::Daytime => "the time of day",
                    Service::Chargen => "characters without end",
                };
                reach(Transport::Tcp, service.port(), &command, what);
            }
        }
        commands.push((format!("{program} netstat{}", self.via()), "see inside".into()));
        commands
    }

    /// The address at which a caller outside reaches `port`.
    fn outside(&self, transport: Transport, port: u16) -> Option<SocketAddr> {
        let leads = |f: &&&Forward| f.transport == transport && f.guest_port == port;
        let forward = self.forwards.iter().find(leads).map(|f| f.outside);
        let own = self.links.addresses.first().map(|&address| SocketAddr::new(address, port));
        forward.or(own)
    }

    /// What to do about a port that no forward leads to, on a host without an address of its own.
    fn how_to_reach(&self, transport: Transport, port: u16) -> String {
        if !self.links.dhcp.is_empty() {
            return format!("at the address of the lease: {} netstat interfaces{}", self.program, self.via());
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

    fn one_time(&self, running: &Running<'_>) -> String {
        let Some((user, password)) = running.one_time else { return String::new() };
        let path = self.config.telnet.users.as_ref();
        let users = path.map(|path| format!(" --users {}", path.display())).unwrap_or_default();
        let make = format!("Make one that stays with: {} user add NAME{users}\n", self.program);
        if self.is_terminal {
            format!("\nNo user is configured. For this run only: user {user}, password {password}\n{make}")
        } else {
            format!("\nNo user is configured, and this is no terminal to show a one-time password on. {make}")
        }
    }
}
