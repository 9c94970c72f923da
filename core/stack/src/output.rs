//! Down through TCP and IP to the device, in one pass.

use crate::icmp::{EchoSockets, ProbeSockets};
use crate::input::segment_limit;
use crate::parts::{Parts, ip_environment, tcp_environment};
use crate::reply::Reply;
use crate::sockets::{AnySocketId, ConnectionFlags, TcpSocketId};
use crate::stack::Transmitted;
use crate::udp::UdpSockets;
use inhost_base::{Instant, LinkId};
use inhost_buf::{Device, Frame, Full, Large, Offers, Offload, Shareable, Slices};
use inhost_event::{Event, FrameSent, Mask, Sink};
use inhost_ip::{HeaderHow, HeaderOptions, Ip, LinkHeader, Path, Resolution, RouteError};
use inhost_tcp::{Blocked, Ecn, Header, PlainHeader, SegmentOutput};
use inhost_wire::checksum::{Sum, pseudo_header};
use inhost_wire::large::{Cut, TCP_CHECKSUM_OFFSET, sum_of};
use inhost_wire::straight::{Ends, Written};
use inhost_wire::{ethernet, ipv4, protocol, tcp};

/// Segments that one connection sends before the next has its turn, where there is one (DEC: transmit fairness).
const SEGMENTS_PER_TURN: usize = 4;
/// The same where the device cuts large frames: one of 64 KiB costs little more than one of 1,500 bytes.
const LARGE_SEGMENTS_PER_TURN: usize = 44;
/// Bytes that a pass sends at most, for each frame of its budget.
const PASS_BYTES_A_FRAME: u64 = 4096;
/// The most payload of a large frame: a packet is at most 65,535 bytes long, headers with all options included.
const LARGE_BYTES: u32 = (u16::MAX as usize - IP_BYTES - tcp::MAX_LENGTH) as u32;
/// Room for the largest headers: link, IP and TCP with all options.
const HEADERS_BYTES: usize = ethernet::LENGTH + IP_BYTES + tcp::MAX_LENGTH;
/// Room for the largest headers with nothing out of the ordinary: link, IPv6 and TCP with timestamps.
const PLAIN_BYTES: usize = 96;
/// The longest IP header: IPv4 with all options, which is more than IPv6.
const IP_BYTES: usize = ipv4::LENGTH + ipv4::MAX_OPTIONS_BYTES;

/// What became of a socket's turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// It has nothing more to send.
    Done,
    /// It would send more.
    More,
    /// The device is full.
    Full,
    /// Its neighbour is being asked for.
    Pending,
    /// Its neighbour does not answer, or its route is gone.
    Unreachable,
}

/// A device that counts what it accepts.
pub(crate) struct Counting<'a> {
    device: &'a mut dyn Device,
    pub(crate) frames: usize,
    bytes: u64,
    pub(crate) full: bool,
    offers: Offers,
    /// Lengths of the frames accepted, when somebody wants to hear of them.
    lengths: Option<&'a mut Vec<u32>>,
}

impl Device for Counting<'_> {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let done = self.device.transmit(frame);
        self.count(frame, done)
    }
    fn transmit_shared(&mut self, frame: &Frame<'_>, payload: Shareable<'_>) -> Result<(), Full> {
        let done = self.device.transmit_shared(frame, payload);
        self.count(frame, done)
    }
    fn offers(&self) -> Offers {
        self.offers
    }
}

impl Counting<'_> {
    #[inline]
    fn count(&mut self, frame: &Frame<'_>, done: Result<(), Full>) -> Result<(), Full> {
        match done {
            Ok(()) => {
                self.frames += 1;
                let length = frame.len();
                self.bytes += length as u64;
                if let Some(lengths) = &mut self.lengths {
                    lengths.push(length as u32);
                }
            }
            Err(Full) => self.full = true,
        }
        done
    }
}

/// Puts link and IP headers before segments and gives them to the device: each header is written once, the payload
/// stays where it lies.
struct Segments<'a, 'b> {
    ip: &'a mut Ip,
    device: &'a mut Counting<'b>,
    path: &'a Path,
    link_header: LinkHeader,
    how: HeaderHow,
    options: Option<&'a HeaderOptions>,
    local_port: u16,
    remote_port: u16,
    /// See [`inhost_ip::InterfaceConfig::runs`].
    runs: bool,
}

impl Segments<'_, '_> {
    /// Writes all headers of a segment with `payload_bytes` to the front of `scratch`, the checksum apart; gives where
    /// the transport header begins and the length of all.
    // spec: RFC9293 SHLD-22
    fn headers(
        &mut self,
        header: &Header,
        payload_bytes: usize,
        ecn: Ecn,
        scratch: &mut [u8; HEADERS_BYTES],
    ) -> Option<(usize, usize)> {
        let tcp_bytes = header.length();
        let how = HeaderHow { dscp_ecn: self.how.dscp_ecn | ecn.bits(), ..self.how };
        let segment_bytes = tcp_bytes + payload_bytes;
        let front =
            self.ip.header_with(self.path, self.link_header, &how, self.options, segment_bytes, scratch);
        let place = scratch.get_mut(front..front + tcp_bytes)?;
        if front == 0 || header.emit(place) != tcp_bytes {
            return None;
        }
        let (ports, _) = place.split_first_chunk_mut::<4>()?;
        ports[..2].copy_from_slice(&self.local_port.to_be_bytes());
        ports[2..].copy_from_slice(&self.remote_port.to_be_bytes());
        Some((front, front + tcp_bytes))
    }
    /// The same for a header with nothing out of the ordinary, written straight; gives what stands before the IP header
    /// and what was written.
    #[inline(always)]
    fn plain_headers(
        &self,
        header: &PlainHeader,
        payload_bytes: usize,
        ecn: Ecn,
        scratch: &mut [u8],
    ) -> Option<(usize, Written)> {
        let link = self.link_header.bytes();
        let ends = self.straight_ends(ecn)?;
        scratch.get_mut(..link.len())?.copy_from_slice(link);
        let written = ends.emit(header, payload_bytes, scratch.get_mut(link.len()..)?)?;
        Some((link.len(), written))
    }
    /// The same for any header, where IP has nothing to add.
    fn any_headers(
        &self,
        header: &Header,
        payload_bytes: usize,
        ecn: Ecn,
        scratch: &mut [u8],
    ) -> Option<(usize, Written)> {
        let link = self.link_header.bytes();
        let ends = self.straight_ends(ecn)?;
        scratch.get_mut(..link.len())?.copy_from_slice(link);
        let written = ends.emit_any(header, payload_bytes, scratch.get_mut(link.len()..)?)?;
        Some((link.len(), written))
    }
    /// Whose packets they are, where nothing is to be asked of IP for them.
    #[inline(always)]
    fn straight_ends(&self, ecn: Ecn) -> Option<Ends> {
        if !self.takes_runs() || self.how.flow_label != 0 {
            return None;
        }
        Some(Ends {
            source: self.path.source,
            destination: self.path.destination,
            source_port: self.local_port,
            destination_port: self.remote_port,
            dscp_ecn: self.how.dscp_ecn | ecn.bits(),
            hop_limit: self.how.hop_limit.unwrap_or(self.path.hop_limit).max(1),
        })
    }
    /// A segment behind such headers, which stand `front` bytes after the beginning of `scratch`.
    // spec: RFC9293 MUST-2
    #[inline(always)]
    fn straight<'f>(
        &self,
        front: usize,
        written: &Written,
        payload: Slices<'f>,
        scratch: &'f mut [u8],
    ) -> Frame<'f> {
        let (transport, end) = (front + written.ip_bytes, front + written.header_bytes);
        let (field, offload) = if self.device.offers.checksum {
            let transport_offset = transport as u16;
            let offload = Offload::Checksum { transport_offset, checksum_offset: TCP_CHECKSUM_OFFSET };
            (written.pseudo_sum.folded(), offload)
        } else {
            let headers = written.pseudo_sum.combine(written.header_sum, false);
            (headers.combine(sum_of(&payload), false).finish(), Offload::None)
        };
        let at = transport + usize::from(TCP_CHECKSUM_OFFSET);
        if let Some(place) = scratch.get_mut(at..at + 2) {
            place.copy_from_slice(&field.to_be_bytes());
        }
        Frame { header: scratch.get(..end).unwrap_or(&[]), payload, offload }
    }
    /// Sends a segment whose headers IP writes.
    fn general(&mut self, header: &Header, payload: Slices<'_>, ecn: Ecn) -> Result<(), Blocked> {
        let mut scratch = [0; HEADERS_BYTES];
        let Some((front, end)) = self.headers(header, payload.len(), ecn, &mut scratch) else {
            return Err(Blocked::Link);
        };
        let pseudo = self.pseudo(end - front + payload.len());
        let offload = if self.device.offers.checksum {
            leave_checksum(scratch.get_mut(front..end), pseudo);
            let transport_offset = front as u16;
            Offload::Checksum { transport_offset, checksum_offset: TCP_CHECKSUM_OFFSET }
        } else {
            tcp::fill_checksum(scratch.get_mut(front..end).unwrap_or_default(), pseudo, sum_of(&payload));
            Offload::None
        };
        let frame = Frame { header: scratch.get(..end).unwrap_or(&[]), payload, offload };
        self.device.transmit(&frame).map_err(|Full| Blocked::Link)
    }
    fn pseudo(&self, segment_bytes: usize) -> Sum {
        pseudo_header(self.path.source, self.path.destination, protocol::TCP, segment_bytes as u32)
    }
    /// Whether a run may be one large frame: its pieces differ in nothing that only IP knows.
    fn takes_runs(&self) -> bool {
        self.runs && self.how.dont_fragment && self.options.is_none()
    }
    fn kind(&self) -> Large {
        if self.path.destination.is_ipv4() { Large::TcpV4 } else { Large::TcpV6 }
    }
    /// Sends what a device without large frames would have cut, piece by piece; the bytes that it took.
    fn cut(&mut self, frame: &Frame<'_>, sums: &[Option<u16>]) -> Result<u32, Blocked> {
        let offers = self.device.offers;
        let mut cut = Cut::new(frame, self.link_header.bytes().len()).ok_or(Blocked::Link)?;
        let mut taken = 0;
        for index in 0..cut.count() {
            let sum = sums.get(index).copied().flatten();
            let payload = cut.payload(index).with_sum(sum);
            let piece = match offers.checksum {
                true => cut.frame_without_sum(index, payload),
                false => cut.frame(index, payload, sum_of(&payload)),
            };
            match self.device.transmit(&piece) {
                Ok(()) => taken += payload.len() as u32,
                Err(Full) if taken > 0 => break,
                Err(Full) => return Err(Blocked::Link),
            }
        }
        Ok(taken)
    }
}

/// Puts the folded sum of a pseudo-header where the device will put the checksum.
fn leave_checksum(place: Option<&mut [u8]>, pseudo: Sum) {
    let field = place.and_then(|place| place.get_mut(usize::from(TCP_CHECKSUM_OFFSET)..));
    if let Some((field, _)) = field.and_then(<[u8]>::split_first_chunk_mut::<2>) {
        *field = pseudo.folded().to_be_bytes();
    }
}

impl SegmentOutput for Segments<'_, '_> {
    // spec: RFC9293 MUST-2
    fn segment(&mut self, header: &Header, payload: Slices<'_>, ecn: Ecn) -> Result<(), Blocked> {
        if let Some(plain) = header.plain() {
            return self.plain(&plain, payload, ecn);
        }
        let mut scratch = [0; HEADERS_BYTES];
        match self.any_headers(header, payload.len(), ecn, &mut scratch) {
            Some((front, written)) => {
                let frame = self.straight(front, &written, payload, &mut scratch);
                self.device.transmit(&frame).map_err(|Full| Blocked::Link)
            }
            None => self.general(header, payload, ecn),
        }
    }
    #[inline]
    fn plain(&mut self, header: &PlainHeader, payload: Slices<'_>, ecn: Ecn) -> Result<(), Blocked> {
        let mut scratch = [0; PLAIN_BYTES];
        match self.plain_headers(header, payload.len(), ecn, &mut scratch) {
            Some((front, written)) => {
                let frame = self.straight(front, &written, payload, &mut scratch);
                self.device.transmit(&frame).map_err(|Full| Blocked::Link)
            }
            None => self.general(&header.full(), payload, ecn),
        }
    }
    fn shared(
        &mut self,
        header: &Header,
        payload: Slices<'_>,
        shareable: Shareable<'_>,
        ecn: Ecn,
    ) -> Result<(), Blocked> {
        let mut scratch = [0; PLAIN_BYTES];
        let plain = header.plain();
        match plain.and_then(|plain| self.plain_headers(&plain, payload.len(), ecn, &mut scratch)) {
            Some((front, written)) => {
                let frame = self.straight(front, &written, payload, &mut scratch);
                self.device.transmit_shared(&frame, shareable).map_err(|Full| Blocked::Link)
            }
            None => self.segment(header, payload, ecn),
        }
    }
    fn wants_sums(&self) -> bool {
        !self.device.offers.checksum
    }
    fn shares(&self) -> bool {
        self.device.offers.sharing
    }
    fn large_bytes(&self) -> u32 {
        if self.takes_runs() { LARGE_BYTES } else { 0 }
    }
    fn large(
        &mut self,
        header: &Header,
        payload: Slices<'_>,
        segment_bytes: u16,
        sums: &[Option<u16>],
        ecn: Ecn,
    ) -> Result<u32, Blocked> {
        let mut scratch = [0; HEADERS_BYTES];
        let plain = header.plain();
        let plain = plain.and_then(|plain| self.plain_headers(&plain, payload.len(), ecn, &mut scratch));
        let plain = plain.map(|(front, written)| (front + written.ip_bytes, front + written.header_bytes));
        let headers = plain.or_else(|| self.headers(header, payload.len(), ecn, &mut scratch));
        let Some((front, end)) = headers else { return Err(Blocked::Link) };
        leave_checksum(scratch.get_mut(front..end), self.pseudo(end - front + payload.len()));
        let offload = Offload::Segment { of: self.kind(), segment_bytes, transport_offset: front as u16 };
        let frame = Frame { header: scratch.get(..end).unwrap_or(&[]), payload, offload };
        if !self.device.offers.cuts(self.kind()) {
            return self.cut(&frame, sums);
        }
        self.device.transmit(&frame).map_err(|Full| Blocked::Link)?;
        Ok(payload.len() as u32)
    }
}

impl Parts {
    /// One pass over everything that wants to leave by `link`.
    pub(crate) fn transmit_on(
        &mut self,
        link: LinkId,
        now: Instant,
        budget_frames: usize,
        device: &mut dyn Device,
        sink: &mut dyn Sink,
    ) -> Transmitted {
        let (ip_waits, replies_wait) = (self.ip.wants_transmit(link), self.replies.waits(link));
        if !ip_waits && !replies_wait && !self.schedule.has_ready(link) {
            return Transmitted::default();
        }
        let wanted = sink.mask().wants(Mask::LINK);
        let mut lengths = if wanted { core::mem::take(&mut self.sent_lengths) } else { Vec::new() };
        let offers = device.offers();
        let lengths_wanted = wanted.then_some(&mut lengths);
        let mut device =
            Counting { device, frames: 0, bytes: 0, full: false, offers, lengths: lengths_wanted };
        let mut more = false;
        if ip_waits {
            let mut environment = ip_environment!(self, now, sink);
            more |= self.ip.transmit(link, &mut environment, budget_frames, &mut device);
        }
        if replies_wait {
            self.transmit_replies(link, now, budget_frames, &mut device, sink);
        }
        // No socket has more turns in a pass than there are frames to send.
        let mut turns = self.schedule.ready_count(link) + budget_frames;
        // Where frames are large, fewer of them: what one pass sends stays in the cache until it is acknowledged.
        let budget_bytes = budget_frames as u64 * PASS_BYTES_A_FRAME;
        while device.frames < budget_frames && device.bytes < budget_bytes && !device.full && turns > 0 {
            let Some(place) = self.schedule.first_ready(link) else { break };
            turns -= 1;
            self.turn(link, place, now, budget_frames, &mut device, sink);
        }
        let Counting { frames, bytes, full, .. } = device;
        if let Some(link) = self.links.get_mut(usize::from(link.0)) {
            link.counters.sent_frames += frames as u64;
            link.counters.sent_bytes += bytes;
        }
        if wanted {
            for length_bytes in lengths.drain(..) {
                sink.emit(Mask::LINK, now, || Event::FrameSent(FrameSent { link, length_bytes }));
            }
            self.sent_lengths = lengths;
        }
        Transmitted { frames, more: more || self.has_output(link), device_full: full }
    }

    /// Gives the first socket in the list its turn and puts it where it then belongs.
    fn turn(
        &mut self,
        link: LinkId,
        place: usize,
        now: Instant,
        budget_frames: usize,
        device: &mut Counting<'_>,
        sink: &mut dyn Sink,
    ) {
        self.schedule.take_sending(place);
        let Some(socket) = self.sockets.at_place(place) else { return };
        let left = budget_frames - device.frames;
        let is_alone = !self.schedule.has_ready(link);
        let budget = match device.offers.tcp_v4 {
            true if is_alone => left.max(LARGE_SEGMENTS_PER_TURN),
            true => LARGE_SEGMENTS_PER_TURN,
            false if is_alone => left,
            false => left.min(SEGMENTS_PER_TURN),
        };
        let before = device.frames;
        let turn = match self.sockets.typed(socket) {
            Some(AnySocketId::Tcp(id)) => self.flow_turn(link, id, now, budget, device, sink),
            Some(AnySocketId::Udp(id)) => UdpSockets::new(self).turn(link, id, now, budget, device, sink),
            Some(AnySocketId::Echo(id)) => EchoSockets::new(self).turn(link, id, now, budget, device, sink),
            Some(AnySocketId::Probe(id)) => ProbeSockets::new(self).turn(link, id, now, budget, device, sink),
            Some(AnySocketId::Listener(_)) | None => Turn::Done,
        };
        if self.sockets.any(socket).is_none() {
            return;
        }
        // Whoever queued itself meanwhile, elsewhere for instance after a change of route, stays there.
        match turn {
            Turn::Done => {}
            Turn::More if !self.schedule.is_sending(place) => {
                self.schedule.make_ready(link, place);
            }
            // It had its turn, as far as the device went; at the front it would have every turn of a slow device.
            Turn::Full if device.frames > before => self.schedule.make_ready(link, place),
            Turn::Full => self.schedule.make_ready_first(link, place),
            Turn::Pending => {
                if let Some(neighbour) = self.next_hop_of(socket) {
                    self.schedule.wait_for_neighbour(link, neighbour, place);
                }
            }
            Turn::Unreachable => self.schedule.back_off(link, place, now),
            Turn::More => {}
        }
    }

    fn flow_turn(
        &mut self,
        link: LinkId,
        key: TcpSocketId,
        now: Instant,
        budget: usize,
        device: &mut Counting<'_>,
        sink: &mut dyn Sink,
    ) -> Turn {
        if let Err(why) = self.refresh_way(key, now, sink) {
            return self.flow_unreachable(key, why != RouteError::Tentative, now, sink);
        }
        let Some(flow) = self.sockets.tcp_mut(key) else { return Turn::Done };
        if flow.link() != link {
            self.schedule.make_ready(flow.link(), key.place());
            return Turn::Done;
        }
        let path = flow.path();
        let link_header = match self.ip.resolve(&path, &mut ip_environment!(self, now, sink)) {
            Resolution::Ready(link_header) => link_header,
            Resolution::Pending => return Turn::Pending,
            Resolution::Failed => return self.flow_unreachable(key, true, now, sink),
        };
        let mut how = HeaderHow::new(protocol::TCP);
        how.dont_fragment = !flow.has(ConnectionFlags::FRAGMENTS);
        how.dscp_ecn = flow.traffic_class();
        // spec: RFC9293 MUST-49
        how.hop_limit = flow.hop_limit();
        let (local_port, remote_port) = (flow.local().port, flow.remote().port);
        let options = if flow.is_routed() { self.routed_options(key, &path, now) } else { None };
        let runs = self.links.get(usize::from(link.0)).is_none_or(|link| link.runs);
        let Some(flow) = self.sockets.tcp_mut(key) else { return Turn::Done };
        let mut output = Segments {
            ip: &mut self.ip,
            device,
            path: &path,
            link_header,
            how,
            options: options.as_ref(),
            local_port,
            remote_port,
            runs,
        };
        let mut environment = tcp_environment!(self, now, key, sink);
        let before = output.device.frames;
        let outcome = flow.connection_mut().transmit(&mut environment, budget, &mut output);
        let stuck = output.device.frames == before;
        let more = flow.connection().wants_transmit(now);
        self.apply(key, outcome, now, sink);
        match more {
            _ if device.full => Turn::Full,
            // A segment that cannot be made, whatever the reason, must not keep the driver busy.
            true if stuck => Turn::Unreachable,
            true => Turn::More,
            false => Turn::Done,
        }
    }

    /// Asks for the route again when the tables have changed since.
    fn refresh_way(&mut self, key: TcpSocketId, now: Instant, sink: &mut dyn Sink) -> Result<(), RouteError> {
        let generation = self.ip.generation();
        let Some(flow) = self.sockets.tcp_mut(key) else { return Ok(()) };
        if flow.has_path_of(generation) {
            return Ok(());
        }
        let (remote, local) = (flow.remote().address, flow.local().address);
        // Whoever called through another gateway than the preferred one is answered through it while it lives.
        let gateway = flow.listener().map(|_| flow.path().next_hop);
        // spec: RFC9293 MUST-45
        let bound = flow.bound_link();
        let path = match self.source_routes.of(key.place()) {
            Some(route) => self.ip.route_by(&route, remote, Some(local), bound, now)?,
            None => self.ip.route_through(gateway, remote, Some(local), bound, now)?,
        };
        let Some(flow) = self.sockets.tcp_mut(key) else { return Ok(()) };
        let shrunk_or_grown = path.payload_limit_bytes() != flow.path().payload_limit_bytes();
        flow.set_path(&path);
        if shrunk_or_grown {
            let mut environment = tcp_environment!(self, now, key, sink);
            flow.connection_mut().set_path_mtu_mss(segment_limit(&path), &mut environment);
        }
        Ok(())
    }

    /// Tells a connection that its first hop does not answer: that ends an attempt to open, and nothing else.
    fn flow_unreachable(
        &mut self,
        key: TcpSocketId,
        ends_opening: bool,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Turn {
        let Some(flow) = self.sockets.tcp_mut(key) else { return Turn::Done };
        if flow.is_opening() && !ends_opening {
            return Turn::Unreachable;
        }
        let outcome = flow.connection_mut().cannot_leave(&mut tcp_environment!(self, now, key, sink));
        self.apply(key, outcome, now, sink);
        Turn::Unreachable
    }

    fn transmit_replies(
        &mut self,
        link: LinkId,
        now: Instant,
        budget_frames: usize,
        device: &mut Counting<'_>,
        sink: &mut dyn Sink,
    ) {
        while device.frames < budget_frames && !device.full {
            let Some(reply) = self.replies.pop(link) else { return };
            let Reply { path, header } = reply;
            match self.ip.resolve(&path, &mut ip_environment!(self, now, sink)) {
                Resolution::Pending => self.replies.park(reply),
                Resolution::Failed => {}
                Resolution::Ready(link_header) => {
                    let mut output = Segments {
                        ip: &mut self.ip,
                        device,
                        path: &path,
                        link_header,
                        how: HeaderHow { dont_fragment: true, ..HeaderHow::new(protocol::TCP) },
                        options: None,
                        local_port: header.source_port,
                        remote_port: header.destination_port,
                        runs: self.links.get(usize::from(link.0)).is_none_or(|link| link.runs),
                    };
                    match output.segment(&header, Slices::EMPTY, Ecn::NotCapable) {
                        Ok(()) => self.counters.resets_sent += u64::from(header.flags.rst()),
                        Err(Blocked::Link) if device.full => self.replies.put_back(reply),
                        Err(Blocked::Link) => {}
                    }
                }
            }
        }
    }
}
