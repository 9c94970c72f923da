//! The words of `host` and `call set`, as the kernel's knobs.

use crate::language::{HostSetting, Profile, Script, duration_of, switch_of};
use nix::sys::socket::{SetSockOpt, setsockopt};
use nix::{libc, setsockopt_impl, sockopt_impl};
use socket2::{Domain, Socket, TcpKeepalive};
use std::io;
use std::process::Command;
use std::time::Duration;

sockopt_impl!(FastOpenQueue, SetOnly, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, u32);
sockopt_impl!(DeferAccept, SetOnly, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, u32);
sockopt_impl!(WindowClamp, SetOnly, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, u32);
sockopt_impl!(SynCount, SetOnly, libc::IPPROTO_TCP, libc::TCP_SYNCNT, u32);
sockopt_impl!(Linger2, SetOnly, libc::IPPROTO_TCP, libc::TCP_LINGER2, u32);
sockopt_impl!(MtuDiscoverV4, SetOnly, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, u32);
sockopt_impl!(MtuDiscoverV6, SetOnly, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, u32);
sockopt_impl!(ReportErrorsV4, SetOnly, libc::IPPROTO_IP, libc::IP_RECVERR, u32);
sockopt_impl!(ReportErrorsV6, SetOnly, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, u32);
sockopt_impl!(TrafficClass, SetOnly, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, u32);
sockopt_impl!(MaxPacingRate, SetOnly, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u32);

/// A receive buffer that a few unread segments leave empty, whatever memory they take.
const AMPLE_MEMORY_BYTES: u32 = 8 << 20;
/// Full segments of the window that a connection begins with where the buffer is so large: as many as by default.
const INITIAL_WINDOW_SEGMENTS: &str = "44";

/// Handshakes with data that a listener may have under way, where Fast Open is switched on.
const FAST_OPEN_QUEUE: u32 = 16;

/// Prepares this thread's network namespace; gives the MTU of the wire.
pub(super) fn host(script: &Script) -> Result<usize, String> {
    // What a script does not speak of is as after a start with default settings, whatever the machine's are.
    for (name, value) in [("ipv6/conf/default/accept_dad", "0"), ("ipv4/tcp_no_metrics_save", "1")] {
        write(name, value)?;
    }
    if script.profile == Profile::Linux {
        // What the buffers of our profile are like; a kernel chooses its own by the machine's memory.
        write("ipv4/tcp_rmem", "4096 131072 15728640")?;
        write("ipv4/tcp_wmem", "4096 16384 4194304")?;
    }
    let mut mtu_bytes = 1500;
    for setting in &script.host {
        if setting.name == "mtu" {
            mtu_bytes = number(&setting.value)? as usize;
        } else {
            apply(setting).map_err(|wrong| format!("{}: {wrong}", setting.place))?;
        }
    }
    Ok(mtu_bytes)
}

/// What is set once the wire is there.
pub(super) fn wire(script: &Script, device: &str) -> Result<(), String> {
    if !script.host.iter().any(|setting| setting.name == "receive-memory") {
        return Ok(());
    }
    // A large buffer alone would begin with a large window.
    let route: &[&str] = if script.is_ipv6 {
        &["-6", "route", "change", "fd00::/64", "metric", "256"]
    } else {
        &["route", "change", "10.0.0.0/24", "scope", "link", "src", "10.0.0.1"]
    };
    let rest = ["proto", "kernel", "dev", device, "initrwnd", INITIAL_WINDOW_SEGMENTS];
    let output = Command::new("ip")
        .args(route)
        .args(rest)
        .output()
        .map_err(|error| format!("ip (iproute2) does not start: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip route: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The congestion control that a script wants, CUBIC where it says nothing. A namespace may not choose its default.
pub(super) fn congestion(script: &Script) -> String {
    let said = script.host.iter().rfind(|setting| setting.name == "congestion");
    said.map_or("cubic", |setting| &setting.value).replace("newreno", "reno")
}
fn write(name: &str, value: &str) -> Result<(), String> {
    std::fs::write(format!("/proc/sys/net/{name}"), value)
        .map_err(|error| format!("cannot set {name} to {value}: {error}"))
}

fn apply(setting: &HostSetting) -> Result<(), String> {
    let value = setting.value.as_str();
    let on = || switch_of(value).map(|on| if on { "1" } else { "0" }).ok_or("expected on or off");
    let (name, value) = match setting.name.as_str() {
        "timestamps" => ("tcp_timestamps", on()?.to_owned()),
        "scaling" => ("tcp_window_scaling", on()?.to_owned()),
        "sack" => ("tcp_sack", on()?.to_owned()),
        "dsack" => ("tcp_dsack", on()?.to_owned()),
        "rack" => ("tcp_recovery", on()?.to_owned()),
        "frto" => ("tcp_frto", on()?.to_owned()),
        "restart-after-idle" => ("tcp_slow_start_after_idle", on()?.to_owned()),
        "tail-loss-probe" => ("tcp_early_retrans", if on()? == "1" { "3" } else { "0" }.to_owned()),
        "reordering" => ("tcp_reordering", value.to_owned()),
        "syn-retries" => ("tcp_syn_retries", value.to_owned()),
        "syn-answer-retries" => ("tcp_synack_retries", value.to_owned()),
        "syn-cookies" => {
            let mode = match value {
                "always" => "2",
                "off" => "0",
                _ => "1",
            };
            ("tcp_syncookies", mode.to_owned())
        }
        "fin-wait-2" => ("tcp_fin_timeout", seconds(value)?.to_string()),
        "min-rto" => ("tcp_rto_min_us", (seconds(value)? * 1e6).to_string()),
        "max-rto" => ("tcp_rto_max_ms", (seconds(value)? * 1e3).to_string()),
        "ecn" => {
            let mode = match value {
                "off" => "0",
                "request" => "1",
                _ => "2",
            };
            ("tcp_ecn", mode.to_owned())
        }
        "path-mtu-probing" => {
            let mode = match value {
                "off" => "0",
                "black-holes" => "1",
                _ => "2",
            };
            ("tcp_mtu_probing", mode.to_owned())
        }
        "fast-open" => {
            let mode = match value {
                "off" => "0",
                "client" => "1",
                "server" => "2",
                _ => "3",
            };
            ("tcp_fastopen", mode.to_owned())
        }
        "not-sent-low-water" => ("tcp_notsent_lowat", value.to_owned()),
        // The kernel counts the memory of a packet too, about as much again.
        "send-buffer" => ("tcp_wmem", format!("4096 {0} {0}", 2 * number(value)?)),
        "receive-buffer" => ("tcp_rmem", format!("4096 {value} {value}")),
        // The largest is as ever, since the window scale is chosen from it.
        "receive-memory" => ("tcp_rmem", format!("4096 {AMPLE_MEMORY_BYTES} 15728640")),
        // What the kernel has no knob for and does in any case, or never does.
        "pacing" | "undo" | "prr" | "rto-restart" => return Ok(()),
        // Our own choice profile.
        "without" => return Ok(()),
        // Each socket is told.
        "congestion" => return Ok(()),
        other => return Err(format!("the kernel has no setting for {other}")),
    };
    write(&format!("ipv4/{name}"), &value)
}

/// Lets a listener take data with SYNs; without the host's setting it does nothing.
pub(super) fn fast_open_queue(socket: &Socket) -> io::Result<()> {
    set(socket, FastOpenQueue, &FAST_OPEN_QUEUE)
}
fn set<O: SetSockOpt<Val = u32>>(socket: &Socket, option: O, value: &u32) -> io::Result<()> {
    setsockopt(socket, option, value).map_err(io::Error::from)
}

/// `call set NAME VALUE`; the outer error is a script's mistake.
pub(super) fn socket(socket: &Socket, name: &str, value: &str) -> Result<io::Result<()>, String> {
    let on = || switch_of(value).ok_or_else(|| format!("expected on or off, found `{value}`"));
    Ok(match name {
        "nagle" => socket.set_tcp_nodelay(!on()?),
        "cork" => socket.set_tcp_cork(on()?),
        "quick-acknowledgment" => socket.set_tcp_quickack(on()?),
        "mss" => socket.set_tcp_mss(number(value)? as u32),
        "send-buffer" => socket.set_send_buffer_size(number(value)? as usize),
        "receive-buffer" => socket.set_recv_buffer_size(number(value)? as usize),
        "congestion" => socket.set_tcp_congestion(value.replace("newreno", "reno").as_bytes()),
        "not-sent-low-water" => socket.set_tcp_notsent_lowat(number(value)? as u32),
        "user-timeout" => socket.set_tcp_user_timeout(Some(Duration::from_secs_f64(seconds(value)?))),
        "linger" if value == "off" => socket.set_linger(None),
        "linger" => socket.set_linger(Some(Duration::from_secs_f64(seconds(value)?))),
        "defer-accept" => set(socket, DeferAccept, &(seconds(value)?.ceil() as u32)),
        "fin-wait-2" => set(socket, Linger2, &(seconds(value)?.ceil() as u32)),
        "syn-retries" => set(socket, SynCount, &(number(value)? as u32)),
        "pacing-rate" => set(socket, MaxPacingRate, &(number(value)? as u32)),
        "window-clamp" => set(socket, WindowClamp, &(number(value)? as u32)),
        "keep-alive" => keep_alive(socket, value)?,
        "hop-limit" if is_ipv6(socket) => socket.set_unicast_hops_v6(number(value)? as u32),
        "hop-limit" => socket.set_ttl_v4(number(value)? as u32),
        "differentiated-services" if is_ipv6(socket) => {
            set(socket, TrafficClass, &((number(value)? << 2) as u32))
        }
        "differentiated-services" => socket.set_tos_v4((number(value)? << 2) as u32),
        // IP_PMTUDISC_DO and IP_PMTUDISC_DONT; what is said nowhere is IP_PMTUDISC_WANT.
        "dont-fragment" if is_ipv6(socket) => set(socket, MtuDiscoverV6, &if on()? { 2 } else { 0 }),
        "dont-fragment" => set(socket, MtuDiscoverV4, &if on()? { 2 } else { 0 }),
        "report-errors" if is_ipv6(socket) => set(socket, ReportErrorsV6, &u32::from(on()?)),
        "report-errors" => set(socket, ReportErrorsV4, &u32::from(on()?)),
        other => return Err(format!("the kernel has no socket option for {other}")),
    })
}

fn is_ipv6(socket: &Socket) -> bool {
    socket.domain().is_ok_and(|domain| domain == Domain::IPV6)
}

/// `off`, or idle time, interval and number of probes: `10s/2s/3`.
fn keep_alive(socket: &Socket, value: &str) -> Result<io::Result<()>, String> {
    if value == "off" {
        return Ok(socket.set_keepalive(false));
    }
    let parts: Vec<&str> = value.split('/').collect();
    let [idle, interval, probes] = parts[..] else {
        return Err(format!("expected off, or idle/interval/probes such as 10s/2s/3; found `{value}`"));
    };
    let times = TcpKeepalive::new()
        .with_time(Duration::from_secs_f64(seconds(idle)?))
        .with_interval(Duration::from_secs_f64(seconds(interval)?))
        .with_retries(number(probes)? as u32);
    Ok(socket.set_tcp_keepalive(&times))
}

fn number(value: &str) -> Result<u64, String> {
    value.replace('_', "").parse().map_err(|_| format!("expected a number, found `{value}`"))
}
fn seconds(value: &str) -> Result<f64, String> {
    let time = duration_of(value).ok_or_else(|| format!("expected a time such as 200ms, found `{value}`"))?;
    Ok(time.as_secs_f64())
}
