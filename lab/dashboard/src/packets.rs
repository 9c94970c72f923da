//! The latest frames in words.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use inhost_explain::capture::{Frame, LinkType};
use inhost_peep::filter::{Filter, FilterError};
use inhost_peep::{Trace, View};
use inhost_record::{Recorder, Seen};
use serde_json::{Value, json};

/// Frames that are decoded for one request.
pub(crate) const DECODED: usize = 2000;
/// Frames that are kept.
const KEPT: usize = 8000;
/// Frames of an answer at most.
const MOST: usize = 1000;

/// Frames in words. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Packets(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    trace: Option<Trace>,
    packets: VecDeque<Packet>,
    next: u64,
}

struct Packet {
    seen: Seen,
    link: String,
    words: String,
}

/// Heads that were not looked at before.
pub(crate) struct Fresh(Vec<(Seen, String)>);

impl Packets {
    /// The heads that came since the last call; a short copy, on the host's thread.
    pub(crate) fn fresh(&self, recorder: &Recorder) -> Fresh {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).next;
        let from = next.max(recorder.next_frame().saturating_sub(DECODED as u64));
        // Its description has more behind a comma.
        let short = |name: String| name.split(',').next().unwrap_or_default().to_owned();
        let name = |seen: &Seen| recorder.link_name(seen.link).map(short).unwrap_or_default();
        let heads = recorder.heads(from, DECODED).into_iter();
        Fresh(
            heads
                .map(|seen| {
                    let name = name(&seen);
                    (seen, name)
                })
                .collect(),
        )
    }
    /// Decodes what is fresh, and gives the latest that `filter` chooses, from number `after` on where that is known. It takes
    /// some milliseconds.
    pub(crate) fn list(
        &self,
        fresh: Fresh,
        after: Option<u64>,
        limit: usize,
        filter: &str,
    ) -> Result<Value, FilterError> {
        let filter: Filter = filter.parse()?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        fresh.0.into_iter().for_each(|(seen, link)| kept.add(seen, link));
        let oldest = kept.packets.front().map_or(kept.next, |packet| packet.seen.number);
        let meant = |packet: &&Packet| {
            after.is_none_or(|after| packet.seen.number >= after) && filter.has(&packet.frame())
        };
        let mut found: Vec<Value> =
            kept.packets.iter().rev().filter(meant).take(limit.min(MOST)).map(Packet::line).collect();
        found.reverse();
        Ok(
            json!({ "next": kept.next, "lost": after.map_or(0, |after| oldest.saturating_sub(after)), "packets": found }),
        )
    }
    /// All of one frame; none when it is no longer kept.
    pub(crate) fn one(&self, number: u64) -> Option<Value> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let packet = kept.packets.iter().find(|packet| packet.seen.number == number)?;
        let mut trace = Trace::new(View { is_absolute: true, ..View::default() });
        let decoded = trace.decode(&packet.frame());
        let layer = |layer: &inhost_peep::decode::Layer| {
            let fields = layer.fields.iter().map(|(name, value)| format!("{name} {value}"));
            format!("{}: {}", layer.name, fields.collect::<Vec<_>>().join(", "))
        };
        let lines: Vec<String> = decoded.layers.iter().map(layer).collect();
        let hex: Vec<String> = packet.seen.head.iter().map(|octet| format!("{octet:02x}")).collect();
        Some(json!({ "number": number, "lines": lines, "hex": hex.join(" ") }))
    }
}

impl Kept {
    fn add(&mut self, seen: Seen, link: String) {
        // Two requests may have taken the same heads.
        if seen.number < self.next {
            return;
        }
        self.next = seen.number + 1;
        let mut packet = Packet { seen, link, words: String::new() };
        let trace = self.trace.get_or_insert_with(|| Trace::new(View::default()));
        let frame = packet.frame();
        let decoded = trace.decode(&frame);
        let words = trace.json(&frame, &decoded, None)["words"].take();
        packet.words = words.as_str().unwrap_or_default().to_owned();
        if self.packets.len() == KEPT {
            self.packets.pop_front();
        }
        self.packets.push_back(packet);
    }
}

impl Packet {
    fn frame(&self) -> Frame<'_> {
        let seen = &self.seen;
        Frame {
            number: seen.number,
            at_ns: seen.at_unix_ns,
            interface: seen.link.0.into(),
            link: if seen.is_ethernet { LinkType::Ethernet } else { LinkType::Ip },
            bytes: &seen.head,
            original_bytes: seen.frame_bytes,
            is_inbound: Some(!seen.is_sent),
            comment: None,
        }
    }
    fn line(&self) -> Value {
        json!({
            "number": self.seen.number,
            "at_unix_ns": self.seen.at_unix_ns.to_string(),
            "link": self.link,
            "sent": self.seen.is_sent,
            "text": self.words,
        })
    }
}
