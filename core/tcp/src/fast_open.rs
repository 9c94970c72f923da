//! TCP Fast Open (RFC 7413): its outcome, for the application and for the cookie cache.

use inhost_wire::tcp::FastOpenCookie;

/// What came of opening fast.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum FastOpenState {
    /// It was not tried.
    #[default]
    None,
    /// We asked for a cookie, or sent one without data.
    Requested,
    /// Our SYN bore data, and there is no answer yet.
    DataSent,
    /// The peer took all of it with our SYN.
    DataAcknowledged,
    /// The peer took less of it; the rest went after the handshake.
    DataRefused,
    /// The peer's SYN bore a cookie that holds, and we took its data before the handshake was done.
    Accepted,
}

impl FastOpenState {
    /// Its name in words.
    pub const fn text(self) -> &'static str {
        match self {
            FastOpenState::None => "none",
            FastOpenState::Requested => "requested",
            FastOpenState::DataSent => "data sent",
            FastOpenState::DataAcknowledged => "data acknowledged",
            FastOpenState::DataRefused => "data refused",
            FastOpenState::Accepted => "accepted",
        }
    }
}

/// What an answer to our SYN taught.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastOpenAnswer {
    /// The cookie that the peer gave, if any.
    pub cookie: Option<FastOpenCookie>,
    /// That came in the form of an experiment.
    pub experimental: bool,
    /// Payload that the peer takes in a segment.
    pub peer_mss: u16,
    /// Our SYN bore the option.
    pub asked: bool,
    /// Our SYN had to be sent again, then without data and option.
    pub syn_repeated: bool,
    /// What came of it.
    pub state: FastOpenState,
}
