//! Addresses as C writes them: `sockaddr_in` and `sockaddr_in6`, IPv4-mapped ones included.

use crate::memory;
use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Ipv6Addr};
use libc::{
    AF_INET, AF_INET6, AF_UNSPEC, EAFNOSUPPORT, EINVAL, in_addr, in6_addr, sockaddr, sockaddr_in,
    sockaddr_in6, socklen_t,
};

/// The family a socket was made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    V4,
    /// Addresses of IPv4 go in and out as IPv4-mapped ones.
    V6,
}

/// An address that came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Given {
    /// AF_UNSPEC: no address, which dissolves a connection.
    None,
    Endpoint(Endpoint),
}

/// Reads the address at `place` for a socket of `family`.
pub(crate) fn read(place: *const sockaddr, bytes: socklen_t, family: Family) -> Result<Given, i32> {
    if (bytes as usize) < size_of::<libc::sa_family_t>() {
        return Err(EINVAL);
    }
    let named = i32::from(memory::read(place.cast::<libc::sa_family_t>())?);
    match (named, family) {
        (AF_UNSPEC, _) => Ok(Given::None),
        (AF_INET, Family::V4) => {
            if (bytes as usize) < size_of::<sockaddr_in>() {
                return Err(EINVAL);
            }
            let address = memory::read(place.cast::<sockaddr_in>())?;
            let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
            Ok(Given::Endpoint(Endpoint::new(ip, u16::from_be(address.sin_port))))
        }
        (AF_INET6, Family::V6) => {
            if (bytes as usize) < size_of::<sockaddr_in6>() {
                return Err(EINVAL);
            }
            let address = memory::read(place.cast::<sockaddr_in6>())?;
            let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
            let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4);
            Ok(Given::Endpoint(Endpoint::new(ip, u16::from_be(address.sin6_port))))
        }
        _ => Err(EAFNOSUPPORT),
    }
}

/// Writes an address at `place`, as much of it as `bytes` has room for, and its whole length there. A NULL place wants
/// none.
pub(crate) fn write(
    endpoint: Endpoint,
    family: Family,
    place: *mut sockaddr,
    bytes: *mut socklen_t,
) -> Result<(), i32> {
    if place.is_null() {
        return Ok(());
    }
    let room = memory::read(bytes)? as usize;
    let image = image(endpoint, family);
    let mut target = memory::Lent::new(place.cast(), room.min(image.len()))?;
    let fits = target.len();
    target.bytes_mut().copy_from_slice(&image[..fits]);
    memory::write(bytes, image.len() as socklen_t)
}

/// The bytes of the structure.
fn image(endpoint: Endpoint, family: Family) -> Vec<u8> {
    match (endpoint.address, family) {
        (IpAddr::V4(ip), Family::V4) => {
            let address = sockaddr_in {
                sin_family: AF_INET as libc::sa_family_t,
                sin_port: endpoint.port.to_be(),
                sin_addr: in_addr { s_addr: u32::from(ip).to_be() },
                sin_zero: [0; 8],
            };
            bytes_of(&address)
        }
        (ip, _) => {
            let ip = match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            let address = sockaddr_in6 {
                sin6_family: AF_INET6 as libc::sa_family_t,
                sin6_port: endpoint.port.to_be(),
                sin6_flowinfo: 0,
                sin6_addr: in6_addr { s6_addr: ip.octets() },
                sin6_scope_id: 0,
            };
            bytes_of(&address)
        }
    }
}

fn bytes_of<T: Copy>(value: &T) -> Vec<u8> {
    // SAFETY: the two structures that come here have no padding, so each byte of them is initialised.
    unsafe { core::slice::from_raw_parts(core::ptr::from_ref(value).cast::<u8>(), size_of::<T>()) }.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_address_goes_in_as_ipv4_and_comes_out_mapped() {
        let endpoint = Endpoint::new(Ipv4Addr::new(192, 0, 2, 1), 8080);
        let bytes = image(endpoint, Family::V6);
        let read_back = read(bytes.as_ptr().cast(), bytes.len() as socklen_t, Family::V6);
        assert_eq!(read_back, Ok(Given::Endpoint(endpoint)));
        assert_eq!(&bytes[8..24], &Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets());
        assert_eq!(read(bytes.as_ptr().cast(), 128, Family::V4), Err(EAFNOSUPPORT));
        assert_eq!(read(core::ptr::null(), 16, Family::V4), Err(libc::EFAULT));
    }
}
