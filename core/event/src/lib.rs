//! What happened inside a host, as plain structs, and the sink that receives them.
//!
//! Protocol code has no logging calls. It declares an event, builds it only when the sink's [`Mask`] wants its kind,
//! and hands it to the sink that the caller passed in. Recorders, captures, histograms and the assertions of tests
//! are sinks elsewhere.
//!
//! ```
//! use inhost_base::{Instant, LinkId};
//! use inhost_event::{Drop, Event, FrameDropped, Mask, Recorded, Sink};
//! let mut sink = Recorded::new(Mask::all(), 100);
//! sink.emit(Mask::LINK, Instant::ZERO, || Event::FrameDropped(FrameDropped { link: LinkId(0), why: Drop::Checksum }));
//! assert_eq!(sink.events().count(), 1);
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod cause;
mod kinds;
mod layer;
mod readiness;
mod sink;
mod word;

pub use cause::{Ledgers, ReceiveCause, ReceiveLedger, SendCause, SendLedger};
pub use kinds::{
    CauseChanged, Connected, Disconnected, Drop, Ended, Event, FrameDropped, FrameReceived, FrameSent,
    NeighbourChanged, NeighbourState, Retransmitted, RetransmittedWhy, SegmentReceived, SegmentSent,
    StateChanged, TcpState, WindowChanged,
};
pub use layer::Layer;
pub use readiness::Readiness;
pub use sink::{Ignore, Mask, Recorded, Sink};
