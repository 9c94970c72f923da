//! `inhost peep`: a packet trace, of the running host, of an interface or of captures.

pub mod ending;
mod interface;
mod output;
mod save;
mod sources;

use crate::args::Peep;
use crate::failure::{Failure, print_error};
use crate::output::print;
use crate::time::unix_time;
use inhost_explain::capture::Frame;
use inhost_peep::filter::{Filter, FilterError};
use inhost_peep::qlog::Record;
use inhost_peep::{Clocks, Event, Item, Skew, States};
use std::collections::BTreeSet;
use std::net::SocketAddr;

use ending::Ending;
use output::Output;
use sources::Sources;

/// Connections whose events are shown, because a frame of theirs was chosen.
const MAX_CHOSEN: usize = 10_000;

/// Runs the command.
pub fn run(arguments: &Peep) -> Result<(), Failure> {
    if arguments.qlog_schema {
        return print(&format!("{:#}\n", schemars::schema_for!(Record).as_value()));
    }
    let text = arguments.filter.join(" ");
    let filter: Filter = text.parse().map_err(|why: FilterError| {
        Failure::usage(format!("the filter is not understood\n{}", why.shown(&text)))
    })?;
    if let Some(seconds) = arguments.seconds.filter(|seconds| seconds.is_nan() || *seconds <= 0.0) {
        return Err(Failure::usage(format!("--seconds {seconds}: give more than 0")));
    }
    let ending = Ending::new(arguments.seconds.filter(|_| arguments.read.is_empty()))?;
    let mut sources = Sources::open(arguments, &ending)?;
    let mut trace = Trace {
        choice: Choice { is_all: text.is_empty(), filter, ends: BTreeSet::new() },
        output: Output::new(arguments, sources.is_live)?,
        states: arguments.states.map(States::new),
        clocks: (sources.count() > 1).then(Clocks::default),
        seen: 0,
        shown: 0,
    };
    // Before its first frame a running host tells what it noted last.
    let is_past = sources.is_live && arguments.interface.is_none() && !arguments.past;
    let from_ns = if is_past { unix_time().as_nanos() } else { 0 };
    let (mut first_ns, mut is_over) = (None, false);
    while !ending.is_due() && !trace.output.is_closed() {
        let (item, names) = match sources.next_item() {
            Ok(found) => found,
            // Whatever is cut off by the end of the trace is not a failure.
            Err(_) if ending.is_due() => break,
            Err(why) => {
                trace.output.end()?;
                return Err(Failure::operation(why.to_string()));
            }
        };
        match item {
            Item::Event(event, _) if u128::from(event.at_ns) < from_ns => {}
            Item::Event(event, _) => trace.event(&event)?,
            Item::Frame(frame, source) => {
                let since_ns = frame.at_ns.saturating_sub(*first_ns.get_or_insert(frame.at_ns));
                if arguments.seconds.is_some_and(|most| since_ns as f64 / 1e9 > most) {
                    break;
                }
                trace.frame(&frame, source, names)?;
                if arguments.count.is_some_and(|most| trace.shown >= most.get()) {
                    break;
                }
            }
            Item::Waiting => {}
            _ => {
                is_over = true;
                break;
            }
        }
    }
    let (seen, shown) = (trace.seen, trace.shown);
    trace.output.end()?;
    if sources.is_live || ending.is_due() {
        let dropped = sources.dropped();
        let dropped = dropped.map_or(String::new(), |many| format!(", {many} dropped by the kernel"));
        print_error(format!("{shown} frames chosen of {seen} seen{dropped}"));
    }
    if is_over && sources.is_live && arguments.interface.is_none() && !ending.is_due() {
        print_error("the host has ended");
    }
    Ok(())
}

/// What is chosen.
struct Choice {
    is_all: bool,
    filter: Filter,
    /// Of the connections that were chosen.
    ends: BTreeSet<[String; 2]>,
}

impl Choice {
    fn has(&self, event: &Event) -> bool {
        let is_of_chosen = |ends: &[String; 2]| self.ends.contains(&sorted(ends.clone()));
        self.is_all || event.ends.as_ref().is_some_and(is_of_chosen)
    }
    fn add(&mut self, ends: [SocketAddr; 2]) {
        if !self.is_all && self.ends.len() < MAX_CHOSEN {
            self.ends.insert(sorted(ends.map(|end| end.to_string())));
        }
    }
}

fn sorted(mut ends: [String; 2]) -> [String; 2] {
    ends.sort();
    ends
}

/// A trace as it is made.
struct Trace {
    choice: Choice,
    output: Output,
    states: Option<States>,
    clocks: Option<Clocks>,
    seen: u64,
    shown: u64,
}

impl Trace {
    fn event(&mut self, event: &Event) -> Result<(), Failure> {
        if !self.choice.has(event) {
            return Ok(());
        }
        self.tell_states(event.at_ns)?;
        // Figures are told with the states.
        if self.states.as_mut().is_some_and(|states| states.take(event)) {
            return Ok(());
        }
        self.output.event(event)
    }
    fn frame(&mut self, frame: &Frame<'_>, source: usize, names: &[String]) -> Result<(), Failure> {
        self.tell_states(frame.at_ns)?;
        self.seen += 1;
        if let Some(skew) = self.clocks.as_mut().and_then(|clocks| clocks.take(frame, source)) {
            self.output.event(&told(&skew, frame.at_ns, names))?;
        }
        let is_chosen = self.choice.filter.has(frame);
        let name = names.get(source).filter(|_| names.len() > 1);
        if let Some(ends) = self.output.frame(frame, name.map(String::as_str), is_chosen)? {
            self.choice.add(ends);
        }
        if let Some(states) = self.states.as_mut().filter(|_| is_chosen) {
            states.see(frame, names.get(source).map_or("", String::as_str));
        }
        self.shown += u64::from(is_chosen);
        Ok(())
    }
    fn tell_states(&mut self, at_ns: u64) -> Result<(), Failure> {
        let due = self.states.as_mut().map(|states| states.due(at_ns)).unwrap_or_default();
        due.iter().try_for_each(|event| self.output.event(event))
    }
}

/// Clocks that disagree, as an event.
fn told(skew: &Skew, at_ns: u64, names: &[String]) -> Event {
    let name = |source: usize| names.get(source).cloned().unwrap_or_default();
    let (early, late, ms) = (name(skew.early), name(skew.late), skew.by_ns as f64 / 1e6);
    let words = format!(
        "acknowledged {ms} ms before {late} shows the data: the clocks disagree; --clock {early}=+{ms}ms puts it right"
    );
    Event { at_ns, host: early, ends: Some(skew.ends.map(|end| end.to_string())), words }
}
