//! IP output: headers for transports, datagrams, and IP's own frames.

pub(crate) mod errors;
pub(crate) mod limits;
mod message;

use crate::clock::Clock;
use crate::fragment::{self, PacketSink};
use crate::ident::Identifications;
use crate::interface::Interface;
use crate::options::HeaderOptions;
use crate::path::{HeaderHow, LinkHeader, Path, Resolution};
use crate::paths::Paths;
use crate::{IpEnvironment, SendDatagramError};
use inhost_base::{Instant, IpAddr, LinkId, Random};
use inhost_buf::{Device, Frame, Full, Offload, Packet, Pool, Slices};
use inhost_wire::icmpv4::Icmpv4Message;
use inhost_wire::icmpv6::Icmpv6Message;
use inhost_wire::{ethernet, icmpv4, ipv4};
use limits::ErrorLimits;
pub(crate) use message::IcmpMessage;

/// Room for the headers of a datagram's packets: link, and IPv4 with all options, which is more than IPv6 with a
/// fragment header.
const HEADERS_BYTES: usize = ethernet::LENGTH + ipv4::LENGTH + ipv4::MAX_OPTIONS_BYTES;

/// The variable part of an echo request or reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EchoMessage<'a> {
    /// The identifier: which conversation the request belongs to.
    pub identifier: u16,
    /// The sequence number of the request.
    pub sequence: u16,
    /// The data, which the reply repeats.
    pub data: &'a [u8],
}

/// What IP sends, and the paths that it sends over: headers, datagrams, fragments, echoes, ICMP errors within their
/// rate limits, and the queues of IP's own packets.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Output {
    paths: Paths,
    identifications: Identifications,
    error_limits: ErrorLimits,
    errors_have_precedence: bool,
    clock: Clock,
}

impl Output {
    pub(crate) fn new(
        paths: Paths,
        identifications: Identifications,
        error_limits: ErrorLimits,
        errors_have_precedence: bool,
    ) -> Output {
        Output { paths, identifications, error_limits, errors_have_precedence, clock: Clock::default() }
    }
    /// Chooses new keys.
    #[cfg(feature = "freeze")]
    pub(crate) fn reseed(&mut self, keyed: crate::table::Keyed, random: &mut inhost_base::Random) {
        self.identifications = Identifications::new(random);
        self.error_limits.rekey(keyed);
    }
    #[inline]
    pub(crate) fn paths(&self) -> &Paths {
        &self.paths
    }
    #[inline]
    pub(crate) fn paths_mut(&mut self) -> &mut Paths {
        &mut self.paths
    }
    /// The clock of timestamp options and messages.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }
    pub(crate) fn clock_mut(&mut self) -> &mut Clock {
        &mut self.clock
    }
    /// Whether one more message of ICMP that is limited as errors are may be sent; it is counted.
    pub(crate) fn is_within_limit(&mut self, now: Instant, random: &mut Random) -> bool {
        self.error_limits.allows(now, random)
    }
    /// Writes the link's and the IP header of a packet; see [`crate::Ip::header_with`].
    #[inline]
    pub(crate) fn header_with(
        &mut self,
        path: &Path,
        link_header: LinkHeader,
        how: &HeaderHow,
        options: Option<&HeaderOptions>,
        payload_bytes: usize,
        into: &mut [u8],
    ) -> usize {
        // A packet that is never fragmented needs no identification (RFC 6864 §4.1).
        // spec: RFC6864 4.1
        let is_atomic = how.dont_fragment || path.destination.is_ipv6();
        let identification = if is_atomic {
            0
        } else {
            self.identifications.next(path.source, path.destination, how.protocol)
        };
        let link = link_header.bytes();
        let Some((front, rest)) = into.split_at_mut_checked(link.len()) else { return 0 };
        inhost_buf::copy(front, link);
        match fragment::write_header(path, how, options, identification, payload_bytes, None, rest) {
            0 => 0,
            written => link.len() + written,
        }
    }
    /// Sends a datagram, in fragments if need be; see [`crate::Ip::send_datagram_with`].
    pub(crate) fn send_datagram_with(
        &mut self,
        path: &Path,
        how: &HeaderHow,
        options: Option<&HeaderOptions>,
        payload: Slices<'_>,
        env: &mut IpEnvironment<'_>,
        device: &mut dyn Device,
    ) -> Result<(), SendDatagramError> {
        let link_header = match self.paths.resolve(path, env) {
            Resolution::Ready(link_header) => link_header,
            Resolution::Pending => return Err(SendDatagramError::Pending),
            Resolution::Failed => return Err(SendDatagramError::Unreachable),
        };
        let identification = self.identifications.next(path.source, path.destination, how.protocol);
        let Some(interface) = self.paths.interface_mut(path.link) else {
            return Err(SendDatagramError::Unreachable);
        };
        // spec: RFC4821 4-9, 9-1
        let probed;
        let path = if how.beyond_path_mtu {
            probed = Path { mtu_bytes: interface.mtu_bytes(path.destination.is_ipv6()), ..*path };
            &probed
        } else {
            path
        };
        let queue = ToQueue { interface, path, env };
        let mut output = ToDevice { link_header, device, taken: 0, is_queueing: false, queue };
        let fragments = fragment::send(path, how, options, identification, &payload, &mut output)?;
        interface.count(|counters| counters.sent_fragments += u64::from(fragments));
        Ok(())
    }
    /// Sends an echo request; see [`crate::Ip::echo_request`].
    // spec: RFC1122 3.2.2.6-2; RFC4443 4.1
    pub(crate) fn echo_request(
        &mut self,
        path: &Path,
        echo: &EchoMessage<'_>,
        env: &mut IpEnvironment<'_>,
        device: &mut dyn Device,
    ) -> Result<(), SendDatagramError> {
        let (message, how) = echo_packet(path, true, echo, env.pool())?;
        let sent = self.send_datagram_with(path, &how, None, Slices::one(message.bytes()), env, device);
        env.pool().give(message);
        sent
    }
    /// Queues an echo reply, with `options` behind the IP header.
    pub(crate) fn echo_reply(
        &mut self,
        path: &Path,
        options: Option<&HeaderOptions>,
        echo: &EchoMessage<'_>,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), SendDatagramError> {
        let (message, how) = echo_packet(path, false, echo, env.pool())?;
        let queued = self.queue_datagram(path, &how, options, message.bytes(), env);
        env.pool().give(message);
        queued
    }
    /// Queues an ICMP message, in fragments if need be.
    pub(crate) fn queue_message(
        &mut self,
        path: &Path,
        how: &HeaderHow,
        options: Option<&HeaderOptions>,
        message: &IcmpMessage<'_>,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), SendDatagramError> {
        let message = message.packet(path, env.pool()).ok_or(SendDatagramError::NoMemory)?;
        let queued = self.queue_datagram(path, how, options, message.bytes(), env);
        env.pool().give(message);
        queued
    }
    fn queue_datagram(
        &mut self,
        path: &Path,
        how: &HeaderHow,
        options: Option<&HeaderOptions>,
        payload: &[u8],
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), SendDatagramError> {
        let identification = self.identifications.next(path.source, path.destination, how.protocol);
        let Some(interface) = self.paths.interface_mut(path.link) else {
            return Err(SendDatagramError::Unreachable);
        };
        let mut output = ToQueue { interface, path, env };
        let fragments =
            fragment::send(path, how, options, identification, &Slices::one(payload), &mut output)?;
        interface.count(|counters| counters.sent_fragments += u64::from(fragments));
        Ok(())
    }
    /// Whether [`Output::transmit`] has something for the device of `link`.
    #[inline]
    pub(crate) fn wants_transmit(&self, link: LinkId) -> bool {
        self.paths.interface(link).is_some_and(Interface::wants_transmit)
    }
    /// Sends the frames that are ready on `link`, at most `budget_frames`, a quarter of which is left to the host's
    /// transports while forwarded packets are sent; true when more could go at once.
    pub(crate) fn transmit(
        &mut self,
        link: LinkId,
        env: &mut IpEnvironment<'_>,
        budget_frames: usize,
        device: &mut dyn Device,
    ) -> bool {
        let Some(interface) = self.paths.interface_mut(link) else { return false };
        interface.transmit(budget_frames, device, env.pool()).is_err() || self.wants_transmit(link)
    }
    /// Moves packets whose neighbour has answered to the frames that are ready, and drops those whose neighbour has not.
    pub(crate) fn send_waiting(&mut self, link: LinkId, env: &mut IpEnvironment<'_>) {
        let Some(interface) = self.paths.interface_mut(link) else { return };
        interface.send_waiting(env.pool());
    }
}

/// An echo message, and the header that it goes with on `path`.
fn echo_packet(
    path: &Path,
    is_request: bool,
    echo: &EchoMessage<'_>,
    pool: &mut Pool,
) -> Result<(Packet, HeaderHow), SendDatagramError> {
    let EchoMessage { identifier, sequence, data } = *echo;
    let message = match (path.destination, is_request) {
        (IpAddr::V4(_), true) => IcmpMessage::V4(Icmpv4Message::EchoRequest { identifier, sequence, data }),
        (IpAddr::V4(_), false) => IcmpMessage::V4(Icmpv4Message::EchoReply { identifier, sequence, data }),
        (IpAddr::V6(_), true) => IcmpMessage::V6(Icmpv6Message::EchoRequest { identifier, sequence, data }),
        (IpAddr::V6(_), false) => IcmpMessage::V6(Icmpv6Message::EchoReply { identifier, sequence, data }),
    };
    fragment::fits(path, path.ip_header_bytes(), icmpv4::LENGTH + data.len())?;
    let packet = message.packet(path, pool).ok_or(SendDatagramError::NoMemory)?;
    Ok((packet, HeaderHow::new(message.protocol())))
}

/// Sending of a transport's packets to the device.
struct ToDevice<'a, 'b> {
    link_header: LinkHeader,
    device: &'a mut dyn Device,
    taken: u32,
    /// The device was full behind the first fragment; the rest keeps its order by way of the queue.
    is_queueing: bool,
    queue: ToQueue<'a, 'b>,
}

impl PacketSink for ToDevice<'_, '_> {
    fn packet(&mut self, header: &[u8], payload: Slices<'_>) -> Result<(), Full> {
        if !self.is_queueing {
            let mut headers = [0; HEADERS_BYTES];
            let link = self.link_header.bytes();
            let length = link.len() + header.len();
            let Some((front, rest)) = headers.split_at_mut_checked(link.len()) else { return Err(Full) };
            inhost_buf::copy(front, link);
            inhost_buf::copy(rest, header);
            let header = headers.get(..length).ok_or(Full)?;
            let frame = Frame { header, payload, offload: Offload::None };
            match self.device.transmit(&frame) {
                Ok(()) => {
                    self.taken += 1;
                    return Ok(());
                }
                Err(Full) if self.taken == 0 => return Err(Full),
                Err(Full) => self.is_queueing = true,
            }
        }
        self.queue.packet(header, payload)
    }
}

/// IP's own packets, to the queue of their link.
struct ToQueue<'a, 'b> {
    interface: &'a mut Interface,
    path: &'a Path,
    env: &'a mut IpEnvironment<'b>,
}

impl PacketSink for ToQueue<'_, '_> {
    fn packet(&mut self, header: &[u8], payload: Slices<'_>) -> Result<(), Full> {
        let ToQueue { interface, path, env } = self;
        let mut packet = interface.take_packet(header.len() + payload.len(), env.pool()).ok_or(Full)?;
        packet.append(header);
        for piece in payload.iter() {
            packet.append(piece);
        }
        interface.push_packet(path.next_hop, packet, env.now(), env.pool());
        Ok(())
    }
}
