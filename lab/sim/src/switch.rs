//! A switch: frames go where their receiver was last seen.

use std::collections::BTreeMap;

use inhost_base::{Duration, HardwareAddress, Instant};
use inhost_wire::ethernet::EthernetView;

/// Addresses that a switch remembers; when it is full, the ones it does not know are sent everywhere.
const LEARNT: usize = 4096;
/// How long an address is remembered (IEEE 802.1Q's default ageing time).
const AGE: Duration = Duration::from_secs(300);

/// What a switch knows. Its ports are the links joined to it. It does not look for loops: join switches as a tree.
#[derive(Debug, Default)]
pub(crate) struct Switch {
    /// Its links, each with the end that is here.
    pub(crate) ports: Vec<(usize, usize)>,
    learnt: BTreeMap<HardwareAddress, (usize, Instant)>,
}

/// Where a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Onward {
    /// Out of one port.
    Port(usize),
    /// Out of every port but the one it came in by.
    Everywhere,
    /// Nowhere: its receiver is where it came from, or it is not a frame.
    Nowhere,
}

impl Switch {
    /// Decides on a frame that came in by `port`, and learns from it.
    pub(crate) fn decide(&mut self, frame: &[u8], port: usize, now: Instant) -> Onward {
        let Ok(view) = EthernetView::new(frame) else { return Onward::Nowhere };
        let (source, destination) = (view.source(), view.destination());
        let is_known = self.learnt.contains_key(&source);
        if source.0[0] & 1 == 0 && (is_known || self.learnt.len() < LEARNT) {
            self.learnt.insert(source, (port, now));
        }
        if destination.0[0] & 1 == 1 {
            return Onward::Everywhere;
        }
        match self.learnt.get(&destination) {
            Some(&(to, seen)) if now.since(seen) <= AGE => {
                if to == port {
                    Onward::Nowhere
                } else {
                    Onward::Port(to)
                }
            }
            _ => Onward::Everywhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(from: u8, to: u8) -> [u8; 20] {
        let mut frame = [0; 20];
        (frame[5], frame[11]) = (to, from);
        frame
    }

    #[test]
    fn it_learns_where_everybody_is_and_forgets_in_time() {
        let mut switch = Switch::default();
        let now = Instant::from_millis(1);
        assert_eq!(switch.decide(&frame(1, 2), 0, now), Onward::Everywhere);
        assert_eq!(switch.decide(&frame(2, 1), 3, now), Onward::Port(0));
        assert_eq!(switch.decide(&frame(1, 2), 0, now), Onward::Port(3));
        assert_eq!(switch.decide(&frame(9, 1), 0, now), Onward::Nowhere);
        // It moved.
        assert_eq!(switch.decide(&frame(1, 2), 2, now), Onward::Port(3));
        assert_eq!(switch.decide(&frame(2, 1), 3, now), Onward::Port(2));
        assert_eq!(switch.decide(&frame(2, 1), 3, now + Duration::from_secs(301)), Onward::Everywhere);
        let mut group = frame(1, 2);
        group[0] = 1;
        assert_eq!(switch.decide(&group, 0, now), Onward::Everywhere);
        assert_eq!(switch.decide(&[0; 9], 0, now), Onward::Nowhere);
    }
}
