//! Who gets a frame on a medium that all hear.

use inhost_base::HardwareAddress;
use inhost_wire::ethernet::EthernetView;

/// The stations of a medium, by their MAC addresses.
#[derive(Debug, Default)]
pub(super) struct Stations {
    addresses: Vec<Option<HardwareAddress>>,
}

impl Stations {
    pub(super) fn attach(&mut self, address: Option<HardwareAddress>) -> usize {
        self.addresses.push(address);
        self.addresses.len() - 1
    }
    pub(super) fn len(&self) -> usize {
        self.addresses.len()
    }
    /// The stations for which a frame of `from` is: the one whose address it bears; all others when it is for a group,
    /// or when it is not Ethernet frame.
    pub(super) fn receivers(&self, from: usize, frame: &[u8]) -> impl Iterator<Item = usize> + use<'_> {
        let to = match self.addresses.get(from) {
            Some(Some(_)) => EthernetView::new(frame).ok().map(|view| view.destination()),
            _ => None,
        };
        let to = to.filter(|address| address.0[0] & 1 == 0);
        let all = self.addresses.iter().enumerate();
        all.filter(move |&(station, address)| station != from && (to.is_none() || *address == to))
            .map(|(station, _)| station)
    }
}
