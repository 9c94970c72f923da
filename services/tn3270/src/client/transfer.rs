//! The terminal's part of IND$FILE.

use core::fmt;

use inhost_common::Cleaner;

use super::replies::{error_reply, field_reply};
use crate::codec::{CodePage, Ddm, DdmError, OPEN_MESSAGE};
use crate::screen::ScreenConfig;
use crate::transfer::cut::{CutDecoder, CutEncoder};
use crate::transfer::text::{TextDecoder, TextEncoder};
use crate::transfer::{COMPLETE, Direction, TransferCommand};

/// Octets of a file that a terminal sends or takes, at most.
pub const TRANSFER_BYTES: usize = 64 << 20;
/// Octets of a structured field besides the data.
const FIELD_OVERHEAD_BYTES: u16 = 27;

/// What a transfer has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransferReport {
    /// Octets that went over the wire, as the file's contents.
    pub wire_bytes: u64,
    /// The file, for a download.
    pub file: Vec<u8>,
    /// What the host said at the end.
    pub message: String,
}

/// Why a transfer did not succeed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TransferError {
    /// The host says why. Its text has no control characters.
    Host(String),
    /// The file is larger than [`TRANSFER_BYTES`].
    TooLarge,
    /// So many characters of the text are not in the code page, and would be others at the host.
    NotInCodePage(u64),
    /// The host broke the protocol.
    Protocol(&'static str),
    /// The operator gave up.
    Abandoned,
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferError::Host(why) => f.write_str(why),
            TransferError::TooLarge => write!(f, "the file has more than {} MiB", TRANSFER_BYTES >> 20),
            TransferError::NotInCodePage(count) => write!(
                f,
                "the code page does not have {count} of the file's characters; send it as binary, or with another --code-page"
            ),
            TransferError::Protocol(why) => f.write_str(why),
            TransferError::Abandoned => f.write_str("given up"),
        }
    }
}
impl core::error::Error for TransferError {}

/// How far it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The command is sent.
    Asked,
    /// A file is open.
    Open,
    /// A message is.
    Message,
    /// It failed here, and the host is to be told at its next request.
    Failing(TransferError),
    /// The host is told.
    Failed(TransferError),
}

/// What CUT mode needs besides the transfer.
#[derive(Clone, Debug, Default)]
pub(super) struct CutState {
    pub(super) is_running: bool,
    pub(super) encoder: CutEncoder,
    pub(super) decoder: CutDecoder,
    /// Characters that did not fit into the last frame.
    pub(super) left: Vec<u8>,
}

/// One transfer.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) direction: Direction,
    pub(super) state: State,
    /// What is to be sent, translated for the wire, and how much of it is.
    wire: Vec<u8>,
    sent: usize,
    /// What was received, translated for the file.
    pub(super) file: Vec<u8>,
    pub(super) wire_bytes: u64,
    decoder: Option<TextDecoder>,
    piece_bytes: usize,
    record: u32,
    /// The last answer to Get, which the host may read again.
    pub(super) saved: Option<Vec<u8>>,
    pub(super) cut: CutState,
    pub(super) outcome: Option<Result<TransferReport, TransferError>>,
}

impl Transfer {
    /// A transfer of `file`, which is not looked at for a download.
    pub(super) fn new(
        command: &TransferCommand,
        file: &[u8],
        config: &ScreenConfig,
    ) -> Result<Transfer, TransferError> {
        if file.len() > TRANSFER_BYTES {
            return Err(TransferError::TooLarge);
        }
        let mut transfer = Transfer {
            direction: command.direction,
            state: State::Asked,
            wire: Vec::new(),
            sent: 0,
            file: Vec::new(),
            wire_bytes: 0,
            decoder: command.is_text.then(|| TextDecoder::new(config.code_page, command.has_line_ends)),
            piece_bytes: usize::from(config.transfer_bytes.saturating_sub(FIELD_OVERHEAD_BYTES).max(1)),
            record: 1,
            saved: None,
            cut: CutState::default(),
            outcome: None,
        };
        match (command.direction, command.is_text) {
            (Direction::Upload, true) => transfer.encode(file, config.code_page, command.has_line_ends)?,
            (Direction::Upload, false) => transfer.wire = file.to_vec(),
            (Direction::Download, _) => {}
        }
        Ok(transfer)
    }
    fn encode(&mut self, file: &[u8], page: CodePage, has_line_ends: bool) -> Result<(), TransferError> {
        let mut encoder = TextEncoder::new(page, has_line_ends);
        encoder.take(file, &mut self.wire);
        encoder.end(&mut self.wire);
        match encoder.lost() {
            0 => Ok(()),
            count => Err(TransferError::NotInCodePage(count)),
        }
    }

    /// The next piece to send, of at most so many octets.
    pub(super) fn next_piece(&mut self, most: usize) -> &[u8] {
        let rest = self.wire.get(self.sent..).unwrap_or_default();
        let piece = rest.get(..most.min(rest.len())).unwrap_or_default();
        self.sent += piece.len();
        self.wire_bytes += piece.len() as u64;
        piece
    }
    /// A piece from the host.
    pub(super) fn take_piece(&mut self, piece: &[u8]) -> Result<(), TransferError> {
        self.wire_bytes += piece.len() as u64;
        match &self.decoder {
            Some(decoder) => decoder.take(piece, &mut self.file),
            None => self.file.extend_from_slice(piece),
        }
        if self.file.len() > TRANSFER_BYTES {
            return Err(TransferError::TooLarge);
        }
        Ok(())
    }
    /// The operator gives up; the host learns it at its next request.
    pub(super) fn abandon(&mut self) {
        self.state = State::Failing(TransferError::Abandoned);
    }
    /// The host's last word.
    pub(super) fn finish(&mut self, message: String) {
        let outcome = match core::mem::replace(&mut self.state, State::Asked) {
            State::Failing(error) | State::Failed(error) => Err(error),
            _ => Ok(TransferReport {
                wire_bytes: self.wire_bytes,
                file: core::mem::take(&mut self.file),
                message,
            }),
        };
        self.outcome = Some(outcome);
    }

    /// Acts on a request of DFT mode. Gives the record to send.
    pub(super) fn request(&mut self, request: Ddm<'_>) -> Option<Vec<u8>> {
        let code = match request {
            Ddm::Open { .. } => 0x00,
            Ddm::Get => 0x46,
            Ddm::InsertData(_) => 0x47,
            Ddm::Close => 0x41,
            _ => return None,
        };
        if self.state != State::Message
            && code >= 0x46
            && let State::Failing(error) = &self.state
        {
            self.state = State::Failed(error.clone());
            return Some(error_reply(code, DdmError::Failed));
        }
        match request {
            Ddm::Open { name, .. } => {
                self.record = 1;
                self.saved = None;
                match (name == *OPEN_MESSAGE, &self.state) {
                    (_, State::Failed(_) | State::Failing(_)) => {}
                    (true, _) => self.state = State::Message,
                    (false, _) => self.state = State::Open,
                }
                Some(field_reply(Ddm::Opened))
            }
            Ddm::Get if self.state == State::Open && self.direction == Direction::Upload => Some(self.get()),
            Ddm::InsertData(data) => self.insert(data),
            Ddm::Close => Some(field_reply(Ddm::Closed)),
            _ => Some(error_reply(code, DdmError::Failed)),
        }
    }

    fn get(&mut self) -> Vec<u8> {
        let (most, record) = (self.piece_bytes, self.record);
        let piece = self.next_piece(most);
        let reply = match piece.is_empty() {
            true => error_reply(0x46, DdmError::EndOfFile),
            false => field_reply(Ddm::Data { record, data: piece }),
        };
        self.record = self.record.wrapping_add(1);
        self.saved = Some(reply.clone());
        reply
    }

    fn insert(&mut self, data: &[u8]) -> Option<Vec<u8>> {
        match (&self.state, self.direction) {
            (State::Message | State::Failed(_), _) => {
                let text = message(data);
                match text.starts_with(COMPLETE) || matches!(self.state, State::Failed(_)) {
                    true => self.finish(text),
                    false => self.outcome = Some(Err(TransferError::Host(text))),
                }
            }
            (State::Open, Direction::Download) => {
                if let Err(error) = self.take_piece(data) {
                    self.state = State::Failed(error);
                    return Some(error_reply(0x47, DdmError::Failed));
                }
            }
            _ => return Some(error_reply(0x47, DdmError::Failed)),
        }
        let reply = field_reply(Ddm::Inserted { record: self.record });
        self.record = self.record.wrapping_add(1);
        Some(reply)
    }
}

/// The text of a message: up to the first dollar sign, without blanks at its end.
pub(super) fn message(data: &[u8]) -> String {
    let end = data.iter().position(|&octet| octet == b'$').unwrap_or(data.len());
    Cleaner::line(data.get(..end).unwrap_or_default()).trim_end().to_owned()
}
