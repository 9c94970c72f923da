//! A consumer of datagrams that takes a declared time for each, and says after every so many how many it has had.

use crate::answer::Answer;
use inhost_base::{Endpoint, Ipv4Addr};
use inhost_runtime::Clock;
use inhost_socket::Host;
use inhost_stack::UdpOptions;
use std::net::UdpSocket;
use std::time::Duration;

/// What each datagram costs its consumer.
const COST: Duration = Duration::from_micros(20);
const DATAGRAMS_AN_ANSWER: u64 = 32;
const PORT: u16 = 9;

/// Works for as long as it takes.
fn work(clock: Clock) {
    let began = clock.now();
    while clock.now().since(began) < COST.into() {
        std::hint::spin_loop();
    }
}

/// A task on our host.
pub async fn ours(host: &Host, clock: Clock) -> Result<(), String> {
    let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, PORT);
    let socket = host.udp(at, UdpOptions::default()).map_err(|e| e.to_string())?;
    let mut place = [0; 2048];
    for count in 1u64.. {
        let info = socket.receive_from(&mut place).await.map_err(|e| e.to_string())?;
        work(clock);
        if count % DATAGRAMS_AN_ANSWER == 0 {
            socket.send_to(&count.to_be_bytes(), info.from).await.map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// A loop on the kernel's socket.
pub fn kernels(answer: Answer, clock: Clock, until: inhost_base::Instant) -> Result<Answer, String> {
    let socket = UdpSocket::bind(("0.0.0.0", PORT)).map_err(|e| e.to_string())?;
    socket.set_read_timeout(Some(Duration::from_millis(50))).map_err(|e| e.to_string())?;
    let mut place = [0; 2048];
    let mut count = 0u64;
    while clock.now() < until {
        let Ok((_, from)) = socket.recv_from(&mut place) else { continue };
        work(clock);
        count += 1;
        if count.is_multiple_of(DATAGRAMS_AN_ANSWER) {
            socket.send_to(&count.to_be_bytes(), from).map_err(|e| e.to_string())?;
        }
    }
    Ok(answer)
}
