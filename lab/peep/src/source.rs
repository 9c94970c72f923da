//! Where frames come from, and several of them in one order of time.

use std::collections::VecDeque;
use std::io::Read;

use inhost_explain::capture::{Frame, LinkType, Reader};

use crate::events::{Event, events};

/// Events of a source that wait for their time. When there are more, the earliest is given out at once.
const MAX_WAITING: usize = 10_000;

/// Why a source failed, in words.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Frames in the order of time: of a file, an interface, a running host.
pub trait Source {
    /// The next frame. A source whose frames are still to come waits for as long as its maker decided, and then says
    /// [`Next::Waiting`], so that somebody who merges or counts seconds goes on.
    ///
    /// # Errors
    /// What the source is made of failed; there is nothing more.
    fn next(&mut self) -> Result<Next<'_>, SourceError>;
}

/// What a source has.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Next<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// Nothing yet.
    Waiting,
    /// Nothing any more.
    Over,
}

impl<R: Read> Source for Reader<R> {
    fn next(&mut self) -> Result<Next<'_>, SourceError> {
        Ok(self.next_frame()?.map_or(Next::Over, Next::Frame))
    }
}

/// What several sources have, in one order of time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A frame, and the number of its source.
    Frame(Frame<'a>, usize),
    /// An event from the comments of a source's frames, and the number of that source.
    Event(Event, usize),
    /// Nothing yet.
    Waiting,
    /// Nothing any more.
    Over,
}

/// Merges sources. A source's own order is kept.
#[derive(Default)]
pub struct Merge {
    inputs: Vec<Input>,
}

struct Input {
    source: Box<dyn Source>,
    name: String,
    shift_ns: i64,
    held: Held,
    events: VecDeque<Event>,
    is_over: bool,
}

/// A frame that stays when the next is read. Its memory is used again.
struct Held {
    is_there: bool,
    number: u64,
    at_ns: u64,
    interface: u32,
    link: LinkType,
    bytes: Vec<u8>,
    original_bytes: u32,
    is_inbound: Option<bool>,
    comment: Option<Vec<u8>>,
}

impl Merge {
    /// Adds a source with its name; `shift_ns` is added to its times. Sources have numbers from 0.
    pub fn add(&mut self, name: impl Into<String>, source: impl Source + 'static, shift_ns: i64) {
        let (source, name, held, events) = (Box::new(source), name.into(), Held::new(), VecDeque::new());
        self.inputs.push(Input { source, name, shift_ns, held, events, is_over: false });
    }
    /// The name of a source.
    pub fn name(&self, source: usize) -> &str {
        self.inputs.get(source).map_or("", |input| &input.name)
    }
    /// The earliest of what there is.
    ///
    /// # Errors
    /// A source failed; the error names it. The others can be asked further.
    pub fn next_item(&mut self) -> Result<Item<'_>, SourceError> {
        let mut is_waiting = false;
        for input in &mut self.inputs {
            is_waiting |= !input.fill()?;
        }
        let earliest =
            self.inputs.iter().enumerate().filter_map(|(place, input)| Some((input.at_ns()?, place)));
        let Some((at_ns, place)) = earliest.min() else {
            return Ok(if is_waiting { Item::Waiting } else { Item::Over });
        };
        let input = &mut self.inputs[place];
        if let Some(event) = input.events.pop_front_if(|event| event.at_ns <= at_ns) {
            return Ok(Item::Event(event, place));
        }
        input.held.is_there = false;
        Ok(Item::Frame(input.held.frame(), place))
    }
}

impl Input {
    /// Sees to it that a frame is there. False if there is none yet.
    fn fill(&mut self) -> Result<bool, SourceError> {
        if self.held.is_there || self.is_over || self.events.len() > MAX_WAITING {
            return Ok(true);
        }
        let frame = match self.source.next() {
            Ok(Next::Frame(frame)) => frame,
            Ok(Next::Waiting) => return Ok(false),
            Ok(Next::Over) => {
                self.is_over = true;
                return Ok(true);
            }
            Err(why) => {
                self.is_over = true;
                return Err(format!("{}: {why}", self.name).into());
            }
        };
        let shifted = |at_ns: u64| at_ns.saturating_add_signed(self.shift_ns);
        if let Some(comment) = frame.comment {
            let found = events(comment, frame.at_ns).into_iter();
            self.events.extend(found.map(|event| Event { at_ns: shifted(event.at_ns), ..event }));
            self.events.make_contiguous().sort_by_key(|event| event.at_ns);
        }
        self.held.take(&Frame { at_ns: shifted(frame.at_ns), ..frame });
        Ok(true)
    }
    /// The time of what comes next.
    fn at_ns(&self) -> Option<u64> {
        let frame = self.held.is_there.then_some(self.held.at_ns);
        frame.into_iter().chain(self.events.front().map(|event| event.at_ns)).min()
    }
}

impl Held {
    fn new() -> Held {
        let (bytes, comment) = (Vec::new(), None);
        let (number, at_ns, interface, link, original_bytes) = (0, 0, 0, LinkType::Ethernet, 0);
        let (is_there, is_inbound) = (false, None);
        Held { is_there, number, at_ns, interface, link, bytes, original_bytes, is_inbound, comment }
    }
    fn take(&mut self, frame: &Frame<'_>) {
        let Frame { number, at_ns, interface, link, bytes, original_bytes, is_inbound, comment } = *frame;
        let mut kept = std::mem::take(&mut self.bytes);
        kept.clear();
        kept.extend_from_slice(bytes);
        let comment = comment.map(<[u8]>::to_vec);
        *self = Held {
            is_there: true,
            number,
            at_ns,
            interface,
            link,
            bytes: kept,
            original_bytes,
            is_inbound,
            comment,
        };
    }
    fn frame(&self) -> Frame<'_> {
        let Held { number, at_ns, interface, link, original_bytes, is_inbound, .. } = *self;
        let (bytes, comment) = (&self.bytes[..], self.comment.as_deref());
        Frame { number, at_ns, interface, link, bytes, original_bytes, is_inbound, comment }
    }
}
