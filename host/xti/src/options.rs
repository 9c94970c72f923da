//! Options, typed: `t_optmgmt` and what it negotiates.

use inhost_base::Duration;
use inhost_stack::{ConnectionOption, SocketOption};
use inhost_tcp::{Config, KeepAlive};

use crate::provider::Provider;

/// An option with its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TransportOption {
    /// `TCP_NODELAY`: small segments leave at once. Default no.
    NoDelay(bool),
    /// `TCP_KEEPALIVE`: an idle peer is probed, and how. Default none.
    KeepAlive(Option<KeepAlive>),
    /// `XTI_SNDBUF`: bytes that may wait to be sent. Default as the host is configured.
    SendBuffer(usize),
    /// `XTI_RCVBUF`: bytes that received data may pin. Default as the host is configured.
    ReceiveBuffer(usize),
    /// `XTI_LINGER`: how long unsent data outlives the endpoint; zero resets. Default as long as needed.
    Linger(Option<Duration>),
}

/// What `t_optmgmt` is to do with options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionRequest {
    /// `T_NEGOTIATE`: set them, for the connection of the endpoint and those that follow.
    Negotiate,
    /// `T_CHECK`: say whether they could be set.
    Check,
    /// `T_DEFAULT`: say what they are when nothing was negotiated. The values given do not count.
    Default,
    /// `T_CURRENT`: say what they are. The values given do not count.
    Current,
}

/// What became of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionStatus {
    /// `T_SUCCESS`: done as asked.
    Success,
    /// `T_NOTSUPPORT`: the provider does not have this option.
    NotSupported,
}

impl TransportOption {
    pub(crate) fn is_of(self, provider: Provider) -> bool {
        match self {
            TransportOption::NoDelay(_) | TransportOption::KeepAlive(_) | TransportOption::Linger(_) => {
                provider == Provider::Tcp
            }
            TransportOption::SendBuffer(_) | TransportOption::ReceiveBuffer(_) => true,
        }
    }
    fn is_alike(self, other: TransportOption) -> bool {
        core::mem::discriminant(&self) == core::mem::discriminant(&other)
    }
    pub(crate) fn of_socket(self) -> SocketOption {
        match self {
            TransportOption::NoDelay(on) => SocketOption::Tcp(ConnectionOption::Nagle(!on)),
            TransportOption::KeepAlive(how) => SocketOption::Tcp(ConnectionOption::KeepAlive(how)),
            TransportOption::SendBuffer(bytes) => SocketOption::SendBufferLimit(bytes),
            TransportOption::ReceiveBuffer(bytes) => SocketOption::ReceiveBufferLimit(bytes),
            TransportOption::Linger(time) => SocketOption::Linger(time),
        }
    }
    /// The option as a host's configuration of TCP has it.
    pub(crate) fn of_config(self, config: &Config) -> TransportOption {
        match self {
            TransportOption::NoDelay(_) => TransportOption::NoDelay(!config.nagle),
            TransportOption::KeepAlive(_) => TransportOption::KeepAlive(config.keep_alive),
            TransportOption::SendBuffer(_) => TransportOption::SendBuffer(config.send_buffer_limit_bytes),
            TransportOption::ReceiveBuffer(_) => {
                TransportOption::ReceiveBuffer(config.receive_buffer_limit_bytes)
            }
            TransportOption::Linger(_) => TransportOption::Linger(None),
        }
    }
}

/// What was negotiated on an endpoint: at most one value of each option.
#[derive(Clone, Debug, Default)]
pub(crate) struct Negotiated(Vec<TransportOption>);

impl Negotiated {
    pub(crate) fn set(&mut self, option: TransportOption) {
        self.0.retain(|other| !other.is_alike(option));
        self.0.push(option);
    }
    pub(crate) fn value(&self, option: TransportOption) -> Option<TransportOption> {
        self.0.iter().copied().find(|other| other.is_alike(option))
    }
    pub(crate) fn of_sockets(&self) -> Vec<SocketOption> {
        self.0.iter().map(|option| option.of_socket()).collect()
    }
}
