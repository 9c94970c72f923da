//! A connection of a running host: its ledgers say how long, its frames say why in detail.
//!
//! The ledger of the sending side is exact where a capture must infer: whether the application, the send buffer, the
//! peer's window or the pacer held data back. A capture tells apart what the ledger has as one cause: slow start from a
//! standing queue, or a timeout from a black hole. So each cause of the ledger is divided among those that the frames
//! showed and that it may stand for.

use std::net::SocketAddr;

use inhost_event::SendCause;
use inhost_tcp::Info;
use inhost_wire::tcp::TcpOptions;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::cause::Cause;

/// What a host knows of one of its connections.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Known {
    /// The host's end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
    /// Time of the sending side by cause, in nanoseconds, in the order of [`SendCause::ALL`].
    pub send_ns: [u64; SendCause::COUNT],
    /// Bytes that the peer acknowledged, and bytes that came in order.
    pub bytes: [u64; 2],
    /// The least round trip of late, in nanoseconds.
    pub round_trip_ns: Option<u64>,
    /// When it is asked, in nanoseconds since 1970, as the frames have it; where it is known.
    pub now_ns: Option<u64>,
    /// What the handshake agreed on, which the recorded frames no longer show; where it is known.
    pub agreed: Option<Agreed>,
}

/// What a handshake agreed on. Pairs are the host's and its peer's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Agreed {
    /// Payload of a segment that each said it takes, in bytes.
    pub mss_bytes: [u16; 2],
    /// Bits by which the windows of each are shifted; none where windows are not scaled.
    pub window_scales: Option<[u8; 2]>,
    /// Whether segments have timestamps.
    pub has_timestamps: bool,
    /// Whether there are selective acknowledgments.
    pub has_sack: bool,
}

impl Agreed {
    /// The options of both SYNs, as far as what they agreed on shows.
    pub(crate) fn options(&self) -> [TcpOptions; 2] {
        [0, 1].map(|side| TcpOptions {
            mss: Some(self.mss_bytes[side]),
            window_scale: self.window_scales.map(|scales| scales[side]),
            sack_permitted: self.has_sack,
            timestamps: self.has_timestamps.then_some((0, 0)),
            ..TcpOptions::NONE
        })
    }
}

impl Known {
    /// From the figures of a connection between these ends.
    pub fn new(local: SocketAddr, remote: SocketAddr, info: &Info) -> Known {
        let mut send_ns = [0; SendCause::COUNT];
        for (cause, time) in info.ledgers.send.iter() {
            send_ns[cause as usize] = time.as_nanos();
        }
        Known {
            local,
            remote,
            send_ns,
            bytes: [info.sent_bytes, info.received_bytes],
            round_trip_ns: info.min_round_trip.map(|trip| trip.as_nanos()),
            now_ns: None,
            agreed: Some(Agreed {
                mss_bytes: [info.offered_segment_bytes, info.peer_segment_bytes],
                window_scales: info
                    .window_scaling
                    .then_some([info.receive_window_scale, info.send_window_scale]),
                has_timestamps: info.timestamps,
                has_sack: info.sack,
            }),
        }
    }
}

/// Repairs: a ledger counts them from when the loss was found, an account from the last progress.
const REPAIRS: [Cause; 6] = [
    Cause::Timeout,
    Cause::SpuriousTimeout,
    Cause::TailLoss,
    Cause::MtuBlackHole,
    Cause::BrokenRecovery,
    Cause::FastRecovery,
];

/// Causes that a ledger counts as awaiting an acknowledgment.
const WAITS: [Cause; 4] =
    [Cause::AwaitingAcknowledgment, Cause::AwaitingPeer, Cause::ThinkTime, Cause::ApplicationIdle];

/// Which causes of an account a cause of a ledger stands for, and which it is where the frames show none of them. Those
/// that stand for the fewest come first, since what they take is no longer there for the others.
const MEANINGS: [(SendCause, &[&[Cause]], Cause); SendCause::COUNT] = {
    use Cause as C;
    const IDLE: [Cause; 3] = [C::ApplicationIdle, C::ThinkTime, C::AwaitingPeer];
    const WINDOW: &[Cause] = &[C::SlowStart, C::SlowStartRestart, C::CongestionWindow, C::BottleneckRate];
    [
        (SendCause::Opening, &[&[C::Opening, C::SynLoss, C::AcceptQueue]], C::Opening),
        (SendCause::Closed, &[&[C::Closed, C::Closing]], C::Closed),
        (SendCause::Link, &[], C::Link),
        (SendCause::SendBuffer, &[], C::SendBuffer),
        (SendCause::SmallData, &[&[C::Nagle, C::NagleDelayedAck]], C::Nagle),
        (SendCause::ClosedWindow, &[&[C::ZeroWindow, C::SillyWindow]], C::ZeroWindow),
        (
            SendCause::ReceiverWindow,
            // A timer takes the whole wait that it ends, and a full window is a part of it.
            &[&[C::ReceiverWindow, C::ZeroWindow, C::SillyWindow, C::BottleneckRate], &REPAIRS],
            C::ReceiverWindow,
        ),
        // Of what the frames have as idle a part is behind a partial segment, and not here.
        (
            SendCause::ApplicationIdle,
            &[&[C::ThinkTime, C::AwaitingPeer], &[C::ApplicationIdle]],
            C::ApplicationIdle,
        ),
        (SendCause::Timeout, &[&REPAIRS], C::Timeout),
        (SendCause::LossRecovery, &[&REPAIRS], C::FastRecovery),
        // A pacer spreads the window over the round trip: what limits is what limits the window.
        (SendCause::Pacing, &[&[C::Pacing], WINDOW, &REPAIRS], C::Pacing),
        (SendCause::CongestionWindow, &[WINDOW, &REPAIRS], C::CongestionWindow),
        (
            SendCause::AwaitingAcknowledgment,
            // Behind a partial segment the application is waited for.
            &[&[C::AwaitingAcknowledgment], &IDLE, &REPAIRS, WINDOW],
            C::AwaitingAcknowledgment,
        ),
    ]
};

/// Makes an account say what the ledger says, divided as it was.
pub(crate) fn impose(account: &mut Account, known: &Known) {
    let is_buffer_small =
        known.send_ns[SendCause::SendBuffer as usize] > known.send_ns[SendCause::CongestionWindow as usize];
    let mut seen = Cause::ALL.iter().map(|&cause| account.of(cause)).collect::<Vec<_>>();
    let mut settled = [0; Cause::COUNT];
    for (cause, groups, otherwise) in MEANINGS {
        // A pacer spreads what the send buffer lets be in flight, too.
        let (groups, otherwise) = match cause {
            SendCause::Pacing if is_buffer_small => (&[] as &[&[Cause]], Cause::SendBuffer),
            _ => (groups, otherwise),
        };
        let mut rest_ns = known.send_ns[cause as usize];
        let before = settled;
        if cause == SendCause::Opening {
            // A server's ledger begins with the SYN that it answers; callers before that waited, too.
            rest_ns = rest_ns.max(seen[Cause::SynLoss as usize] + seen[Cause::AcceptQueue as usize]);
        }
        for group in groups {
            let in_group: u64 = group.iter().map(|&of| seen[of as usize]).sum();
            let taken_ns = rest_ns.min(in_group);
            let mut given_ns = 0;
            for &of in *group {
                let part = u128::from(seen[of as usize]) * u128::from(taken_ns) / u128::from(in_group.max(1));
                let part = part as u64;
                settled[of as usize] += part;
                seen[of as usize] -= part;
                given_ns += part;
            }
            rest_ns -= given_ns;
        }
        if cause == SendCause::AwaitingAcknowledgment {
            // The recorder has the latest frames only: what they show of this wait holds of the rest, too.
            let shown = WAITS.map(|of| (of, settled[of as usize] - before[of as usize]));
            let shown_ns: u64 = shown.iter().map(|(_, ns)| ns).sum();
            let unseen_ns = rest_ns;
            for (of, ns) in shown {
                let part = u128::from(unseen_ns) * u128::from(ns) / u128::from(shown_ns.max(1));
                settled[of as usize] += part as u64;
                rest_ns -= part as u64;
            }
        }
        // Rounding leaves a few nanoseconds here, too.
        settled[otherwise as usize] += rest_ns;
    }
    account.replace(settled);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_of_the_ledger_has_its_meaning() {
        for cause in SendCause::ALL {
            assert_eq!(MEANINGS.iter().filter(|(of, ..)| of == cause).count(), 1, "{cause}");
        }
    }
}
