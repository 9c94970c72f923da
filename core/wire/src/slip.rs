//! SLIP: IP packets on a serial line (RFC 1055).
//!
//! There is no length, no type and no checksum: a frame is the bytes between two END octets, with END and ESC
//! themselves displaced. The checksums of IP and above must detect corruption by the line.
//!
//! ```
//! use inhost_wire::slip;
//! let mut line = Vec::new();
//! slip::encode(&[0x45, slip::END, 7], &mut line);
//! let mut decoder = slip::Decoder::new(1006);
//! let frames = line.iter().filter_map(|octet| decoder.push(*octet).map(<[u8]>::to_vec));
//! assert_eq!(frames.collect::<Vec<_>>(), [[0x45, slip::END, 7]]);
//! ```

use alloc::vec::Vec;

/// Ends a frame, and begins one.
pub const END: u8 = 0xc0;
/// Begins the two octets that stand for a displaced one.
pub const ESC: u8 = 0xdb;
/// After [`ESC`]: an END among the data.
pub const ESC_END: u8 = 0xdc;
/// After [`ESC`]: an ESC among the data.
pub const ESC_ESC: u8 = 0xdd;

/// The longest packet that every receiver takes, in bytes (RFC 1055, "SLIP drivers").
pub const CUSTOMARY_MTU_BYTES: usize = 1006;

/// Puts `packet` on the line. The frame begins with an END too, so that noise before it is a frame of its own.
// spec: RFC1055 protocol
pub fn encode(packet: &[u8], line: &mut impl Extend<u8>) {
    line.extend([END]);
    for octet in packet {
        match *octet {
            END => line.extend([ESC, ESC_END]),
            ESC => line.extend([ESC, ESC_ESC]),
            other => line.extend([other]),
        }
    }
    line.extend([END]);
}

/// Octets that [`encode`] puts on the line for `packet`.
pub fn encoded_length(packet: &[u8]) -> usize {
    2 + packet.len() + packet.iter().filter(|octet| matches!(**octet, END | ESC)).count()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Frame,
    Escaped,
    /// Up to the next END nothing counts.
    Discarding,
}

/// Finds frames in the octets of a line. It starts anew at every END.
#[derive(Clone, Debug)]
pub struct Decoder {
    frame: Vec<u8>,
    limit_bytes: usize,
    state: State,
    /// The octet before completed a frame, which is forgotten when the next octet comes.
    complete: bool,
    discarded_frames: u64,
}

impl Decoder {
    /// For frames of up to `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Self {
        Decoder { frame: Vec::new(), limit_bytes, state: State::Frame, complete: false, discarded_frames: 0 }
    }
    /// Takes the next octet; returns the frame that it ended. Empty frames are passed over. A frame that is too
    /// long, or has an ESC before anything but its two codes, is discarded up to its END.
    // spec: RFC1055 protocol
    pub fn push(&mut self, octet: u8) -> Option<&[u8]> {
        if self.complete {
            self.frame.clear();
            self.complete = false;
        }
        match (self.state, octet) {
            (State::Frame, END) => {
                self.complete = !self.frame.is_empty();
                return self.complete.then_some(&self.frame);
            }
            (State::Frame, ESC) => self.state = State::Escaped,
            (State::Frame, data) => self.append(data),
            (State::Escaped, ESC_END) => self.append(END),
            (State::Escaped, ESC_ESC) => self.append(ESC),
            (State::Escaped, other) => {
                self.discard();
                if other == END {
                    self.state = State::Frame;
                }
            }
            (State::Discarding, END) => self.state = State::Frame,
            (State::Discarding, _) => {}
        }
        None
    }
    /// Frames begun and not delivered.
    pub fn discarded_frames(&self) -> u64 {
        self.discarded_frames
    }
    fn append(&mut self, octet: u8) {
        self.state = State::Frame;
        if self.frame.len() < self.limit_bytes {
            self.frame.push(octet);
        } else {
            self.discard();
        }
    }
    fn discard(&mut self) {
        self.frame.clear();
        self.state = State::Discarding;
        self.discarded_frames += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Random;

    fn decode(decoder: &mut Decoder, line: &[u8]) -> Vec<Vec<u8>> {
        line.iter().filter_map(|octet| decoder.push(*octet).map(<[u8]>::to_vec)).collect()
    }

    #[test]
    fn displaced_octets_are_as_the_rfc_says() {
        // spec: RFC1055 protocol
        let mut line = Vec::new();
        encode(&[1, 0o300, 2, 0o333, 3], &mut line);
        assert_eq!(line, [0o300, 1, 0o333, 0o334, 2, 0o333, 0o335, 3, 0o300]);
        assert_eq!(encoded_length(&[1, 0o300, 2, 0o333, 3]), line.len());
    }

    #[test]
    fn any_packet_survives_the_line() {
        let mut random = Random::from_number(1055);
        let mut decoder = Decoder::new(CUSTOMARY_MTU_BYTES);
        for _ in 0..300 {
            let length = 1 + random.public_below(CUSTOMARY_MTU_BYTES as u32) as usize;
            let packet: Vec<u8> = (0..length)
                .map(|_| match random.public_below(4) {
                    0 => END,
                    1 => ESC,
                    _ => random.public_u64() as u8,
                })
                .collect();
            let mut line = Vec::new();
            encode(&packet, &mut line);
            assert_eq!(decode(&mut decoder, &line), [packet]);
        }
        assert_eq!(decoder.discarded_frames(), 0);
    }

    #[test]
    fn noise_costs_no_later_frame() {
        let mut decoder = Decoder::new(4);
        let mut line = vec![9, 9, ESC, 9, 9];
        encode(&[1, 2, 3, 4, 5], &mut line);
        line.extend([7, ESC]);
        encode(&[1, 2, 3, 4], &mut line);
        assert_eq!(decode(&mut decoder, &line), [[1, 2, 3, 4]]);
        assert_eq!(decoder.discarded_frames(), 3);
    }

    #[test]
    fn empty_frames_are_passed_over() {
        let mut decoder = Decoder::new(4);
        assert!(decode(&mut decoder, &[END; 5]).is_empty());
        assert_eq!(decode(&mut decoder, &[1, END, END, 2, END]), [[1], [2]]);
    }
}
