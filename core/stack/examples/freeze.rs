//! A host that is frozen in the middle of its connections and goes on from the bytes, and how many bytes that are.
//!
//! ```text
//! $ cargo run -q -p inhost-stack --features freeze --example freeze
//! a host without a connection                   7496 bytes
//! 1 established                                 7723 bytes
//! 1000 established                            241262 bytes
//! 1000 idle for two minutes                   241263 bytes
//! and 65536 bytes to be sent                  307259 bytes
//! 65536 bytes arrived from the thawed host
//! ```

use inhost_stack::{
    Batch, Cidr, ConnectOptions, Device, Duration, Endpoint, Frame, Full, Ignore, Instant, InterfaceConfig,
    Ipv4Addr, LinkId, ListenOptions, Medium, Stack, StackConfig, TcpSocketId,
};

/// Most memory that the packets of a thawed host may take.
const MEMORY_BYTES: usize = 64 << 20;

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
    let port = Endpoint::new(Ipv4Addr::new(10, 0, 0, 2), 7);
    let mut options = ListenOptions::default();
    (options.backlog, options.syn_queue) = (1000, 1000);
    let listener = there.tcp(now, &mut Ignore).listen(port, options)?;
    size("a host without a connection", &here)?;

    let mut calls: Vec<TcpSocketId> = Vec::new();
    for count in [1, 1000] {
        while calls.len() < count {
            calls.push(here.tcp(now, &mut Ignore).connect(port, ConnectOptions::default())?);
        }
        pass(&mut here, &mut there, link, &mut now, Duration::from_secs(2));
        size(&format!("{count} established"), &here)?;
    }
    // What a connection keeps for quick answers goes when it is idle.
    pass(&mut here, &mut there, link, &mut now, Duration::from_secs(120));
    size("1000 idle for two minutes", &here)?;
    let sent = here.tcp(now, &mut Ignore).send(calls[0], &[7; 100_000])?;
    size(&format!("and {sent} bytes to be sent"), &here)?;

    // Another process would go on from here, with the bytes, the identifier and a clock that shows `now` at least.
    let bytes = here.freeze()?;
    drop(here);
    let mut here = Stack::thaw(&bytes, MEMORY_BYTES)?;
    pass(&mut here, &mut there, link, &mut now, Duration::from_secs(2));
    let mut arrived = 0;
    let mut place = [0; 4096];
    while let Some(accepted) = there.tcp(now, &mut Ignore).accept(listener)? {
        while let Ok(count @ 1..) = there.tcp(now, &mut Ignore).read(accepted.socket, &mut place) {
            arrived += count;
            pass(&mut here, &mut there, link, &mut now, Duration::from_millis(20));
        }
    }
    println!("{arrived} bytes arrived from the thawed host");
    Ok(())
}

fn size(what: &str, host: &Stack) -> Result<(), inhost_stack::FreezeError> {
    println!("{what:<40} {:>9} bytes", host.freeze()?.len());
    Ok(())
}

fn host(number: u8, now: Instant) -> Result<(Stack, LinkId), Box<dyn std::error::Error>> {
    let mut stack = Stack::new(StackConfig::default(), [number; 32], now);
    let cidr = Cidr::new(Ipv4Addr::new(10, 0, 0, number), 24)?;
    let link = stack.add_link(InterfaceConfig::new("wire", Medium::Ip).with_address(cidr), now)?;
    Ok((stack, link))
}

/// Lets time pass on both hosts.
fn pass(here: &mut Stack, there: &mut Stack, link: LinkId, now: &mut Instant, time: Duration) {
    let end = *now + time;
    while *now < end {
        carry(here, there, link, *now);
        carry(there, here, link, *now);
        *now += Duration::from_millis(10);
    }
}

/// A round of `from`, whose frames go to `to`.
fn carry(from: &mut Stack, to: &mut Stack, link: LinkId, now: Instant) {
    from.timeout(now, &mut Ignore);
    let mut wire = Wire::default();
    while from.transmit(link, now, 64, &mut wire, &mut Ignore).more {}
    for frame in wire.0 {
        let Some(mut packet) = to.pool().take(frame.len()) else { continue };
        packet.append(&frame);
        let mut batch = Batch::new();
        let _ = batch.push(packet);
        to.receive(link, &mut batch, now, &mut Ignore);
    }
}
