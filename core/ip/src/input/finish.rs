//! Completion of offloaded packets before they are forwarded: checksums are filled in and GSO packets are split, so
//! that the next hop gets what the sender would have sent without offloads.

use super::Input;
use crate::IpEnvironment;
use crate::output::Output;
use crate::received::Received;
use inhost_base::LinkId;
use inhost_buf::{Checksum, Packet};
use inhost_event::Drop;
use inhost_wire::offload::{Segmenter, finish_checksum, received};

impl Input {
    /// Handles the segments of a GSO packet one by one, each from its IP header on. An error of one does not stop the
    /// others.
    pub(super) fn receive_finished(
        &mut self,
        output: &mut Output,
        link: LinkId,
        packet: &mut Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        if packet.segment_bytes() == 0 {
            let done = finish_checksum(packet.bytes_mut(), 0);
            packet.set_checksum(if done { Checksum::Verified } else { Checksum::Unknown });
            return self.receive_packet(output, link, packet, env);
        }
        let frame = received(packet.bytes(), 0, packet.segment_bytes()).ok_or(Drop::Malformed)?;
        let mut segmenter = Segmenter::new(&frame, 0).ok_or(Drop::Malformed)?;
        for index in 0..segmenter.count() {
            let frame = segmenter.frame(index, None);
            let Some(mut piece) = env.pool().take(frame.len()) else { return Err(Drop::NoMemory) };
            piece.append_with(|into| frame.write_to(into).unwrap_or(0));
            piece.set_checksum(Checksum::Verified);
            if let Err(why) = self.receive_packet(output, link, &mut piece, env) {
                output.paths_mut().count_drop(link, why, env);
            }
            env.pool().give(piece);
        }
        Ok(Received::Handled)
    }
}
