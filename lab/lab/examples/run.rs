//! Runs experiments by their names without the command, and prints what they found: for measurements in release.
//!
//! ```text
//! cargo run --release -p inhost-lab --example run -- today-links today-layers
//! ```

use std::sync::atomic::AtomicBool;

use inhost_lab::EXPERIMENTS;
use inhost_lab::experiment::Experiment;
use inhost_lab::report::Chapter;
use inhost_lab::runner::{RunOptions, run};
use inhost_lab::store::Store;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for wanted in std::env::args().skip(1) {
        let (name, text) = EXPERIMENTS
            .iter()
            .find(|(name, _)| *name == wanted)
            .ok_or_else(|| format!("{wanted} is not an experiment"))?;
        let (experiment, store) = (Experiment::from_toml(name, text)?, Store::in_memory()?);
        run(&experiment, &store, &RunOptions::default(), &AtomicBool::new(false), &mut |_| {})?;
        let chapter = Chapter::new(experiment, &store)?;
        print!("{}{}", chapter.text(), chapter.compared_text());
    }
    Ok(())
}
