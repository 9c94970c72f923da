//! The judge of `inhost explain`: situations whose truth is known, made with our stack and with the kernel, explained from
//! every vantage, and scored. docs/explain-bench.md says how.
//!
//! To add a situation, write a function that makes a [`situation::Situation`] from drawn parameters into a file of
//! [`families`], and name it in that file's `recipes`; a new file is a new family, and gets a line in `families::all`.

mod families;
mod fit;
mod judge;
mod keep;
mod path;
mod script;
mod situation;
mod stacks;
mod table;
#[cfg(test)]
mod tests;
mod truth;

use crate::figures::kernel::emulator::Emulator;
use judge::{Cell, Truth, judge};
use keep::Made;
use situation::{Draw, Recipe};
use stacks::Stack;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use table::Outcome;

/// Situations under the real clock that run at a time.
const JOBS: usize = 12;
/// Tries to make a situation that is what its name says.
const TRIES: u64 = 3;
/// The emulator is trusted while it hands 99 of 100 packets over by so much after their time.
const LATE_US: u64 = 3_000;

/// What is asked for.
struct Plan {
    recipes: Vec<Recipe>,
    stacks: Vec<Stack>,
    seed: u64,
    jobs: usize,
    keep: Option<PathBuf>,
    /// What was right is kept, too.
    keeps_all: bool,
}

/// Arguments of `inhost-bench explain`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Only situations whose names hold one of these, or families, between commas [default: all]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    situations: Vec<String>,
    /// Only these stacks, between commas: sim, tap, kernel; the last two need root [default: all]
    #[arg(long, value_name = "STACK", value_delimiter = ',', value_parser = Stack::of)]
    stacks: Vec<Stack>,
    /// What the situations are drawn from [default: a fresh one]
    #[arg(long)]
    seed: Option<u64>,
    /// Situations under the real clock at a time
    #[arg(long, value_name = "COUNT", default_value_t = JOBS)]
    jobs: usize,
    /// With the families that are tried last
    #[arg(long)]
    last: bool,
    /// Keep what was judged wrong in this folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Keep what was right, too
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "page")]
    json: bool,
    /// Write the table into docs/explain-bench.md
    #[arg(long)]
    page: bool,
    /// Judge nothing: what is true of each situation
    #[arg(long)]
    fit: bool,
    /// List the situations and make none
    #[arg(long)]
    list: bool,
    /// Judge what was kept in this folder again
    #[arg(long, value_name = "FOLDER", exclusive = true)]
    replay: Option<PathBuf>,
}

/// `inhost-bench explain …`
pub fn command(options: Options) -> Result<(), String> {
    if let Some(folder) = options.replay {
        let cells = vec![keep::replay(&folder)?];
        print!("{}", Outcome { seed: 0, cells, unfit: Vec::new() }.to_table());
        return Ok(());
    }
    let Options { last, list, fit, json, page, .. } = options;
    let plan = Plan {
        recipes: chosen(&options.situations, last || fit),
        stacks: if options.stacks.is_empty() { Stack::ALL.to_vec() } else { options.stacks },
        seed: match options.seed {
            Some(seed) => seed,
            None => fresh_seed()?,
        },
        jobs: options.jobs,
        keep: options.keep,
        keeps_all: options.all,
    };
    if list {
        for recipe in &plan.recipes {
            println!(
                "{:12} {:32} {}",
                recipe.family,
                recipe.name,
                (recipe.make)(&mut Draw::new(plan.seed, recipe.name)).about
            );
        }
        return Ok(());
    }
    if fit {
        print!("{}", fit::run_all(&plan)?);
        return Ok(());
    }
    let outcome = run_all(&plan)?;
    let (last, others) = outcome.divided();
    if json {
        println!("{}", serde_json::to_string_pretty(&[&others, &last]).map_err(|e| e.to_string())?);
        return Ok(());
    }
    let mut text = others.to_table();
    if !last.cells.is_empty() {
        text += &format!(
            "\nFamilies that were written by somebody who had not read the rules:\n{}",
            last.to_table()
        );
    }
    print!("{text}");
    if page {
        let text = format!("{text}\nMarked in advance:\n{}", marks(&plan.recipes, plan.seed));
        crate::figures::page::put_on("docs/explain-bench.md", "explain", &text)?;
    }
    Ok(())
}

/// The situations that match a pattern, or all. A pattern alone does not choose what is tried last: somebody who has seen the
/// verdict on it can no longer try it for the first time.
fn chosen(patterns: &[String], with_last: bool) -> Vec<Recipe> {
    let is_named = |recipe: &Recipe| {
        patterns.is_empty()
            || patterns
                .iter()
                .any(|pattern| recipe.name.contains(pattern.as_str()) || recipe.family == *pattern)
    };
    let may_be = |recipe: &Recipe| with_last || !families::LAST.contains(&recipe.family);
    families::all().into_iter().filter(|recipe| may_be(recipe) && is_named(recipe)).collect()
}

/// What was marked in advance as not to be known from a vantage.
fn marks(recipes: &[Recipe], seed: u64) -> String {
    let mut lines: Vec<String> = Vec::new();
    for recipe in recipes {
        let blind = (recipe.make)(&mut Draw::new(seed, recipe.name)).expected.blind;
        lines.extend(blind.iter().map(|of| format!("{}, {}: {}\n", recipe.name, of.at.name(), of.reason)));
        lines.dedup();
    }
    lines.concat()
}

fn fresh_seed() -> Result<u64, String> {
    let bytes = inhost_runtime::entropy().map_err(|e| e.to_string())?;
    Ok(bytes.iter().take(4).fold(0, |seed, byte| seed << 8 | u64::from(*byte)))
}

/// A situation on a stack.
struct Job<'a> {
    recipe: &'a Recipe,
    stack: Stack,
}

/// Makes and judges all that is asked for.
fn run_all(plan: &Plan) -> Result<Outcome, String> {
    let mut outcome = Outcome { seed: plan.seed, cells: Vec::new(), unfit: Vec::new() };
    let take = |job: &Job<'_>, made: Result<Vec<Cell>, String>| match made {
        Ok(cells) => outcome.cells.extend(cells),
        Err(why) => outcome.unfit.push(format!("{} {}: {why}", job.recipe.name, job.stack.name())),
    };
    for_each(plan, |job, emulator| make(plan, job, emulator), take)?;
    outcome.cells.sort_by_key(|cell| plan.place(&cell.situation));
    Ok(outcome)
}

impl Plan {
    /// The place of a situation in the order of display.
    fn place(&self, name: &str) -> Option<usize> {
        self.recipes.iter().position(|recipe| recipe.name == name)
    }
}

/// Does something with each situation on each stack, and hands over what came of it.
fn for_each<T: Send>(
    plan: &Plan,
    work: impl Fn(&Job<'_>, Option<&Emulator>) -> Result<T, String> + Sync,
    take: impl FnMut(&Job<'_>, Result<T, String>) + Send,
) -> Result<(), String> {
    let is_real = plan.stacks.iter().any(|stack| *stack != Stack::Sim);
    let emulator = is_real.then(Emulator::start).transpose().map_err(|e| e.to_string())?;
    let take = Mutex::new(take);
    // The simulator first: it would take the processor from what runs under the real clock.
    for is_real in [false, true] {
        let stacks = plan.stacks.iter().filter(|stack| (**stack != Stack::Sim) == is_real);
        let jobs = stacks.flat_map(|&stack| plan.recipes.iter().map(move |recipe| Job { recipe, stack }));
        let waiting = Mutex::new(jobs.collect::<Vec<_>>());
        let threads = if is_real { plan.jobs } else { 2 };
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
                        let Some(job) = job else { return };
                        // A run leaves its thread in a namespace of its own.
                        let made =
                            std::thread::scope(|scope| scope.spawn(|| work(&job, emulator.as_ref())).join());
                        let made = made.unwrap_or_else(|_| Err("it panicked".to_owned()));
                        (take.lock().unwrap_or_else(PoisonError::into_inner))(&job, made);
                    }
                });
            }
        });
    }
    Ok(())
}

/// Makes a situation until it is what its name says, and judges it.
fn make(plan: &Plan, job: &Job<'_>, emulator: Option<&Emulator>) -> Result<Vec<Cell>, String> {
    let mut why = String::new();
    for attempt in 0..TRIES {
        let seed = plan.seed.wrapping_add(attempt << 32);
        let situation = (job.recipe.make)(&mut Draw::new(seed, job.recipe.name));
        let run = stacks::run(job.stack, &situation, seed, emulator)?;
        let truth = Truth::of(&run, &situation);
        let made = Made { situation: &situation, seed, run: &run, truth: &truth };
        if run.late.as_micros() > LATE_US {
            why = format!("the emulator was late by {} us", run.late.as_micros());
            continue;
        }
        if let Some(unfit) = truth.unfit(&situation, job.stack, &run) {
            why = unfit;
            if let Some(folder) = &plan.keep {
                why += &keep::keep_unfit(folder, job.recipe, job.stack, &made)?;
            }
            continue;
        }
        let mut cells = judge(job.recipe.name, &situation, job.stack, &run, &truth)?;
        if let Some(folder) = &plan.keep {
            for cell in cells.iter_mut().filter(|cell| plan.keeps_all || !cell.is_right) {
                cell.kept = Some(keep::keep(folder, job.recipe, &made, cell)?);
            }
        }
        return Ok(cells);
    }
    Err(why)
}

impl Outcome {
    /// The families that are tried last, and the others.
    fn divided(self) -> (Outcome, Outcome) {
        let recipes = families::all();
        let is_last = |cell: &Cell| {
            recipes
                .iter()
                .any(|recipe| recipe.name == cell.situation && families::LAST.contains(&recipe.family))
        };
        let (last, others) = self.cells.into_iter().partition(is_last);
        (
            Outcome { seed: self.seed, cells: last, unfit: Vec::new() },
            Outcome { seed: self.seed, cells: others, unfit: self.unfit },
        )
    }
}
