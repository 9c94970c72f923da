//! X/Open's transport interface (XTI), typed for Rust, on the sockets of one host.
//!
//! XTI is what X/Open made of System V's Transport Layer Interface (TLI); the source here is the Networking Services
//! specification (XNS 5.2). A [`TransportEndpoint`] is opened for a [`Provider`], bound, connected, used and released by the
//! calls of the standard, whose names are those of the methods without `t_`. Where the standard speaks of synchronous
//! mode, a method is `async`; where it speaks of `O_NONBLOCK`, a method begins with `try_`.
//!
//! - [`State`], [`Event`] and [`Position`] are the standard's state table, which is pure. An endpoint asks it before it does
//!   anything, so a call out of turn is [`Error::OutState`].
//! - [`Look`] is an event that has to be received, as `t_look` gives it. A call that meets one fails with [`Error::Look`].
//! - [`TransportOption`] has the options, typed.
//!
//! TCP behaves as the standard's part on Internet protocols says. A connection is made before `t_listen` returns it, and
//! rejecting it resets it. Expedited data is TCP's urgent data, in line. No data goes with an opening or a disconnect.
//! `T_ORDREL` does not keep `t_snd` from sending, as in XNS 5 and unlike XNS 4.
//!
//! The crate does not have `t_alloc`, `t_free`, `t_error` and `t_strerror`, which Rust has itself, nor `t_sndv` and its
//! relatives, so that `t_sysconf` has nothing to tell.
//!
//! ```
//! use inhost_base::{Endpoint, Instant, Ipv4Addr};
//! use inhost_socket::Host;
//! use inhost_stack::{Stack, StackConfig};
//! use inhost_xti::{Error, Look, Provider, SendFlags, TransportEndpoint};
//!
//! let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
//! let here = Endpoint::new(Ipv4Addr::LOCALHOST, 7);
//! let served = host.run_alone(async {
//!     let server = TransportEndpoint::open(&host, Provider::Tcp);
//!     server.bind(Some(here), 1)?;
//!     let client = TransportEndpoint::open(&host, Provider::Tcp);
//!     client.bind(None, 0)?;
//!     client.connect(here).await?;
//!     client.snd(b"hello", SendFlags::default()).await?;
//!     client.sndrel()?;
//!
//!     let caller = server.listen().await?;
//!     server.accept(&server, caller.sequence)?;
//!     let mut place = [0; 16];
//!     let received = server.rcv(&mut place).await?;
//!     assert_eq!(&place[..received.length_bytes], b"hello");
//!     assert_eq!(server.rcv(&mut place).await, Err(Error::Look(Look::OrderlyRelease)));
//!     server.rcvrel()?;
//!     server.sndrel()
//! });
//! assert_eq!(served, Some(Ok(())));
//! ```
#![forbid(unsafe_code)]

mod endpoint;
mod error;
mod options;
mod provider;
mod state;

pub use endpoint::{
    Addresses, Bound, Datagram, DatagramFault, Disconnection, Indication, Received, SendFlags, Sequence,
    TransportEndpoint,
};
pub use error::{Error, Look};
pub use options::{OptionRequest, OptionStatus, TransportOption};
pub use provider::{Info, Limit, Provider, Service};
pub use state::{Event, Position, State};
