//! The mail catcher: what the SMTP server tells and asks, and what the page shows, in one place.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use inhost_base::Endpoint;
use inhost_socket::Host;
use inhost_web::{EventLimits, Events};
use serde::Serialize;

use crate::envelope::Envelope;
use crate::news::News;
use crate::rules::{Action, Event, Rulebook, Stage};
use crate::sessions::{Line, Sessions};
use crate::store::{Folder, Id, Kept, Message, Store, StoreLimits};

/// Octets of a message up to which it is read on the host's own thread.
const READ_HERE_BYTES: usize = 64 << 10;

/// What a catcher begins with.
#[derive(Debug)]
#[non_exhaustive]
pub struct CatcherConfig {
    /// Limits of the store. Default 500 messages and 64 MiB.
    pub store: StoreLimits,
    /// Ended sessions whose dialogues are kept. Default 100.
    pub sessions: usize,
    /// A folder that keeps messages. Default none.
    pub folder: Option<Folder>,
    /// The rules at the beginning. Default none.
    pub rules: Rulebook,
}

impl Default for CatcherConfig {
    fn default() -> Self {
        CatcherConfig {
            store: StoreLimits { messages: 500, bytes: 64 << 20 },
            sessions: 100,
            folder: None,
            rules: Rulebook::new(0),
        }
    }
}

/// What a client is known by at some point of its session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Its address and port.
    pub address: Endpoint,
    /// The name that it gave itself; empty before HELO.
    pub hello: String,
    /// The version of TLS.
    pub tls: Option<String>,
    /// The user who logged in.
    pub user: Option<String>,
}

/// Counts since the start.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Messages received.
    pub received: u64,
    /// Octets of them.
    pub received_bytes: u64,
    /// Times that a rule fired.
    pub fired: u64,
    /// Refusals by rules.
    pub refused: u64,
    /// Connections dropped by rules.
    pub dropped: u64,
    /// Messages that limits drove out.
    pub evicted: u64,
    /// Sessions that ended.
    pub sessions: u64,
}

type Listener = Box<dyn Fn(News<'_>)>;

/// The mail catcher of a host. The SMTP server calls [`decide`](Self::decide), [`receive`](Self::receive) and
/// [`end_session`](Self::end_session); the page is a [`Site`](inhost_web::Site) over it.
pub struct Catcher {
    pub(crate) host: Host,
    unix_time: fn() -> Duration,
    /// The messages.
    pub store: Store,
    folder: Option<Folder>,
    rules: RefCell<Rulebook>,
    pub(crate) sessions: RefCell<Sessions>,
    pub(crate) events: Events,
    counters: Cell<Counters>,
    listener: RefCell<Option<Listener>>,
}

impl Catcher {
    /// A catcher on `host`; `unix_time` gives the time since the start of 1970, UTC.
    pub fn new(host: &Host, unix_time: fn() -> Duration, config: CatcherConfig) -> Rc<Catcher> {
        let CatcherConfig { store, sessions, folder, rules } = config;
        Rc::new(Catcher {
            host: host.clone(),
            unix_time,
            store: Store::new(store),
            folder,
            rules: RefCell::new(rules),
            sessions: RefCell::new(Sessions::new(sessions)),
            events: Events::new(EventLimits::default(), Rc::new(host.clone())),
            counters: Cell::default(),
            listener: RefCell::default(),
        })
    }
    /// Calls `listener` with everything that happens from now on, in the place of the last one. It must not wait.
    pub fn listen(&self, listener: impl Fn(News<'_>) + 'static) {
        self.listener.replace(Some(Box::new(listener)));
    }
    fn tell(&self, news: News<'_>) {
        if let Some(listener) = &*self.listener.borrow() {
            listener(news);
        }
    }
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from((self.unix_time)().as_millis()).unwrap_or(u64::MAX)
    }
    /// Counts since the start.
    pub fn counters(&self) -> Counters {
        self.counters.get()
    }
    fn count(&self, change: impl FnOnce(&mut Counters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }
    /// Reads and changes the rules; the page is told.
    pub fn with_rules<R>(&self, work: impl FnOnce(&mut Rulebook) -> R) -> R {
        let result = work(&mut self.rules.borrow_mut());
        self.events.publish("rules", &());
        result
    }
    pub(crate) fn rules(&self) -> std::cell::Ref<'_, Rulebook> {
        self.rules.borrow()
    }

    /// What is to be done at a stage of a session, by the rules. `sender` is `None` before MAIL and empty for the null
    /// sender; at [`Stage::Recipient`] the new recipient is the last.
    pub fn decide(
        &self,
        stage: Stage,
        caller: &Caller,
        sender: Option<&str>,
        recipients: &[String],
    ) -> Action {
        let now_ms = self.now_ms();
        let sessions = {
            let mut sessions = self.sessions.borrow_mut();
            let session = sessions.of(caller.address, now_ms);
            (session.hello, session.tls, session.user) =
                (caller.hello.clone(), caller.tls.clone(), caller.user.clone());
            sessions.open()
        };
        let event = Event { stage, client: caller.address.address, sender, recipients, sessions };
        let Some(fired) = self.rules.borrow_mut().decide(&event, self.host.now()) else {
            return Action::default();
        };
        let text = format!("{}: {}", stage.name(), fired.text);
        self.sessions.borrow_mut().of(caller.address, now_ms).fired(text);
        self.count(|counters| {
            counters.fired += 1;
            counters.refused += u64::from(fired.action.refusal.is_some());
            counters.dropped += u64::from(fired.action.drops);
        });
        let client = caller.address.to_string();
        self.tell(News::Fired { at_ms: now_ms, fired: &fired, stage, client: &client });
        self.events.publish("fired", &(fired.number, stage.name(), &client));
        fired.action
    }
    /// Takes a message; its identifier. It is in the folder when this is done. An error is one of the folder.
    pub async fn receive(
        &self,
        caller: &Caller,
        sender: Option<String>,
        recipients: Vec<String>,
        raw: Bytes,
    ) -> io::Result<Id> {
        let received_ms = self.now_ms();
        let id = self.store.next_id(received_ms);
        let envelope = {
            let mut sessions = self.sessions.borrow_mut();
            let session = sessions.of(caller.address, received_ms);
            session.received(id);
            Envelope {
                from: sender,
                to: recipients,
                client: session.client.clone(),
                hello: caller.hello.clone(),
                tls: caller.tls.clone(),
                user: caller.user.clone(),
                session: session.number,
                rules: session.rules.clone(),
            }
        };
        let message = Kept { id, received_ms, envelope, raw };
        let message = match self.folder.clone() {
            Some(folder) => blocking::unblock(move || folder.keep(&message).map(|()| message)).await?,
            None => message,
        };
        let message = self.read(message).await;
        self.count(|counters| {
            counters.received += 1;
            counters.received_bytes += message.raw.len() as u64;
        });
        self.tell(News::Message(&message));
        self.events.publish("message", &message.listed());
        let gone = self.store.add(message);
        self.count(|counters| counters.evicted += gone.len() as u64);
        self.forget(gone);
        Ok(id)
    }
    /// Takes messages that the folder has kept.
    pub async fn restore(&self, kept: Vec<Kept>) {
        for kept in kept {
            let message = self.read(kept).await;
            message.is_unread.set(false);
            self.store.add(message);
        }
    }
    /// A message, read, on another thread if it is large.
    async fn read(&self, kept: Kept) -> Rc<Message> {
        let Kept { id, received_ms, envelope, raw } = kept;
        let bytes = raw.len();
        // Searches and the page look at what is read here; it is sent back by its parts, for a message stays on its thread.
        let (envelope, raw, (summary, folded)) = off_thread(bytes, move || {
            let read = crate::message::summarize(&raw, &envelope);
            (envelope, raw, read)
        })
        .await;
        Rc::new(Message { id, received_ms, envelope, summary, folded, raw, is_unread: Cell::new(true) })
    }
    /// A session has ended, with the dialogue `lines`.
    pub fn end_session(&self, client: Endpoint, lines: Vec<Line>) {
        let now_ms = self.now_ms();
        self.sessions.borrow_mut().end(client, lines, now_ms);
        self.count(|counters| counters.sessions += 1);
        self.events.publish("session", &());
    }
    /// Removes messages; how many there were.
    pub fn remove(&self, wanted: impl Fn(&Message) -> bool) -> usize {
        let gone = self.store.remove(wanted);
        let count = gone.len();
        self.forget(gone);
        count
    }
    /// Other limits from now on.
    pub fn set_limits(&self, limits: StoreLimits) {
        let gone = self.store.set_limits(limits);
        self.count(|counters| counters.evicted += gone.len() as u64);
        self.forget(gone);
    }
    /// Removes from the folder, and from the page, what the store has removed.
    fn forget(&self, gone: Vec<Id>) {
        if gone.is_empty() {
            return;
        }
        self.events.publish("removed", &gone);
        let Some(folder) = self.folder.clone() else { return };
        let remove = async move {
            if let Err(error) = blocking::unblock(move || folder.remove(&gone)).await {
                tracing::error!(target: "mail-catcher", "cannot remove messages from the folder: {error}");
            }
        };
        self.host.spawn(remove).detach();
    }
}

/// Work by `bytes` of a message: on this thread, or on another if there are many.
pub(crate) async fn off_thread<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if bytes <= READ_HERE_BYTES { work() } else { blocking::unblock(work).await }
}
