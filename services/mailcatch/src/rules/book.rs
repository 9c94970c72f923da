//! The rulebook: which rule fires for an event.

use inhost_base::{Duration, Instant, IpAddr, Random};

use super::rule::{Action, Rule, Stage};
use super::script::Script;

/// The most rules at a time.
const RULES: usize = 256;

/// An event at which rules are asked. Addresses are compared in lower case.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The stage.
    pub stage: Stage,
    /// The client.
    pub client: IpAddr,
    /// The sender; `None` before MAIL, empty for the null sender.
    pub sender: Option<&'a str>,
    /// The recipients so far; at [`Stage::Recipient`] the new one is the last.
    pub recipients: &'a [String],
    /// Sessions that are open, this one among them.
    pub sessions: u64,
}

/// A rule that fired, and what is to be done.
#[derive(Clone, PartialEq, Debug)]
pub struct Fired {
    /// The rule's number.
    pub number: u64,
    /// Its text.
    pub text: String,
    /// What is to be done.
    pub action: Action,
}

/// What was decided for an event: the rule that fired, if any.
pub type Outcome = Option<Fired>;

/// A rule of the book and its counts.
#[derive(Clone, PartialEq, Debug)]
pub struct RuleState {
    /// Its number, by which it is removed.
    pub number: u64,
    /// The rule.
    pub rule: Rule,
    /// Events that it matched.
    pub matched: u64,
    /// Events for which it fired.
    pub fired: u64,
    /// When the time of its rate limit began, and the events since.
    window: Option<(Instant, u64)>,
}

/// The rules of a mail catcher. They are asked in order, and the first that fires decides.
#[derive(Debug)]
pub struct Rulebook {
    rules: Vec<RuleState>,
    numbered: u64,
    random: Random,
    script: Option<Playing>,
}

/// A script that runs.
#[derive(Debug)]
struct Playing {
    script: Script,
    step: usize,
    /// Since when the step runs: the first event in it.
    since: Option<Instant>,
    fired: u64,
    /// The rules of the step.
    numbers: Vec<u64>,
}

impl Rulebook {
    /// No rules. What rules do by chance follows from `seed`.
    pub fn new(seed: u64) -> Rulebook {
        Rulebook { rules: Vec::new(), numbered: 0, random: Random::from_number(seed), script: None }
    }
    /// Adds a rule behind the others and gives its number; `None` when there are too many.
    pub fn add(&mut self, rule: Rule) -> Option<u64> {
        if self.rules.len() >= RULES {
            return None;
        }
        self.numbered += 1;
        self.rules.push(RuleState { number: self.numbered, rule, matched: 0, fired: 0, window: None });
        Some(self.numbered)
    }
    /// Removes a rule; false if it is not there.
    pub fn remove(&mut self, number: u64) -> bool {
        let before = self.rules.len();
        self.rules.retain(|state| state.number != number);
        self.rules.len() < before
    }
    /// Removes all rules, and ends the script.
    pub fn clear(&mut self) {
        self.rules.clear();
        self.script = None;
    }
    /// The rules in order.
    pub fn rules(&self) -> &[RuleState] {
        &self.rules
    }
    /// The step of the script that runs, from 0; `None` when no script runs.
    pub fn step(&self) -> Option<usize> {
        self.script.as_ref().map(|playing| playing.step)
    }
    /// Runs a script in the place of all rules. Its own seed, if it has one, replaces the book's.
    pub fn play(&mut self, script: Script) {
        self.clear();
        if let Some(seed) = script.seed {
            self.random = Random::from_number(seed);
        }
        self.script = Some(Playing { script, step: 0, since: None, fired: 0, numbers: Vec::new() });
        self.enter_step(None);
    }
    /// What is to be done at an event.
    pub fn decide(&mut self, event: &Event<'_>, now: Instant) -> Outcome {
        self.advance(now);
        let Rulebook { rules, random, script, .. } = self;
        let state = rules.iter_mut().find_map(|state| state.fires(event, now, random).then_some(state))?;
        if let Some(playing) = script.as_mut().filter(|playing| playing.numbers.contains(&state.number)) {
            playing.fired += 1;
        }
        Some(Fired { number: state.number, text: state.rule.to_string(), action: state.rule.action.clone() })
    }
    /// Goes on to the next steps, as far as time and counts say. Steps may be over at once: there is a limit.
    fn advance(&mut self, now: Instant) {
        let steps = self.script.as_ref().map_or(0, |playing| playing.script.steps.len());
        for _ in 0..=steps {
            let Some(playing) = &mut self.script else { return };
            let since = *playing.since.get_or_insert(now);
            let Some(step) = playing.script.steps.get(playing.step) else { return };
            let by_count = step.fires.is_some_and(|fires| playing.fired >= fires);
            let by_time =
                step.seconds.map(|seconds| since + Duration::from_secs(seconds)).filter(|end| now >= *end);
            if !by_count && by_time.is_none() {
                return;
            }
            playing.step += 1;
            if playing.step == playing.script.steps.len() && playing.script.repeat {
                playing.step = 0;
            }
            // A step that time ended began when the one before ended, whenever an event tells.
            self.enter_step(by_time.or(Some(now)));
        }
    }
    /// Puts the step's rules into the place of the last one's.
    fn enter_step(&mut self, since: Option<Instant>) {
        let Some(playing) = &mut self.script else { return };
        let old = core::mem::take(&mut playing.numbers);
        (playing.since, playing.fired) = (since, 0);
        let rules = playing.script.steps.get(playing.step).map(|step| step.rules.clone()).unwrap_or_default();
        self.rules.retain(|state| !old.contains(&state.number));
        let numbers: Vec<u64> = rules.into_iter().filter_map(|rule| self.add(rule)).collect();
        if let Some(playing) = &mut self.script {
            playing.numbers = numbers;
        }
    }
}

impl RuleState {
    fn fires(&mut self, event: &Event<'_>, now: Instant, random: &mut Random) -> bool {
        if !self.matches(event) {
            return false;
        }
        self.matched = self.matched.saturating_add(1);
        let frequency = &self.rule.frequency;
        let Some(count) = self.matched.checked_sub(frequency.after).filter(|&count| count > 0) else {
            return false;
        };
        let in_window = match frequency.over {
            Some((number, time)) => {
                let (_, events) = match &mut self.window {
                    Some(window) if now.since(window.0) < time => window,
                    window => window.insert((now, 0)),
                };
                *events = events.saturating_add(1);
                *events > number
            }
            None => true,
        };
        let fires = in_window
            && frequency.first.is_none_or(|first| self.fired < first)
            && frequency.every.is_none_or(|every| count.is_multiple_of(every))
            && frequency.sessions_over.is_none_or(|limit| event.sessions > limit)
            // The random source is asked last, and only where its answer counts.
            && frequency.rate.is_none_or(|rate| random.public_chance(rate));
        self.fired += u64::from(fires);
        fires
    }
    fn matches(&self, event: &Event<'_>) -> bool {
        let matches = &self.rule.matches;
        let recipients = match event.stage {
            Stage::Recipient => event.recipients.last().map(core::slice::from_ref).unwrap_or_default(),
            _ => event.recipients,
        };
        matches.stage == event.stage
            && matches.client.is_none_or(|network| network.contains(event.client.to_canonical()))
            && matches.sender.as_ref().is_none_or(|(_, pattern)| {
                event.sender.is_some_and(|sender| pattern.matches(&sender.to_lowercase()))
            })
            && matches.recipient.as_ref().is_none_or(|(_, pattern)| {
                recipients.iter().any(|recipient| pattern.matches(&recipient.to_lowercase()))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(1000 * seconds)
    }
    fn book(rules: &[&str]) -> Rulebook {
        let mut book = Rulebook::new(7);
        for rule in rules {
            book.add(rule.parse().unwrap()).unwrap();
        }
        book
    }
    /// Which of `count` messages fire, as a row of digits: the rule's number, or 0.
    fn row(book: &mut Rulebook, count: u64, stage: Stage) -> String {
        let mut event = |second| {
            let event = Event {
                stage,
                client: IpAddr::from([10, 0, 0, 9]),
                sender: Some("Ada@Example.net"),
                recipients: &["bob@one.example".to_owned(), "Eve@full.example".to_owned()],
                sessions: second,
            };
            book.decide(&event, at(second)).map_or(0, |fired| fired.number).to_string()
        };
        (1..=count).map(&mut event).collect()
    }

    #[test]
    fn rules_fire_as_often_as_they_say() {
        for (rule, expected) in [
            ("drop", "1111111111"),
            ("drop first=3", "1110000000"),
            ("drop after=2", "0011111111"),
            ("drop every=3", "0010010010"),
            ("drop every=3 first=2 after=1", "0001001000"),
            ("drop rate=0", "0000000000"),
            ("drop over=3/5s", "0001100011"),
            ("drop sessions-over=8", "0000000011"),
        ] {
            assert_eq!(row(&mut book(&[rule]), 10, Stage::Message), expected, "{rule}");
        }
        let by_chance = |seed| {
            let mut book = Rulebook::new(seed);
            book.add("drop rate=0.5".parse().unwrap()).unwrap();
            row(&mut book, 64, Stage::Message)
        };
        assert_eq!(by_chance(1), by_chance(1), "the same seed is the same run");
        assert!(by_chance(1) != by_chance(2) && (16..48).contains(&by_chance(1).matches('1').count()));
    }

    #[test]
    fn rules_match_what_they_say() {
        for (rule, stage, fires) in [
            ("recipient=*@full.example drop", Stage::Recipient, true),
            ("recipient=bob@* drop", Stage::Recipient, false),
            ("stage=message recipient=BOB@* drop", Stage::Message, true),
            ("sender=ada@* drop", Stage::Mail, true),
            ("sender=\"\" drop", Stage::Mail, false),
            ("client=10.0.0.0/8 drop", Stage::Connect, true),
            ("client=10.0.0.8 drop", Stage::Connect, false),
            ("stage=hello drop", Stage::Mail, false),
        ] {
            assert_eq!(row(&mut book(&[rule]), 1, stage) == "1", fires, "{rule}");
        }
        let mut book = book(&["drop every=2", "reply=450 first=2", "reply=550"]);
        assert_eq!(row(&mut book, 6, Stage::Message), "212131", "the first that fires decides");
        assert_eq!(book.rules()[0].matched, 6);
        assert!(book.remove(1) && !book.remove(1));
    }

    #[test]
    fn a_script_goes_from_step_to_step() {
        let script = "repeat = true\n[[step]]\nrules = ['drop']\nfires = 2\n[[step]]\nseconds = 3\n[[step]]\nrules = ['reply=450']\nfires = 1\n";
        let mut book = book(&["drop"]);
        book.play(script.parse().unwrap());
        // Two are dropped, three seconds all is well, one is refused, and again. Numbers grow.
        assert_eq!(row(&mut book, 13, Stage::Message), "2200034400056");
        book.clear();
        assert_eq!((row(&mut book, 3, Stage::Message), book.step()), ("000".to_owned(), None));
        // Steps that are over at once do not hang.
        book.play("repeat = true\n[[step]]\nseconds = 0\n[[step]]\nfires = 0\n".parse().unwrap());
        assert_eq!(row(&mut book, 2, Stage::Message), "00");
    }
}
