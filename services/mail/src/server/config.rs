//! Configuration of the server, and what is known of a client and its message.

use inhost_base::{Duration, Endpoint};

use crate::codec::{ContentLimits, MailFrom, Recipient};

/// Whether TLS is to be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TlsOffer {
    /// There is no certificate.
    #[default]
    Off,
    /// STARTTLS is offered.
    Offered,
    /// STARTTLS is offered, and mail is taken after it alone.
    Required,
}

/// Configuration of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The name that it gives itself. Default `localhost`.
    pub host_name: String,
    /// Largest message in octets. Default 50 MiB.
    pub message_bytes: u64,
    /// Most recipients of a message. RFC 5321 §4.5.3.1.8 asks for 100. Default 1,000.
    pub recipients: usize,
    /// Commands that may be refused, beyond which the session ends. Default 20.
    pub errors: u32,
    /// Limits on a message's form.
    pub content: ContentLimits,
    /// Whether TLS is to be had. Default off.
    pub tls: TlsOffer,
    /// Whether users may log in. Default no.
    pub auth: bool,
    /// Whether users may log in without TLS. Default no.
    pub auth_in_clear: bool,
    /// Whether mail is taken from users who have logged in alone, as a submission server does (RFC 6409). Default no.
    pub auth_required: bool,
    /// How long a client may be silent between commands (RFC 5321 §4.5.3.2.7). Default 5 minutes.
    pub idle: Duration,
    /// How long a command may take from its first octet to its last. Default 60 seconds.
    pub command: Duration,
    /// How long a message may take, to which a second is added for each [`slowest_bytes_per_second`] that came. Default
    /// 10 minutes.
    ///
    /// [`slowest_bytes_per_second`]: Self::slowest_bytes_per_second
    pub message: Duration,
    /// The slowest rate at which a message may come in the long run. Default 1,000 octets a second.
    pub slowest_bytes_per_second: u64,
    /// How long replies may wait for a client that does not read. Default 60 seconds.
    pub unread: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            host_name: "localhost".into(),
            message_bytes: 50 << 20,
            recipients: 1000,
            errors: 20,
            content: ContentLimits::default(),
            tls: TlsOffer::Off,
            auth: false,
            auth_in_clear: false,
            auth_required: false,
            idle: Duration::from_secs(300),
            command: Duration::from_secs(60),
            message: Duration::from_secs(600),
            slowest_bytes_per_second: 1000,
            unread: Duration::from_secs(60),
        }
    }
}

/// A client, as far as it is known.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Client {
    /// From where it calls: the outer caller where a gateway forwards it.
    pub address: Endpoint,
    /// The name that it gives itself; empty until then.
    pub hello: String,
    /// Whether it speaks ESMTP.
    pub is_extended: bool,
    /// Version and cipher, where the connection is in TLS.
    pub tls: Option<String>,
    /// The user who has logged in.
    pub user: Option<String>,
}

impl Client {
    /// A client that has said nothing.
    pub fn new(address: Endpoint) -> Client {
        Client { address, hello: String::new(), is_extended: false, tls: None, user: None }
    }
    /// How the message was received, as the `with` clause of `Received` names it (RFC 3848, RFC 6531 §4.3).
    pub fn protocol(&self, is_utf8: bool) -> String {
        if !self.is_extended {
            return "SMTP".into();
        }
        let start = if is_utf8 { "UTF8SMTP" } else { "ESMTP" };
        let tls = if self.tls.is_some() { "S" } else { "" };
        let auth = if self.user.is_some() { "A" } else { "" };
        format!("{start}{tls}{auth}")
    }
}

/// The envelope of a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Envelope {
    /// MAIL FROM.
    pub mail: MailFrom,
    /// RCPT TO, those that were accepted; while one is being decided about, it is the last.
    pub recipients: Vec<Recipient>,
}

/// What a session is about to do, when its owner is asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// Greet the client.
    Connect,
    /// Answer HELO or EHLO.
    Hello,
    /// Answer AUTH; the password has been found right.
    Auth,
    /// Accept a sender.
    Mail,
    /// Accept a recipient.
    Recipient,
    /// Let the text of a message come.
    Data,
}
