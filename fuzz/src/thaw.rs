//! Bytes that claim to be a frozen stack: they are refused, or give a stack that works without a panic.

use inhost_stack::wire::ipv4::Ipv4Header;
use inhost_stack::wire::protocol;
use inhost_stack::wire::tcp::{Flags, Segment};
use inhost_stack::{
    Batch, Bytes, ConnectOptions, Device, Duration, Endpoint, Frame, Full, Ignore, Instant, IpAddr, Ipv4Addr,
    LinkId, ListenOptions, SendDatagrams, SendHow, SocketKind, Stack, TcpSocketId, UdpOptions,
};

/// Most memory for the packets of a thawed stack.
const MEMORY_BYTES: usize = 8 << 20;
/// Rounds that a thawed stack makes.
const ROUNDS: u64 = 12;

/// The body of a frozen stack, whatever it is, behind a header that is right; and as it stands, with its own header.
pub fn thaw(body: &[u8]) {
    let sealed = Stack::seal_frozen(body);
    for bytes in [&sealed, body] {
        if let Ok(stack) = Stack::thaw(bytes, MEMORY_BYTES) {
            drive(stack);
        }
    }
    if let Ok(stack) = Stack::fork(&sealed, MEMORY_BYTES, [9; 32]) {
        drive(stack);
    }
}

/// Keeps the frames that it has room for.
struct Kept(Vec<Vec<u8>>, usize);

impl Device for Kept {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        if self.0.len() >= self.1 {
            return Err(Full);
        }
        let mut bytes = vec![0; frame.len()];
        frame.write_to(&mut bytes);
        self.0.push(bytes);
        Ok(())
    }
}

/// Uses a stack in every way that an application, a peer and a clock can.
pub fn drive(mut stack: Stack) {
    let mut now = stack.instruments().now();
    let links: Vec<LinkId> = stack.links().collect();
    for round in 0..ROUNDS {
        for &link in &links {
            receive(&mut stack, link, round, now);
        }
        stack.timeout(now, &mut Ignore);
        while stack.ready().is_some() {}
        use_sockets(&mut stack, round, now);
        for &link in &links {
            let mut kept = Kept(Vec::new(), if round == 3 { 1 } else { 64 });
            stack.transmit(link, now, 64, &mut kept, &mut Ignore);
            if round % 2 == 0 {
                kept.0.iter().for_each(|frame| give(&mut stack, link, frame, now));
            }
        }
        let soon = now + Duration::from_millis(1 << round);
        now = soon.max(stack.deadline().unwrap_or(soon).min(soon + Duration::from_secs(round * 20)));
    }
    let _ = stack.freeze();
    let all: Vec<_> = stack.instruments().sockets(now).map(|info| info.socket).collect();
    for socket in all {
        let _ = stack.close(socket, now, &mut Ignore);
    }
    stack.timeout(now + Duration::from_secs(600), &mut Ignore);
}

fn give(stack: &mut Stack, link: LinkId, frame: &[u8], now: Instant) {
    let Some(mut packet) = stack.pool().take(frame.len()) else { return };
    packet.append(frame);
    let mut batch = Batch::new();
    let _ = batch.push(packet);
    stack.receive(link, &mut batch, now, &mut Ignore);
}

/// Segments for each connection from its peer: data in order and out of order, acknowledgments old, new and selective,
/// and at last its end.
fn receive(stack: &mut Stack, link: LinkId, round: u64, now: Instant) {
    let infos: Vec<_> = stack.instruments().sockets(now).collect();
    for info in infos {
        let (local, Some(remote)) = (info.local, info.remote) else {
            syn(stack, link, info.local, now);
            continue;
        };
        if info.kind == SocketKind::Udp {
            let body = [&remote.port.to_be_bytes()[..], &local.port.to_be_bytes(), &[0, 12, 0, 0], b"data"];
            packet(stack, link, (remote.address, local.address), protocol::UDP, &body.concat(), now);
            continue;
        }
        let Some(tcp) = info.tcp else { continue };
        let payload = [7; 600];
        let (next, una) = (tcp.receive_next, tcp.send_unacknowledged);
        let mut segment = Segment {
            source_port: remote.port,
            destination_port: local.port,
            sequence: next,
            acknowledgment: una,
            flags: Flags::ACK,
            window: 8000,
            payload: &payload,
            ..Segment::default()
        };
        match round % 6 {
            0 => segment.sequence = next + 1000,
            1 => segment.acknowledgment = tcp.send_next,
            2 => (segment.acknowledgment, segment.payload) = (una + 1, &[]),
            3 => {
                segment.payload = &[];
                segment.options.sack.push((una + 600, una + 1200));
                segment.options.timestamps = Some((1, 1));
            }
            4 => segment.sequence = next + 400,
            _ => segment.flags = Flags::ACK | Flags::FIN,
        }
        if round == ROUNDS - 1 {
            segment.flags = Flags::RST | Flags::ACK;
        }
        let mut bytes = vec![0; 700];
        let length = segment.emit(remote.address, local.address, &mut bytes);
        packet(stack, link, (remote.address, local.address), protocol::TCP, &bytes[..length], now);
    }
}

fn syn(stack: &mut Stack, link: LinkId, local: Endpoint, now: Instant) {
    let (from, to) = (Ipv4Addr::new(10, 0, 0, 77), Ipv4Addr::new(10, 0, 0, 1));
    let segment = Segment {
        source_port: 1234,
        destination_port: local.port,
        flags: Flags::SYN,
        window: 8000,
        ..Segment::default()
    };
    let mut bytes = vec![0; 60];
    let length = segment.emit(from.into(), to.into(), &mut bytes);
    packet(stack, link, (from.into(), to.into()), protocol::TCP, &bytes[..length], now);
}

fn packet(
    stack: &mut Stack,
    link: LinkId,
    (from, to): (IpAddr, IpAddr),
    number: u8,
    body: &[u8],
    now: Instant,
) {
    let (IpAddr::V4(from), IpAddr::V4(to)) = (from, to) else { return };
    let mut frame = vec![0; 20];
    Ipv4Header::new(from, to, number, body.len() as u16).emit(&mut frame);
    frame.extend_from_slice(body);
    give(stack, link, &frame, now);
    // Of an Ethernet, from the card that tests use.
    let mut on_ethernet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    on_ethernet.extend_from_slice(&frame);
    give(stack, link, &on_ethernet, now);
}

fn use_sockets(stack: &mut Stack, round: u64, now: Instant) {
    let infos: Vec<_> = stack.instruments().sockets(now).map(|info| info.socket).collect();
    let mut place = [0; 3000];
    for socket in infos {
        match stack.typed(socket) {
            Some(inhost_stack::AnySocketId::Tcp(tcp)) => use_connection(stack, tcp, round, now),
            Some(inhost_stack::AnySocketId::Listener(listener)) => {
                if let Ok(Some(accepted)) = stack.tcp(now, &mut Ignore).accept(listener) {
                    let _ = stack.tcp(now, &mut Ignore).proceed(accepted.socket);
                }
            }
            Some(inhost_stack::AnySocketId::Udp(udp)) => {
                let to = Endpoint::new(Ipv4Addr::new(10, 0, 0, 2), 9);
                let _ = stack.udp(now, &mut Ignore).send_with(udp, b"data", &SendDatagrams::to(to));
                let _ = stack.udp(now, &mut Ignore).receive_from(udp, &mut place);
            }
            Some(inhost_stack::AnySocketId::Echo(echo)) => {
                let _ = stack.echo(now, &mut Ignore).send(
                    echo,
                    Ipv4Addr::new(10, 0, 0, 2).into(),
                    round as u16,
                    b"?",
                );
                let _ = stack.echo(now, &mut Ignore).receive(echo, &mut place);
            }
            Some(inhost_stack::AnySocketId::Probe(probe)) => {
                let _ = stack.probe(now, &mut Ignore).receive(probe);
            }
            None => {}
        }
    }
    if round == 1 {
        let to = Endpoint::new(Ipv4Addr::new(10, 0, 0, 2), 23);
        let _ = stack.tcp(now, &mut Ignore).connect(to, ConnectOptions::default());
        let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 0);
        let _ = stack.tcp(now, &mut Ignore).listen(any, ListenOptions::default());
        let _ = stack.udp(now, &mut Ignore).bind(any, UdpOptions::default());
        let _ = stack.echo(now, &mut Ignore).open();
    }
}

fn use_connection(stack: &mut Stack, tcp: TcpSocketId, round: u64, now: Instant) {
    let mut place = [0; 3000];
    let _ = stack.tcp(now, &mut Ignore).peek(tcp, &mut place);
    match round % 3 {
        0 => {
            let _ = stack.tcp(now, &mut Ignore).send_with(tcp, &[1; 5000], SendHow::default());
        }
        1 => {
            let _ = stack.tcp(now, &mut Ignore).lend(
                tcp,
                &mut Bytes::from_static(&[2; 9000]),
                SendHow::default(),
            );
        }
        _ => {}
    }
    let _ = stack.tcp(now, &mut Ignore).read(tcp, &mut place);
    if round == ROUNDS - 2 {
        let _ = stack.tcp(now, &mut Ignore).shutdown(tcp);
    }
}
