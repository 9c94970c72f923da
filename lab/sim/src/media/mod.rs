//! Media that several stations share, and lines with a protocol of their own: when which frame arrives.

mod concentrator;
mod ethernet;
mod fddi;
mod imp;
mod llp;
mod slip;
mod stations;
mod token_ring;

pub use concentrator::{Concentrator, ConcentratorConfig};
pub use ethernet::Ethernet;
pub use fddi::{Fddi, FullDuplexFddi};
pub use imp::Imps;
pub use llp::LlpLine;
pub use slip::SlipLine;
pub use token_ring::TokenRing;

use inhost_base::{HardwareAddress, Instant};

/// A medium on virtual time, with its stations. It is pure: frames and instants in, frames and instants out.
///
/// The network calls [`SharedMedium::step`] at each instant that [`SharedMedium::next`] names, in the order of time
/// among all media, and offers frames as hosts send them. A host offers no more frames than its station's queue was
/// given room for at [`Network::join_medium`](crate::Network::join_medium).
pub trait SharedMedium {
    /// Adds a station, with its MAC address if it has one; gives its number, counted from 0.
    fn attach(&mut self, address: Option<HardwareAddress>) -> usize;
    /// Takes a whole frame that `station` sends.
    fn offer(&mut self, station: usize, frame: Vec<u8>, now: Instant);
    /// When something happens next inside; [`Instant::FAR_FUTURE`] for never.
    fn next(&self) -> Instant;
    /// Does what happens at `now`, and adds what stations notice of it.
    fn step(&mut self, now: Instant, happened: &mut Vec<Happened>);
    /// Octets that have arrived at or left a station, for machines that take an interrupt for each. Default: none.
    fn octets(&self, station: usize) -> u64 {
        let _ = station;
        0
    }
    /// Counters by name.
    fn counters(&self) -> Vec<(&'static str, u64)>;
}

/// What stations notice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Happened {
    /// A frame has arrived at a station.
    Delivered {
        /// The station.
        station: usize,
        /// The whole frame.
        frame: Vec<u8>,
    },
    /// A frame that a station offered has left it, or was given up. Its place in the station's queue is free.
    Released {
        /// The station.
        station: usize,
    },
}
