//! Connections opened and closed, one after another, in memory.

use crate::answer::Answer;
use crate::bulk::core_seconds;
use crate::host::SHIPPED;
use crate::wire::{self, Two, WireConfig};
use inhost_base::{Duration as Length, Endpoint};
use inhost_event::Ignore;
use inhost_stack::{ConnectOptions, ListenerId, Local, StackConfig, TcpConfig};
use std::time::Duration;

const WIRE: WireConfig = WireConfig { mtu_bytes: 1500, trusted: false };
/// Connections that stay open meanwhile.
const OPEN: usize = 100_000;
/// Addresses at each end; every pair of them is used in turn.
const ADDRESSES: u8 = 8;
/// Ports at which the open ones were called: fewer to each than there are ephemeral ports.
const OPEN_A_PORT: usize = 10_000;

/// As a host has it: TIME-WAIT of a minute, keyed initial sequence numbers, many others open.
pub fn full(length: Duration) -> Result<Answer, String> {
    let mut config = StackConfig::default();
    config.socket_limit = OPEN + (4 << 20);
    config.orphan_limit = 4 << 20;
    config.memory_limit_bytes = 1 << 30;
    let how = "64 address pairs, 100,000 others open, TIME-WAIT of 60 s, keyed ISNs, ephemeral ports";
    measure(&config, ADDRESSES, OPEN, how, length)
}

/// As smoltcp does it: one pair of addresses, no TIME-WAIT, nothing else open. The ISNs are keyed all the same.
pub fn bare(length: Duration) -> Result<Answer, String> {
    let mut tcp = TcpConfig::default();
    tcp.time_wait = Length::ZERO;
    let mut config = StackConfig::default();
    config.tcp = tcp;
    measure(&config, 1, 0, "one address pair, no TIME-WAIT, nothing else open; keyed ISNs", length)
}

fn measure(
    config: &StackConfig,
    addresses: u8,
    open: usize,
    how: &str,
    length: Duration,
) -> Result<Answer, String> {
    let mut two = Two::new(config, WIRE, addresses)?;
    let ports = open.div_ceil(OPEN_A_PORT) as u16;
    let listeners: Vec<ListenerId> = (0..ports).map(|n| two.listen(1_000 + n)).collect::<Result<_, _>>()?;
    for n in 0..open {
        let place = n / OPEN_A_PORT;
        two.connect(listeners[place], 1_000 + place as u16)?;
    }
    let listener = two.listen(80)?;
    let mut count = 0usize;
    for _ in 0..1_000 {
        once(&mut two, listener, addresses, count)?;
        count += 1;
    }
    two.tick();
    let until = two.now + length.into();
    let began = core_seconds();
    let before = count;
    while two.now < until {
        once(&mut two, listener, addresses, count)?;
        count += 1;
    }
    let seconds = core_seconds() - began;
    let waiting = two.caller.instruments().socket_count() - open;
    let settings = format!("{SHIPPED}; {how}; {waiting} in TIME-WAIT at the end");
    Ok(Answer::new(settings).with("rate", (count - before) as f64 / seconds))
}

/// Opens a connection from one address to another, and closes it from both ends.
fn once(two: &mut Two, listener: ListenerId, addresses: u8, number: usize) -> Result<(), String> {
    let pair = number % (usize::from(addresses) * usize::from(addresses));
    let (from, to) = (pair as u8 % addresses, pair as u8 / addresses);
    let local = Local { address: Some(wire::address(1, 1 + from)), port: 0 };
    let remote = Endpoint { address: wire::address(2, 1 + to), port: 80 };
    let mut options = ConnectOptions::default();
    options.local = local;
    two.tick();
    let caller = two.caller.tcp(two.now, &mut Ignore).connect(remote, options).map_err(|e| e.to_string())?;
    two.pass_there();
    two.pass_back();
    two.pass_there();
    let accepted = two.called.tcp(two.now, &mut Ignore).accept(listener).map_err(|e| e.to_string())?;
    let accepted = accepted.ok_or("a connection was not accepted at once")?;
    two.caller.close(caller, two.now, &mut Ignore).map_err(|e| e.to_string())?;
    two.pass_there();
    two.called.close(accepted.socket, two.now, &mut Ignore).map_err(|e| e.to_string())?;
    two.pass_back();
    two.pass_there();
    two.timers();
    Ok(())
}
