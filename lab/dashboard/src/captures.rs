//! Captures of anybody's that were dropped on the page.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use inhost_explain::draw::Trace;
use inhost_explain::{CaptureError, Options, Report, Verdict};
use serde_json::{Value, json};

/// Captures that are kept for their pictures.
const KEPT: usize = 3;
/// Verdicts of an answer at most: those with the most time lost.
const MOST: usize = 200;

/// The latest captures. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Captures(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    captures: VecDeque<Capture>,
    next: u64,
}

struct Capture {
    number: u64,
    bytes: Bytes,
    verdicts: Arc<[Verdict]>,
}

impl Captures {
    /// Explains a capture. It takes a second for a large one.
    pub(crate) fn explain(&self, bytes: Bytes) -> Result<Value, CaptureError> {
        let Report { frames, warnings, mut conversations, .. } =
            inhost_explain::explain(&bytes[..], &Options::default())?;
        let all = conversations.len();
        conversations.truncate(MOST);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.next += 1;
        let number = kept.next;
        let with_picture = |(place, verdict): (usize, &Verdict)| {
            let mut value = json!(verdict);
            value["picture"] = format!("/api/explain/{number}-{place}.svg").into();
            value
        };
        let verdicts: Vec<Value> = conversations.iter().enumerate().map(with_picture).collect();
        if kept.captures.len() == KEPT {
            kept.captures.pop_front();
        }
        kept.captures.push_back(Capture { number, bytes, verdicts: conversations.into() });
        Ok(json!({ "frames": frames, "warnings": warnings, "connections": all, "conversations": verdicts }))
    }
    /// The picture `NUMBER-PLACE.svg`; none when the capture is no longer kept.
    pub(crate) fn picture(&self, name: &str) -> Option<String> {
        let (number, place) = name.strip_suffix(".svg")?.split_once('-')?;
        let (number, place) = (number.parse::<u64>().ok()?, place.parse::<usize>().ok()?);
        let (bytes, verdicts) = {
            let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let capture = kept.captures.iter().find(|capture| capture.number == number)?;
            (capture.bytes.clone(), capture.verdicts.clone())
        };
        Trace::read(&bytes[..], verdicts.get(place)?).ok().map(|trace| trace.svg())
    }
}
