//! The host's part of IND$FILE.

use super::cut::CutHost;
use super::signal::{Signal, ddm_signal};
use crate::codec::{CodePage, Command, Ddm, Inbound, OPEN_DATA, OPEN_MESSAGE};
use crate::transfer::text::{TextDecoder, TextEncoder};
use crate::transfer::{COMPLETE, Direction, TransferCommand};

/// Octets of a file that are read at a time.
const READ_BYTES: usize = 8 << 10;
/// Octets of a structured field besides the data.
const FIELD_OVERHEAD_BYTES: usize = 27;
/// The most octets of data in a structured field.
const PIECE_BYTES: usize = 32_000;
/// Characters of a message.
const MESSAGE_CHARACTERS: usize = 79;

/// What a session wants of the files.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FileAction {
    /// Open a file to read it.
    OpenRead {
        /// Its name, as the user wrote it.
        name: String,
    },
    /// Read so many octets at a position, fewer at the end.
    Read {
        /// The position.
        position: u64,
        /// How many.
        length: usize,
    },
    /// Open a file to write it.
    OpenWrite {
        /// Its name, as the user wrote it.
        name: String,
        /// Whether behind what it has.
        is_append: bool,
    },
    /// Write at a position.
    Write {
        /// The position.
        position: u64,
        /// The octets.
        data: Vec<u8>,
    },
    /// The file is whole and so long.
    Commit {
        /// Its length.
        size_bytes: u64,
    },
    /// Forget what was written.
    Discard,
}

/// The answer to a [`FileAction`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FileAnswer {
    /// It is open; to be written from this position.
    Opened {
        /// The position of the first octet.
        position: u64,
    },
    /// What was read; empty at the end of the file.
    Data(Vec<u8>),
    /// It is written, committed or forgotten.
    Done,
    /// It cannot be done, and why.
    Failed(String),
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Out {
    Record(Vec<u8>),
    File(FileAction),
    Done(Result<u64, String>),
}

#[derive(Clone, Debug)]
enum Carrier {
    Dft { piece_bytes: usize },
    Cut(Box<CutHost>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The file is being opened.
    OpeningFile,
    /// The terminal is.
    Opening,
    ReadingFile,
    Sending,
    Asking,
    WritingFile,
    Committing,
    Discarding,
    Ending,
    Closing,
    OpeningMessage,
    Told,
}

/// One transfer.
#[derive(Clone, Debug)]
pub(super) struct HostTransfer {
    command: TransferCommand,
    carrier: Carrier,
    page: CodePage,
    state: State,
    position: u64,
    start: u64,
    most_bytes: u64,
    wire: Vec<u8>,
    encoder: Option<TextEncoder>,
    decoder: Option<TextDecoder>,
    is_at_end: bool,
    outcome: Result<u64, String>,
}

impl HostTransfer {
    /// A transfer to a terminal that takes structured fields of so many octets; `None` where it takes none.
    pub(super) fn new(
        command: TransferCommand,
        outbound_bytes: Option<u16>,
        page: CodePage,
        most_bytes: u64,
    ) -> (HostTransfer, Out) {
        let name = command.name.clone();
        let open = match command.direction {
            Direction::Download => FileAction::OpenRead { name },
            Direction::Upload => FileAction::OpenWrite { name, is_append: command.is_append },
        };
        let carrier = match outbound_bytes {
            Some(bytes) => {
                let piece_bytes = usize::from(bytes).saturating_sub(FIELD_OVERHEAD_BYTES);
                Carrier::Dft { piece_bytes: piece_bytes.clamp(1, PIECE_BYTES) }
            }
            None => Carrier::Cut(Box::default()),
        };
        let transfer = HostTransfer {
            encoder: command.is_text.then(|| TextEncoder::new(page, command.has_line_ends)),
            decoder: command.is_text.then(|| TextDecoder::new(page, command.has_line_ends)),
            command,
            carrier,
            page,
            state: State::OpeningFile,
            position: 0,
            start: 0,
            most_bytes,
            wire: Vec::new(),
            is_at_end: false,
            outcome: Ok(0),
        };
        (transfer, Out::File(open))
    }
    /// The command.
    pub(super) fn command(&self) -> &TransferCommand {
        &self.command
    }
    /// Whether the terminal has to say something.
    pub(super) fn waits_for_terminal(&self) -> bool {
        !matches!(
            self.state,
            State::OpeningFile
                | State::ReadingFile
                | State::WritingFile
                | State::Committing
                | State::Discarding
        )
    }

    /// The answer of the files.
    pub(super) fn file(&mut self, answer: FileAnswer) -> Vec<Out> {
        match (self.state, answer) {
            (State::OpeningFile, FileAnswer::Opened { position }) => {
                (self.position, self.start) = (position, position);
                self.state = State::Opening;
                let is_upload = self.command.direction == Direction::Upload;
                vec![Out::Record(match &mut self.carrier {
                    Carrier::Dft { .. } => fields(&[Ddm::Open { name: *OPEN_DATA, is_upload }]),
                    Carrier::Cut(cut) => cut.open(),
                })]
            }
            (State::ReadingFile, FileAnswer::Data(data)) => {
                self.position += data.len() as u64;
                self.is_at_end = data.is_empty();
                match &mut self.encoder {
                    Some(encoder) if data.is_empty() => encoder.end(&mut self.wire),
                    Some(encoder) => encoder.take(&data, &mut self.wire),
                    None => self.wire.extend_from_slice(&data),
                }
                if self.encoder.as_ref().is_some_and(|encoder| encoder.lost() > 0) {
                    let why = "the file has characters that the code page has not; fetch it as binary";
                    return self.fail("TRANS14", why, false);
                }
                self.send()
            }
            (State::WritingFile, FileAnswer::Done) => self.ask(),
            (State::Committing, FileAnswer::Done) => self.close(),
            (State::Discarding, _) => self.tell(),
            (State::OpeningFile, FileAnswer::Failed(why)) => self.fail("TRANS17", &why, false),
            (State::ReadingFile, FileAnswer::Failed(why)) => self.fail("TRANS14", &why, false),
            (State::WritingFile, FileAnswer::Failed(why)) => self.fail("TRANS13", &why, true),
            (State::Committing, FileAnswer::Failed(why)) => self.fail("TRANS13", &why, false),
            _ => Vec::new(),
        }
    }

    /// A record of the terminal. Query replies and fields of other kinds are passed over.
    /// While the files have to answer, the terminal has nothing to say: what follows in its record is passed over too.
    pub(super) fn record(&mut self, inbound: &Inbound<'_>) -> Vec<Out> {
        if !self.waits_for_terminal() {
            return Vec::new();
        }
        let is_asked = self.state == State::Asking;
        let signals: Vec<Signal> = match (&mut self.carrier, inbound) {
            (Carrier::Dft { .. }, Inbound::Fields(fields)) => {
                fields.iter().filter_map(|field| ddm_signal(field, is_asked)).collect()
            }
            // A key is pressed in the middle of a transfer: it is not for us.
            (Carrier::Dft { .. }, Inbound::Read { .. }) => Vec::new(),
            (Carrier::Cut(cut), inbound) => vec![cut.signal(inbound, is_asked)],
        };
        let mut out = Vec::new();
        for signal in signals {
            out.extend(self.signal(signal));
            if !self.waits_for_terminal() {
                break;
            }
        }
        out
    }

    fn signal(&mut self, signal: Signal) -> Vec<Out> {
        let is_cut = matches!(self.carrier, Carrier::Cut(_));
        match (self.state, signal) {
            (State::Opening, Signal::Opened) => self.begin(),
            (State::Opening, Signal::Acknowledged) if is_cut => self.begin(),
            (State::Sending, Signal::Acknowledged) => self.send(),
            (State::Ending, Signal::Acknowledged) => self.tell(),
            (State::Asking, Signal::Data(data)) => self.take(&data),
            (State::Asking, Signal::EndOfFile) => {
                self.state = State::Committing;
                vec![Out::File(FileAction::Commit { size_bytes: self.position })]
            }
            (State::Closing, Signal::Closed) => self.tell(),
            (State::OpeningMessage, Signal::Opened) => {
                self.state = State::Told;
                let text = self.message();
                vec![Out::Record(fields(&[Ddm::Insert, Ddm::InsertData(text.as_bytes())]))]
            }
            (State::Told, _) => vec![Out::Done(self.outcome.clone())],
            // Terminals that do not open a message have shown none.
            (State::OpeningMessage, Signal::Failed) => vec![Out::Done(self.outcome.clone())],
            (state, Signal::Failed) if state != State::OpeningFile => {
                let is_writing = self.command.direction == Direction::Upload;
                self.fail("TRANS99", "the terminal gave up", is_writing && state != State::Closing)
            }
            _ => Vec::new(),
        }
    }

    fn begin(&mut self) -> Vec<Out> {
        match self.command.direction {
            Direction::Download => self.send(),
            Direction::Upload => self.ask(),
        }
    }
    /// Sends a piece, or reads the next one, or ends.
    fn send(&mut self) -> Vec<Out> {
        let wanted = match &self.carrier {
            Carrier::Dft { piece_bytes } => *piece_bytes,
            Carrier::Cut(_) => READ_BYTES,
        };
        if !self.is_at_end && self.wire.len() < wanted {
            self.state = State::ReadingFile;
            let action = FileAction::Read { position: self.position, length: READ_BYTES };
            return vec![Out::File(action)];
        }
        self.state = State::Sending;
        match &mut self.carrier {
            Carrier::Dft { piece_bytes } if !self.wire.is_empty() => {
                let piece: Vec<u8> = self.wire.drain(..self.wire.len().min(*piece_bytes)).collect();
                vec![Out::Record(fields(&[Ddm::Insert, Ddm::InsertData(&piece)]))]
            }
            Carrier::Cut(cut) if !self.wire.is_empty() || cut.has_left() => {
                vec![Out::Record(cut.data(&mut self.wire))]
            }
            Carrier::Cut(cut) => {
                self.state = State::Ending;
                self.outcome = Ok(self.position);
                vec![Out::Record(cut.end())]
            }
            Carrier::Dft { .. } => self.close(),
        }
    }
    fn ask(&mut self) -> Vec<Out> {
        self.state = State::Asking;
        vec![Out::Record(match &mut self.carrier {
            Carrier::Dft { .. } => fields(&[Ddm::SetCursor, Ddm::Get]),
            Carrier::Cut(cut) => cut.request(),
        })]
    }
    fn take(&mut self, data: &[u8]) -> Vec<Out> {
        let mut file = Vec::new();
        match &self.decoder {
            Some(decoder) => decoder.take(data, &mut file),
            None => file.extend_from_slice(data),
        }
        if file.is_empty() {
            return self.ask();
        }
        let position = self.position;
        self.position += file.len() as u64;
        if self.position - self.start > self.most_bytes {
            return self.fail("TRANS13", "the file is too large", true);
        }
        self.state = State::WritingFile;
        vec![Out::File(FileAction::Write { position, data: file })]
    }
    fn close(&mut self) -> Vec<Out> {
        self.outcome = Ok(self.position - self.start);
        match &self.carrier {
            Carrier::Dft { .. } => {
                self.state = State::Closing;
                vec![Out::Record(fields(&[Ddm::Close]))]
            }
            Carrier::Cut(_) => self.tell(),
        }
    }
    fn fail(&mut self, code: &str, why: &str, is_writing: bool) -> Vec<Out> {
        self.outcome = Err(format!("{code}   {why}: file transfer canceled"));
        if is_writing {
            self.state = State::Discarding;
            return vec![Out::File(FileAction::Discard)];
        }
        self.tell()
    }
    /// Shows the outcome on the terminal.
    fn tell(&mut self) -> Vec<Out> {
        let (text, is_complete) = (self.message(), self.outcome.is_ok());
        let record = match &mut self.carrier {
            Carrier::Dft { .. } => {
                self.state = State::OpeningMessage;
                fields(&[Ddm::Open { name: *OPEN_MESSAGE, is_upload: false }])
            }
            Carrier::Cut(cut) => {
                self.state = State::Told;
                cut.message(is_complete, &self.page.encode(&text))
            }
        };
        vec![Out::Record(record)]
    }
    /// The message: graphic ASCII, ended by a dollar sign.
    fn message(&self) -> String {
        let text = match &self.outcome {
            Ok(_) => format!("{COMPLETE}   File transfer complete"),
            Err(why) => why.clone(),
        };
        let graphic = text.chars().map(|c| if matches!(c, ' '..='~') && c != '$' { c } else { '?' });
        graphic.take(MESSAGE_CHARACTERS).chain(['$']).collect()
    }
}

/// A record of structured fields.
fn fields(all: &[Ddm<'_>]) -> Vec<u8> {
    let mut record = vec![Command::WriteStructuredField.octet()];
    all.iter().for_each(|ddm| ddm.write(&mut record));
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::DdmError;

    fn answers(all: &[Ddm<'_>]) -> Vec<u8> {
        let mut record = vec![crate::codec::Aid::StructuredField.octet()];
        all.iter().for_each(|ddm| ddm.write(&mut record));
        record
    }

    /// A terminal that says several things at once, while the file has to answer the first.
    #[test]
    fn a_record_is_read_up_to_what_the_file_has_to_answer() {
        let command = TransferCommand::binary(Direction::Upload, "x");
        let (mut transfer, _) = HostTransfer::new(command, Some(4096), CodePage::Cp037, 100);
        transfer.file(FileAnswer::Opened { position: 0 });
        transfer.record(&Inbound::parse(&answers(&[Ddm::Opened])).unwrap());
        let data = |data| Ddm::Data { record: 1, data };
        let failed = Ddm::Error { request: 0x46, error: DdmError::Failed };
        let both = answers(&[data(b"one"), failed, data(b"two")]);
        let write = FileAction::Write { position: 0, data: b"one".to_vec() };
        assert_eq!(transfer.record(&Inbound::parse(&both).unwrap()), [Out::File(write)]);
        assert!(matches!(transfer.file(FileAnswer::Done)[..], [Out::Record(_)]), "it goes on");
        let last = answers(&[data(b"two")]);
        let write = FileAction::Write { position: 3, data: b"two".to_vec() };
        assert_eq!(transfer.record(&Inbound::parse(&last).unwrap()), [Out::File(write)]);
    }
}
