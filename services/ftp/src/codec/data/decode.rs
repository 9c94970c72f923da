//! From the wire's octets to a file's.

use std::fmt;

use super::ebcdic::from_ebcdic;
use super::encode::filler;
use super::{EOF, EOR, MARKER, MARKER_BYTES, NEW_LINE, SUSPECT};
use crate::codec::{Mode, Parameters, Representation, Structure};

/// Reason why [`Decoder::decode`] stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// The input is used up.
    More,
    /// A restart marker: all that went to the output before it is what it covers.
    Marker(String),
    /// The file has ended; what follows it is not a part of it.
    End,
}

/// Protocol errors of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DecodeError {
    /// An escape or descriptor that RFC 959 does not have.
    Code(u8),
    /// A restart marker longer than [`MARKER_BYTES`], or not printable.
    Marker,
    /// The connection ended before the file did.
    Truncated,
    /// The sender says that the data before has errors (descriptor 32).
    Suspect,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Code(code) => write!(f, "code {code} is not known in this mode and structure"),
            DecodeError::Marker => write!(f, "a restart marker has 1 to {MARKER_BYTES} printable characters"),
            DecodeError::Truncated => f.write_str("the data connection ended before the file did"),
            DecodeError::Suspect => f.write_str("the sender says that the data has errors"),
        }
    }
}
impl std::error::Error for DecodeError {}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Between strings or blocks; in stream mode, in data.
    Start,
    /// Stream mode with records: behind an escape.
    Escape,
    /// A block's count, high and low octet.
    CountHigh(u8),
    CountLow(u8, u8),
    /// In a block or string with so many octets left and this descriptor.
    Data(usize, u8),
    /// Compressed mode: behind the octet of zeros.
    Descriptor,
    /// Compressed mode: the octet that is repeated.
    Repeated(usize, u8),
    /// The file has ended.
    End,
}

/// Makes a file's octets.
#[derive(Debug)]
pub struct Decoder {
    parameters: Parameters,
    state: State,
    /// Compressed mode: the descriptor of the string to come.
    descriptor: u8,
    marker: Vec<u8>,
    /// A carriage return that may belong to a line end.
    after_return: bool,
}

impl Decoder {
    /// At the beginning of a transfer.
    pub fn new(parameters: Parameters) -> Decoder {
        Decoder { parameters, state: State::Start, descriptor: 0, marker: Vec::new(), after_return: false }
    }

    /// Takes octets off `input`, up to its end, the next marker or the file's end. At most 63 times as many octets go
    /// to `output`.
    pub fn decode(&mut self, input: &mut &[u8], output: &mut Vec<u8>) -> Result<Decoded, DecodeError> {
        while !input.is_empty() {
            let stopped = match (self.parameters.mode, self.parameters.structure) {
                _ if self.state == State::End => return Ok(Decoded::End),
                (Mode::Stream, Structure::File) => {
                    self.data(core::mem::take(input), output);
                    None
                }
                (Mode::Stream, Structure::Record) => self.stream_record(input, output)?,
                (Mode::Block, _) => self.block(input, output)?,
                (Mode::Compressed, _) => self.compressed(input, output)?,
            };
            if let Some(stopped) = stopped {
                return Ok(stopped);
            }
        }
        Ok(if self.state == State::End { Decoded::End } else { Decoded::More })
    }

    /// The connection has ended. Only stream mode without records ends files this way.
    pub fn finish(&mut self, output: &mut Vec<u8>) -> Result<(), DecodeError> {
        let by_connection =
            (self.parameters.mode, self.parameters.structure) == (Mode::Stream, Structure::File);
        if !by_connection && self.state != State::End {
            return Err(DecodeError::Truncated);
        }
        self.settle(output);
        Ok(())
    }

    fn stream_record(
        &mut self,
        input: &mut &[u8],
        output: &mut Vec<u8>,
    ) -> Result<Option<Decoded>, DecodeError> {
        if self.state == State::Escape {
            let code = input[0];
            *input = &input[1..];
            self.state = State::Start;
            match code {
                0xff => self.data(&[0xff], output),
                1 => self.end_record(output),
                2 => return Ok(Some(self.end(output))),
                3 => {
                    self.end_record(output);
                    return Ok(Some(self.end(output)));
                }
                other => return Err(DecodeError::Code(other)),
            }
            return Ok(None);
        }
        let plain = input.iter().position(|&octet| octet == 0xff).unwrap_or(input.len());
        self.data(&input[..plain], output);
        *input = &input[plain..];
        if !input.is_empty() {
            *input = &input[1..];
            self.state = State::Escape;
        }
        Ok(None)
    }

    fn block(&mut self, input: &mut &[u8], output: &mut Vec<u8>) -> Result<Option<Decoded>, DecodeError> {
        let first = input[0];
        match self.state {
            State::Start => {
                if first & SUSPECT != 0 {
                    return Err(DecodeError::Suspect);
                }
                if first & 0x0f != 0 || (first & MARKER != 0 && first != MARKER) {
                    return Err(DecodeError::Code(first));
                }
                self.state = State::CountHigh(first);
            }
            State::CountHigh(descriptor) => self.state = State::CountLow(descriptor, first),
            State::CountLow(descriptor, high) => {
                let length = usize::from(u16::from_be_bytes([high, first]));
                *input = &input[1..];
                return self.begin(length, descriptor, output);
            }
            State::Data(..) => return self.string(input, output),
            _ => return Err(DecodeError::Code(first)),
        }
        *input = &input[1..];
        Ok(None)
    }

    fn compressed(
        &mut self,
        input: &mut &[u8],
        output: &mut Vec<u8>,
    ) -> Result<Option<Decoded>, DecodeError> {
        let first = input[0];
        if let State::Data(..) = self.state {
            return self.string(input, output);
        }
        *input = &input[1..];
        match self.state {
            State::Descriptor => {
                if first & SUSPECT != 0 {
                    return Err(DecodeError::Suspect);
                }
                if first & 0x0f != 0 || (first & MARKER != 0 && first != MARKER) {
                    return Err(DecodeError::Code(first));
                }
                self.descriptor = first;
                self.state = State::Start;
                Ok(None)
            }
            State::Repeated(count, descriptor) => self.repeat(count, first, descriptor, output),
            _ => {
                let count = usize::from(first & 0x3f);
                let descriptor = self.descriptor;
                match first {
                    0 => {
                        self.state = State::Descriptor;
                        Ok(None)
                    }
                    1..=0x7f => {
                        self.descriptor = 0;
                        self.begin(usize::from(first), descriptor, output)
                    }
                    0x80..=0xbf => {
                        self.descriptor = 0;
                        self.state = State::Repeated(count, descriptor);
                        Ok(None)
                    }
                    0xc0..=0xff => {
                        self.descriptor = 0;
                        self.repeat(count, filler(self.parameters.representation), descriptor, output)
                    }
                }
            }
        }
    }

    fn repeat(
        &mut self,
        count: usize,
        octet: u8,
        descriptor: u8,
        output: &mut Vec<u8>,
    ) -> Result<Option<Decoded>, DecodeError> {
        if descriptor == MARKER {
            return Err(DecodeError::Marker);
        }
        self.data(&[octet; 64][..count], output);
        self.ended(descriptor, output)
    }

    /// A string or block of so many octets begins.
    fn begin(
        &mut self,
        length: usize,
        descriptor: u8,
        output: &mut Vec<u8>,
    ) -> Result<Option<Decoded>, DecodeError> {
        if descriptor == MARKER && !(1..=MARKER_BYTES).contains(&length) {
            return Err(DecodeError::Marker);
        }
        if length == 0 {
            return self.ended(descriptor, output);
        }
        self.state = State::Data(length, descriptor);
        Ok(None)
    }

    fn string(&mut self, input: &mut &[u8], output: &mut Vec<u8>) -> Result<Option<Decoded>, DecodeError> {
        let State::Data(left, descriptor) = self.state else { return Ok(None) };
        let (now, later) = input.split_at(input.len().min(left));
        *input = later;
        match descriptor {
            MARKER => self.marker.extend_from_slice(now),
            _ => self.data(now, output),
        }
        if now.len() < left {
            self.state = State::Data(left - now.len(), descriptor);
            return Ok(None);
        }
        self.ended(descriptor, output)
    }

    /// A string or block has ended.
    fn ended(&mut self, descriptor: u8, output: &mut Vec<u8>) -> Result<Option<Decoded>, DecodeError> {
        self.state = State::Start;
        if descriptor == MARKER {
            let marker = core::mem::take(&mut self.marker);
            if !marker.iter().all(|octet| (0x21..0x7f).contains(octet)) {
                return Err(DecodeError::Marker);
            }
            self.settle(output);
            return Ok(Some(Decoded::Marker(String::from_utf8_lossy(&marker).into_owned())));
        }
        if descriptor & EOR != 0 {
            self.end_record(output);
        }
        Ok((descriptor & EOF != 0).then(|| self.end(output)))
    }

    fn end(&mut self, output: &mut Vec<u8>) -> Decoded {
        self.settle(output);
        self.state = State::End;
        Decoded::End
    }

    fn end_record(&mut self, output: &mut Vec<u8>) {
        self.settle(output);
        if self.parameters.structure == Structure::Record {
            output.push(b'\n');
        }
    }

    /// A carriage return was data after all.
    fn settle(&mut self, output: &mut Vec<u8>) {
        if core::mem::take(&mut self.after_return) {
            output.push(b'\r');
        }
    }

    fn data(&mut self, data: &[u8], output: &mut Vec<u8>) {
        match self.parameters.representation {
            Representation::Image | Representation::Local(_) => output.extend_from_slice(data),
            Representation::Ebcdic(_) => output.extend(data.iter().map(|&octet| match octet {
                NEW_LINE => b'\n',
                octet => from_ebcdic(octet),
            })),
            Representation::Ascii(_) => self.lines(data, output),
        }
    }

    fn lines(&mut self, mut data: &[u8], output: &mut Vec<u8>) {
        if self.after_return && !data.is_empty() {
            self.after_return = false;
            if data[0] != b'\n' {
                output.push(b'\r');
            }
        }
        while let Some(at) = data.iter().position(|&octet| octet == b'\r') {
            output.extend_from_slice(&data[..at]);
            data = &data[at + 1..];
            match data.first() {
                None => self.after_return = true,
                Some(b'\n') => {}
                Some(_) => output.push(b'\r'),
            }
        }
        output.extend_from_slice(data);
    }
}
