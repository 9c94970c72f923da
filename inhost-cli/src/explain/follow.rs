//! The running host's frames as they come, explained every few seconds.

use super::{Choice, line, open};
use crate::args::Explain;
use crate::failure::{Failure, print_error};
use crate::output::print;
use inhost_explain::capture::Reader;
use inhost_explain::{Explainer, Options};
use serde_json::json;
use std::fs::File;

/// Seconds between two looks, at least and at most.
const LEAST_S: f64 = 0.1;
const MOST_S: f64 = 86_400.0;

/// Follows until the host ends or somebody interrupts.
pub fn run(arguments: &Explain, only: &Choice) -> Result<(), Failure> {
    if !(LEAST_S..=MOST_S).contains(&arguments.every) {
        let every = arguments.every;
        return Err(Failure::usage(format!("--every {every}: give {LEAST_S} to {MOST_S} seconds")));
    }
    let filter = super::filter(arguments)?;
    let mut client = open(arguments)?;
    let asked = client.request(&json!({"op": "watch", "past": true}));
    let (_, stream) =
        asked.map_err(|why| Failure::operation(format!("the host is not to be watched: {why}")))?;
    let stream = stream.ok_or_else(|| Failure::operation("the host sent no stream"))?;
    let broken = |why| Failure::operation(format!("the host's frames are not understood: {why}"));
    let mut reader = Reader::new(File::from(stream)).map_err(broken)?;
    let mut explainer = Explainer::new(Options::default());
    let every_ns = (arguments.every * 1e9) as u64;
    let (mut said_ns, mut first_ns) = (0, None);
    while let Some(frame) = reader.next_frame().map_err(broken)? {
        let at_ns = frame.at_ns;
        if filter.has(&frame) {
            explainer.take(&frame);
        }
        let first_ns = *first_ns.get_or_insert(at_ns);
        if at_ns.saturating_sub(said_ns.max(first_ns)) < every_ns {
            continue;
        }
        let mut verdicts = explainer.so_far(said_ns);
        said_ns = at_ns;
        verdicts.retain(|of| only.has(&of.client, &of.server));
        verdicts.sort_by_key(|of| std::cmp::Reverse(of.lost_ns));
        verdicts.truncate(arguments.top as usize);
        match arguments.json {
            true => print(&format!("{}\n", json!({"at_ns": at_ns, "conversations": verdicts})))?,
            false => {
                let lines: String = verdicts.iter().map(line).collect();
                print(&format!("{:.1} s\n{lines}", at_ns.saturating_sub(first_ns) as f64 / 1e9))?;
            }
        }
    }
    print_error("the host has ended");
    Ok(())
}
