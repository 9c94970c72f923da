//! Mail as a service of a host: configuration, servers, mailboxes, the sender.

mod boxes;
mod exchange;
mod section;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use inhost_base::Endpoint;
use inhost_common::service::{
    Description, Doors, HostFiles, Notice, Problem, Reach, Service, ServiceContext,
};
use inhost_common::tls::{read_certificate, read_secret};
use inhost_common::users::{Source, ThreadAuthenticator};
use inhost_common::{Admission, Permit, SessionEvent, Transport, session_log};
use inhost_mailauth::{Signer, SigningKey};
use inhost_names::service::table;
use inhost_names::{Hosts, Names, NamesConfig, Servers};
use inhost_socket::{Host, Stream};
use tracing::warn;

use crate::body::{SpoolFolder, Turns};
use crate::codec::MailFrom;
use crate::driver::{Server, TlsClient, TlsServer, serve};
use crate::queue::Queue;
use crate::sender::{Mailboxes, Sender, SenderConfig, Sign};
use crate::server::{ServerConfig, TlsOffer};
use boxes::Boxes;
use exchange::{Exchange, Rules};
pub use section::{DkimKey, Section};

/// Large messages that are read whole at a time, to be checked, and as many to be signed.
const LARGE_AT_ONCE: usize = 2;
/// The usual port of submission in TLS.
const SUBMISSIONS_PORT: u16 = 465;

/// What was read from disk for the section.
pub struct Prepared {
    tls: Option<TlsServer>,
    outgoing: Outgoing,
}

/// What a sender needs of the section and of the files that it names: keys, authorities, the relay's password.
pub struct Outgoing {
    client: TlsClient,
    signers: Signers,
    config: SenderConfig,
}

impl Outgoing {
    /// Reads it; it waits for the disk.
    pub fn read(section: &Section) -> Result<Outgoing, Problem> {
        let client = TlsClient::with_system_roots(section.authorities.as_deref())
            .map_err(|error| Problem::operation(format!("mail.authorities: {error}")))?;
        let password = match &section.relay_password_file {
            None => None,
            Some(path) => Some(
                String::from_utf8_lossy(&read_secret(Mail::NAME, "password", path)?).trim_end().to_owned(),
            ),
        };
        let mut signers = BTreeMap::<String, Vec<Signer>>::new();
        for key in &section.dkim {
            signers.entry(key.domain.to_lowercase()).or_default().push(signer(key)?);
        }
        Ok(Outgoing { client, signers: Arc::new(signers), config: section.sender(password)? })
    }
    /// A sender for the messages of `queue`.
    pub fn sender(
        self,
        host: &Host,
        names: Rc<Names>,
        queue: Queue,
        mailboxes: Rc<dyn Mailboxes>,
        unix_time: fn() -> std::time::Duration,
    ) -> Sender {
        let sender = Sender::new(host, names, queue, mailboxes, self.client, unix_time, self.config);
        sender.set_sign(signing(self.signers, unix_time));
        sender
    }
}

/// The keys that sign, by the domains of senders.
type Signers = Arc<BTreeMap<String, Vec<Signer>>>;

/// Writes the log of sessions.
const LOG: fn(SessionEvent<'_>) = session_log!("mail");

/// A kind of server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Door {
    /// For other servers.
    Exchange,
    /// For users.
    Submission { is_implicit: bool },
}

/// Mail, running.
pub struct Mail {
    shared: Rc<Shared>,
    doors: Doors,
    ports: Vec<(Door, u16)>,
    boxes: Rc<SharedBoxes>,
    unix_time: fn() -> std::time::Duration,
    users: Option<std::path::PathBuf>,
    queue_folder: std::path::PathBuf,
}

struct Shared {
    host: Host,
    exchange: Exchange,
    spool: Arc<SpoolFolder>,
    servers: RefCell<Configs>,
}

/// Configuration of the two kinds of servers.
struct Configs {
    exchange: Rc<ServerConfig>,
    submission: Rc<ServerConfig>,
    tls: Option<TlsServer>,
}

/// The mailboxes that the sender delivers to; a reload replaces them.
struct SharedBoxes(RefCell<Rc<Boxes>>);

impl Mailboxes for SharedBoxes {
    fn deliver<'a>(
        &'a self,
        recipient: &crate::codec::Mailbox,
        sender: Option<&crate::codec::Mailbox>,
        body: &crate::Body,
    ) -> crate::driver::Answer<'a, Result<(), crate::queue::Reason>> {
        let boxes = self.0.borrow().clone();
        let (recipient, sender, body) = (recipient.clone(), sender.cloned(), body.clone());
        Box::pin(async move { boxes.deliver(&recipient, sender.as_ref(), &body).await })
    }
}

impl Service for Mail {
    const NAME: &'static str = "mail";
    type Section = Section;
    type Prepared = Prepared;

    fn check(section: &Section) -> Result<(), Problem> {
        section.limits()?;
        section.check()?;
        section.message_bytes()?;
        section.networks()?;
        section.sender(None)?;
        if section.certificate.is_some() != section.key.is_some() {
            return Err(Problem::usage("mail: give certificate and key, or neither"));
        }
        if section.tls_required && section.certificate.is_none() {
            return Err(Problem::usage("mail.tls_required: it needs a certificate and a key"));
        }
        for (key, port) in
            [("submission_port", section.submission_port), ("submissions_port", section.submissions_port)]
        {
            // Passwords are for TLS.
            if port != 0 && section.certificate.is_none() {
                return Err(Problem::usage(format!("mail.{key}: it needs a certificate and a key")));
            }
        }
        Ok(())
    }
    fn is_enabled(section: &Section) -> bool {
        section.enabled
    }
    fn prepare(section: &Section, _: &HostFiles) -> Result<Prepared, Problem> {
        let tls = match (&section.certificate, &section.key) {
            (Some(certificate), Some(key)) => {
                let refused = |error| Problem::operation(format!("mail: {}: {error}", certificate.display()));
                Some({
                    let (chain, key) = read_certificate(Mail::NAME, certificate, key)?;
                    TlsServer::from_pem(&chain, &key).map_err(refused)?
                })
            }
            _ => None,
        };
        Ok(Prepared { tls, outgoing: Outgoing::read(section)? })
    }
    fn start(section: &Section, prepared: Prepared, context: &ServiceContext) -> Result<Mail, Problem> {
        let host = &context.host;
        let folder = section.queue_folder();
        let queue = Queue::open(&folder)
            .map_err(|error| Problem::operation(format!("mail: the queue {}: {error}", folder.display())))?;
        let users = context.files.users.clone();
        let source = Source::FileOrElse(users.clone().unwrap_or_default(), Default::default());
        let authenticator = ThreadAuthenticator::start(source)?;
        let names = Rc::new(Names::new(host, names(context)?));
        let rules = Rc::new(rules(section, users.clone(), context.unix_time)?);
        let boxes = Rc::new(SharedBoxes(RefCell::new(rules.boxes.clone())));
        let sender =
            prepared.outgoing.sender(host, names.clone(), queue.clone(), boxes.clone(), context.unix_time);
        let sender = Rc::new(sender);
        let prefix = format!("{:x}-{:x}", (context.unix_time)().as_nanos(), std::process::id());
        let spool = Arc::new(match queue.text_folder() {
            Some(folder) => SpoolFolder::new(folder, prefix),
            None => SpoolFolder::memory(),
        });
        let exchange = Exchange {
            host: host.clone(),
            queue,
            sender: sender.clone(),
            names: RefCell::new(names),
            authenticator,
            rules: RefCell::new(rules),
            unix_time: context.unix_time,
            turns: Turns::new(LARGE_AT_ONCE),
        };
        let shared = Rc::new(Shared {
            host: host.clone(),
            exchange,
            spool,
            servers: RefCell::new(servers(section, prepared.tls)?),
        });
        let ports = [
            (Door::Exchange, section.port),
            (Door::Submission { is_implicit: false }, section.submission_port),
            (Door::Submission { is_implicit: true }, section.submissions_port),
        ];
        let ports: Vec<_> = ports.into_iter().filter(|(_, port)| *port != 0).collect();
        let admission = Admission::sharing(section.limits()?, &context.denials);
        let doors = Doors::new(Self::NAME, host, &context.callers, admission, LOG);
        for &(door, port) in &ports {
            let own = shared.clone();
            doors.listen(port, move |stream, caller, permit| {
                session(own.clone(), stream, caller, permit, door)
            })?;
        }
        host.spawn(sender.run()).detach();
        let unix_time = context.unix_time;
        Ok(Mail { shared, doors, ports, boxes, unix_time, users, queue_folder: folder })
    }
    fn reload(&self, section: &Section, prepared: Prepared) -> Result<(), Problem> {
        let rules = rules(section, self.users.clone(), self.unix_time)?;
        let servers = servers(section, prepared.tls)?;
        self.doors.admission().set_limits(section.limits()?);
        self.boxes.0.replace(rules.boxes.clone());
        self.shared.exchange.rules.replace(Rc::new(rules));
        self.shared.servers.replace(servers);
        let Outgoing { signers, config, client: _ } = prepared.outgoing;
        self.shared.exchange.sender.set_config(config);
        self.shared.exchange.sender.set_sign(signing(signers, self.unix_time));
        Ok(())
    }
    fn effect(key: &str) -> Option<&'static str> {
        let is_fixed = matches!(
            key,
            "enabled" | "port" | "submission_port" | "submissions_port" | "queue" | "authorities"
        );
        (!is_fixed).then_some("for new sessions")
    }
    fn describe(&self) -> Description {
        let ports: Vec<_> = self.ports.iter().map(|(_, port)| port.to_string()).collect();
        let reach = self.ports.iter().map(|(door, port)| {
            let purpose = match door {
                Door::Exchange => "mail of other servers",
                Door::Submission { .. } => "mail of users, who log in",
            };
            let scheme = if *port == SUBMISSIONS_PORT { "smtps" } else { "smtp" };
            Reach::new(Transport::Tcp, *port, purpose, move |at| format!("{scheme}://{at}"))
        });
        Description {
            summary: format!("port {}, queue {}", ports.join(", "), self.queue_folder.display()),
            reach: reach.collect(),
            notice: None::<Notice>,
        }
    }
    /// The queue goes on while they are closed.
    fn doors(&self) -> &Doors {
        &self.doors
    }
}

impl Mail {
    /// Looks names up by `names` from now on, which the owner of the host keeps up to date.
    pub fn use_names(&self, names: &Rc<Names>) {
        self.shared.exchange.names.replace(names.clone());
        self.shared.exchange.sender.set_names(names.clone());
    }
}

fn signer(key: &DkimKey) -> Result<Signer, Problem> {
    let refused = |why: String| Problem::operation(format!("mail.dkim: {}: {why}", key.key.display()));
    let signing = SigningKey::from_pem(&read_secret(Mail::NAME, "key", &key.key)?)
        .map_err(|error| refused(error.to_string()))?;
    Signer::new(&key.domain, &key.selector, signing).map_err(|error| refused(error.to_string()))
}

/// Signs with the keys of the sender's domain.
fn signing(signers: Signers, unix_time: fn() -> std::time::Duration) -> Sign {
    let turns = Turns::new(LARGE_AT_ONCE);
    Rc::new(move |mail: &MailFrom, body| {
        let (signers, turns) = (signers.clone(), turns.clone());
        let domain = mail.sender.as_ref().map(|sender| sender.domain().to_owned()).unwrap_or_default();
        if !signers.contains_key(&domain) {
            return Box::pin(std::future::ready(None));
        }
        let (body, is_large) = (body.clone(), !body.is_in_memory());
        let now_s = unix_time().as_secs();
        let sign = move || {
            let text = body.read(usize::MAX).map_err(|error| error.to_string())?;
            let own = signers.get(&domain).map(Vec::as_slice).unwrap_or_default();
            inhost_mailauth::sign(own, &text, now_s).map_err(|error| error.to_string())
        };
        Box::pin(async move {
            let _turn = if is_large { Some(turns.next().await) } else { None };
            let signed = blocking::unblock(sign).await;
            signed
                .inspect_err(|why| warn!(target: "mail", "a message is sent without a signature: {why}"))
                .ok()
        })
    })
}

fn names(context: &ServiceContext) -> Result<NamesConfig, Problem> {
    let hosts = Hosts::parse(&table(&context.files.hosts));
    let mut servers = Servers::default();
    servers.servers.clone_from(&context.resolvers.servers);
    Ok(NamesConfig::new(hosts, servers, context.entropy()?))
}

fn rules(
    section: &Section,
    users: Option<std::path::PathBuf>,
    unix_time: fn() -> std::time::Duration,
) -> Result<Rules, Problem> {
    Ok(Rules {
        host_name: section.name(),
        domains: section.domains.iter().map(|domain| domain.to_lowercase()).collect(),
        forwarded: section.forwarded()?,
        networks: section.networks()?,
        check: section.check()?,
        schedule: section.schedule(),
        boxes: Rc::new(Boxes::new(section, users, unix_time)),
    })
}

fn servers(section: &Section, tls: Option<TlsServer>) -> Result<Configs, Problem> {
    let exchange = ServerConfig {
        host_name: section.name(),
        message_bytes: section.message_bytes()?,
        recipients: section.recipients,
        tls: match (tls.is_some(), section.tls_required) {
            (false, _) => TlsOffer::Off,
            (true, false) => TlsOffer::Offered,
            (true, true) => TlsOffer::Required,
        },
        ..ServerConfig::default()
    };
    let submission =
        ServerConfig { auth: true, auth_required: true, tls: TlsOffer::Required, ..exchange.clone() };
    Ok(Configs { exchange: Rc::new(exchange), submission: Rc::new(submission), tls })
}

async fn session(shared: Rc<Shared>, stream: Stream, caller: Endpoint, permit: Permit, door: Door) {
    // Replies that are made together leave together; nothing waits for an acknowledgment.
    stream.set_nagle(false);
    let server = {
        let servers = shared.servers.borrow();
        let config = match door {
            Door::Exchange => servers.exchange.clone(),
            Door::Submission { .. } => servers.submission.clone(),
        };
        Server { config, tls: servers.tls.clone(), spool: shared.spool.clone() }
    };
    let is_implicit = door == Door::Submission { is_implicit: true };
    serve(stream, caller, is_implicit, &server, &shared.exchange, &permit, &shared.host).await;
}
