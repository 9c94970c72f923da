//! The kernel's TCP sysctls, as a script's shell commands set them in its network namespace.

use inhost_base::Duration;
use inhost_stack::TcpConfig;
use inhost_tcp::{CongestionChoice, EcnMode, PathMtuProbing};
use std::fs;

/// Linux tries again so much later what its own queue dropped.
const RESOURCE_PROBE_INTERVAL: Duration = Duration::from_millis(500);

/// One setting of `/proc/sys/net/ipv4`, when it is there.
fn read(name: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok().map(|text| text.trim().to_owned())
}
fn number(name: &str) -> Option<u64> {
    read(name)?.parse().ok()
}
fn triple(name: &str) -> Option<[usize; 3]> {
    let text = read(name)?;
    let mut values = text.split_whitespace().map(str::parse);
    Some([values.next()?.ok()?, values.next()?.ok()?, values.next()?.ok()?])
}

fn flag(name: &str) -> Option<bool> {
    number(name).map(|value| value != 0)
}

/// How a socket that is made now behaves in the `linux` profile. Settings that cannot be read keep the profile's
/// values.
pub(crate) fn tcp_config() -> TcpConfig {
    let mut config = TcpConfig::linux();
    // The tool's device refuses only where its queue drops (`device`), which Linux hears of as congestion.
    config.refusal_retry = Some(RESOURCE_PROBE_INTERVAL);
    buffers(&mut config);
    handshake(&mut config);
    recovery(&mut config);
    if let Some(value) = flag("tcp_slow_start_after_idle") {
        config.restart_after_idle = value;
    }
    if let Some(name) = read("tcp_congestion_control") {
        config.congestion = congestion(&name).unwrap_or(CongestionChoice::CubicInSegments);
    }
    if let Some(segments) = number("tcp_min_tso_segs") {
        config.least_burst_segments = segments.clamp(1, u64::from(u16::MAX)) as u16;
    }
    if let Some(value) = number("tcp_mtu_probing") {
        config.path_mtu_probing = match value {
            0 => PathMtuProbing::Off,
            1 => PathMtuProbing::BlackHoles,
            _ => PathMtuProbing::Always,
        };
    }
    config
}

fn buffers(config: &mut TcpConfig) {
    if let Some([_, first, most]) = triple("tcp_rmem") {
        // The window is half of the memory, but its scale follows from the whole of the limit.
        config.receive_buffer_limit_bytes = most.saturating_mul(2);
        config.receive_buffer_initial_bytes = first;
    }
    if let Some([_, first, most]) = triple("tcp_wmem") {
        config.send_buffer_limit_bytes = most;
        config.send_buffer_initial_bytes = first;
    }
    if let Some(bytes) = number("tcp_notsent_lowat") {
        config.not_sent_low_water_bytes = not_sent_low_water(bytes as u32);
    }
}

/// The low-water mark of a number of the kernel's: all ones is none.
pub(crate) fn not_sent_low_water(bytes: u32) -> usize {
    if bytes == u32::MAX { usize::MAX } else { bytes as usize }
}

fn handshake(config: &mut TcpConfig) {
    let retries = |name, kept| number(name).map_or(kept, |count| count.min(255) as u8);
    config.timestamps = flag("tcp_timestamps").unwrap_or(config.timestamps);
    config.window_scaling = flag("tcp_window_scaling").unwrap_or(config.window_scaling);
    config.syn_retries = retries("tcp_syn_retries", config.syn_retries);
    config.syn_answer_retries = retries("tcp_synack_retries", config.syn_answer_retries);
    config.syn_linear_timeouts = retries("tcp_syn_linear_timeouts", config.syn_linear_timeouts);
    config.ecn = match number("tcp_ecn") {
        Some(0) => EcnMode::Off,
        Some(1) => EcnMode::Request,
        Some(_) => EcnMode::Accept,
        None => config.ecn,
    };
}

fn recovery(config: &mut TcpConfig) {
    config.sack = flag("tcp_sack").unwrap_or(config.sack);
    config.duplicate_sack = flag("tcp_dsack").unwrap_or(config.duplicate_sack);
    config.forward_rto = flag("tcp_frto").unwrap_or(config.forward_rto);
    if let Some(bits) = number("tcp_recovery") {
        config.rack = bits & 1 != 0;
    }
    if let Some(value) = number("tcp_early_retrans") {
        config.tail_loss_probe = value >= 3;
    }
    if let Some(value) = number("tcp_reordering") {
        config.reordering_segments = value.clamp(1, 255) as u8;
    }
}

/// How connections may open with data in their SYN, as the bits of `tcp_fastopen` say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FastOpen {
    pub client: bool,
    pub server: bool,
    /// Data goes into SYNs without a cookie.
    pub client_without_cookie: bool,
    /// Data of SYNs is taken without a cookie.
    pub server_without_cookie: bool,
    /// Every listener takes part, asked or not.
    pub every_listener: bool,
}

/// What `tcp_fastopen` says now.
pub(crate) fn fast_open() -> FastOpen {
    let bits = number("tcp_fastopen").unwrap_or(1);
    FastOpen {
        client: bits & 0x1 != 0,
        server: bits & 0x2 != 0,
        client_without_cookie: bits & 0x4 != 0,
        server_without_cookie: bits & 0x200 != 0,
        every_listener: bits & 0x400 != 0,
    }
}

/// The key of cookies, and the one before it where old cookies still hold.
pub(crate) type FastOpenKeys = ([u8; 16], Option<[u8; 16]>);

/// The keys of cookies: each four words in hexadecimal in the machine's order, with a comma between keys.
pub(crate) fn fast_open_keys() -> Option<FastOpenKeys> {
    let text = read("tcp_fastopen_key")?;
    let mut keys = text.split(',').map(fast_open_key);
    Some((keys.next()??, keys.next().flatten()))
}

fn fast_open_key(text: &str) -> Option<[u8; 16]> {
    let mut key = [0; 16];
    for (place, word) in key.chunks_exact_mut(4).zip(text.split('-')) {
        place.copy_from_slice(&u32::from_str_radix(word.trim(), 16).ok()?.to_le_bytes());
    }
    Some(key)
}

/// The congestion control of a name, where we have it. What a kernel has and we have not is CUBIC, as scripts expect
/// that ask for nothing.
pub(crate) fn congestion(name: &str) -> Option<CongestionChoice> {
    match name {
        "cubic" => Some(CongestionChoice::CubicInSegments),
        "reno" => Some(CongestionChoice::NewReno),
        _ => None,
    }
}
