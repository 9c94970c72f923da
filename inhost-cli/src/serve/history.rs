//! Records of connections that end.

use crate::config::History;
use crate::failure::Failure;
use inhost_base::{Duration, Instant};
use inhost_history::{Record, Writer};
use inhost_record::Recorder;
use inhost_socket::Host;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tracing::{info, warn};

/// How long the first account of a batch waits for others. A host in which none ends sleeps.
const GATHER: Duration = Duration::from_millis(200);
/// A disk that stays full is told of so often.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// Accounts that are taken at a time.
const TAKEN_AT_ONCE: usize = 4096;

/// The records, while the host runs.
pub struct Records {
    recorder: Recorder,
    writer: RefCell<Option<Writer>>,
    host: Host,
    /// Records that are missing and were not told of, and when some were told of last.
    untold: Cell<u64>,
    told_at: Cell<Option<Instant>>,
}

/// Has records kept, where the configuration wants it.
pub fn start(host: &Host, recorder: &Recorder, config: &History) -> Result<Option<Rc<Records>>, Failure> {
    if !config.enabled {
        return Ok(None);
    }
    let folder = config.folder();
    let refused =
        |why| Failure::operation(format!("[history]: {why}; name another folder, or set enabled = false"));
    let writer = Writer::open(&folder, config.limits()?).map_err(refused)?;
    recorder.keep_ended();
    let records = Rc::new(Records {
        recorder: recorder.clone(),
        writer: RefCell::new(Some(writer)),
        host: host.clone(),
        untold: Cell::new(0),
        told_at: Cell::new(None),
    });
    let (clock, kept) = (host.clone(), records.clone());
    host.spawn(async move {
        loop {
            kept.recorder.has_ended().await;
            clock.sleep(GATHER).await;
            kept.take();
        }
    })
    .detach();
    info!(target: "history", "connections that end are recorded in {}", folder.display());
    Ok(Some(records))
}

impl Records {
    /// Gives some of what ended to the disk's thread; how many.
    fn take(&self) -> usize {
        let (ended, mut lost) = self.recorder.take_ended(TAKEN_AT_ONCE);
        let writer = self.writer.borrow();
        let Some(writer) = &*writer else { return 0 };
        lost += writer.take_lost();
        self.untold.set(self.untold.get() + lost);
        let now = self.host.now();
        if self.told_at.get().is_none_or(|at| now.since(at) >= TELL_EVERY) && self.tell() {
            self.told_at.set(Some(now));
        }
        let unix_ms = |at: Instant| self.recorder.unix_ns(at) / 1_000_000;
        let records: Vec<Record> = ended.iter().map(|(at, of)| Record::new(unix_ms(*at), of)).collect();
        if !records.is_empty() {
            writer.add(records);
        }
        ended.len()
    }
    /// Tells of records that are missing; false where none are.
    fn tell(&self) -> bool {
        let lost = self.untold.take();
        if lost > 0 {
            warn!(target: "history", lost, "connections are missing in the records: the disk is too slow, or full");
        }
        lost > 0
    }
    /// The host ends: what is left is written.
    pub fn finish(&self) {
        while self.take() > 0 {}
        self.tell();
        drop(self.writer.borrow_mut().take());
    }
}
