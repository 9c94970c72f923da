//! The messages of the control socket, for server and client, and descriptor passing.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use inhost_base::Endpoint;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// The longest reply, in bytes: room for the figures of some 100,000 connections.
pub const LONGEST_LINE_BYTES: usize = 256 << 20;
/// The longest request, in bytes. A longer one ends the conversation.
pub const LONGEST_REQUEST_BYTES: usize = 64 << 10;
/// Bytes before the payload of each datagram on an unconnected UDP descriptor; see [`encode_address`].
pub const ADDRESS_BYTES: usize = 20;

/// Where a host's control socket is by default: `inhost.sock` in `$XDG_RUNTIME_DIR`, else in `/tmp/inhost-UID`, a
/// directory of the user's own.
pub fn default_path() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(directory) if !directory.is_empty() => PathBuf::from(directory).join("inhost.sock"),
        _ => own_directory().join("inhost.sock"),
    }
}

/// The directory for a user without `$XDG_RUNTIME_DIR`.
pub(crate) fn own_directory() -> PathBuf {
    PathBuf::from(format!("/tmp/inhost-{}", rustix::process::getuid().as_raw()))
}

/// Writes an end into the 20 bytes before a datagram's payload: the family (4 or 6), a zero, the port in network
/// order, and the address, of IPv4 in the first four of sixteen bytes.
pub fn encode_address(end: Endpoint) -> [u8; ADDRESS_BYTES] {
    let mut bytes = [0; ADDRESS_BYTES];
    bytes[2..4].copy_from_slice(&end.port.to_be_bytes());
    match end.address {
        std::net::IpAddr::V4(address) => {
            bytes[0] = 4;
            bytes[4..8].copy_from_slice(&address.octets());
        }
        std::net::IpAddr::V6(address) => {
            bytes[0] = 6;
            bytes[4..20].copy_from_slice(&address.octets());
        }
    }
    bytes
}

/// Reads what [`encode_address`] wrote, from the front of a message; the rest is the payload.
pub fn decode_address(message: &[u8]) -> Option<(Endpoint, &[u8])> {
    let (head, payload) = message.split_first_chunk::<ADDRESS_BYTES>()?;
    let port = u16::from_be_bytes([head[2], head[3]]);
    let address = head[4..].first_chunk::<16>()?;
    let end = match head[0] {
        4 => Endpoint::new([address[0], address[1], address[2], address[3]], port),
        6 => Endpoint::new(*address, port),
        _ => return None,
    };
    Some((end, payload))
}

/// Sends bytes and, with the first of them, a descriptor.
pub(crate) fn send_with_descriptor(
    socket: impl AsFd,
    bytes: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.map(|d| [d]);
    if let Some(descriptors) = &descriptors {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    Ok(sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
}

/// Receives bytes and the descriptors that came with them, at most four; more are closed by the system.
pub(crate) fn receive_with_descriptors(
    socket: impl AsFd,
    into: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(into)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok(received.bytes)
}

/// Receives a message of a message socket whose messages come with credentials: its length, or none at the end.
pub(crate) fn receive_message(socket: impl AsFd, into: &mut [u8]) -> io::Result<Option<usize>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(into)], &mut control, RecvFlags::empty())?;
    let is_message = received.bytes > 0 || control.drain().next().is_some();
    Ok(is_message.then_some(received.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_way() {
        for text in ["10.9.0.2:53", "[fd00::2]:65535"] {
            let end = Endpoint::from(text.parse::<std::net::SocketAddr>().unwrap());
            let mut message = encode_address(end).to_vec();
            message.extend(b"payload");
            assert_eq!(decode_address(&message), Some((end, &b"payload"[..])));
        }
        assert_eq!(decode_address(&[4; 19]), None);
        assert_eq!(decode_address(&[5; 20]), None);
    }
}
