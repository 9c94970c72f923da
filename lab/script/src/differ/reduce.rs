//! A difference made small: steps, waiting and settings are left out while its class stays.

use super::compare::Difference;
use super::exchange::Exchange;
use super::judge::{Played, repeats};
use inhost_base::Duration;

/// How often a small exchange must show the difference.
const REPEATS: usize = 3;
/// Most attempts at making one exchange smaller.
const ATTEMPTS: usize = 80;

/// The smallest exchange found that shows `difference`; nothing where the kernel no longer repeats it.
pub fn reduce(exchange: &Exchange, difference: &Difference) -> Result<Option<Played>, String> {
    let mut small = exchange.clone();
    let mut attempts = 0;
    let mut shows = |candidate: &Exchange| {
        attempts += 1;
        match attempts > ATTEMPTS {
            true => Ok(false),
            false => repeats(candidate, &difference.signature, 1).map(|played| played.is_some()),
        }
    };
    // What comes after the difference is not a part of it.
    let mut cut = small.clone();
    if let Some(next) = cut.steps.get(difference.step + 1) {
        cut.tail = next.after;
        cut.steps.truncate(difference.step + 1);
        cut.tail = cut.tail.max(Duration::from_millis(60));
        if shows(&cut)? {
            small = cut;
        }
    }
    for change in SETTINGS {
        for candidate in change(&small) {
            if shows(&candidate)? {
                small = candidate;
                break;
            }
        }
    }
    loop {
        let before = small.steps.len();
        for at in (0..small.steps.len()).rev() {
            for candidate in without(&small, at) {
                if shows(&candidate)? {
                    small = candidate;
                    break;
                }
            }
        }
        if small.steps.len() == before {
            break;
        }
    }
    for at in
        (0..small.steps.len()).rev().filter(|&at| small.steps[at].after > Duration::ZERO).collect::<Vec<_>>()
    {
        let mut candidate = small.clone();
        candidate.steps[at].after = Duration::ZERO;
        if shows(&candidate)? {
            small = candidate;
        }
    }
    repeats(&small, &difference.signature, REPEATS)
}

/// What can be plainer of the host.
const SETTINGS: [fn(&Exchange) -> Vec<Exchange>; 2] = [plain_settings, plain_network];

fn plain_settings(exchange: &Exchange) -> Vec<Exchange> {
    let mut all = Vec::new();
    if !exchange.host.is_empty() {
        all.push(Exchange { host: Vec::new(), ..exchange.clone() });
    }
    if exchange.host.len() > 1 {
        all.extend(exchange.host.iter().map(|&one| Exchange { host: vec![one], ..exchange.clone() }));
    }
    all
}
fn plain_network(exchange: &Exchange) -> Vec<Exchange> {
    if exchange.is_ipv6 { vec![Exchange { is_ipv6: false, ..exchange.clone() }] } else { Vec::new() }
}

/// The exchange without one of its steps: first without the time before it, then with that time kept.
fn without(exchange: &Exchange, at: usize) -> Vec<Exchange> {
    let mut shorter = exchange.clone();
    let gone = shorter.steps.remove(at).after;
    let mut waiting = shorter.clone();
    match waiting.steps.get_mut(at) {
        Some(next) if gone > Duration::ZERO => next.after += gone,
        _ => return vec![shorter],
    }
    vec![shorter, waiting]
}
