//! A slice of `make soak`: two hundred scenarios under the debug build's checks of arithmetic.

use inhost_sim::{Offloads, soak};

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
fn seeds_are_clean_with_every_offload_on_and_off() {
    for (name, offloads) in [("off", Offloads::Off), ("on", Offloads::On)] {
        for seed in 0..SEEDS / 2 {
            if let Err(failure) = soak::run_with(seed, offloads, None) {
                panic!(
                    "{failure}\nagain: cargo run --release -p inhost-sim -- replay {seed} --offload {name}"
                );
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 17] {
        assert_eq!(soak::run(seed, None).unwrap(), soak::run(seed, None).unwrap());
    }
}
