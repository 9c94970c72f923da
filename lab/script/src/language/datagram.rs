//! The words of datagrams, of their fragments, and of the ICMP errors that the host sends.

use super::segment::icmp_kind;
use super::words::{Words, Wrong, expected, span};
use super::{Datagram, Fragment, IcmpError};
use crate::side::DATAGRAM_PORT;

/// The words after `in datagram` or `out datagram`.
pub(super) fn datagram(words: &mut Words<'_>, incoming: bool) -> Result<Datagram, Wrong> {
    const FIELDS: &str = "peer, port or nosum, or of an `in` badsum or length";
    let mut datagram = Datagram {
        bytes: words.number("a number of bytes")?,
        peer: 1,
        port: DATAGRAM_PORT,
        no_checksum: false,
        bad_checksum: false,
        length: None,
    };
    while let Some(word) = words.next() {
        match word {
            "peer" => datagram.peer = words.number("a peer's number")?,
            "port" => datagram.port = words.number("a port of the host's")?,
            "nosum" => datagram.no_checksum = true,
            "badsum" if incoming => datagram.bad_checksum = true,
            "length" if incoming => datagram.length = Some(words.number("what the length field says")?),
            other => return expected(FIELDS, Some(other)),
        }
    }
    Ok(datagram)
}

/// The words after `out fragment`.
pub(super) fn fragment(words: &mut Words<'_>) -> Result<Fragment, Wrong> {
    const BYTES: &str = "the bytes of what IP carries, such as 0..1480";
    let word = words.word(BYTES)?;
    let bytes =
        span(word).and_then(|(from, to)| Some((usize::try_from(from).ok()?, usize::try_from(to).ok()?)));
    let Some((from, to)) = bytes else { return expected(BYTES, Some(word)) };
    let more = words.take("more");
    words.end("a fragment")?;
    Ok(Fragment { from, to, more })
}

/// The words after `out icmp`.
pub(super) fn icmp_error(words: &mut Words<'_>) -> Result<IcmpError, Wrong> {
    let kind = icmp_kind(words)?;
    let quotes = if words.take("quotes") { Some(words.number("how many bytes it quotes")?) } else { None };
    words.end("an ICMP message")?;
    Ok(IcmpError { kind, quotes })
}
