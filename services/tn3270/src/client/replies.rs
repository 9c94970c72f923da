//! Structured fields as a terminal sends them.

use crate::codec::{Aid, Ddm, DdmError};

/// A record with one structured field of a file transfer.
pub(super) fn field_reply(ddm: Ddm<'_>) -> Vec<u8> {
    let mut record = vec![Aid::StructuredField.octet()];
    ddm.write(&mut record);
    record
}
/// A record that refuses a request.
pub(super) fn error_reply(request: u8, error: DdmError) -> Vec<u8> {
    field_reply(Ddm::Error { request, error })
}
