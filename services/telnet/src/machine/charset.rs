//! CHARSET (RFC 2066) at one end: who has asked, what is agreed, and text in the charset that is.

use super::config::LineEnd;
use super::event::Event;
use super::option_state::CharsetState;
use super::telnet::Telnet;
use crate::codec::charset::{self as body, Charset, CharsetBody};
use crate::codec::option::{Side, TelnetOption};
use crate::codec::subnegotiation::framed;

impl Telnet {
    /// The charset that both ends have agreed on; `None` before.
    pub fn charset(&self) -> Option<Charset> {
        self.charset.agreed
    }
    /// These are the [`Config::charsets`](super::Config::charsets) of later requests, on either side.
    pub fn set_charsets(&mut self, charsets: &[Charset]) {
        self.config.charsets = charsets.to_vec();
    }
    /// Offers to ask the peer for one of [`Config::charsets`](super::Config::charsets), or asks where the peer agreed to
    /// that already; or ends the option, and what was agreed with it.
    pub fn ask_charset(&mut self, on: bool) {
        self.config.asks_charset = on;
        let is_active = self.is_active(Side::Local, TelnetOption::Charset);
        match on {
            true if is_active => {
                if let Some(request) = self.charset_request() {
                    self.output.extend(&request);
                }
            }
            true => self.enable(Side::Local, TelnetOption::Charset),
            false => {
                self.disable(Side::Local, TelnetOption::Charset);
                self.disable(Side::Remote, TelnetOption::Charset);
                self.charset_ended();
            }
        }
    }
    /// A request, unless one is unanswered.
    fn charset_request(&mut self) -> Option<Vec<u8>> {
        if self.charset.is_asked || self.config.charsets.is_empty() {
            return None;
        }
        self.charset.is_asked = true;
        Some(framed(TelnetOption::Charset, &body::request_body(&self.config.charsets)))
    }

    /// The option came into force, or out of it, on one side.
    pub(super) fn charset_changed(&mut self, side: Side, active: bool) {
        if !active {
            self.charset.is_asked &= side != Side::Local;
            self.charset_ended();
        } else if side == Side::Local
            && self.config.asks_charset
            && let Some(request) = self.charset_request()
        {
            self.reply(&request);
        }
    }
    /// What is agreed holds while the option is in force on either side.
    fn charset_ended(&mut self) {
        let holds =
            [Side::Local, Side::Remote].iter().any(|&side| self.is_active(side, TelnetOption::Charset));
        if !holds {
            self.charset = CharsetState::default();
        }
    }

    /// A subnegotiation of CHARSET. `None`: without meaning. One end may be in force without the other: a request is
    /// then taken from either side, as some servers ask after their own DO.
    /// spec: RFC2066 2
    pub(super) fn charset_said<'a>(&mut self, bytes: &[u8]) -> Option<Option<Event<'a>>> {
        let is_active =
            [Side::Local, Side::Remote].iter().any(|&side| self.is_active(side, TelnetOption::Charset));
        if !is_active {
            return None;
        }
        let was_asked = self.charset.is_asked;
        match body::charset(bytes)? {
            // Requests have crossed: the server's is the one that is answered.
            CharsetBody::Request(_) if was_asked && self.config.charset_precedes => Some(None),
            CharsetBody::Request(names) => Some(self.charset_requested(&names)),
            CharsetBody::Accepted(name) => {
                self.charset.is_asked = false;
                let known = Charset::from_name(name).filter(|charset| self.config.charsets.contains(charset));
                let charset = known.filter(|_| was_asked)?;
                Some(self.charset_agreed(charset))
            }
            CharsetBody::Rejected => {
                self.charset.is_asked = false;
                Some(was_asked.then_some(Event::CharsetRejected))
            }
            // No table was asked for, and none is taken: that ends the exchange.
            CharsetBody::TableIs => {
                self.charset.is_asked = false;
                self.reply(&framed(TelnetOption::Charset, &body::TABLE_REJECTED_BODY));
                Some(was_asked.then_some(Event::CharsetRejected))
            }
            // None was sent.
            CharsetBody::TableRejected => None,
        }
    }
    /// The first charset of the list that is known here: the sender has put the best in front.
    fn charset_requested<'a>(&mut self, names: &[&str]) -> Option<Event<'a>> {
        let known = |name: &&str| {
            let charset = Charset::from_name(name).filter(|charset| self.config.charsets.contains(charset));
            charset.map(|charset| (name.to_string(), charset))
        };
        match names.iter().find_map(known) {
            Some((name, charset)) => {
                // An answer to a request of ours that crossed this one comes too late.
                self.charset.is_asked = false;
                self.reply(&framed(TelnetOption::Charset, &body::accepted_body(&name)));
                self.charset_agreed(charset)
            }
            None => {
                self.reply(&framed(TelnetOption::Charset, &body::REJECTED_BODY));
                None
            }
        }
    }
    fn charset_agreed<'a>(&mut self, charset: Charset) -> Option<Event<'a>> {
        let before = self.charset.agreed.replace(charset);
        (before != Some(charset)).then_some(Event::Charset(charset))
    }

    /// The peer's text in UTF-8. Its line ends are those of the network virtual terminal, in the codes of the charset,
    /// and NL of EBCDIC; an octet without a character becomes U+FFFD. At most three times as long as `data`.
    pub(super) fn text_of(&mut self, data: &[u8]) -> Vec<u8> {
        let Some(charset) = self.charset.foreign() else { return data.to_vec() };
        let is_binary = self.is_active(Side::Remote, TelnetOption::Binary);
        let is_return = self.config.line_end == LineEnd::Return;
        let mut text = Vec::with_capacity(data.len());
        for &octet in data {
            let character = charset.character(octet);
            if character.is_none() {
                self.counters.substituted_characters += 1;
            }
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            // Where ASCII is part of the charset, the decoder has dealt with line ends.
            let has_own_ends = charset.is_ebcdic();
            let after_return = core::mem::replace(
                &mut self.charset.after_return,
                has_own_ends && !is_binary && character == '\r',
            );
            match character {
                '\0' if after_return => {}
                '\n' | '\u{85}' if after_return && is_return => {}
                '\u{85}' if has_own_ends && after_return => text.push(b'\n'),
                '\u{85}' if has_own_ends && is_return => text.push(b'\r'),
                '\u{85}' if has_own_ends => text.extend_from_slice(b"\r\n"),
                _ => {
                    Charset::Utf8.append(character, &mut text);
                }
            }
        }
        text
    }
    /// Sends UTF-8 in the charset that is agreed; a CR that no LF follows becomes CR NUL outside BINARY.
    pub(super) fn send_text(&mut self, data: &[u8], charset: Charset) {
        let is_binary = self.is_active(Side::Local, TelnetOption::Binary);
        let (mut octets, mut substituted, mut after_return) = (Vec::with_capacity(data.len()), 0, false);
        self.charset.characters.push(data, |character| {
            if after_return && character != '\n' {
                charset.append('\0', &mut octets);
            }
            after_return = character == '\r' && !is_binary;
            substituted += u64::from(!charset.append(character, &mut octets));
        });
        if after_return {
            charset.append('\0', &mut octets);
        }
        self.counters.substituted_characters += substituted;
        self.send_octets(&octets);
    }
    /// The charset in which text is to be sent, if it is not the owner's own.
    pub(super) fn foreign_charset(&self) -> Option<Charset> {
        self.charset.foreign()
    }
    /// Whether line ends of the peer are left to [`text_of`](Self::text_of).
    pub(super) fn has_foreign_ends(&self) -> bool {
        self.charset.foreign().is_some_and(Charset::is_ebcdic)
    }
}
