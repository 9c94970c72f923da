//! Input of scatter-gather frames, whose payload lies in shared packets of the sender: from another host of this
//! program, or over the loopback.

use crate::input::Reception;
use inhost_buf::{Packet, Slices};
use inhost_event::Drop;

impl Reception<'_> {
    /// Takes a frame whose headers are in `packet`, and whose payload is in the packets that `next` gives. Only the
    /// fast path takes it without a copy; for every other path it is copied into one packet.
    #[inline(never)]
    pub(crate) fn scattered(
        &mut self,
        mut packet: Packet,
        more: bool,
        next: &mut dyn FnMut() -> Option<Packet>,
    ) {
        let mut pieces: [Packet; Slices::MOST] = Default::default();
        let count = packet.pieces().min(Slices::MOST);
        let pieces = &mut pieces[..count];
        let mut adopted = true;
        for piece in pieces.iter_mut() {
            match next() {
                Some(next) if self.env.pool().adopt(&next) => *piece = next,
                _ => adopted = false,
            }
        }
        let is_taken = adopted && self.fast_input(&mut packet, pieces, more).is_ok();
        if !is_taken {
            self.commit_merged();
            self.apply_predicted();
            let whole = if adopted { packet.joined(pieces.iter(), self.env.pool()) } else { None };
            match whole {
                Some(whole) => self.frame(whole),
                None => self.env.drop_frame(self.link, Drop::NoMemory),
            }
        }
        pieces.iter_mut().for_each(|piece| self.give(piece.take()));
        self.give(packet);
    }
}
