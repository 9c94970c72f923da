//! The shell commands of a script, which are about the kernel as much as its calls are.
//!
//! Settings that they write are read where they are needed (`sysctl`). Three things more are seen here, because the
//! tool runs them by `system`: that the device was made to take nothing, that what is known of destinations is to be
//! forgotten, and a look at the counters, which are shown as the host's own.

use crate::device;
use crate::world::{self, World};
use core::ffi::{CStr, c_int};
use inhost_event::Drop;
use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// The variable by which `nstat` is told where the counters are.
const COUNTERS_VARIABLE: &str = "PROC_NET_NETSTAT";
/// The kernel's list, whose names are kept.
const COUNTERS_FILE: &str = "/proc/net/netstat";
/// What has the kernel forget what it learned of destinations: their fast-open cookies among the rest.
const FORGET: &[u8] = b"tcp_metrics flush";

/// Runs `command` by the shell and answers as `system(3)`.
pub(crate) fn run(command: &CStr) -> c_int {
    let counters = world::lock().as_ref().and_then(counters_file);
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(OsStr::from_bytes(command.to_bytes()));
    if let Some(file) = &counters {
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        shell.env(COUNTERS_VARIABLE, path);
    }
    let status = shell.status();
    let flushed = command.to_bytes().windows(FORGET.len()).any(|words| words == FORGET);
    if let Some(world) = world::lock().as_mut() {
        world.set_device_takes_nothing(device::takes_nothing());
        world.refresh_fast_open_keys();
        if flushed {
            world.tcp_mut().forget_destinations();
        }
    }
    status.map_or_else(
        |why| {
            world::set_errno(why.raw_os_error().unwrap_or(libc::EAGAIN));
            -1
        },
        ExitStatusExt::into_raw,
    )
}

/// The host's counters in the form of the kernel's list, in a file that has no name.
fn counters_file(world: &World) -> Option<std::fs::File> {
    let text = counters(&std::fs::read_to_string(COUNTERS_FILE).ok()?, world);
    // SAFETY: the name is a string that ends with a zero byte, and the descriptor is ours alone.
    let mut file = unsafe {
        let fd = libc::memfd_create(c"inhost counters".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return None;
        }
        std::fs::File::from_raw_fd(fd)
    };
    file.write_all(text.as_bytes()).ok()?;
    Some(file)
}

/// The kernel's list with our figures: lines of names, each followed by its line of values. What we do not count is 0.
fn counters(list: &str, world: &World) -> String {
    let mut text = String::with_capacity(list.len());
    for names in list.lines().step_by(2) {
        let mut words = names.split_whitespace();
        let group = words.next().unwrap_or_default();
        text.push_str(names);
        text.push('\n');
        text.push_str(group);
        for name in words {
            let value = if group == "TcpExt:" { counter(name, world) } else { 0 };
            text.push_str(&format!(" {value}"));
        }
        text.push('\n');
    }
    text
}

fn counter(name: &str, world: &World) -> u64 {
    let host = world.stack().instruments().counters();
    match name {
        "SyncookiesSent" => host.cookies_sent,
        "SyncookiesRecv" => host.cookies_accepted,
        "SyncookiesFailed" => host.cookies_refused,
        "OutOfWindowIcmps" => world.dropped_for(Drop::NotCredible),
        "PAWSEstab" => world.dropped_for(Drop::OldTimestamp),
        "ListenOverflows" | "ListenDrops" => host.listen_overflows,
        "TCPFastOpenActive" => host.fast_opens_acknowledged,
        "TCPFastOpenActiveFail" => host.fast_opens_refused,
        "TCPFastOpenPassive" => host.fast_opens_accepted,
        "TCPFastOpenListenOverflow" => host.fast_opens_over_limit,
        "TCPFastOpenCookieReqd" => host.fast_open_cookies_granted,
        "TCPFastOpenBlackhole" => host.fast_open_pauses,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Flags;

    #[test]
    fn a_command_runs_and_sees_the_hosts_counters() {
        assert_eq!(run(c"exit 3"), 3 << 8, "as wait(2) tells it");
        world::install(Flags::parse("profile=linux"));
        // The names are the kernel's, and nothing has happened yet.
        let checks =
            c"grep -q '^TcpExt: SyncookiesSent' $PROC_NET_NETSTAT && ! grep -q ' [1-9]' $PROC_NET_NETSTAT";
        assert_eq!(run(checks), 0);
        world::remove();
    }
}
