//! Both ends, packet by packet and over a bad network, under a clock that is made up.

mod network;
mod transitions;

use inhost_base::Duration;

use super::*;
use crate::codec::numbering::Rollover;
use network::{CLIENT, Network, SERVER, pattern};

const NOW: Instant = Instant::from_millis(1_000);
const STRANGER: Endpoint = Endpoint { port: 666, ..SERVER };

fn request(is_write: bool, options: Options) -> Request {
    Request { is_write, name: "f".into(), mode: Mode::Octet, options }
}

fn asking(is_write: bool, options: Options) -> Transfer {
    let mut transfer = Transfer::ask(request(is_write, options), SERVER, Settings::default(), NOW);
    said(&mut transfer);
    transfer
}

/// All that the transfer says now, a word a packet.
fn said(transfer: &mut Transfer) -> Vec<String> {
    let (mut words, mut packet) = (Vec::new(), Vec::new());
    while let Some(to) = transfer.transmit(&mut packet, NOW) {
        let word = match Packet::parse(&packet).unwrap() {
            Packet::Request(request) if request.is_write => "WRQ".to_owned(),
            Packet::Request(_) => "RRQ".to_owned(),
            Packet::Data(block, data) => format!("DATA {block} ({})", data.len()),
            Packet::Ack(block) => format!("ACK {block}"),
            Packet::Error(code, _) => format!("ERROR {}", code.0),
            Packet::OptionAck(_) => "OACK".to_owned(),
        };
        let is_strange = to == STRANGER;
        words.push(if is_strange { format!("{word} to the stranger") } else { word });
    }
    words
}

fn hears(transfer: &mut Transfer, packet: &Packet<'_>) -> Vec<String> {
    transfer.datagram(SERVER, &packet.bytes(), NOW);
    said(transfer)
}

#[test]
fn a_packet_from_another_port_is_answered_and_disturbs_nothing() {
    let mut transfer = asking(false, Options::default());
    let block = [7; 512];
    assert_eq!(hears(&mut transfer, &Packet::Data(1, &block)), ["ACK 1"]);
    for packet in [Packet::Data(2, b"forged"), Packet::Ack(1), Packet::OptionAck(Options::default())] {
        transfer.datagram(STRANGER, &packet.bytes(), NOW);
        assert_eq!(said(&mut transfer), ["ERROR 5 to the stranger"]);
    }
    // Two that answer errors with errors would never end.
    transfer.datagram(STRANGER, &Packet::Error(ErrorCode::OTHER, String::new()).bytes(), NOW);
    assert!(said(&mut transfer).is_empty() && transfer.outcome().is_none());
    assert_eq!(hears(&mut transfer, &Packet::Data(2, b"true")), Vec::<String>::new());
    assert!(transfer.is_whole() && transfer.file().unwrap().ends_with(b"true"));
    for _ in 0..1_000 {
        transfer.datagram(STRANGER, &Packet::Ack(1).bytes(), NOW);
    }
    assert_eq!(said(&mut transfer).len(), 4, "strangers' packets do not pile up");
}

#[test]
fn the_last_block_is_acknowledged_when_the_file_is_kept() {
    let mut transfer = asking(false, Options::default());
    assert!(hears(&mut transfer, &Packet::Data(1, b"all")).is_empty());
    assert!(hears(&mut transfer, &Packet::Data(1, b"all")).is_empty(), "nor when it comes again");
    transfer.stored(NOW);
    assert_eq!(said(&mut transfer), ["ACK 1"]);
    assert_eq!(hears(&mut transfer, &Packet::Data(1, b"all")), ["ACK 1"]);
    assert!(hears(&mut transfer, &Packet::Data(2, b"more")).is_empty());
    assert!(transfer.outcome().unwrap().as_ref().is_ok_and(|summary| summary.file_bytes == 3));
    assert!(!transfer.is_over());
    transfer.timeout(transfer.deadline().unwrap());
    assert!(transfer.is_over());
}

#[test]
fn a_server_that_knows_no_options_is_asked_without() {
    let options = Options { block_size: Some(1024), ..Options::default() };
    for code in [ErrorCode::OPTIONS, ErrorCode::ILLEGAL] {
        let mut transfer = asking(true, options);
        assert_eq!(hears(&mut transfer, &Packet::Error(code, String::new())), ["WRQ"]);
        assert!(transfer.request.options.is_empty());
        transfer.datagram(SERVER, &Packet::Error(code, "no".into()).bytes(), NOW);
        assert!(matches!(transfer.outcome(), Some(Err(TransferError::Refused { .. }))));
    }
    // One that leaves them out is taken at its word.
    let mut transfer = asking(true, options);
    hears(&mut transfer, &Packet::Ack(0));
    transfer.supply(&[7; 600]);
    assert_eq!(said(&mut transfer), ["DATA 1 (512)"]);
}

#[test]
fn options_beyond_what_was_asked_for_are_refused() {
    let asked = Options { block_size: Some(1024), transfer_size: Some(0), ..Options::default() };
    for granted in [
        Options { block_size: Some(1025), ..Options::default() },
        Options { window: Some(2), ..Options::default() },
        Options { timeout_s: Some(2), ..Options::default() },
    ] {
        let mut transfer = asking(false, asked);
        assert_eq!(hears(&mut transfer, &Packet::OptionAck(granted)), ["ERROR 8"]);
        assert!(matches!(transfer.outcome(), Some(Err(TransferError::Broken { .. }))));
    }
    let mut transfer = asking(false, asked);
    let granted = Options { transfer_size: Some(4), ..Options::default() };
    assert_eq!(hears(&mut transfer, &Packet::OptionAck(granted)), ["ACK 0"]);
    assert_eq!(hears(&mut transfer, &Packet::OptionAck(granted)), ["ACK 0"], "it was lost");
    assert_eq!(hears(&mut transfer, &Packet::Data(1, b"abc")), ["ERROR 0"]);
    let error = transfer.outcome().unwrap().as_ref().unwrap_err().to_string();
    assert_eq!(error, "4 octets were announced, and 3 came");
}

#[test]
fn no_file_is_longer_than_this_end_takes() {
    let settings = Settings { size_limit_bytes: 600, ..Settings::default() };
    let size = Options { transfer_size: Some(0), ..Options::default() };
    let mut transfer = Transfer::ask(request(false, size), SERVER, settings, NOW);
    said(&mut transfer);
    let option_ack = Packet::OptionAck(Options { transfer_size: Some(601), ..Options::default() });
    assert_eq!(hears(&mut transfer, &option_ack), ["ERROR 3"]);
    let mut transfer = Transfer::ask(request(false, Options::default()), SERVER, settings, NOW);
    said(&mut transfer);
    assert_eq!(hears(&mut transfer, &Packet::Data(1, &[0; 512])), ["ACK 1"]);
    assert_eq!(hears(&mut transfer, &Packet::Data(2, &[0; 89])), ["ERROR 3"]);
    let mut transfer = asking(false, Options::default());
    assert_eq!(hears(&mut transfer, &Packet::Data(1, &[0; 513])), ["ERROR 4"]);
}

#[test]
fn a_missing_block_is_told_once_and_the_window_begins_there() {
    let options = Options { window: Some(4), block_size: Some(8), ..Options::default() };
    let mut transfer = asking(false, options);
    hears(&mut transfer, &Packet::OptionAck(options));
    let data = |block| Packet::Data(block, &[7; 8]);
    assert!(hears(&mut transfer, &data(1)).is_empty());
    assert_eq!(hears(&mut transfer, &data(3)), ["ACK 1"]);
    assert!(hears(&mut transfer, &data(4)).is_empty());
    let rest: Vec<_> = (2..=5).flat_map(|block| hears(&mut transfer, &data(block))).collect();
    assert_eq!(rest, ["ACK 5"]);
    assert_eq!(hears(&mut transfer, &data(5)), ["ACK 5"], "it was lost");
    assert!(hears(&mut transfer, &data(4)).is_empty());
    // The other end.
    let limits = Limits { block_size: 8, window: 4 };
    let mut sender =
        Transfer::answer(request(false, options), SERVER, None, &limits, Settings::default(), NOW);
    assert_eq!(said(&mut sender), ["OACK"]);
    hears(&mut sender, &Packet::Ack(0));
    sender.supply(&[7; 80]);
    assert_eq!(said(&mut sender), ["DATA 1 (8)", "DATA 2 (8)", "DATA 3 (8)", "DATA 4 (8)"]);
    assert_eq!(hears(&mut sender, &Packet::Ack(1)), ["DATA 2 (8)", "DATA 3 (8)", "DATA 4 (8)", "DATA 5 (8)"]);
    assert!(hears(&mut sender, &Packet::Ack(1)).is_empty(), "perhaps an echo");
    assert!(hears(&mut sender, &Packet::Ack(9)).is_empty(), "never sent");
}

#[test]
fn a_bad_network_delays_and_changes_nothing() {
    let mut lost = 0;
    for seed in 0..400 {
        let mut network = Network::new(seed);
        (network.loss, network.copies, network.jitter_ms) = (80, 80, if seed % 2 == 0 { 0 } else { 30 });
        let window = [None, Some(1), Some(4), Some(33)][seed as usize % 4];
        let block_size = [None, Some(8), Some(1428)][seed as usize % 3];
        let mode = if seed % 5 == 0 { Mode::Netascii } else { Mode::Octet };
        let options = Options { window, block_size, transfer_size: Some(0), ..Options::default() };
        let is_write = seed / 2 % 2 == 0;
        let size = network.below(60 * usize::from(block_size.unwrap_or(512)) as u64) as usize;
        let options = Options { transfer_size: Some(if is_write { size as u64 } else { 0 }), ..options };
        let file = pattern(size);
        let report = network.run(Request { mode, ..request(is_write, options) }, &file);
        assert!(report.is_good(&file), "seed {seed}: {report:?}");
        lost += report.lost;
    }
    assert!(lost > 1_000, "the network was bad: {lost}");
}

/// RFC 1123 §4.2.3.1: every packet arrives twice, and still no block is sent twice.
#[test]
fn the_sorcerers_apprentice_has_nothing_to_sweep() {
    for is_write in [false, true] {
        for window in [1, 2, 16, 64] {
            let mut network = Network::new(7);
            network.copies = 1_000;
            let options = Options { window: Some(window), ..Options::default() };
            let file = pattern(512 * 300);
            let report = network.run(request(is_write, options), &file);
            assert!(report.is_good(&file), "{report:?}");
            assert_eq!(report.data_sent, 301, "window {window}: {report:?}");
        }
    }
}

/// The apprentice's own case: one acknowledgment is late, a block is sent twice for it, and that is all.
#[test]
fn one_late_packet_costs_one_packet() {
    for window in [1, 8] {
        for late in [40, 41, 42, 43] {
            let mut network = Network::new(3);
            network.late = Some((late, Duration::from_millis(2_500)));
            let options = Options { window: Some(window), ..Options::default() };
            let file = pattern(512 * 300);
            let report = network.run(request(false, options), &file);
            assert!(report.is_good(&file), "{report:?}");
            assert!(report.data_sent <= 301 + 3 * u64::from(window), "{window} {late}: {report:?}");
        }
    }
}

#[test]
fn numbers_come_again_as_either_end_has_them() {
    let file = pattern(8 * 140_000 + 3);
    for (window, ours, theirs) in [
        (1, None, None),
        (1, None, Some(Rollover::ToOne)),
        (1, None, Some(Rollover::ToZero)),
        (16, None, None),
        (16, Some(Rollover::ToOne), Some(Rollover::ToOne)),
    ] {
        for is_write in [false, true] {
            let mut network = Network::new(1);
            network.delay_us = 10;
            // The end without settings is the receiver.
            let (get, put) = (ours, theirs);
            (network.client.rollover, network.server.rollover) =
                if is_write { (put, get) } else { (get, put) };
            let options = Options { window: Some(window), block_size: Some(8), ..Options::default() };
            let report = network.run(request(is_write, options), &file);
            assert!(report.is_good(&file), "{window} {ours:?} {theirs:?} {is_write}");
            assert_eq!(report.data_sent, 140_001);
        }
    }
    // Agreed on, as tftpd-hpa does.
    let mut network = Network::new(1);
    network.delay_us = 10;
    let options = Options {
        window: Some(16),
        block_size: Some(8),
        rollover: Some(Rollover::ToOne),
        ..Options::default()
    };
    assert!(network.run(request(false, options), &file).is_good(&file));
}

#[test]
fn silence_ends_a_transfer() {
    let deaf = |mut transfer: Transfer| {
        let (mut packets, mut now) = (0, NOW);
        let mut bytes = Vec::new();
        loop {
            while transfer.transmit(&mut bytes, now).is_some() {
                packets += 1;
            }
            let Some(at) = transfer.deadline() else { break };
            now = at;
            transfer.timeout(now);
        }
        (packets, now.since(NOW).as_secs(), transfer.outcome().unwrap().as_ref().unwrap_err().to_string())
    };
    let (packets, seconds, why) =
        deaf(Transfer::ask(request(false, Options::default()), SERVER, Settings::default(), NOW));
    assert_eq!((packets, seconds, &*why), (6, 31, "no answer; is a TFTP server there?"));
    // Whose address may be forged is not sent much.
    let options = Options { window: Some(64), ..Options::default() };
    for options in [options, Options::default()] {
        let limits = Limits { block_size: 512, window: 64 };
        let asked = request(false, options);
        let mut server = Transfer::answer(asked, CLIENT, None, &limits, Settings::default(), NOW);
        server.supply(&[7; 100_000]);
        let (packets, seconds, _) = deaf(server);
        assert_eq!((packets, seconds), (4, 15));
    }
}
