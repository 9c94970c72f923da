//! From a file's octets to the wire's.

use super::ebcdic::to_ebcdic;
use super::{EOF, EOR, MARKER, MARKER_EVERY_BYTES, NEW_LINE};
use crate::codec::{Mode, Parameters, Representation, Structure};

/// Octets of one block. RFC 959 allows 65,535; half of that fills a segment as well.
const BLOCK_BYTES: usize = 32 * 1024;
/// The longest string and the longest repetition of compressed mode (RFC 959 §3.4.3).
const STRING_BYTES: usize = 127;
const REPEATED: usize = 63;
/// A repetition shorter than this is cheaper as it is.
const WORTH_REPEATING: usize = 3;

/// Makes the wire's octets.
#[derive(Debug)]
pub struct Encoder {
    parameters: Parameters,
    /// Octets of the file that were taken, those before the restart among them.
    position: u64,
    next_marker: u64,
    /// Contents of the next block.
    block: Vec<u8>,
    /// The last octet of the file was a carriage return.
    after_return: bool,
}

impl Encoder {
    /// For a file that is sent from its octet `start` on.
    pub fn new(parameters: Parameters, start: u64) -> Encoder {
        let next_marker = start + MARKER_EVERY_BYTES;
        Encoder { parameters, position: start, next_marker, block: Vec::new(), after_return: false }
    }

    /// Encodes the next octets of the file. At most five times as many octets go to `output`, and a marker for each
    /// [`MARKER_EVERY_BYTES`].
    pub fn encode(&mut self, mut input: &[u8], output: &mut Vec<u8>) {
        while !input.is_empty() {
            let room = usize::try_from(self.next_marker - self.position).unwrap_or(usize::MAX);
            let (now, later) = input.split_at(input.len().min(room));
            self.represent(now, output);
            self.position += now.len() as u64;
            input = later;
            if self.position == self.next_marker {
                self.next_marker += MARKER_EVERY_BYTES;
                self.mark(output);
            }
        }
    }

    /// Ends the file.
    pub fn finish(&mut self, output: &mut Vec<u8>) {
        match (self.parameters.mode, self.parameters.structure) {
            (Mode::Stream, Structure::File) => {}
            (Mode::Stream, Structure::Record) => output.extend_from_slice(&[0xff, 2]),
            _ => self.flush(EOF, output),
        }
    }

    fn represent(&mut self, input: &[u8], output: &mut Vec<u8>) {
        let line_end: &[u8] = match self.parameters.representation {
            Representation::Ascii(_) => b"\r\n",
            Representation::Ebcdic(_) => &[NEW_LINE],
            Representation::Image | Representation::Local(_) => b"\n",
        };
        let records = self.parameters.structure == Structure::Record;
        if !records && line_end == b"\n" {
            return self.frame(input, output);
        }
        let mut lines = input.split(|&octet| octet == b'\n');
        let mut line = lines.next();
        while let Some(text) = line {
            // A line that ends in CR LF has the end already that text has on the wire.
            let after_return = text.last().map_or(self.after_return, |&octet| octet == b'\r');
            self.after_return = after_return;
            match self.parameters.representation {
                Representation::Ebcdic(_) => {
                    let text: Vec<u8> = text.iter().map(|&octet| to_ebcdic(octet)).collect();
                    self.frame(&text, output);
                }
                _ => self.frame(text, output),
            }
            line = lines.next();
            if line.is_some() {
                self.after_return = false;
                match records {
                    true => self.end_record(output),
                    false if after_return && line_end == b"\r\n" => self.frame(b"\n", output),
                    false => self.frame(line_end, output),
                }
            }
        }
    }

    fn frame(&mut self, mut data: &[u8], output: &mut Vec<u8>) {
        match (self.parameters.mode, self.parameters.structure) {
            (Mode::Stream, Structure::File) => output.extend_from_slice(data),
            // RFC 959 §3.4.1: a data octet of all ones is sent twice.
            (Mode::Stream, Structure::Record) => {
                for (index, piece) in data.split(|&octet| octet == 0xff).enumerate() {
                    if index > 0 {
                        output.extend_from_slice(&[0xff, 0xff]);
                    }
                    output.extend_from_slice(piece);
                }
            }
            _ => {
                while !data.is_empty() {
                    let room = BLOCK_BYTES - self.block.len();
                    let (now, later) = data.split_at(data.len().min(room));
                    self.block.extend_from_slice(now);
                    data = later;
                    if self.block.len() == BLOCK_BYTES {
                        self.flush(0, output);
                    }
                }
            }
        }
    }

    fn end_record(&mut self, output: &mut Vec<u8>) {
        match self.parameters.mode {
            Mode::Stream => output.extend_from_slice(&[0xff, 1]),
            _ => self.flush(EOR, output),
        }
    }

    /// RFC 959 §3.5: a marker stands behind what it covers.
    fn mark(&mut self, output: &mut Vec<u8>) {
        if self.parameters.mode == Mode::Stream {
            return;
        }
        if !self.block.is_empty() {
            self.flush(0, output);
        }
        self.block.extend_from_slice(self.position.to_string().as_bytes());
        self.flush(MARKER, output);
    }

    /// Sends the block with a descriptor.
    fn flush(&mut self, descriptor: u8, output: &mut Vec<u8>) {
        let block = core::mem::take(&mut self.block);
        if self.parameters.mode == Mode::Block {
            output.push(descriptor);
            output.extend_from_slice(&(block.len() as u16).to_be_bytes());
            output.extend_from_slice(&block);
        } else {
            self.compress(&block, descriptor, output);
        }
        // The memory serves the next block.
        self.block = block;
        self.block.clear();
    }

    /// RFC 959 §3.4.3: the descriptor stands before the string that it is about, so that string is one.
    fn compress(&self, block: &[u8], descriptor: u8, output: &mut Vec<u8>) {
        let last = match descriptor {
            0 => block.len(),
            MARKER => 0,
            _ => block.len().saturating_sub(1),
        };
        let (strings, string) = block.split_at(last);
        self.compress_strings(strings, output);
        if descriptor == 0 {
            return;
        }
        output.extend_from_slice(&[0, descriptor]);
        match string.len() {
            // No fillers: the string that has nothing in it.
            0 => output.push(0xc0),
            length => {
                output.push(length as u8);
                output.extend_from_slice(string);
            }
        }
    }

    fn compress_strings(&self, mut data: &[u8], output: &mut Vec<u8>) {
        let filler = filler(self.parameters.representation);
        while let Some(&first) = data.first() {
            let repeated = data.iter().take(REPEATED).take_while(|&&octet| octet == first).count();
            if repeated >= WORTH_REPEATING {
                match first == filler {
                    true => output.push(0xc0 | repeated as u8),
                    false => output.extend_from_slice(&[0x80 | repeated as u8, first]),
                }
                data = &data[repeated..];
                continue;
            }
            let until = data.windows(WORTH_REPEATING).position(|w| w.iter().all(|octet| *octet == w[0]));
            let length = until.unwrap_or(data.len()).clamp(1, STRING_BYTES);
            output.push(length as u8);
            output.extend_from_slice(&data[..length]);
            data = &data[length..];
        }
    }
}

/// What a filler stands for: space in text, zero elsewhere.
pub(super) fn filler(representation: Representation) -> u8 {
    match representation {
        Representation::Ascii(_) => b' ',
        Representation::Ebcdic(_) => to_ebcdic(b' '),
        Representation::Image | Representation::Local(_) => 0,
    }
}
