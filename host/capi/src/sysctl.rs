//! The kernel's settings of TCP, as a script's shell commands left them in the network namespace it runs in.

use inhost_base::Duration;
use inhost_stack::TcpConfig;
use inhost_tcp::CongestionChoice;
use std::fs;

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

/// How a socket that is made now behaves in the `linux` profile. Settings that cannot be read keep the profile's
/// values.
pub(crate) fn tcp_config() -> TcpConfig {
    let mut config = TcpConfig::default();
    if let Some([_, _, most]) = triple("tcp_rmem") {
        // The kernel offers the whole of its limit; here the window is half of the memory.
        config.receive_buffer_limit_bytes = most.saturating_mul(2);
    }
    if let Some([_, usual, _]) = triple("tcp_wmem") {
        config.send_buffer_limit_bytes = usual;
    }
    if let Some(value) = number("tcp_timestamps") {
        config.timestamps = value != 0;
    }
    if let Some(value) = number("tcp_window_scaling") {
        config.window_scaling = value != 0;
    }
    if let Some(value) = number("tcp_slow_start_after_idle") {
        config.restart_after_idle = value != 0;
    }
    if let Some(name) = read("tcp_congestion_control") {
        config.congestion = congestion(&name).unwrap_or(CongestionChoice::CubicLinux);
    }
    config.acknowledgment_delay = Duration::from_millis(40);
    config
}

/// The congestion control of a name, where we have it. What a kernel has and we have not is CUBIC, as scripts expect
/// that ask for nothing.
pub(crate) fn congestion(name: &str) -> Option<CongestionChoice> {
    match name {
        "cubic" => Some(CongestionChoice::CubicLinux),
        "reno" => Some(CongestionChoice::NewReno),
        _ => None,
    }
}
