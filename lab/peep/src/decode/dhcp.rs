//! DHCP (RFC 2131), as far as it was captured: a message may be cut anywhere.

use std::net::Ipv4Addr;

use super::{Layer, application::clean, mac, number};

/// Where options begin: behind the fixed fields and the magic cookie.
const OPTIONS: usize = 240;
/// Options that are looked at.
const MAX_OPTIONS: usize = 64;
const KINDS: [&str; 9] = ["?", "discover", "offer", "request", "decline", "ACK", "NAK", "release", "inform"];

/// How the value of an option is written.
enum Form {
    Addresses,
    Number,
    Text,
    Codes,
}

/// Options by code (RFC 2132), their names here and their forms.
const NAMES: [(u8, &str, Form); 21] = [
    (50, "requested", Form::Addresses),
    (51, "lease_s", Form::Number),
    (54, "server", Form::Addresses),
    (12, "host_name", Form::Text),
    (1, "mask", Form::Addresses),
    (3, "routers", Form::Addresses),
    (6, "dns_servers", Form::Addresses),
    (15, "domain", Form::Text),
    (26, "mtu", Form::Number),
    (28, "broadcast", Form::Addresses),
    (42, "time_servers", Form::Addresses),
    (55, "wanted_options", Form::Codes),
    (56, "message", Form::Text),
    (57, "longest_bytes", Form::Number),
    (58, "renew_s", Form::Number),
    (59, "rebind_s", Form::Number),
    (60, "vendor", Form::Text),
    (61, "client", Form::Codes),
    (66, "boot_server", Form::Text),
    (67, "boot_file", Form::Text),
    (80, "rapid_commit", Form::Text),
];
/// How many of the first of these are said in a line.
const SAID: usize = 4;

pub(super) fn decode(bytes: &[u8]) -> Option<Layer> {
    let mut layer = Layer::new("dhcp");
    let address = |at: usize| Some(Ipv4Addr::from_bits(number(bytes, at, 4)? as u32));
    let transaction = number(bytes, 4, 4)?;
    let options = options(bytes);
    let kind = options.iter().find(|(code, _)| *code == 53).and_then(|(_, value)| value.first());
    let kind = match (kind, number(bytes, 0, 1)?) {
        (Some(&kind), _) => KINDS.get(usize::from(kind)).unwrap_or(&"?"),
        (None, 1) => "BOOTP request",
        (None, _) => "BOOTP reply",
    };
    layer.field("message", kind);
    layer.field("transaction", format!("{transaction:#x}"));
    let mut said = Vec::new();
    for (name, at) in [("client_address", 12), ("address", 16), ("next_server", 20), ("relay", 24)] {
        if let Some(found) = address(at).filter(|found| !found.is_unspecified()) {
            layer.field(name, found);
            said.extend((name == "address").then(|| found.to_string()));
        }
    }
    layer.fields.extend(mac(bytes, 28).map(|hardware| ("hardware", hardware)));
    for (place, (code, name, form)) in NAMES.iter().enumerate() {
        let Some((_, value)) = options.iter().find(|(found, _)| found == code) else { continue };
        let value = written(form, value);
        said.extend((place < SAID).then(|| format!("{} {value}", name.replace('_', " "))));
        layer.field(name, value);
    }
    layer.words = format!("DHCP {kind} {}", said.join(", ")).trim_end().to_owned();
    Some(layer)
}

/// Options with their values, in their order.
fn options(bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let (mut options, mut rest) = (Vec::new(), bytes.get(OPTIONS..).unwrap_or(&[]));
    while let [code, behind @ ..] = rest
        && options.len() < MAX_OPTIONS
    {
        match (code, behind) {
            (0, _) => rest = behind,
            (255, _) => break,
            (_, [length, behind @ ..]) => {
                let Some((value, behind)) = behind.split_at_checked((*length).into()) else { break };
                options.push((*code, value));
                rest = behind;
            }
            _ => break,
        }
    }
    options
}

fn written(form: &Form, value: &[u8]) -> String {
    let joined = |words: Vec<String>| words.join(" ");
    match form {
        Form::Addresses => joined(
            value.as_chunks::<4>().0.iter().map(|&octets| Ipv4Addr::from(octets).to_string()).collect(),
        ),
        Form::Number => number(value, 0, value.len().min(4)).unwrap_or(0).to_string(),
        Form::Text => clean(value),
        Form::Codes => joined(value.iter().map(u8::to_string).collect()),
    }
}
