//! Connections opened and closed, one after another, in memory: one socket at each end, used again and again.

use crate::two::Two;
use crate::{Answer, core_seconds};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{Socket, State};
use smoltcp::wire::IpAddress;
use std::time::{Duration, Instant};

pub fn bare(length: Duration) -> Result<Answer, String> {
    let mut two = Two::new(1500, false);
    let ends = two.connect(4096)?;
    close(&mut two, ends)?;
    let mut port = 49_152u16;
    let (began, core_began, mut count) = (Instant::now(), core_seconds(), 0u64);
    while began.elapsed() < length {
        for _ in 0..64 {
            port = if port == 65_535 { 49_152 } else { port + 1 };
            open(&mut two, ends, port)?;
            close(&mut two, ends)?;
            count += 1;
        }
    }
    let rate = count as f64 / (core_seconds() - core_began);
    let settings =
        "one socket at each end used again, TIME-WAIT ended by abort, random ISNs, nothing else open".into();
    Ok(Answer { settings, figures: vec![("rate", rate)] })
}

fn open(two: &mut Two, (caller, called): (SocketHandle, SocketHandle), port: u16) -> Result<(), String> {
    two.called.socket(called).listen(80).map_err(|e| e.to_string())?;
    let context = two.caller.interface.context();
    let socket = two.caller.sockets.get_mut::<Socket>(caller);
    socket.connect(context, (IpAddress::v4(10, 0, 0, 2), 80), port).map_err(|e| e.to_string())?;
    let now = two.now();
    two.caller.poll(now);
    two.called.poll(now);
    two.caller.poll(now);
    two.called.poll(now);
    match two.called.socket(called).state() {
        State::Established => Ok(()),
        other => Err(format!("the called end is in {other}")),
    }
}

fn close(two: &mut Two, (caller, called): (SocketHandle, SocketHandle)) -> Result<(), String> {
    let now = two.now();
    two.caller.socket(caller).close();
    two.caller.poll(now);
    two.called.poll_in(now);
    two.called.socket(called).close();
    two.called.poll(now);
    two.caller.poll(now);
    two.called.poll_in(now);
    if two.called.socket(called).state() != State::Closed {
        return Err(format!("the called end is in {}", two.called.socket(called).state()));
    }
    // The socket in TIME-WAIT is set free by hand; its buffers stay.
    two.caller.socket(caller).abort();
    Ok(())
}
