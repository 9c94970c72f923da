//! Calls of drivers and transports: frames in, headers, datagrams and errors out, and time.

use crate::options::{HeaderOptions, Ipv4Options};
use crate::output::EchoMessage;
use crate::output::errors::{IcmpError, Unreachable};
use crate::path::{HeaderHow, LinkHeader, Path};
use crate::received::{Datagram, Received};
use crate::{Ip, IpEnvironment, Medium, SendDatagramError};
use inhost_base::{HardwareAddress, Instant, IpAddr, LinkId};
use inhost_buf::{Device, Packet, Slices};
use inhost_wire::ethernet::{self, EtherType, EthernetView};
use inhost_wire::ipv4::SourceRoute;

impl Ip {
    /// Takes a frame that came in by `link`: link header included where the link has one, and nothing before it.
    /// [`Received`] says who owns the packet's memory afterwards; a fragment that is kept is copied. The caller counts
    /// and records received frames; drops are counted and recorded here.
    pub fn receive(&mut self, link: LinkId, packet: &mut Packet, env: &mut IpEnvironment<'_>) -> Received {
        self.input.receive(&mut self.output, link, packet, env)
    }
    /// Offset of the IP header in a frame received on `link`, if the frame is addressed to us by the link's address and
    /// has a valid source: the link checks of [`Ip::receive`]. `None` leaves the decision to `receive`.
    #[inline]
    pub fn plain_offset(&self, link: LinkId, frame: &[u8]) -> Option<usize> {
        let own = match self.paths().interface(link)?.config().medium {
            Medium::Ip | Medium::Loopback => return Some(0),
            Medium::Ethernet(own) => own,
        };
        let view = EthernetView::new(frame).ok()?;
        let from = view.source();
        let is_plain = view.destination() == own
            && from != own
            && from.is_unicast()
            && from != HardwareAddress::default()
            && match frame.get(ethernet::LENGTH).map(|byte| byte >> 4) {
                Some(4) => view.ethertype() == EtherType::IPV4,
                Some(6) => view.ethertype() == EtherType::IPV6,
                _ => false,
            };
        is_plain.then_some(ethernet::LENGTH)
    }
    /// Whether [`Ip::receive`] would give just `datagram` of a frame whose packet, whole and without options, was found
    /// `at` by [`Ip::plain_offset`], for an address of the link's. When true it counts as given; false says nothing.
    pub fn receives_directly(&mut self, frame: &[u8], at: usize, datagram: &Datagram) -> bool {
        self.input.receives_directly(&mut self.output, frame, at, datagram)
    }
    /// Counts datagrams that came in by `link` and were delivered without [`Ip::receive`].
    #[inline]
    pub fn count_delivered(&mut self, link: LinkId, datagrams: u64) {
        self.paths_mut().count(link, |counters| counters.delivered_datagrams += datagrams);
    }
    /// The gateway from which the frame that was received last, with a packet of `source`, came in on `link`, when it
    /// came from one: the first choice for what answers a call (UCLA §2.3).
    pub fn gateway_towards(&self, link: LinkId, source: IpAddr) -> Option<IpAddr> {
        self.paths().gateway_at(link, self.input.sender_on(link)?, source)
    }
    /// The reversed source route of the datagram that [`Ip::receive`] handed up last, when it came by a source route:
    /// with [`crate::Paths::route_by`] it leads to its sender (RFC 1122 §3.2.1.8 (c)). Ask before the next call of
    /// `receive`.
    // spec: RFC1122 3.2.1.8-6
    pub fn return_route(&self) -> Option<&SourceRoute> {
        self.input.return_route()
    }

    /// Writes the link's and the IP header of a packet that carries `payload_bytes` to the front of `into`, and gives
    /// their length; 0 when they do not fit, or the packet would be longer than 65,535 bytes. Nothing is fragmented:
    /// stay within [`Path::payload_limit_bytes`].
    pub fn header(
        &mut self,
        path: &Path,
        link_header: LinkHeader,
        how: &HeaderHow,
        payload_bytes: usize,
        into: &mut [u8],
    ) -> usize {
        self.output.header_with(path, link_header, how, None, payload_bytes, into)
    }
    /// The same as [`Ip::header`], with `options` behind the IP header.
    pub fn header_with(
        &mut self,
        path: &Path,
        link_header: LinkHeader,
        how: &HeaderHow,
        options: Option<&HeaderOptions>,
        payload_bytes: usize,
        into: &mut [u8],
    ) -> usize {
        self.output.header_with(path, link_header, how, options, payload_bytes, into)
    }
    /// The options for headers on `path`; `None` when they do not fit, or the path is not one of IPv4. Our own time is
    /// the first that is written (RFC 1122 §3.2.1.8 (e)).
    pub fn header_options(&self, wanted: &Ipv4Options, path: &Path, now: Instant) -> Option<HeaderOptions> {
        HeaderOptions::new(wanted, path, self.time_of_day(now))
    }
    /// Sends a datagram whose transport header and data are `payload`, in fragments if it is too long for the path and
    /// `how` allows it. Fragments behind the first that the device has no room for go with IP's own frames, as far as
    /// there is room there.
    pub fn send_datagram(
        &mut self,
        path: &Path,
        how: &HeaderHow,
        payload: Slices<'_>,
        env: &mut IpEnvironment<'_>,
        device: &mut dyn Device,
    ) -> Result<(), SendDatagramError> {
        self.output.send_datagram_with(path, how, None, payload, env, device)
    }
    /// The same as [`Ip::send_datagram`], with `options` behind the IP header.
    pub fn send_datagram_with(
        &mut self,
        path: &Path,
        how: &HeaderHow,
        options: Option<&HeaderOptions>,
        payload: Slices<'_>,
        env: &mut IpEnvironment<'_>,
        device: &mut dyn Device,
    ) -> Result<(), SendDatagramError> {
        self.output.send_datagram_with(path, how, options, payload, env, device)
    }
    /// Sends an echo request. Its identifier must be unpredictable, or others can forge replies.
    pub fn echo_request(
        &mut self,
        path: &Path,
        echo: &EchoMessage<'_>,
        env: &mut IpEnvironment<'_>,
        device: &mut dyn Device,
    ) -> Result<(), SendDatagramError> {
        self.output.echo_request(path, echo, env, device)
    }
    /// Answers an [`crate::EchoRequest`]: `path` leads back to who asked, from the address that was asked. It goes
    /// with IP's own frames, and is lost when they are too many.
    pub fn echo_reply(
        &mut self,
        path: &Path,
        echo: &EchoMessage<'_>,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), SendDatagramError> {
        self.output.echo_reply(path, None, echo, env)
    }
    /// Sends port unreachable for `datagram`. `packet` is as [`Ip::receive`] left it, and the datagram is its first
    /// `length_bytes`. Nothing is sent where RFC 1122 §3.2.2 and RFC 4443 §2.4 (e) forbid it, or above the rate limit.
    // spec: RFC1122 3.2.2.1-1, 3.4-2, 4.1.3.1-1; RFC4443 3.1
    pub fn port_unreachable(
        &mut self,
        datagram: &Datagram,
        packet: &mut Packet,
        length_bytes: usize,
        env: &mut IpEnvironment<'_>,
    ) {
        let error = IcmpError::PortUnreachable;
        self.output.send_datagram_error(datagram, error, (packet, length_bytes), env);
    }
    /// Tells the sender of `datagram` that its transport is not spoken here, under the same conditions.
    // spec: RFC1122 3.2.2.1-1, 3.4-2; RFC4443 3.4
    pub fn protocol_unreachable(
        &mut self,
        datagram: &Datagram,
        packet: &mut Packet,
        env: &mut IpEnvironment<'_>,
    ) {
        let error = IcmpError::ProtocolUnreachable { named_at: u32::from(datagram.protocol_offset) };
        let length_bytes = packet.len();
        self.output.send_datagram_error(datagram, error, (packet, length_bytes), env);
    }
    /// Tells the source of `invoking` that it is refused, for a gateway that acts on behalf of other hosts. `invoking` is the
    /// packet or its front, from the IP header on, received on `link`. The limits of other errors count.
    // spec: RFC1812 4.3.3.1
    pub fn unreachable(
        &mut self,
        link: LinkId,
        why: Unreachable,
        invoking: &[u8],
        env: &mut IpEnvironment<'_>,
    ) {
        self.output.send_error(link, why.into(), invoking, env);
    }

    /// Whether [`Ip::transmit`] has something for the device of `link`.
    #[inline]
    pub fn wants_transmit(&self, link: LinkId) -> bool {
        self.output.wants_transmit(link)
    }
    /// Sends IP's own frames and those that it forwards, at most `budget_frames`, a quarter of which is left to the
    /// host's transports while packets are forwarded; true when more could go at once. A frame that the device refuses
    /// stays first.
    pub fn transmit(
        &mut self,
        link: LinkId,
        env: &mut IpEnvironment<'_>,
        budget_frames: usize,
        device: &mut dyn Device,
    ) -> bool {
        self.output.paths_mut().run_actions(link, env);
        self.output.send_waiting(link, env);
        if let Ok(mut forwarder) = self.input.forwarder(&mut self.output) {
            forwarder.update(link, env);
        }
        self.output.transmit(link, env, budget_frames, device)
    }
    /// Runs the timers that are due: neighbours, address tests and lifetimes, router solicitations, group reports,
    /// gateways, and expiry of cached state. Call at [`Ip::deadline`]; earlier it does nothing.
    pub fn timeout(&mut self, env: &mut IpEnvironment<'_>) {
        if self.deadline() > env.now() {
            return;
        }
        self.output.paths_mut().timeout(env);
        self.input.timeout_reassembly(&mut self.output, env);
        self.output.paths_mut().run_all_actions(env);
    }
    /// Sets the time of day: at `now` so many milliseconds have passed since midnight, Universal Time. Time stamps tell
    /// it from then on. The core has no clock; until this is called, and with `None`, time stamps tell the host's own
    /// time and are marked as nonstandard.
    pub fn set_time_of_day(&mut self, now: Instant, since_midnight_ms: Option<u32>) {
        self.output.clock_mut().set(now, since_midnight_ms);
    }
    /// Milliseconds since midnight, Universal Time, or of another clock, with
    /// [`inhost_wire::icmpv4::NONSTANDARD_TIME`].
    pub fn time_of_day(&self, now: Instant) -> u32 {
        self.output.clock().time_of_day(now)
    }
}
