//! A congestion control of one's own, with a parameter: a window of one size, beside CUBIC.
#![forbid(unsafe_code)]

use inhost_example_stack::Pair;
use inhost_stack::{
    Acknowledged, CongestionChoice, CongestionController, CongestionWindow, ConnectOptions, Duration, Ignore,
    Instant, ListenOptions, StackConfig, TcpConfig,
};

/// Bytes that are sent.
const SENT_BYTES: usize = 4_000_000;
/// One way of the path.
const DELAY: Duration = Duration::from_millis(10);

/// As many bytes in flight as the parameter says, whatever happens: for a path whose capacity is known.
#[derive(Debug)]
struct FixedWindow {
    bytes: u32,
}

impl CongestionController for FixedWindow {
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn opened(&mut self, window: &mut CongestionWindow) {
        window.window_bytes = self.bytes;
    }
    fn acknowledged(&mut self, window: &mut CongestionWindow, seen: &Acknowledged, _window_limited: bool) {
        // In recovery the window belongs to proportional rate reduction.
        if !seen.recovering {
            window.window_bytes = self.bytes;
        }
    }
    fn lost(&mut self, window: &mut CongestionWindow, _in_flight_bytes: u32, _now: Instant) {
        window.threshold_bytes = self.bytes;
    }
    fn restarted(&mut self, window: &mut CongestionWindow) {
        window.window_bytes = self.bytes;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bytes: u32 = match std::env::args().nth(1) {
        Some(text) => text.parse().map_err(|_| "usage: fixed-window [BYTES]")?,
        None => 100_000,
    };
    for congestion in [CongestionChoice::custom(move || FixedWindow { bytes }), CongestionChoice::Cubic] {
        // For this connection alone; `StackConfig::tcp` would be for all of a host's.
        let mut tcp = TcpConfig::default();
        tcp.congestion = congestion;
        tcp.pacing = false;
        let mut options = ConnectOptions::default();
        options.tcp = Some(tcp);
        println!("{}", transfer(options)?);
    }
    Ok(())
}

/// Sends [`SENT_BYTES`] from host 0 to host 1, and says how that went.
fn transfer(options: ConnectOptions) -> Result<String, Box<dyn std::error::Error>> {
    let mut pair = Pair::new(&StackConfig::default(), DELAY);
    let server = Pair::endpoint(1, 9);
    let listener = pair.stacks[1].tcp(pair.now, &mut Ignore).listen(server, ListenOptions::default())?;
    let sender = pair.stacks[0].tcp(pair.now, &mut Ignore).connect(server, options)?;
    let data = vec![7; 64 << 10];
    let (mut sent, mut received, mut receiver) = (0, 0, None);
    let done = pair.run(|[from, to], now| {
        while sent < SENT_BYTES {
            let next = &data[..data.len().min(SENT_BYTES - sent)];
            let Ok(count) = from.tcp(now, &mut Ignore).send(sender, next) else { break };
            sent += count;
        }
        if let Ok(Some(accepted)) = to.tcp(now, &mut Ignore).accept(listener) {
            receiver = Some(accepted.socket);
        }
        let mut place = [0; 64 << 10];
        while let Some(socket) = receiver
            && let Ok(count) = to.tcp(now, &mut Ignore).read(socket, &mut place)
            && count > 0
        {
            received += count;
        }
        received >= SENT_BYTES
    });
    let info = pair.stacks[0].instruments().info(sender, pair.now).and_then(|info| info.tcp);
    let info = info.filter(|_| done).ok_or("the transfer did not end")?;
    Ok(format!(
        "{:<6} {} bytes in {} ms, window {} bytes at the end",
        info.congestion_control,
        SENT_BYTES,
        pair.now.as_millis(),
        info.congestion_window_bytes
    ))
}
