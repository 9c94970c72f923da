//! What was measured, as JSON and as a table.

use crate::account::{Account, Direction};
use crate::meter::Mode;
use crate::ring::{Ring, Transition};
use crate::size::Size;
use inhost_event::Layer;
use inhost_runtime::Phase;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What was measured. Times are in nanoseconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// Which rounds are measured now.
    pub mode: Mode,
    /// With `sampled`, one round in so many.
    pub one_in: u32,
    /// Rounds that were measured.
    pub rounds: u64,
    /// Their time, sleep included: the sum of all layers.
    pub total_ns: u64,
    /// What a reading of the clock costs, with what belongs to it. It is counted as `instrument` and in no other layer.
    pub clock_cost_ns: u64,
    /// Each layer.
    pub layers: Vec<LayerTime>,
    /// Rounds with segments, by the direction and the size that was most frequent in them.
    pub segments: Vec<SegmentTime>,
    /// Each layer within those around it, without the instrument's own time.
    pub stacks: Vec<StackTime>,
    /// The latest transitions, where they are asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transitions: Vec<TransitionSeen>,
}

/// The time of a layer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerTime {
    /// Its name.
    pub layer: String,
    /// All of it.
    pub ns: u64,
    /// While frames came up.
    pub receive_ns: u64,
    /// While timers and tasks ran.
    pub run_ns: u64,
    /// While frames went down.
    pub send_ns: u64,
    /// While the host waited.
    pub wait_ns: u64,
}

/// The time of rounds with segments of one direction and size.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SegmentTime {
    /// `received` or `sent`.
    pub direction: String,
    /// The size, such as `to 1460`.
    pub size: String,
    /// Segments of these rounds, others of this direction included.
    pub segments: u64,
    /// Bytes of their payload.
    pub bytes: u64,
    /// Rounds.
    pub rounds: u64,
    /// Nanoseconds a segment, without the instrument's: the mean.
    pub mean_ns: u64,
    /// The same in the round in the middle.
    pub median_ns: u64,
    /// The same in the slowest round of a hundred.
    pub p99_ns: u64,
    /// Time by layer.
    pub layers: BTreeMap<String, u64>,
}

/// The time of a layer within those around it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackTime {
    /// Phase and layers, the outermost first, with semicolons.
    pub stack: String,
    /// Its own time.
    pub ns: u64,
    /// How often it was entered.
    pub entered: u64,
}

/// A transition of the time-line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransitionSeen {
    /// When, on the host's clock.
    pub at_ns: u64,
    /// The layer in force from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// A segment: `received` or `sent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<String>,
    /// The host's port and its peer's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<(u16, u16)>,
    /// Bytes of payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u32>,
}

impl From<&(u64, Transition)> for TransitionSeen {
    fn from((at_ns, transition): &(u64, Transition)) -> TransitionSeen {
        let nothing =
            TransitionSeen { at_ns: *at_ns, layer: None, segment: None, ports: None, payload_bytes: None };
        match transition {
            Transition::Layer(layer) => TransitionSeen { layer: Some(layer.text().to_owned()), ..nothing },
            Transition::Segment(segment) => {
                let direction = if segment.is_sent { Direction::Sent } else { Direction::Received };
                TransitionSeen {
                    segment: Some(direction.text().to_owned()),
                    ports: Some((segment.local_port, segment.remote_port)),
                    payload_bytes: Some(segment.payload_bytes),
                    ..nothing
                }
            }
        }
    }
}

/// Layers of which a table of segments has a column each; the others share one.
const COLUMNS: [(&str, &[Layer]); 7] = [
    ("Link", &[Layer::Link]),
    ("IP", &[Layer::Ip]),
    ("TCP", &[Layer::Tcp]),
    ("Checksum", &[Layer::Checksum]),
    ("Copy", &[Layer::Write, Layer::WriteAndSum, Layer::Read]),
    ("Timers", &[Layer::Timers]),
    ("Sockets", &[Layer::Sockets]),
];

impl Report {
    /// Of an account.
    pub fn of(mode: Mode, one_in: u32, account: &Account) -> Report {
        let layers = Layer::ALL.map(|layer| {
            let of = |phase| account.phase(phase)[layer as usize];
            let [receive_ns, run_ns, send_ns, wait_ns] = Phase::ALL.map(of);
            let ns = receive_ns + run_ns + send_ns + wait_ns;
            LayerTime { layer: layer.text().to_owned(), ns, receive_ns, run_ns, send_ns, wait_ns }
        });
        let pairs = Direction::ALL.into_iter().flat_map(|d| Size::ALL.map(|size| (d, size)));
        let segments = pairs.filter_map(|(direction, size)| {
            let row = account.row(direction, size);
            let times = Layer::ALL.iter().zip(row.ns).filter(|(_, ns)| *ns > 0);
            let work_ns = row.total_ns() - row.ns[Layer::Instrument as usize];
            (row.segments > 0).then(|| SegmentTime {
                direction: direction.text().to_owned(),
                size: size.text().to_owned(),
                segments: row.segments,
                bytes: row.bytes,
                rounds: row.rounds,
                mean_ns: work_ns / row.segments,
                median_ns: row.a_segment.value_at_quantile(0.5),
                p99_ns: row.a_segment.value_at_quantile(0.99),
                layers: times.map(|(layer, ns)| (layer.text().to_owned(), ns)).collect(),
            })
        });
        let stacks = account.stacks().filter(|(_, ns, entered)| *ns > 0 || *entered > 0);
        Report {
            mode,
            one_in,
            rounds: account.rounds(),
            total_ns: account.total_ns(),
            clock_cost_ns: account.clock_cost_ns(),
            layers: layers.to_vec(),
            segments: segments.collect(),
            stacks: stacks
                .map(|(words, ns, entered)| StackTime { stack: words.join(";"), ns, entered })
                .collect(),
            transitions: Vec::new(),
        }
    }
    /// With the transitions of a ring.
    pub fn with_transitions(mut self, ring: &Ring) -> Report {
        self.transitions = ring.iter().map(TransitionSeen::from).collect();
        self
    }

    /// The time of a layer.
    pub fn layer_ns(&self, layer: Layer) -> u64 {
        self.layers.iter().find(|time| time.layer == layer.text()).map_or(0, |time| time.ns)
    }
    /// The time in which the host worked: without sleep and instrument.
    pub fn busy_ns(&self) -> u64 {
        self.total_ns.saturating_sub(self.layer_ns(Layer::Idle) + self.layer_ns(Layer::Instrument))
    }
    /// Segments of a direction.
    pub fn segments_of(&self, direction: Direction) -> u64 {
        self.segments.iter().filter(|row| row.direction == direction.text()).map(|row| row.segments).sum()
    }
    /// As folded stacks, which programs that draw flame graphs read: a line for each stack, with its nanoseconds.
    pub fn folded(&self) -> String {
        self.stacks.iter().filter(|stack| stack.ns > 0).fold(String::new(), |mut out, stack| {
            let _ = writeln!(out, "inhost;{} {}", stack.stack, stack.ns);
            out
        })
    }
    /// As tables.
    pub fn text(&self) -> String {
        if self.rounds == 0 {
            return match self.mode {
                Mode::Off => {
                    "nothing was measured: the instrument is off; inhost layers --for 10 measures for 10 seconds\n".into()
                }
                _ => "no round was measured yet\n".into(),
            };
        }
        let share = |ns: u64, of: u64| 100.0 * ns as f64 / of.max(1) as f64;
        let which = match self.mode {
            Mode::Sampled => format!("sampled, one in {}", self.one_in),
            Mode::Full => "every one".to_owned(),
            Mode::Off => "off now".to_owned(),
        };
        let mut out = format!(
            "{} {} ({which}), {}: {:.0} % idle, {:.0} % instrument ({} ns a reading of the clock, taken out below)\n\n",
            self.rounds,
            if self.rounds == 1 { "round" } else { "rounds" },
            time(self.total_ns),
            share(self.layer_ns(Layer::Idle), self.total_ns),
            share(self.layer_ns(Layer::Instrument), self.total_ns),
            self.clock_cost_ns,
        );
        out += "Layer                  Share  ns a round   Receive       Run      Send      Wait\n";
        let aside = [Layer::Idle.text(), Layer::Instrument.text()];
        for layer in self.layers.iter().filter(|layer| layer.ns > 0 && !aside.contains(&&*layer.layer)) {
            let a_round = |ns: u64| ns as f64 / self.rounds as f64;
            let _ = writeln!(
                out,
                "{:<21} {:>5.1} % {:>11.0} {:>9.0} {:>9.0} {:>9.0} {:>9.0}",
                layer.layer,
                share(layer.ns, self.busy_ns()),
                a_round(layer.ns),
                a_round(layer.receive_ns),
                a_round(layer.run_ns),
                a_round(layer.send_ns),
                a_round(layer.wait_ns),
            );
        }
        if self.segments.is_empty() {
            return out;
        }
        out += "\nns a segment          Segments    Mean  Median     p99";
        for (name, _) in COLUMNS {
            let _ = write!(out, " {:>w$}", name, w = name.len().max(5));
        }
        out += "  Other\n";
        for row in &self.segments {
            let _ = write!(
                out,
                "{:<8} {:<12} {:>9} {:>7} {:>7} {:>7}",
                row.direction, row.size, row.segments, row.mean_ns, row.median_ns, row.p99_ns
            );
            let mut other = row.mean_ns as f64;
            for (name, layers) in COLUMNS {
                let ns: u64 = layers.iter().filter_map(|layer| row.layers.get(layer.text())).sum();
                let ns = ns as f64 / row.segments as f64;
                other -= ns;
                let _ = write!(out, " {:>w$.0}", ns, w = name.len().max(5));
            }
            let _ = writeln!(out, " {:>6.0}", other.max(0.0));
        }
        out
    }
}

/// A length of time in a unit that suits it.
fn time(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}
