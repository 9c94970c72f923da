//! The sender as its owner has it: made of what it works with, told what changes.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration as UnixDuration;

use inhost_names::Names;
use inhost_socket::Host;

use super::config::SenderConfig;
use crate::body::Body;
use crate::codec::{MailFrom, Mailbox};
use crate::driver::{Answer, TlsClient};
use crate::queue::{Queue, Reason};

/// Mailboxes of this host.
pub trait Mailboxes {
    /// Puts a message into the mailbox of `recipient`. Once this is done, it is durable.
    fn deliver<'a>(
        &'a self,
        recipient: &Mailbox,
        sender: Option<&Mailbox>,
        body: &Body,
    ) -> Answer<'a, Result<(), Reason>>;
}

/// What signs messages: gives header lines to put in front.
pub type Sign = Rc<dyn Fn(&MailFrom, &Body) -> Answer<'static, Option<String>>>;

/// The sender. Its owner spawns [`run`](Self::run).
pub struct Sender {
    pub(super) host: Host,
    pub(super) names: RefCell<Rc<Names>>,
    pub(super) queue: Queue,
    pub(super) mailboxes: Rc<dyn Mailboxes>,
    pub(super) tls: TlsClient,
    pub(super) sign: RefCell<Option<Sign>>,
    unix_time: fn() -> UnixDuration,
    pub(super) config: RefCell<Rc<SenderConfig>>,
    pub(super) active: RefCell<BTreeMap<String, usize>>,
    pub(super) total: Cell<usize>,
    /// Destinations of which something was given out and not noted, since the queue could not be used.
    pub(super) unsettled: RefCell<BTreeSet<String>>,
    pub(super) reports: Cell<u64>,
    pub(super) poke: (async_channel::Sender<()>, async_channel::Receiver<()>),
}

impl Sender {
    /// A sender on `host`.
    pub fn new(
        host: &Host,
        names: Rc<Names>,
        queue: Queue,
        mailboxes: Rc<dyn Mailboxes>,
        tls: TlsClient,
        unix_time: fn() -> UnixDuration,
        config: SenderConfig,
    ) -> Sender {
        Sender {
            host: host.clone(),
            names: RefCell::new(names),
            queue,
            mailboxes,
            tls,
            sign: RefCell::default(),
            unix_time,
            config: RefCell::new(Rc::new(config)),
            active: RefCell::default(),
            total: Cell::new(0),
            unsettled: RefCell::default(),
            reports: Cell::new(0),
            poke: async_channel::bounded(1),
        }
    }
    /// Signs messages of users so from now on.
    pub fn set_sign(&self, sign: Sign) {
        self.sign.replace(Some(sign));
    }
    /// Other settings from now on; connections that exist go on with theirs.
    pub fn set_config(&self, config: SenderConfig) {
        self.config.replace(Rc::new(config));
        self.poke();
    }
    /// Something may be due.
    pub fn poke(&self) {
        let _ = self.poke.0.try_send(());
    }
    /// Connections that exist.
    pub fn connections(&self) -> usize {
        self.total.get()
    }
    /// Looks names up otherwise from now on.
    pub fn set_names(&self, names: Rc<Names>) {
        self.names.replace(names);
    }

    pub(super) fn now_s(&self) -> u64 {
        (self.unix_time)().as_secs()
    }
}
