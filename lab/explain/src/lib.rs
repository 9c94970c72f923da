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
#[cfg(feature = "draw")]
pub mod draw;
pub mod fuzz;
mod live;
mod report;
mod verdict;

pub use capture::{CaptureError, CaptureErrorKind};
pub use cause::{Cause, Sign};
pub use live::{Agreed, Known};
pub use report::{
    Claim, DirectionReport, Finding, Report, Retransmissions, RoundTrip, Share, Vantage, Verdict, Warning,
};
pub use verdict::figures;

use std::io::Read;

use capture::{Flow, Frame, Reader, Rejected, dissect};
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
/// Fails where the file is not a capture or its beginning is damaged. Damage behind that, such as a truncated end, is a
/// warning in the report, and what came before counts.
pub fn explain(source: impl Read, options: &Options) -> Result<Report, CaptureError> {
    explain_some(source, options, |_| true)
}

/// As [`explain`], of the frames that `is_meant` chooses. The others count as frames of the file, and for nothing else.
pub fn explain_some(
    source: impl Read,
    options: &Options,
    is_meant: impl Fn(&Frame<'_>) -> bool,
) -> Result<Report, CaptureError> {
    let mut explainer = Explainer::new(options.clone());
    let mut reader = Reader::new(source)?;
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => match is_meant(&frame) {
                true => explainer.take(&frame),
                false => explainer.report.frames += 1,
            },
            Ok(None) => break,
            Err(why) if explainer.report.frames == 0 => return Err(why),
            Err(why) => {
                let text = format!("reading stopped {why}");
                explainer.report.warnings.push(Warning { text, count: 1 });
                break;
            }
        }
    }
    Ok(explainer.finish())
}

/// The verdict on one connection of a host, from what the host knows and what it recorded of its frames: a pcap or pcapng
/// file that may be empty, lack the connection, or have only its latest frames. The last connection between the two ends
/// counts.
///
/// Fails where the file is damaged.
pub fn live(known: &Known, frames: impl Read, options: &Options) -> Result<Verdict, CaptureError> {
    let agreed = known.agreed.map(|agreed| (known.local, agreed));
    let mut table = Table::default();
    table.agreed = agreed;
    let mut found: Option<Box<conversation::Conversation>> = None;
    let ends = [known.local, known.remote];
    let mut reader = Reader::new(frames)?;
    while let Some(frame) = reader.next_frame()? {
        let Ok((flow, segment)) = dissect(&frame) else { continue };
        if ends == [flow.source, flow.destination] || ends == [flow.destination, flow.source] {
            table.take(flow, &segment, options.conversations, &mut |over| found = Some(over));
        }
    }
    table.last_until(known.now_ns, known.send_ns.iter().sum());
    table.finish(&mut |over| found = Some(over));
    let found = found.unwrap_or_else(|| {
        let flow = Flow { interface: 0, device: 0, source: known.local, destination: known.remote };
        let mut unseen = Box::new(conversation::Conversation::unseen(flow.as_of_client()));
        let side = usize::from(unseen.flow.source != known.local);
        known.agreed.iter().for_each(|agreed| unseen.knows(side, agreed));
        unseen
    });
    Ok(verdict::judge(found, Some(known)))
}

/// Explains frames as they come.
///
/// ```
/// let explainer = inhost_explain::Explainer::default();
/// assert_eq!(explainer.finish().frames, 0);
/// ```
#[derive(Debug, Default)]
pub struct Explainer {
    options: Options,
    table: Table,
    report: Report,
}

impl Explainer {
    /// One that has seen nothing.
    pub fn new(options: Options) -> Explainer {
        Explainer { options, ..Explainer::default() }
    }
    /// Takes the next frame. Frames are in the order of time.
    pub fn take(&mut self, frame: &Frame<'_>) {
        let Explainer { options, table, report } = self;
        let limit = options.conversations;
        report.frames += 1;
        match dissect(frame) {
            Ok((flow, segment)) => {
                report.tcp_frames += 1;
                table.take(flow, &segment, limit, &mut |over| report.add(verdict::judge(over, None), limit));
            }
            Err(Rejected::NotTcp) => report.other_frames += 1,
            Err(Rejected::Fragment) => report.fragments += 1,
            Err(Rejected::Malformed) => report.malformed_frames += 1,
        }
    }
    /// What there is to say of connections that sent or received a frame since the time `since_ns`, as if they ended now.
    pub fn so_far(&self, since_ns: u64) -> Vec<Verdict> {
        let open = self.table.open().filter(|of| of.last_ns >= since_ns);
        open.map(|of| verdict::judge(of.ended(&self.table.budget), None)).collect()
    }
    /// The report on all that was taken.
    pub fn finish(self) -> Report {
        let Explainer { options, mut table, mut report } = self;
        let limit = options.conversations;
        table.finish(&mut |over| report.add(verdict::judge(over, None), limit));
        report.finish(table.budget.forgotten);
        report
    }
}
