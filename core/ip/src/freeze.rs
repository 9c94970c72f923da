//! A thawed Internet Protocol: its packets get their memory back, its state is checked; a fork gets keys of its own.

use crate::Ip;
use crate::table::Keyed;
use inhost_base::Random;
use inhost_base::freeze::{Invalid, require};
use inhost_buf::freeze::ThawPacket;

impl Ip {
    /// Calls `act` with each packet of a thawed host, and checks the state. `links` is how many there are.
    pub fn thaw(&mut self, links: usize, act: ThawPacket<'_>) -> Result<(), Invalid> {
        self.input.reassembly_mut().thaw(act)?;
        let paths = self.output.paths_mut();
        require(links > 0 && paths.interfaces().len() == links, "the number of links")?;
        for (number, interface) in paths.interfaces_mut().iter_mut().enumerate() {
            interface.thaw(number, act)?;
        }
        paths.routing_mut().check()
    }
    /// Gives a fork keys of its own: what it does from now on cannot be inferred from the host that it was copied from.
    /// Addresses that were made of the old key stay.
    pub fn reseed(&mut self, random: &mut Random) {
        self.keyed = Keyed::new(random);
        self.input.reassembly_mut().rekey(self.keyed);
        self.output.reseed(self.keyed, random);
        let paths = self.output.paths_mut();
        paths.reseed(random);
        paths.routing_mut().rekey(self.keyed);
        for interface in paths.interfaces_mut().iter_mut() {
            interface.rekey(self.keyed);
        }
    }
}
