//! What a reduction of the window replaced.

/// Window and threshold before the last reduction, while that can be undone.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Prior {
    pub window_bytes: u32,
    /// Zero when there is nothing to undo.
    pub threshold_bytes: u32,
}
