//! Wrong cells in a folder, and their replay.

use super::families;
use super::judge::{self, Case, Cell, Truth, cell, place, verdict};
use super::situation::{Draw, Recipe, Situation, Vantage};
use super::stacks::{Run, Stack};
use inhost_base::Instant;
use inhost_explain::{Cause, Known};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What is needed to judge a cell again, beside the capture.
#[derive(Serialize, Deserialize)]
struct Kept {
    situation: String,
    stack: String,
    vantage: String,
    seed: u64,
    main_per_cent: f64,
    known: Option<Known>,
    /// For people: what happens, what the truth is, and what was wrong.
    about: String,
    truth: Vec<(String, f64)>,
    /// What held when in truth: milliseconds since the first packet.
    spans_ms: Vec<(f64, f64, String)>,
    wrong: Vec<String>,
    /// The programs' notes, by side: milliseconds since the first packet.
    notes: [Vec<(f64, String)>; 2],
}

/// A situation that was made.
pub struct Made<'a> {
    /// The situation.
    pub situation: &'a Situation,
    /// Its seed.
    pub seed: u64,
    /// The run.
    pub run: &'a Run,
    /// The truth of it.
    pub truth: &'a Truth,
}

/// Keeps a cell in a folder of its own; gives its name.
pub fn keep(folder: &Path, recipe: &Recipe, made: &Made<'_>, cell: &Cell) -> Result<String, String> {
    let &Made { situation, seed, run, truth } = made;
    let folder = folder.join(format!("{}-{}-{}", recipe.name, cell.stack, cell.vantage));
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let vantage = vantage_of(cell.vantage)?;
    let known = run.known[situation.ours].clone().filter(|_| vantage == Vantage::Live);
    let since_ms = |at: Instant| (at.since(truth.seen[0][0]).as_nanos() / 1000) as f64 / 1000.0;
    let notes = run
        .notes
        .each_ref()
        .map(|notes| notes.iter().map(|(at, note)| (since_ms(*at), format!("{note:?}"))).collect());
    let spans = truth
        .account
        .spans
        .iter()
        .map(|(from, to, cause)| (since_ms(*from), since_ms(*to), cause.text().to_owned()));
    let kept = Kept {
        situation: recipe.name.to_owned(),
        stack: cell.stack.to_owned(),
        vantage: cell.vantage.to_owned(),
        seed,
        main_per_cent: cell.main_per_cent,
        known,
        about: situation.about.clone(),
        truth: cell.truth.iter().map(|(cause, per_cent)| (cause.text().to_owned(), *per_cent)).collect(),
        spans_ms: spans.collect(),
        wrong: cell.wrong.clone(),
        notes,
    };
    let text = serde_json::to_string_pretty(&kept).map_err(|e| e.to_string())?;
    std::fs::write(folder.join("truth.json"), text).map_err(failed)?;
    std::fs::write(folder.join("capture.pcapng"), &run.captures[place(situation, vantage)])
        .map_err(failed)?;
    Ok(folder.display().to_string())
}

/// Judges a kept cell again.
pub fn replay(folder: &Path) -> Result<Cell, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    let text = std::fs::read_to_string(folder.join("truth.json")).map_err(failed)?;
    let kept: Kept = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let file = std::fs::read(folder.join("capture.pcapng")).map_err(failed)?;
    let recipe = families::all().into_iter().find(|recipe| recipe.name == kept.situation);
    let recipe = recipe.ok_or_else(|| format!("no situation is called {:?}", kept.situation))?;
    let situation = (recipe.make)(&mut Draw::new(kept.seed, recipe.name));
    let stack = Stack::of(&kept.stack)?;
    let truth = kept.truth.iter().filter_map(|(text, per_cent)| {
        Some((*Cause::ALL.iter().find(|cause| cause.text() == text)?, *per_cent))
    });
    let truth: Vec<_> = truth.collect();
    let case = Case {
        expected: &situation.expected,
        stack,
        names: judge::names(&situation, stack),
        vantage: vantage_of(&kept.vantage)?,
        main_per_cent: kept.main_per_cent,
        largest: truth.first().map(|(cause, _)| *cause),
    };
    let verdict = verdict(&file, kept.known.as_ref())?;
    let mut cell = cell(recipe.name, &situation, &case, verdict.as_ref(), truth);
    cell.kept = Some(folder.display().to_string());
    Ok(cell)
}

fn vantage_of(name: &str) -> Result<Vantage, String> {
    let found = Vantage::ALL.into_iter().find(|vantage| vantage.name() == name);
    found.ok_or_else(|| format!("no vantage is called {name:?}"))
}

/// Keeps the capture at the sender of a run that is not what its name says; gives the words for where.
pub fn keep_unfit(folder: &Path, recipe: &Recipe, stack: Stack, made: &Made<'_>) -> Result<String, String> {
    let shares = made.truth.shares(made.situation, Vantage::Sender);
    let wrong = Cell::unfit(recipe.name, made.situation, stack, shares);
    keep(&folder.join("unfit"), recipe, made, &wrong).map(|folder| format!(" ({folder})"))
}
