//! The `ioctl` requests of a TUN or TAP device. They take C structures and have no safe form; each structure lives on
//! the stack for the length of its call.

use inhost_base::{Cidr, IpAddr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// An interface of the kernel, by name.
pub(super) struct Kernel {
    name: [libc::c_char; libc::IFNAMSIZ],
    control: OwnedFd,
    control_v6: Option<OwnedFd>,
}

/// `struct in6_ifreq` of <linux/ipv6.h>.
#[repr(C)]
struct AddressRequestV6 {
    address: libc::in6_addr,
    prefix_bits: u32,
    index: libc::c_int,
}

impl Kernel {
    pub(super) fn new(name: &str) -> io::Result<Kernel> {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
        let mut c_name = [0; libc::IFNAMSIZ];
        if name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an interface name has at most 15 octets",
            ));
        }
        for (to, from) in c_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let open = |family| socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
        let control = open(AddressFamily::INET)?;
        Ok(Kernel { name: c_name, control, control_v6: open(AddressFamily::INET6).ok() })
    }

    /// Whether the interface is there.
    pub(super) fn exists(&self) -> bool {
        call(self.control.as_fd(), libc::SIOCGIFINDEX, &mut self.request()).is_ok()
    }
    /// Makes the interface, or attaches `descriptor` to it: as one of several queues where `multi_queue`, with a header
    /// before each frame where `offload`.
    pub(super) fn attach(
        &self,
        descriptor: BorrowedFd<'_>,
        ethernet: bool,
        offload: bool,
        multi_queue: bool,
    ) -> io::Result<()> {
        let mut request = self.request();
        let mut flags = libc::IFF_NO_PI | if ethernet { libc::IFF_TAP } else { libc::IFF_TUN };
        flags |= if offload { libc::IFF_VNET_HDR } else { 0 };
        flags |= if multi_queue { libc::IFF_MULTI_QUEUE } else { 0 };
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        call(descriptor, libc::TUNSETIFF, &mut request)
    }
    /// Enables offloads from the kernel: partial checksums, and GSO as far as this kernel supports it. Returns whether
    /// it accepts UDP GSO from us.
    pub(super) fn offload(&self, descriptor: BorrowedFd<'_>) -> io::Result<bool> {
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let udp = libc::TUN_F_USO4 | libc::TUN_F_USO6;
        // Before Linux 6.2 there was none for UDP.
        let set = |flags| call_by_value(descriptor, libc::TUNSETOFFLOAD, flags);
        set(tcp | udp).map(|()| true).or_else(|_| set(tcp).map(|()| false))
    }
    pub(super) fn set_mtu(&self, mtu_bytes: usize) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_mtu = libc::c_int::try_from(mtu_bytes).unwrap_or(libc::c_int::MAX);
        call(self.control.as_fd(), libc::SIOCSIFMTU, &mut request)
    }
    pub(super) fn bring_up(&self) -> io::Result<()> {
        let mut request = self.request();
        call(self.control.as_fd(), libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: the kernel has just filled in the flags member.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        request.ifr_ifru.ifru_flags = flags | (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        call(self.control.as_fd(), libc::SIOCSIFFLAGS, &mut request)
    }
    /// Gives the kernel's end an address. One that it has already is not an error.
    pub(super) fn add_address(&self, address: &Cidr) -> io::Result<()> {
        let added = match address.address() {
            IpAddr::V4(a) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(address.prefix_bits())).unwrap_or(0);
                self.set_v4(libc::SIOCSIFADDR, u32::from(a))
                    .and_then(|()| self.set_v4(libc::SIOCSIFNETMASK, mask))
            }
            IpAddr::V6(a) => self.add_v6(a.octets(), address.prefix_bits()),
        };
        added.or_else(|e| if e.raw_os_error() == Some(libc::EEXIST) { Ok(()) } else { Err(e) })
    }

    fn set_v4(&self, what: libc::Ioctl, value: u32) -> io::Result<()> {
        let mut request = self.request();
        let socket_address = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: 0,
            sin_addr: libc::in_addr { s_addr: value.to_be() },
            sin_zero: [0; 8],
        };
        // SAFETY: sockaddr_in and sockaddr are both 16 octets of plain data, and the kernel reads the first as the
        // second by its family.
        request.ifr_ifru.ifru_addr =
            unsafe { core::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(socket_address) };
        call(self.control.as_fd(), what, &mut request)
    }
    fn add_v6(&self, octets: [u8; 16], prefix_bits: u8) -> io::Result<()> {
        let control = self.control_v6.as_ref().ok_or_else(|| {
            io::Error::new(io::ErrorKind::Unsupported, "this kernel has no IPv6; leave that address out")
        })?;
        let mut request = self.request();
        call(self.control.as_fd(), libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: the kernel has just filled in the index member.
        let index = unsafe { request.ifr_ifru.ifru_ifindex };
        let mut address = AddressRequestV6 {
            address: libc::in6_addr { s6_addr: octets },
            prefix_bits: u32::from(prefix_bits),
            index,
        };
        call(control.as_fd(), libc::SIOCSIFADDR, &mut address)
    }
    fn request(&self) -> libc::ifreq {
        // SAFETY: ifreq is plain data for which all zeros is a value.
        let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
        request.ifr_name = self.name;
        request
    }
}

fn call<T>(descriptor: BorrowedFd<'_>, what: libc::Ioctl, argument: &mut T) -> io::Result<()> {
    // SAFETY: each caller passes the structure that `what` reads and writes, and it outlives the call.
    let result = unsafe { libc::ioctl(descriptor.as_raw_fd(), what, core::ptr::from_mut(argument)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn call_by_value(descriptor: BorrowedFd<'_>, what: libc::Ioctl, argument: libc::c_uint) -> io::Result<()> {
    // SAFETY: this request takes a number and no address.
    let result = unsafe { libc::ioctl(descriptor.as_raw_fd(), what, libc::c_ulong::from(argument)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
