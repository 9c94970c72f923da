//! Record marking (RFC 5531 §11): messages on a stream, in fragments of which the last is marked.

/// The mark of the last fragment.
const LAST: u32 = 1 << 31;
/// Fragments of one record; more are refused, so that empty ones do not go on for ever.
pub const FRAGMENTS_LIMIT: usize = 1024;

/// A record that is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RecordError {
    /// It is longer than the limit.
    Long,
    /// It has too many fragments.
    Fragments,
}

impl core::fmt::Display for RecordError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            RecordError::Long => "a record is longer than the limit",
            RecordError::Fragments => "a record has too many fragments",
        })
    }
}
impl std::error::Error for RecordError {}

/// Puts records together from octets as they come. It holds at most one record.
///
/// ```
/// use inhost_nfs::codec::record::Records;
/// let mut records = Records::new(100);
/// let mut octets: &[u8] = b"\0\0\0\x02on\x80\0\0\x01e\x80\0\0\x03two";
/// assert_eq!(records.take(&mut octets).unwrap().unwrap(), b"one");
/// assert_eq!(records.take(&mut octets).unwrap().unwrap(), b"two");
/// assert_eq!(records.take(&mut octets).unwrap(), None);
/// ```
#[derive(Clone, Debug)]
pub struct Records {
    limit_bytes: usize,
    mark: Vec<u8>,
    record: Vec<u8>,
    /// Octets of the fragment that have not come.
    missing: usize,
    is_in_fragment: bool,
    is_last: bool,
    fragments: usize,
}

impl Records {
    /// Records of at most `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Records {
        Records {
            limit_bytes,
            mark: Vec::with_capacity(4),
            record: Vec::new(),
            missing: 0,
            is_in_fragment: false,
            is_last: false,
            fragments: 0,
        }
    }
    /// Takes octets off the front of `octets` until a record is whole, or all were taken.
    pub fn take(&mut self, octets: &mut &[u8]) -> Result<Option<Vec<u8>>, RecordError> {
        loop {
            if self.is_in_fragment {
                let (piece, rest) = octets.split_at(self.missing.min(octets.len()));
                self.grow(piece.len());
                self.record.extend_from_slice(piece);
                self.missing -= piece.len();
                *octets = rest;
                if self.missing > 0 {
                    return Ok(None);
                }
                self.is_in_fragment = false;
                if self.is_last {
                    self.fragments = 0;
                    return Ok(Some(core::mem::take(&mut self.record)));
                }
            }
            let (piece, rest) = octets.split_at((4 - self.mark.len()).min(octets.len()));
            self.mark.extend_from_slice(piece);
            *octets = rest;
            let Ok(mark) = <[u8; 4]>::try_from(self.mark.as_slice()) else { return Ok(None) };
            self.mark.clear();
            self.fragment(u32::from_be_bytes(mark))?;
        }
    }
    fn fragment(&mut self, mark: u32) -> Result<(), RecordError> {
        let length = (mark & !LAST) as usize;
        self.fragments += 1;
        if self.fragments > FRAGMENTS_LIMIT {
            return Err(RecordError::Fragments);
        }
        if length > self.limit_bytes - self.record.len() {
            return Err(RecordError::Long);
        }
        (self.missing, self.is_last, self.is_in_fragment) = (length, mark & LAST != 0, true);
        Ok(())
    }
    /// Makes room for octets that have come. The memory at most doubles, and is never more than the fragment needs: a mark
    /// alone reserves nothing.
    fn grow(&mut self, more: usize) {
        if self.record.capacity() - self.record.len() < more {
            self.record.reserve_exact(self.record.len().min(self.missing).max(more));
        }
    }
    /// Whether a record has begun, if only with its mark, and is not whole.
    pub fn is_incomplete(&self) -> bool {
        self.fragments > 0 || !self.mark.is_empty()
    }
    /// Octets that are held.
    pub fn held_bytes(&self) -> usize {
        self.record.len() + self.mark.len()
    }
}

/// The mark before a record that goes as one fragment. A record is shorter than 2 GiB.
pub fn mark(length_bytes: usize) -> [u8; 4] {
    (u32::try_from(length_bytes).unwrap_or(u32::MAX) | LAST).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_whole_however_they_are_cut() {
        let stream = [b"\0\0\0\x03abc\0\0\0\0\x80\0\0\x01d".as_slice(), &mark(2), b"xy", &mark(0)].concat();
        for cut in 0..=stream.len() {
            let mut records = Records::new(4);
            let mut whole = Vec::new();
            for mut part in [&stream[..cut], &stream[cut..]] {
                while let Some(record) = records.take(&mut part).unwrap() {
                    whole.push(record);
                }
            }
            assert_eq!(whole, [b"abcd".to_vec(), b"xy".to_vec(), vec![]], "cut at {cut}");
        }
    }

    #[test]
    fn a_mark_alone_is_an_incomplete_record_and_reserves_nothing() {
        let mut records = Records::new(1 << 20);
        assert!(!records.is_incomplete());
        for octet in mark(1 << 20) {
            assert_eq!(records.take(&mut &[octet][..]), Ok(None));
            assert!(records.is_incomplete());
        }
        assert_eq!(records.record.capacity(), 0);
        for held in 1..5000 {
            assert_eq!(records.take(&mut &b"x"[..]), Ok(None));
            assert!(records.is_incomplete() && records.record.capacity() <= 2 * held);
        }
        let rest = vec![b'x'; (1 << 20) - 4999];
        assert_eq!(
            records.take(&mut rest.as_slice()).unwrap().map(|record| record.capacity()),
            Some(1 << 20)
        );
        assert!(!records.is_incomplete());
        assert_eq!(records.take(&mut &b"\0\0\0\0"[..]), Ok(None));
        assert!(records.is_incomplete(), "an empty fragment is not the last");
    }

    #[test]
    fn a_long_record_and_endless_fragments_are_refused() {
        let mut records = Records::new(4);
        assert_eq!(records.take(&mut mark(5).as_slice()), Err(RecordError::Long));
        let mut records = Records::new(4);
        let mut two = &b"\0\0\0\x03abc\x80\0\0\x02"[..];
        assert_eq!(records.take(&mut two), Err(RecordError::Long));
        let mut records = Records::new(4);
        let empty = vec![0; 4 * (FRAGMENTS_LIMIT + 1)];
        assert_eq!(records.take(&mut empty.as_slice()), Err(RecordError::Fragments));
        assert!(records.held_bytes() == 0);
    }
}
