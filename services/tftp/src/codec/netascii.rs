//! Text as the network has it: lines end with CR LF, a CR alone is CR NUL (RFC 764, RFC 1350 §2).

const CARRIAGE_RETURN: u8 = b'\r';

/// Makes the network's text of ours.
pub(crate) fn encode(file: &[u8], wire: &mut Vec<u8>) {
    for &octet in file {
        match octet {
            b'\n' => wire.extend_from_slice(b"\r\n"),
            CARRIAGE_RETURN => wire.extend_from_slice(b"\r\0"),
            octet => wire.push(octet),
        }
    }
}

/// Makes our text of the network's, piece by piece.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Decoder {
    /// The last octet was a CR, and what it means is not known yet.
    after_return: bool,
}

impl Decoder {
    /// The next piece.
    pub(crate) fn decode(&mut self, wire: &[u8], file: &mut Vec<u8>) {
        for &octet in wire {
            match (std::mem::take(&mut self.after_return), octet) {
                (true, b'\n') => file.push(b'\n'),
                (true, 0) => file.push(CARRIAGE_RETURN),
                (was_return, octet) => {
                    // A CR with neither behind it is nothing that the network has; it stays what it was.
                    if was_return {
                        file.push(CARRIAGE_RETURN);
                    }
                    self.after_return = octet == CARRIAGE_RETURN;
                    if !self.after_return {
                        file.push(octet);
                    }
                }
            }
        }
    }
    /// Nothing more comes.
    pub(crate) fn finish(&mut self, file: &mut Vec<u8>) {
        if std::mem::take(&mut self.after_return) {
            file.push(CARRIAGE_RETURN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_in_any_pieces() {
        let file = b"one\ntwo\r\nthree\r\r\n\n\rend\r";
        let mut wire = Vec::new();
        encode(file, &mut wire);
        assert_eq!(&wire, b"one\r\ntwo\r\0\r\nthree\r\0\r\0\r\n\r\n\r\0end\r\0");
        for piece in 1..wire.len() {
            let (mut decoder, mut back) = (Decoder::default(), Vec::new());
            wire.chunks(piece).for_each(|piece| decoder.decode(piece, &mut back));
            decoder.finish(&mut back);
            assert_eq!(back, file);
        }
    }

    #[test]
    fn what_the_network_does_not_have_stays_as_it_is() {
        let (mut decoder, mut file) = (Decoder::default(), Vec::new());
        decoder.decode(b"a\rb\r\r\nc\n\r", &mut file);
        decoder.finish(&mut file);
        assert_eq!(file, b"a\rb\r\nc\n\r");
    }
}
