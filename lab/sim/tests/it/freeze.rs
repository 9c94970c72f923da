//! A slice of `make freeze`: soak seeds whose hosts are frozen and thawed at random moments. Not a frame and not an event
//! changes.

use inhost_sim::{Takes, soak};

/// Seeds tried.
const SEEDS: u64 = 50;

#[test]
fn a_thawed_host_goes_on_as_if_nothing_had_been() {
    let mut freezings = 0;
    for seed in 0..SEEDS {
        // Seldom, so that much happens between, and at nearly every moment.
        let one_in = if seed % 10 == 7 { 2 } else { 50 };
        let plain = soak::digest(seed, Takes::FramesAndEvents).expect("a clean seed");
        let (frozen, done) = soak::digest_frozen(seed, Takes::FramesAndEvents, one_in).expect("a clean seed");
        assert_eq!(
            plain, frozen,
            "seed {seed}\nagain: cargo run --release -p inhost-sim --features freeze -- soak --freeze --seeds 1 --from {seed}"
        );
        freezings += done;
    }
    assert!(freezings > SEEDS * 100, "{freezings} freezings prove little");
}
