//! LINEMODE at the server (RFC 1184): the client edits the shell's lines while the shell's terminal would.

use super::session::{Action, Session};
use crate::codec::{EditMode, Function, Level, Side, TelnetOption};
use crate::pty::key_mut;

impl Session {
    /// Whether the client edits the shell's lines. Each of [`typed`](Session::typed) waits for the one before to be read,
    /// as a terminal that edits them gives a program one line at a time.
    pub fn edits_externally(&self) -> bool {
        self.edits_externally
    }
    /// A line, or the end of the input, which stands alone.
    pub(super) fn next_line(&self) -> &[u8] {
        let (typed, _) = self.typed.as_slices();
        let is_end = |octet: &u8| *octet == self.keys.end_of_file && *octet != 0;
        let end = match typed.iter().position(|octet| *octet == b'\n' || is_end(octet)) {
            Some(0) => 1,
            Some(at) if typed.get(at) == Some(&b'\n') => at + 1,
            Some(at) => at,
            None => typed.len(),
        };
        typed.get(..end).unwrap_or_default()
    }
    /// Has the client edit lines, and echo, while the terminal would.
    /// spec: RFC1184 server
    pub(super) fn follow_terminal(&mut self) {
        let is_active = self.telnet.is_active(Side::Remote, TelnetOption::LineMode);
        let edits = is_active && self.in_shell() && self.keys.canonical && !self.input_ended;
        let mut mode = EditMode::NONE;
        if edits {
            mode = EditMode::EDIT;
            if self.keys.traps {
                mode = mode.with(EditMode::TRAP_SIGNALS);
            }
        }
        self.telnet.set_edit_mode(mode);
        let agreed = edits && self.telnet.edit_mode().is_some_and(|mode| mode.contains(EditMode::EDIT));
        let was_undone = agreed && self.edits_externally && !self.keys.external;
        if agreed != self.edits_externally || was_undone {
            (self.edits_externally, self.keys.external) = (agreed, agreed);
            self.actions.retain(|action| !matches!(action, Action::EditExternally(_)));
            self.actions.push_back(Action::EditExternally(agreed));
        }
        let echoes = !(edits && self.keys.echo);
        if echoes != self.echoes {
            self.echoes = echoes;
            match echoes {
                true => self.telnet.enable(Side::Local, TelnetOption::Echo),
                false => self.telnet.disable(Side::Local, TelnetOption::Echo),
            }
        }
    }
    /// The shell's terminal gets the characters that the client has chosen.
    pub(super) fn set_characters(&mut self) {
        if !self.in_shell() {
            return;
        }
        let mut chosen = Vec::new();
        for function in Function::ALL {
            let setting = self.telnet.special_character(function);
            // What the client does not support is the terminal's own affair.
            if setting.level == Level::Unsupported {
                continue;
            }
            let character = setting.character().unwrap_or(0);
            if let Some(key) = key_mut(&mut self.keys, function).filter(|key| **key != character) {
                *key = character;
                chosen.push((function, character));
            }
        }
        if !chosen.is_empty() {
            // One action at most waits: a peer cannot fill the queue with them.
            let before = self.actions.iter_mut().find_map(|action| match action {
                Action::SetCharacters(before) => Some(before),
                _ => None,
            });
            match before {
                Some(before) => {
                    before.retain(|(function, _)| !chosen.iter().any(|(newer, _)| newer == function));
                    before.extend(chosen);
                }
                None => self.actions.push_back(Action::SetCharacters(chosen)),
            }
        }
    }
}
