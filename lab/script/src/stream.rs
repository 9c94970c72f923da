//! The bytes that scripts send: each follows from its place in its stream, so that a byte at a wrong place is seen.

/// Sender of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The host under test.
    Host,
    /// The peer.
    Peer,
}

/// The byte at `offset` of a stream.
fn byte(from: From, offset: u64) -> u8 {
    // 251 is prime, so that no power of two hides a shift.
    let shift = if from == From::Host { 0 } else { 101 };
    ((offset * 7 + offset / 251 + shift) % 251) as u8
}
/// `length` bytes from `offset` on.
pub fn bytes(from: From, offset: u64, length: usize) -> Vec<u8> {
    (offset..).take(length).map(|offset| byte(from, offset)).collect()
}
/// The first place at which `data`, which should lie at `offset`, is not the stream.
pub fn first_wrong(from: From, offset: u64, data: &[u8]) -> Option<u64> {
    (offset..).zip(data).find(|&(offset, &found)| byte(from, offset) != found).map(|(offset, _)| offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_at_a_wrong_place_is_seen() {
        let data = bytes(From::Peer, 1000, 3000);
        assert_eq!(first_wrong(From::Peer, 1000, &data), None);
        for shift in [1, 2, 4, 250, 251, 256, 536, 1460] {
            assert!(first_wrong(From::Peer, 1000 + shift, &data).is_some(), "{shift}");
        }
        assert_eq!(first_wrong(From::Host, 1000, &data), Some(1000));
    }
}
