//! Who was the limit, from what both ends know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A processor that is used for this share is full.
const FULL_SHARE: f64 = 0.93;
/// A cause that holds for this share of the time is the limit.
const MOST_SHARE: f64 = 0.5;
/// A share of lost datagrams that says that more was sent than went through.
const LOST_SHARE: f64 = 0.01;
/// A paced stream that reaches this share of its rate was limited by it.
const PACED_SHARE: f64 = 0.97;

/// Who was the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// The rate that the plan asked for.
    Plan,
    /// The measuring program at the client.
    Client,
    /// The measuring program at the server.
    Server,
    /// The receiver's window.
    Receiver,
    /// The sender's buffer: the window of the plan, or the system's.
    Buffer,
    /// The network: the congestion window, losses, the link.
    Network,
    /// Nothing that is known was the limit for most of the time.
    Unknown,
}

/// Who was the limit, and why in one sentence.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Limit {
    /// Who.
    pub who: Who,
    /// The sentence.
    pub why: String,
}

/// What is known of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Evidence {
    /// Rate that was reached, of the rate that was asked for; none without a rate.
    pub paced_share: Option<f64>,
    /// Processor time of the client as a share of one processor.
    pub client_share: Option<f64>,
    /// The same of the server.
    pub server_share: Option<f64>,
    /// Causes for which the senders waited, as shares of their time.
    pub causes: BTreeMap<String, f64>,
    /// Writes of this end that waited, as a share of all; none where it did not send.
    pub waited_share: Option<f64>,
    /// Datagrams that were lost, as a share of all; none over TCP.
    pub lost_share: Option<f64>,
}

/// Who was the limit. A full processor goes before what the transport says, for a program that is full makes windows
/// close and buffers empty.
pub fn limit(of: &Evidence) -> Limit {
    let percent = |share: f64| (share * 100.0).round();
    let is_full = |share: &Option<f64>| share.filter(|share| *share >= FULL_SHARE);
    let say = |who, why: String| Limit { who, why };
    if let Some(share) = of.paced_share.filter(|share| *share >= PACED_SHARE) {
        return say(
            Who::Plan,
            format!("The rate of the plan was the limit: {} % of it was reached.", percent(share)),
        );
    }
    if let Some(share) = of.lost_share.filter(|share| *share >= LOST_SHARE) {
        let why = format!(
            "The network or the receiver was the limit: {} % of the datagrams were lost.",
            percent(share)
        );
        return say(Who::Network, why);
    }
    if let Some(share) = is_full(&of.client_share) {
        return say(
            Who::Client,
            format!("The measuring program here was the limit: it used {} % of a processor.", percent(share)),
        );
    }
    if let Some(share) = is_full(&of.server_share) {
        return say(
            Who::Server,
            format!("The program at the server was the limit: it used {} % of a processor.", percent(share)),
        );
    }
    let share_of = |causes: &[&str]| causes.iter().filter_map(|cause| of.causes.get(*cause)).sum::<f64>();
    let groups = [
        (
            Who::Receiver,
            "The receiver was the limit: its window was full",
            share_of(&["receiver's window", "closed window"]),
        ),
        (Who::Buffer, "The send buffer was the limit: it was full", share_of(&["send buffer"])),
        (
            Who::Network,
            "The network was the limit: acknowledgments, losses or the link were waited for",
            share_of(&[
                "network",
                "congestion window",
                "loss recovery",
                "time-out",
                "waiting for the link",
                "awaiting acknowledgment",
            ]),
        ),
        (
            Who::Client,
            "The sending program was the limit: it gave too little data",
            share_of(&["application idle", "gathering small data"]),
        ),
        (Who::Plan, "Pacing was the limit: it held data back", share_of(&["pacing"])),
    ];
    let most = groups.into_iter().max_by(|one, other| one.2.total_cmp(&other.2));
    if let Some((who, why, share)) = most.filter(|(_, _, share)| *share >= MOST_SHARE) {
        return say(who, format!("{why} for {} % of the time.", percent(share)));
    }
    match of.waited_share {
        Some(share) if share < 0.01 => say(
            Who::Client,
            "The measuring program here was the limit: its socket was always writable.".to_owned(),
        ),
        _ => say(Who::Unknown, "No single limit held for most of the time.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(of: Evidence) -> Who {
        limit(&of).who
    }

    #[test]
    fn a_full_processor_goes_before_windows() {
        let causes = BTreeMap::from([("receiver's window".to_owned(), 0.9)]);
        assert_eq!(who(Evidence { causes: causes.clone(), ..Evidence::default() }), Who::Receiver);
        let full = Evidence { causes, client_share: Some(0.99), ..Evidence::default() };
        assert_eq!(who(full.clone()), Who::Client);
        assert_eq!(
            who(Evidence { client_share: Some(0.5), server_share: Some(1.2), ..full.clone() }),
            Who::Server
        );
        assert_eq!(who(Evidence { paced_share: Some(1.0), ..full }), Who::Plan);
    }

    #[test]
    fn causes_of_one_group_add_up() {
        let causes = [("congestion window", 0.3), ("loss recovery", 0.3), ("send buffer", 0.4)]
            .map(|(n, s)| (n.to_owned(), s));
        assert_eq!(who(Evidence { causes: causes.into(), ..Evidence::default() }), Who::Network);
        assert_eq!(who(Evidence { lost_share: Some(0.5), ..Evidence::default() }), Who::Network);
        assert_eq!(who(Evidence { waited_share: Some(0.0), ..Evidence::default() }), Who::Client);
        assert_eq!(who(Evidence::default()), Who::Unknown);
    }
}
