//! Which application a payload is of, by its ports; DNS, FTP and TFTP.

use hickory_proto::op::{Message, MessageType};
use inhost_common::Cleaner;
use inhost_ftp::codec::{Command, Verb};
use inhost_tftp::{Options, Packet};
use std::net::SocketAddr;

use super::{Layer, dhcp, number, telnet};
use crate::flows::Flows;

const DNS: u16 = 53;
const MULTICAST_DNS: u16 = 5353;
const DHCP: [u16; 2] = [67, 68];
const TFTP: u16 = 69;
const FTP: u16 = 21;
const TELNET: u16 = 23;
/// Characters of a line that are shown.
const SHOWN: usize = 120;
/// Records and lines of one message that are shown.
const MOST: usize = 12;

pub(super) fn of_udp(ends: [SocketAddr; 2], bytes: &[u8], flows: &mut Flows) -> Option<Layer> {
    let has = |port: u16| ends.iter().any(|end| end.port() == port);
    if bytes.is_empty() {
        None
    } else if has(DNS) || has(MULTICAST_DNS) {
        dns(bytes)
    } else if DHCP.iter().any(|&port| has(port)) {
        dhcp::decode(bytes)
    } else if has(TFTP) {
        flows.begin_transfer(ends[usize::from(ends[0].port() == TFTP)]);
        tftp(bytes)
    } else if flows.is_transfer(ends) {
        tftp(bytes)
    } else {
        None
    }
}

pub(super) fn of_tcp(ports: [u16; 2], bytes: &[u8]) -> Option<Layer> {
    let has = |port: u16| ports.contains(&port);
    if bytes.is_empty() {
        None
    } else if has(FTP) {
        ftp(bytes, ports[1] == FTP)
    } else if has(TELNET) {
        telnet::decode(bytes)
    } else if has(DNS) {
        bytes.get(2..).and_then(dns)
    } else {
        None
    }
}

/// Text of strangers in one line that is not too long.
pub(super) fn clean(bytes: &[u8]) -> String {
    // A character has at most four bytes.
    let text = Cleaner::line(&bytes[..bytes.len().min(SHOWN * 4)]);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

fn dns(bytes: &[u8]) -> Option<Layer> {
    let mut layer = Layer::new("dns");
    let Ok(message) = Message::from_vec(bytes) else {
        // The number is there even where the rest was not captured.
        layer.fields.extend(number(bytes, 0, 2).map(|id| ("id", id.to_string())));
        layer.words = "DNS, cut or not understood".to_owned();
        return Some(layer);
    };
    let is_answer = message.metadata.message_type == MessageType::Response;
    layer.field("id", message.metadata.id);
    let questions: Vec<String> = message
        .queries
        .iter()
        .take(MOST)
        .map(|query| clean(format!("{} {}", query.query_type(), query.name()).as_bytes()))
        .collect();
    let questions = questions.join(", ");
    layer.field("questions", &questions);
    let answers: Vec<String> = message
        .answers
        .iter()
        .take(MOST)
        .map(|record| clean(format!("{} {}", record.record_type(), record.data).as_bytes()))
        .collect();
    let answers = answers.join(", ");
    if is_answer {
        layer.field("code", message.metadata.response_code);
        layer.field("answers", &answers);
        layer.field("authority_records", message.authorities.len());
        layer.field("truncated", message.metadata.truncation);
    }
    layer.words = match (is_answer, answers.is_empty()) {
        (false, _) => format!("DNS query {questions}"),
        (true, true) => format!("DNS answer to {questions}: {}", message.metadata.response_code),
        (true, false) => format!("DNS answer to {questions}: {answers}"),
    };
    Some(layer)
}

/// Lines of a control connection: commands of the client, replies of the server.
fn ftp(bytes: &[u8], is_command: bool) -> Option<Layer> {
    let mut layer = Layer::new("ftp");
    let mut said = Vec::new();
    let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
    for line in lines.filter(|line| !line.is_empty()).take(MOST) {
        let words = match Command::parse(line) {
            // A password is not shown.
            Ok(Command { verb: Verb::Pass | Verb::Acct, .. }) if is_command => "PASS ...".to_owned(),
            Ok(Command { verb, argument }) if is_command => {
                layer.field("command", verb.name());
                clean(format!("{} {argument}", verb.name()).trim_end().as_bytes())
            }
            // It may be a part of a password's command.
            Err(_) if is_command => "...".to_owned(),
            _ => clean(line),
        };
        layer.field(if is_command { "line" } else { "reply" }, &words);
        said.push(words);
    }
    layer.words = format!("FTP {}", said.join(" | "));
    Some(layer)
}

fn tftp(bytes: &[u8]) -> Option<Layer> {
    let mut layer = Layer::new("tftp");
    let options = |options: &Options| {
        let Options { block_size, timeout_s, transfer_size, window, .. } = *options;
        [
            block_size.map(|value| format!(" blksize={value}")),
            timeout_s.map(|value| format!(" timeout={value}")),
            transfer_size.map(|value| format!(" tsize={value}")),
            window.map(|value| format!(" windowsize={value}")),
        ]
        .into_iter()
        .flatten()
        .collect::<String>()
    };
    let words = match Packet::parse(bytes) {
        Ok(Packet::Request(request)) => {
            let what = if request.is_write { "write" } else { "read" };
            layer.field("file", clean(request.name.as_bytes()));
            let (name, mode) = (clean(request.name.as_bytes()), request.mode.name());
            format!("{what} {name} ({mode}){}", options(&request.options))
        }
        Ok(Packet::Data(block, data)) => format!("data {block}, {} bytes", data.len()),
        Ok(Packet::Ack(block)) => format!("acknowledgment {block}"),
        Ok(Packet::Error(code, message)) => format!("error {}: {}", code.0, clean(message.as_bytes())),
        Ok(Packet::OptionAck(agreed)) => format!("options{}", options(&agreed)),
        Err(why) => format!("not understood: {why}"),
    };
    layer.field("message", &words);
    layer.words = format!("TFTP {words}");
    Some(layer)
}
