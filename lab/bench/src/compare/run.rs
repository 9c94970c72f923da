//! The rounds: every stack of a trial in turn, again and again, so that disturbances of the machine meet all of them
//! alike.

use super::plan::{Place, Program, Subject, Trial};
use super::result::{Answer, Series, Taken};
use super::{arena, counted, fit, peers};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// How much is run.
#[derive(Clone, Debug)]
pub struct Extent {
    /// Trials by name; all where empty.
    pub only: Vec<String>,
    /// Rounds.
    pub rounds: usize,
    /// Seconds of each run.
    pub seconds: f64,
    /// Peers that are left out.
    pub without: Vec<String>,
}

/// Runs it all, and tells how it goes on standard error.
pub fn all<'a>(trials: &[&'a Trial], extent: &Extent) -> Result<Vec<Taken<'a>>, String> {
    let programs = build(trials, extent)?;
    let mut taken: Vec<Taken<'a>> = trials.iter().map(|trial| begin(trial, extent)).collect();
    for round in 0..extent.rounds {
        for taken in &mut taken {
            let count = taken.trial.subjects.len();
            // The first one is last in the next round.
            for place in (0..count).map(|n| (n + round) % count) {
                let subject = &taken.trial.subjects[place];
                let series = &mut taken.series[place];
                let Some(program) = programs.get(&subject.program).filter(|_| series.left_out.is_none())
                else {
                    continue;
                };
                let answer = one(taken.trial, subject, program, extent.seconds)?;
                tell(round, extent.rounds, taken.trial, subject, &answer);
                series.answers.insert(round, answer);
            }
        }
    }
    Ok(taken)
}

fn begin<'a>(trial: &'a Trial, extent: &Extent) -> Taken<'a> {
    let series = |subject: &Subject| Series { left_out: left_out(subject, extent), ..Series::default() };
    Taken { trial, series: trial.subjects.iter().map(series).collect() }
}

fn left_out(subject: &Subject, extent: &Extent) -> Option<String> {
    let name = peers::name(subject.program)?;
    extent.without.iter().any(|word| word == name).then(|| format!("left out by --without {name}"))
}

/// Builds whatever the trials need.
fn build(trials: &[&Trial], extent: &Extent) -> Result<BTreeMap<Program, PathBuf>, String> {
    let mut programs = BTreeMap::new();
    for subject in trials.iter().flat_map(|trial| trial.subjects) {
        if left_out(subject, extent).is_some() || programs.contains_key(&subject.program) {
            continue;
        }
        eprintln!("building what is needed for {}", subject.stack);
        let path = peers::build(subject.program).map_err(|why| match peers::name(subject.program) {
            Some(name) => format!("{why}\nor leave it out with --without {name}"),
            None => why,
        })?;
        programs.insert(subject.program, path);
    }
    Ok(programs)
}

fn one(trial: &Trial, subject: &Subject, program: &Path, seconds: f64) -> Result<Answer, String> {
    match trial.place {
        Place::Alone if subject.word.contains(':') => arena::run(program, subject.word, seconds),
        Place::Alone if subject.program == Program::Counting => {
            ask(Command::new(program).args(["memory", "--json", subject.word]))
        }
        Place::Alone => ask(Command::new(program).arg(subject.word).arg(seconds.to_string())),
        Place::Counted => counted::answer(program, &subject.word.split(' ').collect::<Vec<_>>()),
        Place::Sizes => {
            let each = seconds / 2.0;
            let word = |mtu: &u32| format!("memory-bulk-{mtu}{}", subject.word);
            let runs: Result<Vec<Answer>, String> = fit::MTUS_BYTES
                .iter()
                .map(|mtu| ask(Command::new(program).arg(word(mtu)).arg(each.to_string())))
                .collect();
            runs.and_then(|runs| fit::answer(&runs))
        }
    }
    .map_err(|why| format!("{}, {}: {why}", trial.name, subject.stack))
}

/// Runs a process that answers by one line of JSON.
fn ask(command: &mut Command) -> Result<Answer, String> {
    read(command.stdin(Stdio::null()).output().map_err(|e| format!("{command:?}: {e}"))?)
}

/// The answer of a process that has ended.
pub fn read(output: Output) -> Result<Answer, String> {
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.trim()).map_err(|e| format!("the answer {text:?} is not understood: {e}"))
}

fn tell(round: usize, rounds: usize, trial: &Trial, subject: &Subject, answer: &Answer) {
    let figures: Vec<String> = trial
        .figures
        .iter()
        .filter_map(|figure| Some(format!("{:.4} {}", answer.figures.get(figure.key)?, figure.unit)))
        .take(3)
        .collect();
    eprintln!("round {} of {rounds}: {}, {}: {}", round + 1, trial.name, subject.stack, figures.join(", "));
}
