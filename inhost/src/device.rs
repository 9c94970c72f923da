//! Packets in and out, and connections to any destination: what tunnels, VPNs and sandboxes are made of.
//!
//! [`packets`] joins a host to your program: packets go in and come out by calls, which may be polled.
//! [`Descriptor`] is a link on a TUN descriptor that you were given. A host built with
//! [`any_address`](crate::Builder::any_address) takes every destination for its own, and
//! [`listen_any`](crate::Host::listen_any) accepts the connections, whichever address they meant.
//!
//! ```
//! use inhost::{Host, device};
//!
//! // A program that knows nothing of inhost, behind a link of packets; here it is a host, too.
//! let (tunnel, driver) = device::packets(device::Config::default())?;
//! let (inside, other) = device::packets(device::Config::default())?;
//! let guest = Host::builder()
//!     .driver(other, |link| link.with_address("10.0.0.2/24".parse().unwrap()).with_gateway([10, 0, 0, 1]))
//!     .start()?;
//! let host = Host::builder().any_address(driver).start()?;
//! std::thread::spawn(move || {
//!     inhost::block_on(async {
//!         let outward = async { while let Some(packet) = inside.receive().await { tunnel.send(&packet).await.unwrap() } };
//!         let inward = async { while let Some(packet) = tunnel.receive().await { inside.send(&packet).await.unwrap() } };
//!         inhost::local::both(outward, inward).await
//!     })
//! });
//!
//! let listener = host.block_on(host.listen_any())?;
//! // The caller is answered when it is accepted.
//! let (call, accepted) = inhost::block_on(inhost::local::both(guest.connect("203.0.113.7:443"), listener.accept()));
//! let (call, (stream, caller)) = (call?, accepted?);
//! assert_eq!(stream.local_addr()?.to_string(), "203.0.113.7:443");
//! assert_eq!(caller, call.local_addr()?);
//! # std::io::Result::Ok(())
//! ```

pub use inhost_link::packets::{Config, HostGone, PacketDriver, link as packets};
pub use inhost_link::{Descriptor, Driver};
