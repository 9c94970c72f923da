//! What a step did, as values and as text.

use serde::Serialize;
use serde_json::Value;

use crate::words::{moment, name, time, value, wrapped};

/// An object of the output as JSON.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Record {
    /// What a step, or a call of an application, did.
    Step(Box<Step>),
    /// The answer to a command that does no step.
    Answer {
        /// The command as it was typed.
        command: String,
        /// The text that a person gets.
        text: String,
        /// The same as values, where there are any: of `show` the state of both ends, of `queues` the frames on their
        /// way.
        value: Option<Value>,
    },
    /// A command that could not be carried out.
    Error {
        /// The command as it was typed.
        command: String,
        /// What is wrong, and what to try.
        error: String,
    },
}

/// What one step did: one host's round, because of a frame, a timer or a call.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// Its number, from 1. A call of an application counts as a step.
    pub step: u64,
    /// Since the beginning of the session.
    pub at_ns: u64,
    /// The host that did it: `client` or `server`.
    pub host: String,
    /// Why.
    pub why: Why,
    /// The frame that arrived.
    pub received: Option<Frame>,
    /// Timers that expired.
    pub expired: Vec<String>,
    /// Frames that left.
    pub sent: Vec<Frame>,
    /// What the stack and the applications told of.
    pub events: Vec<Event>,
    /// What is another than before in each connection.
    pub changes: Vec<Change>,
    /// Timers that run, by when they are due.
    pub timers: Vec<Timer>,
    /// Frames on their way.
    pub frames_on_their_way: usize,
    /// Both ends as they stand, the client's first.
    pub ends: [EndState; 2],
}

/// The reason for a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Why {
    /// A frame arrived.
    Frame,
    /// A timer expired.
    Timer,
    /// An application was told to do something.
    Call,
    /// The host had more to do, such as to send what was paced.
    Round,
}

/// A frame.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frame {
    /// Who sent it: `client` or `server`.
    pub from: String,
    /// What it says, with relative numbers.
    pub words: String,
    /// Its length with all headers.
    pub bytes: usize,
    /// Whether it is as it was sent.
    pub is_intact: bool,
    /// When it arrives, of one that left; none when it was lost or waits for the line.
    pub arrives_ns: Option<u64>,
    /// It waits for the line.
    pub waits: bool,
}

/// Something that was told.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The host: `client` or `server`.
    pub host: String,
    /// What it is about.
    pub about: About,
    /// What happened.
    pub words: String,
}

/// What an event is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum About {
    /// Data was sent again.
    Retransmission,
    /// Something received was dropped.
    Drop,
    /// The beginning or the end of a connection.
    Connection,
    /// The application.
    Application,
    /// A rule of TCP that the checker of frames found broken.
    Violation,
}

/// A field with two values.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// The host: `client` or `server`.
    pub host: String,
    /// The field, as `section.field`; `show` has all of them.
    pub field: String,
    /// The value before.
    pub from: Value,
    /// The value now.
    pub to: Value,
}

/// A timer that runs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timer {
    /// The host: `client` or `server`.
    pub host: String,
    /// Its name.
    pub name: String,
    /// When it is due, since the beginning of the session.
    pub due_ns: u64,
}

/// One end in a line.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndState {
    /// The host: `client` or `server`.
    pub host: String,
    /// As RFC 9293 §3.3.2 names it.
    pub state: String,
    /// Figures of its connection; none without one.
    pub figures: Option<Figures>,
}

/// The figures of a connection that every step shows. Numbers are relative to the SYN.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs)] // The names, with their units, say it.
pub struct Figures {
    pub send_unacknowledged: u64,
    pub send_next: u64,
    pub send_window_bytes: u64,
    pub receive_next: u64,
    pub receive_window_bytes: u64,
    pub congestion_window_bytes: u64,
    pub in_flight_bytes: u64,
    pub not_sent_bytes: u64,
    pub unread_bytes: u64,
    pub recovery: String,
}

impl Frame {
    /// What becomes of one that left.
    fn fate(&self) -> String {
        match self.arrives_ns {
            Some(at) => format!("arrives at {}", moment(at)),
            None if self.waits => "waits for the line".to_owned(),
            None => "is lost on its way".to_owned(),
        }
    }
}

impl EndState {
    /// Its line.
    pub fn line(&self) -> String {
        let Some(figures) = &self.figures else { return format!("  {}  {}\n", self.host, self.state) };
        let Figures {
            send_unacknowledged,
            send_next,
            send_window_bytes,
            receive_next,
            congestion_window_bytes,
            in_flight_bytes,
            not_sent_bytes,
            unread_bytes,
            recovery,
            ..
        } = figures;
        let mut line = format!(
            "  {}  {:<12} SND {send_unacknowledged}..{send_next} of {send_window_bytes}  RCV {receive_next}  \
             cwnd {congestion_window_bytes}  flight {in_flight_bytes}",
            self.host, self.state
        );
        for (name, bytes) in [("unsent", not_sent_bytes), ("unread", unread_bytes)] {
            if *bytes > 0 {
                line += &format!("  {name} {bytes}");
            }
        }
        if recovery != "open" {
            line += &format!("  {recovery}");
        }
        line + "\n"
    }
}

impl Step {
    /// The text of the step: what happened, what changed, timers and both ends.
    pub fn text(&self) -> String {
        let why = match (self.why, &self.received) {
            (Why::Frame, _) | (_, Some(_)) => "a frame arrives",
            (Why::Timer, _) => "a timer expires",
            (Why::Call, _) => "the application calls",
            (Why::Round, _) => "the host goes on",
        };
        let mut text = format!("#{}  {}  {}: {why}\n", self.step, moment(self.at_ns), self.host);
        if let Some(frame) = &self.received {
            let spoilt = if frame.is_intact { "" } else { "; it was changed on its way" };
            text += &format!("  in   {}{spoilt}\n", frame.words);
        }
        for timer in &self.expired {
            text += &format!("  due  the {timer} timer\n");
        }
        for event in &self.events {
            text += &format!("  *    {}: {}\n", event.host, event.words);
        }
        for frame in &self.sent {
            text += &format!("  out  {}; {}\n", frame.words, frame.fate());
        }
        for end in &self.ends {
            let changed = self.changes.iter().filter(|change| change.host == end.host);
            let items: Vec<String> = changed.map(Change::text).collect();
            if !items.is_empty() {
                text += &wrapped(&format!("  {}  ", end.host), &items);
            }
        }
        text += &wrapped("  timers  ", &self.timers_text());
        text + &self.ends.iter().map(EndState::line).collect::<String>()
    }
    /// The step in a line or a few: what arrived, expired and left.
    pub fn brief(&self) -> String {
        let head = format!("{:<5} {:>12}  {}  ", format!("#{}", self.step), moment(self.at_ns), self.host);
        let indent = " ".repeat(head.len());
        let mut lines: Vec<String> = Vec::new();
        lines.extend(self.received.iter().map(|frame| format!("in   {}", frame.words)));
        lines.extend(self.expired.iter().map(|timer| format!("due  the {timer} timer")));
        lines.extend(self.events.iter().map(|event| format!("*    {}", event.words)));
        lines.extend(self.sent.iter().map(|frame| match frame.arrives_ns {
            Some(_) => format!("out  {}", frame.words),
            None => format!("out  {}; {}", frame.words, frame.fate()),
        }));
        let states =
            self.changes.iter().filter(|change| matches!(&*change.field, "state" | "recovery.state"));
        lines.extend(states.map(|change| format!("     {}: {}", change.host, change.text())));
        if lines.is_empty() {
            lines
                .extend(self.changes.iter().map(|change| format!("     {}: {}", change.host, change.text())));
        }
        let lines = lines.iter().enumerate();
        lines.map(|(index, line)| format!("{}{line}\n", if index == 0 { &head } else { &indent })).collect()
    }
    fn timers_text(&self) -> Vec<String> {
        let item = |timer: &Timer| {
            format!("{} {} in {}", timer.host, timer.name, time(timer.due_ns.saturating_sub(self.at_ns)))
        };
        if self.timers.is_empty() { vec!["none".to_owned()] } else { self.timers.iter().map(item).collect() }
    }
}

impl Change {
    fn text(&self) -> String {
        let field = self.field.rsplit_once('.').map_or(&*self.field, |(_, field)| field);
        format!("{} {} → {}", name(&self.field), value(field, &self.from), value(field, &self.to))
    }
}
