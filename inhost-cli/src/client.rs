//! The host on which a client runs: a private one, or one that only waits while the running host makes the connections.

use crate::connection::Maker;
use crate::failure::Failure;
use crate::through::{HostChoice, Private, client_runtime};
use inhost_base::Duration;
use inhost_gateway::Running;
use inhost_runtime::Runtime;
use std::rc::Rc;

/// Longest wait of a private host for its connections to close.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// It.
pub struct ClientHost {
    /// The runtime.
    pub runtime: Runtime,
    /// Makes its connections.
    pub maker: Maker,
    /// Those of a private host's links live as long as the client.
    _gateways: Vec<Running>,
}

impl ClientHost {
    /// Starts it for the `way` that connections go. Fails where the system refuses what a runtime needs.
    pub fn start(choice: HostChoice) -> Result<ClientHost, Failure> {
        match choice {
            HostChoice::Private(private) => {
                let Private { runtime, links, names, reaches_loopback } = *private;
                let host = runtime.host().clone();
                let maker = Maker::Private { host, names: Rc::new(names), reaches_loopback };
                Ok(ClientHost { runtime, maker, _gateways: links.gateways })
            }
            HostChoice::Running(path) => {
                let runtime = client_runtime()?;
                let maker = Maker::Running { path, reactor: runtime.handle().clone() };
                Ok(ClientHost { runtime, maker, _gateways: Vec::new() })
            }
        }
    }
    /// Ends it: what closes a connection has to cross the link before a private host is gone.
    pub fn end(mut self) -> Result<(), Failure> {
        let ended = self.runtime.shutdown(CLOSE_WITHIN);
        ended.map(drop).map_err(|e| Failure::operation(format!("unclean shutdown: {e}")))
    }
}
