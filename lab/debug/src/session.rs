//! A session: commands in, text and values out.

use inhost_base::Duration;
use serde_json::{Value, json};

use crate::command::{COMMANDS, Command, End, MOST_STEPS, Until, goes_on, parse};
use crate::report::{About, EndState, Record, Step, Why};
use crate::settings::{self, Of};
use crate::show;
use crate::words::{moment, wrapped};
use crate::world::World;

/// Lines that a session remembers for `undo` and `save`.
const MOST_LINES: usize = 100_000;

/// What a command gave.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// For a person: lines of at most 100 columns or so, each with its newline.
    pub text: String,
    /// The same for a program.
    pub records: Vec<Record>,
    /// The command could not be carried out; the text says why.
    pub failed: bool,
    /// The session is over.
    pub is_over: bool,
    /// A file to write, and what into it.
    pub save: Option<(String, String)>,
}

/// A line that was carried out, and the steps that it made.
#[derive(Clone, Debug)]
struct Entry {
    line: String,
    steps: u32,
    /// It changes something, be it no step.
    counts: bool,
}

/// A session with two hosts.
///
/// The same lines give the same text, byte for byte.
///
/// ```
/// let mut session = inhost_debug::Session::new()?;
/// session.line("connect");
/// let step = session.line("step");
/// assert!(step.text.contains("server: a frame arrives"));
/// assert!(step.text.contains("state LISTEN → SYN-RECEIVED"));
/// session.line("undo");
/// assert_eq!(session.line("step").text, step.text);
/// # Ok::<(), String>(())
/// ```
pub struct Session {
    world: World,
    entries: Vec<Entry>,
}

impl Session {
    /// A session at its beginning.
    ///
    /// # Errors
    /// A sentence, when the hosts cannot be set up.
    pub fn new() -> Result<Session, String> {
        Ok(Session { world: World::new()?, entries: Vec::new() })
    }
    /// Carries a line out.
    pub fn line(&mut self, line: &str) -> Outcome {
        let line = line.trim();
        let done = match parse(line) {
            Ok(command) => self.command(line, &command),
            Err(error) => Err(error),
        };
        done.unwrap_or_else(|error| Outcome {
            text: format!("{error}\n"),
            records: vec![Record::Error { command: line.to_owned(), error }],
            failed: true,
            ..Outcome::default()
        })
    }
    /// Plays a script: each line behind a prompt, then what it gave, as a person would have seen it. Ends where a command
    /// fails, with its number from 1, or where it says `quit`. `wrote` gets each outcome.
    ///
    /// # Errors
    /// What `wrote` returns.
    pub fn play<E>(
        &mut self,
        script: &str,
        mut wrote: impl FnMut(&str, &Outcome) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        for (index, line) in script.lines().enumerate() {
            let outcome = self.line(line);
            wrote(line, &outcome)?;
            if outcome.failed {
                return Ok(Some(index + 1));
            }
            if outcome.is_over {
                break;
            }
        }
        Ok(None)
    }
    /// The session as a script.
    pub fn script(&self) -> String {
        self.entries.iter().map(|entry| format!("{}\n", entry.line)).collect()
    }

    fn command(&mut self, line: &str, command: &Command) -> Result<Outcome, String> {
        let before = self.world.steps();
        let outcome = self.carry_out(line, command)?;
        let is_kept = !matches!(
            command,
            Command::Undo(_) | Command::Restart | Command::Save(_) | Command::Help(_) | Command::Quit
        );
        if is_kept && !outcome.failed {
            if self.entries.len() >= MOST_LINES {
                return Err(format!("the session has {MOST_LINES} lines; restart begins again"));
            }
            let steps = (self.world.steps() - before) as u32;
            let counts = steps > 0
                || matches!(command, Command::Tamper(..) | Command::Set(_, Some(_)) | Command::Run(_));
            self.entries.push(Entry { line: line.to_owned(), steps, counts });
        }
        Ok(outcome)
    }
    fn carry_out(&mut self, line: &str, command: &Command) -> Result<Outcome, String> {
        match command {
            Command::Nothing => Ok(Outcome::default()),
            Command::Step(count) => Ok(self.steps(line, *count)),
            Command::Next(until) => Ok(self.next(line, *until)),
            Command::Run(time) => Ok(self.run(line, *time)),
            Command::Tamper(how, number) => {
                let said = self.world.tamper(*how, *number)?;
                Ok(answer(line, format!("{said}\n"), None))
            }
            Command::Connect => self.world.connect().map(one),
            Command::Send(end, bytes) => self.world.send(*end, *bytes).map(one),
            Command::Read(end, amount) => self.world.read(*end, *amount).map(one),
            Command::Close(end) => self.world.close(*end).map(one),
            Command::Reset(end) => self.world.reset(*end).map(one),
            Command::Show(end) => Ok(self.show(line, *end)),
            Command::Timers => Ok(answer(line, self.world.timers(), None)),
            Command::Queues => {
                let (text, value) = self.world.queues();
                Ok(answer(line, text, Some(value)))
            }
            Command::Tasks => Ok(answer(line, self.world.tasks(), None)),
            Command::Trace(count) => {
                let lines: String = self.world.trace(*count).map(|line| format!("{line}\n")).collect();
                let text = if lines.is_empty() { "no frame has left yet\n".to_owned() } else { lines };
                Ok(answer(line, text, None))
            }
            Command::Set(_, None) => Ok(answer(line, self.world.settings().text(), None)),
            Command::Set(end, Some((name, value))) => self.set(line, *end, name, value),
            Command::Undo(count) => self.undo(line, *count),
            Command::Restart => {
                *self = Session::new()?;
                Ok(answer(line, "at the beginning again\n".to_owned(), None))
            }
            Command::Save(file) => {
                let text = format!("{} lines go to {file}\n", self.entries.len());
                Ok(Outcome { save: Some((file.clone(), self.script())), ..answer(line, text, None) })
            }
            Command::Help(about) => Ok(answer(line, help(about.as_deref()), None)),
            Command::Quit => Ok(Outcome { is_over: true, ..Outcome::default() }),
        }
    }

    fn steps(&mut self, line: &str, count: u32) -> Outcome {
        let mut outcome = Outcome::default();
        for _ in 0..count {
            let Some(step) = self.world.step() else {
                self.add_silence(line, &mut outcome);
                break;
            };
            outcome.text += &step.text();
            outcome.records.push(Record::Step(Box::new(step)));
        }
        outcome
    }
    fn next(&mut self, line: &str, until: Until) -> Outcome {
        let mut outcome = Outcome::default();
        for _ in 0..MOST_STEPS {
            let Some(step) = self.world.step() else {
                self.add_silence(line, &mut outcome);
                return outcome;
            };
            let is_it = is(until, &step);
            outcome.text += &if is_it { step.text() } else { step.brief() };
            outcome.records.push(Record::Step(Box::new(step)));
            if is_it {
                return outcome;
            }
        }
        let text = format!("{MOST_STEPS} steps, and still no {}\n", until.text());
        add(&mut outcome, answer(line, text, None));
        outcome
    }
    fn run(&mut self, line: &str, time: Option<Duration>) -> Outcome {
        let until_ns = time.map(|time| self.world.now_ns().saturating_add(time.as_nanos()));
        let mut outcome = Outcome::default();
        for _ in 0..MOST_STEPS {
            if let Some(until_ns) = until_ns
                && self.world.next_ns().is_none_or(|next_ns| next_ns > until_ns)
            {
                self.world.pass_to(until_ns);
                let text = self.standing(&format!("{}\n", moment(self.world.now_ns())));
                add(&mut outcome, answer(line, text, None));
                return outcome;
            }
            let Some(step) = self.world.step() else {
                self.add_silence(line, &mut outcome);
                return outcome;
            };
            outcome.text += &step.brief();
            outcome.records.push(Record::Step(Box::new(step)));
        }
        let text = format!("{MOST_STEPS} steps; run goes on\n");
        add(&mut outcome, answer(line, text, None));
        outcome
    }
    fn add_silence(&self, line: &str, outcome: &mut Outcome) {
        let text = self.standing(&format!(
            "{}  nothing more will happen, unless an application does something: send, read, close\n",
            moment(self.world.now_ns())
        ));
        add(outcome, answer(line, text, None));
    }
    fn standing(&self, head: &str) -> String {
        head.to_owned() + &self.world.ends().iter().map(EndState::line).collect::<String>()
    }
    fn show(&self, line: &str, end: Option<End>) -> Outcome {
        let (mut text, mut value) = (String::new(), json!({}));
        for one in End::BOTH.into_iter().filter(|one| end.is_none_or(|end| end == *one)) {
            let state = self.world.detail(one);
            text += &match state.is_null() {
                true => format!("{}  {}\n", one.text(), self.world.state(one)),
                false => show::connection(&self.world.title(one), &state),
            };
            value[one.text()] = state;
        }
        answer(line, text, Some(value))
    }
    fn set(&mut self, line: &str, end: Option<End>, name: &str, value: &str) -> Result<Outcome, String> {
        let mut settings = self.world.settings().clone();
        let when = match settings.set(end, name, value)? {
            Of::Link => "",
            Of::Connections if self.world.detail(End::Client) != Value::Null => "; from the next connect on",
            Of::Connections => "",
        };
        self.world.set(settings);
        let whose = end.map_or("both ends", End::text);
        Ok(answer(line, format!("{name} is {value} of {whose}{when}\n"), None))
    }
    /// Plays the session again with so many steps less. What does no step goes with the step before it.
    fn undo(&mut self, line: &str, count: u32) -> Result<Outcome, String> {
        let (mut entries, mut left) = (self.entries.clone(), count);
        while left > 0 {
            let Some(last) = entries.last_mut() else { break };
            match last.steps {
                steps if steps > left && !is_call(last) => {
                    (last.line, last.steps) = (format!("step {}", steps - left), steps - left);
                    left = 0;
                }
                steps => {
                    left -= if last.counts { steps.clamp(1, left) } else { 0 };
                    entries.pop();
                }
            }
        }
        if left == count {
            return Err("nothing was done that could be taken back".to_owned());
        }
        let mut again = Session::new()?;
        for entry in &entries {
            again.line(&entry.line);
        }
        *self = again;
        let head = format!("back at step {}, {}\n", self.world.steps(), moment(self.world.now_ns()));
        Ok(answer(line, self.standing(&head), None))
    }
}

/// One that makes a step because an application was told something: it is taken back as a whole.
fn is_call(entry: &Entry) -> bool {
    !goes_on(&entry.line)
}

fn one(step: Step) -> Outcome {
    Outcome { text: step.text(), records: vec![Record::Step(Box::new(step))], ..Outcome::default() }
}

fn answer(line: &str, text: String, value: Option<Value>) -> Outcome {
    let record = Record::Answer { command: line.to_owned(), text: text.clone(), value };
    Outcome { text, records: vec![record], ..Outcome::default() }
}

fn add(outcome: &mut Outcome, more: Outcome) {
    outcome.text += &more.text;
    outcome.records.extend(more.records);
}

/// Whether a step is what was waited for.
fn is(until: Until, step: &Step) -> bool {
    let changed = |field: &str| step.changes.iter().any(|change| change.field == field);
    let rose = |field: &str| {
        let rises = |change: &&crate::report::Change| change.to.as_u64() > change.from.as_u64();
        step.changes.iter().filter(rises).any(|change| change.field == field)
    };
    let told = |about: About| step.events.iter().any(|event| event.about == about);
    match until {
        Until::State => changed("state"),
        Until::Frame => step.received.is_some(),
        Until::Timer => step.why == Why::Timer || !step.expired.is_empty(),
        Until::Retransmission => told(About::Retransmission),
        Until::Loss => {
            rose("recovery.lost_bytes") || rose("recovery.timeouts") || told(About::Retransmission)
        }
        Until::Recovery => changed("recovery.state"),
        Until::Data => rose("receive.queue_bytes"),
        Until::Window => changed("send.window_bytes"),
        Until::Drop => told(About::Drop),
    }
}

fn help(about: Option<&str>) -> String {
    let Some(known) = about.and_then(|about| COMMANDS.iter().find(|known| known.name == about)) else {
        let mut text = String::new();
        for known in COMMANDS {
            text += &wrapped(
                &format!("  {:<20} ", format!("{} {}", known.name, known.takes)),
                &[known.what.to_owned()],
            );
        }
        return text
            + "The beginning of a name is enough. help COMMAND has examples.\n\
               A first session: connect, step, step, send 3000, drop, run, show\n";
    };
    let mut text = format!("{} {}\n  {}\n", known.name, known.takes, known.what).replace(" \n", "\n");
    for (example, what) in known.examples {
        text += &format!("  {example:<32} {what}\n");
    }
    if known.name == "set" {
        text += "settings\n";
        text += &settings::help();
    }
    text
}
