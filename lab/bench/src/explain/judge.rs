//! The judge: a cell is a situation on a stack from a vantage, and its verdict is right or not.

use super::situation::{Expected, Situation, Vantage};
use super::stacks::{CLIENT_PORT, Run, Stack};
use super::truth::{self, Account};
use inhost_base::Instant;
use inhost_explain::{Cause, Known, Options, Sign, Verdict, explain, live};
use serde::Serialize;

/// A second cause counts from this share on.
const SECOND_PER_CENT: f64 = 15.0;
/// How far a share may be from the truth, in points.
const SHARE_POINTS: f64 = 10.0;
/// A verdict that is so sure must not be wrong.
pub const SURE: f64 = 0.8;
/// The main cause is ahead of any other by at least so much, or the situation is not what its name says.
const AHEAD_POINTS: f64 = 5.0;

/// What is judged: a verdict with the truth about it.
pub struct Case<'a> {
    /// What is expected.
    pub expected: &'a Expected,
    /// The stack.
    pub stack: Stack,
    /// The vantage.
    pub vantage: Vantage,
    /// The names under which the main cause's share is counted.
    pub names: Vec<Cause>,
    /// The truth's share of the main cause, in per cent.
    pub main_per_cent: f64,
    /// The cause with the largest share in the time that the vantage saw.
    pub largest: Option<Cause>,
}

/// The names under which the main cause's share is counted. Our sender paces by default: it spreads its window over the round
/// trip. The time between two of its segments is then the window's and the pacer's, by the definitions of both, and a
/// verdict may divide it as it likes. The main cause is the window: a faster pacer sends no more in a round trip.
pub fn names(situation: &Situation, stack: Stack) -> Vec<Cause> {
    let mut names = situation.expected.main.clone();
    let is_paced =
        stack == Stack::Sim || stack == Stack::Tap && situation.ours == situation.expected.direction;
    let is_window =
        |name: &Cause| matches!(name, Cause::CongestionWindow | Cause::SlowStart | Cause::SlowStartRestart);
    if is_paced && names.iter().any(is_window) {
        names.push(Cause::Pacing);
    }
    names
}

/// A cell of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The situation, with its figures.
    pub situation: String,
    /// See above.
    pub about: String,
    /// The stack.
    pub stack: &'static str,
    /// The vantage.
    pub vantage: &'static str,
    /// Whether the verdict is right.
    pub is_right: bool,
    /// What is wrong.
    pub wrong: Vec<String>,
    /// What cannot be known from there, marked in advance.
    pub unknowable: Vec<&'static str>,
    /// The main cause that was named.
    pub said: Option<Cause>,
    /// The main cause in truth.
    pub main: Vec<Cause>,
    /// Its share in truth.
    pub main_per_cent: f64,
    /// How far the named share is from it, in points.
    pub error_points: Option<f64>,
    /// How sure the verdict is.
    pub confidence: f64,
    /// The diagnosis.
    pub diagnosis: String,
    /// Shares of the verdict in the direction that matters.
    pub shares: Vec<(Cause, f64)>,
    /// Shares in truth.
    pub truth: Vec<(Cause, f64)>,
    /// Where the capture and the truth are kept.
    pub kept: Option<String>,
}

/// The truth of a run, before anything is judged.
pub struct Truth {
    /// The direction that the situation is about.
    pub account: Account,
    /// From the first to the last packet that the client, the middle and the server saw.
    pub seen: [[Instant; 2]; 3],
}

impl Truth {
    /// Of a run.
    pub fn of(run: &Run, situation: &Situation) -> Truth {
        let account = truth::account(run, situation, situation.expected.direction);
        let ours = || run.log.iter().filter(|passed| passed.head.ports.contains(&CLIENT_PORT));
        let at = |place: usize| {
            let times =
                ours().filter_map(
                    move |passed| if passed.way == place { Some(passed.left) } else { passed.arrived },
                );
            [times.clone().min(), times.max()].map(Option::unwrap_or_default)
        };
        let (client, server) = (at(0), at(1));
        let middle = [client[0] + situation.path.near, client[1].max(server[1])];
        Truth { account, seen: [client, middle, server] }
    }
    /// Shares as they are from a vantage.
    pub fn shares(&self, situation: &Situation, vantage: Vantage) -> Vec<(Cause, f64)> {
        self.account.shares(self.seen[place(situation, vantage)])
    }
    /// Why the run is not what its name says; none when it is.
    pub fn unfit(&self, situation: &Situation, stack: Stack, run: &Run) -> Option<String> {
        let expected = &situation.expected;
        let shares = self.shares(situation, Vantage::Sender);
        let names = names(situation, stack);
        let main = sum(&shares, &names);
        let ahead =
            shares.iter().find(|(cause, per_cent)| !names.contains(cause) && *per_cent + AHEAD_POINTS > main);
        if let Some((cause, per_cent)) = ahead {
            return Some(format!(
                "{} has {per_cent:.0} %, {} {main:.0} %",
                cause.text(),
                words(&expected.main)
            ));
        }
        let second = sum(&shares, &expected.second);
        if !expected.second.is_empty() && expected.second_sign.is_none() && second < SECOND_PER_CENT + 2.0 {
            return Some(format!("{} has {second:.0} % only", words(&expected.second)));
        }
        let is_missing = |sign: &Sign| match sign {
            Sign::RandomLoss | Sign::BurstLoss => !run
                .log
                .iter()
                .any(|passed| passed.way == expected.direction && (passed.lost.is_some() || passed.damaged)),
            _ => false,
        };
        expected
            .signs
            .iter()
            .chain(&expected.second_sign)
            .find(|sign| is_missing(sign))
            .map(|sign| format!("no {}", sign.text()))
    }
}

/// The place of a vantage: 0 the client, 1 the middle, 2 the server.
pub fn place(situation: &Situation, vantage: Vantage) -> usize {
    let sender = 2 * situation.expected.direction;
    match vantage {
        Vantage::Sender => sender,
        Vantage::Middle => 1,
        Vantage::Receiver => 2 - sender,
        Vantage::Live => 2 * situation.ours,
    }
}

/// The verdict on the connection under test; none when the capture does not have it.
pub fn verdict(file: &[u8], known: Option<&Known>) -> Result<Option<Verdict>, String> {
    let options = Options::default();
    if let Some(known) = known {
        return live(known, file, &options).map(Some).map_err(|e| e.to_string());
    }
    let report = explain(file, &options).map_err(|e| e.to_string())?;
    Ok(report.conversations.into_iter().find(|of| is_client(&of.client) || is_client(&of.server)))
}

fn is_client(end: &str) -> bool {
    end.rsplit(':').next().and_then(|port| port.parse().ok()) == Some(CLIENT_PORT)
}

fn sum(shares: &[(Cause, f64)], causes: &[Cause]) -> f64 {
    shares.iter().filter(|(cause, _)| causes.contains(cause)).map(|(_, per_cent)| per_cent).sum()
}

/// Causes in words.
pub fn words(causes: &[Cause]) -> String {
    causes.iter().map(|cause| cause.text()).collect::<Vec<_>>().join(" or ")
}

impl Case<'_> {
    /// Judges a verdict.
    pub fn judge(&self, verdict: Option<&Verdict>) -> Judgement {
        let Some(verdict) = verdict else {
            return Judgement { wrong: vec!["no verdict".to_owned()], ..Judgement::default() };
        };
        // A capture without the handshake takes whoever spoke first for the client.
        let is_turned = !is_client(&verdict.client);
        let direction = if is_turned { 1 - self.expected.direction } else { self.expected.direction };
        let shares: Vec<_> =
            verdict.directions[direction].shares.iter().map(|share| (share.cause, share.per_cent)).collect();
        let mut judgement = Judgement { shares, ..Judgement::default() };
        let expected = self.expected;
        let marked: Vec<_> = expected.blind.iter().filter(|blind| blind.at == self.vantage).collect();
        judgement.unknowable = marked.iter().map(|blind| blind.reason).collect();
        let is_there = expected.either || verdict.direction == direction;
        let is_main = is_there && expected.main.contains(&verdict.cause);
        let is_unsure = verdict.confidence < SURE;
        // Of the time that a capture covers a verdict may be sure, even if the connection went on.
        let is_allowed = |cause: &Cause| {
            let may_say = is_unsure || self.largest == Some(*cause);
            marked.iter().any(|blind| {
                !blind.looks_like.is_empty()
                    && (*cause == Cause::Unknown || blind.looks_like.contains(cause) && may_say)
            })
        };
        if !is_main && !is_allowed(&verdict.cause) {
            judgement.wrong.push(match is_there {
                true => format!("main cause {}", verdict.cause.text()),
                false => format!("main cause {} of the other direction", verdict.cause.text()),
            });
        }
        // Where the main cause cannot be known, its share cannot, either.
        if !marked.iter().any(|blind| !blind.looks_like.is_empty()) {
            let error = (sum(&judgement.shares, &self.names) - self.main_per_cent).abs();
            judgement.error_points = Some(error);
            if error > SHARE_POINTS {
                judgement.wrong.push(format!("share off by {error:.0} points"));
            }
        }
        let is_second = expected.second.is_empty() && expected.second_sign.is_none()
            || marked.iter().any(|blind| blind.second)
            || sum(&judgement.shares, &expected.second) >= SECOND_PER_CENT
            || expected.second_sign.is_some_and(|sign| verdict.has(sign));
        if !is_second {
            judgement.wrong.push(format!("second cause {} is not named", words(&expected.second)));
        }
        let is_unseen = |sign: &Sign| marked.iter().any(|blind| blind.signs.contains(sign));
        for sign in expected.signs.iter().filter(|sign| !is_unseen(sign) && !verdict.has(**sign)) {
            judgement.wrong.push(format!("{} is not found", sign.text()));
        }
        judgement
    }
}

/// What the judge says of a verdict.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// What is wrong; nothing when all is right.
    pub wrong: Vec<String>,
    /// What cannot be known there.
    pub unknowable: Vec<&'static str>,
    /// How far the share of the main cause is from the truth.
    pub error_points: Option<f64>,
    /// Shares of the direction that matters.
    pub shares: Vec<(Cause, f64)>,
}

/// Judges a run from every vantage that it has.
pub fn judge(
    name: &str,
    situation: &Situation,
    stack: Stack,
    run: &Run,
    truth: &Truth,
) -> Result<Vec<Cell>, String> {
    let mut cells = Vec::new();
    for vantage in Vantage::ALL {
        let place = place(situation, vantage);
        let known = match vantage {
            Vantage::Live => match &run.known[situation.ours] {
                Some(known) => Some(known),
                None => continue,
            },
            _ => None,
        };
        let shares = truth.shares(situation, vantage);
        let names = names(situation, stack);
        let main_per_cent = sum(&shares, &names);
        let largest = shares.first().map(|(cause, _)| *cause);
        let case = Case { expected: &situation.expected, stack, vantage, names, main_per_cent, largest };
        let verdict = verdict(&run.captures[place], known)?;
        cells.push(cell(name, situation, &case, verdict.as_ref(), shares));
    }
    Ok(cells)
}

impl Cell {
    /// A cell of a run that is not what its name says, for its truth alone.
    pub fn unfit(name: &str, situation: &Situation, stack: Stack, truth: Vec<(Cause, f64)>) -> Cell {
        let main_per_cent = sum(&truth, &situation.expected.main);
        let names = situation.expected.main.clone();
        let largest = truth.first().map(|(cause, _)| *cause);
        let case = Case {
            expected: &situation.expected,
            stack,
            vantage: Vantage::Sender,
            names,
            main_per_cent,
            largest,
        };
        cell(name, situation, &case, None, truth)
    }
}

/// The cell of a verdict.
pub fn cell(
    name: &str,
    situation: &Situation,
    case: &Case<'_>,
    verdict: Option<&Verdict>,
    truth: Vec<(Cause, f64)>,
) -> Cell {
    let Judgement { wrong, unknowable, error_points, shares } = case.judge(verdict);
    Cell {
        situation: name.to_owned(),
        about: situation.about.clone(),
        stack: case.stack.name(),
        vantage: case.vantage.name(),
        is_right: wrong.is_empty(),
        wrong,
        unknowable,
        said: verdict.map(|verdict| verdict.cause),
        main: situation.expected.main.clone(),
        main_per_cent: case.main_per_cent,
        error_points,
        confidence: verdict.map_or(0.0, |verdict| verdict.confidence),
        diagnosis: verdict.map_or_else(String::new, |verdict| verdict.diagnosis.clone()),
        shares,
        truth,
        kept: None,
    }
}
