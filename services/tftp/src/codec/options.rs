//! Options of a request (RFC 2347): what is asked for, what is granted, and what holds then.

use inhost_base::Duration;

use crate::codec::numbering::Rollover;
use crate::codec::{take_text, text};

/// Octets of a block when nothing else is agreed (RFC 1350).
pub const BLOCK_BYTES: u16 = 512;
/// The smallest and the largest block (RFC 2348).
pub const BLOCK_BYTES_LIMITS: (u16, u16) = (8, 65_464);
/// Blocks of a window at most. RFC 7440 has 65,535; with that many a number would stand for two blocks.
pub const WINDOW_LIMIT: u16 = 16_384;
/// Octets of a window at most: what a sender has to keep.
pub const WINDOW_BYTES_LIMIT: usize = 1 << 20;

/// Options as they are asked for or acknowledged. Those that nobody knows are left out; so are values that cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Octets of a block (`blksize`, RFC 2348).
    pub block_size: Option<u16>,
    /// Seconds after which something is sent again (`timeout`, RFC 2349).
    pub timeout_s: Option<u8>,
    /// Octets of the file (`tsize`, RFC 2349); in a read request 0, which asks for it.
    pub transfer_size: Option<u64>,
    /// Blocks before an acknowledgment (`windowsize`, RFC 7440).
    pub window: Option<u16>,
    /// Block number after 65,535 (option `rollover` of tftpd-hpa).
    pub rollover: Option<Rollover>,
}

impl Options {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Options::default()
    }
    /// Reads names and values. `None` when one has no end.
    pub(crate) fn parse(mut rest: &[u8]) -> Option<Options> {
        let mut options = Options::default();
        while !rest.is_empty() {
            let (name, behind) = take_text(rest)?;
            let (value, behind) = take_text(behind)?;
            options.take(name, value);
            rest = behind;
        }
        Some(options)
    }
    fn take(&mut self, name: &str, value: &str) {
        let Ok(number) = value.parse::<u64>() else { return };
        // RFC 2347: an option stands only once; the first counts.
        match &*name.to_ascii_lowercase() {
            "blksize" if number >= u64::from(BLOCK_BYTES_LIMITS.0) => {
                let bytes = number.min(u64::from(BLOCK_BYTES_LIMITS.1)) as u16;
                self.block_size = self.block_size.or(Some(bytes));
            }
            "timeout" if number > 0 => {
                self.timeout_s = self.timeout_s.or(u8::try_from(number).ok());
            }
            "tsize" => self.transfer_size = self.transfer_size.or(Some(number)),
            "windowsize" if number > 0 => self.window = self.window.or(u16::try_from(number).ok()),
            "rollover" if number < 2 => {
                let rollover = if number == 0 { Rollover::ToZero } else { Rollover::ToOne };
                self.rollover = self.rollover.or(Some(rollover));
            }
            _ => {}
        }
    }
    /// Writes names and values.
    pub(crate) fn write(&self, into: &mut Vec<u8>) {
        let Options { block_size, timeout_s, transfer_size, window, rollover } = *self;
        let rollover = rollover.map(|rollover| u64::from(rollover == Rollover::ToOne));
        let all = [
            ("tsize", transfer_size),
            ("blksize", block_size.map(u64::from)),
            ("timeout", timeout_s.map(u64::from)),
            ("windowsize", window.map(u64::from)),
            ("rollover", rollover),
        ];
        for (name, value) in all {
            if let Some(value) = value {
                text(into, name);
                text(into, &value.to_string());
            }
        }
    }

    /// Options granted to a request. `size_bytes` is what the file has, where that is known and is what `tsize` means.
    pub(crate) fn grant(&self, limits: &Limits, size_bytes: Option<u64>, is_write: bool) -> Options {
        let block_size = self.block_size.map(|bytes| bytes.min(limits.block_size));
        let block_bytes = block_size.unwrap_or(BLOCK_BYTES);
        Options {
            block_size,
            timeout_s: self.timeout_s,
            // RFC 2349: the size in a write request is echoed unchanged.
            transfer_size: self
                .transfer_size
                .and_then(|asked| if is_write { Some(asked) } else { size_bytes }),
            window: self.window.map(|blocks| blocks.min(limits.window).min(window_limit(block_bytes))),
            rollover: self.rollover,
        }
    }
    /// Whether `granted` is an answer to these: nothing that was not asked for, and nothing beyond it.
    pub(crate) fn allow(&self, granted: &Options) -> bool {
        let within =
            |asked: Option<u16>, got: Option<u16>| got.is_none_or(|got| asked.is_some_and(|a| got <= a));
        within(self.block_size, granted.block_size)
            && within(self.window, granted.window)
            && (granted.timeout_s.is_none() || granted.timeout_s == self.timeout_s)
            && (granted.transfer_size.is_none() || self.transfer_size.is_some())
            && (granted.rollover.is_none() || self.rollover.is_some())
    }
}

/// Blocks of a window that its octets allow.
pub(crate) fn window_limit(block_bytes: u16) -> u16 {
    let blocks = WINDOW_BYTES_LIMIT / usize::from(block_bytes.max(1));
    u16::try_from(blocks).unwrap_or(u16::MAX).clamp(1, WINDOW_LIMIT)
}

/// Limits on the options that a server grants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Octets of a block.
    pub block_size: u16,
    /// Blocks of a window.
    pub window: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { block_size: BLOCK_BYTES_LIMITS.1, window: 64 }
    }
}

/// Negotiated parameters of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Octets of every block but the last, which has fewer.
    pub block_bytes: u16,
    /// Blocks before an acknowledgment.
    pub window: u16,
    /// A time-out that was agreed on; without, it follows the round trips.
    pub timeout: Option<Duration>,
    /// Size of the file, if announced.
    pub size_bytes: Option<u64>,
    /// Block numbering; `None` until a receiver has seen it.
    pub rollover: Option<Rollover>,
}

impl Terms {
    /// Transfer parameters from the agreed options. `rollover` is ours where none was agreed on.
    pub(crate) fn new(agreed: &Options, rollover: Option<Rollover>) -> Terms {
        let window = agreed.window.unwrap_or(1).max(1);
        Terms {
            block_bytes: agreed.block_size.unwrap_or(BLOCK_BYTES),
            window,
            timeout: agreed.timeout_s.map(|seconds| Duration::from_secs(u64::from(seconds))),
            size_bytes: agreed.transfer_size,
            rollover: agreed.rollover.or(rollover),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { block_size: 1468, window: 64 };

    #[test]
    fn no_more_is_granted_than_was_asked_for() {
        let asked = Options {
            block_size: Some(65_464),
            window: Some(65_535),
            transfer_size: Some(0),
            ..Options::default()
        };
        let granted = asked.grant(&LIMITS, Some(7), false);
        assert_eq!((granted.block_size, granted.window), (Some(1468), Some(64)));
        assert_eq!((granted.transfer_size, granted.timeout_s), (Some(7), None));
        assert!(asked.allow(&granted));
        assert!(!granted.allow(&asked));
        assert!(!Options::default().allow(&Options { timeout_s: Some(1), ..Options::default() }));
        let large = Limits { block_size: 65_464, window: u16::MAX };
        assert_eq!(asked.grant(&large, None, false).window, Some(16), "a megabyte is kept at most");
        assert_eq!(Options::default().grant(&LIMITS, Some(7), false), Options::default());
    }

    #[test]
    fn impossible_values_are_left_out() {
        let parse = |text: &[u8]| Options::parse(text).unwrap();
        assert!(
            parse(b"blksize\x007\0timeout\x00256\0windowsize\x000\0rollover\x002\0tsize\x00-1\0").is_empty()
        );
        assert_eq!(parse(b"blksize\x00100000\0").block_size, Some(65_464));
        assert_eq!(parse(b"timeout\x001\0timeout\x002\0").timeout_s, Some(1));
        assert_eq!(Options::parse(b"timeout\x001"), None);
    }
}
