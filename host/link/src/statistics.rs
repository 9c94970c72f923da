//! Counters of a driver.

/// Why a frame went no further, in either direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Discard {
    /// Longer than the link's MTU, or than its format allows.
    TooLong,
    /// The pool, or the driver's bounded set of buffers, had no memory for it.
    NoMemory,
    /// Received data violates the framing.
    Framing,
    /// The frame's own check is wrong.
    Check,
    /// The other end did not answer the request to send in time, or fell silent within a frame.
    Timeout,
    /// The other end is gone.
    NoPeer,
    /// The system refused it.
    System,
    /// Lost on purpose, by `loss=`, or by a full queue of delayed frames.
    Lost,
}

impl Discard {
    /// Every reason, in the order of display.
    pub const ALL: [Discard; 8] = [
        Discard::TooLong,
        Discard::NoMemory,
        Discard::Framing,
        Discard::Check,
        Discard::Timeout,
        Discard::NoPeer,
        Discard::System,
        Discard::Lost,
    ];
    /// The reason in words.
    pub const fn text(self) -> &'static str {
        match self {
            Discard::TooLong => "too long",
            Discard::NoMemory => "no memory",
            Discard::Framing => "bad framing",
            Discard::Check => "bad check",
            Discard::Timeout => "time-out",
            Discard::NoPeer => "no peer",
            Discard::System => "refused by the system",
            Discard::Lost => "lost on purpose",
        }
    }
}

/// A driver's counters, all from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Frames handed up.
    pub received_frames: u64,
    /// Their bytes, without the framing of a serial line.
    pub received_bytes: u64,
    /// Frames taken for transmission.
    pub transmitted_frames: u64,
    /// Their bytes, without the framing of a serial line.
    pub transmitted_bytes: u64,
    /// Times that a frame was not taken because there was no room; it stays with the host.
    pub full: u64,
    /// Frames discarded, by [`Discard`] in the order of [`Discard::ALL`].
    pub discarded: [u64; Discard::ALL.len()],
}

impl Statistics {
    /// Frames discarded for `why`.
    pub fn discarded(&self, why: Discard) -> u64 {
        self.discarded.get(why as usize).copied().unwrap_or(0)
    }
    /// Frames discarded for any reason.
    pub fn discarded_in_all(&self) -> u64 {
        self.discarded.iter().sum()
    }
    /// With one frame more that was discarded for `why`.
    pub(crate) fn with_discarded(mut self, why: Discard) -> Statistics {
        self.discarded[why as usize] += 1;
        self
    }
    /// With one frame more that was handed up.
    pub(crate) fn with_received(mut self, bytes: usize) -> Statistics {
        self.received_frames += 1;
        self.received_bytes += bytes as u64;
        self
    }
    /// With one frame more that was taken for transmission.
    pub(crate) fn with_transmitted(mut self, bytes: usize) -> Statistics {
        self.transmitted_frames += 1;
        self.transmitted_bytes += bytes as u64;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_counter() {
        let mut statistics = Statistics::default();
        for why in Discard::ALL {
            statistics = statistics.with_discarded(why);
            assert_eq!(statistics.discarded(why), 1, "{}", why.text());
        }
        assert_eq!(statistics.discarded, [1; Discard::ALL.len()]);
    }
}
