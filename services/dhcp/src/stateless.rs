//! Settings by DHCPv6, without addresses: information-request and its reply (RFC 8415 §6.1, §18.2.6; RFC 3646).

use crate::identity::Duid;
use crate::{SERVER_PORT_V6, limits};
use dhcproto::v6::{DhcpOption, Message, MessageType, ORO, OptionCode};
use dhcproto::{Decoder, Encodable, Encoder};
use inhost_base::{Duration, Endpoint, Instant, IpAddr, Ipv6Addr};
use std::collections::VecDeque;

/// All servers and relays of a link (RFC 8415 §7.1).
pub const SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);

// RFC 8415 §7.6, §18.2.6, §21.23.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
const LONGEST_WAIT_RANGE_S: core::ops::RangeInclusive<u32> = 60..=86_400;
const USUAL_REFRESH_S: u32 = 86_400;
const LEAST_REFRESH_S: u32 = 600;

/// Options read here by number, for dhcproto's own reader of a whole message runs over a status that is too short.
mod option {
    pub const CLIENT: u16 = 1;
    pub const SERVER: u16 = 2;
    pub const STATUS: u16 = 13;
    pub const NAME_SERVERS: u16 = 23;
    pub const SEARCH: u16 = 24;
    pub const REFRESH: u16 = 32;
    pub const LONGEST_WAIT: u16 = 83;
}

/// Configuration of the network beside addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Information {
    /// Name servers in order of preference; at most [`limits::NAME_SERVERS`].
    pub name_servers: Vec<Ipv6Addr>,
    /// Domains that short names are searched in; at most [`limits::SEARCH_DOMAINS`].
    pub search: Vec<String>,
}

/// Why a datagram is not taken for an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusedV6 {
    /// Not from a server's port on this link.
    NotAServer,
    /// It is longer than a link's packet, or its parts do not add up.
    Malformed,
    /// It is not a reply, nothing was asked, or something else.
    Unasked,
    /// It is for another client, or says nothing of whom it is for (RFC 8415 §16.10).
    NotForUs,
    /// It says nothing of who sent it.
    NoServer,
    /// The server could not help.
    Failed,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// No router says that there is something to ask for.
    Off,
    /// The question waits for its first, random delay.
    Delayed { until: Instant },
    /// Asked.
    Asking { transaction: [u8; 3], began: Instant, wait: Duration, again_at: Instant },
    /// Answered; asked again then.
    Informed { until: Instant },
}

/// The client of one link, driven as [`crate::client::Client`] is. Datagrams go to [`SERVERS`], from the link's own address.
#[derive(Clone, Debug)]
pub struct Stateless {
    duid: Duid,
    state: State,
    longest_wait: Duration,
    information: Option<Information>,
    outgoing: VecDeque<Vec<u8>>,
}

impl Stateless {
    /// A client that waits for [`Stateless::begin`].
    pub fn new(duid: Duid) -> Stateless {
        let outgoing = VecDeque::new();
        Stateless { duid, state: State::Off, longest_wait: LONGEST_WAIT, information: None, outgoing }
    }
    /// A router says that there is something to ask for, and the link has an address to ask from. Nothing when that is
    /// known already.
    pub fn begin(&mut self, now: Instant, word: u64) {
        if matches!(self.state, State::Off) {
            self.state = State::Delayed { until: now + part(FIRST_DELAY, word) };
        }
    }
    /// There is nothing to ask for any more. What was said is forgotten.
    pub fn end(&mut self) {
        self.state = State::Off;
        self.information = None;
    }
    /// The next datagram for all servers.
    pub fn outgoing(&mut self) -> Option<Vec<u8>> {
        self.outgoing.pop_front()
    }
    /// The last reply.
    pub fn information(&self) -> Option<&Information> {
        self.information.as_ref()
    }
    /// Its state, for display.
    pub fn state(&self) -> &'static str {
        match self.state {
            State::Off => "off",
            State::Delayed { .. } | State::Asking { .. } => "asking",
            State::Informed { .. } => "informed",
        }
    }
    /// When [`Stateless::timeout`] is next due.
    pub fn deadline(&self) -> Instant {
        match self.state {
            State::Off => Instant::FAR_FUTURE,
            State::Delayed { until } | State::Informed { until } => until,
            State::Asking { again_at, .. } => again_at,
        }
    }
    /// Does what is due at `now`. What was said before holds while it is asked for anew.
    pub fn timeout(&mut self, now: Instant, word: u64) {
        if self.deadline() > now {
            return;
        }
        let (transaction, began, wait) = match self.state {
            State::Off => return,
            State::Delayed { .. } | State::Informed { .. } => {
                let [_, a, b, c, ..] = word.to_be_bytes();
                ([a, b, c], now, spread(FIRST_WAIT, word))
            }
            State::Asking { transaction, began, wait, .. } => {
                let longer = wait + spread(wait, word);
                let wait = if longer > self.longest_wait { spread(self.longest_wait, word) } else { longer };
                (transaction, began, wait)
            }
        };
        self.state = State::Asking { transaction, began, wait, again_at: now + wait };
        let elapsed = u16::try_from(now.since(began).as_millis() / 10).unwrap_or(u16::MAX);
        self.outgoing.push_back(self.question(transaction, elapsed));
    }
    fn question(&self, transaction: [u8; 3], elapsed_hundredths: u16) -> Vec<u8> {
        let mut message = Message::new_with_id(MessageType::InformationRequest, transaction);
        let options = message.opts_mut();
        options.insert(DhcpOption::ClientId(self.duid.bytes().to_vec()));
        options.insert(DhcpOption::ElapsedTime(elapsed_hundredths));
        let asked_for = [option::NAME_SERVERS, option::SEARCH, option::REFRESH, option::LONGEST_WAIT]
            .map(OptionCode::from);
        options.insert(DhcpOption::ORO(ORO { opts: asked_for.to_vec() }));
        let mut bytes = Vec::new();
        if message.encode(&mut Encoder::new(&mut bytes)).is_err() {
            bytes.clear();
        }
        bytes
    }
    /// Takes a datagram that came to the client's port.
    pub fn receive(&mut self, bytes: &[u8], from: Endpoint, now: Instant) -> Result<(), RefusedV6> {
        let is_on_link = matches!(from.address, IpAddr::V6(a) if a.is_unicast_link_local());
        if from.port != SERVER_PORT_V6 || !is_on_link {
            return Err(RefusedV6::NotAServer);
        }
        let State::Asking { transaction, .. } = self.state else { return Err(RefusedV6::Unasked) };
        if bytes.len() > limits::REPLY_BYTES {
            return Err(RefusedV6::Malformed);
        }
        let (head, options) = bytes.split_at_checked(4).ok_or(RefusedV6::Malformed)?;
        let [kind, number @ ..] = head else { return Err(RefusedV6::Malformed) };
        if MessageType::from(*kind) != MessageType::Reply || *number != transaction {
            return Err(RefusedV6::Unasked);
        }
        let said = Said::read(options, &self.duid)?;
        if let Some(longest_s) = said.longest_wait_s.filter(|s| LONGEST_WAIT_RANGE_S.contains(s)) {
            self.longest_wait = Duration::from_secs(u64::from(longest_s));
        }
        let refresh_s = said.refresh_s.unwrap_or(USUAL_REFRESH_S).max(LEAST_REFRESH_S);
        let until = match refresh_s {
            u32::MAX => Instant::FAR_FUTURE,
            seconds => now + Duration::from_secs(u64::from(seconds)),
        };
        self.state = State::Informed { until };
        self.information = Some(said.information);
        Ok(())
    }
}

/// The options of a reply that matter here.
#[derive(Default)]
struct Said {
    information: Information,
    refresh_s: Option<u32>,
    longest_wait_s: Option<u32>,
}

impl Said {
    fn read(options: &[u8], own: &Duid) -> Result<Said, RefusedV6> {
        let (mut said, mut client, mut server) = (Said::default(), None, None);
        let mut rest = Decoder::new(options);
        while !rest.buffer().is_empty() {
            let code = rest.read_u16().map_err(|_| RefusedV6::Malformed)?;
            let length = rest.read_u16().map_err(|_| RefusedV6::Malformed)?;
            let value = rest.read_slice(usize::from(length)).map_err(|_| RefusedV6::Malformed)?;
            let word = || value.try_into().ok().map(u32::from_be_bytes);
            match code {
                option::CLIENT => client = Some(value),
                option::SERVER => server = Some(value),
                option::STATUS if !value.starts_with(&[0, 0]) => return Err(RefusedV6::Failed),
                option::NAME_SERVERS => {
                    let list = Decoder::new(value).read_ipv6s(value.len()).unwrap_or_default();
                    let usable = list
                        .into_iter()
                        .filter(|a| !a.is_multicast() && !a.is_unspecified() && !a.is_loopback());
                    said.information.name_servers = usable.take(limits::NAME_SERVERS).collect();
                }
                option::SEARCH => said.information.search = crate::codec::reply::domains(value),
                option::REFRESH => said.refresh_s = word(),
                option::LONGEST_WAIT => said.longest_wait_s = word(),
                _ => {}
            }
        }
        if client != Some(own.bytes()) {
            return Err(RefusedV6::NotForUs);
        }
        match server {
            Some(server) if (2..=limits::DUID_BYTES).contains(&server.len()) => Ok(said),
            _ => Err(RefusedV6::NoServer),
        }
    }
}

fn part(whole: Duration, word: u64) -> Duration {
    let nanos = (u128::from(whole.as_nanos()) * u128::from(word as u32)) >> 32;
    Duration::from_nanos(nanos as u64)
}
/// `wait`, a tenth more or less (RFC 8415 §15).
fn spread(wait: Duration, word: u64) -> Duration {
    let tenth = wait.divided_by(10);
    (wait - tenth) + part(tenth.times(2), word)
}

#[cfg(test)]
mod tests;
