//! The sending end of rcp.

use super::super::codec::{Header, LEAVE, Times, encode_status};
use crate::codec::{Reply, ReplyReader};

/// Receiver's reply to the last announced entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The file is accepted, and its data is wanted: [`Source::wanted_bytes`].
    Accepted,
    /// The step is complete: a file was received whole, a folder was entered or left, or the copy may begin.
    Done,
    /// The receiving end refuses this entry, and says why. The next one may be announced.
    Refused(String),
    /// The receiving end has ended the copy, and says why.
    Failed(String),
}

/// Sends files and folders. In: entries, data, and the replies of the other end; out: [`Source::output`].
///
/// After each entry [`Source::receive`] is to be called until it reports [`Progress`]; after
/// [`Progress::Accepted`] data is supplied until none is wanted, and then the next [`Progress`] awaited.
///
/// ```
/// use inhost_rcommands::rcp::{Progress, Source};
/// let mut source = Source::new();
/// // The receiving end speaks first.
/// assert_eq!(source.receive(&mut &b"\0"[..]), Some(Progress::Done));
/// source.file(b"notes", 0o644, 5, None);
/// assert_eq!(source.output(), b"C0644 5 notes\n");
/// assert_eq!(source.receive(&mut &b"\0"[..]), Some(Progress::Accepted));
/// source.data(b"hello".to_vec());
/// assert_eq!((source.wanted_bytes(), source.output()), (0, b"hello\0".to_vec()));
/// assert_eq!(source.receive(&mut &b"\0"[..]), Some(Progress::Done));
/// ```
#[derive(Clone, Debug)]
pub struct Source {
    state: State,
    replies: ReplyReader,
    output: Vec<u8>,
    /// Why the data of the current file is not the file's.
    unreadable: Option<String>,
}

#[derive(Clone, Debug)]
enum State {
    /// A reply is awaited that completes the step.
    Step,
    /// A reply to the times is awaited; then comes the header.
    Times {
        header: Vec<u8>,
        size_bytes: Option<u64>,
    },
    /// A reply to a file's header is awaited.
    Header {
        size_bytes: u64,
    },
    /// Data is awaited from the owner.
    Data {
        left_bytes: u64,
    },
    /// The next entry is awaited from the owner.
    Ready,
    Over,
}

impl Default for Source {
    fn default() -> Self {
        Self::new()
    }
}

impl Source {
    /// A machine that awaits the other end's first reply.
    pub fn new() -> Source {
        Source { state: State::Step, replies: ReplyReader::default(), output: Vec::new(), unreadable: None }
    }
    /// Octets to be sent.
    pub fn output(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.output)
    }
    /// Announces a file.
    pub fn file(&mut self, name: &[u8], mode: u32, size_bytes: u64, times: Option<Times>) {
        self.unreadable = None;
        self.announce(b'C', Header { mode, size_bytes, name }, Some(size_bytes), times);
    }
    /// Announces a folder, into which the next entries go.
    pub fn enter(&mut self, name: &[u8], mode: u32, times: Option<Times>) {
        self.announce(b'D', Header { mode, size_bytes: 0, name }, None, times);
    }
    /// Ends the folder that was entered last.
    pub fn leave(&mut self) {
        if matches!(self.state, State::Ready) {
            self.output.extend_from_slice(LEAVE);
            self.state = State::Step;
        }
    }
    fn announce(&mut self, kind: u8, header: Header<'_>, size_bytes: Option<u64>, times: Option<Times>) {
        if !matches!(self.state, State::Ready) {
            return;
        }
        let header = header.encode(kind);
        match times {
            Some(times) => {
                self.output.extend(times.encode());
                self.state = State::Times { header, size_bytes };
            }
            None => self.header(header, size_bytes),
        }
    }
    fn header(&mut self, header: Vec<u8>, size_bytes: Option<u64>) {
        self.output.extend(header);
        self.state = size_bytes.map_or(State::Step, |size_bytes| State::Header { size_bytes });
    }

    /// Octets of the file that are still to be supplied.
    pub fn wanted_bytes(&self) -> u64 {
        match self.state {
            State::Data { left_bytes } => left_bytes,
            _ => 0,
        }
    }
    /// Supplies data of the file; what is beyond [`Source::wanted_bytes`] is dropped. The status that ends the file is
    /// sent with the last of it.
    pub fn data(&mut self, mut data: Vec<u8>) {
        let State::Data { left_bytes } = self.state else { return };
        data.truncate(usize::try_from(left_bytes).unwrap_or(usize::MAX));
        let left_bytes = left_bytes - data.len() as u64;
        match self.output.is_empty() {
            true => self.output = data,
            false => self.output.append(&mut data),
        }
        self.state = match left_bytes {
            0 => {
                self.output.extend(encode_status(self.unreadable.as_deref()));
                State::Step
            }
            left_bytes => State::Data { left_bytes },
        };
    }
    /// The file cannot be read on. Its announced length must be sent all the same: the owner supplies any octets, and a
    /// final status tells the peer that they are void.
    pub fn mark_unreadable(&mut self, why: String) {
        self.unreadable = Some(why);
    }
    /// Why the current file could not be read, if it could not.
    pub fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    /// Takes replies from the front of `input`; `None` when more octets are needed.
    pub fn receive(&mut self, input: &mut &[u8]) -> Option<Progress> {
        loop {
            if matches!(self.state, State::Data { .. } | State::Ready | State::Over) {
                return None;
            }
            let reply = self.replies.take(input)?;
            if let Some(progress) = self.reply(reply) {
                return Some(progress);
            }
            if !self.output.is_empty() {
                return None;
            }
        }
    }
    /// The stream has ended: what the other end said last, if it said anything.
    pub fn end(&mut self) -> Option<Reply> {
        self.state = State::Over;
        self.replies.end()
    }
    fn reply(&mut self, reply: Reply) -> Option<Progress> {
        let state = core::mem::replace(&mut self.state, State::Ready);
        match (state, reply) {
            (_, Reply::Fatal(why)) => {
                self.state = State::Over;
                Some(Progress::Failed(why))
            }
            (_, Reply::Warning(why)) => Some(Progress::Refused(why)),
            (State::Times { header, size_bytes }, Reply::Ok) => {
                self.header(header, size_bytes);
                None
            }
            (State::Header { size_bytes: 0 }, Reply::Ok) => {
                self.output.extend(encode_status(None));
                self.state = State::Step;
                None
            }
            (State::Header { size_bytes }, Reply::Ok) => {
                self.state = State::Data { left_bytes: size_bytes };
                Some(Progress::Accepted)
            }
            (_, Reply::Ok) => Some(Progress::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> Source {
        let mut source = Source::new();
        assert_eq!(source.receive(&mut &b"\0"[..]), Some(Progress::Done));
        source
    }

    #[test]
    fn times_go_first_and_an_empty_file_needs_no_data() {
        let mut source = ready();
        source.file(b"x", 0o600, 0, Some(Times { modified_seconds: 1, accessed_seconds: 2 }));
        assert_eq!(source.output(), b"T1 0 2 0\n");
        assert_eq!((source.receive(&mut &b"\0"[..]), source.output()), (None, b"C0600 0 x\n".to_vec()));
        assert_eq!((source.receive(&mut &b"\0"[..]), source.output()), (None, vec![0]));
        assert_eq!(source.receive(&mut &b"\0"[..]), Some(Progress::Done));
    }

    #[test]
    fn a_refused_entry_leaves_the_machine_ready_for_the_next() {
        let mut source = ready();
        source.enter(b"dir", 0o755, None);
        assert_eq!(source.output(), b"D0755 0 dir\n");
        assert_eq!(source.receive(&mut &b"\x01no\n"[..]), Some(Progress::Refused("no".into())));
        source.file(b"x", 0o600, 3, Some(Times { modified_seconds: 1, accessed_seconds: 2 }));
        assert_eq!(source.receive(&mut &b"\x01no\n"[..]), Some(Progress::Refused("no".into())));
        assert_eq!(source.wanted_bytes(), 0);
        source.leave();
        assert!(source.output().ends_with(b"E\n"));
    }

    #[test]
    fn a_file_that_cannot_be_read_on_keeps_its_length_and_says_why() {
        let mut source = ready();
        source.file(b"x", 0o600, 4, None);
        source.output();
        assert_eq!(source.receive(&mut &b"\0"[..]), Some(Progress::Accepted));
        source.data(b"ab".to_vec());
        source.mark_unreadable("shorter".into());
        source.data(vec![0; 100]);
        assert_eq!(source.output(), b"ab\0\0\x01shorter\n");
        assert_eq!(source.receive(&mut &b"\x02gone\n"[..]), Some(Progress::Failed("gone".into())));
        source.file(b"y", 0o600, 4, None);
        assert_eq!((source.output(), source.receive(&mut &b"\0"[..])), (vec![], None));
    }
}
