//! A thawed connection: its packets get their memory back, and its state is checked.

use super::Connection;
use crate::Config;
use alloc::sync::Arc;
use inhost_base::freeze::Invalid;
use inhost_buf::freeze::ThawPacket;

impl Connection {
    /// Calls `act` with each packet of a thawed connection, and checks the connection. `config` is how it behaves, which
    /// is not written with it.
    pub fn thaw(&mut self, config: Arc<Config>, act: ThawPacket<'_>) -> Result<(), Invalid> {
        self.common.thaw(config)?;
        self.sender.thaw(&self.common, act)?;
        self.receiver.thaw(act)
    }
}
