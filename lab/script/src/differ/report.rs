//! Reports of a run, as text and JSON; a difference as a script.

use super::classes::{Classes, Verdict};
use super::judge::{Found, Played, Report};
use super::sent::Sent;
use crate::language::{Step, line_of};
use inhost_base::{Duration, Instant};
use inhost_wire::tcp::Flags;
use serde_json::{Value, json};
use std::fmt::Write;

/// So much more often an open class may be met by chance.
const SLACK: u64 = 3;
/// What comes later than this has its own time in a script.
const AT_ONCE: Duration = Duration::from_millis(12);

impl Report {
    /// Whether every difference is of a class that may be met.
    pub fn is_clean(&self) -> bool {
        self.found.is_empty()
            && self.too_often.is_empty()
            && self.too_long.is_empty()
            && self.broken.is_empty()
    }
    /// Finds the classes that were met more often than they may be.
    pub(super) fn count_open(&mut self, classes: &Classes) {
        for class in classes.all().iter().filter(|class| class.verdict.has_limit()) {
            let met = self.known.get(&class.name).map_or(0, |(_, count)| *count);
            let most = (self.played as f64 * class.most_percent / 100.0) as u64 + SLACK;
            if met > most {
                self.too_often.push(format!("{}: met {met} times, at most {most} were to be", class.name));
            }
        }
    }
    /// The run in a line or two.
    pub fn summary(&self) -> String {
        let known: u64 = self.known.values().map(|(_, count)| count).sum();
        let open = self.known.values().filter(|(verdict, _)| *verdict == Verdict::Open).count();
        let found: u64 = self.found.values().map(|found| found.count).sum();
        format!(
            "{} exchanges played, {known} differ in {} known classes, {open} of them open, {found} in {} others; {} not repeated, \
             {} without a defined outcome; the longest took {} ms",
            self.played,
            self.known.len(),
            self.found.len(),
            self.unsteady,
            self.undefined,
            self.longest.as_millis(),
        )
    }
    /// Each class that fails the run, and the summary.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (signature, found) in &self.found {
            let _ = writeln!(text, "FAILED {signature}\n{}", found.text());
        }
        for (name, (verdict, count)) in &self.known {
            let _ = writeln!(text, "{count:>6} {verdict:?} {name}");
        }
        for class in &self.too_often {
            let _ = writeln!(text, "FAILED {class}");
        }
        for seed in &self.too_long {
            let _ = writeln!(text, "FAILED seed {seed} takes longer than an exchange may");
        }
        for why in &self.broken {
            let _ = writeln!(text, "NOT PLAYED {why}");
        }
        text.push_str(&self.summary());
        text
    }
    /// For programs.
    pub fn json(&self) -> Value {
        let known: Vec<Value> = self
            .known
            .iter()
            .map(|(name, (verdict, count))| {
                json!({ "name": name, "verdict": format!("{verdict:?}"), "count": count })
            })
            .collect();
        let found: Vec<Value> = self
            .found
            .iter()
            .map(|(signature, found)| {
                let small = found.small.as_ref();
                json!({
                    "signature": signature, "count": found.count, "seed": found.seed,
                    "returned": found.returned.is_some(),
                    "script": small.map(script),
                    "detail": small.and_then(|small| small.difference.as_ref()).map(|it| &it.detail),
                    "kernel": small.map(|small| &small.kernel.trace),
                    "ours": small.map(|small| &small.ours.trace),
                })
            })
            .collect();
        json!({
            "ok": self.is_clean(), "played": self.played, "undefined": self.undefined,
            "unsteady": self.unsteady, "known": known, "found": found, "too_often": self.too_often,
            "too_long": self.too_long, "broken": self.broken,
            "longest_ms": self.longest.as_millis(),
        })
    }
}

impl Found {
    fn text(&self) -> String {
        let mut text = format!("    met {} times, first by seed {}\n", self.count, self.seed);
        if let Some(class) = &self.returned {
            let _ = writeln!(
                text,
                "    it was thought to be over ({}): {:?}, {}",
                class.name, class.verdict, class.reason
            );
        }
        let Some(small) = &self.small else { return text };
        if let Some(difference) = &small.difference {
            let _ = writeln!(text, "    {}", difference.detail);
        }
        for (name, lines) in [
            ("script", script(small).lines().map(str::to_owned).collect()),
            ("kernel", small.kernel.trace.clone()),
            ("ours", small.ours.trace.clone()),
        ] {
            let _ = writeln!(text, "  {name}:");
            for line in lines {
                let _ = writeln!(text, "    | {line}");
            }
        }
        text
    }
}

/// What the kernel did, as a script: it holds on the kernel, and fails on ours.
pub fn script(played: &Played) -> String {
    let exchange = &played.exchange;
    let signature = played.difference.as_ref().map_or("the same", |it| it.signature.as_str());
    let mut text = format!("# {signature} (seed {})\n{}", exchange.seed, exchange.headings());
    let mut latest = Instant::ZERO;
    let mut line = |at: Instant, fixed: bool, words: &str| {
        let gap = at.since(latest);
        if fixed && gap > Duration::ZERO && gap.as_millis() > 0 || gap > AT_ONCE {
            let _ = writeln!(text, "after {}ms {words}", gap.as_millis());
        } else {
            let _ = writeln!(text, "{words}");
        }
        latest = at;
    };
    let times = played.kernel.times.iter();
    for ((timed, moment), &at) in exchange.steps.iter().zip(&played.kernel.moments).zip(times) {
        line(at, timed.after > Duration::ZERO, &step(&timed.step, moment.came.as_deref()));
        for sent in &moment.sent {
            line(sent.at, false, &out(sent));
        }
    }
    text
}

/// A step with what came of it.
fn step(step: &Step, came: Option<&str>) -> String {
    let words = line_of(step);
    match (step, came) {
        (Step::Assert(_), Some("no")) => words.replace("== yes", "== no"),
        (Step::SocketCall(_), Some(came)) => {
            let words = words.trim_end_matches(" expect any");
            let came = came.trim_end_matches(" bytes taken").trim_end_matches(" bytes read");
            match came {
                "ok" => words.to_owned(),
                "cannot" => format!("{words} # cannot be done"),
                came => format!("{words} expect {came}"),
            }
        }
        _ => words,
    }
}

/// A packet of the host's as a script expects it.
fn out(sent: &Sent) -> String {
    if sent.other.is_some() {
        return sent.text.clone();
    }
    let value = |name: &str| {
        let field = sent.fields.iter().find(|(field, _)| *field == name);
        field.map_or("", |(_, value)| value.as_str())
    };
    let mut text = "out".to_owned();
    let mut word = |word: &str| {
        text.push(' ');
        text.push_str(word);
    };
    let flags = sent.flags.difference(Flags::PSH);
    if flags != Flags::ACK {
        word(value("flags"));
    }
    word(&format!("seq {}", sent.sequence));
    if sent.data_bytes > 0 {
        let start = sent.sequence + i64::from(flags.syn());
        word(&format!("data {start}..{}", start + sent.data_bytes as i64));
    }
    if let Some(number) = sent.acknowledgment {
        word(&format!("ack {number}"));
    }
    if sent.closed && !flags.contains(Flags::RST) {
        word("win 0");
    }
    if flags.urg() {
        word(&format!("urgent {}", value("urgent")));
    }
    if !matches!(value("sack"), "" | "[]") {
        let blocks = value("sack").trim_matches(['[', ']']).replace("), (", " ");
        word(&format!("sack {}", blocks.trim_matches(['(', ')']).replace(", ", "..")));
    }
    text
}
