//! The link SPEC: `kind[:device][,key=value]…`, the same on the command line and in `host.toml`.
//!
//! The kinds are `user`, `tap:NAME`, `tun:NAME`, `serial:/dev/ttyS0` (or `serial:/dev/ptmx`, which makes a pty) and
//! `memory:NAME`. The keys:
//!
//! | key | kinds | value | default |
//! |---|---|---|---|
//! | `address` | all | our address with its prefix, as `10.9.0.2/24` or `fd00::2/64`; may be repeated | none |
//! | `address` | tap | `dhcp`: leased from a server of the link | none |
//! | `gateway` | all | an address; may be repeated, the preferred first | none |
//! | `mtu` | all | bytes of the longest IP datagram | the kind's |
//! | `forward` | user | `[tcp:\|udp:]HOST:PORT->PORT`, TCP where nothing is said; may be repeated | none |
//! | `per-caller` | user | connections that one outer caller may have through forwards at a time | 256 |
//! | `loopback` | user | `yes`: the gateway's address reaches the system's own loopback | `no` |
//! | `host` | tap, tun | the kernel's address with its prefix; may be repeated | none |
//! | `offload` | tap, tun | `on` or `off`: checksums and segmentation by the device | `on` |
//! | `gso`, `gro` | all | `on` or `off`: generic segmentation and receive offload | `on` |
//! | `baud` | serial | bits a second | 9600 |
//! | `framing` | serial | `slip` or `llp` | `slip` |
//! | `offer` | serial, llp | the IPv4 address for the other end when it asks; needs an IPv4 `address` | none |
//! | `noise` | serial | share of received octets that are changed | 0 |
//! | `loss`, `corrupt`, `duplicate`, `reorder` | all | share of frames, each way, as `5%` or `0.05` | 0 |
//! | `delay` | all | time added to each frame, each way, as `20ms` | 0 |
//! | `seed` | all | seed of the random choices | 0 |
//!
//! ```
//! use inhost_link::{Kind, Spec};
//! let spec: Spec = "tap:in0,address=10.9.0.2/24,host=10.9.0.1/24,loss=5%".parse().unwrap();
//! assert_eq!(spec.kind, Kind::Tap);
//! assert_eq!(spec.to_string(), "tap:in0,address=10.9.0.2/24,host=10.9.0.1/24,loss=5%");
//! ```

mod error;
mod forward;
mod parse;

pub use error::SpecError;
pub use forward::{Forward, Transport};

use crate::faults::Rates;
use core::fmt;
use inhost_base::{Cidr, IpAddr, Ipv4Addr};

/// Default MTU of serial lines (RFC 1055).
pub(crate) const SERIAL_MTU_BYTES: usize = inhost_wire::slip::CUSTOMARY_MTU_BYTES;

/// The kind of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The in-process gateway onto the operating system's own sockets: no device, no privilege.
    User,
    /// A TAP device: Ethernet frames to and from the kernel.
    Tap,
    /// A TUN device: IP datagrams to and from the kernel.
    Tun,
    /// A serial line, or a pty.
    Serial,
    /// A pair of ends inside one process.
    Memory,
}

impl Kind {
    const NAMES: [(&'static str, Kind); 5] = [
        ("user", Kind::User),
        ("tap", Kind::Tap),
        ("tun", Kind::Tun),
        ("serial", Kind::Serial),
        ("memory", Kind::Memory),
    ];
    fn name(self) -> &'static str {
        Kind::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// How a serial line marks where packets begin and end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Framing {
    /// RFC 1055.
    #[default]
    Slip,
    /// The MIT low level protocol, MIT §5.3.
    Llp,
}

/// A link as it was asked for.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Spec {
    /// Its kind.
    pub kind: Kind,
    /// The device: an interface name, a tty's path, or a name; empty for `user`.
    pub device: String,
    /// Our addresses on it.
    pub addresses: Vec<Cidr>,
    /// Whether a server of the link is asked for an address (`tap`).
    pub dhcp: bool,
    /// Gateways in order of preference.
    pub gateways: Vec<IpAddr>,
    /// The longest IP datagram, where it is not the kind's default.
    pub mtu_bytes: Option<usize>,
    /// Ports of the operating system that lead to ours (`user`).
    pub forwards: Vec<Forward>,
    /// The kernel's addresses at its end (`tap`, `tun`).
    pub host_addresses: Vec<Cidr>,
    /// Whether checksums and segmentation are left to the device (`tap`, `tun`).
    pub offload: bool,
    /// Generic segmentation offload: several full segments are sent as one, split in software if the device cannot.
    pub gso: bool,
    /// Generic receive offload: consecutive segments are merged for the transport.
    pub gro: bool,
    /// Connections that one outer caller may have through forwards at a time (`user`); none is the gateway's default.
    pub connections_per_caller: Option<usize>,
    /// Whether guests may reach the operating system's loopback through the gateway's address (`user`).
    pub reach_loopback: bool,
    /// Bits a second (`serial`).
    pub baud: u32,
    /// Framing (`serial`).
    pub framing: Framing,
    /// The address that we give to the other end when it asks (`serial` with LLP).
    pub offer: Option<Ipv4Addr>,
    /// Share of the octets received that are changed on purpose (`serial`).
    pub noise: f64,
    /// Faults made on purpose.
    pub faults: Rates,
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if !self.device.is_empty() {
            write!(f, ":{}", self.device)?;
        }
        let Spec {
            kind,
            device: _,
            addresses,
            dhcp,
            gateways,
            mtu_bytes,
            forwards,
            connections_per_caller,
            host_addresses,
            offload,
            gso,
            gro,
            reach_loopback,
            baud,
            framing,
            offer,
            noise,
            faults,
        } = self;
        addresses.iter().try_for_each(|a| write!(f, ",address={a}"))?;
        if *dhcp {
            f.write_str(",address=dhcp")?;
        }
        gateways.iter().try_for_each(|g| write!(f, ",gateway={g}"))?;
        mtu_bytes.iter().try_for_each(|m| write!(f, ",mtu={m}"))?;
        forwards.iter().try_for_each(|forward| write!(f, ",forward={forward}"))?;
        connections_per_caller.iter().try_for_each(|limit| write!(f, ",per-caller={limit}"))?;
        host_addresses.iter().try_for_each(|a| write!(f, ",host={a}"))?;
        for (key, on) in [("offload", offload), ("gso", gso), ("gro", gro)] {
            if !*on {
                write!(f, ",{key}=off")?;
            }
        }
        if *reach_loopback {
            f.write_str(",loopback=yes")?;
        }
        if *kind == Kind::Serial {
            write!(f, ",baud={baud}")?;
            f.write_str(match framing {
                Framing::Slip => ",framing=slip",
                Framing::Llp => ",framing=llp",
            })?;
        }
        offer.iter().try_for_each(|a| write!(f, ",offer={a}"))?;
        if *noise > 0.0 {
            write!(f, ",noise={}", crate::faults::Percent(*noise))?;
        }
        write!(f, "{faults}")
    }
}
