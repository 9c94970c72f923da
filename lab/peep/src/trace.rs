//! Lines of a trace.

use inhost_explain::capture::{Frame, dissect};
use serde_json::{Map, Value, json};
use std::fmt::Write;

use crate::decode::{Decoded, decode};
use crate::events::Event;
use crate::flows::{Flows, Numbers};

/// Bytes in a line of hexadecimal digits.
const ROW: usize = 16;

/// How times are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Time {
    /// Time of day in UTC.
    #[default]
    Clock,
    /// Since the first frame.
    Relative,
    /// Since the frame before.
    Delta,
}

/// How bytes are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hex {
    /// With characters of ASCII.
    Ascii,
    /// With characters of EBCDIC (code page 037).
    Ebcdic,
}

/// What is shown of each frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct View {
    /// How times are shown.
    pub time: Time,
    /// Every field of every layer, instead of a line.
    pub is_verbose: bool,
    /// The bytes, too.
    pub hex: Option<Hex>,
    /// Sequence numbers as they are on the wire.
    pub is_absolute: bool,
}

/// A trace: what was seen so far makes numbers and times relative.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    view: View,
    flows: Flows,
    first_ns: Option<u64>,
    last_ns: u64,
}

impl Trace {
    /// One that has seen nothing.
    pub fn new(view: View) -> Trace {
        Trace { view, flows: Flows::new(view.is_absolute), ..Trace::default() }
    }
    /// A frame in words.
    pub fn decode(&mut self, frame: &Frame<'_>) -> Decoded {
        decode(frame, &mut self.flows)
    }
    /// A frame that is not shown passes: the numbers of later ones follow from it.
    pub fn pass(&mut self, frame: &Frame<'_>) {
        if let Ok((flow, segment)) = dissect(frame) {
            let numbers = Numbers {
                sequence: segment.sequence,
                acknowledgment: segment.flags.ack().then_some(segment.acknowledgment),
                is_syn: segment.flags.syn(),
                scale: segment.options.window_scale,
            };
            self.flows.segment(frame.interface, [flow.source, flow.destination], &numbers);
        }
    }
    /// A frame as text, without a newline at its end. `host` is where it was seen, if there are several.
    pub fn text(&mut self, frame: &Frame<'_>, decoded: &Decoded, host: Option<&str>) -> String {
        let mut text = format!("{} ", self.time(frame.at_ns));
        if let Some(host) = host {
            let _ = write!(text, "{host} ");
        }
        match frame.is_inbound {
            Some(true) => text.push_str("in  "),
            Some(false) => text.push_str("out "),
            None => {}
        }
        text.push_str(&line(decoded));
        if self.view.is_verbose {
            for layer in &decoded.layers {
                let fields: Vec<String> =
                    layer.fields.iter().map(|(name, value)| format!("{name} {value}")).collect();
                let _ = write!(text, "\n    {}: {}", layer.name, fields.join(", "));
            }
        }
        if let Some(hex) = self.view.hex {
            dump(frame.bytes, hex, &mut text);
        }
        text
    }
    /// A frame as JSON: `at_ns`, `host`, `number`, `bytes`, and an object for each layer.
    pub fn json(&self, frame: &Frame<'_>, decoded: &Decoded, host: Option<&str>) -> Value {
        let mut object = Map::new();
        object.insert("at_ns".into(), frame.at_ns.into());
        object.insert("number".into(), frame.number.into());
        object.insert("bytes".into(), frame.original_bytes.into());
        if let Some(host) = host {
            object.insert("host".into(), host.into());
        }
        if let Some(is_inbound) = frame.is_inbound {
            object.insert("is_inbound".into(), is_inbound.into());
        }
        object.insert("words".into(), line(decoded).into());
        let layers = decoded.layers.iter().map(|layer| {
            let fields = layer.fields.iter().map(|(name, value)| ((*name).to_owned(), value.as_str().into()));
            json!({"name": layer.name, "fields": Value::Object(fields.collect())})
        });
        object.insert("layers".into(), layers.collect());
        Value::Object(object)
    }
    /// An event as text.
    pub fn event(&mut self, event: &Event) -> String {
        let ends =
            event.ends.as_ref().map_or(String::new(), |[local, remote]| format!("{local} <> {remote}  "));
        format!("{} {}* {ends}{}", self.time(event.at_ns), space(&event.host), event.words)
    }
    fn time(&mut self, at_ns: u64) -> String {
        let first_ns = *self.first_ns.get_or_insert(at_ns);
        let before_ns = std::mem::replace(&mut self.last_ns, at_ns);
        let since = |ns: u64| {
            let (sign, ns) = if at_ns < ns { ("-", ns - at_ns) } else { ("", at_ns - ns) };
            format!("{sign}{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
        };
        match self.view.time {
            Time::Relative => since(first_ns),
            Time::Delta => since(if before_ns == 0 { at_ns } else { before_ns }),
            Time::Clock => {
                let (seconds, micros) = (at_ns / 1_000_000_000 % 86_400, at_ns % 1_000_000_000 / 1000);
                let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
                format!("{hours:02}:{minutes:02}:{:02}.{micros:06}", seconds % 60)
            }
        }
    }
}

fn space(host: &str) -> String {
    if host.is_empty() { String::new() } else { format!("{host} ") }
}

/// Ends, then what the layers above IP say.
fn line(decoded: &Decoded) -> String {
    let is_transport = |name: &str| !matches!(name, "ethernet" | "vlan" | "ipv4" | "ipv6");
    let words: Vec<&str> = decoded
        .layers
        .iter()
        .filter(|layer| is_transport(layer.name) && !layer.words.is_empty())
        .map(|layer| &*layer.words)
        .collect();
    let tags =
        decoded.layers.iter().filter(|layer| layer.name == "vlan").map(|layer| format!("{} ", layer.words));
    let tags: String = tags.collect();
    let last = decoded.layers.last().map_or("no frame that is read", |layer| &*layer.words);
    match decoded.ends {
        Some([source, destination]) if source.port() != 0 || destination.port() != 0 => {
            format!("{tags}{source} > {destination}  {}", words.join("  "))
        }
        Some([source, destination]) if !words.is_empty() => {
            format!("{tags}{} > {}  {}", source.ip(), destination.ip(), words.join("  "))
        }
        _ => format!("{tags}{last}"),
    }
}

/// Bytes in hexadecimal, with characters.
fn dump(bytes: &[u8], hex: Hex, text: &mut String) {
    for (row, line) in bytes.chunks(ROW).enumerate() {
        let _ = write!(text, "\n    {:04x}  ", row * ROW);
        for place in 0..ROW {
            match line.get(place) {
                Some(byte) => {
                    let _ = write!(text, "{byte:02x} ");
                }
                None => text.push_str("   "),
            }
        }
        text.push(' ');
        text.extend(line.iter().map(|&byte| match hex {
            Hex::Ascii if (0x20..0x7f).contains(&byte) => char::from(byte),
            Hex::Ebcdic => ebcdic(byte),
            Hex::Ascii => '.',
        }));
    }
}

/// A character of code page 037, or a dot.
fn ebcdic(byte: u8) -> char {
    /// From 0x40 on, sixteen in a row, the characters of ASCII; a space stands where there is none.
    const TABLE: [&[u8; 16]; 12] = [
        b"           .<(+|",
        b"&         !$*); ",
        b"-/         ,%_>?",
        b"         `:#@'=\"",
        b" abcdefghi      ",
        b" jklmnopqr      ",
        b" ~stuvwxyz      ",
        b"^         []    ",
        b"{ABCDEFGHI      ",
        b"}JKLMNOPQR      ",
        b"\\ STUVWXYZ      ",
        b"0123456789      ",
    ];
    let Some(place) = byte.checked_sub(0x40) else { return '.' };
    match TABLE[usize::from(place / 16)][usize::from(place % 16)] {
        b' ' if byte != 0x40 => '.',
        character => char::from(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ebcdic_is_read_as_code_page_037() {
        // "Hello, WORLD 0123 (a)": as iconv -t CP037 writes it.
        let bytes = [
            0xc8, 0x85, 0x93, 0x93, 0x96, 0x6b, 0x40, 0xe6, 0xd6, 0xd9, 0xd3, 0xc4, 0x40, 0xf0, 0xf1, 0xf2,
            0xf3, 0x40, 0x4d, 0x81, 0x5d,
        ];
        assert_eq!(bytes.map(ebcdic).iter().collect::<String>(), "Hello, WORLD 0123 (a)");
    }
}
