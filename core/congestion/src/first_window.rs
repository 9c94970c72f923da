//! Whether the first window, which leaves in one burst, did harm: then the burst after an idle time is smaller
//! (RFC 6928 §2).

use crate::CongestionWindow;

/// The first window of a connection, or of one that was idle.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct FirstWindow {
    /// Segments of it that are not acknowledged yet.
    segments_left: u8,
    harm: Harm,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
enum Harm {
    #[default]
    None,
    /// By the latest loss, which may yet prove to have been none.
    Latest,
    Certain,
}

impl FirstWindow {
    /// The window is sent after silence.
    pub fn begin(&mut self, window: &CongestionWindow) {
        self.segments_left = window.segments().min(u32::from(u8::MAX)) as u8;
    }
    /// So many bytes more are acknowledged.
    pub fn acknowledged(&mut self, bytes: u32, segment_bytes: u32) {
        if self.segments_left > 0 {
            let segments = bytes.div_ceil(segment_bytes.max(1)).min(u32::from(u8::MAX)) as u8;
            self.segments_left = self.segments_left.saturating_sub(segments);
        }
    }
    /// A loss was found. What is lost is the next that would be acknowledged.
    pub fn lost(&mut self) {
        self.harm = match self.harm {
            Harm::None if self.segments_left > 0 => Harm::Latest,
            Harm::None => Harm::None,
            Harm::Latest | Harm::Certain => Harm::Certain,
        };
    }
    /// The latest loss was none.
    pub fn undone(&mut self) {
        if self.harm == Harm::Latest {
            self.harm = Harm::None;
        }
    }
    /// A burst was too large for this path.
    pub fn did_harm(&self) -> bool {
        self.harm != Harm::None
    }
}
