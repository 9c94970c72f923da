//! What a terminal says during a file transfer.

use crate::codec::{Ddm, DdmError, InboundField};

/// What the terminal has said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Signal {
    Opened,
    /// A piece was taken, or a frame seen.
    Acknowledged,
    Data(Vec<u8>),
    EndOfFile,
    Closed,
    Failed,
}

/// The meaning of a structured field, to a request for data or to another; `None` where it is not part of a transfer.
pub(super) fn ddm_signal(field: &InboundField<'_>, is_asked: bool) -> Option<Signal> {
    let InboundField::Ddm(body) = field else { return None };
    Some(match Ddm::parse(body) {
        Ok(Ddm::Opened) => Signal::Opened,
        Ok(Ddm::Closed) => Signal::Closed,
        Ok(Ddm::Inserted { .. }) => Signal::Acknowledged,
        Ok(Ddm::Data { data, .. }) => Signal::Data(data.to_vec()),
        Ok(Ddm::Error { error: DdmError::EndOfFile, .. }) if is_asked => Signal::EndOfFile,
        _ => Signal::Failed,
    })
}
