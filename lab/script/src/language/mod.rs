//! A parsed script. The words themselves are described in [the crate's page](crate).

mod call;
mod datagram;
mod error;
mod line;
mod parse;
mod segment;
#[cfg(test)]
mod tests;
mod words;
mod write;

pub use error::{ParseError, Place};
pub use parse::{SCRIPT_LIMIT_LINES, parse_file, parse_text};
pub use words::{duration as duration_of, switch as switch_of};
pub use write::line as line_of;
pub(crate) use write::{call_words, ecn_word, icmp_word};

use inhost_base::Duration;
use inhost_wire::Ecn;
use inhost_wire::tcp::Flags;
use std::ops::RangeInclusive;

/// A whole script, its includes in place.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Its file.
    pub file: String,
    /// The first comment: the section that is proved, and what it asks.
    pub purpose: String,
    /// The defaults that the host starts from.
    pub profile: Profile,
    /// Whether packets are IPv6.
    pub is_ipv6: bool,
    /// Settings of the whole host, in order.
    pub host: Vec<HostSetting>,
    /// Note on the kernel's behaviour.
    pub kernel: KernelNote,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A named set of defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The RFC profile, inhost's default.
    #[default]
    Rfc,
    /// The Linux profile, for choices left open by the RFCs.
    Linux,
}

/// A script's note about the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KernelNote {
    /// Nothing: the kernel passes.
    #[default]
    Same,
    /// The kernel does something else, and why.
    Differs(String),
    /// The kernel cannot be asked, and why.
    CannotRun(String),
}

/// `host NAME VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSetting {
    /// Its source position.
    pub place: Place,
    /// The setting.
    pub name: String,
    /// To what.
    pub value: String,
}

/// One event of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its source position.
    pub place: Place,
    /// As it was written.
    pub text: String,
    /// When it happens.
    pub when: When,
    /// The step.
    pub step: Step,
}

/// When a line happens, counted from the line before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// In the same instant.
    #[default]
    AtOnce,
    /// In one burst with the line before: what the host sends between the two is for the lines that follow.
    InOneBurst,
    /// This much later; an `out` may be off by the tolerance, where one is said.
    After {
        /// The delay.
        delay: Duration,
        /// How far off.
        tolerance: Option<Duration>,
    },
    /// Any time in between: of an `out` only.
    Between(Duration, Duration),
}

/// Kinds of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The peer's segment arrives at the host under test.
    In(Segment),
    /// A router's message arrives.
    InIcmp(Icmp),
    /// The peer's datagram arrives.
    InDatagram(Datagram),
    /// The host under test sends this segment.
    Out(Segment),
    /// It sends this datagram.
    OutDatagram(Datagram),
    /// It sends this part of a datagram.
    OutFragment(Fragment),
    /// It sends this ICMP error.
    OutIcmp(IcmpError),
    /// The host under test sends nothing for the time of the line.
    Wait,
    /// Ignores all that the host sends in the time of the line.
    Skip,
    /// The application does something.
    SocketCall(SocketCall),
    /// A figure is as it should be.
    Assert(Assertion),
}

impl Step {
    /// Whether the host is expected to send something.
    pub fn is_out(&self) -> bool {
        matches!(self, Step::Out(_) | Step::OutDatagram(_) | Step::OutFragment(_) | Step::OutIcmp(_))
    }
    /// Whether it is the call that sets this option.
    pub fn sets(&self, name: &str) -> bool {
        matches!(self, Step::SocketCall(SocketCall { what: CallKind::Set { option, .. }, .. }) if option == name)
    }
}

/// A value that an `out` may leave open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Presence<T> {
    /// Nothing is said.
    #[default]
    Unsaid,
    /// `no …`
    Absent,
    /// It is present, with any value.
    Any,
    /// It is there and this.
    Is(T),
}

/// A segment that is sent in, or that is expected. Sequence numbers count from the initial ones, which are 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Segment {
    /// Which peer (port) speaks or is spoken to.
    pub peer: u8,
    /// Its flags, PSH aside.
    pub flags: Flags,
    /// Whether PSH is set; open in an `out` where nothing is said.
    pub push: Option<bool>,
    /// The first number.
    pub sequence: Option<i64>,
    /// Numbers of the first byte and after the last.
    pub data: Option<(i64, i64)>,
    /// The acknowledgment number.
    pub acknowledgment: Option<i64>,
    /// The window in bytes, after scaling.
    pub window: Option<RangeInclusive<u32>>,
    /// The urgent pointer's field.
    pub urgent_pointer: Option<u16>,
    /// The ECN bits of the IP header.
    pub ecn: Option<Ecn>,
    /// The options.
    pub options: Options,
    /// Of an `in` SYN: a new incarnation with this initial sequence number.
    pub initial_sequence: Option<u32>,
    /// Of an `in`: the checksum is wrong.
    pub bad_checksum: bool,
    /// Of an `in`: the data is not the stream's (RFC 5961 §5 speaks of injection).
    pub forged: bool,
}

/// A segment's options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Largest segment.
    pub mss: Presence<u16>,
    /// Window scale.
    pub scale: Presence<u8>,
    /// SACK permitted.
    pub sack_permitted: Presence<()>,
    /// SACK blocks. An `out` without a word about them has none.
    pub sack: Presence<Vec<(i64, i64)>>,
    /// Timestamps.
    pub timestamps: Presence<()>,
    /// The timestamp's value: of an `in` only.
    pub timestamp_value: Option<u32>,
    /// The timestamp's echo.
    pub timestamp_echo: Option<Echo>,
    /// Fast Open.
    pub fast_open: Presence<Cookie>,
    /// Of an `in`: bytes of further options, as they are.
    pub raw: Vec<u8>,
}

/// Which timestamp is echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// This one.
    Value(u32),
    /// Of an `in`: the host's latest, less so many of its milliseconds.
    Earlier(u32),
}

/// Contents of a Fast Open option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cookie {
    /// Nothing: one is asked for.
    Request,
    /// The one that the host gave last, or the peer's own, of eight bytes.
    Known,
    /// This.
    Bytes(Vec<u8>),
}

/// A message about something that the host under test has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// Its type.
    pub kind: IcmpKind,
    /// The quoted packet.
    pub about: About,
    /// Which peer's connection.
    pub peer: u8,
}

/// Packet quoted by an ICMP error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A segment with this sequence number.
    Segment(i64),
    /// A long datagram from this port of the host's to the peer, which the host need not have sent.
    Datagram(u16),
    /// The host's first datagram, or its second, and so on, as it was sent.
    Sent(u32),
}

/// A datagram of UDP that is sent in, or that is expected. Its data follows from its place among the datagrams of its
/// sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Bytes of data.
    pub bytes: usize,
    /// Which peer speaks or is spoken to.
    pub peer: u8,
    /// The host's port.
    pub port: u16,
    /// Whether its checksum was left out.
    pub no_checksum: bool,
    /// Of an `in`: the checksum is wrong.
    pub bad_checksum: bool,
    /// Of an `in`: what its length field says in place of what is right.
    pub length: Option<u16>,
}

/// A part of a datagram of the host's that was too long for its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where it begins and ends in what IP carries, the header of UDP included.
    pub from: usize,
    /// After its last byte.
    pub to: usize,
    /// Whether others follow.
    pub more: bool,
}

/// An ICMP error that the host sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// Its type.
    pub kind: IcmpKind,
    /// How much it quotes of a packet that came, from its IP header on.
    pub quotes: Option<usize>,
}

/// ICMP errors of routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names are those of RFC 792.
pub enum IcmpKind {
    NetworkUnreachable,
    HostUnreachable,
    ProtocolUnreachable,
    PortUnreachable,
    Prohibited,
    TimeExceeded,
    ParameterProblem,
    SourceQuench,
    /// Fragmentation needed, or packet too big, with the next hop's MTU.
    TooBig(u32),
}

/// A socket call with its expected result.
#[derive(Clone, Debug, PartialEq)]
pub struct SocketCall {
    /// The call.
    pub what: CallKind,
    /// The socket that does it.
    pub on: String,
    /// The name of the socket that comes of it.
    pub names: Option<String>,
    /// The result.
    pub expect: Expect,
}

/// Socket calls.
#[derive(Clone, Debug, PartialEq)]
pub enum CallKind {
    /// Makes a socket whose options can be set before it is used.
    Socket {
        /// Our port, or any.
        port: Option<u16>,
    },
    /// Opens a datagram socket on this port of any address, connected to nobody.
    Datagrams {
        /// Our port.
        port: u16,
    },
    /// Sends a datagram.
    Send {
        /// Bytes of data.
        bytes: usize,
        /// To which peer; else where the socket is connected.
        to: Option<u8>,
    },
    /// Takes the next datagram, and compares it with what was sent.
    Receive {
        /// At most.
        bytes: usize,
    },
    /// Calls the peer, or connects a datagram socket to it.
    Connect {
        /// Which peer.
        peer: u8,
        /// Bytes that go with the SYN (RFC 7413).
        data: Option<usize>,
    },
    /// Listens on port 8000.
    Listen {
        /// Connections that may wait.
        backlog: Option<u32>,
    },
    /// Takes a connection.
    Accept,
    /// Writes the next bytes of the stream.
    Write {
        /// The count.
        bytes: usize,
        /// The last one is urgent.
        urgent: bool,
        /// More follows.
        more: bool,
    },
    /// Reads bytes of the peer's stream, and compares them.
    Read {
        /// At most.
        bytes: usize,
    },
    /// Closes our side.
    Shutdown,
    /// Lets go of the socket.
    Close,
    /// Resets the connection.
    Abort,
    /// Sets an option.
    Set {
        /// Which.
        option: String,
        /// To what.
        value: String,
    },
    /// Asks for the socket's error and clears it.
    Error,
}

/// Expected result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It works: of a write, all bytes are taken.
    Done,
    /// So many bytes.
    Bytes(usize),
    /// So many bytes of a datagram that has more.
    Cut(usize, usize),
    /// It succeeds with any byte count.
    Any,
    /// The peer's stream has ended.
    End,
    /// It fails in this way.
    Fails(Failure),
}

/// Errors of calls, the same for both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names say it.
pub enum Failure {
    WouldBlock,
    Refused,
    Reset,
    TimedOut,
    Unreachable,
    Closed,
    NotConnected,
    InUse,
    Invalid,
    NotSupported,
    TooLong,
    NoDestination,
}

/// `assert info.NAME OPERATOR VALUE`, or `assert ready.NAME == yes`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    /// Of which socket.
    pub on: String,
    /// Whether readiness is asked, not the information structure.
    pub ready: bool,
    /// The figure's name.
    pub field: String,
    /// The expected value.
    pub must: Must,
}

/// Expected value of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Must {
    /// This word.
    Word(String),
    /// Not this word.
    NotWord(String),
    /// A number between these, both included; times in nanoseconds.
    Between(f64, f64),
    /// Any other number.
    Not(f64),
}
