//! DNS, DHCP, TFTP, FTP and Telnet, by their ports.

use hickory_proto::op::Message;
use inhost_common::Cleaner;
use inhost_telnet::codec::{Command, TelnetOption};
use std::net::Ipv4Addr;

use super::{Decoded, Layer, number};

const DNS: u16 = 53;
const MULTICAST_DNS: u16 = 5353;
const DHCP: [u16; 2] = [67, 68];
const TFTP: u16 = 69;
const FTP: u16 = 21;
const TELNET: u16 = 23;
/// Characters of a line that are shown.
const SHOWN: usize = 120;
/// Records and commands of one message that are shown.
const MOST: usize = 12;
const IAC: u8 = 255;
const SUBNEGOTIATION: u8 = 250;
const END_OF_SUBNEGOTIATION: u8 = 240;

pub(super) fn of_udp(ports: [u16; 2], bytes: &[u8], decoded: &mut Decoded) {
    let has = |port: u16| ports.contains(&port);
    let layer = if bytes.is_empty() {
        None
    } else if has(DNS) || has(MULTICAST_DNS) {
        dns(bytes)
    } else if DHCP.iter().any(|&port| has(port)) {
        dhcp(bytes)
    } else if has(TFTP) {
        tftp(bytes)
    } else {
        None
    };
    decoded.layers.extend(layer);
}

pub(super) fn of_tcp(ports: [u16; 2], bytes: &[u8], decoded: &mut Decoded) {
    let has = |port: u16| ports.contains(&port);
    let layer = if bytes.is_empty() {
        None
    } else if has(FTP) {
        lines("ftp", bytes)
    } else if has(TELNET) {
        telnet(bytes)
    } else if has(DNS) {
        bytes.get(2..).and_then(dns)
    } else {
        None
    };
    decoded.layers.extend(layer);
}

/// Text of strangers in one line that is not too long.
fn clean(bytes: &[u8]) -> String {
    let text = Cleaner::line(bytes);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

fn dns(bytes: &[u8]) -> Option<Layer> {
    let mut layer = Layer::new("dns");
    let Ok(message) = Message::from_vec(bytes) else {
        layer.words = "DNS, not understood".to_owned();
        return Some(layer);
    };
    let is_answer = message.metadata.message_type == hickory_proto::op::MessageType::Response;
    layer.field("id", message.metadata.id);
    let questions: Vec<String> = message
        .queries
        .iter()
        .take(MOST)
        .map(|query| clean(format!("{} {}", query.query_type(), query.name()).as_bytes()))
        .collect();
    layer.field("questions", questions.join(", "));
    let answers: Vec<String> = message
        .answers
        .iter()
        .take(MOST)
        .map(|record| clean(format!("{} {}", record.record_type(), record.data).as_bytes()))
        .collect();
    if is_answer {
        layer.field("code", message.metadata.response_code);
        layer.field("answers", answers.join(", "));
    }
    layer.words = match is_answer {
        false => format!("DNS query {}", questions.join(", ")),
        true if answers.is_empty() => {
            format!("DNS answer to {}: {}", questions.join(", "), message.metadata.response_code)
        }
        true => format!("DNS answer to {}: {}", questions.join(", "), answers.join(", ")),
    };
    Some(layer)
}

fn dhcp(bytes: &[u8]) -> Option<Layer> {
    let mut layer = Layer::new("dhcp");
    let kinds = ["?", "discover", "offer", "request", "decline", "ACK", "NAK", "release", "inform"];
    let (mut kind, mut at) = (None, 240);
    let mut fields: Vec<(&'static str, String)> = Vec::new();
    for _ in 0..64 {
        let (Some(code), Some(length)) = (number(bytes, at, 1), number(bytes, at + 1, 1)) else { break };
        if code == 255 {
            break;
        }
        if code == 0 {
            at += 1;
            continue;
        }
        let value = bytes.get(at + 2..at + 2 + length as usize).unwrap_or(&[]);
        let address = || number(value, 0, 4).map(|bits| Ipv4Addr::from_bits(bits as u32).to_string());
        match code {
            12 => fields.push(("host_name", clean(value))),
            50 => fields.extend(address().map(|of| ("requested", of))),
            51 => fields.extend(number(value, 0, 4).map(|of| ("lease_s", of.to_string()))),
            53 => kind = number(value, 0, 1),
            54 => fields.extend(address().map(|of| ("server", of))),
            _ => {}
        }
        at += 2 + length as usize;
    }
    let kind = *kinds.get(kind? as usize).unwrap_or(&"?");
    layer.field("message", kind);
    layer.field("transaction", format!("{:#x}", number(bytes, 4, 4)?));
    let offered = Ipv4Addr::from_bits(number(bytes, 16, 4)? as u32);
    if !offered.is_unspecified() {
        layer.field("address", offered);
    }
    layer.fields.extend(fields);
    let said: Vec<String> =
        layer.fields.iter().skip(2).map(|(name, value)| format!("{name} {value}")).collect();
    layer.words = format!("DHCP {kind} {}", said.join(", "));
    Some(layer)
}

fn tftp(bytes: &[u8]) -> Option<Layer> {
    let mut layer = Layer::new("tftp");
    let rest = bytes.get(2..)?;
    layer.words = match number(bytes, 0, 2)? {
        kind @ (1 | 2) => {
            let mut words = rest.split(|&byte| byte == 0).map(clean);
            let (name, mode) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let what = if kind == 1 { "read" } else { "write" };
            format!("TFTP {what} {name} ({mode})")
        }
        3 => format!("TFTP data {}, {} bytes", number(rest, 0, 2)?, rest.len().saturating_sub(2)),
        4 => format!("TFTP acknowledgment {}", number(rest, 0, 2)?),
        5 => format!(
            "TFTP error {}: {}",
            number(rest, 0, 2)?,
            clean(rest.get(2..)?.split(|&byte| byte == 0).next()?)
        ),
        6 => "TFTP options acknowledged".to_owned(),
        _ => return None,
    };
    layer.field("message", layer.words.clone());
    Some(layer)
}

/// A protocol of lines: the first of them.
fn lines(name: &'static str, bytes: &[u8]) -> Option<Layer> {
    let mut layer = Layer::new(name);
    let line = bytes.split(|&byte| byte == b'\n').next()?;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // A password is not shown.
    let is_secret = line.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"PASS "));
    let text = if is_secret { "PASS ...".to_owned() } else { clean(line) };
    layer.field("line", text.clone());
    layer.words = format!("FTP {text}");
    Some(layer)
}

/// Telnet's commands and options; text between them is counted.
fn telnet(bytes: &[u8]) -> Option<Layer> {
    let mut layer = Layer::new("telnet");
    let (mut said, mut text, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        let command = bytes.get(at + 1).copied();
        if byte != IAC || command == Some(IAC) {
            text.push(byte);
            at += if byte == IAC { 2 } else { 1 };
            continue;
        }
        let Some(command) = command else { break };
        let option = || match bytes.get(at + 2) {
            Some(&code) => {
                TelnetOption::from_code(code).map_or(format!("option {code}"), |of| of.name().to_owned())
            }
            None => "?".to_owned(),
        };
        let (words, length) = match command {
            251 => (format!("WILL {}", option()), 3),
            252 => (format!("WONT {}", option()), 3),
            253 => (format!("DO {}", option()), 3),
            254 => (format!("DONT {}", option()), 3),
            SUBNEGOTIATION => {
                let rest = bytes.get(at..).unwrap_or(&[]);
                let end = rest.windows(2).position(|pair| pair == [IAC, END_OF_SUBNEGOTIATION]);
                (format!("SB {}", option()), end.map_or(rest.len(), |end| end + 2))
            }
            other => {
                let name = Command::from_octet(other)
                    .map_or(format!("command {other}"), |of| of.name().to_uppercase());
                (name, 2)
            }
        };
        if said.len() < MOST {
            said.push(words);
        }
        at += length;
    }
    if !said.is_empty() {
        layer.field("commands", said.join(", "));
    }
    if !text.is_empty() {
        layer.field("text", clean(&text));
        said.push(format!("{:?}", clean(&text)));
    }
    layer.words = format!("Telnet {}", said.join(", "));
    Some(layer)
}
