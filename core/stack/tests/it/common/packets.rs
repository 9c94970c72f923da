//! One host, spoken to in packets.

use super::{LINK, address, interface};
use inhost_base::{Duration, Endpoint, Instant, IpAddr, Sequence};
use inhost_buf::{Batch, Device, Frame, Full};
use inhost_event::Ignore;
use inhost_stack::{Medium, Stack, StackConfig};
use inhost_wire::icmpv4::Icmpv4Message;
use inhost_wire::ipv4::{self, Ipv4Header, Ipv4View};
use inhost_wire::ipv6::{self, Ipv6Header};
use inhost_wire::protocol;
use inhost_wire::tcp::{Flags, Segment, TcpHeader, TcpView};
use inhost_wire::udp::{UdpHeader, UdpView};

/// Keeps what is sent.
#[derive(Default)]
pub struct Kept(pub Vec<Vec<u8>>);

impl Device for Kept {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let mut bytes = vec![0; frame.len()];
        frame.write_to(&mut bytes).unwrap();
        self.0.push(bytes);
        Ok(())
    }
}

/// Host 10.0.0.1 on a bare IP link; the test plays 10.0.0.2 and everybody else.
pub struct SingleHost {
    pub stack: Stack,
    pub now: Instant,
    pub sent: Vec<Vec<u8>>,
}

/// A segment that the host sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub from: Endpoint,
    pub to: Endpoint,
    pub header: TcpHeader,
    pub payload: Vec<u8>,
}

impl SingleHost {
    pub fn new() -> SingleHost {
        SingleHost::with(StackConfig::default(), |config| config)
    }
    pub fn with(
        config: StackConfig,
        change: impl FnOnce(inhost_stack::InterfaceConfig) -> inhost_stack::InterfaceConfig,
    ) -> SingleHost {
        let now = Instant::from_millis(5_000);
        let mut stack = Stack::new(config, [3; 32], now);
        stack.add_link(change(interface(0, Medium::Ip)), now).unwrap();
        let mut host = SingleHost { stack, now, sent: Vec::new() };
        // What the link says of its own accord when it comes up.
        host.flush();
        host.pass(Duration::from_secs(10));
        host.sent.clear();
        host
    }
    pub fn deliver(&mut self, frame: &[u8]) {
        let mut packet = self.stack.pool().take(frame.len()).unwrap();
        packet.append(frame);
        let mut batch = Batch::new();
        batch.push(packet).unwrap();
        self.stack.receive(LINK, &mut batch, self.now, &mut Ignore);
        self.flush();
    }
    pub fn flush(&mut self) {
        let mut kept = Kept::default();
        while self.stack.transmit(LINK, self.now, 100, &mut kept, &mut Ignore).more {}
        self.sent.append(&mut kept.0);
    }
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(deadline) = self.stack.deadline().filter(|&deadline| deadline <= end) {
            self.now = self.now.max(deadline);
            self.stack.timeout(self.now, &mut Ignore);
            self.flush();
        }
        self.now = end;
    }
    /// A segment from one end to another, checksummed.
    pub fn segment(&mut self, from: Endpoint, to: Endpoint, header: TcpHeader, payload: &[u8]) {
        let frame = segment_frame(from, to, header, payload);
        self.deliver(&frame);
    }
    pub fn datagram(&mut self, from: Endpoint, to: Endpoint, payload: &[u8]) {
        let mut body = vec![0; 8 + payload.len()];
        let header = UdpHeader { source_port: from.port, destination_port: to.port };
        assert_ne!(header.emit_datagram(from.address, to.address, payload, &mut body), 0);
        let frame = ip_frame(from.address, to.address, protocol::UDP, &body);
        self.deliver(&frame);
    }
    /// An ICMP message from `from` to the host.
    pub fn icmp(&mut self, from: IpAddr, message: &[u8]) {
        let frame = ip_frame(from, address(0), protocol::ICMPV4, message);
        self.deliver(&frame);
    }
    /// The TCP segments sent since the last look.
    pub fn segments(&mut self) -> Vec<Sent> {
        self.sent.drain(..).filter_map(|frame| parse_segment(&frame)).collect()
    }
    /// The only TCP segment sent since the last look.
    pub fn segment_sent(&mut self) -> Sent {
        let mut segments = self.segments();
        assert_eq!(segments.len(), 1, "{segments:?}");
        segments.remove(0)
    }
    /// The UDP datagrams sent since the last look: from, to, payload.
    pub fn datagrams(&mut self) -> Vec<(Endpoint, Endpoint, Vec<u8>)> {
        let parse = |frame: Vec<u8>| {
            let ip = Ipv4View::new(&frame).ok().filter(|ip| ip.protocol() == protocol::UDP)?;
            let udp = UdpView::new(ip.payload()).unwrap();
            assert_ne!(udp.checksum(), 0, "sent without a checksum");
            assert!(udp.checksum_ok(ip.source().into(), ip.destination().into()));
            let from = Endpoint::new(ip.source(), udp.source_port());
            Some((from, Endpoint::new(ip.destination(), udp.destination_port()), udp.payload().to_vec()))
        };
        self.sent.drain(..).filter_map(parse).collect()
    }
    /// The ICMP messages sent since the last look.
    pub fn messages(&mut self) -> Vec<Vec<u8>> {
        let parse = |frame: Vec<u8>| {
            let ip = Ipv4View::new(&frame).ok().filter(|ip| ip.protocol() == protocol::ICMPV4)?;
            Some(ip.payload().to_vec())
        };
        self.sent.drain(..).filter_map(parse).collect()
    }
}

pub fn ip_frame(from: IpAddr, to: IpAddr, protocol: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            frame.resize(ipv4::LENGTH, 0);
            Ipv4Header::new(from, to, protocol, body.len() as u16).emit(&mut frame);
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            frame.resize(ipv6::LENGTH, 0);
            Ipv6Header::new(from, to, protocol, body.len() as u16).emit(&mut frame);
        }
        _ => panic!("two families"),
    }
    frame.extend_from_slice(body);
    frame
}

pub fn segment_frame(from: Endpoint, to: Endpoint, header: TcpHeader, payload: &[u8]) -> Vec<u8> {
    let header = TcpHeader { source_port: from.port, destination_port: to.port, ..header };
    let segment: Segment<'_> = header.with_payload(payload);
    let mut body = vec![0; segment.length()];
    assert_eq!(segment.emit(from.address, to.address, &mut body), body.len());
    ip_frame(from.address, to.address, protocol::TCP, &body)
}

pub fn parse_segment(frame: &[u8]) -> Option<Sent> {
    let ip = Ipv4View::new(frame).ok().filter(|ip| ip.protocol() == protocol::TCP)?;
    assert!(ip.checksum_ok());
    let tcp = TcpView::new(ip.payload()).unwrap();
    assert!(tcp.checksum_ok(ip.source().into(), ip.destination().into()));
    Some(Sent {
        from: Endpoint::new(ip.source(), tcp.source_port()),
        to: Endpoint::new(ip.destination(), tcp.destination_port()),
        header: Segment::parse(&tcp).header(),
        payload: tcp.payload().to_vec(),
    })
}

/// A header with what most tests say.
pub fn header(flags: Flags, sequence: u32, acknowledgment: u32) -> TcpHeader {
    TcpHeader {
        flags,
        sequence: Sequence(sequence),
        acknowledgment: Sequence(acknowledgment),
        window: 60_000,
        ..TcpHeader::default()
    }
}

/// A message as bytes.
pub fn emit(message: &Icmpv4Message<'_>) -> Vec<u8> {
    let mut bytes = vec![0; 1500];
    let length = message.emit(&mut bytes);
    bytes.truncate(length);
    bytes
}
