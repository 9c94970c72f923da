//! Representation type, structure and transfer mode (RFC 959 §3).

use std::fmt;

/// Format of a file for printers; carried, and otherwise of no effect (RFC 1123 §4.1.2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// N.
    #[default]
    NonPrint,
    /// T.
    Telnet,
    /// C.
    CarriageControl,
}

/// TYPE: what the octets on the wire mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Representation {
    /// A: text, its lines ended by CR LF.
    Ascii(Format),
    /// E: text in EBCDIC, its lines ended by NL.
    Ebcdic(Format),
    /// I: octets as they are.
    Image,
    /// L: logical bytes of so many bits; 8 is as image.
    Local(u8),
}

impl Default for Representation {
    fn default() -> Self {
        Representation::Ascii(Format::NonPrint)
    }
}

impl Representation {
    /// Whether lines have ends that are translated.
    pub fn is_text(self) -> bool {
        matches!(self, Representation::Ascii(_) | Representation::Ebcdic(_))
    }
    /// Argument of TYPE. The format that RFC 959 §5.1 has by default is left out: some servers reject it.
    pub fn argument(self) -> String {
        match self {
            Representation::Ascii(Format::NonPrint) => "A".to_owned(),
            Representation::Ebcdic(Format::NonPrint) => "E".to_owned(),
            other => other.to_string(),
        }
    }
    /// The argument of TYPE, or `None` when it is none that we carry: bytes of other sizes than 8 have no meaning in
    /// files of octets.
    pub fn parse(argument: &str) -> Option<Representation> {
        let mut words = argument.split_ascii_whitespace();
        let first = words.next()?.to_ascii_uppercase();
        let second = words.next().map(str::to_ascii_uppercase);
        if words.next().is_some() {
            return None;
        }
        let format = || match second.as_deref() {
            None | Some("N") => Some(Format::NonPrint),
            Some("T") => Some(Format::Telnet),
            Some("C") => Some(Format::CarriageControl),
            Some(_) => None,
        };
        match (&*first, second.as_deref()) {
            ("A", _) => Some(Representation::Ascii(format()?)),
            ("E", _) => Some(Representation::Ebcdic(format()?)),
            ("I", None) => Some(Representation::Image),
            ("L", Some("8")) | ("L8", None) => Some(Representation::Local(8)),
            _ => None,
        }
    }
}

impl fmt::Display for Representation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = |format: &Format| match format {
            Format::NonPrint => "N",
            Format::Telnet => "T",
            Format::CarriageControl => "C",
        };
        match self {
            Representation::Ascii(kind) => write!(f, "A {}", format(kind)),
            Representation::Ebcdic(kind) => write!(f, "E {}", format(kind)),
            Representation::Image => f.write_str("I"),
            Representation::Local(bits) => write!(f, "L {bits}"),
        }
    }
}

/// STRU: whether a file is octets or records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Structure {
    /// F.
    #[default]
    File,
    /// R: the lines of a file are its records.
    Record,
}

/// MODE: how the data connection is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// S: its end is the file's.
    #[default]
    Stream,
    /// B: blocks with counts, and restart markers.
    Block,
    /// C: as blocks, with repetitions counted.
    Compressed,
}

impl Mode {
    /// Its letter.
    pub fn letter(self) -> char {
        match self {
            Mode::Stream => 'S',
            Mode::Block => 'B',
            Mode::Compressed => 'C',
        }
    }
}

impl Structure {
    /// Its letter.
    pub fn letter(self) -> char {
        match self {
            Structure::File => 'F',
            Structure::Record => 'R',
        }
    }
}

/// All three.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// TYPE. Default A N.
    pub representation: Representation,
    /// STRU. Default F.
    pub structure: Structure,
    /// MODE. Default S.
    pub mode: Mode,
}

impl Default for Parameters {
    // RFC 959 §5.1.
    fn default() -> Self {
        Parameters {
            representation: Representation::Ascii(Format::NonPrint),
            structure: Structure::File,
            mode: Mode::Stream,
        }
    }
}

impl Parameters {
    /// Octets as they are.
    pub const IMAGE: Parameters =
        Parameters { representation: Representation::Image, structure: Structure::File, mode: Mode::Stream };
    /// Whether what is on the wire is what is in the file.
    pub fn is_plain(&self) -> bool {
        !self.representation.is_text() && self.structure == Structure::File && self.mode == Mode::Stream
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_they_are_written() {
        for (text, wanted) in
            [("A", "A N"), ("a n", "A N"), ("E T", "E T"), ("A C", "A C"), ("I", "I"), ("L 8", "L 8")]
        {
            let representation = Representation::parse(text).unwrap();
            assert_eq!(representation.to_string(), wanted);
            assert_eq!(Representation::parse(&representation.argument()), Some(representation));
            assert!(!representation.argument().contains('N'), "only the default may be left out");
        }
        for wrong in ["", "X", "L", "L 36", "I N", "A X", "A N N"] {
            assert_eq!(Representation::parse(wrong), None, "{wrong}");
        }
    }
}
