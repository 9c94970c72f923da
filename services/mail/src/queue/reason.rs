//! Why a message waits, or why it failed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::client::Step;
use crate::codec::Reply;

/// A server that was tried in vain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Attempted {
    /// Its name.
    pub server: String,
    /// The port; 0 in queues of older versions.
    #[serde(default)]
    pub port: u16,
    /// What came of it.
    pub what: String,
}

impl Attempted {
    /// The server `server` at `port`, and what came of it.
    pub fn new(server: &str, port: u16, what: impl fmt::Display) -> Attempted {
        Attempted { server: server.to_owned(), port, what: what.to_string() }
    }
}

/// Why an attempt failed. Each has a sentence of cause ([`Display`](fmt::Display)) and one of [remedy](Reason::remedy).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// The name servers gave no answer about the domain.
    Names {
        /// The name that was asked for.
        name: String,
        /// What they said.
        what: String,
    },
    /// The domain does not exist, or says that it takes no mail.
    NoDomain {
        /// What the name servers say.
        what: String,
    },
    /// The best mail exchanger of the domain is this host, which does not know the domain.
    Loop {
        /// The exchanger.
        server: String,
    },
    /// No server of the domain accepted a connection.
    Unreachable {
        /// Each that was tried.
        tried: Vec<Attempted>,
    },
    /// A server refused, with its words.
    Refused {
        /// The server.
        server: String,
        /// What it refused.
        step: Step,
        /// Its words.
        reply: Reply,
    },
    /// The dialogue with a server broke off.
    Dialogue {
        /// The server.
        server: String,
        /// What happened.
        what: String,
    },
    /// A server can be reached, and TLS with it cannot be had.
    Tls {
        /// The server.
        server: String,
        /// What happened.
        what: String,
    },
    /// The server cannot take such a message.
    Impossible {
        /// The server.
        server: String,
        /// Why.
        what: String,
    },
    /// The server takes no mail before a log-in, which failed.
    Login {
        /// The server.
        server: String,
        /// What happened.
        what: String,
    },
    /// A mailbox of this host cannot be written.
    Mailbox {
        /// The folder.
        path: String,
        /// What the system says.
        what: String,
    },
    /// The message itself cannot be read from the queue's folder.
    Message {
        /// What the system says.
        what: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Names { name, what } => write!(f, "the name servers did not answer for {name}: {what}"),
            Reason::NoDomain { what } => f.write_str(what),
            Reason::Loop { server } => {
                write!(f, "the mail exchanger {server} is this host, which does not know the domain")
            }
            Reason::Unreachable { tried } => {
                f.write_str("no mail exchanger can be reached: ")?;
                for (at, one) in tried.iter().enumerate() {
                    write!(f, "{}{}: {}", if at > 0 { "; " } else { "" }, one.server, one.what)?;
                }
                Ok(())
            }
            Reason::Refused { server, step, reply } => write!(f, "{server} answered {step} with \"{reply}\""),
            Reason::Dialogue { server, what } => write!(f, "the dialogue with {server} broke off: {what}"),
            Reason::Tls { server, what } => write!(f, "no TLS with {server}: {what}"),
            Reason::Impossible { server, what } => write!(f, "{server} cannot take it: {what}"),
            Reason::Login { server, what } => write!(f, "{server} does not let this host log in: {what}"),
            Reason::Mailbox { path, what } => write!(f, "the mailbox {path} cannot be written: {what}"),
            Reason::Message { what } => write!(f, "the message cannot be read from the queue: {what}"),
        }
    }
}

impl Reason {
    /// What a person can do about it.
    pub fn remedy(&self) -> String {
        match self {
            Reason::Names { name, .. } => format!("see `inhost lookup {name} mx`; the name servers are in host.toml"),
            Reason::NoDomain { .. } => "check the spelling of the address; nothing but its owner changes that".into(),
            Reason::Loop { .. } => "name the domain in mail.domains, or mend its MX records".into(),
            Reason::Unreachable { tried } => match tried.first() {
                Some(Attempted { server, port, .. }) => {
                    format!("see `inhost telnet {server} {port}`; nothing may listen there, or a firewall may block the port")
                }
                None => "see `inhost lookup` of the domain".into(),
            },
            Reason::Refused { reply, .. } if is_greylisting(reply) => {
                "nothing is to be done: the server takes the message when it is tried again".into()
            }
            Reason::Refused { reply, .. } if reply.enhanced.ends_with(".2.2") => {
                "the recipient's mailbox is full; only they can make room".into()
            }
            Reason::Refused { reply, .. } if reply.enhanced.contains(".7.") => {
                "the server's policy is against it; its words say what it wants: often SPF, DKIM or a reverse name".into()
            }
            Reason::Refused { step: Step::Greeting | Step::Hello, .. } => {
                "the server takes no mail now; fewer connections to it may help (mail.connections_per_destination)".into()
            }
            Reason::Refused { .. } => "the server's words say what it wants".into(),
            Reason::Dialogue { .. } => "see the dialogue; a path that loses large packets looks like this, too".into(),
            Reason::Tls { .. } => {
                "the server's owner has to mend it; mail.tls says for which domains TLS is required".into()
            }
            Reason::Impossible { .. } => "send it in another form: smaller, or in ASCII".into(),
            Reason::Login { .. } => "check mail.relay_user and mail.relay_password_file".into(),
            Reason::Mailbox { .. } => "check its owner, mode and disk".into(),
            Reason::Message { .. } => "check the disk of the queue; `inhost mail drop` removes the message".into(),
        }
    }
    /// The enhanced code for a report (RFC 3463).
    pub fn status(&self, is_final: bool) -> String {
        let class = if is_final { '5' } else { '4' };
        match self {
            Reason::Refused { reply, .. } if !reply.enhanced.is_empty() => reply.enhanced.to_string(),
            Reason::Refused { reply, .. } => format!("{}.0.0", reply.code / 100),
            Reason::NoDomain { .. } => format!("{class}.1.2"),
            Reason::Names { .. } => format!("{class}.4.3"),
            Reason::Loop { .. } => format!("{class}.4.6"),
            Reason::Unreachable { .. } => format!("{class}.4.1"),
            Reason::Dialogue { .. } => format!("{class}.4.2"),
            Reason::Tls { .. } | Reason::Login { .. } => format!("{class}.7.0"),
            Reason::Impossible { .. } => format!("{class}.6.0"),
            Reason::Mailbox { .. } => format!("{class}.2.0"),
            Reason::Message { .. } => format!("{class}.3.0"),
        }
    }
}

/// Whether a refusal is that of a server that knows the sender not yet (RFC 6647).
fn is_greylisting(reply: &Reply) -> bool {
    let text = reply.text.to_ascii_lowercase();
    reply.is_transient()
        && (text.contains("greylist") || text.contains("graylist") || reply.enhanced == "4.7.1")
}
