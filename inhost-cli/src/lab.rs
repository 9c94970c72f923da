//! `inhost lab`: experiments, those of the papers and one's own.

mod slurm;

use crate::args::{Lab, LabPlace, LabRun};
use crate::failure::{Failure, print_error};
use crate::output::{counted, show};
use crate::time::now_s;
use inhost_lab::EXPERIMENTS;
use inhost_lab::compare::Verdict;
use inhost_lab::experiment::{Experiment, Set};
use inhost_lab::report::{Chapter, Made, write};
use inhost_lab::runner::{Progress, RunOptions, run as run_points};
use inhost_lab::store::Store;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs a command.
pub fn run(command: &Lab) -> Result<(), Failure> {
    match command {
        Lab::List { results } => list(&results.results, results.json),
        Lab::Run(arguments) => measure(arguments),
        Lab::Compare { experiments, results } => compare(experiments, &results.results, results.json),
        Lab::Export { experiment, results } => {
            let store = existing(results)?;
            let experiment = known(experiment, &kept(&store, results)?)?;
            let chapter = Chapter::new(experiment, &store).map_err(|e| broken(results, e))?;
            check_measured(std::slice::from_ref(&chapter), results)?;
            chapter.csv(&store, &mut |line| show(line)).map_err(|e| broken(results, e))
        }
        Lab::Report { experiments, out, results } => report(experiments, out, results),
        Lab::Gather { files, results } => {
            // Before the file that takes them is made.
            files.iter().try_for_each(|file| existing(file).map(drop))?;
            let store = open(results)?;
            for file in files {
                let count = store.gather(file).map_err(|e| broken(file, e))?;
                show(&format!("{}: {count} runs\n", file.display()));
            }
            Ok(())
        }
        Lab::Show { experiment } => {
            known(experiment, &[])?;
            show(&text(experiment)?);
            Ok(())
        }
    }
}

fn broken(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::operation(format!("{}: {error}", path.display()))
}

fn open(path: &Path) -> Result<Store, Failure> {
    Store::open(path).map_err(|e| broken(path, e))
}

/// A store that is there, to be read.
fn existing(path: &Path) -> Result<Store, Failure> {
    match path.exists() {
        true => Store::open_to_read(path).map_err(|e| broken(path, e)),
        false => Err(Failure::operation(format!(
            "{}: there are no results; inhost lab run makes them",
            path.display()
        ))),
    }
}

/// The text of an experiment: of a file, or of one that comes with the program.
fn text(name: &str) -> Result<String, Failure> {
    if let Some((_, text)) = EXPERIMENTS.iter().find(|(own, _)| *own == name) {
        return Ok((*text).to_owned());
    }
    if !name.ends_with(".toml") {
        return Err(Failure::usage(format!(
            "there is no experiment {name}; inhost lab list has their names, and FILE.toml is one of your own"
        )));
    }
    std::fs::read_to_string(name).map_err(|e| Failure::operation(format!("cannot read {name}: {e}")))
}

fn parse(name: &str, text: &str) -> Result<Experiment, Failure> {
    Experiment::from_toml(name, text).map_err(|e| Failure::usage(e.to_string()))
}

/// An experiment by its file or its name; by the name also those of one's own that `kept` has.
fn known(name: &str, kept: &[Experiment]) -> Result<Experiment, Failure> {
    if let Some(experiment) = kept.iter().find(|of| of.name == name) {
        return Ok(experiment.clone());
    }
    let (own, text) = (own_name(name), text(name)?);
    // What is wrong is told of the file, and not of the name that the experiment has from it.
    let of_file = |e: inhost_lab::experiment::ExperimentError| {
        let said = e.to_string();
        Failure::usage(said.strip_prefix(own).map_or(said.clone(), |why| format!("{name}{why}")))
    };
    let experiment = Experiment::from_toml(own, &text).map_err(of_file)?;
    match own == name || !is_taken(own) || built_in()?.contains(&experiment) {
        true => Ok(experiment),
        false => Err(Failure::usage(format!(
            "{name}: {own} is the name of what comes with the program; give the file another name"
        ))),
    }
}

/// Whether an experiment or a set that comes with the program has this name.
fn is_taken(name: &str) -> bool {
    EXPERIMENTS.iter().any(|(own, _)| *own == name) || set_of(name).is_some()
}

/// The set of this name that comes with the program.
fn set_of(name: &str) -> Option<Set> {
    [Set::Papers, Set::Today, Set::Classic].into_iter().find(|set| set.name() == name)
}

/// What an experiment in a file is called.
fn own_name(name: &str) -> &str {
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
    stem.filter(|_| name.ends_with(".toml")).unwrap_or(name)
}

fn built_in() -> Result<Vec<Experiment>, Failure> {
    EXPERIMENTS.iter().map(|(name, text)| parse(name, text)).collect()
}

/// The user's own experiments that were run into this store. One that this version does not take is told, and left out.
fn kept(store: &Store, path: &Path) -> Result<Vec<Experiment>, Failure> {
    let kept = store.kept().map_err(|e| broken(path, e))?;
    let read = |(name, text): &(String, String)| match is_taken(name) {
        true => {
            let why =
                "is the name of what comes with the program now; run your file again under another name";
            print_error(format_args!("{}: {name} {why}", path.display()));
            None
        }
        false => Experiment::from_toml(name, text).map_err(print_error).ok(),
    };
    Ok(kept.iter().filter_map(read).collect())
}

/// Those that are named, with the sets' own; all of them for no names.
fn chosen(names: &[String], kept: &[Experiment]) -> Result<Vec<Experiment>, Failure> {
    let built_in = built_in()?;
    if names.is_empty() {
        return Ok(built_in.into_iter().chain(kept.iter().cloned()).collect());
    }
    let mut found = Vec::new();
    for name in names {
        match set_of(name) {
            Some(set) => found.extend(built_in.iter().filter(|of| of.set == set).cloned()),
            None => found.push(known(name, kept)?),
        }
    }
    Ok(found)
}

fn list(results: &Path, is_json: bool) -> Result<(), Failure> {
    let store = if results.exists() { Some(existing(results)?) } else { None };
    let kept = store.as_ref().map_or_else(|| Ok(Vec::new()), |store| kept(store, results))?;
    let mut lines = Vec::new();
    for experiment in chosen(&[], &kept)? {
        let runs = experiment.points() * experiment.seeds as usize;
        let mut done = 0;
        if let Some(store) = &store {
            for number in 0..experiment.points() {
                let rows =
                    store.rows(&experiment, &experiment.point(number)).map_err(|e| broken(results, e))?;
                done += rows.iter().filter(|row| row.result.is_ok()).count();
            }
        }
        lines.push((experiment, runs, done));
    }
    if is_json {
        let values: Vec<_> = lines
            .iter()
            .map(|(of, runs, done)| {
                json!({ "name": of.name, "title": of.title, "source": of.source, "set": of.set.name(), "runs": runs, "done": done })
            })
            .collect();
        show(&format!("{}\n", json!(values)));
        return Ok(());
    }
    for (of, runs, done) in lines {
        show(&format!("{:<22} {:<8} {:>5} of {:<5} {}\n", of.name, of.set.name(), done, runs, of.title));
    }
    Ok(())
}

fn measure(arguments: &LabRun) -> Result<(), Failure> {
    // Before the store is made: what is not an experiment leaves none behind.
    let results = &arguments.results;
    let before = if results.exists() { kept(&open(results)?, results)? } else { Vec::new() };
    let experiments = chosen(&arguments.experiments, &before)?;
    if arguments.on == LabPlace::Slurm {
        slurm::find()?;
    }
    let store = open(results)?;
    for file in arguments.experiments.iter().filter(|name| name.ends_with(".toml")) {
        let name = own_name(file);
        if !is_taken(name) {
            store.keep(name, &text(file)?).map_err(|e| broken(results, e))?;
        }
    }
    if arguments.on == LabPlace::Slurm {
        return slurm::run(arguments, &experiments);
    }
    let is_stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The second one ends the program at once.
        signal_hook::flag::register_conditional_shutdown(signal, 130, is_stopped.clone())
            .and_then(|_| signal_hook::flag::register(signal, is_stopped.clone()))
            .map_err(|e| Failure::operation(format!("signals cannot be received: {e}")))?;
    }
    let mut options = RunOptions::default();
    options.workers = arguments.workers.map_or(options.workers, usize::from);
    options.is_again = arguments.again;
    options.shard = arguments.part.unwrap_or(options.shard);
    let mut failed = 0;
    for experiment in &experiments {
        let mut line = Line::new(arguments.quiet);
        let mut told = |progress: Progress<'_>| line.take(&experiment.name, &progress);
        let summary = run_points(experiment, &store, &options, &is_stopped, &mut told)
            .map_err(|e| broken(&arguments.results, e))?;
        failed += summary.failed;
        line.end();
        if summary.is_stopped {
            return Err(Failure::operation("interrupted; the same command goes on where it was"));
        }
        if !arguments.quiet && arguments.part.is_none() {
            let chapter =
                Chapter::new(experiment.clone(), &store).map_err(|e| broken(&arguments.results, e))?;
            show(&if !chapter.is_compared() { chapter.text() } else { chapter.compared_text() });
            tell_strange_names(&chapter);
        }
    }
    match failed {
        0 => Ok(()),
        count => Err(Failure::operation(format!("{count} runs failed"))),
    }
}

/// A line on the terminal that tells how far it is.
struct Line {
    is_shown: bool,
    runs: usize,
    over: usize,
    failures: BTreeSet<String>,
}

/// Most experiments that a message names.
const NAMES_MAX: usize = 5;
/// Most reasons of failures that are told.
const REASONS_MAX: usize = 10;

impl Line {
    fn new(is_quiet: bool) -> Line {
        Line {
            is_shown: !is_quiet && std::io::stderr().is_terminal(),
            runs: 0,
            over: 0,
            failures: BTreeSet::new(),
        }
    }
    fn take(&mut self, name: &str, progress: &Progress<'_>) {
        match progress {
            Progress::Begins { runs, done } => {
                self.runs = *runs;
                if *done > 0 && self.is_shown {
                    eprintln!("{name}: {done} runs were made before");
                }
            }
            Progress::Done(point, row) => {
                self.over += 1;
                if let Err(why) = &row.result {
                    // Each reason once; all are in the results.
                    if self.failures.len() < REASONS_MAX && self.failures.insert(why.clone()) {
                        print_error(format_args!("{name}: {}: seed {}: {why}", point.label, row.seed));
                    }
                }
                if self.is_shown {
                    eprint!("\r\x1b[K{name}: {} of {}  {}", self.over, self.runs, point.label);
                    let _ = std::io::stderr().flush();
                }
            }
            _ => {}
        }
    }
    fn end(&self) {
        if self.is_shown {
            eprint!("\r\x1b[K");
        }
    }
}

fn chapters(names: &[String], results: &Path) -> Result<Vec<Chapter>, Failure> {
    let store = existing(results)?;
    let experiments = chosen(names, &kept(&store, results)?)?;
    let made = experiments.into_iter().map(|of| Chapter::new(of, &store).map_err(|e| broken(results, e)));
    let chapters = made.collect::<Result<Vec<_>, _>>()?;
    check_measured(&chapters, results)?;
    Ok(chapters.into_iter().filter(|chapter| !names.is_empty() || chapter.is_told()).collect())
}

/// Fails where nothing was measured: nothing holds then.
fn check_measured(chapters: &[Chapter], results: &Path) -> Result<(), Failure> {
    if chapters.iter().any(Chapter::is_measured) {
        return Ok(());
    }
    let reasons: BTreeSet<&str> = chapters.iter().flat_map(Chapter::not_here).collect();
    let why = match reasons.is_empty() {
        true => "inhost lab run NAME measures an experiment".to_owned(),
        false => reasons.into_iter().collect::<Vec<_>>().join("; "),
    };
    let names: Vec<&str> = chapters.iter().map(|chapter| chapter.experiment.name.as_str()).collect();
    let of = if names.len() > NAMES_MAX { String::new() } else { format!(" of {}", names.join(", ")) };
    Err(Failure::operation(format!("{}: nothing{of} was measured; {why}", results.display())))
}

fn compare(names: &[String], results: &Path, is_json: bool) -> Result<(), Failure> {
    let chapters = chapters(names, results)?;
    let compared =
        || chapters.iter().flat_map(|chapter| chapter.compared.iter().map(move |of| (chapter, of)));
    if is_json {
        let value = |(chapter, of): (&Chapter, &inhost_lab::compare::Compared)| {
            json!({
                "experiment": chapter.experiment.name, "at": of.at, "measure": of.measure, "what": of.what, "paper": of.paper,
                "ours": of.ours.as_ref().map(|ours| ours.mean), "half_width": of.ours.as_ref().and_then(|ours| ours.half_width),
                "error_percent": of.error_percent, "verdict": of.verdict.to_string(), "note": of.note,
            })
        };
        let shapes = chapters.iter().flat_map(|chapter| chapter.shaped.iter().map(move |of| (chapter, of)));
        let shape = |(chapter, of): (&Chapter, &inhost_lab::compare::Shaped)| json!({ "experiment": chapter.experiment.name, "shape": of.text, "values": of.values, "verdict": of.verdict.to_string() });
        let fits = chapters.iter().flat_map(|chapter| chapter.fitted.iter().map(move |of| (chapter, of)));
        let fit = |(chapter, of): (&Chapter, &inhost_lab::fit::Fitted)| {
            let factors = of.factors.iter().map(|of| json!({ "name": of.name, "value": of.value, "half_width": of.half_width, "paper": of.paper }));
            json!({ "experiment": chapter.experiment.name, "fit": of.text, "factors": factors.collect::<Vec<_>>(), "trouble": of.trouble.map(|why| why.to_string()) })
        };
        let not_here =
            chapters.iter().flat_map(|chapter| chapter.not_here().into_iter().map(move |why| (chapter, why)));
        let reason =
            |(chapter, why): (&Chapter, &str)| json!({ "experiment": chapter.experiment.name, "why": why });
        let all = json!({ "figures": compared().map(value).collect::<Vec<_>>(), "shapes": shapes.map(shape).collect::<Vec<_>>(), "fits": fits.map(fit).collect::<Vec<_>>(), "not_measurable": not_here.map(reason).collect::<Vec<_>>() });
        show(&format!("{all}\n"));
    } else {
        chapters.iter().for_each(|chapter| show(&chapter.compared_text()));
    }
    let count = |verdict| chapters.iter().map(|chapter| chapter.count(verdict)).sum::<usize>();
    match (count(Verdict::Missed), count(Verdict::Unknown), chapters.iter().map(Chapter::unfitted).sum()) {
        (0, 0, 0_usize) => Ok(()),
        (missed, unknown, unfitted) => Err(Failure::operation(format!(
            "of the judged figures, {} hold, {missed} are missed, {unknown} are of a measure that there is not; \
             {} cannot be fitted",
            count(Verdict::Holds),
            counted(unfitted as u64, "sum")
        ))),
    }
}

/// Tells what an experiment wants to be shown that there is not. How much that is.
fn tell_strange_names(chapter: &Chapter) -> usize {
    let strange = chapter.strange_names();
    strange.iter().for_each(|why| print_error(format_args!("{}: {why}", chapter.experiment.name)));
    strange.len()
}

fn report(names: &[String], out: &Path, results: &Path) -> Result<(), Failure> {
    let chapters = chapters(names, results)?;
    let now = jiff::Timestamp::from_second(i64::try_from(now_s()).unwrap_or(0)).unwrap_or_default();
    let day = now.strftime("%Y-%m-%d").to_string();
    let trouble = write(out, &chapters, &Made::here(day)).map_err(|e| broken(out, e))?;
    trouble.iter().for_each(print_error);
    show(&format!("{}\n{}\n", out.join("report.html").display(), out.join("report.md").display()));
    match chapters.iter().map(tell_strange_names).sum::<usize>() {
        0 => Ok(()),
        count => Err(Failure::operation(format!("{count} names of what is to be shown are not there"))),
    }
}
