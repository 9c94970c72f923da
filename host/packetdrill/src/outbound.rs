//! Datagrams on their way to the tool.

use inhost_base::Instant;
use inhost_buf::{Device, Frame, Full};
use std::collections::VecDeque;

/// A datagram on its way to the tool.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub at: Instant,
    pub bytes: Vec<u8>,
}

/// Takes frames as they leave and writes down when.
pub(crate) struct Wire<'a> {
    outbound: &'a mut VecDeque<Outbound>,
    at: Instant,
    takes_nothing: bool,
}

impl<'a> Wire<'a> {
    pub fn new(outbound: &'a mut VecDeque<Outbound>, at: Instant, takes_nothing: bool) -> Wire<'a> {
        Wire { outbound, at, takes_nothing }
    }
}

impl Device for Wire<'_> {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        if self.takes_nothing {
            return Err(Full);
        }
        let mut bytes = vec![0; frame.len()];
        frame.write_to(&mut bytes);
        self.outbound.push_back(Outbound { at: self.at, bytes });
        Ok(())
    }
}
