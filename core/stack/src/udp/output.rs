//! UDP output.

use crate::error::DatagramError;
use crate::output::{Counting, Turn};
use crate::parts::ip_environment;
use crate::sockets::UdpSocketId;
use crate::udp::UdpSockets;
use inhost_base::{Instant, LinkId};
use inhost_buf::Slices;
use inhost_event::Sink;
use inhost_ip::{HeaderHow, Path, SendDatagramError};
use inhost_wire::checksum::Sum;
use inhost_wire::protocol;
use inhost_wire::udp::{self, UdpHeader};

impl UdpSockets<'_> {
    /// Sends some of a socket's datagrams.
    pub(crate) fn turn(
        &mut self,
        link: LinkId,
        key: UdpSocketId,
        now: Instant,
        budget: usize,
        device: &mut Counting<'_>,
        sink: &mut dyn Sink,
    ) -> Turn {
        let mut left = budget;
        while left > 0 {
            let Some(udp) = self.parts.sockets.udp_mut(key) else { return Turn::Done };
            let Some((next, options)) = udp.first_mut() else { return Turn::Done };
            if next.path.generation != self.parts.ip.paths().generation() {
                let Path { source, destination, link, .. } = next.path;
                let route = match source.is_unspecified() {
                    true => self.parts.ip.paths().route_unaddressed(link),
                    false => self.parts.ip.paths_mut().route(destination, Some(source), options.link, now),
                };
                match route {
                    Ok(path) => next.path = path,
                    Err(why) => {
                        self.finish_first(key, Some(DatagramError::Route(why)));
                        continue;
                    }
                }
            }
            if next.path.link != link {
                self.parts.schedule.queue_sender(next.path.link, key.place());
                return Turn::Done;
            }
            if next.segment_bytes > 0 {
                match self.gso_turn(key, left, now, device, sink) {
                    Ok(frames) => left -= frames.clamp(1, left),
                    Err(SendDatagramError::Full) => return Turn::Full,
                    Err(SendDatagramError::Pending) => return Turn::Pending,
                    Err(why) => self.finish_first(key, Some(why.into())),
                }
                continue;
            }
            left -= 1;
            let mut how = HeaderHow::new(protocol::UDP);
            how.dscp_ecn = options.differentiated_services << 2 | next.ecn.bits();
            how.hop_limit = options.hop_limit;
            let packet_bytes = next.path.ip_header_bytes() + udp::LENGTH + next.payload.len();
            how.dont_fragment = options.keeps_whole(packet_bytes, &next.path);
            how.beyond_path_mtu = options.beyond_path_mtu;
            let mut header = [0; udp::LENGTH];
            let (source, destination) = (next.path.source, next.destination);
            let bytes = next.payload.bytes();
            UdpHeader { source_port: next.source_port, destination_port: destination.port }.emit(
                source,
                destination.address,
                bytes.len(),
                Sum::of(bytes),
                &mut header,
            );
            let mut payload = Slices::one(&header);
            payload.push(bytes);
            let mut environment = ip_environment!(self.parts, now, sink);
            let sent = self.parts.ip.send_datagram(&next.path, &how, payload, &mut environment, device);
            match sent {
                Ok(()) => {
                    self.parts.counters.datagrams_sent += 1;
                    self.sent(key, now);
                }
                Err(SendDatagramError::Full) => return Turn::Full,
                Err(SendDatagramError::Pending) => return Turn::Pending,
                Err(why) => self.finish_first(key, Some(why.into())),
            }
        }
        match self.parts.sockets.udp(key) {
            Some(udp) if !udp.is_idle() => Turn::More,
            _ => Turn::Done,
        }
    }
    /// A socket's first datagram has left.
    pub(super) fn sent(&mut self, key: UdpSocketId, now: Instant) {
        if let Some(udp) = self.parts.sockets.udp_mut(key) {
            udp.note_sent(now);
        }
        self.finish_first(key, None);
    }
    /// Is done with a socket's first datagram.
    fn finish_first(&mut self, key: UdpSocketId, error: Option<DatagramError>) {
        let Some(udp) = self.parts.sockets.udp_mut(key) else { return };
        let has_news = udp.finish_first(error, self.parts.memory.pool_mut());
        if udp.is_closed() && udp.is_idle() {
            self.parts.remove_datagram_socket(key.into());
        } else if has_news {
            self.parts.notify(key.into());
        }
    }
}
