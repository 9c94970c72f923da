//! Each setup, judged by its law.

mod bufferbloat;
mod gateway;
mod incast;
mod loss_law;
mod mechanisms;
mod nagle;
mod reordering;
mod rtt_unfairness;
mod setups;

use inhost_classic::{Measured, Setup, run};

/// Runs a setup in TOML, and prints what it gave.
fn measure(setup: &str, seed: u64) -> Measured {
    let setup: Setup = toml::from_str(setup).unwrap();
    let measured = run(&setup, seed).unwrap();
    println!("{setup:?}\n  {measured:.3?}");
    measured
}
