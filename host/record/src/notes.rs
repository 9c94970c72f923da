//! The latest events, and their words.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use inhost_base::{Endpoint, Instant, Key};
use inhost_event::{Event, RetransmittedWhy};

/// Events that are kept.
const NOTES: usize = 4096;

/// Whose an event is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose {
    Socket(Key),
    Ends(Endpoint, Endpoint),
    Host,
}

/// An event with the number of the frame that came next.
#[derive(Debug)]
pub(crate) struct Note {
    at: Instant,
    before_frame: u64,
    whose: Whose,
    what: What,
}

#[derive(Debug)]
enum What {
    Event(Event),
    Text(String),
}

/// The ring of notes. They are numbered from 0.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    notes: VecDeque<Note>,
    next: u64,
}

impl Notes {
    /// The number that the next gets.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }
    /// From number `from` on, oldest first.
    pub(crate) fn since(&self, from: u64) -> impl Iterator<Item = &Note> {
        let oldest = self.next - self.notes.len() as u64;
        self.notes.iter().skip(from.saturating_sub(oldest) as usize)
    }
    pub(crate) fn event(&mut self, at: Instant, before_frame: u64, whose: Whose, event: Event) {
        self.add(Note { at, before_frame, whose, what: What::Event(event) });
    }
    pub(crate) fn text(&mut self, at: Instant, before_frame: u64, whose: Whose, text: String) {
        self.add(Note { at, before_frame, whose, what: What::Text(text) });
    }
    /// Both ends of the connections whose beginning is among the notes.
    pub(crate) fn connected(&self) -> BTreeMap<Key, (Endpoint, Endpoint)> {
        let connected = self.notes.iter().filter_map(|note| match &note.what {
            What::Event(Event::Connected(of)) => Some((of.socket, (of.local, of.remote))),
            _ => None,
        });
        connected.collect()
    }
    fn add(&mut self, note: Note) {
        if self.notes.len() == NOTES {
            self.notes.pop_front();
        }
        self.notes.push_back(note);
        self.next += 1;
    }
}

/// The socket that an event is of.
pub(crate) fn socket(event: &Event) -> Option<Key> {
    match event {
        Event::Connected(of) => Some(of.socket),
        Event::Disconnected(of) => Some(of.socket),
        Event::Ended(of) => Some(of.socket),
        Event::StateChanged(of) => Some(of.socket),
        Event::Retransmitted(of) => Some(of.socket),
        Event::WindowChanged(of) => Some(of.socket),
        Event::CauseChanged(of) => Some(of.socket),
        Event::SegmentReceived(of) => Some(of.socket),
        Event::SegmentSent(of) => Some(of.socket),
        _ => None,
    }
}

impl Note {
    pub(crate) fn at(&self) -> Instant {
        self.at
    }
    pub(crate) fn whose(&self) -> Whose {
        self.whose
    }
    /// Whether it came before the frame of this number, or with it.
    pub(crate) fn is_before(&self, frame: u64) -> bool {
        self.before_frame <= frame
    }
    /// What happened, in words.
    pub(crate) fn words(&self) -> String {
        let event = match &self.what {
            What::Text(text) => return text.clone(),
            What::Event(event) => event,
        };
        match event {
            Event::Connected(of) if of.active => "connected; we called".to_owned(),
            Event::Connected(_) => "connected; the peer called".to_owned(),
            Event::Disconnected(of) => {
                format!("over after {}; {} bytes sent, {} received", of.age, of.sent_bytes, of.received_bytes)
            }
            Event::StateChanged(of) => format!("state {} to {}", of.from.text(), of.to.text()),
            Event::Retransmitted(of) => {
                let why = match of.why {
                    RetransmittedWhy::Timeout => "the timer expired",
                    RetransmittedWhy::Fast => "acknowledgments tell of a loss",
                    RetransmittedWhy::TailProbe => "tail probe",
                    RetransmittedWhy::Probe => "window probe",
                    RetransmittedWhy::Refused => "refused before",
                };
                format!("retransmitted {} bytes from {}: {why}", of.payload_bytes, of.sequence.0)
            }
            Event::WindowChanged(of) => {
                let mut words = format!(
                    "figures cwnd={} window={} rtt_us={}",
                    of.congestion_window_bytes,
                    of.send_window_bytes,
                    of.smoothed_round_trip.as_nanos() / 1000
                );
                // It is infinite before the first loss.
                if of.slow_start_threshold_bytes < i32::MAX as u32 {
                    let _ = write!(words, " ssthresh={}", of.slow_start_threshold_bytes);
                }
                words
            }
            Event::CauseChanged(of) => format!("waits: sending {}, receiving {}", of.send, of.receive),
            Event::FrameDropped(of) => format!("dropped on link {}: {}", of.link.0, of.why.text()),
            Event::NeighbourChanged(of) => {
                format!("neighbour {} on link {}: {:?}", of.address, of.link.0, of.state)
            }
            other => format!("{other:?}"),
        }
    }
}
