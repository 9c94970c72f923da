//! A segment's cost while many are in flight and half of these are selectively acknowledged: a long path on which one
//! segment in sixteen is lost, once.

use crate::pair::{LINK, MTU_BYTES, host};
use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr};
use inhost_buf::{Batch, Device, Frame, Full, Packet};
use inhost_event::Ignore;
use inhost_stack::{
    Acknowledged, CongestionChoice, CongestionController, CongestionWindow, ConnectOptions, ListenOptions,
    Stack, StackConfig, TcpConfig, TcpSocketId,
};
use std::collections::VecDeque;

/// The way there, whatever it holds.
const WAY: Duration = Duration::from_millis(20);
/// Payload of one segment at MTU 1500 with timestamps.
const SEGMENT_BYTES: usize = 1448;
/// One new segment in so many is lost.
const LOSS_INTERVAL: u64 = 16;
/// A hole is filled after two one-way times, so the path holds two of them.
const WAYS: usize = 2;

/// A window that nothing moves, so that what is in flight is what the path holds.
#[derive(Debug)]
struct FixedWindow;

impl CongestionController for FixedWindow {
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn opened(&mut self, window: &mut CongestionWindow) {
        (window.window_bytes, window.threshold_bytes) = (1 << 29, 1 << 29);
    }
    fn acknowledged(&mut self, window: &mut CongestionWindow, _seen: &Acknowledged, _limited: bool) {
        self.opened(window);
    }
    fn lost(&mut self, window: &mut CongestionWindow, _in_flight_bytes: u32, _now: Instant) {
        self.opened(window);
    }
}

/// The way there: each frame with when it arrives.
struct Way {
    free: Vec<Packet>,
    under_way: VecDeque<(Instant, Packet)>,
    arrives: Instant,
    /// The highest sequence number so far, so that a retransmission is known.
    highest: Option<u32>,
    fresh: u64,
    /// New segments that arrive before the first is lost: recovery keeps up what is in flight, and does not fill a path.
    filled_by: u64,
}

impl Device for Way {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let mut packet = self.free.pop().ok_or(Full)?;
        let length = frame.write_to(packet.spare_mut()).unwrap_or(0);
        packet.extend(length);
        let sequence =
            packet.bytes().get(24..28).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
        let is_higher =
            self.highest.is_none_or(|highest| sequence.wrapping_sub(highest).wrapping_sub(1) < 1 << 31);
        let is_new = length > SEGMENT_BYTES && is_higher;
        if is_new {
            self.highest = Some(sequence);
            self.fresh += 1;
        }
        let is_lost = is_new && self.fresh > self.filled_by && self.fresh.is_multiple_of(LOSS_INTERVAL);
        if !is_lost {
            self.under_way.push_back((self.arrives, packet));
        }
        Ok(())
    }
}

/// The way back takes no time.
#[derive(Default)]
struct Back {
    free: Vec<Packet>,
    batch: Batch,
}

impl Device for Back {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let mut packet = self.free.pop().ok_or(Full)?;
        let length = frame.write_to(packet.spare_mut()).unwrap_or(0);
        packet.extend(length);
        self.batch.push(packet).map_err(|_| Full)
    }
}

/// The sender's work for one step, which alone is counted: by [`crate::paths::HOLES_SIDE`].
#[inline(never)]
fn sender_side_transmit(stack: &mut Stack, way: &mut Way, now: Instant) {
    stack.transmit(LINK, now, 8, way, &mut Ignore);
}
#[inline(never)]
fn sender_side_receive(stack: &mut Stack, batch: &mut Batch, now: Instant) {
    stack.receive(LINK, batch, now, &mut Ignore);
}

struct Path {
    caller: Stack,
    called: Stack,
    way: Way,
    back: Back,
    step: Duration,
    now: Instant,
}

impl Path {
    fn new(records: usize) -> Result<Path, String> {
        let now = Instant::from_millis(1_000);
        let mut sends = TcpConfig::linux();
        sends.congestion = CongestionChoice::custom(|| FixedWindow);
        // Linux's receiver answers up to 44 segments behind a hole with one acknowledgment, whose option has no room for
        // all that came.
        let receives = TcpConfig::default();
        let with = |mut tcp: TcpConfig, last| {
            (tcp.send_buffer_limit_bytes, tcp.send_buffer_initial_bytes) = (1 << 29, 1 << 29);
            (tcp.receive_buffer_limit_bytes, tcp.receive_buffer_initial_bytes) = (1 << 29, 1 << 29);
            let mut config = StackConfig::default();
            (config.memory_limit_bytes, config.tcp) = (1 << 30, tcp);
            host(config, last, now)
        };
        Ok(Path {
            caller: with(sends, 1)?,
            called: with(receives, 2)?,
            way: Way {
                free: Vec::new(),
                under_way: VecDeque::new(),
                arrives: now,
                highest: None,
                fresh: 0,
                filled_by: records as u64,
            },
            back: Back::default(),
            step: Duration::from_nanos(WAY.as_nanos() / (records / WAYS) as u64),
            now,
        })
    }
    fn open(&mut self) -> Result<(TcpSocketId, TcpSocketId), String> {
        let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, 80);
        let listener = self.called.tcp(self.now, &mut Ignore).listen(at, ListenOptions::default());
        let listener = listener.map_err(|e| e.to_string())?;
        let to = Endpoint::new(Ipv4Addr::new(10, 0, 0, 2), 80);
        let options = ConnectOptions::default();
        let caller = self.caller.tcp(self.now, &mut Ignore).connect(to, options);
        let caller = caller.map_err(|e| e.to_string())?;
        let until = self.now + WAY + WAY + WAY;
        while self.now < until {
            self.step();
            if let Some(accepted) =
                self.called.tcp(self.now, &mut Ignore).accept(listener).map_err(|e| e.to_string())?
            {
                return Ok((caller, accepted.socket));
            }
        }
        Err("the connection was not accepted".into())
    }
    /// What each has to say leaves, what is due arrives, time passes.
    fn step(&mut self) {
        while self.way.free.len() < 8 {
            self.way.free.extend(self.called.pool().take(usize::from(MTU_BYTES)));
        }
        while self.back.free.len() < 8 {
            self.back.free.extend(self.caller.pool().take(usize::from(MTU_BYTES)));
        }
        self.way.arrives = self.now + WAY;
        sender_side_transmit(&mut self.caller, &mut self.way, self.now);
        let mut batch = Batch::new();
        while let Some((_, packet)) = self.way.under_way.pop_front_if(|(arrives, _)| *arrives <= self.now) {
            let _ = batch.push(packet);
        }
        self.called.receive(LINK, &mut batch, self.now, &mut Ignore);
        self.called.transmit(LINK, self.now, 8, &mut self.back, &mut Ignore);
        sender_side_receive(&mut self.caller, &mut self.back.batch, self.now);
        self.now += self.step;
        for stack in [&mut self.caller, &mut self.called] {
            if stack.deadline().is_some_and(|deadline| deadline <= self.now) {
                stack.timeout(self.now, &mut Ignore);
            }
            while stack.ready().is_some() {}
        }
    }
}

/// Sends `segments` over a path that holds `records`, after it was filled. Returns how many bytes are in flight at the
/// end, and how many of them the peer has ahead of a hole.
pub fn run(records: usize, segments: u64) -> Result<(u32, u32), String> {
    let mut path = Path::new(records)?;
    let (caller, called) = path.open()?;
    let text = [0x5a; SEGMENT_BYTES];
    let mut place = vec![0; 1 << 20];
    for _ in 0..5 * records as u64 + segments {
        path.caller.tcp(path.now, &mut Ignore).send(caller, &text).map_err(|e| e.to_string())?;
        path.step();
        while let Ok(1..) = path.called.tcp(path.now, &mut Ignore).read(called, &mut place) {}
    }
    let info = path.caller.instruments().info(caller, path.now).and_then(|info| info.tcp);
    let info = info.ok_or("the connection is gone")?;
    eprintln!(
        "out {} sacked {} queue {} retr {}",
        info.send_next.since(info.send_unacknowledged) / 1448,
        info.sacked_bytes / 1448,
        info.not_sent_bytes,
        info.retransmitted_segments
    );
    if info.timeouts > 0 {
        return Err(format!("{} time-outs: the path is not what it should be", info.timeouts));
    }
    Ok((info.send_next.since(info.send_unacknowledged), info.sacked_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_what_is_in_flight_is_selectively_acknowledged() {
        for records in [100, 1_000] {
            let (out_bytes, sacked_bytes) = run(records, 200).unwrap();
            let out = out_bytes as usize / SEGMENT_BYTES;
            assert!(out * 10 > records * 9 && out * 10 < records * 12, "{out} of {records} are out");
            let percent = 100 * u64::from(sacked_bytes) / u64::from(out_bytes);
            assert!((40..60).contains(&percent), "{percent} % of them are acknowledged");
        }
    }
}
