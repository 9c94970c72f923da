//! The main paths, each as a loop of so many times: what callgrind counts.

use crate::holes;
use crate::pair::{FRAMES, Pair};
use inhost_event::Ignore;
use inhost_stack::TcpSocketId;

/// Payload of one segment at MTU 1500 with timestamps.
const SEGMENT_BYTES: u64 = 1448;

/// A path that is measured.
pub struct Path {
    /// Its name on the command line and in the baseline.
    pub name: &'static str,
    /// What one time is.
    pub unit: &'static str,
    /// The function whose callees alone are counted; all of the loop where empty.
    pub only: &'static str,
    /// Times of the shorter of the two runs.
    pub times: u64,
    loop_: fn(u64) -> Result<(), String>,
}

/// The function in which a host sends, here and in the peers' programs.
pub const TRANSMIT_SIDE: &str = "*transmit_side*";
/// The one in which it receives.
pub const RECEIVE_SIDE: &str = "*receive_side*";

/// The sender's side of the paths with holes.
pub const HOLES_SIDE: &str = "*sender_side_*";
/// A segment with 10,000 in flight costs at most so many times what one with 100 costs.
pub const HOLES_RATIO: (&str, &str, f64) = ("holes-10000", "holes-100", 1.2);

/// All of them, in the order of the table.
pub const PATHS: &[Path] = &[
    Path {
        name: "bulk-send",
        unit: "1448-byte segment sent",
        only: TRANSMIT_SIDE,
        times: 4_000,
        loop_: bulk,
    },
    Path {
        name: "bulk-receive",
        unit: "1448-byte segment received",
        only: RECEIVE_SIDE,
        times: 4_000,
        loop_: bulk,
    },
    Path {
        name: "bulk",
        unit: "1448-byte segment, both ends, copied in and out",
        only: "",
        times: 4_000,
        loop_: bulk,
    },
    Path {
        name: "two-send",
        unit: "1448-byte segment sent, one ACK for two",
        only: TRANSMIT_SIDE,
        times: 4_000,
        loop_: bulk_by_two,
    },
    Path {
        name: "two-receive",
        unit: "1448-byte segment received, one ACK for two",
        only: RECEIVE_SIDE,
        times: 4_000,
        loop_: bulk_by_two,
    },
    Path {
        name: "recorded-send",
        unit: "as bulk-send, with the flight recorder",
        only: TRANSMIT_SIDE,
        times: 4_000,
        loop_: bulk_recorded,
    },
    Path {
        name: "recorded-receive",
        unit: "as bulk-receive, with the flight recorder",
        only: RECEIVE_SIDE,
        times: 4_000,
        loop_: bulk_recorded,
    },
    Path {
        name: "recorded",
        unit: "as bulk, with the flight recorder",
        only: "",
        times: 4_000,
        loop_: bulk_recorded,
    },
    Path { name: "echo", unit: "one byte there and back, both ends", only: "", times: 2_000, loop_: echo },
    Path { name: "connect", unit: "connect and close, both ends", only: "", times: 1_000, loop_: connect },
    Path {
        name: "idle",
        unit: "round of two hosts with nothing to do",
        only: "",
        times: 20_000,
        loop_: idle,
    },
    Path {
        name: "holes-100",
        unit: "1448-byte segment sent and acknowledged, 100 in flight, half of them by SACK",
        only: HOLES_SIDE,
        times: 4_000,
        loop_: |segments| holes::run(100, segments).map(drop),
    },
    Path {
        name: "holes-10000",
        unit: "the same with 10,000 in flight",
        only: HOLES_SIDE,
        times: 4_000,
        loop_: |segments| holes::run(10_000, segments).map(drop),
    },
];

/// Runs the path `name` so many times.
pub fn run(name: &str, times: u64) -> Result<(), String> {
    let path = PATHS.iter().find(|path| path.name == name).ok_or_else(|| {
        let names: Vec<&str> = PATHS.iter().map(|path| path.name).collect();
        format!("no path is called {name:?}; there are {}", names.join(", "))
    })?;
    (path.loop_)(times)
}

fn open_pair() -> Result<(Pair, TcpSocketId, TcpSocketId), String> {
    open(Pair::new(16, FRAMES)?)
}

fn open(mut pair: Pair) -> Result<(Pair, TcpSocketId, TcpSocketId), String> {
    let listener = pair.listen(80)?;
    let (caller, called) = pair.connect(listener, 80)?;
    Ok((pair, caller, called))
}

/// A stream that never waits for its writer, read as it comes.
fn bulk(segments: u64) -> Result<(), String> {
    stream(open_pair()?, segments)
}

/// The same with the flight recorders that hosts have.
fn bulk_recorded(segments: u64) -> Result<(), String> {
    stream(open(Pair::new(16, FRAMES)?.recorded())?, segments)
}

/// The same with an acknowledgment for every second segment: no more pass at a time.
fn bulk_by_two(segments: u64) -> Result<(), String> {
    stream(open(Pair::new(16, 2)?)?, segments)
}

fn stream((mut pair, caller, called): (Pair, TcpSocketId, TcpSocketId), segments: u64) -> Result<(), String> {
    let text = [0x5a; 16 << 10];
    let mut place = vec![0; 64 << 10];
    let (mut received, wanted) = (0, segments * SEGMENT_BYTES);
    for _ in 0..100 * segments {
        while pair.caller.tcp(pair.now, &mut Ignore).send(caller, &text).is_ok() {}
        pair.pass_there();
        while let Ok(count @ 1..) = pair.called.tcp(pair.now, &mut Ignore).read(called, &mut place) {
            received += count as u64;
        }
        pair.round();
        if received >= wanted {
            return Ok(());
        }
    }
    Err(format!("only {received} of {wanted} bytes arrived"))
}

/// One byte at a time, each waited for.
fn echo(times: u64) -> Result<(), String> {
    let (mut pair, caller, called) = open_pair()?;
    for _ in 0..times {
        pair.echo(caller, called)?;
    }
    Ok(())
}

/// Connections one after another; their TIME-WAIT goes on beside them.
fn connect(times: u64) -> Result<(), String> {
    let mut pair = Pair::new(times as usize + 64, FRAMES)?;
    let listener = pair.listen(80)?;
    for _ in 0..times {
        let (caller, called) = pair.connect(listener, 80)?;
        pair.caller.close(caller, pair.now, &mut Ignore).map_err(|e| e.to_string())?;
        pair.round();
        pair.called.close(called, pair.now, &mut Ignore).map_err(|e| e.to_string())?;
        pair.round();
        pair.round();
    }
    Ok(())
}

fn idle(times: u64) -> Result<(), String> {
    let (mut pair, ..) = open_pair()?;
    for _ in 0..times {
        pair.round();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_runs() {
        for path in PATHS {
            run(path.name, 50).unwrap_or_else(|why| panic!("{}: {why}", path.name));
        }
        assert!(run("no-such-path", 1).is_err());
    }
}
