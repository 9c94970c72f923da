//! Settings of the command level.

use core::num::NonZeroU8;

use crate::codec::{Function, Setting};
use crate::line::EditingKeys;

/// SUSP in LINEMODE; ^Z.
const SUSPEND: u8 = 0x1a;

/// The client's terminal.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Emulation {
    /// The real terminal, untouched.
    #[default]
    None,
    /// A Heath 19.
    Heath19,
}

/// When typed data goes out in character mode (MIT §5.8).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Transmit {
    /// With each character.
    #[default]
    Character,
    /// With each return, or when a key with its own meaning is typed: fewer, fuller segments.
    Return,
}

/// Input mode: line or character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// As they are typed; the server echoes and edits.
    Character,
    /// Line by line; echoed and edited here.
    Line,
}

/// Switches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Toggle {
    /// Return is sent as CR LF instead of CR NUL.
    ReturnIsCrLf,
    /// BINARY both ways.
    Binary,
    /// Changes of options are shown.
    Options,
    /// After an interrupt key, output is discarded until the server has dealt with it.
    AutoFlush,
    /// An interrupt key is followed by a Synch.
    AutoSynch,
    /// Interrupt, quit, flush, erase and kill keys become Telnet commands, also in character mode.
    LocalCharacters,
    /// Lines are edited here as the server says (LINEMODE).
    LineMode,
    /// The server is asked for a charset (CHARSET).
    Charset,
}

/// Keys that can be changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyName {
    /// To the command level; default ^].
    Escape,
    /// IP; default ^C.
    Interrupt,
    /// ABORT; default ^\.
    Quit,
    /// AO; default ^O.
    FlushOutput,
    /// EC; default DEL.
    Erase,
    /// EL; default ^U.
    Kill,
    /// EOF; default ^D.
    EndOfFile,
}

/// The state of all switches and keys. A key of `None` is off.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// To the command level.
    pub escape: Option<u8>,
    /// IP.
    pub interrupt: Option<u8>,
    /// ABORT.
    pub quit: Option<u8>,
    /// AO.
    pub flush_output: Option<u8>,
    /// EC.
    pub erase: Option<u8>,
    /// EL.
    pub kill: Option<u8>,
    /// EOF.
    pub end_of_file: Option<u8>,
    /// Return as CR LF. Default off.
    pub return_is_cr_lf: bool,
    /// Show option changes. Default off.
    pub options: bool,
    /// Flush after interrupts. Default on.
    pub auto_flush: bool,
    /// Synch after interrupts. Default on.
    pub auto_synch: bool,
    /// Keys as commands. `None` is "in line mode only", the default.
    pub local_characters: Option<bool>,
    /// Whether LINEMODE is offered, and agreed to. Default off.
    pub line_mode: bool,
    /// Whether the server is asked for a charset; its own request is agreed to in any case. Default off.
    pub charset: bool,
    /// When typed data goes out.
    pub transmit: Transmit,
    /// Tab stops to expand tabs to; `None` leaves tabs to the terminal.
    pub tabs: Option<NonZeroU8>,
    /// Emulated terminal.
    pub emulation: Emulation,
    /// Whether keys are typed by a person at a terminal. What comes from a pipe is neither echoed nor edited, and none of
    /// it is taken for a key of ours but [`escape`](Self::escape); its line ends become CR LF. Default on.
    pub is_terminal: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            escape: Some(0x1d),
            interrupt: Some(0x03),
            quit: Some(0x1c),
            flush_output: Some(0x0f),
            erase: Some(0x7f),
            kill: Some(0x15),
            end_of_file: Some(0x04),
            return_is_cr_lf: false,
            options: false,
            auto_flush: true,
            auto_synch: true,
            local_characters: None,
            line_mode: false,
            charset: false,
            transmit: Transmit::Character,
            tabs: None,
            emulation: Emulation::None,
            is_terminal: true,
        }
    }
}

impl Settings {
    /// The place of a key.
    pub fn key_mut(&mut self, name: KeyName) -> &mut Option<u8> {
        match name {
            KeyName::Escape => &mut self.escape,
            KeyName::Interrupt => &mut self.interrupt,
            KeyName::Quit => &mut self.quit,
            KeyName::FlushOutput => &mut self.flush_output,
            KeyName::Erase => &mut self.erase,
            KeyName::Kill => &mut self.kill,
            KeyName::EndOfFile => &mut self.end_of_file,
        }
    }
    /// The keys of a line that is edited here.
    pub fn editing_keys(&self) -> EditingKeys {
        EditingKeys {
            erase: self.erase.unwrap_or(0),
            kill: self.kill.unwrap_or(0),
            interrupt: self.interrupt.unwrap_or(0),
            end_of_file: self.end_of_file.unwrap_or(0),
            ..EditingKeys::default()
        }
    }
    /// The special characters that LINEMODE tells the server.
    pub(super) fn special_characters(&self) -> Vec<(Function, Setting)> {
        let keys = self.editing_keys();
        let some = |key: u8| (key != 0).then_some(key);
        let all = [
            (Function::Interrupt, self.interrupt),
            (Function::Abort, self.quit),
            (Function::AbortOutput, self.flush_output),
            (Function::EndOfFile, self.end_of_file),
            (Function::EraseCharacter, self.erase),
            (Function::EraseLine, self.kill),
            (Function::Suspend, Some(SUSPEND)),
            (Function::EraseWord, some(keys.word_erase)),
            (Function::Reprint, some(keys.reprint)),
            (Function::LiteralNext, some(keys.literal)),
        ];
        let of = |(function, key): (Function, Option<u8>)| {
            let raises = matches!(function, Function::Interrupt | Function::Abort | Function::Suspend);
            let flushes_input = raises && self.auto_synch;
            let flushes_output = (raises || function == Function::AbortOutput) && self.auto_flush;
            (function, Setting { flushes_input, flushes_output, ..Setting::new(key) })
        };
        all.into_iter().map(of).collect()
    }
    /// Lines of name and value.
    pub fn lines(&self) -> Vec<String> {
        let key = |octet: Option<u8>| octet.map_or_else(|| "off".to_owned(), key_text);
        let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
        let local = match self.local_characters {
            Some(on) => switch(on),
            None => "in line mode".to_owned(),
        };
        let pairs = [
            ("escape", key(self.escape)),
            ("interrupt", key(self.interrupt)),
            ("quit", key(self.quit)),
            ("flushoutput", key(self.flush_output)),
            ("erase", key(self.erase)),
            ("kill", key(self.kill)),
            ("eof", key(self.end_of_file)),
            ("crlf", switch(self.return_is_cr_lf)),
            ("options", switch(self.options)),
            ("autoflush", switch(self.auto_flush)),
            ("autosynch", switch(self.auto_synch)),
            ("localchars", local),
            ("linemode", switch(self.line_mode)),
            ("charset", switch(self.charset)),
            ("transmit", format!("{:?}", self.transmit).to_lowercase()),
            ("tabs", self.tabs.map_or_else(|| "off".to_owned(), |every| every.to_string())),
        ];
        pairs.into_iter().map(|(name, value)| format!("{name:<12} {value}")).collect()
    }
}

/// A key as people write it: `^]`.
pub(super) fn key_text(octet: u8) -> String {
    let mut text = Vec::new();
    crate::line::show(octet, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
