//! What the operating system lets this user do.

use super::Finding;
use inhost_common::trust::distrust;
use inhost_runtime::control::{Client, default_path};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use rustix::process::{Resource, geteuid, getrlimit};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The device of TAP and TUN links.
const TUNNEL_DEVICE: &str = "/dev/net/tun";
/// Bit of `CAP_NET_ADMIN` in a set of capabilities.
const NET_ADMIN: u32 = 12;
/// A host with fewer descriptors cannot carry the 1024 connections of its gateway.
const DESCRIPTORS_WANTED: u64 = 4096;
/// A host with fewer descriptors cannot start.
const DESCRIPTORS_NEEDED: u64 = 64;

/// Whether devices can be made and configured.
pub fn privileges() -> Finding {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let subject = "privileges";
    match effective_capabilities(&status) {
        Some(capabilities) if capabilities >> NET_ADMIN & 1 == 1 => {
            Finding::works(subject, "CAP_NET_ADMIN is there: the links tap and tun can be made")
        }
        Some(_) => Finding::limited(
            subject,
            "no CAP_NET_ADMIN: the links user and serial can be made, tap and tun cannot",
            "as root: setcap cap_net_admin+ep on the program, or a device of your own: ip tuntap add in0 mode tap user NAME",
        ),
        None => Finding::limited(
            subject,
            "unknown, because /proc/self/status cannot be read",
            "mount /proc: some of what follows is found there",
        ),
    }
}

/// `CapEff` of `/proc/PID/status`.
fn effective_capabilities(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Whether the device of TAP and TUN links can be opened.
pub fn tunnel_device() -> Finding {
    let subject = "tap and tun";
    match fs::OpenOptions::new().read(true).write(true).open(TUNNEL_DEVICE) {
        Ok(_) => Finding::works(subject, format!("{TUNNEL_DEVICE} can be opened")),
        Err(error) => {
            let advice = match error.kind() {
                ErrorKind::NotFound => {
                    "as root: modprobe tun; a container has to be given the device; the link user needs none"
                }
                ErrorKind::PermissionDenied => {
                    "as root: chmod 666 /dev/net/tun; the link user needs no device"
                }
                _ => "as root: modprobe tun; the link user needs no device",
            };
            Finding::limited(subject, format!("{TUNNEL_DEVICE} cannot be opened: {error}"), advice)
        }
    }
}

/// Whether the gateway of the link `user` may send echo requests.
pub fn ping() -> Finding {
    let opens = |family, protocol| {
        socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(protocol)).is_ok()
    };
    let (four, six) =
        (opens(AddressFamily::INET, ipproto::ICMP), opens(AddressFamily::INET6, ipproto::ICMPV6));
    let range = fs::read_to_string("/proc/sys/net/ipv4/ping_group_range").unwrap_or_default();
    let range = range.split_whitespace().collect::<Vec<_>>().join(" to ");
    let subject = "ping";
    match (four, six) {
        (true, true) => {
            Finding::works(subject, "echo requests of IPv4 and IPv6 can be sent on the link user")
        }
        (true, false) => Finding::limited(
            subject,
            "echo requests of IPv4 can be sent on the link user, those of IPv6 cannot",
            "is IPv6 switched off here? See sysctl net.ipv6.conf.all.disable_ipv6",
        ),
        (false, _) => Finding::limited(
            subject,
            format!("the link user can ping only this machine: net.ipv4.ping_group_range is {range}"),
            "as root: sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"",
        ),
    }
}

/// How many descriptors a host may open.
pub fn descriptors() -> Finding {
    let subject = "descriptors";
    let advice = "raise the hard limit: ulimit -Hn as root, /etc/security/limits.conf, or LimitNOFILE= of a systemd unit";
    let limit = getrlimit(Resource::Nofile);
    match limit.maximum {
        Some(most) if most < DESCRIPTORS_NEEDED => {
            Finding::fails(subject, format!("at most {most} can be open, too few for a host"), advice)
        }
        Some(most) if most < DESCRIPTORS_WANTED => Finding::limited(
            subject,
            format!("at most {most} can be open; each forwarded connection and each file takes one"),
            advice,
        ),
        most => {
            let most = most.map_or("any number".to_owned(), |most| most.to_string());
            Finding::works(subject, format!("{most} can be open: serve raises its limit so far"))
        }
    }
}

/// Whether the user has a folder for sockets.
pub fn runtime_folder() -> Finding {
    let subject = "XDG_RUNTIME_DIR";
    let advice = "log in by PAM (loginctl enable-linger NAME makes it for services), or name sockets with --control and --via";
    let Some(folder) = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) else {
        let instead = default_path();
        let text = format!("not set: the control socket is {} instead, which works", instead.display());
        return Finding::works(subject, text);
    };
    let folder = PathBuf::from(folder);
    match fs::metadata(&folder) {
        Err(error) => Finding::fails(subject, format!("{}: {error}", folder.display()), advice),
        Ok(found) if !found.is_dir() => {
            Finding::fails(subject, format!("{} is not a folder", folder.display()), advice)
        }
        Ok(found) => match distrust(found.uid(), found.mode(), geteuid().as_raw()) {
            None => Finding::works(subject, folder.display().to_string()),
            Some(why) => Finding::fails(
                subject,
                format!("{}: {why}", folder.display()),
                format!("chmod 700 {}, or set XDG_RUNTIME_DIR to a folder of your own", folder.display()),
            ),
        },
    }
}

/// Whether a host can be controlled, and whether one runs.
pub fn control_socket() -> Finding {
    let subject = "control socket";
    let path = default_path();
    match Client::find() {
        Ok(Some(path)) => Finding::works(subject, format!("a host runs at {}", path.display())),
        Ok(None) => match can_be_made(&path) {
            Ok(()) => Finding::works(subject, format!("no host runs; {} can be made", path.display())),
            Err(why) => Finding::fails(
                subject,
                format!("{} cannot be made: {why}", path.display()),
                "set XDG_RUNTIME_DIR to a folder of your own, or name a socket with --control and --via",
            ),
        },
        Err(error) => Finding::fails(
            subject,
            error.to_string(),
            "set XDG_RUNTIME_DIR to a folder of your own, or name a socket with --control and --via",
        ),
    }
}

/// Whether a socket can be made in the folder of `path`, or that folder in the one above.
fn can_be_made(path: &Path) -> Result<(), String> {
    let mut folder = path.parent().unwrap_or(Path::new("/"));
    if !folder.exists() {
        folder = folder.parent().unwrap_or(Path::new("/"));
    }
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(folder, access).map_err(|error| format!("{}: {error}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read() {
        assert_eq!(effective_capabilities("Name:\tx\nCapEff:\t0000000000001000\n"), Some(1 << NET_ADMIN));
        assert_eq!(effective_capabilities("Name:\tx\n"), None);
    }

    #[test]
    fn a_socket_cannot_be_made_where_there_is_no_folder() {
        assert!(can_be_made(Path::new("/nowhere/at/all/inhost.sock")).is_err());
        assert!(can_be_made(&std::env::temp_dir().join("inhost.sock")).is_ok());
    }
}
