//! Congestion control of one's own, with a parameter: for a whole host, for one connection, and set while it lives.

use crate::common::{Faults, Net, endpoint};
use inhost_base::{Duration, Instant};
use inhost_event::Ignore;
use inhost_stack::{
    Acknowledged, CongestionAlgorithm, CongestionChoice, CongestionController, CongestionWindow,
    ConnectOptions, ConnectionOption, Medium, SocketOption, StackConfig, TcpConfig, TcpInfo, TcpSocketId,
};
use std::sync::Arc;

const PATH_DELAY: Duration = Duration::from_millis(10);
const SENT_BYTES: usize = 400_000;

/// A window that never changes.
#[derive(Debug)]
struct FixedWindow {
    bytes: u32,
}

impl CongestionAlgorithm for FixedWindow {
    fn start(&self) -> Box<dyn CongestionController> {
        Box::new(FixedWindow { bytes: self.bytes })
    }
}

impl CongestionController for FixedWindow {
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn opened(&mut self, window: &mut CongestionWindow) {
        window.window_bytes = self.bytes;
    }
    fn acknowledged(&mut self, window: &mut CongestionWindow, seen: &Acknowledged, _window_limited: bool) {
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

fn fixed(bytes: u32) -> CongestionChoice {
    CongestionChoice::Custom(Arc::new(FixedWindow { bytes }))
}

fn tcp_info(net: &Net, socket: TcpSocketId) -> TcpInfo {
    net.stacks[0].instruments().info(socket, net.now).unwrap().tcp.unwrap()
}

/// Two hosts that use `choice`, on a path of 20 ms, and a connection of theirs.
fn connected(choice: CongestionChoice) -> (Net, TcpSocketId, TcpSocketId) {
    let mut config = StackConfig::default();
    config.tcp.congestion = choice;
    config.tcp.pacing = false;
    let mut net = Net::with(1, config, |_| Medium::Ip);
    net.set_faults(Faults { delay: PATH_DELAY, ..Faults::NONE });
    let (caller, called) = net.connected(80);
    (net, caller, called)
}

/// Round trips that [`SENT_BYTES`] from host 0 take. The window in use is `bytes`, at any time if nothing is `lossy`.
fn round_trips(net: &mut Net, sockets: (TcpSocketId, TcpSocketId), bytes: u32, lossy: bool) -> u64 {
    let begin = net.now;
    let (mut sent, mut received) = (0, 0);
    let done = net.run(Duration::from_secs(60), |net| {
        if sent < SENT_BYTES {
            let rest = vec![7; SENT_BYTES - sent];
            sent += net.stacks[0].tcp(net.now, &mut Ignore).send(sockets.0, &rest).unwrap_or(0);
        }
        received += net.read(1, sockets.1, SENT_BYTES).len();
        let info = tcp_info(net, sockets.0);
        assert_eq!(info.congestion_control, "fixed");
        assert!(lossy || info.congestion_window_bytes == bytes, "{info:?}");
        received == SENT_BYTES
    });
    assert!(done, "{received} bytes came");
    net.now.since(begin).as_nanos() / (PATH_DELAY + PATH_DELAY).as_nanos()
}

#[test]
fn the_hosts_connections_have_the_window_that_the_parameter_says() {
    for bytes in [20_000, 80_000] {
        let (mut net, caller, called) = connected(fixed(bytes));
        let took = round_trips(&mut net, (caller, called), bytes, false);
        let expected = SENT_BYTES as u64 / u64::from(bytes);
        // Half a round trip more, and what a window leaves of its last segment.
        assert!((expected..=expected + expected / 10 + 1).contains(&took), "{bytes}: {took} round trips");
    }
}

#[test]
fn one_connection_has_a_control_of_its_own_and_another_goes_on_by_it() {
    let (mut net, changed, called) = connected(CongestionChoice::Cubic);
    let listener = net.listen(1, 81);
    let mut tcp = TcpConfig::default();
    tcp.congestion = fixed(30_000);
    let mut options = ConnectOptions::default();
    options.tcp = Some(tcp);
    let own = net.stacks[0].tcp(net.now, &mut Ignore).connect(endpoint(1, 81), options).unwrap();
    net.pass(Duration::from_secs(1));
    assert!(net.stacks[1].tcp(net.now, &mut Ignore).accept(listener).unwrap().is_some());
    let info = tcp_info(&net, own);
    assert_eq!((info.congestion_control, info.congestion_window_bytes), ("fixed", 30_000));
    let info = tcp_info(&net, changed);
    assert_eq!(info.congestion_control, "cubic");

    let option = SocketOption::Tcp(ConnectionOption::Congestion(CongestionChoice::custom(|| FixedWindow {
        bytes: 40_000,
    })));
    net.stacks[0].set_option(changed, option, net.now, &mut Ignore).unwrap();
    let took = round_trips(&mut net, (changed, called), 40_000, false);
    assert!((10..=12).contains(&took), "{took} round trips");
}

#[test]
fn it_comes_through_loss() {
    let (mut net, caller, called) = connected(fixed(50_000));
    net.set_faults(Faults { lost: 20, delay: PATH_DELAY, ..Faults::NONE });
    round_trips(&mut net, (caller, called), 50_000, true);
    let info = tcp_info(&net, caller);
    assert!(info.retransmitted_segments > 0, "{info:?}");
}
