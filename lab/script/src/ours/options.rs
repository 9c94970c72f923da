//! The words of `host` and `call set`, as our stack's knobs.

use crate::language::{HostSetting, Profile, duration_of, switch_of};
use crate::side::Came;
use inhost_base::{Duration, Instant};
use inhost_event::Ignore;
use inhost_stack::{
    ConnectOptions, ConnectionOption, FastOpenCall, InterfaceConfig, IpConfig, ListenOptions, SocketId,
    SocketOption, Stack, StackConfig, SynCookies, UdpOptions,
};
use inhost_tcp::{Config, CongestionChoice, EcnMode, KeepAlive, PathMtuProbing};

/// Handshakes with data that a listener may have under way, where Fast Open is switched on.
const FAST_OPEN_QUEUE: usize = 16;

/// The named sets of defaults.
pub(super) fn profile(profile: Profile, config: &mut StackConfig, listen: &mut ListenOptions) {
    match profile {
        Profile::Rfc => config.tcp = Config::rfc(),
        Profile::Linux => {
            config.tcp = Config::linux();
            config.ip = IpConfig::linux();
            listen.gives_out_reset = true;
        }
    }
}

/// What a datagram socket begins with.
pub(super) fn datagrams(profile: Profile) -> UdpOptions {
    match profile {
        Profile::Rfc => UdpOptions::default(),
        Profile::Linux => UdpOptions::linux(),
    }
}

/// How far a window may grow where memory does not matter.
const AMPLE_GROWTH_BYTES: u32 = 4 << 20;

/// `host NAME VALUE`
pub(super) fn host(
    setting: &HostSetting,
    config: &mut StackConfig,
    interface: &mut InterfaceConfig,
    listen: &mut ListenOptions,
    connect: &mut ConnectOptions,
) -> Result<(), String> {
    let value = setting.value.as_str();
    match setting.name.as_str() {
        "mtu" => interface.mtu_bytes = number(value)?,
        "receive-memory" if value == "ample" => config.tcp.window_growth_bytes = AMPLE_GROWTH_BYTES,
        "resets-per-second" => config.resets_per_second = number(value)?,
        "syn-cookies" => listen.syn_cookies = syn_cookies(value)?,
        "fast-open" => fast_open(value, listen, connect)?,
        "memory" => config.memory_limit_bytes = number(value)?,
        _ => return before_use(&setting.name, value, &mut config.tcp),
    }
    Ok(())
}

/// An option of a socket that is not used yet, or of every connection of the host.
pub(super) fn before_use(name: &str, value: &str, config: &mut Config) -> Result<(), String> {
    match name {
        "nagle" => config.nagle = switch(value)?,
        "timestamps" => config.timestamps = switch(value)?,
        "scaling" => config.window_scaling = switch(value)?,
        "sack" => config.sack = switch(value)?,
        "dsack" => config.duplicate_sack = switch(value)?,
        "rack" => config.rack = switch(value)?,
        "tail-loss-probe" => config.tail_loss_probe = switch(value)?,
        "prr" => config.proportional_rate_reduction = switch(value)?,
        "frto" => config.forward_rto = switch(value)?,
        "undo" => config.undo = switch(value)?,
        "rto-restart" => config.rto_restart = switch(value)?,
        "pacing" => config.pacing = switch(value)?,
        "restart-after-idle" => config.restart_after_idle = switch(value)?,
        "mss" => config.mss_limit_bytes = number(value)?,
        "initial-window" => config.initial_window_segments = number(value)?,
        "quick-acknowledgments" => {
            config.quick_acknowledgments = number(value)?;
            config.policy.adaptive_delayed_acks = config.quick_acknowledgments > 0;
        }
        "reordering" => config.reordering_segments = number(value)?,
        "syn-retries" => config.syn_retries = number(value)?,
        "syn-answer-retries" => config.syn_answer_retries = number(value)?,
        "not-sent-low-water" => config.not_sent_low_water_bytes = number(value)?,
        "reassembly-limit" => config.reassembly_limit_pieces = number(value)?,
        "challenge-limit" => config.challenge_limit_per_second = number(value)?,
        "pacing-rate" => config.max_pacing_rate_bytes_per_second = Some(number(value)?),
        "send-buffer" => {
            config.send_buffer_limit_bytes = number(value)?;
            config.send_buffer_initial_bytes = config.send_buffer_limit_bytes;
        }
        "receive-buffer" => {
            config.receive_buffer_limit_bytes = number(value)?;
            config.receive_buffer_initial_bytes = config.receive_buffer_limit_bytes;
        }
        "keep-alive" => config.keep_alive = keep_alive(value)?,
        // The `linux` profile has its own CUBIC.
        "congestion"
            if value == "cubic" && matches!(config.congestion, CongestionChoice::CubicInSegments) => {}
        "congestion" => config.congestion = congestion(value)?,
        "ecn" => config.ecn = ecn(value)?,
        "path-mtu-probing" => config.path_mtu_probing = path_mtu_probing(value)?,
        other => return time_before_use(other, value, config),
    }
    Ok(())
}
fn time_before_use(name: &str, value: &str, config: &mut Config) -> Result<(), String> {
    let place = match name {
        "acknowledgment-delay" => &mut config.acknowledgment_delay,
        "user-timeout" => &mut config.user_timeout,
        "connect-timeout" => &mut config.connect_timeout,
        "time-wait" => &mut config.time_wait,
        "fin-wait-2" => &mut config.fin_wait_2,
        "min-rto" => &mut config.min_retransmission_timeout,
        "max-rto" => &mut config.max_retransmission_timeout,
        "initial-rto" => &mut config.initial_retransmission_timeout,
        other => return Err(format!("no option is called {other}")),
    };
    *place = time(value)?;
    Ok(())
}

/// Whether `name` is an option of sockets that is set once they are in use.
pub(super) fn is_for_later(name: &str) -> bool {
    matches!(name, "cork" | "linger" | "defer-accept" | "quick-acknowledgment")
}

/// An option of a socket in use.
pub(super) fn in_use(
    name: &str,
    value: &str,
    socket: SocketId,
    stack: &mut Stack,
    now: Instant,
) -> Result<Came, String> {
    let option = match name {
        "nagle" => SocketOption::Tcp(ConnectionOption::Nagle(switch(value)?)),
        "keep-alive" => SocketOption::Tcp(ConnectionOption::KeepAlive(keep_alive(value)?)),
        "user-timeout" => SocketOption::Tcp(ConnectionOption::UserTimeout(time(value)?)),
        "fin-wait-2" => SocketOption::Tcp(ConnectionOption::FinWait2(time(value)?)),
        "send-buffer" => SocketOption::SendBufferLimit(number(value)?),
        "receive-buffer" => SocketOption::ReceiveBufferLimit(number(value)?),
        "acknowledgment-delay" => SocketOption::Tcp(ConnectionOption::AcknowledgmentDelay(time(value)?)),
        "cork" => SocketOption::Tcp(ConnectionOption::Cork(switch(value)?)),
        "quick-acknowledgment" => SocketOption::Tcp(ConnectionOption::QuickAcknowledgment(switch(value)?)),
        "not-sent-low-water" => SocketOption::Tcp(ConnectionOption::NotSentLowWater(Some(number(value)?))),
        "linger" => SocketOption::Linger(time_or_off(value)?),
        "defer-accept" => SocketOption::DeferAccept(time_or_off(value)?),
        "mss" => SocketOption::Tcp(ConnectionOption::MaxSegment(number(value)?)),
        "congestion" => SocketOption::Tcp(ConnectionOption::Congestion(congestion(value)?)),
        "pacing-rate" => SocketOption::Tcp(ConnectionOption::MaxPacingRate(Some(number(value)?))),
        "syn-retries" => SocketOption::Tcp(ConnectionOption::SynRetries(number(value)?)),
        "hop-limit" => SocketOption::HopLimit(Some(number(value)?)),
        "differentiated-services" => SocketOption::DifferentiatedServices(number(value)?),
        "dont-fragment" => SocketOption::DontFragment(switch(value)?),
        "report-errors" => SocketOption::ReportUnconnectedErrors(switch(value)?),
        other => return Err(format!("no option of a socket in use is called {other}")),
    };
    let done = stack.set_option(socket, option, now, &mut Ignore);
    done.map(|()| Came::Done).map_err(|error| error.to_string())
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    value.replace('_', "").parse().map_err(|_| format!("expected a number, found `{value}`"))
}
fn switch(value: &str) -> Result<bool, String> {
    switch_of(value).ok_or_else(|| format!("expected on or off, found `{value}`"))
}
fn time(value: &str) -> Result<Duration, String> {
    duration_of(value).ok_or_else(|| format!("expected a time such as 200ms, found `{value}`"))
}
fn time_or_off(value: &str) -> Result<Option<Duration>, String> {
    if value == "off" { Ok(None) } else { time(value).map(Some) }
}
/// `off`, or idle time, interval and number of probes: `10s/2s/3`.
fn keep_alive(value: &str) -> Result<Option<KeepAlive>, String> {
    if value == "off" {
        return Ok(None);
    }
    let wrong = || format!("expected off, or idle/interval/probes such as 10s/2s/3; found `{value}`");
    let parts: Vec<&str> = value.split('/').collect();
    let [idle, interval, probes] = parts[..] else { return Err(wrong()) };
    let (Some(idle), Some(interval)) = (duration_of(idle), duration_of(interval)) else {
        return Err(wrong());
    };
    Ok(Some(KeepAlive { idle, interval, probes: number(probes)? }))
}
fn congestion(value: &str) -> Result<CongestionChoice, String> {
    match value {
        "cubic" => Ok(CongestionChoice::Cubic),
        "newreno" => Ok(CongestionChoice::NewReno),
        other => Err(format!("expected cubic or newreno, found `{other}`")),
    }
}
fn ecn(value: &str) -> Result<EcnMode, String> {
    match value {
        "off" => Ok(EcnMode::Off),
        "accept" => Ok(EcnMode::Accept),
        "request" => Ok(EcnMode::Request),
        other => Err(format!("expected off, accept or request, found `{other}`")),
    }
}
fn syn_cookies(value: &str) -> Result<SynCookies, String> {
    match value {
        "off" => Ok(SynCookies::Off),
        "when-full" => Ok(SynCookies::WhenFull),
        "always" => Ok(SynCookies::Always),
        other => Err(format!("expected off, when-full or always, found `{other}`")),
    }
}
/// Calls with data always try; `off` keeps them from it.
fn fast_open(value: &str, listen: &mut ListenOptions, connect: &mut ConnectOptions) -> Result<(), String> {
    let (client, server) = match value {
        "off" => (false, false),
        "client" => (true, false),
        "server" => (false, true),
        "both" => (true, true),
        other => return Err(format!("expected off, client, server or both, found `{other}`")),
    };
    connect.fast_open = if client { FastOpenCall::Now } else { FastOpenCall::Off };
    listen.fast_open_queue = if server { FAST_OPEN_QUEUE } else { 0 };
    Ok(())
}
fn path_mtu_probing(value: &str) -> Result<PathMtuProbing, String> {
    match value {
        "off" => Ok(PathMtuProbing::Off),
        "black-holes" => Ok(PathMtuProbing::BlackHoles),
        "always" => Ok(PathMtuProbing::Always),
        other => Err(format!("expected off, black-holes or always, found `{other}`")),
    }
}
