//! A borrowed scatter-gather payload.

/// Most slices of one payload.
const PIECES: usize = 4;

/// A borrowed scatter-gather payload of up to four slices.
///
/// ```
/// use inhost_buf::Slices;
/// let payload = Slices::one(b"hello, ").with(b"world").unwrap();
/// assert_eq!(payload.len(), 12);
/// let part: Vec<u8> = payload.part(5, 4).iter().flatten().copied().collect();
/// assert_eq!(part, b", wo");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Slices<'a> {
    pieces: [&'a [u8]; PIECES],
    count: usize,
    /// The checksum of all bytes, where it is known.
    sum: Option<u16>,
}

impl<'a> Slices<'a> {
    /// Most slices.
    pub const MOST: usize = PIECES;
    /// No payload.
    pub const EMPTY: Slices<'static> = Slices { pieces: [&[]; PIECES], count: 0, sum: None };

    /// A contiguous payload.
    pub fn one(piece: &'a [u8]) -> Self {
        Slices::one_of(piece, None)
    }
    /// A contiguous payload with its [`crate::sum`], where it is known.
    #[inline]
    pub(crate) fn one_of(piece: &'a [u8], sum: Option<u16>) -> Self {
        let mut pieces: [&'a [u8]; PIECES] = [&[]; PIECES];
        pieces[0] = piece;
        Slices { pieces, count: usize::from(!piece.is_empty()), sum }
    }
    /// The same with a slice behind it; `None` when there are [`Slices::MOST`] already. An empty slice is ignored.
    #[inline]
    pub fn with(mut self, piece: &'a [u8]) -> Option<Self> {
        if !piece.is_empty() {
            *self.pieces.get_mut(self.count)? = piece;
            (self.count, self.sum) = (self.count + 1, None);
        }
        Some(self)
    }
    /// The same payload with its [`crate::sum`], where it is known.
    #[must_use]
    #[inline]
    pub fn with_sum(self, sum: Option<u16>) -> Self {
        Slices { sum, ..self }
    }
    /// The [`crate::sum`] of all bytes, where it is known.
    #[inline]
    pub fn known_sum(&self) -> Option<u16> {
        self.sum
    }
    /// Number of slices, none of which is empty.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }
    /// The slices in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.pieces[..self.count].iter().copied()
    }
    /// The whole payload, when it is contiguous.
    #[inline]
    pub fn as_one(&self) -> Option<&'a [u8]> {
        (self.count == 1).then_some(self.pieces[0])
    }
    /// Up to `length` bytes from `offset` on.
    #[inline]
    pub fn part(&self, offset: usize, length: usize) -> Slices<'a> {
        if let Some(piece) = self.pieces[0].get(offset..offset.saturating_add(length)) {
            return Slices::one_of(piece, None);
        }
        self.part_of_many(offset, length)
    }
    fn part_of_many(&self, offset: usize, length: usize) -> Slices<'a> {
        Slices::cut(self.iter(), offset, length)
    }
    /// Up to `length` bytes of `pieces` from `offset` on; fewer when they lie in more than [`Slices::MOST`].
    #[inline]
    pub(crate) fn cut(pieces: impl Iterator<Item = &'a [u8]>, offset: usize, length: usize) -> Slices<'a> {
        let mut cut: Slices<'a> = Slices::EMPTY;
        let (mut skip, mut left) = (offset, length);
        for piece in pieces {
            if left == 0 || cut.count == PIECES {
                break;
            }
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            let piece = &piece[skip..piece.len().min(skip.saturating_add(left))];
            cut.pieces[cut.count] = piece;
            cut.count += 1;
            (skip, left) = (0, left - piece.len());
        }
        cut
    }
    /// Length of the payload in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.pieces[..self.count].iter().map(|piece| piece.len()).sum()
    }
    /// Whether there is no payload.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_what_the_flat_bytes_have_there() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut slices = Slices::EMPTY;
        for piece in [&bytes[..7], &bytes[7..60], &bytes[60..61], &bytes[61..]] {
            slices = slices.with(piece).unwrap();
        }
        for offset in 0..110 {
            for length in [0, 1, 6, 7, 8, 54, 100, 200] {
                let part: Vec<u8> = slices.part(offset, length).iter().flatten().copied().collect();
                let end = bytes.len().min(offset + length);
                assert_eq!(part, bytes.get(offset..end).unwrap_or(&[]), "{length} bytes from {offset}");
            }
        }
    }
}
