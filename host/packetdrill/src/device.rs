//! The device of the tool, whose place this library takes: what it is told by `tc` holds for what leaves here.
//!
//! A script can make the device take nothing, by a queue of length 0, to see what a host does that cannot send. Whether
//! that is so the kernel is asked, by a netlink message to the network namespace that the scripts' commands work in.

use core::ffi::{CStr, c_int, c_uint};
use libc::{nlmsghdr, sockaddr_nl};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The name that the tool gives its device.
const NAME: &CStr = c"tun0";
/// The most that is read of one answer.
const ANSWER_BYTES: usize = 16 * 1024;
/// Answers that are read before the end of the list.
const ANSWERS: usize = 64;

/// `struct tcmsg`: family and padding, interface, handle, parent, info.
const TRAFFIC_BYTES: usize = 20;
const HEADER_BYTES: usize = size_of::<nlmsghdr>();
/// `TC_H_ROOT`, the parent of the queue that a device has.
const ROOT: u32 = u32::MAX;
const KIND: u16 = libc::TCA_KIND;
const OPTIONS: u16 = libc::TCA_OPTIONS;

/// Whether the tool's device has a queue that nothing fits into. A device that is not there takes everything.
pub(crate) fn takes_nothing() -> bool {
    // SAFETY: the name is a string that ends with a zero byte.
    let interface = unsafe { libc::if_nametoindex(NAME.as_ptr()) };
    interface != 0 && ask(interface).unwrap_or(false)
}

/// Asks for all queues of `interface`; `None` where the kernel does not answer.
fn ask(interface: c_uint) -> Option<bool> {
    let mut request = [0_u8; HEADER_BYTES + TRAFFIC_BYTES];
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    request[..4].copy_from_slice(&((HEADER_BYTES + TRAFFIC_BYTES) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&libc::RTM_GETQDISC.to_ne_bytes());
    request[6..8].copy_from_slice(&flags.to_ne_bytes());
    request[HEADER_BYTES + 4..HEADER_BYTES + 8].copy_from_slice(&interface.to_ne_bytes());
    // SAFETY: the call has no demands on its arguments; the descriptor is ours alone.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE);
        if fd < 0 {
            return None;
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: zero is a value of the structure; the request and the address are as long as is said.
    let sent = unsafe {
        let mut kernel: sockaddr_nl = core::mem::zeroed();
        kernel.nl_family = libc::AF_NETLINK as u16;
        let (to, bytes) = ((&raw const kernel).cast(), size_of::<sockaddr_nl>() as u32);
        libc::sendto(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0, to, bytes)
    };
    (sent == request.len() as isize).then(|| read_answers(&socket, interface))
}

fn read_answers(socket: &OwnedFd, interface: c_uint) -> bool {
    let mut answer = vec![0_u8; ANSWER_BYTES];
    for _ in 0..ANSWERS {
        // SAFETY: there is as much room as is said.
        let bytes = unsafe { libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
        let Some(mut rest) = usize::try_from(bytes).ok().and_then(|bytes| answer.get(..bytes)) else { break };
        while let Some((kind, body, after)) = message(rest) {
            if c_int::from(kind) == libc::NLMSG_DONE || c_int::from(kind) == libc::NLMSG_ERROR {
                return false;
            }
            if kind == libc::RTM_NEWQDISC && is_empty_queue(body, interface) {
                return true;
            }
            rest = after;
        }
    }
    false
}

/// The kind and the body of the first message, and what follows it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = word(bytes, 0)? as usize;
    let kind = half(bytes, 4)?;
    let body = bytes.get(HEADER_BYTES..length)?;
    Some((kind, body, bytes.get(length.next_multiple_of(4)..).unwrap_or(&[])))
}

/// Whether a `struct tcmsg` with its attributes tells of a first-in-first-out queue of length 0 at the root.
fn is_empty_queue(body: &[u8], interface: c_uint) -> bool {
    if word(body, 4) != Some(interface) || word(body, 12) != Some(ROOT) {
        return false;
    }
    let (mut fifo, mut limit) = (false, None);
    let mut rest = body.get(TRAFFIC_BYTES..).unwrap_or(&[]);
    while let (Some(length), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        let Some(value) = rest.get(4..usize::from(length)) else { break };
        match kind {
            KIND => fifo = value.starts_with(b"pfifo\0") || value.starts_with(b"bfifo\0"),
            // `struct tc_fifo_qopt`
            OPTIONS => limit = word(value, 0),
            _ => {}
        }
        rest = rest.get(usize::from(length).next_multiple_of(4)..).unwrap_or(&[]);
    }
    fifo && limit == Some(0)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel says of a queue: a `struct tcmsg`, the kind and the limit.
    fn queue(interface: u32, parent: u32, kind: &[u8], limit: u32) -> Vec<u8> {
        let mut body = vec![0; TRAFFIC_BYTES];
        body[4..8].copy_from_slice(&interface.to_ne_bytes());
        body[12..16].copy_from_slice(&parent.to_ne_bytes());
        for (name, value) in [(KIND, kind), (OPTIONS, &limit.to_ne_bytes())] {
            body.extend((value.len() as u16 + 4).to_ne_bytes());
            body.extend(name.to_ne_bytes());
            body.extend(value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        body
    }

    #[test]
    fn a_queue_of_length_zero_takes_nothing() {
        assert!(is_empty_queue(&queue(3, ROOT, b"pfifo\0", 0), 3));
        assert!(is_empty_queue(&queue(3, ROOT, b"bfifo\0", 0), 3));
        assert!(!is_empty_queue(&queue(3, ROOT, b"pfifo\0", 500), 3));
        assert!(!is_empty_queue(&queue(3, ROOT, b"pfifo_fast\0", 0), 3), "it has no such option");
        assert!(!is_empty_queue(&queue(3, 0x1_0001, b"pfifo\0", 0), 3), "within another queue");
        assert!(!is_empty_queue(&queue(2, ROOT, b"pfifo\0", 0), 3), "another device's");
    }

    #[test]
    fn an_answer_that_is_cut_off_says_nothing() {
        let whole = queue(3, ROOT, b"pfifo\0", 0);
        for length in 0..whole.len() {
            assert!(!is_empty_queue(&whole[..length], 3), "{length}");
        }
        let mut bytes = 999_u32.to_ne_bytes().to_vec();
        bytes.resize(HEADER_BYTES + TRAFFIC_BYTES, 0);
        assert!(message(&bytes).is_none(), "longer than it is");
        assert!(message(&bytes[..5]).is_none());
        bytes[..4].fill(0);
        assert!(message(&bytes).is_none(), "shorter than its header");
    }

    #[test]
    fn the_kernel_answers_for_a_device_that_is_there() {
        // The loopback is the only device that is everywhere, and nobody sets its queue.
        assert!(!ask(1).unwrap_or(false));
    }
}
