//! The fuzz corpus, replayed without a fuzzer: every file of `fuzz/corpus`, and mutations of each, through the
//! bodies that the fuzzer runs.

#[path = "../../../fuzz/src/wire.rs"]
mod bodies;

use inhost_base::Random;
use std::path::PathBuf;

/// Mutations made of each file.
const MUTATIONS: u32 = 20_000;
/// All files of all targets together stay below this.
const CORPUS_LIMIT_BYTES: u64 = 200_000;
/// A mutation does not grow an input beyond this.
const MUTANT_LIMIT_BYTES: usize = 2_000;

fn folder(target: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../fuzz/corpus", target].iter().collect()
}

/// Names and contents of a target's files, in order of name.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = folder(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

/// One to four changes of the kinds that break parsers.
fn mutate(random: &mut Random, bytes: &[u8], other: &[u8]) -> Vec<u8> {
    const TELLING: [u8; 12] = [0, 1, 2, 4, 7, 8, 0x3f, 0x40, 0x7f, 0x80, 0xfe, 0xff];
    let mut out = bytes.to_vec();
    for _ in 0..=random.public_below(4) {
        let length = out.len();
        let at = random.public_below(length.max(1) as u32) as usize;
        let telling = TELLING[random.public_below(TELLING.len() as u32) as usize];
        match (random.public_below(8), out.get_mut(at)) {
            (0, Some(place)) => *place ^= 1 << random.public_below(8),
            (1, Some(place)) => *place = telling,
            (2, Some(place)) => *place = random.public_u64() as u8,
            (3, Some(place)) => *place = place.wrapping_add(telling),
            (4, _) => out.truncate(at),
            (5, Some(_)) => drop(out.remove(at)),
            (6, _) if length < MUTANT_LIMIT_BYTES => out.insert(at, telling),
            (7, _) if length + other.len() < MUTANT_LIMIT_BYTES => {
                let from = random.public_below(other.len() as u32 + 1) as usize;
                out.splice(at..at, other[from..].iter().copied());
            }
            _ => {}
        }
    }
    out
}

fn replay(target: &str) {
    let (_, body) = bodies::TARGETS.iter().find(|(name, _)| *name == target).expect("a target");
    let files = corpus(target);
    for (i, (name, bytes)) in files.iter().enumerate() {
        // The name says what a hand-made file is; what a fuzzer found is named by its digest.
        let taken = body(bytes);
        assert!(taken || !name.starts_with("valid"), "{target}/{name} was not taken");
        assert!(!taken || !name.starts_with("bad"), "{target}/{name} was taken");
        let mut random = Random::from_number(i as u64);
        for round in 0..MUTATIONS {
            let other = &files[random.public_below(files.len() as u32) as usize].1;
            let mutant = mutate(&mut random, bytes, other);
            let outcome = std::panic::catch_unwind(|| body(&mutant));
            assert!(outcome.is_ok(), "{target}/{name} round {round}: {mutant:02x?}");
        }
    }
}

macro_rules! targets {
    ($($target:ident)*) => {
        $(#[test]
        fn $target() {
            replay(stringify!($target));
        })*

        #[test]
        fn every_target_is_replayed() {
            let replayed = [$(stringify!($target)),*];
            assert_eq!(bodies::TARGETS.map(|(name, _)| name)[..], replayed[..]);
        }
    };
}

targets!(ethernet icmpv4 icmpv6 igmp ipv4 ipv4_options ipv6 llp quoted slip tcp udp);

#[test]
fn the_corpus_is_small() {
    let bytes: usize = bodies::TARGETS.iter().flat_map(|(name, _)| corpus(name)).map(|(_, b)| b.len()).sum();
    assert!((bytes as u64) < CORPUS_LIMIT_BYTES, "{bytes} bytes");
}
