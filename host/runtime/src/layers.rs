//! Rounds whose layers are told: who watches, and how sinks and devices tell him.

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::Instant;
use inhost_buf::{Device, Frame, Full, Offers, Shareable};
use inhost_event::{Event, Ignore, Layer, Mask, Sink};
use inhost_socket::Host;

/// Watches for which layer the processor works, in the rounds that it chooses: see [`crate::Runtime::watch_layers`].
///
/// Spans nest, and each that is entered is left before the round ends. An implementation reads its clock in each call; it
/// must not use the host.
pub trait LayerWatch {
    /// A round begins; whether its layers are to be told. Otherwise nothing more is called until the next round.
    fn begins_round(&self) -> bool;
    /// The round that was told is over: the next one begins at once.
    fn ends_round(&self);
    /// The round enters another phase.
    fn enters_phase(&self, phase: Phase);
    /// What follows is done for `layer`.
    fn enters(&self, layer: Layer);
    /// The span that was entered last is over.
    fn leaves(&self);
    /// A frame came in, or was taken by a device. `head` are its first bytes, from the link header on: all of a
    /// received frame, the headers of one that is sent.
    fn frame(&self, frame: FrameHead<'_>);
}

/// A phase of a round.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Phase {
    /// Frames up.
    Receive,
    /// Timers and tasks.
    Run,
    /// Frames down.
    Send,
    /// The host waits.
    Wait,
}

impl Phase {
    /// Every phase, in the order of a round.
    pub const ALL: [Phase; 4] = [Phase::Receive, Phase::Run, Phase::Send, Phase::Wait];

    /// The phase in a word.
    pub const fn text(self) -> &'static str {
        match self {
            Phase::Receive => "receive",
            Phase::Run => "run",
            Phase::Send => "send",
            Phase::Wait => "wait",
        }
    }
}

/// What a watch is shown of a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameHead<'a> {
    /// Whether it is sent.
    pub is_sent: bool,
    /// Its first bytes.
    pub head: &'a [u8],
    /// Bytes of the link header at their beginning.
    pub link_bytes: usize,
    /// The length of the frame.
    pub length_bytes: usize,
}

/// A host's sink for the length of a round. It goes back where it came from when it is dropped.
struct Marked {
    inner: Option<Box<dyn Sink>>,
    home: Rc<Cell<Option<Box<dyn Sink>>>>,
    watch: Rc<dyn LayerWatch>,
}

impl Sink for Marked {
    fn mask(&self) -> Mask {
        self.inner.as_ref().map_or(Mask::empty(), |inner| inner.mask()).union(Mask::LAYER)
    }
    fn record(&mut self, at: Instant, event: Event) {
        if let Some(inner) = &mut self.inner {
            inner.record(at, event);
        }
    }
    fn looks_at(&mut self, frame: &[u8]) {
        if let Some(inner) = &mut self.inner {
            inner.looks_at(frame);
        }
    }
    fn enters(&mut self, layer: Layer) {
        self.watch.enters(layer);
    }
    fn leaves(&mut self) {
        self.watch.leaves();
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        self.home.set(self.inner.take());
    }
}

/// The watch of a runtime.
pub(crate) struct Watched {
    watch: Rc<dyn LayerWatch>,
    home: Rc<Cell<Option<Box<dyn Sink>>>>,
    is_told: bool,
}

impl Watched {
    pub(crate) fn new(watch: Rc<dyn LayerWatch>) -> Watched {
        Watched { watch, home: Rc::default(), is_told: false }
    }
    /// A round begins: the sinks of the hosts tell the watch if it wants to know.
    pub(crate) fn begin(&mut self, hosts: &[Host]) {
        if !self.watch.begins_round() {
            return;
        }
        self.is_told = true;
        for host in hosts {
            let inner = Some(host.set_sink(Box::new(Ignore)));
            let (home, watch) = (self.home.clone(), self.watch.clone());
            host.set_sink(Box::new(Marked { inner, home, watch }));
        }
    }
    /// The round is over: the sinks are what they were.
    pub(crate) fn end(&mut self, hosts: &[Host]) {
        if !std::mem::take(&mut self.is_told) {
            return;
        }
        self.watch.ends_round();
        for host in hosts {
            drop(host.set_sink(Box::new(Ignore)));
            if let Some(inner) = self.home.take() {
                host.set_sink(inner);
            }
        }
    }
    /// Whom to tell in this round.
    pub(crate) fn told(&self) -> Option<&dyn LayerWatch> {
        self.is_told.then_some(&*self.watch)
    }
}

/// Does `work` for `layer`, and tells the watch if there is one.
pub(crate) fn within<R>(watch: Option<&dyn LayerWatch>, layer: Layer, work: impl FnOnce() -> R) -> R {
    let Some(watch) = watch else { return work() };
    watch.enters(layer);
    let result = work();
    watch.leaves();
    result
}

/// A device whose calls are told.
pub(crate) struct MarkedDevice<'a> {
    device: &'a mut dyn Device,
    watch: &'a dyn LayerWatch,
    layer: Layer,
    tells_frames: Option<usize>,
}

impl<'a> MarkedDevice<'a> {
    /// `tells_frames`: bytes of the link header, where its frames are told, too.
    pub(crate) fn new(
        device: &'a mut dyn Device,
        watch: &'a dyn LayerWatch,
        layer: Layer,
        tells_frames: Option<usize>,
    ) -> MarkedDevice<'a> {
        MarkedDevice { device, watch, layer, tells_frames }
    }
    /// Shows a frame that was taken.
    fn told(&self, frame: &Frame<'_>, done: Result<(), Full>) -> Result<(), Full> {
        if let (Ok(()), Some(link_bytes)) = (done, self.tells_frames) {
            let (head, length_bytes) = (frame.header, frame.len());
            self.watch.frame(FrameHead { is_sent: true, head, link_bytes, length_bytes });
        }
        done
    }
}

impl Device for MarkedDevice<'_> {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        self.watch.enters(self.layer);
        let done = self.device.transmit(frame);
        self.watch.leaves();
        self.told(frame, done)
    }
    fn transmit_shared(&mut self, frame: &Frame<'_>, payload: Shareable<'_>) -> Result<(), Full> {
        self.watch.enters(self.layer);
        let done = self.device.transmit_shared(frame, payload);
        self.watch.leaves();
        self.told(frame, done)
    }
    fn offers(&self) -> Offers {
        self.device.offers()
    }
}
