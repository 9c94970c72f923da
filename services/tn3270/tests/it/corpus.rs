//! The fuzz targets, on their corpora and on what the two ends say to each other: whole, cut off, and with octets changed.

#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

use inhost_base::Random;
use inhost_telnet::codec::{DO, IAC, SB, SE, WILL};
use inhost_tn3270::codec::{Command, OutboundField, QueryRequest};
use inhost_tn3270::fuzz::{fuzz_tn3270_client, fuzz_tn3270_server, fuzz_tn3270_stream};
use inhost_tn3270::server::{Input, Layout, Panel};

fn inputs() -> Vec<Vec<u8>> {
    let panel =
        Panel::new("FORM", "Form").text(1, 2, "Name").input(Input::new("field", 1, 10, 8)).with_command();
    let record = panel.render(&Layout::default(), 0);
    let mut query = vec![Command::WriteStructuredField.octet()];
    OutboundField::ReadPartition(QueryRequest::Query).write(&mut query);
    let framed = |record: &[u8]| [&[0, 0, 2, 0, 1], record, &[IAC, 239]].concat();
    let name = b"IBM-3278-2-E";
    let host = [
        &[IAC, DO, 40, IAC, SB, 40, 8, 2, IAC, SE, IAC, SB, 40, 2, 4][..],
        name,
        &[1],
        b"LU001",
        &[IAC, SE, IAC, SB, 40, 3, 4, 2, 4, IAC, SE],
        &framed(&query),
        &framed(&record),
        &framed(&[0xf3, 0, 5, 0xd0, 0x41, 0x12]),
    ]
    .concat();
    let terminal = [
        &[IAC, WILL, 40, IAC, SB, 40, 2, 7][..],
        name,
        &[IAC, SE, IAC, SB, 40, 3, 7, 2, 4, IAC, SE],
        &framed(&[0x88, 0, 14, 0x81, 0xa6, 0, 0, 11, 1, 0, 0, 80, 0, 24, 0, 80, 0, 24]),
        &framed(b"\x7d\x5b\x6b\x11\x5b\x6b\xc9\xd5\xc4\x5b\xc6\xc9\xd3\xc5\x40\xc7\xc5\xe3\x40\xa7"),
        &framed(&[0x88, 0, 5, 0xd0, 0, 9]),
    ]
    .concat();
    vec![record, query, host, terminal, b"IND$FILE PUT x (ASCII".to_vec()]
}

#[test]
fn the_targets_hold() {
    let mut random = Random::from_number(1576);
    for input in inputs() {
        for length in 0..=input.len() {
            let cut = &input[..length];
            fuzz_tn3270_stream(cut);
            fuzz_tn3270_client(cut);
            fuzz_tn3270_server(cut);
        }
        for _ in 0..2000 {
            let mut changed = input.clone();
            for _ in 0..=random.public_below(6) {
                let at = random.public_below(changed.len() as u32) as usize;
                match random.public_below(3) {
                    0 => changed[at] = random.public_below(256) as u8,
                    1 => drop(changed.remove(at)),
                    _ => changed.insert(at, [IAC, 0, 40, 239, 0x11, 0xd0][random.public_below(6) as usize]),
                }
                if changed.is_empty() {
                    break;
                }
            }
            fuzz_tn3270_stream(&changed);
            fuzz_tn3270_client(&changed);
            fuzz_tn3270_server(&changed);
        }
    }
}

#[test]
fn the_corpora_hold() {
    replay::replay("tn3270_stream", fuzz_tn3270_stream);
    replay::replay("tn3270_client", fuzz_tn3270_client);
    replay::replay("tn3270_server", fuzz_tn3270_server);
}
