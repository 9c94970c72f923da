//! Fuzz target. The input is a capture file; the invariants of every report are asserted.

use crate::{Options, Report, explain};

/// Connections that are followed, few enough for the input to exceed.
const CONVERSATIONS: usize = 8;

/// A capture file of anybody.
pub fn fuzz_explain(input: &[u8]) {
    let options = Options { conversations: CONVERSATIONS };
    if let Ok(report) = explain(input, &options) {
        check(&report);
    }
}

/// What holds of every report: accounts sum to the duration, cited frames exist, text is fit for a terminal.
pub fn check(report: &Report) {
    for verdict in &report.conversations {
        for direction in &verdict.directions {
            let sum: u64 = direction.shares.iter().map(|share| share.ns).sum();
            assert_eq!(sum, verdict.duration_ns, "every nanosecond has one cause");
        }
        let cited = verdict.evidence.iter().flat_map(|claim| &claim.frames);
        for &frame in cited.chain(verdict.findings.iter().flat_map(|found| &found.frames)) {
            assert!((1..=report.frames).contains(&frame), "frame {frame} exists");
        }
        assert!((0.0..=1.0).contains(&verdict.confidence));
        let text = verdict.text();
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.lines().count() <= 14, "{text}");
    }
}
