//! A network of the test's own.

use crate::{left_out, run};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::process::Command;

/// Puts this thread, and what it starts, into its own network namespace with loopback up. Where that is not allowed the
/// test is left out: false.
#[allow(unsafe_code)]
pub fn own_network() -> bool {
    // SAFETY: nothing but the network namespace is unshared, and no descriptor depends on it.
    if let Err(error) = unsafe { unshare_unsafe(UnshareFlags::NEWNET) } {
        left_out(&format!("no network namespace of its own ({error}); run as root"));
        return false;
    }
    run(Command::new("ip").args(["link", "set", "lo", "up"]));
    // A fresh address is usable at once.
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
    true
}
