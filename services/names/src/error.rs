//! Why a name gave no address, or no connection: what failed, where, and what to try.

use inhost_base::{Duration, Endpoint, IpAddr};
use std::fmt;

/// Why a name has no address for us.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LookUpError {
    /// The text can be no name.
    NotAName {
        /// The requested name.
        name: String,
    },
    /// The name is in no table, and no name server is configured.
    NoServers {
        /// The requested name.
        name: String,
    },
    /// The name servers say that there is no such name.
    NoSuchName {
        /// The requested name.
        name: String,
        /// The servers that were asked.
        servers: Vec<Endpoint>,
    },
    /// The name exists and has no address.
    NoAddress {
        /// The requested name.
        name: String,
        /// The servers that were asked.
        servers: Vec<Endpoint>,
    },
    /// Nobody on the links has the name, which ends in `.local`.
    NobodyHas {
        /// The requested name.
        name: String,
    },
    /// No name server answered.
    NoAnswer {
        /// The requested name.
        name: String,
        /// The servers that were asked.
        servers: Vec<Endpoint>,
        /// Time until the failure.
        after: Duration,
    },
    /// The name servers answered with something of no use.
    Failed {
        /// The requested name.
        name: String,
        /// The servers that were asked.
        servers: Vec<Endpoint>,
        /// The error in the answer.
        what: String,
    },
}

struct List<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, item) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{item}")?;
        }
        Ok(())
    }
}

impl fmt::Display for LookUpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookUpError::NotAName { name } => {
                write!(
                    f,
                    "{name:?} is neither an address nor a name; names are letters, digits, hyphens and dots"
                )
            }
            LookUpError::NoServers { name } => write!(
                f,
                "no address for {name}: it is not in the hosts table and no name server is configured; \
                 give an address or name a server"
            ),
            LookUpError::NoSuchName { name, servers } => {
                write!(f, "there is no host {name}, says {}; check the spelling", List(servers))
            }
            LookUpError::NoAddress { name, servers } => {
                write!(f, "{name} exists but has no address, says {}", List(servers))
            }
            LookUpError::NobodyHas { name } => {
                write!(f, "nobody on the link answers to {name}; is it up, and does it speak mDNS?")
            }
            LookUpError::NoAnswer { name, servers, after } => write!(
                f,
                "no address for {name}: {} did not answer within {after}; try another name server",
                List(servers)
            ),
            LookUpError::Failed { name, servers, what } => {
                write!(f, "no address for {name}: asked {}: {what}; try another name server", List(servers))
            }
        }
    }
}
impl std::error::Error for LookUpError {}

/// Why no connection by name came about.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectByNameError {
    /// The name has no address.
    LookUp(LookUpError),
    /// Every address was tried.
    Attempts {
        /// The requested name.
        name: String,
        /// The port.
        port: u16,
        /// Each address with what went wrong, in the order of failing.
        failures: Vec<(IpAddr, std::io::Error)>,
    },
}

impl fmt::Display for ConnectByNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectByNameError::LookUp(error) => fmt::Display::fmt(error, f),
            ConnectByNameError::Attempts { name, port, failures } => {
                write!(f, "cannot connect to {name} port {port}: ")?;
                let each: Vec<String> = failures.iter().map(|(a, e)| format!("{a}: {e}")).collect();
                fmt::Display::fmt(&List(&each), f)
            }
        }
    }
}
impl std::error::Error for ConnectByNameError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConnectByNameError::LookUp(error) => Some(error),
            ConnectByNameError::Attempts { .. } => None,
        }
    }
}
