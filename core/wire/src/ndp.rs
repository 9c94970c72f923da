//! Neighbour discovery for IPv6 (RFC 4861), with DNS servers in router advertisements (RFC 8106).
//!
//! The messages travel in ICMPv6 ([`crate::icmpv6`] writes the type, the code and the checksum), and none of
//! them counts unless it comes with [`HOP_LIMIT`] hops: [`NdpMessage::acceptable`] has the rules.

use crate::cursor::{Reader, Writer};
use crate::{Bounded, Malformed};
use inhost_base::{HardwareAddress, Ipv6Addr};

/// The hop limit of every message. One that arrives with less came from another link.
pub const HOP_LIMIT: u8 = 255;
/// Most prefixes of one advertisement that are read; further ones are passed over.
pub const MAX_PREFIXES: usize = 8;
/// Most DNS servers of one advertisement that are read; further ones are passed over.
pub const MAX_DNS_SERVERS: usize = 4;

const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
const REDIRECT: u8 = 137;

const OPTION_SOURCE_LINK_LAYER: u8 = 1;
const OPTION_TARGET_LINK_LAYER: u8 = 2;
const OPTION_PREFIX_INFORMATION: u8 = 3;
const OPTION_REDIRECTED_HEADER: u8 = 4;
const OPTION_MTU: u8 = 5;
const OPTION_RECURSIVE_DNS_SERVER: u8 = 25;

/// A prefix that a router announces (RFC 4861 §4.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefixInformation {
    /// The prefix; bits beyond its length mean nothing.
    pub prefix: Ipv6Addr,
    /// Its length, at most 128.
    pub prefix_bits: u8,
    /// Addresses under it are neighbours.
    pub on_link: bool,
    /// Hosts may make addresses under it.
    pub autonomous: bool,
    /// Seconds until it goes; `u32::MAX` is for ever.
    pub valid_lifetime_s: u32,
    /// Seconds until addresses under it are deprecated; `u32::MAX` is for ever.
    pub preferred_lifetime_s: u32,
}

const NO_PREFIX: PrefixInformation = PrefixInformation {
    prefix: Ipv6Addr::UNSPECIFIED,
    prefix_bits: 0,
    on_link: false,
    autonomous: false,
    valid_lifetime_s: 0,
    preferred_lifetime_s: 0,
};

impl Default for PrefixInformation {
    fn default() -> Self {
        NO_PREFIX
    }
}

/// A DNS server that a router announces (RFC 8106 §5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecursiveDnsServer {
    /// Where it answers.
    pub address: Ipv6Addr,
    /// Seconds for which it may be asked; `u32::MAX` is for ever.
    pub lifetime_s: u32,
}

impl Default for RecursiveDnsServer {
    fn default() -> Self {
        RecursiveDnsServer { address: Ipv6Addr::UNSPECIFIED, lifetime_s: 0 }
    }
}

/// The options of a message. Of those that may occur once, the last counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NdpOptions<'a> {
    /// The sender's card.
    pub source_link_layer: Option<HardwareAddress>,
    /// The target's card.
    pub target_link_layer: Option<HardwareAddress>,
    /// The link's MTU in bytes.
    pub mtu: Option<u32>,
    /// Prefixes of the link.
    pub prefixes: Bounded<PrefixInformation, MAX_PREFIXES>,
    /// DNS servers to ask.
    pub dns_servers: Bounded<RecursiveDnsServer, MAX_DNS_SERVERS>,
    /// The front of the packet that led to a redirect. It is sent without its last bytes when its length is
    /// not a multiple of 8.
    pub redirected: Option<&'a [u8]>,
}

impl<'a> NdpOptions<'a> {
    /// Reads the options behind a message's fixed part. An option of length 0, or one that runs past the end,
    /// spoils the message; options that are not known, or do not suit Ethernet, are stepped over.
    // spec: RFC4861 4.6, 6.1, 7.1
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut options = NdpOptions::default();
        let mut r = Reader::new(bytes);
        while !r.rest().is_empty() {
            let kind = r.u8().ok_or(Malformed::Truncated)?;
            let units = usize::from(r.u8().ok_or(Malformed::Truncated)?);
            let length = (8 * units).checked_sub(2).ok_or(Malformed::Length)?;
            let body = Reader::new(r.bytes(length).ok_or(Malformed::Truncated)?);
            options = options.with(kind, body).unwrap_or(options);
        }
        Ok(options)
    }

    /// The same with one more option; `None` when that is not as long as its kind needs.
    fn with(mut self, kind: u8, mut r: Reader<'a>) -> Option<Self> {
        match kind {
            OPTION_SOURCE_LINK_LAYER if r.rest().len() == 6 => self.source_link_layer = r.hardware(),
            OPTION_TARGET_LINK_LAYER if r.rest().len() == 6 => self.target_link_layer = r.hardware(),
            OPTION_PREFIX_INFORMATION if r.rest().len() == 30 => {
                let (prefix_bits, flags) = (r.u8()?, r.u8()?);
                let (valid_lifetime_s, preferred_lifetime_s) = (r.u32()?, r.u32()?);
                r.u32()?;
                let (on_link, autonomous) = (flags & 0x80 != 0, flags & 0x40 != 0);
                let prefix = r.ipv6()?;
                if prefix_bits <= 128 {
                    self.prefixes.push(PrefixInformation {
                        prefix,
                        prefix_bits,
                        on_link,
                        autonomous,
                        valid_lifetime_s,
                        preferred_lifetime_s,
                    });
                }
            }
            OPTION_REDIRECTED_HEADER => {
                r.bytes(6)?;
                self.redirected = Some(r.rest());
            }
            OPTION_MTU if r.rest().len() == 6 => {
                r.u16()?;
                self.mtu = Some(r.u32()?);
            }
            OPTION_RECURSIVE_DNS_SERVER => {
                r.u16()?;
                let lifetime_s = r.u32()?;
                while let Some(address) = r.ipv6() {
                    self.dns_servers.push(RecursiveDnsServer { address, lifetime_s });
                }
            }
            _ => {}
        }
        Some(self)
    }

    /// Bytes that the options take: a multiple of 8.
    pub fn length(&self) -> usize {
        8 * usize::from(self.source_link_layer.is_some())
            + 8 * usize::from(self.target_link_layer.is_some())
            + 8 * usize::from(self.mtu.is_some())
            + 32 * self.prefixes.len()
            + 24 * self.dns_servers.len()
            + self.redirected.map_or(0, |packet| 8 + packet.len() / 8 * 8)
    }

    fn write(&self, w: &mut Writer<'_>) {
        if let Some(address) = self.source_link_layer {
            w.u8(OPTION_SOURCE_LINK_LAYER).u8(1).bytes(&address.0);
        }
        if let Some(address) = self.target_link_layer {
            w.u8(OPTION_TARGET_LINK_LAYER).u8(1).bytes(&address.0);
        }
        if let Some(mtu) = self.mtu {
            w.u8(OPTION_MTU).u8(1).u16(0).u32(mtu);
        }
        for prefix in self.prefixes.iter() {
            let flags = u8::from(prefix.on_link) << 7 | u8::from(prefix.autonomous) << 6;
            w.u8(OPTION_PREFIX_INFORMATION).u8(4).u8(prefix.prefix_bits).u8(flags);
            w.u32(prefix.valid_lifetime_s).u32(prefix.preferred_lifetime_s).u32(0).ipv6(prefix.prefix);
        }
        for server in self.dns_servers.iter() {
            w.u8(OPTION_RECURSIVE_DNS_SERVER).u8(3).u16(0).u32(server.lifetime_s).ipv6(server.address);
        }
        if let Some(packet) = self.redirected {
            let units = packet.len() / 8;
            match (u8::try_from(1 + units), packet.get(..8 * units)) {
                (Ok(length), Some(packet)) => {
                    w.u8(OPTION_REDIRECTED_HEADER).u8(length).bytes(&[0; 6]).bytes(packet)
                }
                _ => w.fail(),
            };
        }
    }
}

/// The message as a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NdpMessage<'a> {
    /// Routers, tell of yourselves.
    RouterSolicitation {
        /// Source link-layer address.
        options: NdpOptions<'a>,
    },
    /// A router advertisement.
    RouterAdvertisement {
        /// Hop limit for this host; 0 when unspecified.
        hop_limit: u8,
        /// Addresses come by DHCPv6.
        managed: bool,
        /// Other configuration comes by DHCPv6.
        other_configuration: bool,
        /// Seconds for which the router may be a default router; 0 when it is none.
        router_lifetime_s: u16,
        /// Reachable time of a confirmed neighbour; 0 when unspecified.
        reachable_time_ms: u32,
        /// Time between solicitations; 0 when unspecified.
        retransmit_timer_ms: u32,
        /// Source link-layer address, MTU, prefixes, DNS servers.
        options: NdpOptions<'a>,
    },
    /// Whose address is this?
    NeighbourSolicitation {
        /// The address asked for; not multicast.
        target: Ipv6Addr,
        /// Source link-layer address.
        options: NdpOptions<'a>,
    },
    /// This address is mine.
    NeighbourAdvertisement {
        /// The sender is a router.
        router: bool,
        /// The solicited flag.
        solicited: bool,
        /// The override flag.
        override_cache: bool,
        /// The address; not multicast.
        target: Ipv6Addr,
        /// Target link-layer address.
        options: NdpOptions<'a>,
    },
    /// There is a better first hop.
    Redirect {
        /// That hop; the destination itself when it is a neighbour.
        target: Ipv6Addr,
        /// For packets to this address; not multicast.
        destination: Ipv6Addr,
        /// Target link-layer address, redirected header.
        options: NdpOptions<'a>,
    },
}

/// Which rule of RFC 4861 a message breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NdpRefusal {
    /// The hop limit is not 255, so it did not come from a neighbour.
    HopLimit,
    /// A router's message does not come from a link-local address, or the source is multicast.
    Source,
    /// The destination is not allowed for this message.
    Destination,
    /// An unspecified source has no card to tell of.
    SourceLinkLayer,
    /// A multicast advertisement must not be solicited.
    Solicited,
    /// A redirect whose target is neither the destination nor a link-local address.
    Target,
}

impl<'a> NdpMessage<'a> {
    /// The message of ICMPv6 type `kind`, 133 to 137, whose bytes after the checksum are `body`. An error when it
    /// is too short, when an option's length is impossible, or when an address that must not be is multicast.
    // spec: RFC4861 6.1.1, 6.1.2, 7.1.1, 7.1.2, 8.1
    pub fn parse(kind: u8, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let message = Self::parse_fixed(kind, &mut r).ok_or(Malformed::Truncated)?;
        let read = NdpOptions::parse(r.rest())?;
        let unicast = |address: Ipv6Addr| !address.is_multicast();
        match message {
            NdpMessage::RouterSolicitation { .. } | NdpMessage::RouterAdvertisement { .. } => {}
            NdpMessage::NeighbourSolicitation { target, .. }
            | NdpMessage::NeighbourAdvertisement { target, .. }
                if unicast(target) => {}
            NdpMessage::Redirect { destination, .. } if unicast(destination) => {}
            _ => return Err(Malformed::Value),
        }
        Ok(message.with_options(read))
    }

    /// The fixed part, without options.
    fn parse_fixed(kind: u8, r: &mut Reader<'a>) -> Option<Self> {
        let word = r.u32()?;
        let options = NdpOptions::default();
        Some(match kind {
            ROUTER_SOLICITATION => NdpMessage::RouterSolicitation { options },
            ROUTER_ADVERTISEMENT => NdpMessage::RouterAdvertisement {
                hop_limit: (word >> 24) as u8,
                managed: word & 0x0080_0000 != 0,
                other_configuration: word & 0x0040_0000 != 0,
                router_lifetime_s: word as u16,
                reachable_time_ms: r.u32()?,
                retransmit_timer_ms: r.u32()?,
                options,
            },
            NEIGHBOUR_SOLICITATION => NdpMessage::NeighbourSolicitation { target: r.ipv6()?, options },
            NEIGHBOUR_ADVERTISEMENT => NdpMessage::NeighbourAdvertisement {
                router: word & 0x8000_0000 != 0,
                solicited: word & 0x4000_0000 != 0,
                override_cache: word & 0x2000_0000 != 0,
                target: r.ipv6()?,
                options,
            },
            REDIRECT => NdpMessage::Redirect { target: r.ipv6()?, destination: r.ipv6()?, options },
            _ => return None,
        })
    }

    fn with_options(mut self, read: NdpOptions<'a>) -> Self {
        match &mut self {
            NdpMessage::RouterSolicitation { options }
            | NdpMessage::RouterAdvertisement { options, .. }
            | NdpMessage::NeighbourSolicitation { options, .. }
            | NdpMessage::NeighbourAdvertisement { options, .. }
            | NdpMessage::Redirect { options, .. } => *options = read,
        }
        self
    }

    /// The options.
    pub fn options(&self) -> &NdpOptions<'a> {
        match self {
            NdpMessage::RouterSolicitation { options }
            | NdpMessage::RouterAdvertisement { options, .. }
            | NdpMessage::NeighbourSolicitation { options, .. }
            | NdpMessage::NeighbourAdvertisement { options, .. }
            | NdpMessage::Redirect { options, .. } => options,
        }
    }

    /// The ICMPv6 type.
    pub fn kind(&self) -> u8 {
        match self {
            NdpMessage::RouterSolicitation { .. } => ROUTER_SOLICITATION,
            NdpMessage::RouterAdvertisement { .. } => ROUTER_ADVERTISEMENT,
            NdpMessage::NeighbourSolicitation { .. } => NEIGHBOUR_SOLICITATION,
            NdpMessage::NeighbourAdvertisement { .. } => NEIGHBOUR_ADVERTISEMENT,
            NdpMessage::Redirect { .. } => REDIRECT,
        }
    }

    /// Whether a host may believe a message that came in such a packet: the rules of RFC 4861 that need the
    /// packet's hop limit and addresses.
    // spec: RFC4861 6.1.1, 6.1.2, 7.1.1, 7.1.2, 8.1
    pub fn acceptable(
        &self,
        hop_limit: u8,
        source: Ipv6Addr,
        destination: Ipv6Addr,
    ) -> Result<(), NdpRefusal> {
        let demand = |holds: bool, refusal| if holds { Ok(()) } else { Err(refusal) };
        demand(hop_limit == HOP_LIMIT, NdpRefusal::HopLimit)?;
        demand(!source.is_multicast(), NdpRefusal::Source)?;
        let tells_of_nobody = source.is_unspecified() && self.options().source_link_layer.is_some();
        match *self {
            NdpMessage::RouterSolicitation { .. } => demand(!tells_of_nobody, NdpRefusal::SourceLinkLayer),
            NdpMessage::RouterAdvertisement { .. } => {
                demand(source.is_unicast_link_local(), NdpRefusal::Source)
            }
            NdpMessage::NeighbourSolicitation { target, .. } => {
                demand(!tells_of_nobody, NdpRefusal::SourceLinkLayer)?;
                // Duplicate address detection asks the target's own multicast address.
                let asks_all = destination == solicited_node_multicast(target);
                demand(!source.is_unspecified() || asks_all, NdpRefusal::Destination)
            }
            NdpMessage::NeighbourAdvertisement { solicited, .. } => {
                demand(!(solicited && destination.is_multicast()), NdpRefusal::Solicited)
            }
            NdpMessage::Redirect { target, destination: of, .. } => {
                demand(source.is_unicast_link_local(), NdpRefusal::Source)?;
                demand(target == of || target.is_unicast_link_local(), NdpRefusal::Target)
            }
        }
    }

    /// Bytes after the checksum.
    pub(crate) fn body_length(&self) -> usize {
        let fixed = match self {
            NdpMessage::RouterSolicitation { .. } => 4,
            NdpMessage::RouterAdvertisement { .. } => 12,
            NdpMessage::NeighbourSolicitation { .. } | NdpMessage::NeighbourAdvertisement { .. } => 20,
            NdpMessage::Redirect { .. } => 36,
        };
        fixed + self.options().length()
    }

    pub(crate) fn write_body(&self, w: &mut Writer<'_>) {
        match *self {
            NdpMessage::RouterSolicitation { .. } => w.u32(0),
            NdpMessage::RouterAdvertisement {
                hop_limit,
                managed,
                other_configuration,
                router_lifetime_s,
                reachable_time_ms,
                retransmit_timer_ms,
                options: _,
            } => {
                let flags = u8::from(managed) << 7 | u8::from(other_configuration) << 6;
                w.u8(hop_limit).u8(flags).u16(router_lifetime_s);
                w.u32(reachable_time_ms).u32(retransmit_timer_ms)
            }
            NdpMessage::NeighbourSolicitation { target, .. } => w.u32(0).ipv6(target),
            NdpMessage::NeighbourAdvertisement { router, solicited, override_cache, target, options: _ } => {
                let flags = u8::from(router) << 7 | u8::from(solicited) << 6 | u8::from(override_cache) << 5;
                w.u8(flags).bytes(&[0; 3]).ipv6(target)
            }
            NdpMessage::Redirect { target, destination, .. } => w.u32(0).ipv6(target).ipv6(destination),
        };
        self.options().write(w);
    }
}

/// The multicast address at which the holder of `address` listens for solicitations (RFC 4291 §2.7.1).
pub fn solicited_node_multicast(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from(b) << 8 | u16::from(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const HOST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0x12, 0x3456);
    const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    const NOBODY: Ipv6Addr = Ipv6Addr::UNSPECIFIED;

    fn with_card() -> NdpOptions<'static> {
        NdpOptions { source_link_layer: Some(HardwareAddress([2; 6])), ..NdpOptions::default() }
    }

    #[test]
    fn options_of_impossible_length_spoil_the_message() {
        // spec: RFC4861 4.6
        assert_eq!(NdpOptions::parse(&[1, 0, 0, 0, 0, 0, 0, 0]), Err(Malformed::Length));
        assert_eq!(NdpOptions::parse(&[1, 2, 0, 0, 0, 0, 0, 0]), Err(Malformed::Truncated));
        assert_eq!(NdpOptions::parse(&[1]), Err(Malformed::Truncated));
        // Unknown, and known of another length: stepped over.
        let list = [99, 1, 0, 0, 0, 0, 0, 0, 5, 1, 0, 0, 0, 0, 5, 0xdc];
        assert_eq!(NdpOptions::parse(&list), Ok(NdpOptions { mtu: Some(1500), ..NdpOptions::default() }));
        let long = [1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(NdpOptions::parse(&long), Ok(NdpOptions::default()));
    }

    #[test]
    fn lists_are_bounded() {
        let prefix = [
            3, 4, 64, 0xc0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0,
        ];
        let options = prefix.repeat(MAX_PREFIXES + 5);
        let options = NdpOptions::parse(&options).unwrap();
        assert_eq!(options.prefixes.len(), MAX_PREFIXES);
        assert!(options.prefixes[0].on_link && options.prefixes[0].autonomous);
        let mut servers = vec![25, 13, 0, 0, 0, 0, 0, 9];
        servers.extend([0xfd; 16 * 6]);
        let options = NdpOptions::parse(&servers).unwrap();
        assert_eq!(options.dns_servers.len(), MAX_DNS_SERVERS);
        assert_eq!(options.dns_servers[0].lifetime_s, 9);
    }

    #[test]
    fn multicast_targets_are_refused() {
        // spec: RFC4861 7.1.1
        let mut body = [0; 20];
        body[4..].copy_from_slice(&ALL_NODES.octets());
        assert_eq!(NdpMessage::parse(135, &body), Err(Malformed::Value));
        assert_eq!(NdpMessage::parse(136, &body), Err(Malformed::Value));
        assert_eq!(NdpMessage::parse(138, &body), Err(Malformed::Truncated));
    }

    #[test]
    fn only_neighbours_are_believed() {
        // spec: RFC4861 6.1.2
        let advertisement = NdpMessage::parse(134, &[0; 12]).unwrap();
        assert_eq!(advertisement.acceptable(255, ROUTER, ALL_NODES), Ok(()));
        assert_eq!(advertisement.acceptable(254, ROUTER, ALL_NODES), Err(NdpRefusal::HopLimit));
        assert_eq!(advertisement.acceptable(255, HOST, ALL_NODES), Err(NdpRefusal::Source));
    }

    #[test]
    fn nobody_has_no_card_and_asks_the_group() {
        // spec: RFC4861 7.1.1
        let ask = |options| NdpMessage::NeighbourSolicitation { target: HOST, options };
        let group = solicited_node_multicast(HOST);
        assert_eq!(group, "ff02::1:ff12:3456".parse::<Ipv6Addr>().unwrap());
        assert_eq!(ask(NdpOptions::default()).acceptable(255, NOBODY, group), Ok(()));
        assert_eq!(ask(NdpOptions::default()).acceptable(255, NOBODY, HOST), Err(NdpRefusal::Destination));
        assert_eq!(ask(with_card()).acceptable(255, NOBODY, group), Err(NdpRefusal::SourceLinkLayer));
        assert_eq!(ask(with_card()).acceptable(255, ROUTER, HOST), Ok(()));
        // spec: RFC4861 6.1.1
        let solicitation = NdpMessage::RouterSolicitation { options: with_card() };
        assert_eq!(solicitation.acceptable(255, NOBODY, ALL_NODES), Err(NdpRefusal::SourceLinkLayer));
    }

    #[test]
    fn a_multicast_advertisement_answers_nobody() {
        // spec: RFC4861 7.1.2
        let advertisement = NdpMessage::NeighbourAdvertisement {
            router: false,
            solicited: true,
            override_cache: true,
            target: HOST,
            options: NdpOptions::default(),
        };
        assert_eq!(advertisement.acceptable(255, HOST, ALL_NODES), Err(NdpRefusal::Solicited));
        assert_eq!(advertisement.acceptable(255, HOST, ROUTER), Ok(()));
    }

    #[test]
    fn a_redirect_comes_from_a_router_and_leads_to_one() {
        // spec: RFC4861 8.1
        let other: Ipv6Addr = "2001:db8::9".parse().unwrap();
        let redirect =
            |target| NdpMessage::Redirect { target, destination: other, options: NdpOptions::default() };
        assert_eq!(redirect(ROUTER).acceptable(255, ROUTER, HOST), Ok(()));
        assert_eq!(redirect(other).acceptable(255, ROUTER, HOST), Ok(()));
        assert_eq!(redirect(HOST).acceptable(255, ROUTER, HOST), Err(NdpRefusal::Target));
        assert_eq!(redirect(other).acceptable(255, HOST, HOST), Err(NdpRefusal::Source));
    }
}
