//! Several segments given to the device at once (GSO).

use crate::outcome::Blocked;
use crate::sender::next::{Data, Next};
use crate::{Ecn, Header, SegmentOutput};
use inhost_buf::SendQueue;
use inhost_wire::tcp::Flags;

/// Maximum number of segments whose payload sums are looked up; further sums are computed.
const SUMS: usize = 48;

/// Gives `data`, which begins `offset` bytes into the queue, to the device. Returns the bytes that it accepted; `offered` is
/// set to the bytes that were offered.
#[inline(never)]
pub(crate) fn lend_run<O: SegmentOutput + ?Sized>(
    data: Data,
    header: &Header,
    (send, offset): (&mut SendQueue, usize),
    ecn: Ecn,
    offered: &mut u32,
    out: &mut O,
) -> Result<u32, Blocked> {
    let mut sums = [None; SUMS];
    let mut known = 0;
    if out.wants_sums() {
        known = (Next::Data(data).segments() as usize).min(SUMS);
        let places = sums.get_mut(..known).unwrap_or_default();
        send.sums(offset, data.length as usize, data.gso_size, places);
    }
    let sums = sums.get(..known).unwrap_or(&[]);
    let payload = send.slices(offset, data.length as usize);
    let lent = payload.len() as u32;
    *offered = lent;
    if lent == data.length {
        return out.large(header, payload, data.gso_size as u16, sums, ecn);
    }
    // The data lies in more buffers than can be lent at once: the rest is sent next.
    let header = Header { flags: header.flags.difference(Flags::FIN | Flags::PSH), ..*header };
    match lent / data.gso_size {
        0 => out.segment(&header, payload, ecn).map(|()| lent),
        whole => {
            let bytes = whole * data.gso_size;
            out.large(&header, payload.part(0, bytes as usize), data.gso_size as u16, sums, ecn)
        }
    }
}
