//! A run as one number: every frame that its hosts sent and were delivered, and every event. Two builds of the stack
//! whose digests are equal did the same.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::hash::Hasher;
use std::rc::Rc;

use inhost_base::{Instant, Key};
use inhost_event::{Event, Mask, Sink};
use siphasher::sip::SipHasher13;

use crate::network::{Network, Seen, Watcher};

/// Contents of a digest. A host takes other ways through its code where nobody asks for events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// Frames, and the hosts' events go nowhere.
    Frames,
    /// Frames and events.
    FramesAndEvents,
}

/// The digest of a run that goes on.
#[derive(Clone, Debug, Default)]
pub struct Digest(Rc<RefCell<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    hasher: SipHasher13,
    /// Sockets, by host and key, in the order in which they were first heard of: what a table calls them is its own
    /// business.
    sockets: BTreeMap<(usize, u64), u64>,
}

impl Digest {
    /// Takes what happens in `network` from now on.
    pub fn attach(&self, network: &mut Network, takes: Takes) {
        network.watch(self.clone());
        if takes == Takes::FramesAndEvents {
            for (number, host) in network.hosts().enumerate() {
                host.set_sink(Box::new(Events { host: number, digest: self.clone() }));
            }
        }
    }
    /// The number.
    pub fn value(&self) -> u64 {
        self.0.borrow().hasher.finish()
    }
}

impl Taken {
    fn frame(&mut self, what: u8, host: usize, frame: &Seen<'_>) {
        self.hasher.write_u8(what);
        self.number(host as u64);
        self.number(frame.at.as_nanos());
        self.number(frame.link as u64);
        self.number(frame.end as u64);
        self.number(frame.bytes.len() as u64);
        self.hasher.write(frame.bytes);
    }
    fn event(&mut self, host: usize, at: Instant, mut event: Event) {
        if let Some(socket) = socket_of(&mut event) {
            let next = self.sockets.len() as u64;
            *socket = Key::from_bits(*self.sockets.entry((host, socket.to_bits())).or_insert(next));
        }
        self.hasher.write_u8(b'e');
        self.number(host as u64);
        self.number(at.as_nanos());
        // Nothing that is written into a hasher fails.
        let _ = write!(self, "{event:?}");
    }
    /// The same on every machine.
    fn number(&mut self, number: u64) {
        self.hasher.write(&number.to_le_bytes());
    }
}

impl Write for Taken {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.hasher.write(text.as_bytes());
        Ok(())
    }
}

impl Watcher for Digest {
    fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        self.0.borrow_mut().frame(b's', host, frame);
    }
    fn delivered(&mut self, host: usize, frame: &Seen<'_>) {
        self.0.borrow_mut().frame(b'd', host, frame);
    }
}

/// The events of one host.
#[derive(Debug)]
struct Events {
    host: usize,
    digest: Digest,
}

impl Sink for Events {
    fn mask(&self) -> Mask {
        Mask::all()
    }
    fn record(&mut self, at: Instant, event: Event) {
        self.digest.0.borrow_mut().event(self.host, at, event);
    }
}

fn socket_of(event: &mut Event) -> Option<&mut Key> {
    match event {
        Event::SegmentReceived(what) => Some(&mut what.socket),
        Event::SegmentSent(what) => Some(&mut what.socket),
        Event::Connected(what) => Some(&mut what.socket),
        Event::Disconnected(what) => Some(&mut what.socket),
        Event::Ended(what) => Some(&mut what.socket),
        Event::StateChanged(what) => Some(&mut what.socket),
        Event::Retransmitted(what) => Some(&mut what.socket),
        Event::WindowChanged(what) => Some(&mut what.socket),
        Event::CauseChanged(what) => Some(&mut what.socket),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak;

    #[test]
    fn a_seed_has_one_digest_and_others_have_others() {
        let digest = |seed, takes| soak::digest(seed, takes).unwrap();
        for takes in [Takes::Frames, Takes::FramesAndEvents] {
            assert_eq!(digest(1, takes), digest(1, takes));
            assert_ne!(digest(1, takes), digest(2, takes));
        }
        assert_ne!(digest(1, Takes::Frames), digest(1, Takes::FramesAndEvents));
    }
}
