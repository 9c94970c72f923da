//! Where a run takes place: a namespace for the sender, one for the receiver, and a TUN device in each that leads to
//! the emulator.

use inhost_base::{Cidr, Ipv4Addr};
use inhost_link::{Tunnel, TunnelConfig};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

/// The kernel's end at the sender.
const SENDER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
/// The kernel at the receiver, whose network reaches all of these.
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// The kernel's end of the device of our own host, in the sender's namespace; it forwards between the two devices.
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 129);
/// Our own host.
const OURS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 130);
/// Port of the receiver.
const PORT: u16 = 9;
/// Bytes of the longest packet.
const MTU_BYTES: usize = 1500;
/// Packets that a device holds until the emulator reads them: enough for its latest wake-up.
const DEVICE_QUEUE_PACKETS: &str = "10000";

/// Two namespaces. The thread that makes it is left in the sender's.
pub struct Place {
    sender: File,
    receiver: File,
}

impl Place {
    /// Makes both namespaces, with buffers of at most `buffer_limit_bytes` on both sides, and gives the two ends of
    /// the path between them.
    pub fn new(buffer_limit_bytes: usize) -> Result<(Place, [Tunnel; 2]), String> {
        let receiver = enter_new()?;
        limit_buffers(buffer_limit_bytes)?;
        let far = tunnel("wire", &[(RECEIVER, 24)])?;
        lengthen_queue("wire")?;
        let sender = enter_new()?;
        limit_buffers(buffer_limit_bytes)?;
        set("net/ipv4/ip_forward", "1")?;
        let near = tunnel("wire", &[(SENDER, 25)])?;
        lengthen_queue("wire")?;
        Ok((Place { sender, receiver }, [near, far]))
    }
    /// The device of our own host, and its address.
    pub fn own_link(&self) -> Result<(Tunnel, Cidr), String> {
        let tunnel = tunnel("inhost", &[(ROUTER, 25)])?;
        lengthen_queue("inhost")?;
        Ok((tunnel, Cidr::new(OURS, 24).map_err(|e| e.to_string())?))
    }
    /// Listens at the receiver.
    pub fn listen(&self) -> Result<TcpListener, String> {
        let enter = |file| setns(file, CloneFlags::CLONE_NEWNET).map_err(|e| format!("no way back: {e}"));
        enter(&self.receiver)?;
        let listener = TcpListener::bind((RECEIVER, PORT));
        enter(&self.sender)?;
        listener.map_err(|e| format!("the receiver does not listen: {e}"))
    }
    /// Our own host's address, as the receiver sees it.
    pub fn own_address() -> std::net::IpAddr {
        OURS.into()
    }
    /// Port of the receiver.
    pub fn receiver_address() -> SocketAddr {
        SocketAddr::new(RECEIVER.into(), PORT)
    }
}

/// Puts this thread into its own network namespace.
pub fn enter_new() -> Result<File, String> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|e| format!("no network namespace: {e}; run as root"))?;
    File::open("/proc/thread-self/ns/net").map_err(|e| format!("/proc/thread-self/ns/net: {e}"))
}

/// Opens a device here, whose end at the kernel has these addresses.
pub fn tunnel(name: &str, addresses: &[(Ipv4Addr, u8)]) -> Result<Tunnel, String> {
    let host_addresses = addresses.iter().filter_map(|(address, bits)| Cidr::new(*address, *bits).ok());
    let config = TunnelConfig {
        mtu_bytes: MTU_BYTES,
        host_addresses: host_addresses.collect(),
        // What is measured here is segments, one by one.
        offload: false,
        ..TunnelConfig::new(name, false)
    };
    Tunnel::open(config).map_err(|e| e.to_string())
}

/// Equal limits for both ends and both stacks, and nothing remembered from one connection to the next.
fn limit_buffers(limit_bytes: usize) -> Result<(), String> {
    set("net/ipv4/tcp_wmem", &format!("4096 16384 {limit_bytes}"))?;
    set("net/ipv4/tcp_rmem", &format!("4096 131072 {limit_bytes}"))?;
    set("net/ipv4/tcp_no_metrics_save", "1")
}

/// Sets a knob of the namespace of this thread.
pub fn set(knob: &str, value: &str) -> Result<(), String> {
    let path = Path::new("/proc/sys").join(knob);
    std::fs::write(&path, value).map_err(|e| format!("{}: {e}", path.display()))
}

/// Lets a device hold what comes until the emulator wakes up.
pub fn lengthen_queue(device: &str) -> Result<(), String> {
    let words = ["link", "set", device, "txqueuelen", DEVICE_QUEUE_PACKETS];
    let output = std::process::Command::new("ip")
        .args(words)
        .output()
        .map_err(|e| format!("ip does not start: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim())),
    }
}
