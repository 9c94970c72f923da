//! State of options that are more than on or off: the mode and characters of LINEMODE, the charset of CHARSET.

use crate::codec::charset::{Characters, Charset};
use crate::codec::line_mode::{EditMode, FUNCTIONS, Function, Level, Setting, Triplet};

/// State of LINEMODE.
#[derive(Debug, Default)]
pub(super) struct LineMode {
    /// What the server wants; what the client was told.
    pub(super) mode: EditMode,
    /// What the client has agreed to.
    pub(super) agreed: EditMode,
    pub(super) current: [Setting; FUNCTIONS],
    pub(super) defaults: [Setting; FUNCTIONS],
}

impl LineMode {
    pub(super) fn setting(&mut self, function: Function) -> Option<&mut Setting> {
        self.current.get_mut(function.index())
    }
    pub(super) fn all(&self) -> Vec<Triplet> {
        let of = |(function, &setting): (Function, &Setting)| Triplet {
            function: function.octet(),
            setting,
            acknowledges: false,
        };
        Function::ALL.into_iter().zip(&self.current).map(of).collect()
    }

    /// What is agreed already, and an acknowledgment, are never answered: so the exchange ends. An answer is either an
    /// acknowledgment or has a lower level than what it answers.
    /// spec: RFC1184 2.4
    pub(super) fn character_said(&mut self, triplet: Triplet) -> (Option<Triplet>, bool) {
        let said = triplet.setting;
        let Some(function) = Function::from_octet(triplet.function) else {
            let refused = (said.level != Level::Unsupported && !triplet.acknowledges).then(|| Triplet {
                function: triplet.function,
                setting: Setting::default(),
                acknowledges: false,
            });
            return (refused, false);
        };
        let default = self.defaults.get(function.index()).copied().unwrap_or_default();
        let Some(current) = self.setting(function) else { return (None, false) };
        if triplet.acknowledges || current.agrees(said) {
            return (None, false);
        }
        let before = *current;
        let acknowledges = match said.level {
            Level::Default => {
                *current = default;
                false
            }
            // Neither end can change.
            Level::Fixed if before.level == Level::Fixed => {
                *current = Setting::default();
                false
            }
            Level::Value if before.level == Level::Fixed => false,
            _ => {
                *current = said;
                true
            }
        };
        let setting = *current;
        (Some(Triplet { function: triplet.function, setting, acknowledges }), setting != before)
    }
}

/// State of CHARSET.
#[derive(Debug, Default)]
pub(super) struct CharsetState {
    /// Our request is unanswered.
    pub(super) is_asked: bool,
    pub(super) agreed: Option<Charset>,
    pub(super) characters: Characters,
    /// The last character of the peer was a CR.
    pub(super) after_return: bool,
}

impl CharsetState {
    /// The charset, where text in it is not what the owner has.
    pub(super) fn foreign(&self) -> Option<Charset> {
        self.agreed.filter(|&charset| charset != Charset::Utf8)
    }
    pub(super) fn is_foreign(&self) -> bool {
        self.foreign().is_some()
    }
}
