//! The causes of waiting as a letter and a colour: who limits has a colour, as in the pictures of `inhost explain`.

use inhost_event::{ReceiveCause, SendCause};
use ratatui::style::Color;

const LOSS: Color = Color::Indexed(160);
const RECEIVER: Color = Color::Indexed(172);
const WINDOW: Color = Color::Indexed(97);
const PATH: Color = Color::Indexed(32);
const ACKNOWLEDGMENT: Color = Color::Indexed(72);
const APPLICATION: Color = Color::Indexed(242);

/// The letter and the colour of a cause by its name, of sending or of receiving. Letters of what slows a transfer are capital.
pub fn mark(name: &str) -> (char, Color) {
    let sending = SendCause::ALL.iter().find(|cause| cause.text() == name).map(|cause| match cause {
        SendCause::Opening => ('o', PATH),
        SendCause::ApplicationIdle => ('i', APPLICATION),
        SendCause::AwaitingAcknowledgment => ('a', ACKNOWLEDGMENT),
        SendCause::ReceiverWindow => ('W', RECEIVER),
        SendCause::ClosedWindow => ('Z', RECEIVER),
        SendCause::CongestionWindow => ('C', WINDOW),
        SendCause::Pacing => ('P', PATH),
        SendCause::LossRecovery => ('R', LOSS),
        SendCause::Timeout => ('T', LOSS),
        SendCause::SmallData => ('N', ACKNOWLEDGMENT),
        SendCause::SendBuffer => ('B', PATH),
        SendCause::Link => ('L', PATH),
        SendCause::Closed => ('-', APPLICATION),
    });
    let receiving = || {
        ReceiveCause::ALL.iter().find(|cause| cause.text() == name).map(|cause| match cause {
            ReceiveCause::Opening => ('o', PATH),
            ReceiveCause::AwaitingData => ('i', APPLICATION),
            ReceiveCause::ApplicationSlow => ('S', RECEIVER),
            ReceiveCause::WindowClosed => ('Z', RECEIVER),
            ReceiveCause::Hole => ('H', LOSS),
            ReceiveCause::Closed => ('-', APPLICATION),
        })
    };
    sending.or_else(receiving).unwrap_or(('?', APPLICATION))
}

/// Whether a cause is the application's own time, and nothing to mend.
pub fn is_idle(name: &str) -> bool {
    mark(name).1 == APPLICATION
}

/// The causes of sending with their letters, as a legend.
pub fn legend() -> impl Iterator<Item = (char, Color, &'static str)> {
    SendCause::ALL.iter().map(|cause| {
        let (letter, colour) = mark(cause.text());
        (letter, colour, cause.text())
    })
}

/// Shares of time, in per cent, as so many letters, each with its colour: the largest remainders have what rounding leaves.
pub fn strip(causes: &[(String, f64)], width: usize) -> Vec<(char, Color)> {
    let all: f64 = causes.iter().map(|(_, share)| share).sum();
    if all <= 0.0 || width == 0 {
        return Vec::new();
    }
    let exact: Vec<f64> = causes.iter().map(|(_, share)| share / all * width as f64).collect();
    let mut cells: Vec<usize> = exact.iter().map(|cells| cells.floor() as usize).collect();
    let mut order: Vec<usize> = (0..causes.len()).collect();
    order.sort_by(|&one, &other| exact[other].fract().total_cmp(&exact[one].fract()));
    let left = width.saturating_sub(cells.iter().sum());
    order.iter().cycle().take(left).for_each(|&at| cells[at] += 1);
    let letters = causes.iter().zip(cells);
    letters.flat_map(|((name, _), count)| std::iter::repeat_n(mark(name), count)).take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_cause_of_sending_has_a_letter_of_its_own() {
        let letters: BTreeSet<char> = legend().map(|(letter, ..)| letter).collect();
        assert_eq!(letters.len(), SendCause::COUNT);
        assert!(!letters.contains(&'?'));
        assert!(ReceiveCause::ALL.iter().all(|cause| mark(cause.text()).0 != '?'));
    }

    #[test]
    fn a_strip_has_its_width_and_its_shares() {
        let shares = |list: &[(&str, f64)]| -> String {
            let causes: Vec<(String, f64)> =
                list.iter().map(|&(name, share)| (name.to_owned(), share)).collect();
            strip(&causes, 10).into_iter().map(|(letter, _)| letter).collect()
        };
        assert_eq!(shares(&[("receiver's window", 66.0), ("loss recovery", 34.0)]), "WWWWWWWRRR");
        assert_eq!(shares(&[("opening", 0.1), ("closed", 99.9)]), "----------");
        assert_eq!(shares(&[]), "");
    }
}
