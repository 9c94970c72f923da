//! The chain of IPv6 extension headers, walked from the fixed header to the upper layer (RFC 8200 §4).

use super::{Ipv6View, LENGTH};
use crate::cursor::Reader;
use crate::{protocol, tcp, udp};

/// Most extension headers that one packet may have.
pub const MAX_EXTENSION_HEADERS: usize = 8;
/// Most options, padding apart, in one options header (RFC 8504 §5.3 allows such a limit).
pub const MAX_EXTENSION_OPTIONS: usize = 8;
/// Bytes of the hop-by-hop header that [`emit_mld_hop_by_hop`] writes.
pub const MLD_HOP_BY_HOP_LENGTH: usize = 8;

/// Bytes of a fragment header.
pub const FRAGMENT_HEADER_LENGTH: usize = 8;
/// Offset of the payload length in the fixed header.
const PAYLOAD_LENGTH_OFFSET: u32 = 4;
/// Offset of the next header in the fixed header.
const NEXT_HEADER_OFFSET: usize = 6;

const OPTION_PAD_1: u8 = 0;
const OPTION_PAD_N: u8 = 1;
const OPTION_ROUTER_ALERT: u8 = 5;

/// ICMPv6 Parameter Problem codes.
const ERRONEOUS_FIELD: u8 = 0;
const UNRECOGNISED_NEXT_HEADER: u8 = 1;
const UNRECOGNISED_OPTION: u8 = 2;
const INCOMPLETE_CHAIN: u8 = 3;

/// The upper layer behind the extension headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UpperLayer<'a> {
    /// The upper-layer protocol, as in [`crate::protocol`]; of a fragment, what its datagram's fragmentable part
    /// begins with, which may still be an extension header.
    pub protocol: u8,
    /// Where it begins, in bytes from the start of the packet.
    pub offset: usize,
    /// The bytes from there to the end of the packet.
    pub payload: &'a [u8],
    /// Offset of the field that names `protocol`, from the start of the packet: the pointer of a parameter problem of
    /// code 1.
    pub next_header_offset: usize,
    /// Set when the packet is a part of a datagram; `payload` is then that part. Not set for an atomic
    /// fragment, which is a whole datagram (RFC 6946).
    pub fragment: Option<Fragment>,
    /// The value of a Router Alert option (RFC 2711); 0 means MLD.
    pub router_alert: Option<u16>,
}

/// A fragment header (RFC 8200 §4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Where the part belongs in the fragmentable part; a multiple of 8.
    pub offset_bytes: u16,
    /// More fragments follow.
    pub more_fragments: bool,
    /// The identification, which the fragments of one datagram share.
    pub identification: u32,
    /// Where the fragment header begins, in bytes from the start of the packet: the length of the part that
    /// every fragment repeats.
    pub header_offset: usize,
    /// Offset of the field that names the fragment header, from the start of the packet; in the reassembled datagram it
    /// holds [`UpperLayer::protocol`] of the first fragment.
    pub named_at: usize,
}

/// Why a packet goes no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExtensionError {
    /// It is dropped without an error.
    Discard(Discard),
    /// It is dropped, and an ICMPv6 Parameter Problem is sent.
    ParameterProblem {
        /// The code of the message.
        code: u8,
        /// The offending byte, counted from the start of the packet.
        pointer: u32,
        /// The message is sent even when the packet went to a multicast address (RFC 4443 §2.4 (e.3)).
        even_if_multicast: bool,
    },
}

/// Why a packet is dropped without a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Discard {
    /// A header runs past the end of the packet.
    Truncated,
    /// More than [`MAX_EXTENSION_HEADERS`] headers.
    TooManyHeaders,
    /// More than [`MAX_EXTENSION_OPTIONS`] options in one header.
    TooManyOptions,
    /// An option that is not understood wants the packet dropped.
    OptionAsked,
}

const fn problem(code: u8, pointer: usize) -> ExtensionError {
    ExtensionError::ParameterProblem { code, pointer: pointer as u32, even_if_multicast: false }
}

/// Walks the extension headers of a packet that has reached its destination. It stops at the upper layer, or
/// behind the fragment header of a packet that is a part of a datagram.
// spec: RFC8200 4
pub fn walk<'a>(view: &Ipv6View<'a>) -> Result<UpperLayer<'a>, ExtensionError> {
    let mut at = UpperLayer {
        protocol: view.next_header(),
        offset: LENGTH,
        payload: view.payload(),
        next_header_offset: NEXT_HEADER_OFFSET,
        fragment: None,
        router_alert: None,
    };
    for _ in 0..=MAX_EXTENSION_HEADERS {
        match at.protocol {
            // Nowhere but directly behind the fixed header.
            // spec: RFC8200 4.1
            protocol::HOP_BY_HOP if at.offset != LENGTH => {
                return Err(problem(UNRECOGNISED_NEXT_HEADER, at.next_header_offset));
            }
            protocol::HOP_BY_HOP | protocol::DESTINATION_OPTIONS => {
                let header = sized_header(at.payload)?;
                let router_alert = walk_options(header, at.offset)?;
                at.router_alert = at.router_alert.or(router_alert);
                step_over(&mut at, header.len())?;
            }
            protocol::ROUTING => {
                let header = sized_header(at.payload)?;
                // No type of routing header is understood, type 0 least of all (RFC 5095).
                // spec: RFC8200 4.4
                if header.get(3) != Some(&0) {
                    return Err(problem(ERRONEOUS_FIELD, at.offset + 2));
                }
                step_over(&mut at, header.len())?;
            }
            protocol::FRAGMENT => {
                let fragment = fragment_header(&at)?;
                step_over(&mut at, FRAGMENT_HEADER_LENGTH)?;
                if fragment.offset_bytes != 0 || fragment.more_fragments {
                    check_fragment(&at, &fragment)?;
                    at.fragment = Some(fragment);
                    return Ok(at);
                }
            }
            _ => return Ok(at),
        }
    }
    Err(ExtensionError::Discard(Discard::TooManyHeaders))
}

/// The part that a router processes: the hop-by-hop options, if any.
// spec: RFC8200 4, 4.3
pub fn check_hop_by_hop(view: &Ipv6View<'_>) -> Result<(), ExtensionError> {
    if view.next_header() != protocol::HOP_BY_HOP {
        return Ok(());
    }
    walk_options(sized_header(view.payload())?, LENGTH).map(|_| ())
}

/// A header whose second byte is its length, in units of 8 bytes beyond the first 8.
fn sized_header(bytes: &[u8]) -> Result<&[u8], ExtensionError> {
    let units = bytes.get(1).ok_or(ExtensionError::Discard(Discard::Truncated))?;
    bytes.get(..8 + 8 * usize::from(*units)).ok_or(ExtensionError::Discard(Discard::Truncated))
}

fn step_over(at: &mut UpperLayer<'_>, length: usize) -> Result<(), ExtensionError> {
    let truncated = ExtensionError::Discard(Discard::Truncated);
    let (header, rest) = at.payload.split_at_checked(length).ok_or(truncated)?;
    at.protocol = *header.first().ok_or(truncated)?;
    at.next_header_offset = at.offset;
    at.offset += length;
    at.payload = rest;
    Ok(())
}

/// Reads the options of a hop-by-hop or destination options header that begins at `offset` of the packet;
/// returns the router alert.
// spec: RFC8200 4.2
fn walk_options(header: &[u8], offset: usize) -> Result<Option<u16>, ExtensionError> {
    let mut router_alert = None;
    let mut count = 0;
    let mut r = Reader::new(header.get(2..).unwrap_or(&[]));
    while !r.rest().is_empty() {
        let option_offset = offset + header.len() - r.rest().len();
        let Some(kind) = r.u8() else { break };
        if kind == OPTION_PAD_1 {
            continue;
        }
        let Some(length) = r.u8() else { return Err(problem(ERRONEOUS_FIELD, option_offset)) };
        let body = r.bytes(usize::from(length)).ok_or(problem(ERRONEOUS_FIELD, option_offset + 1))?;
        match (kind, body) {
            (OPTION_PAD_N, _) => continue,
            (OPTION_ROUTER_ALERT, [a, b]) => router_alert = Some(u16::from_be_bytes([*a, *b])),
            // The two high bits say what to do with an option that is not understood.
            _ => match kind >> 6 {
                0 => {}
                1 => return Err(ExtensionError::Discard(Discard::OptionAsked)),
                action => {
                    return Err(ExtensionError::ParameterProblem {
                        code: UNRECOGNISED_OPTION,
                        pointer: option_offset as u32,
                        even_if_multicast: action == 2,
                    });
                }
            },
        }
        count += 1;
        if count > MAX_EXTENSION_OPTIONS {
            return Err(ExtensionError::Discard(Discard::TooManyOptions));
        }
    }
    Ok(router_alert)
}

fn fragment_header(at: &UpperLayer<'_>) -> Result<Fragment, ExtensionError> {
    let header: &[u8; FRAGMENT_HEADER_LENGTH] =
        at.payload.first_chunk().ok_or(ExtensionError::Discard(Discard::Truncated))?;
    let [_, _, a, b, c, d, e, f] = *header;
    let word = u16::from_be_bytes([a, b]);
    Ok(Fragment {
        offset_bytes: word & !7,
        more_fragments: word & 1 != 0,
        identification: u32::from_be_bytes([c, d, e, f]),
        header_offset: at.offset,
        named_at: at.next_header_offset,
    })
}

/// The checks of RFC 8200 §4.5 and RFC 7112 before a fragment is kept. `at` is behind the fragment header.
fn check_fragment(at: &UpperLayer<'_>, fragment: &Fragment) -> Result<(), ExtensionError> {
    let length = at.payload.len();
    if fragment.more_fragments && !length.is_multiple_of(8) {
        return Err(problem(ERRONEOUS_FIELD, PAYLOAD_LENGTH_OFFSET as usize));
    }
    // The payload of the datagram put together: what stood before the fragment header, and the parts.
    let repeated = fragment.header_offset - LENGTH;
    if repeated + usize::from(fragment.offset_bytes) + length > usize::from(u16::MAX) {
        return Err(problem(ERRONEOUS_FIELD, fragment.header_offset + 2));
    }
    if fragment.offset_bytes == 0 && !chain_is_complete(at.protocol, at.payload) {
        return Err(problem(INCOMPLETE_CHAIN, 0));
    }
    Ok(())
}

/// Whether a first fragment reaches into its upper-layer header, as it must (RFC 7112 §5).
fn chain_is_complete(mut next: u8, mut bytes: &[u8]) -> bool {
    for _ in 0..=MAX_EXTENSION_HEADERS {
        match next {
            protocol::HOP_BY_HOP | protocol::DESTINATION_OPTIONS | protocol::ROUTING => {
                let Ok(header) = sized_header(bytes) else { return false };
                next = header.first().copied().unwrap_or(protocol::NO_NEXT_HEADER);
                bytes = bytes.get(header.len()..).unwrap_or(&[]);
            }
            protocol::FRAGMENT => {
                let Some((header, rest)) = bytes.split_at_checked(FRAGMENT_HEADER_LENGTH) else {
                    return false;
                };
                next = header.first().copied().unwrap_or(protocol::NO_NEXT_HEADER);
                bytes = rest;
            }
            protocol::TCP => return bytes.len() >= tcp::LENGTH,
            protocol::UDP => return bytes.len() >= udp::LENGTH,
            protocol::ICMPV6 => return bytes.len() >= 8,
            _ => return true,
        }
    }
    false
}

/// Writes a fragment header of 8 bytes; 0 when `buffer` is shorter. The offset is rounded down to a multiple of 8.
pub fn emit_fragment_header(
    next_header: u8,
    offset_bytes: u16,
    more_fragments: bool,
    identification: u32,
    buffer: &mut [u8],
) -> usize {
    let Some(place) = buffer.first_chunk_mut::<FRAGMENT_HEADER_LENGTH>() else { return 0 };
    let [a, b] = (offset_bytes & !7 | u16::from(more_fragments)).to_be_bytes();
    let [c, d, e, f] = identification.to_be_bytes();
    *place = [next_header, 0, a, b, c, d, e, f];
    FRAGMENT_HEADER_LENGTH
}

/// Writes the hop-by-hop header that every MLD message carries: a Router Alert of value 0, padded to 8 bytes
/// (RFC 2710 §3); 0 when `buffer` is shorter. What follows is ICMPv6.
pub fn emit_mld_hop_by_hop(buffer: &mut [u8]) -> usize {
    let Some(place) = buffer.first_chunk_mut::<MLD_HOP_BY_HOP_LENGTH>() else { return 0 };
    *place = [protocol::ICMPV6, 0, OPTION_ROUTER_ALERT, 2, 0, 0, OPTION_PAD_N, 0];
    MLD_HOP_BY_HOP_LENGTH
}

#[cfg(test)]
mod tests;
