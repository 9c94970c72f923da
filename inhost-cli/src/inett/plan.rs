//! What is to be measured, from flags and a file.

use crate::args::{Inett, InettPlan};
use crate::failure::Failure;
use crate::netstat::size;
use inhost_inett::iperf3::Results;
use inhost_inett::plan::{
    DATAGRAM_MAX_BYTES, Direction, Kind, Plan, Protocol, WINDOW_MAX_BYTES, WRITE_MAX_BYTES,
};

/// The plan: that of the file, or the default one, with what the flags say.
pub fn plan(arguments: &Inett) -> Result<Plan, Failure> {
    let mut plan = match &arguments.plan {
        None => Plan::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|e| Failure::operation(format!("cannot read {}: {e}", path.display())))?;
            toml::from_str(&text)
                .map_err(|e| Failure::usage(format!("{}: {}", path.display(), e.message())))?
        }
    };
    apply(&mut plan, &arguments.what)?;
    Ok(plan)
}

fn apply(plan: &mut Plan, flags: &InettPlan) -> Result<(), Failure> {
    if let Some(kind) = &flags.kind {
        plan.kind = match kind.as_str() {
            "request" => Kind::Request,
            "echo" => Kind::Echo,
            "screen" => Kind::Screen,
            "connect" => Kind::Connect,
            "connections" => Kind::Connections,
            _ => Kind::Stream,
        };
    }
    if flags.udp {
        plan.protocol = Protocol::Udp;
    }
    match (flags.receive, flags.both) {
        (true, _) => plan.direction = Direction::Receive,
        (_, true) => plan.direction = Direction::Both,
        _ => {}
    }
    let narrow = |name: &str, value: u64, most: u32| {
        let narrowed = u32::try_from(value).ok().filter(|value| *value <= most);
        narrowed.ok_or_else(|| Failure::usage(format!("--{name} {value}: at most {most} bytes")))
    };
    let write_max = match plan.protocol {
        Protocol::Tcp => WRITE_MAX_BYTES,
        Protocol::Udp => DATAGRAM_MAX_BYTES,
    };
    plan.time_ms = flags.time.or(plan.time_ms);
    plan.bytes = flags.bytes.or(plan.bytes);
    plan.count = flags.count.or(plan.count);
    let write = flags.write.map(|value| narrow("write", value, write_max)).transpose()?;
    let window = flags.window.map(|value| narrow("window", value, WINDOW_MAX_BYTES)).transpose()?;
    plan.write_bytes = write.or(plan.write_bytes);
    plan.window_bytes = window.or(plan.window_bytes);
    plan.rate_bits_per_second = flags.rate.or(plan.rate_bits_per_second);
    plan.congestion = flags.congestion.clone().or(plan.congestion.take());
    plan.no_delay |= flags.no_delay;
    fn set<T: Clone>(place: &mut T, value: &Option<T>) {
        if let Some(value) = value {
            *place = value.clone();
        }
    }
    set(&mut plan.streams, &flags.streams);
    set(&mut plan.connections, &flags.connections);
    set(&mut plan.request_bytes, &flags.request);
    set(&mut plan.response_bytes, &flags.response);
    set(&mut plan.think_us, &flags.think);
    set(&mut plan.warm_up_ms, &flags.warm_up);
    set(&mut plan.interval_ms, &flags.interval);
    set(&mut plan.background_streams, &flags.background);
    set(&mut plan.load, &flags.load);
    set(&mut plan.seed, &flags.seed);
    if let Some((least, most)) = flags.repeat {
        (plan.repetitions_min, plan.repetitions_max) = (least, most);
    }
    if let Some(percent) = flags.half_width {
        if !(percent > 0.0 && percent < 100.0) {
            return Err(Failure::usage(format!(
                "--half-width {percent}: give percent above 0 and below 100"
            )));
        }
        plan.half_width_share = percent / 100.0;
    }
    Ok(())
}

/// A plan in a few words.
pub fn words(plan: &Plan) -> String {
    let kind = match (plan.kind, plan.protocol) {
        (Kind::Stream, Protocol::Tcp) => "bulk data over TCP",
        (Kind::Stream, Protocol::Udp) => "bulk data over UDP",
        (Kind::Request, _) => "requests and responses",
        (Kind::Echo, _) => "a character echoed",
        (Kind::Screen, _) => "screenfuls",
        (Kind::Connect, _) => "connects",
        (Kind::Connections, _) => "many connections",
    };
    let from = match plan.direction {
        _ if plan.kind.is_transaction() => "",
        Direction::Send => ", the client sends",
        Direction::Receive => ", this end sends",
        Direction::Both => ", both send",
    };
    format!("{kind}{from}")
}

/// What a server found, in a few words.
pub fn found(own: &Results) -> String {
    if own.streams.is_empty() {
        return "it is over".to_owned();
    }
    let bytes = own.streams.iter().fold(0_i64, |sum, stream| sum.saturating_add(stream.bytes));
    format!("it is over: {} bytes", size(u64::try_from(bytes).unwrap_or(0)))
}
