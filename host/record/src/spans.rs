//! Connections as spans of `tracing`, and what happens to them as events within.
//!
//! A program that embeds a host has its connections in the log or the traces that the program has already. A span is open from
//! the beginning of a connection to its end, TIME-WAIT left out. Where no subscriber wants the targets, an event costs a
//! test.

use std::collections::BTreeMap;

use inhost_base::Key;
use inhost_event::{Ended, Event, RetransmittedWhy, SendCause};
use tracing::field::Empty;
use tracing::{Span, debug, info, info_span, trace};

/// Connections with an open span; further ones have none.
const MAX_SPANS: usize = 65_536;

/// The open spans.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    open: BTreeMap<Key, Span>,
    /// The latest that was disconnected: its account comes next, unless TIME-WAIT came between.
    disconnected: Option<(Key, Span)>,
}

impl Spans {
    /// Tells `tracing` of an event.
    pub(crate) fn tell(&mut self, event: &Event) {
        match event {
            Event::Connected(of) => {
                let initiator = if of.active { "local" } else { "remote" };
                let span = info_span!(
                    target: "inhost::tcp", parent: None, "connection",
                    local = %of.local, remote = %of.remote, initiator, age_ms = Empty, sent_bytes = Empty,
                    received_bytes = Empty, retransmitted_segments = Empty, cause = Empty, error = Empty,
                );
                if !span.is_disabled() && self.open.len() < MAX_SPANS {
                    self.open.insert(of.socket, span);
                }
            }
            Event::StateChanged(of) => {
                let Some(span) = self.open.get(&of.socket) else { return };
                debug!(target: "inhost::tcp", parent: span, from = of.from.text(), to = of.to.text(), "state");
            }
            Event::Retransmitted(of) => {
                let Some(span) = self.open.get(&of.socket) else { return };
                let (sequence, payload_bytes) = (of.sequence.0, of.payload_bytes);
                let why = why(of.why);
                debug!(target: "inhost::tcp", parent: span, sequence, payload_bytes, why, "retransmission");
            }
            Event::WindowChanged(of) => {
                let Some(span) = self.open.get(&of.socket) else { return };
                debug!(
                    target: "inhost::tcp", parent: span,
                    congestion_window_bytes = of.congestion_window_bytes,
                    slow_start_threshold_bytes = of.slow_start_threshold_bytes,
                    send_window_bytes = of.send_window_bytes,
                    smoothed_round_trip_us = of.smoothed_round_trip.as_micros(),
                    "windows"
                );
            }
            Event::CauseChanged(of) => {
                let Some(span) = self.open.get(&of.socket) else { return };
                trace!(target: "inhost::tcp", parent: span, send = %of.send, receive = %of.receive, "waits");
            }
            Event::Ended(of) => self.ended(of),
            Event::Disconnected(of) => {
                self.disconnected = self.open.remove(&of.socket).map(|span| (of.socket, span));
            }
            Event::FrameDropped(of) => {
                debug!(target: "inhost::ip", parent: None, link = of.link.0, why = of.why.text(), "packet dropped");
            }
            Event::NeighbourChanged(of) => {
                debug!(
                    target: "inhost::ip", parent: None,
                    link = of.link.0, address = %of.address, state = ?of.state, "neighbour"
                );
            }
            _ => {}
        }
    }
    /// The span ends with what the connection was.
    fn ended(&mut self, of: &Ended) {
        let disconnected = self.disconnected.take().filter(|(socket, _)| *socket == of.socket);
        let span = disconnected.map(|(_, span)| span).or_else(|| self.open.remove(&of.socket));
        let Some(span) = span else { return };
        span.record("age_ms", of.age.as_millis());
        span.record("sent_bytes", of.sent_bytes);
        span.record("received_bytes", of.received_bytes);
        span.record("retransmitted_segments", of.retransmitted_segments);
        let most = SendCause::ALL.iter().max_by_key(|&&cause| of.ledgers.send.of(cause));
        if let Some(cause) = most {
            span.record("cause", tracing::field::display(cause));
        }
        if let Some(error) = of.error {
            span.record("error", error);
        }
        info!(target: "inhost::tcp", parent: &span, "connection ended");
    }
}

fn why(of: RetransmittedWhy) -> &'static str {
    match of {
        RetransmittedWhy::Timeout => "timeout",
        RetransmittedWhy::Fast => "fast",
        RetransmittedWhy::TailProbe => "tail probe",
        RetransmittedWhy::Probe => "window probe",
        RetransmittedWhy::Refused => "refused before",
    }
}
