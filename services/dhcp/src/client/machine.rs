//! The transitions.

use super::action::{Action, Datagram, Destination, News};
use super::status::{Remembered, Status};
use super::{Config, timing};
use crate::SERVER_PORT;
use crate::codec::reply::{Grant, Kind, Refused, Reply};
use crate::codec::request::{Asker, Request};
use crate::lease::Lease;
use crate::link_local::{LinkLocal, Step};
use inhost_base::{Endpoint, Instant, IpAddr, Ipv4Addr};
use std::collections::VecDeque;

/// A client. After each call [`Client::action`] is to be asked until there is none; then [`Client::deadline`] says when
/// [`Client::timeout`] is due. A call too many does no harm. Each call that may ask something takes a random word.
#[derive(Clone, Debug)]
pub struct Client {
    config: Config,
    state: State,
    link_local: LinkLocal,
    /// Requested parameters without a lease.
    wanted: Option<Ipv4Addr>,
    /// Settings of a lease are in force.
    is_configured: bool,
    /// Refusals since the last lease.
    refusals: u8,
    actions: VecDeque<Action>,
}

#[derive(Clone, Debug)]
enum State {
    /// Nothing is asked until then.
    Init { until: Instant },
    /// Everybody is asked for offers.
    Selecting(Exchange),
    /// An offer is taken.
    Requesting { exchange: Exchange, server: Ipv4Addr, grant: Box<Grant> },
    /// The address of the previous run is requested.
    Rebooting { exchange: Exchange, lease: Box<Lease> },
    /// The address is tested for a double.
    Checking(Box<Lease>),
    /// All is well.
    Bound(Box<Lease>),
    /// The server is asked for more time.
    Renewing { exchange: Exchange, lease: Box<Lease> },
    /// Every server is asked for more time.
    Rebinding { exchange: Exchange, lease: Box<Lease> },
}

/// A question and its repetitions.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    transaction: u32,
    /// From when the time that it takes is counted.
    began: Instant,
    /// How long it took when it was last said; an answer to an offer repeats that (RFC 2131 §4.4.1).
    seconds: u16,
    /// Since when an answer may be on its way: what a lease's times count from.
    asked_at: Instant,
    attempt: u8,
    again_at: Instant,
}

impl Exchange {
    fn new(now: Instant, word: u64) -> Exchange {
        let again_at = now + timing::wait(0, word);
        Exchange {
            transaction: timing::transaction(word),
            began: now,
            seconds: 0,
            asked_at: now,
            attempt: 0,
            again_at,
        }
    }
    /// It is said once more.
    fn repeat(&mut self, now: Instant, word: u64) {
        self.attempt = self.attempt.saturating_add(1);
        self.seconds = u16::try_from(now.since(self.began).as_secs()).unwrap_or(u16::MAX);
        self.again_at = now + timing::wait(self.attempt, word);
    }
}

impl Client {
    /// A client that starts at `now` with what it remembers.
    pub fn new(config: Config, remembered: Remembered, now: Instant, word: u64) -> Client {
        let Remembered { lease, wanted, link_local } = remembered;
        let mut client = Client {
            state: State::Init { until: now + timing::part_of(config.start_spread, word) },
            link_local: LinkLocal::new(config.card, link_local),
            wanted: lease.as_ref().map(|lease| lease.address).or(wanted),
            is_configured: false,
            refusals: 0,
            actions: VecDeque::new(),
            config,
        };
        // What a lease says of an address that is none comes from a file that was spoilt.
        if let Some(lease) = lease.filter(|lease| lease.expires_at() > now && lease.cidr().is_some()) {
            client.state = State::Rebooting { exchange: Exchange::new(now, word), lease: Box::new(lease) };
            client.ask();
        }
        client
    }
    /// The next thing to do.
    pub fn action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
    /// When [`Client::timeout`] is next due.
    pub fn deadline(&self) -> Instant {
        let own = match &self.state {
            State::Init { until } => *until,
            State::Selecting(exchange) => exchange.again_at,
            State::Requesting { exchange, .. } | State::Rebooting { exchange, .. } => exchange.again_at,
            State::Checking(lease) => lease.expires_at(),
            State::Bound(lease) => lease.renew_at().min(lease.rebind_at()).min(lease.expires_at()),
            State::Renewing { exchange, lease } => {
                exchange.again_at.min(lease.rebind_at()).min(lease.expires_at())
            }
            State::Rebinding { exchange, lease } => exchange.again_at.min(lease.expires_at()),
        };
        own.min(self.link_local.deadline())
    }
    /// The status.
    pub fn status(&self) -> Status<'_> {
        let (state, lease) = match &self.state {
            State::Init { .. } => ("init", None),
            State::Selecting(_) => ("selecting", None),
            State::Requesting { .. } => ("requesting", None),
            State::Rebooting { lease, .. } => ("rebooting", Some(lease)),
            State::Checking(lease) => ("checking", Some(lease)),
            State::Bound(lease) => ("bound", Some(lease)),
            State::Renewing { lease, .. } => ("renewing", Some(lease)),
            State::Rebinding { lease, .. } => ("rebinding", Some(lease)),
        };
        Status { state, lease: lease.map(|lease| &**lease), link_local: self.link_local.in_use() }
    }
    /// State to keep for the next start.
    pub fn remembered(&self) -> Remembered {
        let lease = match &self.state {
            State::Checking(lease)
            | State::Bound(lease)
            | State::Renewing { lease, .. }
            | State::Rebinding { lease, .. }
            | State::Rebooting { lease, .. } => Some((**lease).clone()),
            State::Init { .. } | State::Selecting(_) | State::Requesting { .. } => None,
        };
        Remembered { lease, wanted: self.wanted, link_local: self.link_local.last() }
    }

    /// Does what is due at `now`.
    pub fn timeout(&mut self, now: Instant, word: u64) {
        if let Some(step) = self.link_local.timeout(now) {
            self.carry(step);
        }
        if self.lease().is_some_and(|lease| lease.expires_at() <= now) {
            self.expire(now, word);
            return;
        }
        match &mut self.state {
            State::Init { until } if *until <= now => self.discover(now, word),
            State::Selecting(exchange) if exchange.again_at <= now => {
                exchange.repeat(now, word);
                let is_hopeless = exchange.attempt == timing::DISCOVERS_BEFORE_FALLBACK;
                self.ask();
                if is_hopeless {
                    self.fall_back();
                }
            }
            State::Requesting { exchange, .. } if exchange.again_at <= now => {
                exchange.repeat(now, word);
                match exchange.attempt >= timing::REQUESTS {
                    true => self.discover(now, word),
                    false => self.ask(),
                }
            }
            State::Rebooting { exchange, .. } if exchange.again_at <= now => {
                exchange.repeat(now, word);
                match exchange.attempt >= timing::REBOOT_REQUESTS {
                    true => self.use_unconfirmed(),
                    false => self.ask(),
                }
            }
            State::Bound(_) | State::Renewing { .. } | State::Rebinding { .. } => self.extend(now, word),
            _ => {}
        }
    }
    /// Takes a datagram that came to the client's port; an error says why it was not taken.
    pub fn receive(&mut self, bytes: &[u8], from: Endpoint, now: Instant, word: u64) -> Result<(), Refused> {
        if from.port != SERVER_PORT {
            return Err(Refused::NotAServer);
        }
        let exchange = *self.exchange().ok_or(Refused::Unasked)?;
        let reply = Reply::parse(bytes, self.config.card, &self.config.identifier)?;
        if reply.transaction != exchange.transaction {
            return Err(Refused::Unasked);
        }
        match reply.kind {
            Kind::Offer => self.take_offer(reply, now, word),
            Kind::Ack => self.take_acknowledgment(reply, exchange.asked_at),
            Kind::Nak => self.take_refusal(&reply, now, word),
        }
    }
    /// Gives the lease back to its server, for a host that ends (RFC 2131 §4.4.6). Nothing is asked from then on.
    pub fn release(&mut self, now: Instant, word: u64) {
        let (server, address) = match &self.state {
            State::Bound(lease) | State::Renewing { lease, .. } | State::Rebinding { lease, .. } => {
                (lease.server, lease.address)
            }
            _ => return,
        };
        let destination = Destination::Unicast { from: address, to: server };
        self.send(Request::Release { server, address }, &Exchange::new(now, word), destination);
        self.give_up(address);
        self.wanted = Some(address);
        self.state = State::Init { until: Instant::FAR_FUTURE };
        self.actions.push_back(Action::Remember);
        self.actions.push_back(Action::Tell(News::Released { address }));
    }
    /// The link has `address`, and nobody else has: it is ours.
    pub fn settled(&mut self, address: IpAddr) {
        let IpAddr::V4(address) = address else { return };
        if self.link_local.settled(address) {
            self.actions.push_back(Action::Remember);
            self.actions.push_back(Action::Tell(News::LinkLocal { address }));
        }
        match core::mem::replace(&mut self.state, State::Init { until: Instant::ZERO }) {
            State::Checking(lease) if lease.address == address => self.bind(lease),
            other => self.state = other,
        }
    }
    /// Another host has `address`, or the link cannot have it.
    pub fn conflict(&mut self, address: IpAddr, now: Instant, word: u64) {
        let IpAddr::V4(address) = address else { return };
        if let Some((gone, next)) = self.link_local.conflict(address, now) {
            self.carry(gone);
            self.actions.push_back(Action::Tell(News::Conflict { address }));
            if let Some(next) = next {
                self.carry(next);
            }
        }
        let Some(server) = self.lease().filter(|lease| lease.address == address).map(|lease| lease.server)
        else {
            return;
        };
        self.give_up(address);
        let exchange = Exchange::new(now, word);
        self.send(Request::Decline { server, address }, &exchange, Destination::Unaddressed);
        self.wanted = None;
        self.state = State::Init { until: now + timing::CONFLICT_REST };
        self.actions.push_back(Action::Remember);
        self.actions.push_back(Action::Tell(News::Conflict { address }));
    }
}

impl Client {
    /// The lease whose address the link has, or is being given.
    fn lease(&self) -> Option<&Lease> {
        match &self.state {
            State::Checking(lease)
            | State::Bound(lease)
            | State::Renewing { lease, .. }
            | State::Rebinding { lease, .. } => Some(lease),
            _ => None,
        }
    }
    /// The question that waits for an answer.
    fn exchange(&self) -> Option<&Exchange> {
        match &self.state {
            State::Selecting(exchange)
            | State::Requesting { exchange, .. }
            | State::Rebooting { exchange, .. }
            | State::Renewing { exchange, .. }
            | State::Rebinding { exchange, .. } => Some(exchange),
            State::Init { .. } | State::Checking(_) | State::Bound(_) => None,
        }
    }
    /// Says what the state asks, once more or for the first time.
    fn ask(&mut self) {
        let wanted = self.wanted;
        let (request, exchange, destination) = match &self.state {
            State::Selecting(exchange) => (Request::Discover { wanted }, *exchange, Destination::Unaddressed),
            State::Requesting { exchange, server, grant } => {
                let request = Request::Select { server: *server, address: grant.address };
                (request, *exchange, Destination::Unaddressed)
            }
            State::Rebooting { exchange, lease } => {
                (Request::Reboot { address: lease.address }, *exchange, Destination::Unaddressed)
            }
            State::Renewing { exchange, lease } => {
                let destination = Destination::Unicast { from: lease.address, to: lease.server };
                (Request::Extend { address: lease.address }, *exchange, destination)
            }
            State::Rebinding { exchange, lease } => {
                let destination = Destination::Broadcast { from: lease.address };
                (Request::Extend { address: lease.address }, *exchange, destination)
            }
            State::Init { .. } | State::Checking(_) | State::Bound(_) => return,
        };
        self.send(request, &exchange, destination);
    }
    fn send(&mut self, request: Request, exchange: &Exchange, destination: Destination) {
        let Config { card, ref identifier, longest_bytes, ref host_name, .. } = self.config;
        let host_name = host_name.as_deref();
        let Exchange { transaction, seconds, .. } = *exchange;
        let bytes =
            request.write(&Asker { card, identifier, host_name, longest_bytes, transaction, seconds });
        self.actions.push_back(Action::Send(Datagram { bytes, destination }));
    }
    fn discover(&mut self, now: Instant, word: u64) {
        self.state = State::Selecting(Exchange::new(now, word));
        self.ask();
    }
    /// No server answers: the host helps itself while it goes on asking.
    fn fall_back(&mut self) {
        if !self.config.link_local {
            return;
        }
        if let Some(step) = self.link_local.begin() {
            self.actions.push_back(Action::Tell(News::Unanswered));
            self.carry(step);
        }
    }
    /// No server answers, but what was lent has not ended (RFC 2131 §3.2 (4)).
    fn use_unconfirmed(&mut self) {
        match core::mem::replace(&mut self.state, State::Init { until: Instant::ZERO }) {
            State::Rebooting { lease, .. } => {
                self.actions.push_back(Action::Tell(News::Unconfirmed { address: lease.address }));
                self.check(lease);
            }
            other => self.state = other,
        }
    }
    fn carry(&mut self, step: Step) {
        self.actions.push_back(match step {
            Step::Assign(cidr) => Action::Assign(cidr),
            Step::Unassign(address) => Action::Unassign(address),
        });
    }
    /// The address is given to the link, to be tested there (RFC 2131 §3.1 (5), RFC 5227 §2.1).
    fn check(&mut self, lease: Box<Lease>) {
        match lease.cidr() {
            Some(cidr) => {
                self.actions.push_back(Action::Assign(cidr));
                self.state = State::Checking(lease);
            }
            None => self.state = State::Init { until: Instant::ZERO },
        }
    }
    /// The lease is in force.
    fn bind(&mut self, lease: Box<Lease>) {
        self.refusals = 0;
        self.wanted = Some(lease.address);
        self.is_configured = true;
        self.actions.push_back(Action::Configure(Box::new(lease.settings.clone())));
        // RFC 3927 §1.9: not both at a time.
        if let Some(step) = self.link_local.end() {
            self.carry(step);
        }
        self.tell_leased(&lease);
        self.state = State::Bound(lease);
        self.actions.push_back(Action::Remember);
    }
    fn tell_leased(&mut self, lease: &Lease) {
        let Some(address) = lease.cidr() else { return };
        let end = lease.expires_at();
        let time = (end != Instant::FAR_FUTURE).then(|| end.since(lease.asked_at));
        self.actions.push_back(Action::Tell(News::Leased { address, server: lease.server, time }));
    }

    /// Asks for more time, of whom it is time to ask.
    fn extend(&mut self, now: Instant, word: u64) {
        let (mut exchange, lease) = match &self.state {
            State::Bound(lease) if lease.renew_at() <= now => (Exchange::new(now, word), lease.clone()),
            State::Renewing { lease, .. } if lease.rebind_at() <= now => {
                (Exchange::new(now, word), lease.clone())
            }
            State::Renewing { exchange, lease } | State::Rebinding { exchange, lease }
                if exchange.again_at <= now =>
            {
                let mut exchange = *exchange;
                exchange.repeat(now, word);
                (exchange, lease.clone())
            }
            _ => return,
        };
        let is_everybody = lease.rebind_at() <= now;
        let end = if is_everybody { lease.expires_at() } else { lease.rebind_at() };
        exchange.again_at = timing::extension(now, end);
        self.state = match is_everybody {
            true => State::Rebinding { exchange, lease },
            false => State::Renewing { exchange, lease },
        };
        self.ask();
    }
    /// The lease has ended: all that belongs to it stops at once (RFC 2131 §4.4.5), and another is looked for.
    fn expire(&mut self, now: Instant, word: u64) {
        let Some(address) = self.lease().map(|lease| lease.address) else { return };
        self.give_up(address);
        self.actions.push_back(Action::Tell(News::Expired { address }));
        self.wanted = Some(address);
        self.discover(now, word);
        self.actions.push_back(Action::Remember);
    }
    fn give_up(&mut self, address: Ipv4Addr) {
        if core::mem::take(&mut self.is_configured) {
            self.actions.push_back(Action::Unconfigure);
        }
        self.actions.push_back(Action::Unassign(address));
    }

    /// The first offer that makes sense is taken.
    fn take_offer(&mut self, reply: Reply, now: Instant, word: u64) -> Result<(), Refused> {
        let State::Selecting(asked) = &self.state else { return Err(Refused::Unasked) };
        let grant = Box::new(reply.grant.ok_or(Refused::Malformed)?);
        // The exchange goes on with its number and its seconds; its waits begin anew.
        let Exchange { transaction, began, seconds, .. } = *asked;
        let exchange = Exchange { transaction, began, seconds, ..Exchange::new(now, word) };
        self.state = State::Requesting { exchange, server: reply.server, grant };
        self.ask();
        Ok(())
    }
    /// The address that was asked for, of this server or of all.
    fn asked_for(&self, of: Ipv4Addr) -> Result<Ipv4Addr, Refused> {
        let (server, address) = match &self.state {
            State::Requesting { server, grant, .. } => (Some(*server), grant.address),
            State::Renewing { lease, .. } => (Some(lease.server), lease.address),
            State::Rebooting { lease, .. } | State::Rebinding { lease, .. } => (None, lease.address),
            _ => return Err(Refused::Unasked),
        };
        match server.is_none_or(|asked| asked == of) {
            true => Ok(address),
            false => Err(Refused::OtherServer),
        }
    }
    fn take_acknowledgment(&mut self, reply: Reply, asked_at: Instant) -> Result<(), Refused> {
        let grant = reply.grant.ok_or(Refused::Malformed)?;
        let address = match &self.state {
            State::Selecting(_) if reply.is_rapid => grant.address,
            _ => self.asked_for(reply.server)?,
        };
        if grant.address != address {
            return Err(Refused::Address);
        }
        let Grant { address, prefix_bits, terms, settings } = grant;
        let lease = Box::new(Lease { address, prefix_bits, server: reply.server, asked_at, terms, settings });
        let before = match &self.state {
            State::Renewing { lease, .. } | State::Rebinding { lease, .. } => lease,
            _ => {
                self.check(lease);
                return Ok(());
            }
        };
        if before.prefix_bits != lease.prefix_bits {
            // The network was cut anew: the address has to be, too.
            self.give_up(address);
            self.check(lease);
            return Ok(());
        }
        if before.settings != lease.settings {
            self.actions.push_back(Action::Configure(Box::new(lease.settings.clone())));
        }
        self.state = State::Bound(lease);
        self.actions.push_back(Action::Remember);
        Ok(())
    }
    fn take_refusal(&mut self, reply: &Reply, now: Instant, word: u64) -> Result<(), Refused> {
        let address = self.asked_for(reply.server)?;
        if self.lease().is_some() {
            self.give_up(address);
        }
        self.actions.push_back(Action::Tell(News::Refused { address, server: reply.server }));
        self.wanted = None;
        self.refusals = self.refusals.saturating_add(1);
        match timing::refusal_rest(self.refusals) {
            inhost_base::Duration::ZERO => self.discover(now, word),
            rest => self.state = State::Init { until: now + rest },
        }
        self.actions.push_back(Action::Remember);
        Ok(())
    }
}
