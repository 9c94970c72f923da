//! The lines of rcp: `C` announces a file, `D` a folder, `E` its end, `T` the times of what comes next.

/// The end of a folder.
pub(super) const LEAVE: &[u8] = b"E\n";

/// When a file was changed and read, in seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// Changed.
    pub modified_seconds: u64,
    /// Read.
    pub accessed_seconds: u64,
}

impl Times {
    /// Parses `SECONDS MICROSECONDS SECONDS MICROSECONDS`: changed, read.
    pub(super) fn parse(rest: &[u8]) -> Option<Times> {
        let text = core::str::from_utf8(rest).ok()?;
        let numbers: Vec<u64> = text.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        match numbers[..] {
            [modified_seconds, _, accessed_seconds, _] => Some(Times { modified_seconds, accessed_seconds }),
            _ => None,
        }
    }
    /// The line that announces these times.
    pub(super) fn encode(self) -> Vec<u8> {
        format!("T{} 0 {} 0\n", self.modified_seconds, self.accessed_seconds).into_bytes()
    }
}

/// A file or folder as a `C` or `D` line announces it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header<'a> {
    /// Permissions.
    pub(super) mode: u32,
    /// The length of a file; 0 for a folder.
    pub(super) size_bytes: u64,
    pub(super) name: &'a [u8],
}

impl<'a> Header<'a> {
    /// Parses `MODE SIZE NAME`: permissions in octal, a length in bytes.
    pub(super) fn parse(rest: &'a [u8]) -> Option<Header<'a>> {
        let mut words = rest.splitn(3, |&octet| octet == b' ');
        let (mode, size, name) = (words.next()?, words.next()?, words.next()?);
        let mode = u32::from_str_radix(core::str::from_utf8(mode).ok()?, 8).ok()?;
        let size_bytes = core::str::from_utf8(size).ok()?.parse().ok()?;
        // Set-user-ID, set-group-ID and the sticky bit are not accepted from another host.
        Some(Header { mode: mode & 0o777, size_bytes, name })
    }
    /// The line; `kind` is `C` or `D`.
    pub(super) fn encode(&self, kind: u8) -> Vec<u8> {
        let mut line = vec![kind];
        line.extend(format!("{:04o} {} ", self.mode, self.size_bytes).into_bytes());
        line.extend_from_slice(self.name);
        line.push(b'\n');
        line
    }
}

/// Status after a file's data: success, or a warning that says why the data is not the file's.
pub(super) fn encode_status(warning: Option<&str>) -> Vec<u8> {
    warning.map_or_else(|| vec![0], |why| format!("\x01{why}\n").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let header = Header { mode: 0o640, size_bytes: 12, name: b"a file" };
        assert_eq!(header.encode(b'C'), b"C0640 12 a file\n");
        assert_eq!(Header::parse(b"0640 12 a file"), Some(header));
        assert_eq!(Header::parse(b"7777 0 x").map(|header| header.mode), Some(0o777));
        let times = Times { modified_seconds: 5, accessed_seconds: 7 };
        assert_eq!(times.encode(), b"T5 0 7 0\n");
        assert_eq!((Times::parse(b"5 0 7 0"), Times::parse(b"5 0 7")), (Some(times), None));
        assert_eq!((encode_status(None), encode_status(Some("why"))), (vec![0], b"\x01why\n".to_vec()));
    }
}
