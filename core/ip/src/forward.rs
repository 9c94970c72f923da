//! Packets for others, sent on between links: what a router does (RFC 1812).

/// How a router forwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forwarding {
    /// Whether a sender on the same link as the next hop is told of it (RFC 1812 §5.2.7.2, RFC 4861 §8.2). Default: yes.
    pub redirects: bool,
    /// Packets that wait for the device of one link; what is beyond is dropped. Default: 256.
    pub queue_packets: usize,
}

impl Default for Forwarding {
    fn default() -> Self {
        Forwarding { redirects: true, queue_packets: 256 }
    }
}
