//! Link drivers: where frames enter and leave a host.
//!
//! A [`Driver`] is a [`Device`](inhost_buf::Device) that also receives. It never blocks, starts no thread and reads no clock: its owner
//! passes the time, waits for its descriptor and its deadline, and calls it again. Nothing here decides anything about
//! IP; a driver sees whole frames.
//!
//! ```
//! use inhost_buf::{Batch, Device, Frame, Offload, Pool, Slices};
//! use inhost_link::{Driver, memory};
//!
//! let (mut here, mut there) = memory::pair(&memory::Config::default()).unwrap();
//! here.transmit(&Frame { header: b"frame", payload: Slices::EMPTY, offload: Offload::None }).unwrap();
//!
//! let (mut pool, mut batch) = (Pool::new(1 << 20), Batch::new());
//! assert_eq!(there.receive(&mut pool, &mut batch).unwrap(), 1);
//! assert_eq!(batch.pop().unwrap().bytes(), b"frame");
//! ```
#![deny(unsafe_op_in_unsafe_fn)]

mod boxed;
mod descriptor;
mod driver;
mod error;
mod faults;
pub mod memory;
mod offload;
mod open;
pub mod packets;
mod serial;
mod spec;
mod statistics;
mod tunnel;

pub use descriptor::Descriptor;
pub use driver::{AddressOffer, Driver, FrameFormat, Handover, NotBack};
pub use error::OpenError;
pub use faults::{Faults, Rates};
pub use open::{open, take_over};
pub use serial::{LineUse, Serial, SerialConfig, SerialOffer};
pub use spec::{Forward, Framing, Kind, Spec, SpecError, Transport};
pub use statistics::{Discard, Statistics};
pub use tunnel::{Kept, KeptFlow, Tunnel, TunnelConfig};
