//! Data with our SYN (RFC 7413).

use inhost_wire::tcp::FastOpenCookie;

/// Kept while a connection opens, beside its queues.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct FastOpen {
    /// The option of our first SYN, or SYN and ACK.
    pub option: Option<FastOpenCookie>,
    pub experimental: bool,
    /// Payload that our SYN may bear; 0 for none.
    pub most_data: u16,
    /// Payload that it bore.
    pub sent: u32,
    /// The data of the peer's SYN was taken: we may answer before the handshake is done.
    pub accepted: bool,
    /// From the answer to our SYN.
    pub learned: Option<(FastOpenCookie, bool)>,
}
