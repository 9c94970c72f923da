//! Diagnosis and remedy in words.

use super::Case;
use super::figures::{bytes, product, rate, time, window_rate};
use crate::cause::{Cause, Sign};
use crate::conversation::DELAYED_ACK_NS;

/// The path that windows are sized for where the capture shows no rate: 1 Gbit/s.
const ASSUMED_BYTES_PER_SECOND: u64 = 125_000_000;
/// Segments that arrive out of order, for each that is lost, from which on the order is the matter.
const LATE_TO_LOST: u64 = 10;
/// The largest window without scaling.
const UNSCALED_WINDOW_BYTES: u64 = 65_535;
/// What fits in each packet of an Ethernet path with timestamps.
const INITIAL_WINDOW_SEGMENTS: u64 = 10;

/// Signs that are evidence of a cause.
pub(super) fn signs(cause: Cause) -> &'static [Sign] {
    match cause {
        Cause::SynLoss => &[Sign::SynRetransmission],
        Cause::AcceptQueue => &[Sign::AcceptQueueFull, Sign::SynRetransmission],
        Cause::ReceiverWindow => &[Sign::NoWindowScaling],
        Cause::ZeroWindow => &[Sign::ZeroWindow, Sign::WindowProbe],
        Cause::BottleneckRate => &[Sign::Bufferbloat, Sign::CongestionMarks],
        Cause::CongestionWindow => &[Sign::RandomLoss, Sign::BurstLoss, Sign::CongestionMarks],
        Cause::FastRecovery => &[Sign::FastRetransmission, Sign::ReorderingMistaken],
        Cause::Timeout => &[Sign::TimeoutRetransmission],
        Cause::SpuriousTimeout => &[Sign::SpuriousRetransmission],
        Cause::TailLoss => &[Sign::TailProbe],
        Cause::BrokenRecovery => &[Sign::NeedlessRetransmission, Sign::SpuriousRetransmission],
        Cause::MtuBlackHole => &[Sign::MtuBlackHole],
        _ => &[],
    }
}

/// What is the matter.
pub(super) fn diagnosis(case: &Case<'_>) -> String {
    if case.is_unanswered() {
        return match case.of.directions[0].syns {
            1 => "the client's SYN has no answer in the capture".to_owned(),
            many => format!("none of the client's {many} SYNs has an answer in the capture"),
        };
    }
    if case.is_refused() {
        let frame = case.of.last.frame;
        return format!(
            "the server refuses the connection: a reset answers the client's SYN in frame {frame}"
        );
    }
    let share = case.share(case.cause);
    let (sender, receiver) = (case.sender_name(), case.receiver_name());
    let trip = case.round_trip_ns();
    let of = case.sender();
    let main = match case.cause {
        Cause::Opening => format!("the handshake takes {share:.0} % of the connection's time"),
        Cause::SynLoss => "the handshake waits for the retransmission of a SYN that was lost".to_owned(),
        Cause::AcceptQueue => {
            "the server's listen queue is full, so that it ignores the handshake".to_owned()
        }
        Cause::ApplicationIdle => {
            format!("the {sender}'s application has nothing to send for {share:.0} % of the time")
        }
        Cause::ThinkTime => {
            format!(
                "the {sender}'s application takes {share:.0} % of the time to answer the {receiver}'s messages"
            )
        }
        Cause::AwaitingPeer if is_silent(case) => "neither application has sent anything".to_owned(),
        Cause::AwaitingPeer => format!("the {sender} waits for the {receiver}'s application"),
        Cause::AwaitingAcknowledgment if is_delayed(case) => format!(
            "all that the {sender}'s application gave is sent, and the {receiver} delays the acknowledgment: {share:.0} % of the \
             time, up to {} at once",
            time(of.account.longest(case.cause).ns)
        ),
        Cause::AwaitingAcknowledgment if !is_answered(case) => format!(
            "the {sender}'s application gives little at a time, and all of it is sent: {share:.0} % of the time its last data is on its \
             way, and nothing waits for that"
        ),
        Cause::AwaitingAcknowledgment => {
            format!("small exchanges of one round trip of {} each take {share:.0} % of the time", time(trip))
        }
        Cause::ReceiverWindow => {
            let window = of.limiting_window_bytes();
            let allowed = window_rate(window, trip);
            if window == 0 || trip == 0 {
                format!("the {receiver}'s window is full for {share:.0} % of the time")
            } else if takes_late(case) {
                format!(
                    "the {receiver}'s window of {} is full, though it would let {} pass on this path of {}: the {receiver} takes \
                     the data more slowly",
                    bytes(window),
                    rate(allowed),
                    time(trip)
                )
            } else {
                format!(
                    "the {receiver}'s window of {} limits this path of {} to {}",
                    bytes(window),
                    time(trip),
                    rate(allowed)
                )
            }
        }
        Cause::ZeroWindow => {
            format!(
                "the {receiver}'s application does not read: unread data closes its window for {share:.0} % of the time"
            )
        }
        Cause::SillyWindow => {
            format!("the {receiver} opens its window by less than a segment (silly window)")
        }
        Cause::SlowStart => {
            format!("the transfer of {} from the {sender} ends before slow start does", bytes(of.bytes))
        }
        Cause::SlowStartRestart => format!("the {sender} begins slow start anew after each idle time"),
        Cause::CongestionWindow => congestion(case),
        Cause::BottleneckRate => {
            format!(
                "the path's bottleneck of about {} is used to its rate{}",
                rate(case.peak_rate()),
                bloat(case)
            )
        }
        Cause::Pacing => format!("the {sender} spaces its segments by a pacer, or by its own link's rate"),
        Cause::SendBuffer => {
            format!(
                "the {sender}'s send buffer of {} limits this path of {}",
                bytes(of.peak_flight as u64),
                time(trip)
            )
        }
        Cause::Link => format!("the {sender} waits for its link, or for its neighbour's address"),
        Cause::Nagle => format!("the {sender}'s small writes wait for acknowledgments (Nagle)"),
        Cause::NagleDelayedAck => {
            format!("the {sender}'s small writes (Nagle) wait for acknowledgments that the {receiver} delays")
        }
        Cause::FastRecovery | Cause::Timeout | Cause::SpuriousTimeout | Cause::TailLoss => loss(case),
        Cause::BrokenRecovery | Cause::MtuBlackHole => fault(case),
        Cause::Closing => "the end of the connection is not acknowledged".to_owned(),
        Cause::Closed => "nothing was left to send".to_owned(),
        Cause::Unknown => "the capture is too short to tell".to_owned(),
    };
    let second = case.second.map_or(String::new(), |second| {
        format!("; for {:.0} % of the time the cause is {}", second.per_cent, second.cause.text())
    });
    format!("{main}{second}{}", reset(case))
}
fn is_silent(case: &Case<'_>) -> bool {
    case.of.directions.iter().all(|direction| direction.bytes == 0)
}
/// Whether the receiver sends data, too.
fn is_answered(case: &Case<'_>) -> bool {
    case.of.directions[1 - case.direction].bytes > 0
}
/// Whether the acknowledgments that are awaited come far later than the path would bring them.
fn is_delayed(case: &Case<'_>) -> bool {
    let (of, trip) = (case.sender(), case.round_trip_ns());
    let mean_ns = of.account.of(case.cause) / of.segments.max(1);
    of.account.longest(case.cause).ns > trip + DELAYED_ACK_NS && mean_ns > trip.saturating_mul(2)
}
/// Whether a window that is full would let far more pass than ever did: the receiver is late, and not its window small.
fn takes_late(case: &Case<'_>) -> bool {
    let (of, best) = (case.sender(), case.peak_rate());
    best > 0 && window_rate(of.limiting_window_bytes(), case.round_trip_ns()) / 2 > best
}
/// Whether most of what was sent again was only late.
fn is_reordering(case: &Case<'_>) -> bool {
    let (count, ..) = case.sender().retransmissions();
    let mistaken = case.sender().evidence.count(Sign::ReorderingMistaken);
    mistaken > 0 && 2 * mistaken >= count
}
fn order_remedy(sender: &str) -> String {
    format!("let the path keep the order of segments, or the {sender} bear it (RACK, tcp_reordering)")
}
/// Losses, and what repairs them.
fn loss(case: &Case<'_>) -> String {
    let (of, sender) = (case.sender(), case.sender_name());
    let (count, ..) = of.retransmissions();
    let mistaken = of.evidence.count(Sign::ReorderingMistaken);
    match case.cause {
        Cause::FastRecovery if is_reordering(case) => format!(
            "reordering is mistaken for loss: {mistaken} of {count} segments from the {sender} were sent again in vain"
        ),
        Cause::FastRecovery => {
            format!("losses are repaired: {count} segments from the {sender} were sent again")
        }
        Cause::SpuriousTimeout => {
            format!("the {sender}'s retransmission timer fires although nothing is lost: the path pauses")
        }
        Cause::TailLoss => {
            format!("the last segments of the {sender}'s messages are lost, and a timer repairs them")
        }
        _ => format!("the {sender} waits for its retransmission timer after losses"),
    }
}
/// A sender or a path that does what it must not.
fn fault(case: &Case<'_>) -> String {
    let (of, sender, receiver) = (case.sender(), case.sender_name(), case.receiver_name());
    let (count, needless, spurious) = of.retransmissions();
    match case.cause {
        Cause::BrokenRecovery => format!(
            "the {sender} resends what the {receiver} has: {} of {count} retransmissions were needless",
            (needless + spurious).min(count)
        ),
        _ => format!(
            "segments above {} from the {sender} vanish without an ICMP error (MTU black hole)",
            bytes(of.largest_acknowledged().into())
        ),
    }
}
/// Whether far more segments were late than lost.
fn has_few_losses(case: &Case<'_>) -> bool {
    let (of, (lost, needless, spurious)) = (case.sender(), case.sender().retransmissions());
    let late = of.evidence.count(Sign::Reordering);
    late > 0 && late >= LATE_TO_LOST * lost.saturating_sub(needless + spurious)
}
/// Losses keep the window small, or something unseen does.
fn congestion(case: &Case<'_>) -> String {
    let (of, sender) = (case.sender(), case.sender_name());
    let (lost, needless, spurious) = of.retransmissions();
    let lost = lost.saturating_sub(needless + spurious);
    if has_few_losses(case) {
        let late = of.evidence.count(Sign::Reordering);
        return format!(
            "{late} times segments of the {sender}'s arrived out of order, and its congestion window of at most {} limits it",
            bytes(of.peak_flight as u64)
        );
    }
    let kind = match of.evidence.count(Sign::BurstLoss) > of.evidence.count(Sign::RandomLoss) {
        true => "bursts",
        false => "random losses",
    };
    if lost > 0 {
        let per_cent = lost as f64 * 100.0 / of.whole_segments().max(1) as f64;
        let digits = if per_cent < 0.1 { 3 } else { 1 };
        format!("{kind} of {per_cent:.digits$} % of the segments keep the {sender}'s congestion window small")
    } else {
        format!(
            "the {sender}'s congestion window of at most {} limits it, and no queue stands on the path",
            bytes(of.peak_flight as u64)
        )
    }
}
fn bloat(case: &Case<'_>) -> String {
    match case.round_trip {
        Some(trip) if case.sender().evidence.count(Sign::Bufferbloat) > 0 => format!(
            ", and its queue makes round trips of {} out of {} (bufferbloat)",
            time(trip.largest_ns),
            time(trip.least_ns)
        ),
        _ => String::new(),
    }
}
fn reset(case: &Case<'_>) -> String {
    match case.of.reset_by {
        Some(side) if case.of.evidence.count(Sign::ForeignSegment) > 0 => {
            format!(
                "; the reset in the {}'s name comes from another distance than its segments",
                case.name(side)
            )
        }
        Some(side) => {
            let last = case.of.last;
            let (name, whose) = (case.name(side), case.name(last.side));
            format!(
                "; the {name} reset the connection after the {whose}'s {} in frame {}",
                last.what, last.frame
            )
        }
        None => String::new(),
    }
}

/// What to do about it.
pub(super) fn remedy(case: &Case<'_>) -> String {
    if case.is_unanswered() {
        return "see whether the server is up at this address, and whether a firewall drops the SYN: a closed port would answer \
                with a reset"
            .to_owned();
    }
    if case.is_refused() {
        return "see whether the server listens at this port, and whether a firewall resets in its name"
            .to_owned();
    }
    let (sender, receiver) = (case.sender_name(), case.receiver_name());
    let of = case.sender();
    let trip = case.round_trip_ns();
    match case.cause {
        Cause::Opening => "keep connections open and use them again".to_owned(),
        Cause::SynLoss => "measure the path's loss; each lost SYN costs a second and more".to_owned(),
        Cause::AcceptQueue => {
            "accept faster, or raise the server's backlog and its limit (net.core.somaxconn)".to_owned()
        }
        Cause::ApplicationIdle | Cause::ThinkTime => {
            format!("look at the {sender}'s application, not at the network")
        }
        Cause::AwaitingPeer if is_silent(case) => "look at the applications, not at the network".to_owned(),
        Cause::AwaitingPeer => format!("look at the {receiver}'s application, not at the network"),
        Cause::AwaitingAcknowledgment if is_delayed(case) => format!(
            "nothing for this transfer: no data waits; an answer of the {receiver}'s application would bring the acknowledgment at once"
        ),
        Cause::AwaitingAcknowledgment if !is_answered(case) => {
            format!("look at the {sender}'s application, not at the network: it has nothing more to send")
        }
        Cause::AwaitingAcknowledgment => {
            format!("send several requests at once or one larger: each exchange saved is {}", time(trip))
        }
        Cause::ReceiverWindow => window_remedy(case),
        Cause::ZeroWindow => {
            format!("make the {receiver}'s application read faster; larger buffers do not help")
        }
        Cause::SillyWindow => format!(
            "let the {receiver} open its window by a segment of {} bytes at least; read more at once",
            of.mss_bytes
        ),
        Cause::SlowStart => format!(
            "use one connection for several transfers, or raise the initial window above {}",
            bytes(INITIAL_WINDOW_SEGMENTS * u64::from(of.mss_bytes))
        ),
        Cause::SlowStartRestart => {
            format!(
                "let the {sender} keep its window when idle: net.ipv4.tcp_slow_start_after_idle = 0 on Linux"
            )
        }
        Cause::CongestionWindow => congestion_remedy(case),
        Cause::BottleneckRate if of.evidence.count(Sign::Bufferbloat) > 0 => format!(
            "limit the queue at the bottleneck to {} (fq_codel or CAKE); the rate itself is reached",
            bytes(product(case.peak_rate(), trip))
        ),
        Cause::BottleneckRate => "nothing: the path is used to its rate; only a faster link helps".to_owned(),
        Cause::Pacing => {
            format!("look at the {sender}'s pacing rate (SO_MAX_PACING_RATE, fq) and at its link's")
        }
        Cause::SendBuffer => {
            let goal = case.peak_rate().max(ASSUMED_BYTES_PER_SECOND);
            format!(
                "raise the {sender}'s send buffer (SO_SNDBUF): {} would fill {} at this round trip",
                bytes(product(goal, trip)),
                rate(goal)
            )
        }
        Cause::Link => {
            format!("look at the {sender}'s link: its rate, its queue, and whether the neighbour answers")
        }
        Cause::Nagle | Cause::NagleDelayedAck => {
            format!("let the {sender} write whole messages in one call, or set TCP_NODELAY")
        }
        Cause::FastRecovery
        | Cause::Timeout
        | Cause::SpuriousTimeout
        | Cause::TailLoss
        | Cause::BrokenRecovery
        | Cause::MtuBlackHole => loss_remedy(case),
        Cause::Closing | Cause::Closed | Cause::Unknown => "nothing".to_owned(),
    }
}
fn loss_remedy(case: &Case<'_>) -> String {
    let (of, sender) = (case.sender(), case.sender_name());
    match case.cause {
        Cause::FastRecovery if is_reordering(case) => order_remedy(sender),
        Cause::FastRecovery => {
            "mend the loss of the path: a wire, a radio, a policer, or a queue that is too short".to_owned()
        }
        Cause::SpuriousTimeout => format!(
            "raise the {sender}'s least retransmission timeout (rto_min), or let it use timestamps and F-RTO"
        ),
        Cause::TailLoss => {
            format!("mend the loss of the path; let the {sender} use tail loss probes (RFC 8985)")
        }
        Cause::BrokenRecovery => {
            format!("update the {sender}'s TCP: its recovery does not honour acknowledgments that it has")
        }
        Cause::MtuBlackHole => format!(
            "let ICMP \"too big\" pass, or clamp the MSS to {} bytes, or set net.ipv4.tcp_mtu_probing = 1",
            of.largest_acknowledged().max(536)
        ),
        _ => "mend the loss of the path; look for times at which it is down".to_owned(),
    }
}
fn congestion_remedy(case: &Case<'_>) -> String {
    let (of, sender) = (case.sender(), case.sender_name());
    match of.evidence.count(Sign::RandomLoss) + of.evidence.count(Sign::BurstLoss) {
        _ if has_few_losses(case) => order_remedy(sender),
        0 => format!("look for a limit of the {sender}'s window: its send buffer or congestion control"),
        _ => format!(
            "mend the loss of the path, or let the {sender} use a congestion control that bears it (BBR)"
        ),
    }
}
fn window_remedy(case: &Case<'_>) -> String {
    let (of, receiver, trip) = (case.sender(), case.receiver_name(), case.round_trip_ns());
    if takes_late(case) {
        return format!(
            "look at the {receiver}'s processor, and at how its application reads; a larger window does not help"
        );
    }
    if of.limiting_window_bytes() == 0 || trip == 0 {
        return format!("let the {receiver}'s application read faster, or raise its receive buffer");
    }
    let window_rate = window_rate(of.limiting_window_bytes(), trip);
    // A peak not above the window's own rate says nothing of the path.
    let is_measured = case.peak_rate() > window_rate.saturating_mul(3) / 2;
    let goal = if is_measured {
        case.peak_rate()
    } else {
        ASSUMED_BYTES_PER_SECOND.max(window_rate.saturating_mul(2))
    };
    let whose = if is_measured { "it at" } else { "a path of" };
    let unscaled: Vec<&str> = (0..2)
        .filter(|&side| case.of.ends[side].syn.is_some_and(|syn| syn.window_scale.is_none()))
        .map(|side| case.name(side))
        .collect();
    let scaling = match (unscaled.first(), product(goal, trip) > UNSCALED_WINDOW_BYTES) {
        (Some(name), true) => format!("; the {name} did not offer window scaling"),
        _ => String::new(),
    };
    format!(
        "raise the {receiver}'s receive buffer: {} would fill {whose} {}{scaling}",
        bytes(product(goal, trip)),
        rate(goal)
    )
}
