//! What a setup is run on.

use std::collections::BTreeMap;
use std::fmt;

use inhost_event::Layer;
use inhost_inett::here::Setup;
use inhost_inett::result::{Outcome, Repetition};
use serde::de::DeserializeOwned;

use crate::code::{self, CodeError};
use crate::experiment::Kind;

/// What was measured, by name with its unit.
pub type Measures = BTreeMap<String, f64>;

/// Whether a setup is one of this kind. Ranges are known when it is run.
///
/// # Errors
/// A key is unknown, or missing, or its value is of another kind.
pub fn check(kind: Kind, setup: &toml::Table) -> Result<(), Failed> {
    match kind {
        Kind::Machines => read::<inhost_machines::Setup>(setup).map(drop),
        Kind::Classic => read::<inhost_classic::Setup>(setup).map(drop),
        Kind::Protocol => read::<inhost_protocols::Setup>(setup).map(drop),
        Kind::Code => read::<code::Setup>(setup).map(drop),
        Kind::Inett => read::<Setup>(setup).map(drop),
    }
}

fn read<T: DeserializeOwned>(setup: &toml::Table) -> Result<T, Failed> {
    setup.clone().try_into().map_err(|e: toml::de::Error| Failed(format!("the setup: {}", e.message())))
}

/// Runs a setup with a seed.
///
/// # Errors
/// The setup is not one of this kind, or its run failed.
pub fn measure(kind: Kind, setup: &toml::Table, seed: u64) -> Result<Measures, Failed> {
    match kind {
        Kind::Machines => {
            let setup: inhost_machines::Setup = read(setup)?;
            let measured = inhost_machines::run(&setup, seed).map_err(|e| Failed(e.to_string()))?;
            Ok(measured.iter().map(|(name, value)| (name.to_owned(), value)).collect())
        }
        Kind::Classic => {
            let setup: inhost_classic::Setup = read(setup)?;
            inhost_classic::run(&setup, seed).map_err(|e| Failed(e.to_string()))
        }
        Kind::Protocol => {
            let setup: inhost_protocols::Setup = read(setup)?;
            let measured = setup.run().map_err(|e| Failed(e.to_string()))?;
            Ok(measured.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        }
        Kind::Code => {
            let setup: code::Setup = read(setup)?;
            let length = setup.measure().map_err(|e| match e {
                CodeError::NoSymbols => Failed::not_here(&e),
                _ => Failed(e.to_string()),
            })?;
            let found = [("code_bytes", length.code), ("variables_bytes", length.variables)];
            Ok(found.map(|(name, bytes)| (name.to_owned(), bytes as f64)).into())
        }
        Kind::Inett => today(read(setup)?, seed),
    }
}

/// Whether runs of a kind may go on beside each other: those of virtual time may.
pub fn is_parallel(kind: Kind) -> bool {
    !matches!(kind, Kind::Inett | Kind::Protocol)
}

/// A plan of inett between two ends in this process.
fn today(mut setup: Setup, seed: u64) -> Result<Measures, Failed> {
    (setup.plan.seed, setup.plan.interval_ms) = (seed, 0);
    let outcome = setup.measure().map_err(|e| Failed(e.to_string()))?;
    let mut found = measures(&outcome);
    // What a write or a transaction costs: the time of a write, and the processor's time at both ends, which are in this process.
    let write_bytes = f64::from(setup.plan.write_bytes());
    if let (Some(mbps), Some(used)) =
        (found.get("sent_mbps").copied(), found.get("client_processor_percent").copied())
    {
        let time_us = write_bytes * 8.0 / mbps;
        found.insert("write_us".to_owned(), time_us);
        found.insert("write_processor_us".to_owned(), time_us * used / 100.0);
    }
    if let (Some(a_second), Some(used)) =
        (found.get("transactions_per_s").copied(), found.get("client_processor_percent").copied())
    {
        found.insert("transaction_processor_us".to_owned(), 1e4 * used / a_second);
    }
    Ok(found)
}

fn measures(outcome: &Outcome) -> Measures {
    let mut found = Measures::new();
    let count = outcome.repetitions.len().max(1) as f64;
    let mut add = |name: &str, of: &dyn Fn(&Repetition) -> Option<f64>| {
        let values: Vec<f64> = outcome.repetitions.iter().filter_map(of).collect();
        if !values.is_empty() {
            found.insert(name.to_owned(), values.iter().sum::<f64>() / count);
        }
    };
    add("sent_mbps", &|of| of.sent.map(|transfer| transfer.bits_per_second / 1e6));
    add("received_mbps", &|of| of.received.map(|transfer| transfer.bits_per_second / 1e6));
    let datagrams = |of: &Repetition| of.sent.and_then(|transfer| transfer.datagrams);
    add("offered_mbps", &|of| of.sent.map(|sent| sent.sent_bytes as f64 * 8.0 / sent.seconds / 1e6));
    add("lost_percent", &|of| datagrams(of).map(|datagrams| datagrams.lost_share * 100.0));
    add("transactions_per_s", &|of| of.transactions.map(|transactions| transactions.per_second));
    let times = |of: &Repetition| of.transactions.and_then(|transactions| transactions.times);
    add("mean_us", &|of| times(of).map(|times| times.mean_us));
    add("p50_us", &|of| times(of).map(|times| times.p50_us));
    add("p99_us", &|of| times(of).map(|times| times.p99_us));
    add("client_processor_percent", &|of| of.client_processor.map(|used| used.share * 100.0));
    add("client_processor_s", &|of| of.client_processor.map(|used| used.seconds));
    let counts = |of: &Repetition| of.client_processor.and_then(|used| used.counts);
    add("client_cycles", &|of| counts(of).map(|counts| counts.cycles as f64));
    add("client_instructions", &|of| counts(of).map(|counts| counts.instructions as f64));
    for layer in Layer::ALL {
        let of_layer = |of: &Repetition| of.client_layers.get(layer.text()).copied();
        let name = format!("layer_{}", layer.text().to_lowercase().replace(' ', "_"));
        add(&format!("{name}_s"), &|of| of_layer(of).map(|of| of.seconds));
        add(&format!("{name}_percent"), &|of| {
            of_layer(of).and_then(|of| of.share).map(|share| share * 100.0)
        });
    }
    add("sent_bytes", &|of| of.sent.map(|transfer| transfer.bytes as f64));
    add("retransmits", &|of| of.sent.and_then(|transfer| transfer.retransmits).map(|count| count as f64));
    found
}

/// Why a run failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed(String);

/// How a reason begins that lies in this machine or this program: the same setup can be measured elsewhere.
const NOT_HERE: &str = "not measurable here: ";

/// Whether this reason of a run without a result is not a failure of the experiment.
pub fn is_not_here(why: &str) -> bool {
    why.starts_with(NOT_HERE)
}

impl Failed {
    fn not_here(why: &impl fmt::Display) -> Failed {
        Failed(format!("{NOT_HERE}{why}"))
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Failed {}
