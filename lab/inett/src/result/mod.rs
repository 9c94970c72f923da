//! What was measured: of each repetition, and of all.

mod limit;
mod text;

use std::collections::BTreeMap;

use inhost_event::Layer;
use serde::{Deserialize, Serialize};

use crate::face::{Counts, LayerTimes, Processor};
use crate::plan::Plan;
use crate::statistics::{Advice, Estimate, Percentiles};

pub use limit::{Evidence, Limit, Who, limit};

/// What one end found of bulk data in one direction.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Transfer {
    /// Bytes that arrived; where the receiver does not say it, bytes sent.
    pub bytes: u64,
    /// Seconds, warm-up left out.
    pub seconds: f64,
    /// The rate.
    pub bits_per_second: f64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
    /// Segments that were sent again; none where unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Datagrams, over UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
}

/// What became of datagrams.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Datagrams {
    /// Sent.
    pub sent: u64,
    /// Lost.
    pub lost: u64,
    /// Lost, as a share of those sent.
    pub lost_share: f64,
    /// Came after a later one; none where the receiver does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_order: Option<u64>,
    /// Jitter in milliseconds (RFC 3550 §6.4.1), the mean of the streams.
    pub jitter_ms: f64,
}

/// Transactions.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Transactions {
    /// Those that were timed.
    pub count: u64,
    /// Those that failed.
    pub failed: u64,
    /// Seconds, warm-up left out.
    pub seconds: f64,
    /// Transactions, or connects, a second.
    pub per_second: f64,
    /// Their times; none where none was timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<Percentiles>,
}

/// One report while it runs.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Interval {
    /// Begin, in seconds after the warm-up's begin.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// Whether it is part of the warm-up.
    pub is_warm_up: bool,
    /// Bits a second that this end sent.
    pub sent_bits_per_second: f64,
    /// Bits a second that this end received.
    pub received_bits_per_second: f64,
    /// Transactions a second.
    pub transactions_per_second: f64,
}

/// Processor use of one end.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ProcessorUse {
    /// Seconds of processor time, all threads.
    pub seconds: f64,
    /// As a share of one processor.
    pub share: f64,
    /// Of these seconds, those of the thread of the host that is the face.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_thread_seconds: Option<f64>,
    /// Cycles and instructions; none where they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
}

impl ProcessorUse {
    /// From what was used in a time that is not zero.
    pub(crate) fn new(used: &Processor, in_s: f64) -> ProcessorUse {
        let seconds = used.user_s + used.system_s;
        ProcessorUse {
            seconds,
            share: seconds / in_s,
            host_thread_seconds: used.host_thread_s,
            counts: used.counts,
        }
    }
}

/// The time of a host's layer.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LayerUse {
    /// Seconds.
    pub seconds: f64,
    /// As a share of the time for which the host worked. Sleep and the instrument itself are not part of that, and have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// Seconds by layer, without those that have none.
pub(crate) fn layers_s(of: &LayerTimes) -> BTreeMap<String, f64> {
    let all = Layer::ALL.iter().zip(of).filter(|(_, ns)| **ns > 0);
    all.map(|(layer, ns)| (layer.text().to_owned(), *ns as f64 / 1e9)).collect()
}

/// The same with shares.
pub(crate) fn layer_uses(layers_s: &BTreeMap<String, f64>) -> BTreeMap<String, LayerUse> {
    let works = |name: &str| ![Layer::Idle.text(), Layer::Instrument.text()].contains(&name);
    let worked_s: f64 = layers_s.iter().filter(|(name, _)| works(name)).map(|(_, seconds)| seconds).sum();
    let of = |(name, seconds): (&String, &f64)| {
        let share = (works(name) && worked_s > 0.0).then(|| seconds / worked_s);
        (name.clone(), LayerUse { seconds: *seconds, share })
    };
    layers_s.iter().map(of).collect()
}

/// One repetition.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Repetition {
    /// Its number, from 1.
    pub number: u32,
    /// Whether the user ended it early; what is here was measured until then.
    pub is_aborted: bool,
    /// Bulk data that the client sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<Transfer>,
    /// Bulk data that the server sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<Transfer>,
    /// Transactions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Transactions>,
    /// Reports.
    pub intervals: Vec<Interval>,
    /// Processor use of the client; none where it has no meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_processor: Option<ProcessorUse>,
    /// Processor use of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_processor: Option<ProcessorUse>,
    /// The time of the client's host by layer, where its layers were watched. They sum to the time that was measured, up to a
    /// round of the host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub client_layers: BTreeMap<String, LayerUse>,
    /// The same of the server's host, where our own program runs there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server_layers: BTreeMap<String, LayerUse>,
    /// Congestion control of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Causes for which the client's streams waited, as shares of their time.
    pub client_causes: BTreeMap<String, f64>,
    /// The same of the server's streams, where our own program runs there.
    pub server_causes: BTreeMap<String, f64>,
    /// Who was the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

impl Repetition {
    /// The figure that repetition makes sure of: bits a second of bulk data, both ways together; for transactions the
    /// mean time in microseconds, for connects their number a second.
    pub fn figure(&self, plan: &Plan) -> Option<f64> {
        use crate::plan::Kind;
        match (plan.kind, &self.transactions) {
            (Kind::Stream, _) => {
                let rates = [&self.sent, &self.received].into_iter().flatten().map(|t| t.bits_per_second);
                rates.reduce(|sum, rate| sum + rate)
            }
            (Kind::Connect, Some(transactions)) => Some(transactions.per_second),
            (_, Some(transactions)) => transactions.times.map(|times| times.mean_us),
            _ => None,
        }
    }
}

/// A whole measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// What was asked for.
    pub plan: Plan,
    /// Name and unit of the figure.
    pub figure: String,
    /// Each repetition.
    pub repetitions: Vec<Repetition>,
    /// The figure over all repetitions; none where nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Estimate>,
    /// Whether the confidence interval is as narrow as asked for; none for a single repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_sufficient: Option<bool>,
    /// Why there are fewer repetitions than the rule asks for, where one failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Outcome {
    /// From repetitions.
    pub fn new(plan: &Plan, repetitions: Vec<Repetition>) -> Outcome {
        use crate::plan::Kind;
        let whole = repetitions.iter().filter(|repetition| !repetition.is_aborted);
        let mut values: Vec<f64> = whole.filter_map(|repetition| repetition.figure(plan)).collect();
        if values.is_empty() {
            values = repetitions.iter().filter_map(|repetition| repetition.figure(plan)).collect();
        }
        let figure = match plan.kind {
            Kind::Stream => "bits_per_second",
            Kind::Connect => "connects_per_second",
            _ => "mean_us",
        };
        let is_sufficient =
            (plan.repetitions_max > 1).then(|| plan.rule().advise(&values) == Advice::Sufficient);
        Outcome {
            plan: plan.clone(),
            figure: figure.to_owned(),
            summary: Estimate::of(&values),
            repetitions,
            is_sufficient,
            failure: None,
        }
    }
    /// As JSON, on one line.
    ///
    /// # Panics
    /// Never: the value has only numbers, text and lists.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
    /// The head of [`Outcome::csv`].
    pub const CSV_HEAD: &'static str = "repetition,sent_bits_per_second,received_bits_per_second,retransmits,\
        datagrams_sent,datagrams_lost,jitter_ms,transactions_per_second,mean_us,p50_us,p99_us,most_us,\
        client_processor_share,server_processor_share,limit";
    /// A line of CSV for each repetition, below [`Outcome::CSV_HEAD`]. What was not measured is empty.
    pub fn csv(&self) -> String {
        self.repetitions.iter().map(|repetition| csv_line(repetition) + "\n").collect()
    }
}

fn csv_line(of: &Repetition) -> String {
    fn cell<T: ToString>(value: Option<T>) -> String {
        value.map(|value| value.to_string()).unwrap_or_default()
    }
    let transfers = || [&of.sent, &of.received].into_iter().flatten();
    let datagrams = || transfers().filter_map(|transfer| transfer.datagrams);
    let times = of.transactions.and_then(|transactions| transactions.times);
    [
        of.number.to_string(),
        cell(of.sent.map(|transfer| transfer.bits_per_second.round())),
        cell(of.received.map(|transfer| transfer.bits_per_second.round())),
        cell(transfers().filter_map(|transfer| transfer.retransmits).reduce(u64::saturating_add)),
        cell(datagrams().map(|datagrams| datagrams.sent).reduce(u64::saturating_add)),
        cell(datagrams().map(|datagrams| datagrams.lost).reduce(u64::saturating_add)),
        cell(datagrams().map(|datagrams| datagrams.jitter_ms).reduce(f64::max)),
        cell(of.transactions.map(|transactions| transactions.per_second)),
        cell(times.map(|times| times.mean_us)),
        cell(times.map(|times| times.p50_us)),
        cell(times.map(|times| times.p99_us)),
        cell(times.map(|times| times.most_us)),
        cell(of.client_processor.map(|processor| processor.share)),
        cell(of.server_processor.map(|processor| processor.share)),
        cell(of.limit.as_ref().map(|limit| format!("{:?}", limit.who).to_lowercase())),
    ]
    .join(",")
}
