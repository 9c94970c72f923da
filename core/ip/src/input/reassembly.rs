//! Reassembly as input sees it: fragments in, whole datagrams out, and an ICMP error for what never becomes whole.

use super::Input;
use crate::IpEnvironment;
use crate::output::Output;
use crate::output::errors::IcmpError;
use crate::reassembly::{Insertion, Key, Piece};
use inhost_base::LinkId;
use inhost_buf::{Packet, Pool};
use inhost_event::Drop;
use inhost_wire::ipv6;

impl Input {
    /// Adds a fragment; the whole datagram once it is complete.
    pub(super) fn reassemble(
        &mut self,
        output: &mut Output,
        key: Key,
        piece: &Piece<'_>,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Option<Packet>, Drop> {
        output.paths_mut().deadline_moved();
        output.paths_mut().count(key.link, |counters| counters.received_fragments += 1);
        match self.reassembly.insert(key, piece, env.now(), env.pool()) {
            Insertion::Kept => Ok(None),
            Insertion::Dropped(why) => Err(why),
            Insertion::Complete(packet) => {
                output.paths_mut().count(key.link, |counters| counters.reassembled_datagrams += 1);
                Ok(Some(packet))
            }
        }
    }
    /// Discards incomplete datagrams that have timed out, and sends time exceeded for those whose first fragment arrived.
    // spec: RFC1122 3.3.2-4; RFC8200 4.5
    pub(crate) fn timeout_reassembly(&mut self, output: &mut Output, env: &mut IpEnvironment<'_>) {
        while let Some(expired) = self.reassembly.pop_expired(env.now()) {
            output.paths_mut().count_drop(expired.link, Drop::Fragment, env);
            let Some(packet) = expired.packet else { continue };
            match expired.fragment_header {
                None => send_reassembly_error(output, expired.link, packet.bytes(), env),
                Some((at, header)) => {
                    if let Some(first) = with_fragment_header(packet.bytes(), at, &header, env.pool()) {
                        send_reassembly_error(output, expired.link, first.bytes(), env);
                        env.pool().give(first);
                    }
                }
            }
            env.pool().give(packet);
        }
    }
}

/// Sends time exceeded about a first fragment. Its headers may be followed by data of other fragments, so that the
/// quotation is limited to the length that the headers claim.
fn send_reassembly_error(output: &mut Output, link: LinkId, bytes: &[u8], env: &mut IpEnvironment<'_>) {
    let length_at = |at: usize| bytes.get(at..at + 2).map(|b| usize::from(u16::from_be_bytes([b[0], b[1]])));
    let claimed = match bytes.first().map(|byte| byte >> 4) {
        Some(4) => length_at(2),
        Some(6) => length_at(4).map(|behind| ipv6::LENGTH + behind),
        _ => None,
    };
    if let Some(first) = claimed.and_then(|claimed| bytes.get(..claimed)) {
        output.send_error(link, IcmpError::ReassemblyTimeExceeded, first, env);
    }
}

/// An incomplete IPv6 datagram as its first fragment came, with the fragment header where it stood.
fn with_fragment_header(bytes: &[u8], at: usize, header: &[u8], pool: &mut Pool) -> Option<Packet> {
    let (front, behind) = bytes.split_at_checked(at)?;
    let mut first = pool.take(bytes.len() + header.len())?;
    for part in [front, header, behind] {
        first.append(part);
    }
    Some(first)
}
