//! Frames that another host of this program sent, or this one to itself: the payload was not copied, but lies where its
//! sender keeps it.

use crate::parts::Parts;
use crate::straight::{Reception, Run};
use inhost_buf::{Packet, Slices};
use inhost_event::{Drop, Sink};

impl Parts {
    /// Takes a frame whose headers are in `packet`, and whose payload is in the packets that `next` gives. Only the straight
    /// road takes it as it lies; for every other it is copied together.
    #[inline(never)]
    pub(crate) fn pieces_input(
        &mut self,
        reception: Reception,
        mut packet: Packet,
        next: &mut dyn FnMut() -> Option<Packet>,
        run: &mut Run,
        sink: &mut dyn Sink,
    ) {
        let Reception { link, now, .. } = reception;
        let mut pieces: [Packet; Slices::MOST] = Default::default();
        let count = packet.pieces().min(Slices::MOST);
        let pieces = &mut pieces[..count];
        let mut adopted = true;
        for piece in pieces.iter_mut() {
            match next() {
                Some(next) if self.memory.pool_mut().adopt(&next) => *piece = next,
                _ => adopted = false,
            }
        }
        let straight = adopted && self.straight_input(reception, &mut packet, pieces, run, sink);
        if !straight {
            self.end_following(link, run, now);
            self.end_run(run, now, sink);
            let whole = if adopted { packet.joined(pieces.iter(), self.memory.pool_mut()) } else { None };
            match whole {
                Some(whole) => self.frame(link, whole, now, sink),
                None => self.drop_frame(link, Drop::NoMemory, now, sink),
            }
        }
        pieces.iter_mut().for_each(|piece| self.memory.pool_mut().give(piece.take()));
        self.memory.pool_mut().give(packet);
    }
}
