//! Which part of what is in flight is being sent again, and why (RFC 6582, RFC 6298 §5).

use inhost_base::Sequence;

/// What led to the repair that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Repair {
    /// None is.
    #[default]
    None,
    /// Three duplicate acknowledgments: one segment for each partial acknowledgment (RFC 6582).
    Fast,
    /// The retransmission timer: everything up to `recover`, as the congestion window allows.
    Timeout,
    /// What was sent was refused, by a closed window or by the path for its size: as after a time-out, but nothing
    /// was lost to congestion.
    Resend,
}

/// Loss recovery. `send_next` never goes back; what is sent again is told by `cursor`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    pub repair: Repair,
    /// Duplicate acknowledgments in a row.
    pub duplicates: u8,
    /// Partial acknowledgments during this repair.
    pub partials: u8,
    /// What had been sent when the loss was found; acknowledging it ends the repair.
    pub recover: Sequence,
    /// What is to be sent again next.
    pub cursor: Sequence,
}

/// Duplicate acknowledgments that tell of a loss (RFC 5681 §3.2).
pub(crate) const DUPLICATES_FOR_LOSS: u8 = 3;

impl Recovery {
    pub fn new(initial: Sequence) -> Self {
        Recovery { repair: Repair::None, duplicates: 0, partials: 0, recover: initial, cursor: initial }
    }
    /// Begins a repair of everything from `first` up to `send_next`.
    pub fn begin(&mut self, repair: Repair, first: Sequence, send_next: Sequence) {
        *self =
            Recovery { repair, duplicates: self.duplicates, partials: 0, recover: send_next, cursor: first };
    }
    /// The repair is done.
    pub fn end(&mut self) {
        self.repair = Repair::None;
        self.duplicates = 0;
    }
    /// Whether a repair is under way.
    pub fn is_active(&self) -> bool {
        self.repair != Repair::None
    }
    /// Bytes that are thought to be in the network. After a time-out what lies beyond the cursor is taken as lost.
    pub fn in_flight_bytes(&self, unacknowledged: Sequence, send_next: Sequence) -> u32 {
        match self.repair {
            Repair::Timeout | Repair::Resend if self.cursor.precedes(self.recover) => {
                // What was sent after the repair began lies beyond `recover`.
                self.cursor.since(unacknowledged) + send_next.since(self.recover)
            }
            _ => send_next.since(unacknowledged),
        }
    }
    /// Where the next segment to send again starts, before the congestion window is asked.
    pub fn pending(&self, unacknowledged: Sequence) -> Option<Sequence> {
        match self.repair {
            Repair::None => None,
            Repair::Fast => (self.cursor == unacknowledged).then_some(self.cursor),
            Repair::Timeout | Repair::Resend => self.cursor.precedes(self.recover).then_some(self.cursor),
        }
    }
}
