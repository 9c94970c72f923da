//! What situations are in truth, without any verdict: for those who write them, and must not see what is said of them.

use super::judge::Truth;
use super::keep::{self, Made};
use super::situation::Draw;
use super::stacks::{self, Stack};
use super::truth;
use super::{Job, LATE_US, Plan, for_each};
use crate::figures::kernel::emulator::Emulator;
use inhost_explain::Cause;
use std::fmt::Write;

/// Shares below are not shown.
const SHOWN_PER_CENT: f64 = 1.0;

/// Makes each situation once, and says what is true of it.
pub fn run_all(plan: &Plan) -> Result<String, String> {
    let mut found: Vec<(Option<usize>, Stack, String)> = Vec::new();
    for_each(
        plan,
        |job, emulator| fit(plan, job, emulator),
        |job, made| {
            let text = made.unwrap_or_else(|why| format!("failed: {why}\n"));
            let text = format!("{:32} {:6} {text}", job.recipe.name, job.stack.name());
            found.push((plan.place(job.recipe.name), job.stack, text));
        },
    )?;
    found.sort();
    let mut text: String = found.into_iter().map(|(.., text)| text).collect();
    let _ = writeln!(text, "seed {}", plan.seed);
    Ok(text)
}

/// Whether the situation is what its name says, and the shares of both directions.
fn fit(plan: &Plan, job: &Job<'_>, emulator: Option<&Emulator>) -> Result<String, String> {
    let situation = (job.recipe.make)(&mut Draw::new(plan.seed, job.recipe.name));
    let run = stacks::run(job.stack, &situation, plan.seed, emulator)?;
    let truth = Truth::of(&run, &situation);
    let unfit = truth.unfit(&situation, job.stack, &run);
    let mut text = match &unfit {
        None => "fits".to_owned(),
        Some(why) => format!("does not fit: {why}"),
    };
    if run.late.as_micros() > LATE_US {
        let _ = write!(text, " (the emulator was late by {} us)", run.late.as_micros());
    }
    if let Some(folder) = plan.keep.as_ref().filter(|_| unfit.is_some()) {
        let made = Made { situation: &situation, seed: plan.seed, run: &run, truth: &truth };
        text += &keep::keep_unfit(folder, job.recipe, job.stack, &made)?;
    }
    text.push('\n');
    for (way, name) in ["client", "server"].into_iter().enumerate() {
        let is_meant = way == situation.expected.direction;
        let shares = truth::account(&run, &situation, way).shares(truth.seen[2 * way]);
        let _ = writeln!(text, "  {} {name}: {}", if is_meant { '>' } else { ' ' }, words(&shares));
    }
    Ok(text)
}

fn words(shares: &[(Cause, f64)]) -> String {
    let shown = shares.iter().filter(|(_, per_cent)| *per_cent >= SHOWN_PER_CENT);
    shown.map(|(cause, per_cent)| format!("{per_cent:.0} % {}", cause.text())).collect::<Vec<_>>().join(", ")
}
