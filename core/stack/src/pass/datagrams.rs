//! The turn of a UDP, echo or probe socket in an output pass.

use crate::error::DatagramError;
use crate::output::{Turn, cut};
use crate::pass::Pass;
use crate::socket::{AnySocketId, Datagrams, SocketId, UdpSocketId};
use crate::sockets::Socket;
use crate::udp::{HEADERS_BYTES, write_gso_headers};
use inhost_buf::{Device, Frame, Full, GsoType, Offload, Slices};
use inhost_ip::{EchoMessage, HeaderHow, Path, Resolution, SendDatagramError};
use inhost_wire::checksum::Sum;
use inhost_wire::offload::{Segmenter, segments};
use inhost_wire::protocol;
use inhost_wire::udp::{self, UdpHeader};

impl Pass<'_, '_> {
    /// Sends some of a socket's datagrams or requests.
    pub(super) fn datagram_turn(&mut self, socket: AnySocketId, budget: usize) -> Turn {
        let link = self.link;
        let id = SocketId::from(socket);
        let mut left = budget;
        while left > 0 {
            let Some(entry) = self.sockets.any_mut(id) else { return Turn::Done };
            let bound = entry.bound_link();
            let first = entry.datagrams_mut().and_then(Datagrams::first_mut);
            let Some((_, next)) = first else { return Turn::Done };
            if next.path.generation != self.env.paths().generation() {
                let Path { source, destination, link, .. } = next.path;
                let route = match source.is_unspecified() {
                    true => self.env.paths().route_unaddressed(link),
                    false => self.env.route(destination, Some(source), bound),
                };
                match route {
                    Ok(path) => next.path = path,
                    Err(why) => {
                        self.finish_first(id, Some(DatagramError::Route(why)));
                        continue;
                    }
                }
            }
            if next.path.link != link {
                let other = next.path.link;
                self.sockets.schedule_mut().queue_sender(other, id.0.index());
                return Turn::Done;
            }
            let (is_single, next_hop) = (next.segment_bytes == 0, next.path.next_hop);
            let sent = match socket {
                AnySocketId::Udp(key) if is_single => self.send_datagram(key).map(|()| 1),
                AnySocketId::Udp(key) => self.send_gso(key, left),
                _ => self.send_request(id).map(|()| 1),
            };
            match sent {
                Ok(frames) => left -= frames.clamp(1, left),
                Err(SendDatagramError::Full) => return Turn::Full,
                Err(SendDatagramError::Pending) => return Turn::Pending(next_hop),
                Err(why) => {
                    // A GSO datagram that cannot leave costs nothing of the budget.
                    left -= usize::from(is_single);
                    self.finish_first(id, Some(why.into()));
                }
            }
        }
        match self.sockets.any(id).and_then(Socket::datagrams) {
            Some(datagrams) if !datagrams.is_idle() => Turn::More,
            _ => Turn::Done,
        }
    }
    /// Sends the request that is first in the queue of an echo or a probe socket.
    fn send_request(&mut self, id: SocketId) -> Result<(), SendDatagramError> {
        let Some(socket) = self.sockets.any(id) else { return Ok(()) };
        let Some((message, next)) = socket.datagrams().and_then(Datagrams::first) else { return Ok(()) };
        let (ip, mut env) = self.env.ip();
        let path = &next.path;
        if let Socket::Echo(echo) = socket {
            let (identifier, sequence) = (echo.identifier(), next.destination.port);
            let echo = EchoMessage { identifier, sequence, data: message.bytes() };
            ip.echo_request(path, &echo, &mut env, &mut self.device)?;
        } else if let Socket::Probe(prober) = socket {
            let mut how = HeaderHow::new(prober.protocol(path.destination));
            how.hop_limit = next.hop_limit;
            (how.dont_fragment, how.beyond_path_mtu) = (true, true);
            ip.send_datagram(path, &how, Slices::one(message.bytes()), &mut env, &mut self.device)?;
        }
        self.finish_first(id, None);
        Ok(())
    }
    /// Sends the datagram that is first in a socket's queue.
    fn send_datagram(&mut self, key: UdpSocketId) -> Result<(), SendDatagramError> {
        let Some(udp) = self.sockets.udp_mut(key) else { return Ok(()) };
        let Some((payload, next, options)) = udp.first_mut() else { return Ok(()) };
        let mut how = HeaderHow::new(protocol::UDP);
        how.dscp_ecn = options.differentiated_services << 2 | next.ecn.bits();
        how.hop_limit = options.hop_limit;
        let packet_bytes = next.path.ip_header_bytes() + udp::LENGTH + payload.len();
        how.dont_fragment = options.keeps_whole(packet_bytes, &next.path);
        how.beyond_path_mtu = options.beyond_path_mtu;
        let mut header = [0; udp::LENGTH];
        let (source, destination) = (next.path.source, next.destination);
        let bytes = payload.bytes();
        UdpHeader { source_port: next.source_port, destination_port: destination.port }.emit(
            source,
            destination.address,
            bytes.len(),
            Sum::of(bytes),
            &mut header,
        );
        let mut payload = Slices::one(&header);
        payload.push(bytes);
        let (ip, mut environment) = self.env.ip();
        ip.send_datagram(&next.path, &how, payload, &mut environment, &mut self.device)?;
        self.env.counters().datagrams_sent += 1;
        self.finish_first(key.into(), None);
        Ok(())
    }
    /// Sends the GSO datagram that is first in a socket's queue: as one frame if the device segments it, otherwise as
    /// many of its datagrams as the device takes, at most `most`; the rest stays first. Returns the number of frames.
    fn send_gso(&mut self, key: UdpSocketId, most: usize) -> Result<usize, SendDatagramError> {
        let Some(udp) = self.sockets.udp_mut(key) else { return Ok(0) };
        let Some((payload, run, options)) = udp.first_mut() else { return Ok(0) };
        let (segment_bytes, whole_bytes) = (run.segment_bytes, payload.len());
        if udp::LENGTH + usize::from(segment_bytes) > run.path.payload_limit_bytes() {
            return Err(SendDatagramError::TooLong);
        }
        let mut how = HeaderHow::new(protocol::UDP);
        how.dscp_ecn = options.differentiated_services << 2 | run.ecn.bits();
        how.hop_limit = options.hop_limit;
        how.dont_fragment = true;
        let (ip, mut environment) = self.env.ip();
        let link_header = match ip.paths_mut().resolve(&run.path, &mut environment) {
            Resolution::Ready(link_header) => link_header,
            Resolution::Pending => return Err(SendDatagramError::Pending),
            Resolution::Failed => return Err(SendDatagramError::Unreachable),
        };
        let mut scratch = [0; HEADERS_BYTES];
        let transport = write_gso_headers(ip, run, link_header, &how, whole_bytes, &mut scratch)?;
        let transport_offset = transport as u16;
        let offload = Offload::Segment { of: GsoType::Udp, segment_bytes, transport_offset };
        let header = scratch.get(..transport + udp::LENGTH).unwrap_or(&[]);
        let frame = Frame { header, payload: Slices::one(payload.bytes()), offload };
        let datagrams = segments(whole_bytes, usize::from(segment_bytes));
        let (frames, sent) = match self.device.offers().udp && datagrams > 1 {
            true => {
                self.device.transmit(&frame).map_err(|Full| SendDatagramError::Full)?;
                (1, datagrams)
            }
            false => {
                let segmenter = Segmenter::new(&frame, link_header.bytes().len());
                let segmenter = segmenter.ok_or(SendDatagramError::TooLong)?;
                let sent = cut(segmenter, &[], most.max(1), &mut self.device);
                let sent = sent.map_err(|Full| SendDatagramError::Full)?;
                (sent, sent)
            }
        };
        if sent < datagrams {
            payload.trim_front(sent * usize::from(segment_bytes));
        }
        self.env.counters().datagrams_sent += sent as u64;
        if sent == datagrams {
            self.finish_first(key.into(), None);
        }
        Ok(frames)
    }
    /// Is done with a socket's first datagram, which has left or failed with `error`.
    fn finish_first(&mut self, id: SocketId, error: Option<DatagramError>) {
        let (now, pool) = (self.env.now(), self.env.pool());
        let has_news = match self.sockets.any_mut(id) {
            Some(Socket::Udp(udp)) => {
                let has_news = udp.finish_first(error, now, pool);
                if udp.is_closed() && udp.datagrams().is_idle() {
                    return self.sockets.remove_datagrams(id, self.env.resources());
                }
                has_news
            }
            Some(socket) => {
                socket.datagrams_mut().is_some_and(|requests| requests.finish_request(error, now, pool))
            }
            None => false,
        };
        if has_news {
            self.sockets.notify(id);
        }
    }
}
