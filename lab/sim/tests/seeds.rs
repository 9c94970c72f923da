//! A slice of `make soak`: two hundred scenarios under the debug build's checks of arithmetic.

use inhost_sim::soak;

/// Seeds tried.
const SEEDS: u64 = 200;

#[test]
fn two_hundred_seeds_are_clean() {
    let mut stream_bytes = 0;
    for seed in 0..SEEDS {
        match soak::run(seed, None) {
            Ok(summary) => stream_bytes += summary.stream_bytes,
            Err(failure) => panic!("{failure}\nagain: cargo run --release -p inhost-sim -- replay {seed}"),
        }
    }
    assert!(stream_bytes > SEEDS * 20_000, "{stream_bytes} bytes prove little");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 17] {
        assert_eq!(soak::run(seed, None).unwrap(), soak::run(seed, None).unwrap());
    }
}
