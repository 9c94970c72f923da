//! LINEMODE (RFC 1184): the mode, and the agreement about special characters. Which end we are follows from the side that
//! performs the option: the client performs it.

use super::event::Event;
use super::telnet::Telnet;
use crate::codec::line_mode::{self as body, EditMode, Function, Level, LineModeBody, Setting, Triplet};
use crate::codec::option::{Side, TelnetOption};
use crate::codec::subnegotiation::framed;
use crate::codec::{DO, DONT, WILL, WONT};

impl Telnet {
    /// The mode that both ends have agreed on; `None` where LINEMODE is not in force. At a server it is what the client
    /// acknowledged.
    pub fn edit_mode(&self) -> Option<EditMode> {
        self.performs_line_mode().map(|_| self.line_mode.agreed)
    }
    /// The side that performs LINEMODE.
    fn performs_line_mode(&self) -> Option<Side> {
        [Side::Local, Side::Remote].into_iter().find(|&side| self.is_active(side, TelnetOption::LineMode))
    }
    /// At a server: the mode that the client is to have, now or once LINEMODE is in force.
    pub fn set_edit_mode(&mut self, mode: EditMode) {
        let changed = self.line_mode.mode != mode;
        self.line_mode.mode = mode;
        if changed && self.is_active(Side::Remote, TelnetOption::LineMode) {
            self.output.extend(&framed(TelnetOption::LineMode, &body::mode_body(mode, false)));
        }
    }
    /// The character of a function, as both ends have it.
    pub fn special_character(&self, function: Function) -> Setting {
        self.line_mode.current.get(function.index()).copied().unwrap_or_default()
    }
    /// These are this end's special characters from now on, and its defaults. The peer learns of those that differ from
    /// what was agreed.
    pub fn set_special_characters(&mut self, characters: &[(Function, Setting)]) {
        let mut changed = Vec::new();
        for &(function, setting) in characters {
            if let Some(default) = self.line_mode.defaults.get_mut(function.index()) {
                *default = setting;
            }
            let Some(current) = self.line_mode.setting(function) else { continue };
            if !current.agrees(setting) {
                *current = setting;
                changed.push(Triplet { function: function.octet(), setting, acknowledges: false });
            }
        }
        if !changed.is_empty() && self.performs_line_mode().is_some() {
            self.output.extend(&framed(TelnetOption::LineMode, &body::characters_body(&changed)));
        }
    }

    /// LINEMODE came into force: the server tells the mode, the client its characters.
    pub(super) fn line_mode_began(&mut self, side: Side) {
        self.line_mode.agreed = EditMode::NONE;
        let told = match side {
            Side::Remote => body::mode_body(self.line_mode.mode, false).to_vec(),
            Side::Local => body::characters_body(&self.line_mode.all()),
        };
        self.reply(&framed(TelnetOption::LineMode, &told));
    }

    /// A subnegotiation of LINEMODE. `None`: without meaning.
    pub(super) fn line_mode_said<'a>(&mut self, bytes: &[u8]) -> Option<Option<Event<'a>>> {
        let side = self.performs_line_mode()?;
        match body::line_mode(bytes)? {
            LineModeBody::Mode { mode, acknowledges } => Some(self.mode_said(side, mode, acknowledges)),
            LineModeBody::ForwardMask(verb) => {
                // Refused by either end; a refusal is not answered.
                let answer = match verb {
                    DO => WONT,
                    WILL => DONT,
                    _ => return Some(None),
                };
                self.reply(&framed(TelnetOption::LineMode, &body::forward_mask_body(answer)));
                Some(None)
            }
            LineModeBody::Characters(octets) => Some(self.characters_said(octets)),
        }
    }

    /// The client obeys, and acknowledges a mode that is new to it. The server takes what is acknowledged, and holds to
    /// its own mode against a client that asks for another.
    /// spec: RFC1184 2.2
    fn mode_said<'a>(&mut self, side: Side, mode: EditMode, acknowledges: bool) -> Option<Event<'a>> {
        let before = self.line_mode.agreed;
        match side {
            Side::Local => {
                if acknowledges || before == mode {
                    return None;
                }
                self.line_mode.agreed = mode;
                self.reply(&framed(TelnetOption::LineMode, &body::mode_body(mode, true)));
            }
            Side::Remote if acknowledges => {
                let asked = self.line_mode.mode;
                let essential = EditMode::EDIT.with(EditMode::TRAP_SIGNALS).octet();
                if (mode.octet() ^ asked.octet()) & essential != 0 {
                    // The acknowledgment of a mode before this one.
                    return None;
                }
                self.line_mode.agreed = mode;
            }
            Side::Remote => {
                if mode != self.line_mode.mode {
                    let own = body::mode_body(self.line_mode.mode, false);
                    self.reply(&framed(TelnetOption::LineMode, &own));
                }
                return None;
            }
        }
        (before != self.line_mode.agreed).then_some(Event::EditMode(self.line_mode.agreed))
    }

    /// The answers go out together.
    fn characters_said<'a>(&mut self, octets: &[u8]) -> Option<Event<'a>> {
        let mut answers = Vec::new();
        let mut changed = false;
        let mut all = false;
        for triplet in body::triplets(octets) {
            if triplet.function == 0 {
                // "Use your defaults", or "tell what you have"; once is enough for one message.
                if triplet.setting.level == Level::Default {
                    changed |= self.line_mode.current != self.line_mode.defaults;
                    self.line_mode.current = self.line_mode.defaults;
                }
                all |= matches!(triplet.setting.level, Level::Default | Level::Value);
                continue;
            }
            let (answer, is_new) = self.line_mode.character_said(triplet);
            answers.extend(answer);
            changed |= is_new;
        }
        if all {
            answers.splice(0..0, self.line_mode.all());
        }
        if !answers.is_empty() {
            self.reply(&framed(TelnetOption::LineMode, &body::characters_body(&answers)));
        }
        changed.then_some(Event::SpecialCharacters)
    }
}
