//! The whole matrix: what each phase makes of each packet.

use super::*;
use std::fmt::Write;

const TABLE: &str = include_str!("transitions.txt");

fn windowed() -> Options {
    Options { window: Some(2), block_size: Some(8), ..Options::default() }
}

fn answering(is_write: bool, options: Options) -> Transfer {
    let limits = Limits { block_size: 8, window: 2 };
    let settings = Settings::default();
    let mut transfer = Transfer::answer(request(is_write, options), SERVER, Some(20), &limits, settings, NOW);
    transfer.supply(&[7; 20]);
    said(&mut transfer);
    transfer
}

/// Each phase, reached by packets.
fn phases() -> Vec<(&'static str, Transfer)> {
    let after = |mut transfer: Transfer, packets: &[Packet<'_>]| {
        for packet in packets {
            hears(&mut transfer, packet);
            transfer.supply(&[7; 24]);
            said(&mut transfer);
        }
        transfer
    };
    let block = [7; 8];
    let option_ack = Packet::OptionAck(windowed());
    let mut whole = after(asking(false, windowed()), &[option_ack.clone(), Packet::Data(1, b"all")]);
    let storing = after(asking(false, windowed()), &[option_ack.clone(), Packet::Data(1, b"all")]);
    whole.stored(NOW);
    said(&mut whole);
    vec![
        ("asking to read", asking(false, windowed())),
        ("asking to write", asking(true, windowed())),
        ("offering", answering(false, windowed())),
        ("asked to write", answering(true, windowed())),
        ("sending", after(answering(false, windowed()), &[Packet::Ack(0)])),
        ("sending 2", after(asking(true, windowed()), &[option_ack.clone(), Packet::Ack(1)])),
        ("receiving", after(asking(false, windowed()), std::slice::from_ref(&option_ack))),
        ("receiving 2", after(asking(false, windowed()), &[option_ack, Packet::Data(1, &block)])),
        ("storing", storing),
        ("dallying", whole),
    ]
}

fn inputs() -> Vec<(&'static str, Endpoint, Vec<u8>)> {
    let packet = |packet: Packet<'_>| packet.bytes();
    let other = Endpoint { port: SERVER.port + 1, ..SERVER };
    vec![
        ("RRQ", SERVER, packet(Packet::Request(request(false, Options::default())))),
        ("OACK", SERVER, packet(Packet::OptionAck(windowed()))),
        ("ACK 0", SERVER, packet(Packet::Ack(0))),
        ("ACK 1", SERVER, packet(Packet::Ack(1))),
        ("ACK 2", SERVER, packet(Packet::Ack(2))),
        ("ACK 9", SERVER, packet(Packet::Ack(9))),
        ("DATA 1", SERVER, packet(Packet::Data(1, &[7; 8]))),
        ("DATA 2", SERVER, packet(Packet::Data(2, &[7; 8]))),
        ("DATA 2, last", SERVER, packet(Packet::Data(2, &[7; 3]))),
        ("DATA 9", SERVER, packet(Packet::Data(9, &[7; 8]))),
        ("DATA too long", SERVER, packet(Packet::Data(1, &[7; 600]))),
        ("ERROR 1", SERVER, packet(Packet::Error(ErrorCode::NOT_FOUND, "no".into()))),
        ("ERROR 8", SERVER, packet(Packet::Error(ErrorCode::OPTIONS, "no".into()))),
        ("rubbish", SERVER, vec![0, 99, 0]),
        ("DATA 1, other port", other, packet(Packet::Data(1, &[7; 8]))),
        ("silence", SERVER, Vec::new()),
    ]
}

fn phase_name(transfer: &Transfer) -> &'static str {
    match (&transfer.phase, &transfer.outcome) {
        (Phase::Asking, _) => "asking",
        (Phase::Offering, _) => "offering",
        (Phase::Sending(_), _) => "sending",
        (Phase::Receiving(_), _) => "receiving",
        (Phase::Storing(_), _) => "storing",
        (Phase::Dallying(_), _) => "dallying",
        (Phase::Over, Some(Ok(_))) => "done",
        (Phase::Over, _) => "failed",
    }
}

#[test]
fn the_whole_matrix_is_as_it_was() {
    let mut table = String::new();
    for (index, (name, _)) in phases().iter().enumerate() {
        writeln!(table, "{name}").unwrap();
        for (input, from, packet) in inputs() {
            let mut transfer = phases().swap_remove(index).1;
            let later = transfer.deadline().unwrap_or(NOW).max(NOW);
            if input == "silence" {
                transfer.timeout(later);
            } else {
                transfer.datagram(from, &packet, NOW);
                transfer.supply(&[7; 24]);
            }
            let says = said(&mut transfer).join(", ");
            writeln!(table, "  {input:<20}{:<11}{says}", phase_name(&transfer)).unwrap();
        }
    }
    let table: String = table.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    assert!(table == TABLE, "the matrix has changed; if that is meant, this is the new one:\n{table}");
}
