//! `[mail]` of `host.toml`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use inhost_base::{Cidr, Duration};
use inhost_common::service::{Limits, Problem, size_bytes};
use inhost_common::{AdmissionLimits, state_folder};
use serde::{Deserialize, Serialize};

use crate::client::TlsWish;
use crate::queue::Schedule;
use crate::sender::{Route, SenderConfig, wish};

/// Callers that are taken where `limits` does not say.
const LIMITS: AdmissionLimits = AdmissionLimits::per_minute(1000, 50, 600);

/// `[mail]` of `host.toml`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Section {
    /// Whether it runs. Default false.
    pub enabled: bool,
    /// Name of this host, as other mail servers see it. Default: the system's.
    pub host_name: Option<String>,
    /// Port for other servers' mail; 0 is none. Default 25.
    pub port: u16,
    /// Port at which users send, after STARTTLS and a log-in; 0 is none. Default 0; the usual one is 587.
    pub submission_port: u16,
    /// Port at which users send, in TLS from the start; 0 is none. Default 0; the usual one is 465.
    pub submissions_port: u16,
    /// Domains whose mail is taken from anybody. It goes into mailboxes of this host, or where `routes` says. Default:
    /// none.
    pub domains: Vec<String>,
    /// Names of mailboxes beside those of `inhost user`.
    pub mailboxes: Vec<String>,
    /// Folder of the mailboxes: each is a Maildir of its user's name. Default: `boxes` beside the queue.
    pub folder: Option<PathBuf>,
    /// Other names of mailboxes: to which users or addresses their mail goes.
    pub aliases: BTreeMap<String, Vec<String>>,
    /// The mailbox for names that are not known. Default: they are refused.
    pub catch_all: Option<String>,
    /// Folder of the queue. Default: $XDG_STATE_HOME/inhost/mail, else ~/.local/state/inhost/mail.
    pub queue: Option<PathBuf>,
    /// Largest message. Default "50M".
    pub message_size: String,
    /// Most recipients of a message. Default 1000.
    pub recipients: usize,
    /// Certificate chain and key, in PEM; with them STARTTLS is offered.
    pub certificate: Option<PathBuf>,
    /// See `certificate`.
    pub key: Option<PathBuf>,
    /// Whether mail is taken in TLS alone. Default false.
    pub tls_required: bool,
    /// Networks whose hosts may send to anybody without a log-in. Default: none.
    pub relay_networks: Vec<String>,
    /// What is done with SPF, DKIM and DMARC of mail from others: "off", "mark" or "reject". Default "mark".
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["off", "mark", "reject"])))]
    pub check: String,
    /// How many callers it takes. Default: 1000 sessions, 50 of one peer, 600 connections of one peer in a minute.
    pub limits: Limits,
    /// Where mail goes that is not named in `routes`: a server as `smtp://HOST:PORT` or `smtps://HOST:PORT`; without a port the usual one.
    /// Default: where the DNS says.
    pub relay: Option<String>,
    /// Name for a log-in at the relay.
    pub relay_user: Option<String>,
    /// File with the password for it.
    pub relay_password_file: Option<PathBuf>,
    /// Domains whose mail goes elsewhere: "local", "smtp://HOST:PORT", "smtps://HOST:PORT" or "lmtp://HOST:PORT".
    pub routes: BTreeMap<String, String>,
    /// TLS by destination: "never", "if-offered" or "required"; "*" is all others.
    pub tls: BTreeMap<String, String>,
    /// Authorities in PEM that are believed besides the system's.
    pub authorities: Option<PathBuf>,
    /// Port of the servers that the DNS names. Default 25.
    pub remote_port: u16,
    /// Connections that send, at a time. Default 100.
    pub connections: usize,
    /// Those of them to one destination. Default 5.
    pub connections_per_destination: usize,
    /// Messages over one connection. Default 100.
    pub messages_per_connection: usize,
    /// Seconds to the first further attempt; each wait is twice the one before. Default 300.
    pub retry_s: u64,
    /// Longest wait between attempts, in seconds. Default 14400.
    pub retry_longest_s: u64,
    /// Hours after which a sender is told that it takes long; 0 is never. Default 4.
    pub warning_h: u64,
    /// Days for which a message is tried. Default 5.
    pub expires_days: u64,
    /// Keys that sign mail of users and of this host.
    pub dkim: Vec<DkimKey>,
}

/// A key that signs.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DkimKey {
    /// The domain of senders.
    pub domain: String,
    /// Where the DNS has the public key: SELECTOR._domainkey.DOMAIN.
    pub selector: String,
    /// File with the private key, in PEM.
    pub key: PathBuf,
}

impl Default for Section {
    fn default() -> Self {
        Section {
            enabled: false,
            host_name: None,
            port: 25,
            submission_port: 0,
            submissions_port: 0,
            domains: Vec::new(),
            mailboxes: Vec::new(),
            folder: None,
            aliases: BTreeMap::new(),
            catch_all: None,
            queue: None,
            message_size: "50M".into(),
            recipients: 1000,
            certificate: None,
            key: None,
            tls_required: false,
            relay_networks: Vec::new(),
            check: "mark".into(),
            limits: Limits::default(),
            relay: None,
            relay_user: None,
            relay_password_file: None,
            routes: BTreeMap::new(),
            tls: BTreeMap::new(),
            authorities: None,
            remote_port: 25,
            connections: 100,
            connections_per_destination: 5,
            messages_per_connection: 100,
            retry_s: 300,
            retry_longest_s: 14_400,
            warning_h: 4,
            expires_days: 5,
            dkim: Vec::new(),
        }
    }
}

/// What is done with the verdicts about a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Check {
    Off,
    Mark,
    Reject,
}

impl Section {
    /// The folder of the queue.
    pub fn queue_folder(&self) -> PathBuf {
        self.queue.clone().unwrap_or_else(|| state_folder("mail"))
    }
    /// The folder of the mailboxes.
    pub fn mailbox_folder(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| match &self.queue {
            Some(queue) => queue.with_file_name("boxes"),
            None => state_folder("mail").join("boxes"),
        })
    }
    /// The name of this host.
    pub fn name(&self) -> String {
        let system = || rustix::system::uname().nodename().to_string_lossy().into_owned();
        self.host_name.clone().unwrap_or_else(system)
    }
    /// Own domains whose mail goes to a server that `routes` names, which knows the mailboxes.
    pub(super) fn forwarded(&self) -> Result<Vec<String>, Problem> {
        let routes = self.sender(None)?.routes;
        let own = self.domains.iter().map(|domain| domain.to_lowercase());
        Ok(own.filter(|domain| !matches!(routes.get(domain), None | Some(Route::Local))).collect())
    }
    pub(super) fn message_bytes(&self) -> Result<u64, Problem> {
        let expected = "give a size such as 50M";
        let bytes = size_bytes(&self.message_size).filter(|bytes| *bytes > 0);
        let bytes =
            bytes.ok_or_else(|| Problem::setting("mail.message_size", &self.message_size, expected))?;
        Ok(bytes as u64)
    }
    pub(super) fn check(&self) -> Result<Check, Problem> {
        match self.check.as_str() {
            "off" => Ok(Check::Off),
            "mark" => Ok(Check::Mark),
            "reject" => Ok(Check::Reject),
            other => Err(Problem::setting("mail.check", other, "give off, mark or reject")),
        }
    }
    pub(super) fn networks(&self) -> Result<Vec<Cidr>, Problem> {
        let network =
            |text: &String| text.parse().map_err(|why| Problem::setting("mail.relay_networks", text, why));
        self.relay_networks.iter().map(network).collect()
    }
    pub(super) fn limits(&self) -> Result<AdmissionLimits, Problem> {
        self.limits.or("mail", LIMITS)
    }
    /// When messages are tried.
    pub fn schedule(&self) -> Schedule {
        let mut schedule = Schedule::default();
        schedule.first_s = self.retry_s.max(1);
        schedule.longest_s = self.retry_longest_s.max(schedule.first_s);
        schedule.expires_s = self.expires_days.saturating_mul(86_400);
        schedule.warning_s = self.warning_h.saturating_mul(3600);
        schedule
    }
    /// The sender's configuration, with `password` for the relay.
    pub fn sender(&self, password: Option<String>) -> Result<SenderConfig, Problem> {
        let mut config = SenderConfig::new(&self.name());
        config.port = self.remote_port;
        config.connections = self.connections.max(1);
        config.connections_per_destination = self.connections_per_destination.max(1);
        config.messages_per_connection = self.messages_per_connection.max(1);
        config.schedule = self.schedule();
        for (domain, text) in &self.routes {
            let key = format!("mail.routes.{domain}");
            let route: Route = text.parse().map_err(|why| Problem::setting(&key, text, why))?;
            config.routes.insert(domain.to_lowercase(), route);
        }
        for domain in &self.domains {
            config.routes.entry(domain.to_lowercase()).or_insert(Route::Local);
        }
        // Mail for this host by its name, and for `postmaster` alone.
        for own in [self.name().to_lowercase(), String::new()] {
            config.routes.entry(own).or_insert(Route::Local);
        }
        if let Some(text) = &self.relay {
            let route: Route = text.parse().map_err(|why| Problem::setting("mail.relay", text, why))?;
            config.routes.insert("*".into(), route);
        }
        for (domain, text) in &self.tls {
            let key = format!("mail.tls.{domain}");
            let wish: TlsWish = wish(text)
                .ok_or_else(|| Problem::setting(&key, text, "give never, if-offered or required"))?;
            config.tls.insert(domain.to_lowercase(), wish);
        }
        config.login = self.relay_user.clone().zip(password);
        config.connect = Duration::from_secs(60);
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_common::service::Service;

    #[test]
    fn the_page_on_mail_is_right() {
        #[derive(Deserialize)]
        struct File {
            mail: Section,
        }
        let page = include_str!("../../../../docs/mail.md");
        let blocks = page.split("```toml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
        let example = blocks.into_iter().find(|block| block.contains("enabled = false")).unwrap();
        let section = |text: &str| toml::from_str::<File>(text).unwrap().mail;
        assert_eq!(section(example), Section::default(), "what stands there is the default");
        let uncommented = |line: &str| line.strip_prefix("# ").unwrap_or(line).to_owned() + "\n";
        let all = section(&example.lines().map(uncommented).collect::<String>());
        assert!(all.limits != Limits::default() && all.limits().unwrap() == LIMITS);
        assert!(all.catch_all.is_some() && all.routes.len() == 1 && all.aliases.len() == 2);
        crate::service::Mail::check(&all).unwrap();
        let wrong = [
            ("routes = { a = \"b\" }", "mail.routes.a"),
            ("tls = { a = \"b\" }", "mail.tls.a"),
            ("check = \"b\"", "mail.check"),
            ("message_size = \"b\"", "mail.message_size"),
            ("relay_networks = [\"b\"]", "mail.relay_networks"),
            ("tls_required = true", "mail.tls_required"),
            ("submission_port = 587", "mail.submission_port"),
            ("key = \"b\"", "certificate"),
        ];
        for (line, key) in wrong {
            let section = section(&format!("[mail]\n{line}\n"));
            let refused = crate::service::Mail::check(&section).unwrap_err().to_string();
            assert!(refused.contains(key), "{refused}");
        }
    }
}
