//! The state machine of one neighbour (RFC 4861 §7.3.2): a table of states and events.
//!
//! ARP uses the same machine, so that an IPv4 neighbour that falls silent is noticed as an IPv6 one is
//! (RFC 1122 §2.3.2.1).

use inhost_event::NeighbourState as State;

/// An event of a neighbour's entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Input {
    /// A packet is to be sent to it.
    Used,
    /// Its timer ran out, and it may be asked again.
    TimerAsk,
    /// Its timer ran out, and it was asked often enough. In states that do not ask, every expiry is of this kind.
    TimerLast,
    /// A solicited answer with the known address, or the first one.
    Answered,
    /// Something it said on its own account names its address, the one that we knew, or we knew none.
    Heard,
    /// A message that may override says that it is at another address (NDP's O flag, NDP link-layer options).
    Moved,
    /// A message that may not override says that it is at another address (no O flag, any ARP message).
    Disputed,
    /// A transport's data was acknowledged through it.
    Confirmed,
    /// A transport's data is not being acknowledged.
    Suspected,
}

#[cfg(test)]
impl Input {
    pub const ALL: [Input; 9] = [
        Input::Used,
        Input::TimerAsk,
        Input::TimerLast,
        Input::Answered,
        Input::Heard,
        Input::Moved,
        Input::Disputed,
        Input::Confirmed,
        Input::Suspected,
    ];
}

/// The state that follows.
// spec: RFC4861 7.3.2, 7.2.5
pub(crate) const fn next(state: State, input: Input, is_ipv6: bool) -> State {
    use State::{Delay, Failed, Incomplete, Probe, Reachable, Stale};
    match (state, input) {
        // Not known yet. Only the neighbour's own word, or giving up, changes that.
        (Incomplete, Input::Answered) => Reachable,
        (Incomplete, Input::Heard | Input::Moved | Input::Disputed) => Stale,
        (Incomplete, Input::TimerLast) => Failed,
        (Incomplete, _) => Incomplete,
        // Given up. It is asked again when it is used after the hold-down, and any sign of life counts.
        (Failed, Input::Used) => Incomplete,
        (Failed, Input::Answered) => Reachable,
        (Failed, Input::Heard | Input::Moved | Input::Disputed) => Stale,
        (Failed, _) => Failed,
        // Known.
        (_, Input::Answered) => Reachable,
        (_, Input::Moved) => Stale,
        // An IPv6 neighbour in doubt becomes stale (RFC 4861 §7.2.5 (I)), and only while it was reachable. In ARP,
        // where anyone may claim anything, the address that we know is asked at once and keeps its place if it answers.
        (Reachable, Input::Disputed) => {
            if is_ipv6 {
                Stale
            } else {
                Probe
            }
        }
        (Stale | Delay, Input::Disputed) => {
            if is_ipv6 {
                state
            } else {
                Probe
            }
        }
        (Probe, Input::Disputed) => Probe,
        (_, Input::Confirmed) => Reachable,
        (_, Input::Suspected) => Probe,
        (Reachable, Input::TimerAsk | Input::TimerLast) => Stale,
        (Reachable, Input::Used | Input::Heard) => Reachable,
        (Stale, Input::Used) => Delay,
        (Stale, Input::TimerAsk | Input::TimerLast | Input::Heard) => Stale,
        (Delay, Input::TimerAsk | Input::TimerLast) => Probe,
        (Delay, Input::Used | Input::Heard) => Delay,
        (Probe, Input::TimerLast) => Failed,
        (Probe, Input::TimerAsk | Input::Used | Input::Heard) => Probe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 6] =
        [State::Incomplete, State::Reachable, State::Stale, State::Delay, State::Probe, State::Failed];

    /// The whole table of one family: a row for each state, a column for each input in the order of [`Input::ALL`].
    fn matrix(is_ipv6: bool) -> String {
        let letter = |state| match state {
            State::Incomplete => 'I',
            State::Reachable => 'R',
            State::Stale => 'S',
            State::Delay => 'D',
            State::Probe => 'P',
            State::Failed => 'F',
        };
        STATES
            .map(|state| {
                let row: String =
                    Input::ALL.iter().map(|&input| letter(next(state, input, is_ipv6))).collect();
                format!("{} {row}", letter(state))
            })
            .join("\n")
    }

    // spec: RFC4861 7.3.2, 7.2.5
    #[test]
    fn the_whole_matrix() {
        // Columns: used, timer (ask), timer (last), answered, heard, moved, disputed, confirmed, suspected.
        let arp = "I IIFRSSSII\nR RSSRRSPRP\nS DSSRSSPRP\nD DPPRDSPRP\nP PPFRPSPRP\nF IFFRSSSFF";
        let ndp = "I IIFRSSSII\nR RSSRRSSRP\nS DSSRSSSRP\nD DPPRDSDRP\nP PPFRPSPRP\nF IFFRSSSFF";
        assert_eq!(matrix(false), arp);
        assert_eq!(matrix(true), ndp);
    }
}
