//! Figures of the papers.

mod corpus;
mod dec;
mod mit;
mod setups;
mod ucla;
mod vpi;

use inhost_machines::{Measured, Setup, run};

/// Runs a setup that is given as TOML.
fn measure(setup: &str, seed: u64) -> Measured {
    let setup: Setup = toml::from_str(setup).unwrap();
    run(&setup, seed).unwrap()
}

/// Whether `ours` is within `percent` of `theirs`; prints both.
#[track_caller]
fn is_near(what: &str, ours: f64, theirs: f64, percent: f64) {
    let error = (ours / theirs - 1.0) * 100.0;
    println!("{what}: ours {ours:.4}, the paper's {theirs:.4}, {error:+.2} %");
    assert!(error.abs() <= percent, "{what}: ours {ours}, the paper's {theirs}, {error:+.2} %");
}
