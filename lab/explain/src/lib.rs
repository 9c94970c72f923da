//! Why a TCP connection is slow: a verdict from any packet capture.
//!
//! [`explain`] reads a pcap or pcapng file from any [`std::io::Read`] and gives a [`Report`]: for each connection the
//! causes in per cent of its time ([`Cause`]), a diagnosis, a remedy with the figure to set, findings ([`Sign`]) with the
//! numbers of the frames that show them, a confidence with its reasons, and what cannot be known from where the capture
//! was taken. `docs/explain-causes.md` has the definitions.
//!
//! The crate knows no operating system, clock or thread. Memory is bounded whatever the file holds.
//!
//! ```
//! // An empty pcap file: its header alone.
//! let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
//! file.resize(20, 0);
//! file.extend([1, 0, 0, 0]);
//! let report = inhost_explain::explain(&file[..], &Default::default())?;
//! assert_eq!((report.frames, report.conversations.len()), (0, 0));
//! # Ok::<(), inhost_explain::CaptureError>(())
//! ```
#![forbid(unsafe_code)]

mod account;
pub mod capture;
mod cause;
mod conversation;
pub mod fuzz;
mod report;
mod verdict;

pub use capture::{CaptureError, CaptureErrorKind};
pub use cause::{Cause, Sign};
pub use report::{
    Claim, DirectionReport, Finding, Report, Retransmissions, RoundTrip, Share, Vantage, Verdict, Warning,
};

use std::io::Read;

use capture::{Reader, Rejected, dissect};
use conversation::Table;

/// Limits of an analysis.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Connections that are followed at once, and verdicts that are kept. Default: 10,000. Cost: some 10 KiB each.
    /// When there are more, those idle for longest end early, and the verdicts with the least time lost are dropped.
    pub conversations: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { conversations: 10_000 }
    }
}

/// Reads a capture and judges each of its TCP connections, those with the most time lost first.
///
/// Fails where the file is no capture or its beginning is damaged. Damage behind that, such as a truncated end, is a
/// warning in the report, and what came before counts.
pub fn explain(source: impl Read, options: &Options) -> Result<Report, CaptureError> {
    let Options { conversations: limit } = *options;
    let mut reader = Reader::new(source)?;
    let (mut table, mut report) = (Table::default(), Report::default());
    loop {
        let frame = match reader.next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(why) if report.frames == 0 => return Err(why),
            Err(why) => {
                report.warnings.push(Warning { text: format!("reading stopped {why}"), count: 1 });
                break;
            }
        };
        report.frames += 1;
        match dissect(&frame) {
            Ok((flow, segment)) => {
                report.tcp_frames += 1;
                let over = &mut |conversation| report.add(verdict::judge(conversation), limit);
                table.take(flow, &segment, limit, over);
            }
            Err(Rejected::NotTcp) => report.other_frames += 1,
            Err(Rejected::Fragment) => report.fragments += 1,
            Err(Rejected::Malformed) => report.malformed_frames += 1,
        }
    }
    table.finish(&mut |conversation| report.add(verdict::judge(conversation), limit));
    report.finish(table.budget.forgotten);
    Ok(report)
}
