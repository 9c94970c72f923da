//! What a run of one load under one control structure showed.

use crate::application::{Application, Load, Span};
use crate::wire::Sent;
use inhost_inett::statistics::Times;

/// One host at the end of a run.
pub struct Side {
    /// Its application.
    pub application: Application,
    /// What its stack has sent.
    pub sent: Sent,
    /// How often one of its layers was dispatched.
    pub dispatches: u64,
}

/// What both hosts did, the caller first.
pub struct Outcome {
    /// What was asked for.
    pub load: Load,
    /// How long the caller's work took.
    pub span: Span,
    /// Round trips of typed characters.
    pub times: Times,
    /// Bytes delivered to each application.
    pub delivered: [u64; 2],
    /// Segments that each has sent, the handshake's included.
    pub sent: [Sent; 2],
    /// Dispatches of layers, in both hosts.
    pub dispatches: u64,
}

impl Outcome {
    /// Of the two hosts.
    ///
    /// # Errors
    /// When the caller's work is not over.
    pub(crate) fn of(load: Load, [caller, called]: [Side; 2]) -> Result<Outcome, String> {
        let delivered = [caller.application.delivered, called.application.delivered];
        let span = caller.application.span();
        Ok(Outcome {
            load,
            span: span.ok_or_else(|| format!("{load:?} ended early, with {delivered:?} bytes delivered"))?,
            times: caller.application.times,
            delivered,
            sent: [caller.sent, called.sent],
            dispatches: caller.dispatches + called.dispatches,
        })
    }
    /// Whether the right number of bytes and of segments with data went each way.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        let units = self.load.units();
        let (there, back, bytes) = match self.load {
            Load::Echo(_) => (units, units, units),
            Load::Bulk(_) => (units, 1, units * crate::application::SEGMENT_BYTES as u64),
        };
        let [caller, called] = self.sent;
        let found = [caller.data_segments, called.data_segments, caller.data_bytes, called.data_bytes];
        let expected = [there, back, bytes, back];
        if found != expected || self.delivered != [back, bytes] {
            return Err(format!(
                "{:?}: segments and bytes there and back were {found:?}, not {expected:?}; delivered {:?}",
                self.load, self.delivered
            ));
        }
        Ok(())
    }
}
