//! An outcome as text of at most 100 columns.

use std::fmt::Write as _;

use inhost_common::text::Cleaner;

use super::{Interval, LayerUse, Outcome, Repetition, Transfer};
use crate::plan::Kind;

/// Most reports that are shown of a repetition.
const SHOWN_MAX: usize = 60;
/// Most columns of a line.
const COLUMNS: usize = 100;
/// Columns by which the rest of a broken line is indented.
const INDENT: usize = 4;

/// A rate with its unit.
fn rate(bits_per_second: f64) -> String {
    let (divisor, unit) = match bits_per_second {
        rate if rate >= 1e9 => (1e9, "Gbit/s"),
        rate if rate >= 1e6 => (1e6, "Mbit/s"),
        rate if rate >= 1e3 => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    };
    format!("{:.2} {unit}", bits_per_second / divisor)
}

/// A time with its unit.
fn time(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{:.2} s", us / 1e6),
        us if us >= 1e3 => format!("{:.2} ms", us / 1e3),
        us => format!("{us:.1} µs"),
    }
}

/// A line as lines of at most [`COLUMNS`], broken at spaces; a word that is longer is cut.
fn wrap(line: &str) -> String {
    let (mut wrapped, mut columns) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        let width = word.trim_end().chars().count();
        if columns > 0 && columns + width > COLUMNS {
            wrapped.truncate(wrapped.trim_end().len());
            wrapped.push_str("\n    ");
            columns = INDENT;
        }
        let kept: String = word.chars().take(COLUMNS - columns).collect();
        columns += kept.chars().count();
        wrapped.push_str(&kept);
    }
    wrapped.truncate(wrapped.trim_end().len());
    wrapped + "\n"
}

impl Outcome {
    /// As text, for a person.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for repetition in &self.repetitions {
            if self.plan.repetitions_max > 1 {
                let _ = writeln!(text, "repetition {}", repetition.number);
            }
            repetition_text(&mut text, repetition);
        }
        let used = || self.repetitions.iter().filter_map(|repetition| repetition.client_processor);
        if used().next().is_some() && used().all(|used| used.counts.is_none()) {
            text.push_str("cycles were not counted: the system has no counter of them for this process\n");
        }
        self.summary_text(&mut text);
        if let Some(why) = &self.failure {
            let _ = writeln!(text, "the next repetition failed: {}", Cleaner::line(why.as_bytes()));
        }
        text.lines().map(wrap).collect()
    }
    /// The figure with its unit, and its confidence interval where there is one.
    pub fn figure_text(&self) -> Option<String> {
        let summary = self.summary.as_ref()?;
        let mean = self.show(summary.mean);
        Some(summary.half_width.map_or(mean.clone(), |half| format!("{mean} ± {}", self.show(half))))
    }
    fn show(&self, value: f64) -> String {
        match self.plan.kind {
            Kind::Stream => rate(value),
            Kind::Connect => format!("{value:.1} connects/s"),
            _ => time(value),
        }
    }
    fn summary_text(&self, text: &mut String) {
        let Some(summary) = &self.summary else {
            let _ = writeln!(text, "nothing was measured");
            return;
        };
        if self.plan.repetitions_max == 1 {
            return;
        }
        let _ =
            write!(text, "mean of {} repetitions: {}", summary.count, self.figure_text().unwrap_or_default());
        if summary.half_width.is_some() {
            let _ = write!(text, " (95 %), deviation {}", self.show(summary.deviation));
        }
        text.push('\n');
        if self.is_sufficient == Some(false) {
            let share =
                summary.half_width_share().map_or("unknown".to_owned(), |s| format!("{:.1} %", s * 100.0));
            let _ = writeln!(
                text,
                "not sure enough: half the interval is {share} of the mean, {:.1} % was asked for",
                self.plan.half_width_share * 100.0
            );
        }
    }
}

impl Interval {
    /// As a line, for a person.
    pub fn text(&self) -> String {
        let mut text = format!("{:8.2} to {:8.2} s", self.from_s, self.to_s);
        for (name, value) in
            [("sent", self.sent_bits_per_second), ("received", self.received_bits_per_second)]
        {
            if value > 0.0 {
                let _ = write!(text, "  {name} {}", rate(value));
            }
        }
        if self.transactions_per_second > 0.0 {
            let _ = write!(text, "  {:.1} transactions/s", self.transactions_per_second);
        }
        text.push_str(if self.is_warm_up { "  (warm-up)\n" } else { "\n" });
        text
    }
}

fn repetition_text(text: &mut String, of: &Repetition) {
    for interval in of.intervals.iter().take(SHOWN_MAX) {
        text.push_str(&interval.text());
    }
    if of.intervals.len() > SHOWN_MAX {
        let _ = writeln!(text, "… {} more", of.intervals.len() - SHOWN_MAX);
    }
    for (name, transfer) in [("client to server", &of.sent), ("server to client", &of.received)] {
        if let Some(transfer) = transfer {
            transfer_text(text, name, transfer);
        }
    }
    if let Some(transactions) = &of.transactions {
        let _ = write!(text, "{} transactions in {:.2} s", transactions.count, transactions.seconds);
        let _ = writeln!(text, ", {:.1} a second, {} failed", transactions.per_second, transactions.failed);
        if let Some(times) = &transactions.times {
            let list = [
                ("least", times.least_us),
                ("mean", times.mean_us),
                ("50 %", times.p50_us),
                ("90 %", times.p90_us),
                ("99 %", times.p99_us),
                ("99.9 %", times.p999_us),
                ("most", times.most_us),
            ]
            .map(|(name, us)| format!("{name} {}", time(us)));
            let _ = writeln!(text, "  {}", list.join("  "));
        }
    }
    for (name, processor) in [("client", &of.client_processor), ("server", &of.server_processor)] {
        if let Some(processor) = processor {
            let (seconds, percent) = (processor.seconds, processor.share * 100.0);
            let _ = write!(text, "{name}: {seconds:.2} s of processor time, {percent:.0} % of a processor");
            if let Some(seconds) = processor.host_thread_seconds {
                let _ = write!(text, "; the thread of the host {seconds:.2} s");
            }
            text.push('\n');
            if let Some(of) = &processor.counts {
                let where_ = if of.is_user_only { " in user mode" } else { "" };
                let a_cycle = of.instructions as f64 / of.cycles.max(1) as f64;
                let _ = writeln!(
                    text,
                    "{name}: {} cycles and {} instructions{where_}, {a_cycle:.2} a cycle",
                    of.cycles, of.instructions
                );
            }
        }
    }
    for (name, layers) in [("client", &of.client_layers), ("server", &of.server_layers)] {
        let mut list: Vec<_> =
            layers.iter().filter(|(_, of)| of.share.is_none_or(|share| share >= 0.005)).collect();
        let order = |of: &LayerUse| of.share.unwrap_or(-1.0);
        list.sort_by(|one, other| order(other.1).total_cmp(&order(one.1)));
        let words = list.iter().map(|(layer, of)| {
            // The other end's words are not ours.
            let layer = Cleaner::line(layer.as_bytes());
            match of.share {
                Some(share) => format!("{layer} {:.0} %", share * 100.0),
                None => format!("{layer} {:.2} s", of.seconds),
            }
        });
        if !list.is_empty() {
            let _ = writeln!(text, "{name}'s host worked for: {}", words.collect::<Vec<_>>().join(", "));
        }
    }
    for (name, causes) in [("client", &of.client_causes), ("server", &of.server_causes)] {
        let mut list: Vec<_> = causes.iter().filter(|(_, share)| **share >= 0.005).collect();
        list.sort_by(|one, other| other.1.total_cmp(one.1));
        if !list.is_empty() {
            let words = list.iter().map(|(cause, share)| {
                // The other end's words are not ours.
                format!("{} {:.0} %", Cleaner::line(cause.as_bytes()), **share * 100.0)
            });
            let _ = writeln!(text, "{name} waited for: {}", words.collect::<Vec<_>>().join(", "));
        }
    }
    if let Some(limit) = &of.limit {
        let _ = writeln!(text, "{}", limit.why);
    }
    if of.is_aborted {
        let _ = writeln!(text, "stopped early: these figures are of the time until then");
    }
}

fn transfer_text(text: &mut String, name: &str, of: &Transfer) {
    let _ = write!(text, "{name}: {} bytes in {:.2} s, {}", of.bytes, of.seconds, rate(of.bits_per_second));
    if let Some(retransmits) = of.retransmits {
        let _ = write!(text, ", {retransmits} retransmitted");
    }
    text.push('\n');
    if let Some(datagrams) = &of.datagrams {
        let _ = write!(
            text,
            "  {} datagrams, {} lost ({:.3} %), jitter {:.3} ms",
            datagrams.sent,
            datagrams.lost,
            datagrams.lost_share * 100.0,
            datagrams.jitter_ms
        );
        if let Some(out_of_order) = datagrams.out_of_order {
            let _ = write!(text, ", {out_of_order} out of order");
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, wrap};

    #[test]
    fn lines_are_broken_at_spaces() {
        assert_eq!(wrap("  a b"), "  a b\n");
        let long = "word ".repeat(50);
        let wrapped = wrap(&long);
        assert!(wrapped.lines().all(|line| line.chars().count() <= COLUMNS), "{wrapped}");
        assert_eq!(wrapped.split_whitespace().count(), 50);
        assert!(wrap(&"µ".repeat(500)).lines().all(|line| line.chars().count() <= COLUMNS));
        assert_eq!(wrap(""), "\n");
    }
}
