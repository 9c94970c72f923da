//! The kernel's own sockets at one end of a veth pair, or of the loopback; the kernel is at the other end, too.

use crate::answer::Answer;
use crate::bodies;
use inhost_runtime::Clock;
use rustix::net::sockopt::set_tcp_congestion;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

pub const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const PIECE_BYTES: usize = 128 << 10;
/// The kernel's own default may be one that halves its local rate.
pub const CONGESTION: &str = "cubic";

/// `veth-offload:send` and similar subjects.
pub fn measure(link: &str, load: &str, length: Duration) -> Result<Answer, String> {
    let clock = Clock::start();
    let until = clock.now() + length.into();
    let settings = match link {
        "lo-offload" => "loopback, CUBIC, buffers as they size themselves",
        "veth-offload" => "veth, CUBIC, buffers as they size themselves, segmentation left to the far end",
        _ => {
            "veth, CUBIC, buffers as they size themselves, one segment at a time, checksums left to the far end"
        }
    };
    let answer = Answer::new(settings);
    let port = match load {
        "connect" => return connect(answer, clock, length),
        "consume" => return crate::consume::kernels(answer, clock, until),
        "bodies" => return bodies::kernels(answer),
        "send" => 9,
        "receive" => 10,
        "echo" | "echo-cores" => 7,
        _ => return Err(format!("{load:?} is not a load")),
    };
    let mut stream = TcpStream::connect((KERNEL, port)).map_err(|e| e.to_string())?;
    set_tcp_congestion(&stream, CONGESTION).map_err(|e| e.to_string())?;
    stream.set_nodelay(true).map_err(|e| e.to_string())?;
    let mut place = vec![0x5a; PIECE_BYTES];
    if port == 7 {
        let mut each = Vec::with_capacity(1 << 20);
        let mut last = clock.now();
        while last < until {
            stream.write_all(b"x").map_err(|e| e.to_string())?;
            stream.read_exact(&mut place[..1]).map_err(|e| e.to_string())?;
            let now = clock.now();
            each.push(now.since(last).as_nanos() as f64 / 1e3);
            last = now;
        }
        let (p50, p99) =
            crate::echo::percentiles(each.split_off(each.len() / 5)).ok_or("too few round trips")?;
        return Ok(answer.with("p50", p50).with("p99", p99));
    }
    while clock.now() < until {
        let moved = if load == "send" { stream.write(&place) } else { stream.read(&mut place) };
        match moved {
            // The kernel's end is stopped when all is counted.
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    Ok(answer)
}

/// Calls, and waits until the other end has closed, again and again.
fn connect(answer: Answer, clock: Clock, length: Duration) -> Result<Answer, String> {
    let began = clock.now();
    let mut count = 0u32;
    let mut place = [0; 16];
    while clock.now().since(began) < length.into() {
        let mut stream = TcpStream::connect((KERNEL, 11)).map_err(|e| e.to_string())?;
        // The end of the stream, or a reset where it comes first.
        let _ = stream.read(&mut place);
        count += 1;
    }
    Ok(answer.with("rate", f64::from(count) / clock.now().since(began).as_secs_f64()))
}
