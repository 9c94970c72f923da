//! A link as IP sees it (configuration, addresses, neighbours, groups, queues, counters), and the table of links.

use crate::address_state::{ADDRESS_LIMIT, AddressOrigin, AddressState, Assigned};
use crate::config::{DEFAULT_HOP_LIMIT, DuplicateDetection, InterfaceConfig, LEAST_MTU_BYTES, Medium};
use crate::control_queue::ControlQueue;
use crate::counters::InterfaceCounters;
use crate::forward_queue::{ForwardQueue, Waiting};
use crate::group::Groups;
use crate::neighbour::cache::{Action, BASE_REACHABLE, Cache, Claim, Lookup, Neighbour};
use crate::neighbour::discovery::Discovery;
use crate::path::{LinkHeader, Resolution};
use crate::table::Keyed;
use crate::{ConfigureError, scope};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use inhost_base::{Cidr, Duration, HardwareAddress, Instant, IpAddr, Ipv4Addr, Ipv6Addr, LinkId, Random};
use inhost_buf::{Device, Frame, Full, Offload, Packet, Pool, Slices};
use inhost_wire::ethernet::{EtherType, EthernetHeader};
use inhost_wire::ipv6;
use inhost_wire::ndp::{NdpMessage, solicited_node_multicast};

/// Upper bound of an advertised Retrans Timer, so that resolution fails within half a minute whatever an advertisement
/// says.
const LONGEST_RETRANSMIT: Duration = Duration::from_secs(10);
/// A router may not shorten an address's valid lifetime to less (RFC 4862 §5.5.3 (e)).
const LEAST_VALID: Duration = Duration::from_secs(2 * 3600);
/// A router's word on reachable and retransmission times is held between these.
const TIME_RANGE_MS: (u32, u32) = (100, 3_600_000);

/// One link, with all that belongs to it alone.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Interface {
    link: LinkId,
    config: InterfaceConfig,
    /// At most the link's own; a router may have advertised less (RFC 4861 §6.3.4).
    ipv6_mtu_bytes: u16,
    /// For IPv4, as configured.
    ipv4_hop_limit: u8,
    /// For IPv6; a router may have advertised it (RFC 4861 §6.3.4).
    ipv6_hop_limit: u8,
    addresses: Vec<Assigned>,
    neighbours: Cache,
    groups: Groups,
    control: ControlQueue,
    forward: ForwardQueue,
    /// The host forwards, and says so to its neighbours.
    is_router: bool,
    discovery: Discovery,
    counters: InterfaceCounters,
}

impl Interface {
    /// A link without addresses. Packets over it may take `hop_limit` hops.
    pub fn new(
        link: LinkId,
        mut config: InterfaceConfig,
        hop_limit: u8,
        is_router: bool,
        keyed: Keyed,
    ) -> Self {
        if usize::from(config.mtu_bytes) < ipv6::MINIMUM_MTU_BYTES {
            config.ipv6 = false;
        }
        Interface {
            link,
            ipv6_mtu_bytes: config.mtu_bytes,
            config,
            ipv4_hop_limit: hop_limit,
            ipv6_hop_limit: hop_limit,
            addresses: Vec::new(),
            neighbours: Cache::new(keyed),
            groups: Groups::default(),
            control: ControlQueue::default(),
            forward: ForwardQueue::default(),
            is_router,
            discovery: Discovery::default(),
            counters: InterfaceCounters::default(),
        }
    }
    /// The loopback, link 0, which has 127.0.0.1 and ::1.
    pub fn loopback(keyed: Keyed) -> Self {
        let config = InterfaceConfig::new("loopback", Medium::Loopback);
        let config = InterfaceConfig { mtu_bytes: u16::MAX, ..config };
        let mut loopback = Interface::new(LinkId(0), config, DEFAULT_HOP_LIMIT, false, keyed);
        let own = [Cidr::new(Ipv4Addr::LOCALHOST, 8), Cidr::new(Ipv6Addr::LOCALHOST, 128)];
        let own = own.into_iter().flatten().map(|cidr| Assigned::new(cidr, AddressOrigin::Configured));
        loopback.addresses.extend(own);
        loopback
    }
    /// Joins the groups that each host or router is in, and begins to look for routers if we listen to them.
    pub fn start(&mut self, now: Instant, random: &mut Random) -> Result<(), ConfigureError> {
        self.neighbours.set_base_reachable(BASE_REACHABLE, random);
        let (ipv6, is_router) = (self.config.ipv6, self.is_router);
        // spec: RFC1122 3.3.7-1
        let groups: [(IpAddr, bool); 4] = [
            (scope::ALL_SYSTEMS.into(), true),
            (scope::ALL_NODES.into(), ipv6),
            (scope::ALL_ROUTERS_V4.into(), is_router),
            (scope::ALL_ROUTERS.into(), is_router && ipv6),
        ];
        for (group, _) in groups.into_iter().filter(|group| group.1) {
            self.groups.join(group, now)?;
        }
        if ipv6 && self.listens_to_routers() {
            self.discovery.begin(now, random);
        }
        Ok(())
    }
    #[inline]
    pub fn link(&self) -> LinkId {
        self.link
    }
    /// The configuration in force.
    #[inline]
    pub fn config(&self) -> &InterfaceConfig {
        &self.config
    }
    pub fn counters(&self) -> &InterfaceCounters {
        &self.counters
    }
    /// Counts something.
    #[inline]
    pub fn count(&mut self, add: impl FnOnce(&mut InterfaceCounters)) {
        add(&mut self.counters);
    }
    /// Our card's address, on an Ethernet.
    #[inline]
    pub fn hardware(&self) -> Option<HardwareAddress> {
        match self.config.medium {
            Medium::Ethernet(hardware) => Some(hardware),
            Medium::Ip | Medium::Loopback => None,
        }
    }
    pub fn is_loopback(&self) -> bool {
        self.config.medium == Medium::Loopback
    }
    pub fn is_router(&self) -> bool {
        self.is_router
    }
    pub fn mtu_bytes(&self, is_ipv6: bool) -> u16 {
        if is_ipv6 { self.ipv6_mtu_bytes } else { self.config.mtu_bytes }
    }
    /// Changes the largest packet; see [`crate::Ip::set_mtu`].
    pub fn set_mtu(&mut self, mtu_bytes: u16) -> Result<(), ConfigureError> {
        let least = if self.config.ipv6 { ipv6::MINIMUM_MTU_BYTES as u16 } else { LEAST_MTU_BYTES };
        if mtu_bytes < least || self.is_loopback() {
            return Err(ConfigureError::Invalid);
        }
        (self.config.mtu_bytes, self.ipv6_mtu_bytes) = (mtu_bytes, mtu_bytes);
        Ok(())
    }
    // spec: RFC1122 3.2.1.7-1
    pub fn hop_limit(&self, is_ipv6: bool) -> u8 {
        if is_ipv6 { self.ipv6_hop_limit } else { self.ipv4_hop_limit }
    }
    /// The next instant at which something on this link is due.
    pub fn deadline(&self) -> Instant {
        let addresses = self.addresses.iter().map(Assigned::deadline).min();
        addresses
            .unwrap_or(Instant::FAR_FUTURE)
            .min(self.neighbours.deadline())
            .min(self.groups.deadline())
            .min(self.discovery.deadline())
    }
}

/// Addresses.
impl Interface {
    /// Our addresses, in the order in which they came.
    pub fn addresses(&self) -> &[Assigned] {
        &self.addresses
    }
    /// Adds an address, and begins its test where one is due.
    // spec: RFC5227 2.1, RFC4862 5.4
    pub fn assign(
        &mut self,
        mut assigned: Assigned,
        now: Instant,
        random: &mut Random,
    ) -> Result<(), ConfigureError> {
        let (cidr, address) = (assigned.cidr(), assigned.address());
        // spec: RFC1122 3.2.1.3-5, 3.2.2.9-1, 3.2.2.9-3, 3.3.1.6-1
        let is_wrong = !scope::is_unicast(address)
            || scope::is_loopback(address) != self.is_loopback()
            || address.is_ipv6() && !self.config.ipv6
            || address.is_ipv4()
                && cidr.prefix_bits() < 31
                && (cidr.network() == address || cidr.broadcast().map(IpAddr::V4) == Some(address));
        if is_wrong {
            return Err(ConfigureError::Invalid);
        }
        if self.assigned(address).is_some() {
            return Err(ConfigureError::Exists);
        }
        if self.addresses.len() >= ADDRESS_LIMIT {
            return Err(ConfigureError::Limit);
        }
        if let IpAddr::V6(v6) = address {
            self.groups.join(solicited_node_multicast(v6).into(), now)?;
        }
        match (self.hardware(), self.config.duplicate_detection) {
            (None, _) => {}
            (Some(_), DuplicateDetection::Off) => assigned.announce(now),
            (Some(_), how) => assigned.test(how == DuplicateDetection::BeforeUse, now, random),
        }
        self.addresses.push(assigned);
        Ok(())
    }
    /// Removes an address, but does not leave its group.
    pub fn unassign(&mut self, address: IpAddr) -> Result<Assigned, ConfigureError> {
        let at = self.addresses.iter().position(|assigned| assigned.address() == address);
        Ok(self.addresses.remove(at.ok_or(ConfigureError::Absent)?))
    }
    pub fn assigned(&self, address: IpAddr) -> Option<&Assigned> {
        self.addresses.iter().find(|assigned| assigned.address() == address)
    }
    pub fn assigned_mut(&mut self, address: IpAddr) -> Option<&mut Assigned> {
        self.addresses.iter_mut().find(|assigned| assigned.address() == address)
    }
    /// Applies advertised lifetimes to the address that was made from the prefix `network`. False if there is none.
    // spec: RFC4862 5.5.3 (e)
    pub fn renew_autoconfigured(
        &mut self,
        network: Cidr,
        preferred_until: Instant,
        valid_until: Instant,
        now: Instant,
    ) -> bool {
        let mut made = self.addresses.iter_mut().filter(|assigned| {
            assigned.origin() == AddressOrigin::Autoconfigured && network.contains(assigned.address())
        });
        let Some(assigned) = made.next() else { return false };
        let (remaining, offered) = (assigned.valid_until().since(now), valid_until.since(now));
        let is_cut = offered <= LEAST_VALID && offered <= remaining;
        let valid_until = if is_cut { now + remaining.min(LEAST_VALID) } else { valid_until };
        assigned.set_lifetimes(preferred_until, valid_until, now);
        true
    }
    /// Whether packets to `address` are for us here.
    pub fn owns(&self, address: IpAddr) -> bool {
        self.assigned(address).is_some_and(Assigned::is_usable)
    }
    /// Whether `address` is taken for ours because the link takes any that one host can have.
    pub fn takes_any(&self, address: IpAddr) -> bool {
        self.config.any_address && scope::is_unicast(address) && !scope::is_loopback(address)
    }
    /// Whether `address` is the limited broadcast address, or that of a network of ours (RFC 1122 §3.3.6), in either
    /// of its forms.
    // spec: RFC1122 3.3.6-1
    pub fn is_broadcast(&self, address: IpAddr) -> bool {
        let IpAddr::V4(v4) = address else { return false };
        v4.is_broadcast()
            || self.addresses.iter().any(|assigned| {
                assigned.cidr().broadcast() == Some(v4)
                    || assigned.cidr().prefix_bits() < 31
                        && assigned.cidr().address().is_ipv4()
                        && assigned.cidr().network() == address
            })
    }
    /// Whether a neighbour can have this address: it is in a prefix of the link, or link-local.
    pub fn is_on_link(&self, address: IpAddr) -> bool {
        address.is_ipv6() && scope::is_link_local(address)
            || self.addresses.iter().any(|assigned| assigned.cidr().contains(address))
    }
    /// The first usable IPv4 address that `fits`.
    pub fn own_ipv4(&self, fits: impl Fn(&Assigned) -> bool) -> Option<Ipv4Addr> {
        self.addresses.iter().find_map(|assigned| match assigned.address() {
            IpAddr::V4(own) if assigned.is_usable() && fits(assigned) => Some(own),
            _ => None,
        })
    }
    /// The usable link-local IPv6 address.
    pub fn link_local(&self) -> Option<Ipv6Addr> {
        self.addresses.iter().find_map(|assigned| match assigned.address() {
            IpAddr::V6(own) if assigned.is_usable() && own.is_unicast_link_local() => Some(own),
            _ => None,
        })
    }
    /// Whether an address of this family is still being tested.
    pub fn has_tentative(&self, is_ipv6: bool) -> bool {
        self.addresses.iter().any(|assigned| {
            assigned.state() == AddressState::Tentative && assigned.address().is_ipv6() == is_ipv6
        })
    }
}

/// Neighbours and routers.
impl Interface {
    /// The link header of packets to `next_hop`. A neighbour that is not known is asked.
    pub fn resolve(&mut self, next_hop: IpAddr, now: Instant) -> Resolution {
        if self.hardware().is_some()
            && let Some(hardware) = self.mapped_hardware(next_hop)
        {
            return Resolution::Ready(self.header_to(hardware, ethertype_of(next_hop)));
        }
        self.resolve_neighbour(next_hop, now)
    }
    /// The same for a next hop that is one host.
    fn resolve_neighbour(&mut self, next_hop: IpAddr, now: Instant) -> Resolution {
        if self.hardware().is_none() {
            return Resolution::Ready(LinkHeader::NONE);
        }
        match self.neighbours.resolve(next_hop, now) {
            Lookup::Known(hardware) => Resolution::Ready(self.header_to(hardware, ethertype_of(next_hop))),
            Lookup::Pending => Resolution::Pending,
            Lookup::Failed => Resolution::Failed,
        }
    }
    /// The card that a destination maps to without asking anybody.
    fn mapped_hardware(&self, next_hop: IpAddr) -> Option<HardwareAddress> {
        if self.is_broadcast(next_hop) {
            Some(HardwareAddress::BROADCAST)
        } else if next_hop.is_multicast() {
            Some(scope::group_hardware(next_hop))
        } else {
            None
        }
    }
    /// The header of frames to a card.
    fn header_to(&self, destination: HardwareAddress, ethertype: EtherType) -> LinkHeader {
        self.hardware().map_or(LinkHeader::NONE, |source| {
            LinkHeader::ethernet(&EthernetHeader { destination, source, ethertype })
        })
    }
    /// The card of a neighbour, if that is known. The neighbour does not count as used.
    pub fn known_hardware(&self, address: IpAddr) -> Option<HardwareAddress> {
        match self.neighbours.peek(address)? {
            Lookup::Known(hardware) => Some(hardware),
            Lookup::Pending | Lookup::Failed => None,
        }
    }
    /// Whether the cache has an entry of `address`, in whatever state.
    pub fn has_neighbour(&self, address: IpAddr) -> bool {
        self.neighbours.state(address).is_some()
    }
    /// The neighbours, by address.
    pub fn neighbours(&self) -> Vec<Neighbour> {
        self.neighbours.list()
    }
    /// Handles information from a message in a neighbour's name.
    pub fn claim(&mut self, address: IpAddr, claim: Claim, now: Instant) {
        self.neighbours.claim(address, claim, now);
    }
    /// A transport's data was acknowledged through `next_hop`. True when its state changed.
    #[inline]
    pub fn confirm(&mut self, next_hop: IpAddr, now: Instant) -> bool {
        self.hardware().is_some() && self.neighbours.confirm(next_hop, now)
    }
    /// A transport's data is not being acknowledged through `next_hop`.
    pub fn suspect(&mut self, next_hop: IpAddr, now: Instant) {
        if self.hardware().is_some() {
            self.neighbours.suspect(next_hop, now);
        }
    }
    /// Asks for a silent gateway anew. False where nobody is asked.
    pub fn ask_again(&mut self, gateway: IpAddr, now: Instant) -> bool {
        let asks = self.hardware().is_some();
        if asks {
            self.neighbours.ask_again(gateway, now);
        }
        asks
    }
    /// Handles every timer of neighbours that is due.
    pub fn timeout_neighbours(&mut self, now: Instant) {
        self.neighbours.timeout(now);
    }
    /// Whether [`Interface::take_action`] returns one.
    #[inline]
    pub fn has_actions(&self) -> bool {
        self.neighbours.has_actions()
    }
    /// Takes the oldest pending action of the neighbour cache.
    pub fn take_action(&mut self) -> Option<Action> {
        self.neighbours.take_action()
    }
    /// Whether routers tell us anything: not when we are one (RFC 4861 §6.2.7).
    fn listens_to_routers(&self) -> bool {
        self.config.accept_router_advertisements && !self.is_router
    }
    /// Whether a router solicitation is due; one that is counts as sent.
    pub fn solicits_routers(&mut self, now: Instant) -> bool {
        self.discovery.is_due(now)
    }
    /// Whether a router has last said that configuration comes by DHCPv6.
    pub fn is_dhcpv6_advertised(&self) -> bool {
        self.discovery.dhcpv6()
    }
    /// Applies what a router advertises of the link itself, and says whether that changes paths or is news for DHCPv6.
    /// `None` if we do not listen to routers.
    // spec: RFC4861 6.3.4
    pub fn take_advertisement(&mut self, message: &NdpMessage<'_>, random: &mut Random) -> Option<bool> {
        let NdpMessage::RouterAdvertisement {
            hop_limit,
            managed,
            other_configuration,
            router_lifetime_s,
            reachable_time_ms,
            retransmit_timer_ms,
            ref options,
        } = *message
        else {
            return None;
        };
        if !self.listens_to_routers() {
            return None;
        }
        if router_lifetime_s > 0 {
            self.discovery.end();
        }
        if hop_limit > 0 {
            self.ipv6_hop_limit = hop_limit;
        }
        let held = |ms: u32| Duration::from_millis(u64::from(ms.clamp(TIME_RANGE_MS.0, TIME_RANGE_MS.1)));
        if reachable_time_ms > 0 {
            self.neighbours.set_base_reachable(held(reachable_time_ms), random);
        }
        if retransmit_timer_ms > 0 {
            self.neighbours.set_retransmit(held(retransmit_timer_ms).min(LONGEST_RETRANSMIT));
        }
        let is_news = self.discovery.set_dhcpv6(managed || other_configuration);
        let is_mtu_changed = options.mtu.is_some_and(|mtu_bytes| self.learn_mtu(mtu_bytes));
        Some(is_news || is_mtu_changed)
    }
    /// Applies an advertised MTU. True when it changed.
    fn learn_mtu(&mut self, mtu_bytes: u32) -> bool {
        let mtu_bytes = u16::try_from(mtu_bytes).unwrap_or(u16::MAX).min(self.config.mtu_bytes);
        let is_valid = usize::from(mtu_bytes) >= ipv6::MINIMUM_MTU_BYTES;
        is_valid && core::mem::replace(&mut self.ipv6_mtu_bytes, mtu_bytes) != mtu_bytes
    }
}

/// Groups.
impl Interface {
    /// Whether packets to `group` are for us here.
    pub fn listens_to(&self, group: IpAddr) -> bool {
        self.groups.contains(group)
    }
    /// The groups that are listened to.
    pub fn groups(&self) -> Vec<IpAddr> {
        self.groups.list().collect()
    }
    /// Joins a group; calls add up.
    pub fn join_group(&mut self, group: IpAddr, now: Instant) -> Result<(), ConfigureError> {
        if group.is_ipv6() && !self.config.ipv6 {
            return Err(ConfigureError::Invalid);
        }
        self.groups.join(group, now)
    }
    /// Undoes one [`Interface::join_group`]. True when a leave message is due.
    pub fn leave_group(&mut self, group: IpAddr, now: Instant) -> Result<bool, ConfigureError> {
        self.groups.leave(group, now)
    }
    /// A router asks about `group`, or about all of its family if it is unspecified.
    pub fn group_queried(&mut self, group: IpAddr, within: Duration, now: Instant, random: &mut Random) {
        self.groups.queried(group, within, now, random);
    }
    /// Another host reported `group`.
    pub fn group_reported(&mut self, group: IpAddr) {
        self.groups.reported_by_other(group);
    }
    /// A router of IGMPv1 asked.
    pub fn querier_is_version_1(&mut self, now: Instant) {
        self.groups.querier_is_version_1(now);
    }
    /// Whether a router of IGMPv1 is about.
    pub fn speaks_version_1(&self, now: Instant) -> bool {
        self.groups.speaks_version_1(now)
    }
    /// The next group whose report is due; call until `None`.
    pub fn pop_report(&mut self, now: Instant, random: &mut Random) -> Option<IpAddr> {
        self.groups.pop_report(now, random)
    }
}

/// Queues: of our own packets, and of packets of others.
impl Interface {
    /// Memory for a packet of our own, which is lost without.
    pub fn take_packet(&mut self, bytes: usize, pool: &mut Pool) -> Option<Packet> {
        let packet = pool.take(bytes);
        self.counters.lost_control_frames += u64::from(packet.is_none());
        packet
    }
    /// Queues a packet of our own for `next_hop`: as a frame if that is known, else to wait for it.
    pub fn push_packet(&mut self, next_hop: IpAddr, packet: Packet, now: Instant, pool: &mut Pool) {
        let is_queued = match self.resolve(next_hop, now) {
            Resolution::Ready(header) => push_ready(&mut self.control, header, packet, pool),
            Resolution::Pending => self.control.push_waiting(next_hop, packet, pool),
            Resolution::Failed => {
                pool.give(packet);
                false
            }
        };
        self.counters.lost_control_frames += u64::from(!is_queued);
    }
    /// Queues a packet of our own for a hardware address, which a link without hardware addresses ignores.
    pub fn push_frame(
        &mut self,
        packet: Packet,
        ethertype: EtherType,
        destination: HardwareAddress,
        pool: &mut Pool,
    ) {
        let header = self.header_to(destination, ethertype);
        let is_queued = push_ready(&mut self.control, header, packet, pool);
        self.counters.lost_control_frames += u64::from(!is_queued);
    }
    /// Moves packets of our own whose neighbour has answered to the frames that are ready, and drops those whose
    /// neighbour has not.
    pub fn send_waiting(&mut self, pool: &mut Pool) {
        for (next_hop, packet) in self.control.take_waiting() {
            match self.neighbours.peek(next_hop) {
                Some(Lookup::Known(hardware)) => {
                    self.push_frame(packet, ethertype_of(next_hop), hardware, pool);
                }
                Some(Lookup::Pending) => self.control.still_waiting(next_hop, packet),
                Some(Lookup::Failed) | None => {
                    pool.give(packet);
                    self.counters.lost_control_frames += 1;
                }
            }
        }
    }
    /// Queues a packet of others: for the device, of whose queue `limit` is the most, or to wait for its next hop. False
    /// when the queue is full. It is returned if the next hop does not answer.
    pub fn forward(
        &mut self,
        packet: Waiting,
        limit: usize,
        now: Instant,
        pool: &mut Pool,
    ) -> Result<bool, Packet> {
        let is_queued = match self.resolve_neighbour(packet.next_hop, now) {
            Resolution::Ready(header) => self.forward.push_ready(header, packet.packet, limit, pool),
            Resolution::Pending => self.forward.push_waiting(packet, pool),
            Resolution::Failed => return Err(packet.packet),
        };
        self.counters.forwarded_datagrams += u64::from(is_queued);
        Ok(is_queued)
    }
    /// Takes the packets of others that wait for neighbours, when there is reason to look at them anew.
    pub fn take_forwarded(&mut self) -> VecDeque<Waiting> {
        self.forward.take_waiting()
    }
    /// Queues a packet that waited, as [`Interface::forward`] does, or lets it wait on.
    pub fn forward_again(&mut self, waiting: Waiting, limit: usize, pool: &mut Pool) -> Result<bool, Packet> {
        match self.neighbours.peek(waiting.next_hop) {
            Some(Lookup::Known(hardware)) => {
                let header = self.header_to(hardware, ethertype_of(waiting.next_hop));
                Ok(self.forward.push_ready(header, waiting.packet, limit, pool))
            }
            Some(Lookup::Pending) => {
                self.forward.still_waiting(waiting);
                Ok(true)
            }
            Some(Lookup::Failed) | None => Err(waiting.packet),
        }
    }
    /// A neighbour's state changed: what waits is looked at anew.
    pub fn recheck_waiting(&mut self) {
        self.control.recheck();
        self.forward.recheck();
    }
    /// Whether the device should be offered something, or an action is pending.
    #[inline]
    pub fn wants_transmit(&self) -> bool {
        self.control.wants_transmit() || self.forward.wants_transmit() || self.has_actions()
    }
    /// Sends the frames that are ready, at most `budget_frames`, a quarter of which is left to the host's transports while
    /// forwarded packets are sent.
    pub fn transmit(
        &mut self,
        budget_frames: usize,
        device: &mut dyn Device,
        pool: &mut Pool,
    ) -> Result<(), Full> {
        let mut left = budget_frames;
        while left > 0
            && let Some(packet) = self.control.front()
        {
            let payload = Slices::EMPTY;
            device.transmit(&Frame { header: packet.bytes(), payload, offload: Offload::None })?;
            self.control.pop(pool);
            left -= 1;
        }
        let of_others = left - (left / 4).min(budget_frames / 4);
        self.forward.transmit(of_others, device, pool)
    }
    /// Gives all packet memory back.
    pub fn clear(&mut self, pool: &mut Pool) {
        self.control.clear(pool);
        self.forward.clear(pool);
    }
}

#[cfg(feature = "freeze")]
impl Interface {
    /// Calls `act` with each packet of a thawed link, and checks the state. `number` is the link's place.
    pub fn thaw(
        &mut self,
        number: usize,
        act: inhost_buf::freeze::ThawPacket<'_>,
    ) -> Result<(), inhost_base::freeze::Invalid> {
        use inhost_base::freeze::require;
        require(usize::from(self.link.0) == number, "the number of a link")?;
        require(self.is_loopback() == (number == 0), "the loopback")?;
        self.addresses.iter().try_for_each(Assigned::check)?;
        self.neighbours.check()?;
        self.control.thaw(act)?;
        self.forward.thaw(act)
    }
    /// Chooses a new key.
    pub fn rekey(&mut self, keyed: Keyed) {
        self.neighbours.rekey(keyed);
    }
}

/// Queues a frame of our own. False, and it is given back, when there is no room before it or in the queue.
fn push_ready(queue: &mut ControlQueue, header: LinkHeader, mut packet: Packet, pool: &mut Pool) -> bool {
    let Some(place) = packet.prepend(header.bytes().len()) else {
        pool.give(packet);
        return false;
    };
    inhost_buf::copy(place, header.bytes());
    queue.push_ready(packet, pool)
}

fn ethertype_of(address: IpAddr) -> EtherType {
    if address.is_ipv4() { EtherType::IPV4 } else { EtherType::IPV6 }
}

/// The links of a host, in the order of their numbers.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Interfaces(Vec<Interface>);

impl Interfaces {
    pub fn new(loopback: Interface) -> Self {
        Interfaces(vec![loopback])
    }
    #[inline]
    pub fn get(&self, link: LinkId) -> Option<&Interface> {
        self.0.get(usize::from(link.0))
    }
    #[inline]
    pub fn get_mut(&mut self, link: LinkId) -> Option<&mut Interface> {
        self.0.get_mut(usize::from(link.0))
    }
    pub fn iter(&self) -> core::slice::Iter<'_, Interface> {
        self.0.iter()
    }
    pub fn iter_mut(&mut self) -> core::slice::IterMut<'_, Interface> {
        self.0.iter_mut()
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Adds the link whose number is the next one.
    pub fn push(&mut self, interface: Interface) {
        self.0.push(interface);
    }
    /// Takes the last link away again.
    pub fn pop(&mut self) -> Option<Interface> {
        self.0.pop()
    }
    /// Whether `address` is one of ours, on any link, the loopback included.
    pub fn is_local(&self, address: IpAddr) -> bool {
        scope::is_loopback(address) || self.0.iter().any(|interface| interface.owns(address))
    }
    /// Whether `address` is under test for a duplicate on any link.
    pub fn is_tentative(&self, address: IpAddr) -> bool {
        let is_tentative = |assigned: &Assigned| assigned.state() == AddressState::Tentative;
        self.0.iter().any(|interface| interface.assigned(address).is_some_and(is_tentative))
    }
    /// Whether `address` is ours on some link, and means the same on every one.
    pub fn is_reachable_own(&self, address: IpAddr) -> bool {
        !scope::is_loopback(address)
            && !scope::is_link_local(address)
            && self.0.iter().any(|interface| interface.owns(address))
    }
    /// Whether `address` is a broadcast address of any link.
    pub fn is_broadcast(&self, address: IpAddr) -> bool {
        self.0.iter().any(|interface| interface.is_broadcast(address))
    }
    /// The next instant at which something on a link is due.
    pub fn deadline(&self) -> Instant {
        self.0.iter().map(Interface::deadline).min().unwrap_or(Instant::FAR_FUTURE)
    }
}
