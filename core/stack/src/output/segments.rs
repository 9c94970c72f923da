//! Emission of segments as frames: headers are written once, the payload is lent.

use crate::output::device::Counting;
use inhost_buf::{Device, Frame, Full, GsoType, Offload, Shareable, Slices};
use inhost_ip::{HeaderHow, HeaderOptions, Ip, LinkHeader, Path};
use inhost_tcp::{Ecn, Header, PlainHeader, SegmentOutput};
use inhost_wire::checksum::{Sum, pseudo_header};
use inhost_wire::offload::{Segmenter, TCP_CHECKSUM_OFFSET, sum_of};
use inhost_wire::packet::{FlowHeader, WrittenHeaders};
use inhost_wire::{ethernet, ipv4, protocol, tcp};

/// The most payload of a large frame: a packet is at most 65,535 bytes long, headers with all options included.
const GSO_MAX_BYTES: u32 = (u16::MAX as usize - IP_BYTES - tcp::MAX_LENGTH) as u32;
/// Room for the largest headers: link, IP and TCP with all options.
const HEADERS_BYTES: usize = ethernet::LENGTH + IP_BYTES + tcp::MAX_LENGTH;
/// Room for the largest headers with nothing out of the ordinary: link, IPv6 and TCP with timestamps.
const PLAIN_BYTES: usize = 96;
/// The longest IP header: IPv4 with all options, which is more than IPv6.
const IP_BYTES: usize = ipv4::LENGTH + ipv4::MAX_OPTIONS_BYTES;

/// What the headers of all segments of one sender have in common.
#[derive(Clone, Copy)]
pub(crate) struct CommonHeader<'a> {
    pub(crate) path: &'a Path,
    pub(crate) link_header: LinkHeader,
    pub(crate) how: HeaderHow,
    pub(crate) options: Option<&'a HeaderOptions>,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
}

/// Puts link and IP headers before segments and gives them to the device: each header is written once, and the payload
/// is not copied.
pub(crate) struct Segments<'a, 'b> {
    ip: &'a mut Ip,
    device: &'a mut Counting<'b>,
    common: &'a CommonHeader<'a>,
    /// See [`inhost_ip::InterfaceConfig::gso`].
    gso: bool,
}

impl<'a, 'b> Segments<'a, 'b> {
    #[inline(always)]
    pub(crate) fn new(
        ip: &'a mut Ip,
        device: &'a mut Counting<'b>,
        common: &'a CommonHeader<'a>,
        gso: bool,
    ) -> Segments<'a, 'b> {
        Segments { ip, device, common, gso }
    }
}

impl Segments<'_, '_> {
    /// Writes all headers of a segment with `payload_bytes` to the front of `scratch`, the checksum apart. Returns the
    /// length of the link header and the written headers.
    // spec: RFC9293 SHLD-22
    fn headers(
        &mut self,
        header: &Header,
        payload_bytes: usize,
        ecn: Ecn,
        scratch: &mut [u8; HEADERS_BYTES],
    ) -> Option<(usize, WrittenHeaders)> {
        let tcp_bytes = header.length();
        let how = HeaderHow { dscp_ecn: self.common.how.dscp_ecn | ecn.bits(), ..self.common.how };
        let segment_bytes = tcp_bytes + payload_bytes;
        let CommonHeader { path, link_header, options, .. } = *self.common;
        let transport = self.ip.header_with(path, link_header, &how, options, segment_bytes, scratch);
        let place = scratch.get_mut(transport..transport + tcp_bytes)?;
        if transport == 0 || header.emit(place) != tcp_bytes {
            return None;
        }
        let (ports, _) = place.split_first_chunk_mut::<4>()?;
        ports[..2].copy_from_slice(&self.common.local_port.to_be_bytes());
        ports[2..].copy_from_slice(&self.common.remote_port.to_be_bytes());
        let front = link_header.bytes().len();
        let pseudo_sum = pseudo_header(path.source, path.destination, protocol::TCP, segment_bytes as u32);
        let (ip_bytes, header_bytes) = (transport - front, transport - front + tcp_bytes);
        Some((front, WrittenHeaders { ip_bytes, header_bytes, pseudo_sum, header_sum: Sum::of(place) }))
    }
    /// Writes the headers without IP options, with the given `emit`. Returns the length of the link header and the
    /// written headers.
    #[inline(always)]
    fn direct_headers(
        &self,
        ecn: Ecn,
        scratch: &mut [u8],
        emit: impl FnOnce(FlowHeader, &mut [u8]) -> Option<WrittenHeaders>,
    ) -> Option<(usize, WrittenHeaders)> {
        // Something may be to be asked of IP.
        if !self.takes_gso() || self.common.how.flow_label != 0 {
            return None;
        }
        let link = self.common.link_header.bytes();
        let ends = FlowHeader {
            source: self.common.path.source,
            destination: self.common.path.destination,
            source_port: self.common.local_port,
            destination_port: self.common.remote_port,
            dscp_ecn: self.common.how.dscp_ecn | ecn.bits(),
            hop_limit: self.common.how.hop_limit.unwrap_or(self.common.path.hop_limit).max(1),
        };
        scratch.get_mut(..link.len())?.copy_from_slice(link);
        let written = emit(ends, scratch.get_mut(link.len()..)?)?;
        Some((link.len(), written))
    }
    /// A segment, or with `gso_bytes` several, behind such headers, which stand `front` bytes after the beginning of
    /// `scratch`.
    // spec: RFC9293 MUST-2
    #[inline(always)]
    fn framed<'f>(
        &self,
        front: usize,
        written: &WrittenHeaders,
        payload: Slices<'f>,
        gso_bytes: Option<u16>,
        scratch: &'f mut [u8],
    ) -> Frame<'f> {
        let (transport, end) = (front + written.ip_bytes, front + written.header_bytes);
        let transport_offset = transport as u16;
        let (field, offload) = if let Some(segment_bytes) = gso_bytes {
            let offload = Offload::Segment { of: self.kind(), segment_bytes, transport_offset };
            (written.pseudo_sum.folded(), offload)
        } else if self.device.offers().checksum {
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
    fn through_ip(&mut self, header: &Header, payload: Slices<'_>, ecn: Ecn) -> Result<(), Full> {
        let mut scratch = [0; HEADERS_BYTES];
        let (front, written) = self.headers(header, payload.len(), ecn, &mut scratch).ok_or(Full)?;
        let frame = self.framed(front, &written, payload, None, &mut scratch);
        self.device.transmit(&frame)
    }
    /// Whether GSO is possible: the segments differ in nothing that only IP knows.
    fn takes_gso(&self) -> bool {
        self.gso && self.common.how.dont_fragment && self.common.options.is_none()
    }
    fn kind(&self) -> GsoType {
        if self.common.path.destination.is_ipv4() { GsoType::TcpV4 } else { GsoType::TcpV6 }
    }
}

impl SegmentOutput for Segments<'_, '_> {
    // spec: RFC9293 MUST-2
    fn segment(&mut self, header: &Header, payload: Slices<'_>, ecn: Ecn) -> Result<(), Full> {
        if let Some(plain) = header.plain() {
            return self.plain(&plain, payload, ecn);
        }
        let mut scratch = [0; HEADERS_BYTES];
        let any = |ends: FlowHeader, place: &mut [u8]| ends.emit_any(header, payload.len(), place);
        match self.direct_headers(ecn, &mut scratch, any) {
            Some((front, written)) => {
                let frame = self.framed(front, &written, payload, None, &mut scratch);
                self.device.transmit(&frame)
            }
            None => self.through_ip(header, payload, ecn),
        }
    }
    #[inline]
    fn plain(&mut self, header: &PlainHeader, payload: Slices<'_>, ecn: Ecn) -> Result<(), Full> {
        let mut scratch = [0; PLAIN_BYTES];
        match self.direct_headers(ecn, &mut scratch, |ends, place| ends.emit(header, payload.len(), place)) {
            Some((front, written)) => {
                let frame = self.framed(front, &written, payload, None, &mut scratch);
                self.device.transmit(&frame)
            }
            None => self.through_ip(&header.full(), payload, ecn),
        }
    }
    fn shared(
        &mut self,
        header: &Header,
        payload: Slices<'_>,
        shareable: Shareable<'_>,
        ecn: Ecn,
    ) -> Result<(), Full> {
        let mut scratch = [0; PLAIN_BYTES];
        let emit = |ends: FlowHeader, place: &mut [u8]| ends.emit(&header.plain()?, payload.len(), place);
        match self.direct_headers(ecn, &mut scratch, emit) {
            Some((front, written)) => {
                let frame = self.framed(front, &written, payload, None, &mut scratch);
                self.device.transmit_shared(&frame, shareable)
            }
            None => self.segment(header, payload, ecn),
        }
    }
    fn wants_sums(&self) -> bool {
        !self.device.offers().checksum
    }
    fn shares(&self) -> bool {
        self.device.offers().sharing
    }
    fn large_bytes(&self) -> u32 {
        if self.takes_gso() { GSO_MAX_BYTES } else { 0 }
    }
    fn large(
        &mut self,
        header: &Header,
        payload: Slices<'_>,
        segment_bytes: u16,
        sums: &[Option<u16>],
        ecn: Ecn,
    ) -> Result<u32, Full> {
        let mut scratch = [0; HEADERS_BYTES];
        let emit = |ends: FlowHeader, place: &mut [u8]| ends.emit(&header.plain()?, payload.len(), place);
        let plain = self.direct_headers(ecn, &mut scratch, emit);
        let made = plain.or_else(|| self.headers(header, payload.len(), ecn, &mut scratch));
        let (front, written) = made.ok_or(Full)?;
        let frame = self.framed(front, &written, payload, Some(segment_bytes), &mut scratch);
        if self.device.offers().cuts(self.kind()) {
            self.device.transmit(&frame)?;
            return Ok(payload.len() as u32);
        }
        let segmenter = Segmenter::new(&frame, front).ok_or(Full)?;
        let taken = segmenter.transmit(sums, usize::MAX, self.device)?;
        Ok((taken * usize::from(segment_bytes)).min(payload.len()) as u32)
    }
}
