//! Colours: a family for each of what limits a transfer, the same in lines and in the strip of causes. Those of the lines are
//! Okabe and Ito's, or near to them.

use inhost_event::SendCause;
use plotters::style::RGBColor;

use crate::cause::Cause;

const fn rgb(colour: u32) -> RGBColor {
    RGBColor((colour >> 16) as u8, (colour >> 8) as u8, colour as u8)
}

pub(super) const TEXT: RGBColor = rgb(0x222222);
pub(super) const GREY: RGBColor = rgb(0x999999);
pub(super) const SENT: RGBColor = rgb(0x333333);
/// Sent again, and lost: red.
pub(super) const AGAIN: RGBColor = rgb(0xd53000);
/// Acknowledged: green.
pub(super) const ACKNOWLEDGED: RGBColor = rgb(0x009e73);
pub(super) const SACKED: RGBColor = rgb(0xcc79a7);
/// The receiver: amber.
pub(super) const WINDOW: RGBColor = rgb(0xe69f00);
/// The congestion window: violet.
pub(super) const CONGESTION: RGBColor = rgb(0x6a3d9a);

/// The colour of a cause.
pub(super) fn of_cause(cause: Cause) -> RGBColor {
    match cause {
        // The receiver: amber.
        Cause::ReceiverWindow => WINDOW,
        Cause::ZeroWindow => rgb(0xa86f00),
        Cause::SillyWindow => rgb(0xf3cd73),
        // The congestion window: violet.
        Cause::CongestionWindow => CONGESTION,
        Cause::SlowStart => rgb(0xb49bd1),
        Cause::SlowStartRestart => rgb(0x9277bd),
        // Paths and links: blue.
        Cause::BottleneckRate => rgb(0x0072b2),
        Cause::Pacing => rgb(0x56b4e9),
        Cause::SendBuffer => rgb(0x9ad0f0),
        Cause::Link => rgb(0x3a8fc0),
        Cause::Opening => rgb(0xc4dfee),
        // Acknowledgments that are awaited: green.
        Cause::AwaitingAcknowledgment => rgb(0xa5d8c4),
        Cause::Nagle => rgb(0x4fb795),
        Cause::NagleDelayedAck => rgb(0x007a58),
        // Losses: red.
        Cause::FastRecovery => rgb(0xf0876b),
        Cause::Timeout => AGAIN,
        Cause::TailLoss => rgb(0xe85c35),
        Cause::SpuriousTimeout => rgb(0xf5b09e),
        Cause::SynLoss => rgb(0xc2452a),
        Cause::AcceptQueue => rgb(0xa33a22),
        Cause::BrokenRecovery => rgb(0x8c1f00),
        Cause::MtuBlackHole => rgb(0x5e1500),
        // Applications: grey.
        Cause::ApplicationIdle => rgb(0xb0b0b0),
        Cause::ThinkTime => rgb(0x808080),
        Cause::AwaitingPeer => rgb(0xcdcdcd),
        Cause::Closing => rgb(0xdddddd),
        Cause::Closed => rgb(0xeaeaea),
        Cause::Unknown => rgb(0xf4f4f4),
    }
}

/// The colour of a cause of a host's ledger of the sending side: red, green, blue.
pub fn of_send_cause(cause: SendCause) -> [u8; 3] {
    let RGBColor(red, green, blue) = of_cause(match cause {
        SendCause::Opening => Cause::Opening,
        SendCause::ApplicationIdle => Cause::ApplicationIdle,
        SendCause::AwaitingAcknowledgment => Cause::AwaitingAcknowledgment,
        SendCause::ReceiverWindow => Cause::ReceiverWindow,
        SendCause::ClosedWindow => Cause::ZeroWindow,
        SendCause::CongestionWindow => Cause::CongestionWindow,
        SendCause::Pacing => Cause::Pacing,
        SendCause::LossRecovery => Cause::FastRecovery,
        SendCause::Timeout => Cause::Timeout,
        SendCause::SmallData => Cause::Nagle,
        SendCause::SendBuffer => Cause::SendBuffer,
        SendCause::Link => Cause::Link,
        SendCause::Closed => Cause::Closed,
    });
    [red, green, blue]
}
