//! Ancillary data (control messages) of `recvmsg`.

use crate::memory::Lent;
use libc::{c_int, cmsghdr, msghdr, size_t};

/// One control message: level, type and data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Control {
    pub level: c_int,
    pub kind: c_int,
    pub data: Vec<u8>,
}

/// Bytes that a length takes in a control buffer.
fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(size_of::<size_t>())
}

/// Writes `controls` into the buffer that `message` names and sets its length; false when some did not fit, which is
/// MSG_CTRUNC.
pub(crate) fn write(message: &mut msghdr, controls: &[Control]) -> Result<bool, i32> {
    let header = aligned(size_of::<cmsghdr>());
    let mut image = Vec::new();
    let mut room = if message.msg_control.is_null() { 0 } else { message.msg_controllen };
    let mut complete = true;
    for control in controls {
        let length = header + control.data.len();
        if length > room {
            complete = false;
            break;
        }
        let mut entry = vec![0; aligned(length)];
        entry[..8].copy_from_slice(&length.to_ne_bytes());
        entry[8..12].copy_from_slice(&control.level.to_ne_bytes());
        entry[12..16].copy_from_slice(&control.kind.to_ne_bytes());
        entry[header..length].copy_from_slice(&control.data);
        entry.truncate(room);
        room -= entry.len();
        image.extend_from_slice(&entry);
    }
    let mut target = Lent::new(message.msg_control.cast(), image.len())?;
    target.bytes_mut().copy_from_slice(&image);
    message.msg_controllen = image.len();
    Ok(complete)
}
const _: () = assert!(size_of::<cmsghdr>() == 16);
