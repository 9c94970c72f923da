//! One seed after the other on both sides: played, compared, made small, and put into its class.

use super::classes::{Class, Classes, Verdict};
use super::compare::{Difference, first_difference};
use super::draw::draw;
use super::exchange::Exchange;
use super::reduce::reduce;
use super::watch::{Watched, watch};
use crate::kernel::Kernel;
use crate::ours::{Offloads, Ours};
use inhost_base::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time;

/// How often the kernel must show a difference.
const REPEATS: usize = 3;
/// How often an exchange is played again where the player was late.
const DISTURBED_LIMIT: usize = 10;
/// Of what undoing a choice makes so many classes are shown.
const SHOWN_WITHOUT: usize = 4;
/// An exchange takes at most so long on the kernel, where the player is not late.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// As late as the player may be.
const TOLERABLE_LATENESS: Duration = Duration::from_millis(10);

/// Result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Seeds that were played.
    pub played: u64,
    /// Seeds of which no exchange with a defined outcome was drawn.
    pub undefined: u64,
    /// Differences that the kernel did not repeat.
    pub unsteady: u64,
    /// Differences of classes that may be met: of each its verdict, and how many.
    pub known: BTreeMap<String, (Verdict, u64)>,
    /// Everything else, by signature.
    pub found: BTreeMap<String, Found>,
    /// Open classes that were met more often than they may be.
    pub too_often: Vec<String>,
    /// Errors of the player.
    pub broken: Vec<String>,
    /// Seeds whose exchange took longer than it may, and not because the player was late.
    pub too_long: Vec<u64>,
    /// The longest that an exchange took on the kernel.
    pub longest: Duration,
}

/// A class of differences that fails a run.
#[derive(Debug)]
pub struct Found {
    /// Occurrences.
    pub count: u64,
    /// The lowest seed of them.
    pub seed: u64,
    /// A small exchange that shows it, and what both sides do in it.
    pub small: Option<Played>,
    /// The class that was thought to be over.
    pub returned: Option<Class>,
}

/// An exchange played on both sides.
#[derive(Clone, Debug)]
pub struct Played {
    /// The exchange.
    pub exchange: Exchange,
    /// The kernel's behaviour.
    pub kernel: Watched,
    /// Our behaviour, each step at the kernel's time.
    pub ours: Watched,
    /// The first difference.
    pub difference: Option<Difference>,
}

/// Plays an exchange on both sides; an error is one of the player or the machine.
pub fn play(exchange: &Exchange) -> Result<Played, String> {
    let mut disturbed = 0;
    loop {
        let kernel = on_kernel(exchange)?;
        let late = kernel.lateness > TOLERABLE_LATENESS;
        let ours = on_ours_at(exchange, &kernel.times)?;
        let difference = first_difference(exchange, &kernel, &ours);
        disturbed += 1;
        // A late player is no matter where both did the same.
        if difference.is_none() || !late || disturbed == DISTURBED_LIMIT {
            return Ok(Played { exchange: exchange.clone(), kernel, ours, difference });
        }
        std::thread::park_timeout(time::Duration::from_millis(50));
    }
}
/// Our behaviour without late steps.
pub fn on_ours(exchange: &Exchange) -> Result<Watched, String> {
    let times: Vec<Instant> = exchange.times().into_iter().map(|time| Instant::ZERO + time).collect();
    on_ours_at(exchange, &times)
}
fn on_ours_at(exchange: &Exchange, times: &[Instant]) -> Result<Watched, String> {
    let mut side = Ours::new(&exchange.script(), Offloads::default())?;
    watch(exchange, &mut side, times)
}
/// In a thread and its own network namespace.
fn on_kernel(exchange: &Exchange) -> Result<Watched, String> {
    let exchange = &exchange.without_blind_messages();
    let script = exchange.script();
    let play = || {
        let mut side = Kernel::new(&script)?;
        let start = crate::side::Side::now(&side);
        let times: Vec<Instant> = exchange.times().into_iter().map(|time| start + time).collect();
        watch(exchange, &mut side, &times)
    };
    std::thread::scope(|scope| scope.spawn(play).join())
        .unwrap_or_else(|_| Err("the kernel's thread ended in a panic".into()))
}

/// Whether the kernel shows `signature` each time; the last of the plays.
pub fn repeats(exchange: &Exchange, signature: &str, times: usize) -> Result<Option<Played>, String> {
    let mut last = None;
    for _ in 0..times {
        let played = play(exchange)?;
        match &played.difference {
            Some(difference) if difference.signature == signature => last = Some(played),
            _ => return Ok(None),
        }
    }
    Ok(last)
}

/// Parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The first seed.
    pub first: u64,
    /// Number of seeds.
    pub count: u64,
    /// The distance from one to the next.
    pub every: u64,
    /// Number of parallel players.
    pub jobs: usize,
    /// After so long no further seed is begun.
    pub time: Option<time::Duration>,
    /// A choice of the profile that is undone.
    pub without: Option<&'static str>,
    /// Reports differences as drawn, not reduced.
    pub as_drawn: bool,
}

/// Plays the seeds of `plan`.
pub fn judge(classes: &Classes, plan: Plan) -> Result<Report, String> {
    let Plan { first, count, every, jobs, time: deadline, .. } = plan;
    let next = AtomicU64::new(0);
    let report = Mutex::new(Report::default());
    #[expect(clippy::disallowed_methods, reason = "the kernel lives in real time")]
    let began = time::Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while deadline.is_none_or(|deadline| began.elapsed() < deadline) {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    if place >= count {
                        return;
                    }
                    let seed = first + place * every;
                    if let Err(why) = judge_seed(seed, &plan, classes, &report) {
                        with(&report, |report| report.broken.push(format!("seed {seed}: {why}")));
                    }
                }
            });
        }
    });
    let mut report = report.into_inner().map_err(|_| "a judge's thread ended in a panic")?;
    report.count_open(classes);
    Ok(report)
}
/// Whether ours does something else in the second.
fn matters(whole: &Exchange, without: &Exchange) -> Result<bool, String> {
    let times: Vec<Instant> = whole.times().into_iter().map(|time| Instant::ZERO + time).collect();
    let (one, other) = (on_ours_at(whole, &times)?, on_ours_at(without, &times)?);
    Ok(first_difference(whole, &one, &other).is_some())
}
fn with<T>(report: &Mutex<Report>, what: impl FnOnce(&mut Report) -> T) -> Option<T> {
    report.lock().ok().map(|mut report| what(&mut report))
}

fn judge_seed(seed: u64, plan: &Plan, classes: &Classes, report: &Mutex<Report>) -> Result<(), String> {
    let Some(mut exchange) = draw(seed)? else {
        with(report, |report| report.undefined += 1);
        return Ok(());
    };
    let without = plan.without;
    let whole = exchange.clone();
    exchange.host.extend(without.map(|choice| ("without", choice)));
    if without.is_some() && !matters(&whole, &exchange)? {
        return Ok(());
    }
    let played = play(&exchange)?;
    with(report, |report| {
        report.played += 1;
        let took = played.kernel.times.last().map_or(Duration::ZERO, |end| end.since(Instant::ZERO));
        report.longest = report.longest.max(took);
        if took > TIME_LIMIT && played.kernel.lateness <= TOLERABLE_LATENESS {
            report.too_long.push(seed);
        }
    });
    let Some(difference) = &played.difference else { return Ok(()) };
    if without.is_some() {
        let is_shown = with(report, |report| report.found.len() >= SHOWN_WITHOUT);
        if is_shown == Some(true) {
            return Ok(());
        }
        // The profile itself does as the kernel does.
        let ours = on_ours_at(&whole, &played.kernel.times)?;
        if first_difference(&whole, &played.kernel, &ours).is_some() {
            return Ok(());
        }
    }
    let signature = &difference.signature;
    let class = classes.of(signature);
    if let Some(class) = class.filter(|class| class.verdict.is_allowed()) {
        with(report, |report| {
            let count = report.known.entry(class.name.clone()).or_insert((class.verdict, 0));
            count.1 += 1;
        });
        return Ok(());
    }
    if repeats(&exchange, signature, REPEATS - 1)?.is_none() {
        with(report, |report| report.unsteady += 1);
        return Ok(());
    }
    let is_first = with(report, |report| {
        let found = report.found.entry(signature.clone()).or_insert_with(|| Found {
            count: 0,
            seed,
            small: None,
            returned: class.cloned(),
        });
        found.count += 1;
        found.seed = found.seed.min(seed);
        found.count == 1
    });
    if is_first == Some(true) {
        let small = if plan.as_drawn { None } else { reduce(&exchange, difference)? };
        with(report, |report| {
            if let Some(found) = report.found.get_mut(signature) {
                found.small = Some(small.unwrap_or(played.clone()));
            }
        });
    }
    Ok(())
}
