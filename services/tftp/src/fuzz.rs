//! Fuzz targets. Random octets go to each machine, in pieces that the octets choose themselves; the invariants are
//! asserted.

use inhost_base::{Duration, Endpoint, Instant};

use crate::codec::options::{Limits, Options, WINDOW_BYTES_LIMIT};
use crate::codec::{Mode, Packet, Request};
use crate::machine::{Settings, Transfer};
use crate::server::{RequestHandler, Rights, TransferLimits, Verdict};

/// Octets of a file that is sent: some blocks, and a part of one.
const FILE_BYTES: usize = 3_001;
/// Datagrams said in answer to one, at most: a window, and what is said besides.
const SAID_FOR_ONE: usize = 24;
/// What the longest block of these transfers has.
const BLOCK_BYTES: u16 = 512;

/// A server's handler and the transfers that it starts, whose clients are the input.
pub fn fuzz_tftp_server(input: &[u8]) {
    let limits = TransferLimits { transfers: 4, transfers_per_client: 2 };
    let rights = if input.len().is_multiple_of(2) { Rights::Write } else { Rights::Read };
    let mut handler = RequestHandler::new(limits, rights);
    let server = Endpoint::new([192, 0, 2, 1], 69);
    let mut now = Instant::from_millis(1);
    let mut running: Vec<(Endpoint, Transfer)> = Vec::new();
    for piece in pieces(input) {
        let (&choice, bytes) = piece.split_first().unwrap_or((&0, &[]));
        now += Duration::from_millis(u64::from(choice));
        let client = Endpoint::new([192, 0, 2, 2 + choice % 3], 2_000 + u16::from(choice / 16));
        match handler.request(client.into(), server, bytes, now) {
            Verdict::Start(request, path) => {
                assert!(path.relative().split('/').all(|part| part != ".."), "{path} leads out");
                assert!(!request.is_write || rights == Rights::Write);
                let granted = Limits { block_size: BLOCK_BYTES, window: 16 };
                let settings = Settings { size_limit_bytes: FILE_BYTES as u64, ..Settings::default() };
                let size = Some(FILE_BYTES as u64);
                let transfer = Transfer::answer(request, client, size, &granted, settings, now);
                running.retain(|(of, _)| *of != client);
                running.push((client, transfer));
            }
            Verdict::Refuse(_, why) => assert!(!why.is_empty()),
            Verdict::Ignore => {}
        }
        assert!(handler.transfers() <= limits.transfers && running.len() <= limits.transfers);
        for (_, transfer) in &mut running {
            drive(transfer, client, bytes, now);
        }
        running.retain(|(client, transfer)| {
            if transfer.is_over() {
                handler.ended(*client);
            }
            !transfer.is_over()
        });
    }
}

/// A client whose server is the input.
pub fn fuzz_tftp_client(input: &[u8]) {
    let Some((&first, rest)) = input.split_first() else { return };
    let options = Options {
        block_size: (first & 1 != 0).then_some(BLOCK_BYTES),
        window: (first & 2 != 0).then_some(8),
        transfer_size: (first & 4 != 0).then_some(0),
        ..Options::default()
    };
    let mode = if first & 8 == 0 { Mode::Octet } else { Mode::Netascii };
    let request = Request { is_write: first & 16 != 0, name: "f".into(), mode, options };
    let server = Endpoint::new([192, 0, 2, 1], 69);
    let mut now = Instant::from_millis(1);
    let mut client = Transfer::ask(request, server, Settings::default(), now);
    drive(&mut client, server, &[], now);
    for piece in pieces(rest) {
        let (&choice, bytes) = piece.split_first().unwrap_or((&0, &[]));
        now += Duration::from_millis(u64::from(choice) * 10);
        let from = Endpoint { port: 3_000 + u16::from(choice % 4 == 3), ..server };
        drive(&mut client, from, bytes, now);
        if client.is_over() {
            break;
        }
    }
}

/// One datagram, and all that comes of it.
fn drive(transfer: &mut Transfer, from: Endpoint, bytes: &[u8], now: Instant) {
    transfer.datagram(from, bytes, now);
    transfer.timeout(now);
    if transfer.wants() > 0 {
        let left = FILE_BYTES.saturating_sub(usize::try_from(transfer.file_bytes()).unwrap_or(usize::MAX));
        let piece = left.min(1_000);
        transfer.supply(&[b'\n'; 1_000][..piece]);
    }
    let (mut said, mut packet) = (0, Vec::new());
    while transfer.transmit(&mut packet, now).is_some() {
        said += 1;
        assert!(said <= SAID_FOR_ONE, "it does not end");
        assert!(Packet::parse(&packet).is_ok(), "{packet:?} is not a packet");
        assert!(packet.len() <= usize::from(BLOCK_BYTES) + 4);
    }
    if let Some(file) = transfer.file() {
        assert!(file.len() <= WINDOW_BYTES_LIMIT);
        file.clear();
    }
    if transfer.is_whole() {
        transfer.stored(now);
    }
    assert!(!transfer.is_over() || transfer.outcome().is_some(), "it is over, and nobody knows how");
}

/// The input in pieces whose lengths are its own octets.
fn pieces(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = input;
    core::iter::from_fn(move || {
        let (&first, behind) = rest.split_first()?;
        let (piece, after) = behind.split_at(behind.len().min(1 + usize::from(first % 64)));
        rest = after;
        Some(piece)
    })
}
