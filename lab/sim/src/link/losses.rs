//! Frames that a link has lost, kept for watchers that want to know.

use inhost_buf::Packet;

use crate::buffers::Buffers;

/// Why a frame did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossCause {
    /// The line lost it ([`LinkConfig::loss`](crate::LinkConfig::loss)).
    Line,
    /// The link is cut.
    Cut,
    /// It is larger than what passes ([`LinkConfig::mtu_bytes`](crate::LinkConfig::mtu_bytes)).
    TooLong,
    /// The queue, or the ring of a receiver that was paused or busy, was full.
    QueueFull,
    /// The queue dropped it early, by its discipline.
    DroppedEarly,
    /// The host that it was for has no power.
    HostDown,
}

impl LossCause {
    /// The cause in words, behind "lost: ".
    pub const fn text(self) -> &'static str {
        match self {
            LossCause::Line => "by the line",
            LossCause::Cut => "the link is cut",
            LossCause::TooLong => "larger than what the link passes",
            LossCause::QueueFull => "no room in the queue",
            LossCause::DroppedEarly => "dropped early by the queue",
            LossCause::HostDown => "the host has no power",
        }
    }
}

/// The lost frames of one direction since they were taken last. Nothing is kept before [`Losses::keep`].
#[derive(Debug, Default)]
pub(crate) struct Losses {
    kept: Option<Vec<(Packet, LossCause)>>,
}

impl Losses {
    /// Keeps frames from now on.
    pub(crate) fn keep(&mut self) {
        self.kept.get_or_insert_default();
    }
    /// A frame is lost.
    pub(crate) fn add(&mut self, frame: Packet, why: LossCause, buffers: &mut Buffers) {
        match &mut self.kept {
            Some(kept) => kept.push((frame, why)),
            None => buffers.give(frame),
        }
    }
    /// The frames that are kept; their memory goes back by [`Buffers::give`].
    pub(crate) fn take(&mut self) -> Vec<(Packet, LossCause)> {
        self.kept.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
