//! The links: a TUN or TAP device whose kernel's end is ours to serve, a veth pair into a second namespace, or the
//! kernel's loopback.

use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::{Child, Command};
use std::str::FromStr;

/// What the devices are called, at both ends.
const DEVICE: &str = "bench";
/// The kernel's end.
pub const KERNEL: std::net::Ipv4Addr = std::net::Ipv4Addr::new(10, 9, 0, 1);
/// The process's end.
pub const PROCESS: std::net::Ipv4Addr = std::net::Ipv4Addr::new(10, 9, 0, 2);
/// Packets that a device holds until its reader comes.
const QUEUE_PACKETS: &str = "1000";

/// A link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    kind: Kind,
    offload: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Tun,
    /// With a queue for each shard.
    TunQueues,
    Tap,
    /// A kernel at both ends.
    Veth,
    /// The kernel alone, by its loopback.
    Loopback,
    /// Like veth, but the kernel has no address at the process's end: the process brings its own stack.
    Bare,
}

impl FromStr for Link {
    type Err = String;
    fn from_str(word: &str) -> Result<Link, String> {
        let (kind, offload) = match word.split_once('-') {
            Some((kind, "offload")) => (kind, true),
            Some((kind, "plain")) => (kind, false),
            _ => return Err(format!("{word:?} is not a link")),
        };
        let kind = match kind {
            "tun" => Kind::Tun,
            "tun1" | "tun2" => Kind::TunQueues,
            "tap" => Kind::Tap,
            "veth" => Kind::Veth,
            "lo" => Kind::Loopback,
            "packet" => Kind::Bare,
            _ => return Err(format!("{word:?} is not a link")),
        };
        Ok(Link { kind, offload })
    }
}

/// The namespaces; the thread that makes it is left in that of the kernel's end.
pub struct Place {
    kernel: File,
    process: File,
}

impl Place {
    /// Makes the namespaces and the link, with addresses and up.
    pub fn new(link: Link) -> Result<Place, String> {
        let process = enter_new()?;
        if matches!(link.kind, Kind::Tun | Kind::TunQueues | Kind::Tap) {
            let kernel = process.try_clone().map_err(|e| e.to_string())?;
            let mode = if link.kind == Kind::Tap { "tap" } else { "tun" };
            let queues: &[&str] = if link.kind == Kind::TunQueues { &["multi_queue"] } else { &[] };
            ip(&[&["tuntap", "add", "dev", DEVICE, "mode", mode], queues].concat())?;
            bring_up(Some(KERNEL))?;
            return Ok(Place { kernel, process });
        }
        if link.kind == Kind::Loopback {
            let kernel = process.try_clone().map_err(|e| e.to_string())?;
            ip(&["address", "add", &format!("{KERNEL}/24"), "dev", "lo"])?;
            return Ok(Place { kernel, process });
        }
        let kernel = enter_new()?;
        let there = format!("/proc/{}/fd/{}", std::process::id(), process.as_raw_fd());
        ip(&["link", "add", DEVICE, "type", "veth", "peer", "name", DEVICE, "netns", &there])?;
        if !link.offload {
            one_segment_at_a_time()?;
        }
        bring_up(Some(KERNEL))?;
        let place = Place { kernel, process };
        place.enter(&place.process)?;
        if !link.offload {
            one_segment_at_a_time()?;
        }
        bring_up((link.kind == Kind::Veth).then_some(PROCESS))?;
        place.enter(&place.kernel)?;
        Ok(place)
    }
    /// Starts a process at its end of the link.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, String> {
        self.enter(&self.process)?;
        let child = command.spawn();
        self.enter(&self.kernel)?;
        child.map_err(|e| format!("{}: {e}", command.get_program().to_string_lossy()))
    }
    fn enter(&self, namespace: &File) -> Result<(), String> {
        setns(namespace, CloneFlags::CLONE_NEWNET).map_err(|e| format!("no way into the namespace: {e}"))
    }
}

/// Puts this thread into its own network namespace, where nothing is remembered from one connection to the next.
fn enter_new() -> Result<File, String> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|e| format!("no network namespace: {e}; run as root"))?;
    set("net/ipv4/tcp_no_metrics_save", "1")?;
    ip(&["link", "set", "lo", "up"])?;
    File::open("/proc/thread-self/ns/net").map_err(|e| format!("/proc/thread-self/ns/net: {e}"))
}

fn bring_up(address: Option<std::net::Ipv4Addr>) -> Result<(), String> {
    // Its announcements would only be in the way. A kernel without IPv6 has no such knob.
    let _ = set(&format!("net/ipv6/conf/{DEVICE}/disable_ipv6"), "1");
    if let Some(address) = address {
        ip(&["address", "add", &format!("{address}/24"), "dev", DEVICE])?;
    }
    ip(&["link", "set", DEVICE, "mtu", "1500", "txqueuelen", QUEUE_PACKETS, "up"])
}

fn one_segment_at_a_time() -> Result<(), String> {
    ip(&["link", "set", DEVICE, "gso_max_segs", "1"])
}

fn set(knob: &str, value: &str) -> Result<(), String> {
    let path = std::path::Path::new("/proc/sys").join(knob);
    std::fs::write(&path, value).map_err(|e| format!("{}: {e}", path.display()))
}

fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).output();
    let output = output.map_err(|e| format!("ip does not start: {e}; apt-get install iproute2"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim())),
    }
}
