//! Telnet: commands, options and subnegotiations; text between them.

use inhost_telnet::codec::{Command, DO, DONT, IAC, SB, SE, TelnetOption, WILL, WONT};

use super::{Layer, application::clean, number};

/// Commands of one segment that are shown.
const MAX_COMMANDS: usize = 12;
const TERMINAL_TYPE: u8 = 24;
const WINDOW_SIZE: u8 = 31;
const TERMINAL_SPEED: u8 = 32;

pub(super) fn decode(bytes: &[u8]) -> Option<Layer> {
    let mut layer = Layer::new("telnet");
    let (mut said, mut text, mut rest) = (Vec::new(), Vec::new(), bytes);
    while let [byte, behind @ ..] = rest {
        let (words, next) = match (*byte, behind) {
            (IAC, [IAC, next @ ..]) => {
                text.push(IAC);
                rest = next;
                continue;
            }
            (IAC, [verb @ (DO | DONT | WILL | WONT), behind @ ..]) => {
                let (option, next) =
                    behind.split_first().map_or((None, behind), |(of, next)| (Some(*of), next));
                (format!("{} {}", verb_name(*verb), option_name(option)), next)
            }
            (IAC, [SB, behind @ ..]) => {
                let end = behind.windows(2).position(|pair| pair == [IAC, SE]);
                let (body, next) = end.map_or((behind, &[][..]), |end| (&behind[..end], &behind[end + 2..]));
                (subnegotiation(body), next)
            }
            (IAC, [command, next @ ..]) => {
                let name = Command::from_octet(*command).map(|of| of.name().to_uppercase());
                (name.unwrap_or_else(|| format!("command {command}")), next)
            }
            // Its command is in the next segment.
            (IAC, []) => break,
            (byte, next) => {
                text.push(byte);
                rest = next;
                continue;
            }
        };
        if said.len() < MAX_COMMANDS {
            said.push(words);
        }
        rest = next;
    }
    if !said.is_empty() {
        layer.field("commands", said.join(", "));
    }
    if !text.is_empty() {
        layer.field("text", clean(&text));
        said.push(format!("\"{}\"", clean(text.trim_ascii_end())));
    }
    layer.words = format!("Telnet {}", said.join(", "));
    Some(layer)
}

fn verb_name(verb: u8) -> &'static str {
    match verb {
        DO => "DO",
        DONT => "DONT",
        WILL => "WILL",
        _ => "WONT",
    }
}

fn option_name(code: Option<u8>) -> String {
    let Some(code) = code else { return "?".to_owned() };
    TelnetOption::from_code(code).map_or_else(|| format!("option {code}"), |of| of.name().to_owned())
}

/// The body behind `IAC SB`.
fn subnegotiation(body: &[u8]) -> String {
    let Some((&option, value)) = body.split_first() else { return "SB ?".to_owned() };
    let name = option_name(Some(option));
    let said = match (option, value) {
        (WINDOW_SIZE, [_, _, _, _]) => {
            let size = |at| number(value, at, 2).unwrap_or(0);
            format!("{}x{}", size(0), size(2))
        }
        (TERMINAL_TYPE | TERMINAL_SPEED, [0, text @ ..]) => format!("IS {}", clean(text)),
        (_, [1]) => "SEND".to_owned(),
        _ => format!("{} bytes", value.len()),
    };
    format!("SB {name} {said}")
}
