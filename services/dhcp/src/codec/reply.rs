//! Reading what a server says. Everything that a reply claims is checked here or refused.

use crate::lease::{LEAST_LEASE_S, LeasedRoute, Settings, Terms};
use crate::limits;
use dhcproto::Decoder;
use dhcproto::v4::borrowed::{DhcpOptionIterator, Message};
use dhcproto::v4::{HType, Opcode, OptionCode};
use inhost_base::{Cidr, HardwareAddress, IpAddr, Ipv4Addr};
use std::collections::BTreeMap;

/// Before the options; the magic cookie is its end (RFC 2131 §2).
const FIXED_BYTES: usize = 240;
const SERVER_NAME: core::ops::Range<usize> = 44..108;
const FILE_NAME: core::ops::Range<usize> = 108..236;
/// No link's packets may be made shorter (RFC 2132 §5.1 allows 68, which would be an attack).
pub(crate) const LEAST_MTU_BYTES: u16 = 576;

/// Message type of the reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Offer,
    Ack,
    Nak,
}

/// Why a datagram is not taken for an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refused {
    /// It comes from another port than a server's.
    NotAServer,
    /// It is longer than a link's packet.
    TooLong,
    /// It is not a DHCP message, or one of its fields is not what it must be.
    Malformed,
    /// It is a client's.
    NotAReply,
    /// Nothing was asked, or something else.
    Unasked,
    /// It is for another card or client.
    NotForUs,
    /// Another server's than the one that was asked.
    OtherServer,
    /// It says nothing of who sent it.
    NoServer,
    /// It lends no address that a host can have, or another one than was asked for.
    Address,
    /// It lends for no time, or for less than a few seconds.
    Time,
}

impl Refused {
    /// For a person.
    pub fn text(self) -> &'static str {
        match self {
            Refused::NotAServer => "not from a server's port",
            Refused::TooLong => "too long",
            Refused::Malformed => "malformed",
            Refused::NotAReply => "not a reply",
            Refused::Unasked => "not asked for",
            Refused::NotForUs => "for another client",
            Refused::OtherServer => "from another server",
            Refused::NoServer => "without a server",
            Refused::Address => "with an address that cannot be",
            Refused::Time => "without a time",
        }
    }
}

/// A reply to us whose fields make sense.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reply {
    pub kind: Kind,
    pub transaction: u32,
    pub server: Ipv4Addr,
    /// The offered or acknowledged lease.
    pub grant: Option<Grant>,
    /// It answers a discover with a lease (RFC 4039).
    pub is_rapid: bool,
}

/// A leased or offered address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Grant {
    pub address: Ipv4Addr,
    pub prefix_bits: u8,
    pub terms: Terms,
    pub settings: Settings,
}

impl Reply {
    /// Reads a datagram that came to the client's port, for the card `card` that calls itself `identifier`.
    pub fn parse(bytes: &[u8], card: HardwareAddress, identifier: &[u8]) -> Result<Reply, Refused> {
        if bytes.len() > limits::REPLY_BYTES {
            return Err(Refused::TooLong);
        }
        let message = Message::new(bytes).map_err(|_| Refused::Malformed)?;
        if message.opcode() != Opcode::BootReply {
            return Err(Refused::NotAReply);
        }
        let is_ours = message.htype() == HType::Eth && message.hlen() == 6 && message.chaddr() == card.0;
        if !is_ours {
            return Err(Refused::NotForUs);
        }
        let options = Options::collect(bytes)?;
        let kind = match options.one(OptionCode::MessageType) {
            Some(2) => Kind::Offer,
            Some(5) => Kind::Ack,
            Some(6) => Kind::Nak,
            _ => return Err(Refused::NotAReply),
        };
        // RFC 6842 §3: a server repeats the identifier, and who sees another is not meant.
        if options.get(OptionCode::ClientIdentifier).is_some_and(|other| other != identifier) {
            return Err(Refused::NotForUs);
        }
        let server = options.address(OptionCode::ServerIdentifier).ok_or(Refused::NoServer)?;
        if !is_host(server) {
            return Err(Refused::NoServer);
        }
        let grant = match kind {
            Kind::Nak => None,
            Kind::Offer | Kind::Ack => Some(grant(message.yiaddr(), &options)?),
        };
        let is_rapid = options.get(OptionCode::RapidCommit).is_some();
        Ok(Reply { kind, transaction: message.xid(), server, grant, is_rapid })
    }
}

fn grant(address: Ipv4Addr, options: &Options) -> Result<Grant, Refused> {
    let prefix_bits = match options.address(OptionCode::SubnetMask) {
        Some(mask) => prefix_of(mask).ok_or(Refused::Malformed)?,
        None => natural_prefix(address),
    };
    let cidr = Cidr::new(address, prefix_bits).map_err(|_| Refused::Malformed)?;
    // The first and last address of a network name no host (RFC 1122 §3.2.1.3), where it has more than two.
    let is_edge =
        prefix_bits < 31 && (cidr.network() == IpAddr::V4(address) || cidr.broadcast() == Some(address));
    if !is_host(address) || address.is_link_local() || is_edge {
        return Err(Refused::Address);
    }
    let lease_s = options.word(OptionCode::AddressLeaseTime).ok_or(Refused::Time)?;
    if lease_s < LEAST_LEASE_S {
        return Err(Refused::Time);
    }
    let terms = Terms::new(lease_s, options.word(OptionCode::Renewal), options.word(OptionCode::Rebinding));
    Ok(Grant { address, prefix_bits, terms, settings: settings(address, options) })
}

fn settings(own: Ipv4Addr, options: &Options) -> Settings {
    let mtu_bytes = match options.get(OptionCode::InterfaceMtu) {
        Some(&[high, low]) => Some(u16::from_be_bytes([high, low])),
        _ => None,
    };
    let name_servers = options.addresses(OptionCode::DomainNameServer).into_iter().filter(|&a| is_host(a));
    Settings {
        routes: routes(own, options),
        name_servers: name_servers.take(limits::NAME_SERVERS).collect(),
        search: search(options),
        mtu_bytes: mtu_bytes.filter(|&mtu| mtu >= LEAST_MTU_BYTES),
    }
}

/// The routes: those of RFC 3442 and no others where there are some, else those to classes and the routers.
fn routes(own: Ipv4Addr, options: &Options) -> Vec<LeasedRoute> {
    let usable = |route: &LeasedRoute| route.gateway.is_none_or(|gateway| is_host(gateway) && gateway != own);
    if let Some(bytes) = options.get(OptionCode::ClasslessStaticRoute)
        && let Some(routes) = classless(bytes)
    {
        return routes.into_iter().filter(usable).take(limits::ROUTES).collect();
    }
    let everything = Cidr::new(Ipv4Addr::UNSPECIFIED, 0).ok();
    let routers = options.addresses(OptionCode::Router).into_iter();
    let routers =
        routers.filter_map(|gateway| Some(LeasedRoute { destination: everything?, gateway: Some(gateway) }));
    let statics = options.addresses(OptionCode::StaticRoutingTable);
    // RFC 2132 §5.8: a default route is not to be given here.
    let pairs = statics.chunks_exact(2).filter_map(|pair| match pair {
        &[to, gateway] if !to.is_unspecified() => Cidr::new(to, natural_prefix(to))
            .ok()
            .map(|destination| LeasedRoute { destination, gateway: Some(gateway) }),
        _ => None,
    });
    routers.chain(pairs).filter(usable).take(limits::ROUTES).collect()
}

/// RFC 3442: a prefix length, as many octets as it needs, and a gateway, again and again. `None` when it does not add up.
fn classless(mut bytes: &[u8]) -> Option<Vec<LeasedRoute>> {
    let mut routes = Vec::new();
    while let Some((&prefix_bits, rest)) = bytes.split_first() {
        let (significant, rest) = rest.split_at_checked(usize::from(prefix_bits).div_ceil(8))?;
        let (gateway, rest) = rest.split_at_checked(4)?;
        let mut octets = [0; 4];
        octets.get_mut(..significant.len())?.copy_from_slice(significant);
        let given = Cidr::new(Ipv4Addr::from(octets), prefix_bits).ok()?;
        // What stands behind the prefix is to be ignored.
        let destination = Cidr::new(given.network(), prefix_bits).ok()?;
        let gateway = Ipv4Addr::from(<[u8; 4]>::try_from(gateway).ok()?);
        routes.push(LeasedRoute { destination, gateway: Some(gateway).filter(|g| !g.is_unspecified()) });
        bytes = rest;
    }
    (!routes.is_empty()).then_some(routes)
}

/// The list of RFC 3397, or the domain of RFC 2132 §3.17 where there is none.
fn search(options: &Options) -> Vec<String> {
    let list = options.get(OptionCode::DomainSearch).map_or(Vec::new(), domains);
    if !list.is_empty() {
        return list;
    }
    let domain = options.get(OptionCode::DomainName).unwrap_or_default();
    let text = String::from_utf8_lossy(domain);
    let text = text.trim_end_matches(['\0', '.']);
    if is_domain(text) { vec![text.to_owned()] } else { Vec::new() }
}

/// Domains in the DNS's own form.
pub(crate) fn domains(bytes: &[u8]) -> Vec<String> {
    let names = Decoder::new(bytes).read_domains(bytes.len()).unwrap_or_default();
    let names = names.iter().map(|name| name.to_ascii().trim_end_matches('.').to_owned());
    names.filter(|name| is_domain(name)).take(limits::SEARCH_DOMAINS).collect()
}

/// Whether a text is letters, digits, hyphens and underscores between dots: what goes to the resolver can do no harm.
pub(crate) fn is_domain(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= limits::DOMAIN_BYTES
        && text.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'))
        })
}

/// Whether one host can have this address, elsewhere than within itself.
fn is_host(address: Ipv4Addr) -> bool {
    !matches!(address.octets()[0], 0 | 127 | 224..=255)
}

/// Bits of a mask without holes.
fn prefix_of(mask: Ipv4Addr) -> Option<u8> {
    let ones = u32::from(mask).leading_ones();
    (ones > 0 && u32::from(mask).count_ones() == ones).then_some(ones as u8)
}

/// The prefix of an address's class (RFC 791 §3.2), for servers that give no mask.
fn natural_prefix(address: Ipv4Addr) -> u8 {
    match address.octets()[0] {
        0..=127 => 8,
        128..=191 => 16,
        _ => 24,
    }
}

/// The options of a message by number, each put together from all its parts (RFC 3396), those in the fields for names
/// included where the message says so (RFC 2132 §9.3).
struct Options(BTreeMap<u8, Vec<u8>>);

impl Options {
    fn collect(bytes: &[u8]) -> Result<Options, Refused> {
        let (front, area) = bytes.split_at_checked(FIXED_BYTES).ok_or(Refused::Malformed)?;
        if !front.ends_with(&dhcproto::v4::MAGIC) {
            return Err(Refused::Malformed);
        }
        let mut options = Options(BTreeMap::new());
        options.add(area);
        let overload = options.one(OptionCode::OptionOverload).unwrap_or(0);
        for (bit, field) in [(1, FILE_NAME), (2, SERVER_NAME)] {
            if overload & bit != 0 {
                options.add(front.get(field).unwrap_or_default());
            }
        }
        Ok(options)
    }
    fn add(&mut self, area: &[u8]) {
        for option in DhcpOptionIterator::new(area) {
            self.0.entry(option.code().into()).or_default().extend_from_slice(option.data());
        }
    }
    fn get(&self, code: OptionCode) -> Option<&[u8]> {
        self.0.get(&u8::from(code)).map(Vec::as_slice)
    }
    fn one(&self, code: OptionCode) -> Option<u8> {
        match self.get(code) {
            Some(&[byte]) => Some(byte),
            _ => None,
        }
    }
    fn word(&self, code: OptionCode) -> Option<u32> {
        self.get(code)?.try_into().ok().map(u32::from_be_bytes)
    }
    fn address(&self, code: OptionCode) -> Option<Ipv4Addr> {
        self.word(code).map(Ipv4Addr::from)
    }
    /// A list; none where its length is not a multiple of an address's.
    fn addresses(&self, code: OptionCode) -> Vec<Ipv4Addr> {
        let bytes = self.get(code).unwrap_or_default();
        Decoder::new(bytes).read_ipv4s(bytes.len()).unwrap_or_default()
    }
}

#[cfg(test)]
pub(crate) mod tests;
