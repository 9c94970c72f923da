//! Scripts: how one TCP connection behaves, packet by packet, in our own language.
//!
//! A script says what a peer sends, what the application calls, and what the host under test must send and when. It
//! is played against our [`Stack`](inhost_stack::Stack) in virtual time, where a minute costs nothing, and against
//! the Linux kernel over a TUN device in real time, so that every difference is seen. This crate drives hosts from
//! outside; it decides nothing that a host decides, and keeps no state of TCP beyond the numbers of its own packets.
//!
//! ```
//! use inhost_script::{language, suite};
//! let script = "# RFC 9293 §3.5: a call is answered
//!     call connect
//!     out SYN seq 0 mss 1460
//!     in  SYN ACK ack 1 mss 1460
//!     out seq 1 ack 1
//!     assert info.state == ESTABLISHED";
//! let script = language::parse_text("example.script", script).unwrap();
//! assert!(suite::on_ours(&script).passed());
//! ```
//!
//! # The language
//!
//! One line is one event; `#` begins a comment; commas are spaces. The first line is a comment with the section that
//! the script proves. Sequence numbers count from each side's initial one, so that data begins at 1.
//!
//! | line | what happens |
//! |---|---|
//! | `in SEGMENT` | the peer's segment arrives |
//! | `in icmp KIND about N` | a router's message arrives that quotes the host's segment with number N |
//! | `in icmp KIND about datagram P` | one that quotes a datagram from the host's port P, sent or not |
//! | `in icmp KIND about sent K` | one that quotes the K-th datagram that the host has sent |
//! | `in datagram N` | the peer's datagram of N bytes arrives |
//! | `out datagram N` | the host sends a datagram of N bytes |
//! | `out fragment A..B [more]` | it sends the bytes A up to B of one that was too long, the header of UDP counted |
//! | `out icmp KIND [quotes N]` | it sends an ICMP error, which quotes the first N bytes of a packet that came |
//! | `out SEGMENT` | the host sends this segment, and nothing else before it |
//! | `call CALL` | the application does something |
//! | `assert info.F == V` | a figure of the information structure; also `!= < <= > >=` and `in A..B` |
//! | `assert ready.F == yes` | readable, writable, acceptable, connected, peer_closed, urgent, error |
//! | `wait T` | the host sends nothing for so long |
//! | `skip [T]` | ignores all that it sends in that time |
//!
//! `after T` before `in`, `out` or `call` is a time counted from the line before: `after 200ms`, with a tolerance
//! `after 200ms ~5ms`, or for `out` a range `after 1s..3s`. Without it the event follows at once,
//! and it is a failure if the host has sent something before. `also` before `in` or `call` lets several events happen in
//! one burst, before what the host sends meanwhile is looked at; the segments of `in … each N` are such a burst.
//!
//! **Segments** are flags in capitals, then fields by name in any order. `ACK` is understood unless there is a `SYN`
//! or `RST`; `ack N` implies it, `no ACK` denies it. `PSH` is looked at only where `PSH` or `no PSH` is said.
//!
//! | field | meaning |
//! |---|---|
//! | `data A..B` | bytes A up to B (not included); `each N` cuts them into segments of N |
//! | `seq N`, `ack N` | numbers; of an `in` they follow from what was sent before where nothing is said |
//! | `win N`, `win A..B`, `win any` | the window in bytes, after scaling |
//! | `urgent N` | the urgent pointer |
//! | `ecn ce`, `ect0`, `ect1`, `none` | the mark of the IP header |
//! | `mss N`, `scale N`, `sackok`, `ts`, `fo …` | options; `no …` and, in `out`, `… any` |
//! | `sack A..B C..D` | SACK blocks; an `out` without a word about them has none |
//! | `ts V`, `ecr V`, `ecr last-N` | timestamps of a chosen value, and the echo, also of what the host sent N ms earlier; else the peer keeps them by itself |
//! | `fo request`, `fo cookie`, `fo HEX` | Fast Open: the wish, the cookie known, another |
//! | `peer N` | a second peer, with its own port |
//! | `isn N` | of an `in` SYN: a new connection from the same port |
//! | `badsum`, `forged`, `raw HEX` | of an `in`: a wrong checksum, other data, further options |
//!
//! **Datagrams** have after their length `peer N`, `port P` (the host's, 9000 where nothing is said) and `nosum`; of an
//! `in` also `badsum`, and `length L` for what its length field says. Each has data of its own, by its place among those
//! of its sender, and what is sent and received is compared with it.
//!
//! **Calls**: `socket [port N]`, `datagrams port N`, `send N [to PEER]`, `receive N`, `connect [peer N] [data N]`, `listen [backlog N]`, `accept`, `write N [urgent]
//! [more]`, `read N`, `shutdown`, `close`, `abort`, `set OPTION VALUE`, `error`; then `on NAME` and `as NAME` for other
//! sockets than `main` and `listener` (of datagrams: `datagrams`, which a call that others know, too, has to name), and
//! `expect` with a number of bytes (`50 of 1400` of a datagram that is cut), `any`, `ok`, `end`, or a failure such as
//! `would-block` or `reset`. What is written and read is compared byte by byte with what was sent.
//!
//! **The judge**: [`differ`] draws exchanges by itself, and compares the kernel with our `linux` profile.
//!
//! **Headings**: `profile rfc|linux`, `network ipv6`, `host SETTING VALUE` (`host without CHOICE` undoes one of the choices of
//! our `linux` profile, see [`choices`]), `include FILE`, and what is known of the
//! kernel: `kernel: differs because …` or `kernel: cannot run because …`.
#![forbid(unsafe_code)]

pub mod choices;
mod datagram;
pub mod differ;
pub mod digest;
mod drive;
mod flow;
pub mod kernel;
pub mod language;
mod mail;
mod matching;
pub mod ours;
mod packet;
mod run;
mod side;
mod stream;
pub mod suite;
pub mod table;
mod trace;

pub use ours::Offloads;
pub use run::{Failed, play};
pub use side::{Came, Figure, Side};
