//! What a setup is run on.

use std::collections::BTreeMap;
use std::fmt;

use inhost_inett::here::{FaceName, measure as measure_here};
use inhost_inett::plan::Plan;
use inhost_inett::result::{Outcome, Repetition};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::code;
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
        Kind::Inett => read::<InettSetup>(setup).map(drop),
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
            let length = setup.measure().map_err(|e| Failed(e.to_string()))?;
            let found = [("code_bytes", length.code), ("variables_bytes", length.variables)];
            Ok(found.map(|(name, bytes)| (name.to_owned(), bytes as f64)).into())
        }
        Kind::Inett => {
            let setup: InettSetup = read(setup)?;
            setup.plan.validate().map_err(|e| Failed(e.to_string()))?;
            today(&setup, seed)
        }
    }
}

/// Whether runs of a kind may go on beside each other: those of virtual time may.
pub fn is_parallel(kind: Kind) -> bool {
    !matches!(kind, Kind::Inett | Kind::Protocol)
}

/// A setup of this machine: a plan of inett between two ends in this process.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InettSetup {
    /// Which sockets.
    #[serde(default)]
    face: FaceName,
    /// What is measured.
    #[serde(default)]
    plan: Plan,
}

fn today(setup: &InettSetup, seed: u64) -> Result<Measures, Failed> {
    let mut plan = setup.plan.clone();
    (plan.seed, plan.interval_ms) = (seed, 0);
    let outcome = measure_here(setup.face, &plan).map_err(|e| Failed(e.to_string()))?;
    let mut found = measures(&outcome);
    // What a write costs: the time of one, and the processor's time at both ends, which are in this process.
    let write_bytes = f64::from(plan.write_bytes());
    if let (Some(mbps), Some(used)) =
        (found.get("sent_mbps").copied(), found.get("client_processor_percent").copied())
    {
        let time_us = write_bytes * 8.0 / mbps;
        found.insert("write_us".to_owned(), time_us);
        found.insert("write_processor_us".to_owned(), time_us * used / 100.0);
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
    add("sent_bytes", &|of| of.sent.map(|transfer| transfer.bytes as f64));
    add("retransmits", &|of| of.sent.and_then(|transfer| transfer.retransmits).map(|count| count as f64));
    found
}

/// Why a run failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Failed {}
