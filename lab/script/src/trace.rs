//! Packet trace in script syntax.

use crate::flow::Seen;
use inhost_base::Instant;
use inhost_wire::tcp::{Flags, Segment};
use std::fmt::Write;

/// Most lines that a trace keeps.
const TRACE_LIMIT_LINES: usize = 400;

/// The packets so far.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    lines: Vec<String>,
}

impl Trace {
    /// Adds what happened at `at`.
    pub fn add(&mut self, at: Instant, what: &str) {
        if self.lines.len() == TRACE_LIMIT_LINES {
            self.lines.remove(0);
        }
        let micros = at.as_micros();
        self.lines.push(format!("{:>6}.{:03} ms  {what}", micros / 1000, micros % 1000));
    }
    /// The lines, oldest first.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

/// A segment as a line of a script.
pub fn describe(role: &str, peer: u8, segment: &Segment<'_>, seen: &Seen) -> String {
    let mut text = role.to_owned();
    let flags = segment.flags;
    for (flag, name) in [
        (Flags::SYN, "SYN"),
        (Flags::FIN, "FIN"),
        (Flags::RST, "RST"),
        (Flags::PSH, "PSH"),
        (Flags::ACK, "ACK"),
        (Flags::URG, "URG"),
        (Flags::ECE, "ECE"),
        (Flags::CWR, "CWR"),
    ] {
        if flags.contains(flag) {
            let _ = write!(text, " {name}");
        }
    }
    let start = seen.sequence + i64::from(flags.syn());
    if segment.payload.is_empty() || flags.syn() {
        let _ = write!(text, " seq {}", seen.sequence);
    }
    if !segment.payload.is_empty() {
        let _ = write!(text, " data {start}..{}", start + segment.payload.len() as i64);
    }
    if let Some(acknowledgment) = seen.acknowledgment {
        let _ = write!(text, " ack {acknowledgment}");
    }
    let _ = write!(text, " win {}", seen.window_bytes);
    if flags.urg() {
        let _ = write!(text, " urgent {}", segment.urgent_pointer);
    }
    let options = &segment.options;
    if let Some(mss) = options.mss {
        let _ = write!(text, " mss {mss}");
    }
    if let Some(scale) = options.window_scale {
        let _ = write!(text, " scale {scale}");
    }
    if options.sack_permitted {
        text.push_str(" sackok");
    }
    if let Some((value, echo)) = options.timestamps {
        let _ = write!(text, " ts {value} ecr {echo}");
    }
    if !seen.sack.is_empty() {
        text.push_str(" sack");
        for (from, to) in &seen.sack {
            let _ = write!(text, " {from}..{to}");
        }
    }
    match options.fast_open.as_deref() {
        None => {}
        Some([]) => text.push_str(" fo request"),
        Some(cookie) => {
            text.push_str(" fo ");
            for byte in cookie {
                let _ = write!(text, "{byte:02x}");
            }
        }
    }
    if peer != 1 {
        let _ = write!(text, " peer {peer}");
    }
    text
}
