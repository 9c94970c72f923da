//! A consumer of datagrams that takes a declared time for each, and says after every so many how many it has had.

use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};
use std::time::{Duration, Instant};

/// What each datagram costs its consumer.
const COST: Duration = Duration::from_micros(20);
const DATAGRAMS_AN_ANSWER: u64 = 32;
const PORT: u16 = 9;
/// Datagrams, and bytes of them, that wait for the consumer.
const QUEUE: (usize, usize) = (512, 256 << 10);

pub fn socket() -> Result<Socket<'static>, String> {
    let buffer = || PacketBuffer::new(vec![PacketMetadata::EMPTY; QUEUE.0], vec![0; QUEUE.1]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.bind(PORT).map_err(|e| e.to_string())?;
    Ok(socket)
}

/// Works off what waits; whether there was anything.
pub fn all(socket: &mut Socket<'static>, count: &mut u64) -> bool {
    let before = *count;
    while let Ok((_, meta)) = socket.recv() {
        let began = Instant::now();
        while began.elapsed() < COST {
            std::hint::spin_loop();
        }
        *count += 1;
        if count.is_multiple_of(DATAGRAMS_AN_ANSWER) {
            // Without room the next answer says it all.
            let _ = socket.send_slice(&count.to_be_bytes(), meta.endpoint);
        }
    }
    *count > before
}
