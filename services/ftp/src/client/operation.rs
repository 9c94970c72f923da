//! Operations of a client, and the actions that it asks of its driver.

use std::fmt;

use inhost_base::Endpoint;

use crate::codec::{Parameters, Reply, ReplyError};

/// How the data connection is opened: active or passive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DataVia {
    /// We go to the server, which passes NATs and firewalls (RFC 1579).
    #[default]
    Passive,
    /// The server comes to us.
    Active,
}

/// One transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The command that begins it, such as `RETR name`.
    pub command: String,
    /// Type and representation of the data.
    pub parameters: Parameters,
    /// Restart position, if any (REST).
    pub restart: Option<u64>,
    /// Size for ALLO.
    pub size_bytes: Option<u64>,
    /// How the data connection is opened: active or passive.
    pub via: DataVia,
}

/// Something to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Wait for the server's greeting.
    Greet,
    /// Begin TLS and protect data (RFC 4217).
    Secure,
    /// Protect data; TLS came first.
    Protect,
    /// Log in, and ask what the server can.
    LogIn {
        /// The user.
        user: String,
        /// The password.
        password: String,
        /// Account sent by ACCT on request.
        account: Option<String>,
    },
    /// Send a line and read the reply.
    Command(String),
    /// Transfer.
    Transfer(Transfer),
    /// Third-party transfer, the side that listens: set parameters and say PASV.
    Offer(Parameters),
    /// Third-party transfer, the side that calls: set parameters and say PORT.
    Call(Parameters, Endpoint),
    /// Send a line and read the preliminary reply; [`Operation::Finish`] reads the final one.
    Begin(String),
    /// Hear the end of what was begun.
    Finish,
    /// End the transfer that was begun (RFC 959 §4.1.3).
    Abort,
}

impl Operation {
    /// Whether what it sends is one line at a time: names may have line ends, and a name without its line end is
    /// another's.
    pub(super) fn is_of_lines(&self) -> bool {
        let texts: [Option<&str>; 3] = match self {
            Operation::LogIn { user, password, account } => [Some(user), Some(password), account.as_deref()],
            Operation::Command(line) | Operation::Begin(line) => [Some(line), None, None],
            Operation::Transfer(transfer) => [Some(&transfer.command), None, None],
            _ => [None; 3],
        };
        !texts.into_iter().flatten().any(|text| text.contains(['\r', '\n', '\0']))
    }
}

/// Endpoint of a passive server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passive {
    /// At this port of the address that the control connection has.
    Port(u16),
    /// PASV named another address; it counts only between two servers, for a server that can send us anywhere is
    /// nobody's friend.
    Named(Endpoint),
}

/// Actions that a client requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Once all that is pending was sent, begin TLS; answered by [`super::Client::tls_started`].
    StartTls,
    /// Go to the server for data.
    Connect(Passive),
    /// Listen for the server; answered by [`super::Client::listening`].
    Listen,
    /// Move the data; answered by [`super::Client::data_ended`].
    Move,
    /// Drop the data connection.
    DropData,
    /// The operation has finished or failed.
    Done(Result<Answer, ClientError>),
}

/// Result of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The server's last word.
    Reply(Reply),
    /// The server's listening endpoint.
    Offered(Endpoint),
}

/// Why an operation came to nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The server refused: what was said, without passwords, and its answer.
    Refused(String, Reply),
    /// The server broke the protocol.
    Protocol(String),
    /// The data connection.
    Data(String),
    /// The control connection.
    Connection(String),
    /// A file on this side.
    Local(String),
    /// The received data differs from the server's file.
    Verify(String),
}

impl From<ReplyError> for ClientError {
    fn from(error: ReplyError) -> Self {
        ClientError::Protocol(error.to_string())
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Refused(said, reply) => write!(f, "{said}: {reply}"),
            ClientError::Protocol(why) | ClientError::Connection(why) | ClientError::Local(why) => {
                f.write_str(why)
            }
            ClientError::Data(why) => write!(f, "data connection: {why}"),
            ClientError::Verify(why) => write!(f, "verification: {why}"),
        }
    }
}
impl std::error::Error for ClientError {}

/// Features announced by the server (FEAT, RFC 2389).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Features {
    lines: Vec<String>,
}

impl Features {
    pub(super) fn of(reply: &Reply) -> Features {
        let lines = match reply.lines.as_slice() {
            [_, middle @ .., _] => middle.iter().map(|line| line.trim().to_ascii_uppercase()).collect(),
            _ => Vec::new(),
        };
        Features { lines }
    }
    /// Whether a feature is listed.
    pub fn has(&self, name: &str) -> bool {
        self.argument(name).is_some()
    }
    /// Parameters of a feature.
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.lines.iter().find_map(|line| {
            let (found, rest) = line.split_once(' ').unwrap_or((line, ""));
            (found == name).then_some(rest)
        })
    }
}
