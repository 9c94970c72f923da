//! Description of a service in a host's banner.

use std::net::SocketAddr;

use crate::Transport;

/// Description of a service.
pub struct Description {
    /// One line: ports and transports.
    pub summary: String,
    /// Commands by which a person reaches it.
    pub reach: Vec<Reach>,
    /// Something that a person has to know.
    pub notice: Option<Notice>,
}

/// A command by which a person reaches a service.
pub struct Reach {
    /// The transport of the service's port.
    pub transport: Transport,
    /// The port.
    pub port: u16,
    /// The command for the address and port at which the service is reached from outside.
    pub command: Box<dyn Fn(SocketAddr) -> String>,
    /// Purpose of the command.
    pub purpose: String,
}

impl Reach {
    /// A command for a port.
    pub fn new(
        transport: Transport,
        port: u16,
        purpose: impl Into<String>,
        command: impl Fn(SocketAddr) -> String + 'static,
    ) -> Reach {
        Reach { transport, port, command: Box::new(command), purpose: purpose.into() }
    }
}

/// Something that a person has to know, with a secret that is shown on a terminal only.
pub struct Notice {
    /// For a terminal.
    pub on_terminal: String,
    /// For anything else.
    pub elsewhere: String,
}
