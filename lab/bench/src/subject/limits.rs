//! What one thread's memory allows: copies and checksums of the product's own kernels, without any protocol.

use crate::answer::Answer;
use crate::bulk::core_seconds;
use std::time::Duration;

/// Each work on each set of bytes takes turns for a share of `length`.
pub fn measure(length: Duration) -> Answer {
    let sets = [
        ("64KiB-1460", 64 << 10, 1460),
        ("64KiB-32KiB", 64 << 10, 32 << 10),
        ("64MiB-64KiB", 64 << 20, 64 << 10),
    ];
    let mut answer = Answer::new("the product's kernels; each piece is worked on once a pass, in order");
    let share = length.div_f64(9.0);
    for (name, set_bytes, piece_bytes) in sets {
        let from = vec![0x5a; set_bytes / 2];
        let mut to = vec![0; set_bytes / 2];
        let copy = turns(share, from.len(), || {
            pieces(&from, &mut to, piece_bytes, |from, to| inhost_buf::copy(to, from));
        });
        let sum = turns(share, from.len(), || {
            from.chunks(piece_bytes).for_each(|piece| {
                std::hint::black_box(inhost_buf::sum(piece));
            });
        });
        let both = turns(share, from.len(), || {
            pieces(&from, &mut to, piece_bytes, |from, to| {
                std::hint::black_box(inhost_buf::copy_and_sum(to, from));
            });
        });
        answer = answer
            .with(&format!("copy-{name}"), copy)
            .with(&format!("checksum-{name}"), sum)
            .with(&format!("both-{name}"), both);
    }
    answer
}

fn pieces(from: &[u8], to: &mut [u8], piece_bytes: usize, mut work: impl FnMut(&[u8], &mut [u8])) {
    for (from, to) in from.chunks(piece_bytes).zip(to.chunks_mut(piece_bytes)) {
        work(from, to);
    }
    std::hint::black_box(to);
}

/// Gigabytes a second of `work`, which handles `bytes`, repeated for `length`.
fn turns(length: Duration, bytes: usize, mut work: impl FnMut()) -> f64 {
    work();
    let began = core_seconds();
    let mut done = 0;
    loop {
        for _ in 0..(1 << 20) / bytes.min(1 << 20) {
            work();
            done += bytes;
        }
        let passed = core_seconds() - began;
        if passed >= length.as_secs_f64() {
            return done as f64 / passed / 1e9;
        }
    }
}
