//! Software offloads for drivers whose device has none.

use inhost_buf::{Frame, Offload};

/// Copies `frame` whole into the front of `into`, finishes the transport checksum where that was asked, and gives
/// the length; `None` when it does not fit, its offsets lie outside, or it wants to be cut into segments, which no
/// driver here offers.
pub(crate) fn complete(frame: &Frame<'_>, into: &mut [u8]) -> Option<usize> {
    let length = frame.write_to(into)?;
    match frame.offload {
        Offload::None => Some(length),
        Offload::Segment { .. } => None,
        Offload::Checksum { transport_offset, checksum_offset } => {
            let transport = into.get_mut(usize::from(transport_offset)..length)?;
            let folded = inhost_buf::sum(transport);
            let field = transport.get_mut(usize::from(checksum_offset)..)?.get_mut(..2)?;
            // UDP keeps zero for "no checksum"; its other representation is as good for TCP (RFC 768).
            let checksum = if folded == 0xffff { 0xffff } else { !folded };
            field.copy_from_slice(&checksum.to_be_bytes());
            Some(length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_buf::Slices;

    #[test]
    fn a_finished_checksum_makes_the_whole_sum_all_ones() {
        // A transport of 11 bytes behind 4 others; the field at 2 holds the pseudo-header's sum.
        let header = [9, 9, 9, 9, 0x12, 0x34, 0xab, 0xcd];
        let payload = [1, 2, 3, 4, 5, 6, 7];
        let frame = Frame {
            header: &header,
            payload: Slices::one(&payload),
            offload: Offload::Checksum { transport_offset: 4, checksum_offset: 2 },
        };
        let mut out = [0; 64];
        assert_eq!(complete(&frame, &mut out), Some(15));
        assert_eq!(inhost_buf::join_sums(inhost_buf::sum(&out[4..15]), 0xabcd, false), 0xffff);
        let short =
            Frame { offload: Offload::Checksum { transport_offset: 15, checksum_offset: 2 }, ..frame };
        assert_eq!(complete(&short, &mut out), None);
        assert_eq!(complete(&frame, &mut out[..14]), None);
    }
}
