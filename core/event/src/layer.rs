//! The layers of a host, as an instrument of time tells them apart.

/// A part of a host that the processor works for: a state of VPI's figure 13, and the parts of a segment's cost that its
/// figures 14 and 15 tell apart.
///
/// A span of work belongs to the innermost layer that was entered and not left. What falls together is said here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Layer {
    /// Link drivers, with the system calls that they make.
    Link,
    /// IP by itself: routes and neighbours, fragments, options, ICMP, forwarding. The IP header of a TCP segment is read and
    /// written together with TCP's on most paths; that belongs to [`Layer::Tcp`].
    Ip,
    /// TCP: headers, the search for the connection, what a segment changes, what is sent next.
    Tcp,
    /// UDP.
    Udp,
    /// The checksum of a received segment. When sending, the checksum of data is part of [`Layer::WriteAndSum`], or the
    /// device's.
    Checksum,
    /// The application's bytes are copied into the send queue.
    Write,
    /// The same, and the checksums of segments are computed in the same pass.
    WriteAndSum,
    /// Received bytes are copied to the application.
    Read,
    /// What VPI calls timer management: acknowledgments with round-trip time, retransmission timeout, window and congestion
    /// control, and timers that are due. A timer that a sent segment starts belongs to [`Layer::Tcp`].
    Timers,
    /// Readiness of sockets and wakers of tasks.
    Sockets,
    /// Tasks of applications, with the executor that polls them.
    Application,
    /// The flight recorder's copies of frames.
    Recorder,
    /// The loop that drives the host.
    Loop,
    /// The host sleeps until something is to be done.
    Idle,
    /// The instrument itself: the clock is read.
    Instrument,
}

impl Layer {
    /// Every layer, in the order of a table: from the wire up.
    pub const ALL: [Layer; 15] = [
        Layer::Link,
        Layer::Ip,
        Layer::Tcp,
        Layer::Udp,
        Layer::Checksum,
        Layer::Write,
        Layer::WriteAndSum,
        Layer::Read,
        Layer::Timers,
        Layer::Sockets,
        Layer::Application,
        Layer::Recorder,
        Layer::Loop,
        Layer::Idle,
        Layer::Instrument,
    ];

    /// The layer in a word or a few.
    pub const fn text(self) -> &'static str {
        match self {
            Layer::Link => "link",
            Layer::Ip => "IP",
            Layer::Tcp => "TCP",
            Layer::Udp => "UDP",
            Layer::Checksum => "checksum",
            Layer::Write => "copy in",
            Layer::WriteAndSum => "copy in and checksum",
            Layer::Read => "copy out",
            Layer::Timers => "timers",
            Layer::Sockets => "sockets",
            Layer::Application => "application",
            Layer::Recorder => "recorder",
            Layer::Loop => "loop",
            Layer::Idle => "idle",
            Layer::Instrument => "instrument",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_each_layer_at_its_number() {
        for (number, layer) in Layer::ALL.into_iter().enumerate() {
            assert_eq!(layer as usize, number, "{}", layer.text());
        }
    }
}
