//! The bodies of LINEMODE (RFC 1184): modes, special characters and their levels. Reading is total.

use super::command::{Command, DO, DONT, WILL, WONT};

const MODE: u8 = 1;
const FORWARD_MASK: u8 = 2;
const CHARACTERS: u8 = 3;

/// The mode of a line: who edits it, and who turns characters into signals.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct EditMode(u8);

impl EditMode {
    /// The client sends characters as they are typed.
    pub const NONE: EditMode = EditMode(0);
    /// The client edits lines, and sends whole ones.
    pub const EDIT: EditMode = EditMode(1);
    /// The client sends signals as commands.
    pub const TRAP_SIGNALS: EditMode = EditMode(2);
    /// The client expands tabs on its screen.
    pub const SOFT_TABS: EditMode = EditMode(8);
    /// The client shows control characters as they are, not as `^X`.
    pub const LITERAL_ECHO: EditMode = EditMode(16);
    const ACKNOWLEDGED: u8 = 4;
    const KNOWN: u8 = 1 | 2 | 8 | 16;

    /// The mode out of an octet; bits without meaning and the acknowledgment are dropped.
    pub fn from_octet(octet: u8) -> EditMode {
        EditMode(octet & EditMode::KNOWN)
    }
    /// Its octet, without the acknowledgment.
    pub fn octet(self) -> u8 {
        self.0
    }
    /// Both of them.
    #[must_use]
    pub fn with(self, other: EditMode) -> EditMode {
        EditMode(self.0 | other.0)
    }
    /// Whether all of `other` is in it.
    pub fn contains(self, other: EditMode) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A special character's function (RFC 1184 §2.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Function {
    /// Sends a Synch.
    Synch = 1,
    /// Sends BRK.
    Break = 2,
    /// Sends IP.
    Interrupt = 3,
    /// Sends AO.
    AbortOutput = 4,
    /// Sends AYT.
    AreYouThere = 5,
    /// Sends EOR.
    EndOfRecord = 6,
    /// Sends ABORT.
    Abort = 7,
    /// Sends the line so far, or EOF.
    EndOfFile = 8,
    /// Sends SUSP.
    Suspend = 9,
    /// Erases a character.
    EraseCharacter = 10,
    /// Erases the line.
    EraseLine = 11,
    /// Erases a word.
    EraseWord = 12,
    /// Shows the line again.
    Reprint = 13,
    /// Takes the next character as it is.
    LiteralNext = 14,
    /// Restarts the output.
    Start = 15,
    /// Stops the output.
    Stop = 16,
    /// Sends the line so far, with this character.
    Forward = 17,
    /// Another such.
    Forward2 = 18,
}

/// Number of functions that are spoken here.
pub(crate) const FUNCTIONS: usize = Function::ALL.len();

impl Function {
    /// Every function, in the order of its octet.
    pub const ALL: [Function; 18] = [
        Function::Synch,
        Function::Break,
        Function::Interrupt,
        Function::AbortOutput,
        Function::AreYouThere,
        Function::EndOfRecord,
        Function::Abort,
        Function::EndOfFile,
        Function::Suspend,
        Function::EraseCharacter,
        Function::EraseLine,
        Function::EraseWord,
        Function::Reprint,
        Function::LiteralNext,
        Function::Start,
        Function::Stop,
        Function::Forward,
        Function::Forward2,
    ];
    /// The function of this octet. The motions of a line editor, 19 to 30, are not spoken here.
    pub fn from_octet(octet: u8) -> Option<Function> {
        Function::ALL.get(usize::from(octet).checked_sub(1)?).copied()
    }
    /// Its octet.
    pub fn octet(self) -> u8 {
        self as u8
    }
    /// The command that it sends where signals are trapped; EOF among them. A Synch is not a command.
    pub fn command(self) -> Option<Command> {
        Some(match self {
            Function::Break => Command::Break,
            Function::Interrupt => Command::InterruptProcess,
            Function::AbortOutput => Command::AbortOutput,
            Function::AreYouThere => Command::AreYouThere,
            Function::EndOfRecord => Command::EndOfRecord,
            Function::Abort => Command::Abort,
            Function::EndOfFile => Command::EndOfFile,
            Function::Suspend => Command::Suspend,
            _ => return None,
        })
    }
    pub(crate) fn index(self) -> usize {
        usize::from(self.octet()) - 1
    }
}

/// How far an end supports a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub enum Level {
    /// Not at all.
    #[default]
    Unsupported,
    /// With this character only.
    Fixed,
    /// With this character, which can change.
    Value,
    /// With the character that the other end chooses.
    Default,
}

/// A function's character, as an end has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Setting {
    /// How far it is supported.
    pub level: Level,
    /// Its character; meaningless where it is not supported.
    pub value: u8,
    /// Whether input that was typed before is flushed: a Synch follows the command.
    pub flushes_input: bool,
    /// Whether output is flushed: up to a TIMING-MARK it is discarded.
    pub flushes_output: bool,
}

impl Setting {
    /// A character that can change; `None` is a function without one.
    pub fn new(value: Option<u8>) -> Setting {
        let level = if value.is_some() { Level::Value } else { Level::Unsupported };
        Setting { level, value: value.unwrap_or(0), ..Setting::default() }
    }
    /// The character. Octet 255 says that there is none.
    pub fn character(self) -> Option<u8> {
        (self.level != Level::Unsupported && self.value != 255).then_some(self.value)
    }
    /// Whether level and character are the same.
    pub(crate) fn agrees(self, other: Setting) -> bool {
        self.level == other.level && (self.value == other.value || self.level == Level::Unsupported)
    }
}

/// What follows a function's octet, in one triplet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Triplet {
    /// The function's octet; 0 is all of them.
    pub(crate) function: u8,
    pub(crate) setting: Setting,
    pub(crate) acknowledges: bool,
}

const ACKNOWLEDGES: u8 = 0x80;
const FLUSHES_INPUT: u8 = 0x40;
const FLUSHES_OUTPUT: u8 = 0x20;

impl Triplet {
    fn from_octets(function: u8, flags: u8, value: u8) -> Triplet {
        let level = match flags & 3 {
            0 => Level::Unsupported,
            1 => Level::Fixed,
            2 => Level::Value,
            _ => Level::Default,
        };
        let (flushes_input, flushes_output) = (flags & FLUSHES_INPUT != 0, flags & FLUSHES_OUTPUT != 0);
        let setting = Setting { level, value, flushes_input, flushes_output };
        Triplet { function, setting, acknowledges: flags & ACKNOWLEDGES != 0 }
    }
    fn octets(self) -> [u8; 3] {
        let mut flags = self.setting.level as u8;
        for (is_set, flag) in [
            (self.acknowledges, ACKNOWLEDGES),
            (self.setting.flushes_input, FLUSHES_INPUT),
            (self.setting.flushes_output, FLUSHES_OUTPUT),
        ] {
            flags |= if is_set { flag } else { 0 };
        }
        [self.function, flags, self.setting.value]
    }
}

/// A subnegotiation of LINEMODE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LineModeBody<'a> {
    Mode {
        mode: EditMode,
        acknowledges: bool,
    },
    /// The verb: DO and a mask, or DONT, WILL, WONT.
    ForwardMask(u8),
    /// Octets of triplets.
    Characters(&'a [u8]),
}

/// What a body says; `None` where it is without meaning.
pub(crate) fn line_mode(body: &[u8]) -> Option<LineModeBody<'_>> {
    match *body {
        [MODE, mask] => Some(LineModeBody::Mode {
            mode: EditMode::from_octet(mask),
            acknowledges: mask & EditMode::ACKNOWLEDGED != 0,
        }),
        [verb @ (DO | DONT | WILL | WONT), FORWARD_MASK, ..] => Some(LineModeBody::ForwardMask(verb)),
        [CHARACTERS, ref triplets @ ..] if triplets.len().is_multiple_of(3) => {
            Some(LineModeBody::Characters(triplets))
        }
        _ => None,
    }
}

/// The triplets of a body, in their order.
pub(crate) fn triplets(body: &[u8]) -> impl Iterator<Item = Triplet> {
    let (all, _) = body.as_chunks::<3>();
    all.iter().map(|&[function, flags, value]| Triplet::from_octets(function, flags, value))
}

/// The body that sets or acknowledges a mode.
pub(crate) fn mode_body(mode: EditMode, acknowledges: bool) -> [u8; 2] {
    [MODE, mode.octet() | if acknowledges { EditMode::ACKNOWLEDGED } else { 0 }]
}

/// The body that answers a FORWARDMASK with `verb`.
pub(crate) fn forward_mask_body(verb: u8) -> [u8; 2] {
    [verb, FORWARD_MASK]
}

/// The body of these triplets.
pub(crate) fn characters_body(triplets: &[Triplet]) -> Vec<u8> {
    let mut body = vec![CHARACTERS];
    triplets.iter().for_each(|triplet| body.extend(triplet.octets()));
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec: RFC1184
    #[test]
    fn bodies_go_both_ways() {
        let mode = EditMode::EDIT.with(EditMode::TRAP_SIGNALS);
        assert_eq!(line_mode(&mode_body(mode, true)), Some(LineModeBody::Mode { mode, acknowledges: true }));
        for function in Function::ALL {
            assert_eq!(Function::from_octet(function.octet()), Some(function));
        }
        let setting = Setting { flushes_input: true, ..Setting::new(Some(3)) };
        let triplet = Triplet { function: 3, setting, acknowledges: true };
        let body = characters_body(&[triplet]);
        assert_eq!(body, [3, 3, 0xc2, 3]);
        let Some(LineModeBody::Characters(octets)) = line_mode(&body) else { panic!("{body:?}") };
        assert_eq!(triplets(octets).collect::<Vec<_>>(), [triplet]);
        for bad in [&[][..], &[1], &[1, 2, 3], &[3, 1], &[3, 1, 2, 3, 4], &[9], &[253], &[253, 9]] {
            assert_eq!(line_mode(bad), None);
        }
        assert_eq!(line_mode(&[DO, 2, 1, 2, 3]), Some(LineModeBody::ForwardMask(DO)));
    }
}
