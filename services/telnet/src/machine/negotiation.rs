//! One side of one option: the Q method of RFC 1143 as a table. It cannot loop, because a request that
//! would not change a state is never acknowledged, and a refusal of an established "no" is never answered.

use crate::codec::option::Side;

/// State of one side of an option. The names are RFC 1143's: `WANT…` means that our request is not yet answered,
/// `Opposite` that the contrary request is queued behind it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Phase {
    /// Off.
    #[default]
    No,
    /// On.
    Yes,
    /// We asked for "off".
    WantNo,
    /// We asked for "off", and will ask for "on" once that is answered.
    WantNoOpposite,
    /// We asked for "on".
    WantYes,
    /// We asked for "on", and will ask for "off" once that is answered.
    WantYesOpposite,
}

/// Events of one side of an option.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Input {
    /// WILL (of the peer's side) or DO (of ours), and we agree.
    PositiveAgreed,
    /// WILL or DO, and we do not want it.
    PositiveRefused,
    /// WONT or DONT.
    Negative,
    /// We want it on.
    Enable,
    /// We want it off.
    Disable,
}

/// Reply to send: DO or WILL, DONT or WONT, or nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verb {
    /// DO (of the peer's side) or WILL (of ours).
    Positive,
    /// DONT or WONT.
    Negative,
}

/// A cell of the table: the next phase, and what to send.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Transition {
    /// The new state.
    pub next: Phase,
    /// Octets for the peer.
    pub send: Option<Verb>,
}

impl Phase {
    /// Every phase, in the order of the table's rows.
    pub const ALL: [Phase; 6] =
        [Phase::No, Phase::Yes, Phase::WantNo, Phase::WantNoOpposite, Phase::WantYes, Phase::WantYesOpposite];

    /// Whether the option is in force. The peer goes on performing an option until it answers our DONT;
    /// we stop with our own WONT (RFC 1143 section 7, and RFC 856 for what it means to data).
    pub fn is_active(self, side: Side) -> bool {
        match side {
            Side::Local => self == Phase::Yes,
            Side::Remote => matches!(self, Phase::Yes | Phase::WantNo | Phase::WantNoOpposite),
        }
    }
    /// Whether it is on, or asked for and not taken back.
    pub fn is_wanted(self) -> bool {
        matches!(self, Phase::Yes | Phase::WantYes | Phase::WantNoOpposite)
    }
    /// Whether a request of ours is unanswered.
    pub fn is_pending(self) -> bool {
        !matches!(self, Phase::No | Phase::Yes)
    }
    /// The table's cell for `input` in this phase.
    /// spec: RFC1143 7
    pub fn on(self, input: Input) -> Transition {
        TABLE[self as usize][input as usize]
    }
}

impl Input {
    /// Every input, in the order of the table's columns.
    pub const ALL: [Input; 5] =
        [Input::PositiveAgreed, Input::PositiveRefused, Input::Negative, Input::Enable, Input::Disable];
}

const fn quiet(next: Phase) -> Transition {
    Transition { next, send: None }
}
const fn positive(next: Phase) -> Transition {
    Transition { next, send: Some(Verb::Positive) }
}
const fn negative(next: Phase) -> Transition {
    Transition { next, send: Some(Verb::Negative) }
}

/// Rows are phases, columns inputs. An answer that is an error in RFC 1143 ("DONT answered by WILL") is
/// taken as that RFC advises: the state becomes what the peer could not have refused.
const TABLE: [[Transition; 5]; 6] = {
    use Phase::{No, WantNo, WantNoOpposite, WantYes, WantYesOpposite, Yes};
    [
        // positive, agreed   positive, refused  negative           enable                    disable
        [positive(Yes), negative(No), quiet(No), positive(WantYes), quiet(No)],
        [quiet(Yes), quiet(Yes), negative(No), quiet(Yes), negative(WantNo)],
        [quiet(No), quiet(No), quiet(No), quiet(WantNoOpposite), quiet(WantNo)],
        [quiet(Yes), quiet(Yes), positive(WantYes), quiet(WantNoOpposite), quiet(WantNo)],
        [quiet(Yes), quiet(Yes), quiet(No), quiet(WantYes), quiet(WantYesOpposite)],
        [negative(WantNo), negative(WantNo), quiet(No), quiet(WantYes), quiet(WantYesOpposite)],
    ]
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// spec: RFC1143 7
    #[test]
    fn the_whole_matrix() {
        let mut text = String::from("phase            input             next             send\n");
        for phase in Phase::ALL {
            for input in Input::ALL {
                let Transition { next, send } = phase.on(input);
                let send = match send {
                    Some(Verb::Positive) => "positive",
                    Some(Verb::Negative) => "negative",
                    None => "-",
                };
                let line =
                    format!("{:<16} {:<17} {:<16} {send}", name(phase), format!("{input:?}"), name(next));
                writeln!(text, "{}", line.trim_end()).unwrap();
            }
        }
        assert_eq!(text, include_str!("negotiation-matrix.txt"), "the matrix is now:\n{text}");
    }

    fn name(phase: Phase) -> String {
        format!("{phase:?}")
    }

    /// Both ends change their minds at random moments, messages cross, and some wishes are refused; once
    /// the ends are content they fall silent, and agree.
    #[test]
    fn two_ends_cannot_loop() {
        let mut random = inhost_base::Random::from_number(1143);
        for _ in 0..20_000 {
            let agrees = [random.public_below(4) > 0, random.public_below(4) > 0];
            let mut phases = [Phase::No; 2];
            let mut wires: [std::collections::VecDeque<Verb>; 2] = Default::default();
            let mut wishes = random.public_below(8);
            let mut messages = 0;
            while wishes > 0 || wires.iter().any(|wire| !wire.is_empty()) {
                let end = random.public_below(2) as usize;
                let input = if wishes > 0 && random.public_below(3) == 0 {
                    wishes -= 1;
                    if random.public_below(2) == 0 { Input::Enable } else { Input::Disable }
                } else {
                    match (wires[end].pop_front(), agrees[end]) {
                        (Some(Verb::Positive), true) => Input::PositiveAgreed,
                        (Some(Verb::Positive), false) => Input::PositiveRefused,
                        (Some(Verb::Negative), _) => Input::Negative,
                        (None, _) => continue,
                    }
                };
                let transition = phases[end].on(input);
                phases[end] = transition.next;
                if let Some(verb) = transition.send {
                    wires[1 - end].push_back(verb);
                    messages += 1;
                }
                assert!(messages < 64, "the ends do not settle");
            }
            let [a, b] = phases;
            assert!(!a.is_pending() && !b.is_pending() && a == b, "{a:?} against {b:?}");
        }
    }
}
