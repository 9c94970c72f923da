//! What keys of a terminal of today mean on a 3270.

use inhost_tn3270::screen::Key;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::BTreeMap;

/// What a key does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// A key of the 3270's keyboard.
    Key(Key),
    /// Attention.
    Attn,
    /// System request.
    SysReq,
    /// Ends the program.
    Quit,
}

impl std::str::FromStr for Meaning {
    type Err = String;
    fn from_str(text: &str) -> Result<Meaning, String> {
        match text {
            "attn" => Ok(Meaning::Attn),
            "sysreq" => Ok(Meaning::SysReq),
            "quit" => Ok(Meaning::Quit),
            other => other
                .parse()
                .map(Meaning::Key)
                .map_err(|why: inhost_tn3270::screen::UnknownKey| why.to_string()),
        }
    }
}

/// The keys that have a meaning of their own, by code and modifiers.
pub struct KeyMap(BTreeMap<String, Meaning>);

/// Keys that have a name.
const NAMED: [&str; 14] = [
    "backspace",
    "delete",
    "down",
    "end",
    "enter",
    "esc",
    "home",
    "insert",
    "left",
    "pagedown",
    "pageup",
    "right",
    "tab",
    "up",
];

/// Keys with a modifier, and what they mean.
const USUAL: [(&str, &str); 18] = [
    ("ctrl-c", "clear"),
    ("ctrl-r", "reset"),
    ("ctrl-e", "eraseeof"),
    ("ctrl-u", "eraseinput"),
    ("ctrl-n", "newline"),
    ("ctrl-d", "dup"),
    ("ctrl-f", "fieldmark"),
    ("ctrl-a", "attn"),
    ("ctrl-s", "sysreq"),
    ("ctrl-q", "quit"),
    ("ctrl-]", "quit"),
    ("ctrl-5", "quit"),
    ("alt-1", "pa1"),
    ("alt-2", "pa2"),
    ("alt-3", "pa3"),
    ("alt-c", "clear"),
    ("alt-r", "reset"),
    ("shift-tab", "backtab"),
];

impl KeyMap {
    /// The usual meanings, and others: `KEY=MEANING`.
    pub fn with(others: &[String]) -> Result<KeyMap, String> {
        let mut map = KeyMap(BTreeMap::new());
        for (key, meaning) in USUAL {
            map.set(key, meaning)?;
        }
        for text in others {
            let (key, meaning) = text
                .split_once('=')
                .ok_or_else(|| format!("--key {text:?}: give a key and its meaning, such as ctrl-d=dup"))?;
            map.set(key, meaning).map_err(|why| format!("--key {text:?}: {why}"))?;
        }
        Ok(map)
    }
    fn set(&mut self, key: &str, meaning: &str) -> Result<(), String> {
        let key = key.to_ascii_lowercase();
        let (modifier, plain) = ["ctrl-", "alt-", "shift-"]
            .iter()
            .find_map(|modifier| Some((*modifier, key.strip_prefix(modifier)?)))
            .unwrap_or(("", &key));
        // A terminal tells a character with Shift as another character.
        let is_key = match modifier {
            "" => is_function(plain),
            "shift-" => is_function(plain) || NAMED.contains(&plain),
            _ => is_function(plain) || NAMED.contains(&plain) || plain.chars().count() == 1,
        };
        if !is_key {
            return Err(format!(
                "a key is F1 to F24, or ctrl- or alt- with a character, or with shift- too, F1 to F24 or one of {}",
                NAMED.join(", ")
            ));
        }
        self.0.insert(key.clone(), meaning.to_ascii_lowercase().parse()?);
        Ok(())
    }
    /// What a key means; none for one without a meaning.
    pub fn meaning(&self, event: KeyEvent) -> Option<Meaning> {
        let name = name(event.code)?;
        let modified = match event.modifiers {
            held if held.contains(KeyModifiers::CONTROL) => format!("ctrl-{name}"),
            held if held.contains(KeyModifiers::ALT) => format!("alt-{name}"),
            held if held.contains(KeyModifiers::SHIFT) && event.code.as_char().is_none() => {
                format!("shift-{name}")
            }
            _ => name,
        };
        if let Some(&meaning) = self.0.get(&modified) {
            return Some(meaning);
        }
        let is_held = event.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let key = match event.code {
            KeyCode::F(number @ 1..=12) if event.modifiers.contains(KeyModifiers::SHIFT) => {
                Key::Pf(number + 12)
            }
            KeyCode::F(number @ 1..=24) => Key::Pf(number),
            KeyCode::Char(character) if !is_held => Key::Character(character),
            KeyCode::Enter => Key::Enter,
            KeyCode::Tab => Key::Tab,
            KeyCode::BackTab => Key::BackTab,
            KeyCode::Home => Key::Home,
            KeyCode::End => Key::End,
            KeyCode::Left => Key::Left,
            KeyCode::Right => Key::Right,
            KeyCode::Up => Key::Up,
            KeyCode::Down => Key::Down,
            KeyCode::Delete => Key::Delete,
            KeyCode::Backspace => Key::Backspace,
            KeyCode::Insert => Key::Insert,
            KeyCode::Esc => Key::Reset,
            KeyCode::PageUp => Key::Pf(7),
            KeyCode::PageDown => Key::Pf(8),
            _ => return None,
        };
        Some(Meaning::Key(key))
    }
}

fn is_function(name: &str) -> bool {
    name.strip_prefix('f')
        .and_then(|number| number.parse().ok())
        .is_some_and(|number| (1..=24).contains(&number))
}

/// The name of a key without its modifiers: one of [`NAMED`], a function key, or its character.
fn name(code: KeyCode) -> Option<String> {
    Some(match code {
        KeyCode::Char(character) => character.to_ascii_lowercase().to_string(),
        KeyCode::F(number) => format!("f{number}"),
        KeyCode::Tab | KeyCode::BackTab => "tab".to_owned(),
        other => format!("{other:?}").to_ascii_lowercase(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_meanings_and_others_can_be_given() {
        let event = |code, modifiers| KeyEvent::new(code, modifiers);
        let usual = KeyMap::with(&[]).unwrap();
        let is = |map: &KeyMap, code, modifiers| map.meaning(event(code, modifiers));
        let (none, ctrl, shift) = (KeyModifiers::NONE, KeyModifiers::CONTROL, KeyModifiers::SHIFT);
        assert_eq!(is(&usual, KeyCode::F(3), none), Some(Meaning::Key(Key::Pf(3))));
        assert_eq!(is(&usual, KeyCode::F(3), shift), Some(Meaning::Key(Key::Pf(15))));
        assert_eq!(is(&usual, KeyCode::Char('C'), ctrl), Some(Meaning::Key(Key::Clear)));
        assert_eq!(is(&usual, KeyCode::Char('Ä'), shift), Some(Meaning::Key(Key::Character('Ä'))));
        assert_eq!(is(&usual, KeyCode::BackTab, shift), Some(Meaning::Key(Key::BackTab)));
        assert_eq!(is(&usual, KeyCode::Char('x'), ctrl), None);
        let other = KeyMap::with(&["f12=pf3".into(), "ctrl-x=attn".into()]).unwrap();
        assert_eq!(is(&other, KeyCode::F(12), none), Some(Meaning::Key(Key::Pf(3))));
        assert_eq!(is(&other, KeyCode::Char('x'), ctrl), Some(Meaning::Attn));
        let named = KeyMap::with(&["ctrl-up=pf7".into(), "shift-enter=newline".into(), "ctrl--=pa1".into()]);
        let named = named.unwrap();
        assert_eq!(is(&named, KeyCode::Up, ctrl), Some(Meaning::Key(Key::Pf(7))));
        assert_eq!(is(&named, KeyCode::Enter, shift), Some(Meaning::Key(Key::NewLine)));
        assert_eq!(is(&named, KeyCode::Char('-'), ctrl), Some(Meaning::Key(Key::Pa(1))));
        for wrong in [
            "x=clear",
            "ctrl-x",
            "ctrl-x=jump",
            "hyper-x=clear",
            "ctrl-foo=clear",
            "ctrl-=clear",
            "shift-x=clear",
            "f25=clear",
            "f0=clear",
        ] {
            assert!(KeyMap::with(&[wrong.into()]).is_err(), "{wrong}");
        }
    }
}
