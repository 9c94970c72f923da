//! Damaged captures, and what holds of every report.

use inhost_base::Random;
use inhost_explain::fuzz::fuzz_explain;
use inhost_explain::{CaptureErrorKind, Options, explain};
use inhost_sim::{Duration, LinkConfig, Loss, QueueConfig};
use inhost_tcp::Config;

use super::built::Trace;
use super::network::*;

const MUTATIONS: u64 = 600;
const RANDOM_SITUATIONS: u64 = 40;

fn small_captures() -> Vec<Vec<u8>> {
    let lossy = LinkConfig { loss: Loss::per_mille(30), ..link(10) };
    let situation = Situation {
        client: sends(40_000),
        links: [[link(10), link(10)], [lossy, link(10)]],
        ..Situation::default()
    };
    let mut captures: Vec<Vec<u8>> = situation.captures().into();
    captures.push(Trace::open().file());
    captures
}

/// Truncation, wrong lengths, nonsense options and times, repeated and swapped parts: whole files and single fields.
#[test]
fn mutations_are_survived() {
    let captures = small_captures();
    let mut random = Random::from_number(1);
    for number in 0..MUTATIONS {
        let mut file = captures[number as usize % captures.len()].clone();
        for _ in 0..1 + random.public_below(8) {
            let at = random.public_below(file.len() as u32) as usize;
            match random.public_below(6) {
                0 => file.truncate(at.max(30)),
                1 => file[at] = random.public_u64() as u8,
                2 => {
                    let field = [0xff, 0xff, 0xff, random.public_u64() as u8];
                    file.splice(at..(at + 4).min(file.len()), field);
                }
                3 => {
                    let end = (at + 200).min(file.len());
                    let part = file[at..end].to_vec();
                    file.splice(at..at, part);
                }
                4 => {
                    file.drain(at..(at + 7).min(file.len()));
                }
                _ => {
                    let end = (at + 12).min(file.len());
                    file[at..end].fill(0);
                }
            }
        }
        fuzz_explain(&file);
    }
}

#[test]
fn errors_name_the_offset_and_what_is_wrong() {
    let at = |file: &[u8]| explain(file, &Options::default()).unwrap_err();
    assert_eq!(at(b"GET / HTTP/1.1\r\nHost: example.com\r\n").kind, CaptureErrorKind::NotACapture);
    assert_eq!(at(b"").kind, CaptureErrorKind::NotACapture);
    let file = Trace::open().file();
    assert_eq!(at(&file[..10]).to_string(), "at byte 0: the file ends in the middle of a frame");
    let mut long = file.clone();
    long[32..36].copy_from_slice(&[0x7f, 0, 0, 0]);
    assert_eq!((at(&long).offset_bytes, at(&long).kind), (24, CaptureErrorKind::TooLong(0x7f00_0000)));
    // Behind the first frame it is a warning, and what came before counts.
    let report = explain(&file[..file.len() - 3], &Options::default()).unwrap();
    assert_eq!(report.frames, 2);
    assert!(
        report.warnings[0].text.contains("the file ends in the middle of a frame"),
        "{:?}",
        report.warnings
    );
}

/// Accounts sum to the duration and cited frames exist, whatever the path and the buffers.
#[test]
fn random_situations_add_up() {
    for seed in 0..RANDOM_SITUATIONS {
        let mut random = Random::from_number(seed);
        let mut draw = |below: u32| random.public_below(below);
        let path = LinkConfig {
            delay: Duration::from_micros(draw(60_000).into()),
            jitter: Duration::from_micros(draw(5000).into()),
            rate_bits_per_second: [None, Some(2_000_000), Some(50_000_000)][draw(3) as usize],
            queue: QueueConfig::tail_drop(5 + draw(300) as usize),
            loss: Loss::Random { per_million: draw(3) * 20_000 },
            duplicated_per_million: draw(2) * 10_000,
            reordered_per_million: draw(2) * 20_000,
            corrupted_per_million: draw(2) * 5_000,
            ..LinkConfig::default()
        };
        let mut tcp = Config::default();
        (tcp.sack, tcp.timestamps, tcp.window_scaling) = (draw(3) > 0, draw(3) > 0, draw(3) > 0);
        (tcp.tail_loss_probe, tcp.pacing) = (draw(2) > 0, draw(2) > 0);
        tcp.receive_buffer_limit_bytes = 8192 << draw(8);
        let links = [[path.clone(), path], [link(draw(20).into()), link(draw(20).into())]];
        let (tcp, client) = ([Config::default(), tcp], sends(1000 + draw(400_000) as usize));
        for file in (Situation { links, tcp, client, ..Situation::default() }).captures() {
            report(&file);
        }
    }
}

/// More connections than are followed: the rest is given out early, and all are counted.
#[test]
fn there_are_more_connections_than_are_followed() {
    let one = Trace::open().file();
    let mut file = one[..24].to_vec();
    for port in 0..2000u16 {
        let mut frames = one[24..].to_vec();
        // The ports of the three raw packets, whose lengths are those of their headers.
        let mut at = 0;
        while at < frames.len() {
            let kept = u32::from_be_bytes(*frames[at + 8..].first_chunk::<4>().unwrap()) as usize;
            let is_client = frames[at + 16 + 15] == 1;
            let place = at + 16 + if is_client { 20 } else { 22 };
            frames[place..place + 2].copy_from_slice(&(10_000 + port).to_be_bytes());
            // Its checksum is no longer right, so none is there: cut behind the header's fixed part.
            at += 16 + kept;
        }
        file.extend(frames);
    }
    let mut options = Options::default();
    options.conversations = 100;
    let report = explain(&file[..], &options).unwrap();
    assert_eq!(report.conversations.len() as u64 + report.conversations_left_out, 2000);
    assert!(report.conversations.len() <= 125);
}
