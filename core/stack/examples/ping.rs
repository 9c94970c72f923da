//! Two hosts on an Ethernet in one process: each finds the other by ARP, and one pings the other.
//!
//! ```text
//! $ cargo run -q -p inhost-stack --example ping
//! 10.0.0.2 answered "are you there?" after 1 ms
//! ```

use inhost_stack::{
    Batch, Cidr, Device, DuplicateDetection, Duration, Frame, Full, HardwareAddress, Ignore, Instant,
    InterfaceConfig, Ipv4Addr, LinkId, Medium, Stack, StackConfig,
};

/// The frames that one host has sent.
#[derive(Default)]
struct Wire(Vec<Vec<u8>>);

impl Device for Wire {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let mut bytes = vec![0; frame.len()];
        frame.write_to(&mut bytes);
        self.0.push(bytes);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut now = Instant::ZERO;
    let (mut here, link) = host(1, now)?;
    let (mut there, _) = host(2, now)?;
    let echo = here.echo(now, &mut Ignore).open()?;
    here.echo(now, &mut Ignore).send(echo, Ipv4Addr::new(10, 0, 0, 2).into(), 1, b"are you there?")?;

    for _ in 0..100 {
        carry(&mut here, &mut there, link, now);
        carry(&mut there, &mut here, link, now);
        let mut data = [0; 64];
        if let Ok(reply) = here.echo(now, &mut Ignore).receive(echo, &mut data) {
            let text = String::from_utf8_lossy(&data[..reply.length_bytes]);
            println!("{} answered {text:?} after {} ms", reply.from, now.as_millis());
            return Ok(());
        }
        now += Duration::from_millis(1);
    }
    Err("no answer".into())
}

fn host(number: u8, now: Instant) -> Result<(Stack, LinkId), Box<dyn std::error::Error>> {
    let mut stack = Stack::new(StackConfig::default(), [number; 32], now);
    let medium = Medium::Ethernet(HardwareAddress([2, 0, 0, 0, 0, number]));
    let mut config =
        InterfaceConfig::new("wire", medium).with_address(Cidr::new(Ipv4Addr::new(10, 0, 0, number), 24)?);
    // Otherwise the address is tested first, for some seconds (RFC 5227).
    config.duplicate_detection = DuplicateDetection::Off;
    let link = stack.add_link(config, now)?;
    Ok((stack, link))
}

/// A round of `from`, whose frames go to `to`.
fn carry(from: &mut Stack, to: &mut Stack, link: LinkId, now: Instant) {
    from.timeout(now, &mut Ignore);
    let mut wire = Wire::default();
    from.transmit(link, now, Batch::LIMIT, &mut wire, &mut Ignore);
    let mut batch = Batch::new();
    for frame in &wire.0 {
        let Some(mut packet) = to.pool().take(frame.len()) else { continue };
        packet.append(frame);
        let _ = batch.push(packet);
    }
    to.receive(link, &mut batch, now, &mut Ignore);
}
