//! M/M/1/K: the closed form, and the same queue simulated (VPI §4.4.1).

use inhost_base::Random;

use super::within;
use crate::measured::Measured;
use inhost_sim::setup::SetupError;

/// The most places that are looked at for figure 16.
const PLACES_LIMIT: u32 = 1000;
/// The share of packets that find no place in figure 16.
const FIGURE_16_SHARE: f64 = 0.01;

/// The queue.
pub(super) struct Queue {
    pub(super) arrivals_per_s: f64,
    pub(super) services_per_s: f64,
    pub(super) places: u32,
    pub(super) packets: u32,
}

pub(super) fn run(seed: u64, queue: &Queue) -> Result<Measured, SetupError> {
    within("places", queue.places, 1..=PLACES_LIMIT)?;
    within("packets", queue.packets, 1..=10_000_000)?;
    for (name, rate) in [("arrivals_per_s", queue.arrivals_per_s), ("services_per_s", queue.services_per_s)] {
        if !(rate.is_finite() && (1e-6..=1e9).contains(&rate)) {
            return Err(SetupError::OutOfRange { name, allowed: "0.000001 to 1000000000".to_owned() });
        }
    }
    let rho = queue.arrivals_per_s / queue.services_per_s;
    let mut measured = Measured::default();
    measured.set("blocking_closed_form_percent", 100.0 * blocking(rho, queue.places));
    measured.set("delay_mean_closed_form_ms", 1000.0 * mean_delay_s(queue, rho));
    let needed = (1..=PLACES_LIMIT).find(|&places| blocking(rho, places) <= FIGURE_16_SHARE);
    // Without a number, no buffer is large enough.
    if let Some(needed) = needed {
        measured.set("places_for_1_percent", f64::from(needed));
    }
    simulate(seed, queue, &mut measured);
    Ok(measured)
}

/// Share of packets that find all `places` taken: (1 - rho) rho^K / (1 - rho^(K+1)).
fn blocking(rho: f64, places: u32) -> f64 {
    // Written as a sum, it holds for rho = 1, too, and for large ones.
    1.0 / (0..=places).map(|less| rho.powi(-(less as i32))).sum::<f64>()
}

/// Mean time in the system of a packet that found a place, by Little's law.
fn mean_delay_s(queue: &Queue, rho: f64) -> f64 {
    // In relation to the most likely number, so that none grows beyond bounds.
    let likely = if rho > 1.0 { queue.places as i32 } else { 0 };
    let weights: Vec<f64> = (0..=queue.places).map(|count| rho.powi(count as i32 - likely)).collect();
    let (mut all, mut held) = (0.0, 0.0);
    for (count, weight) in weights.iter().enumerate() {
        all += weight;
        held += weight * count as f64;
    }
    let accepted_per_s = queue.arrivals_per_s * (1.0 - weights[queue.places as usize] / all);
    held / all / accepted_per_s
}

fn simulate(seed: u64, queue: &Queue, measured: &mut Measured) {
    let mut random = Random::from_number(seed);
    // When each packet in the system leaves it, in order.
    let mut leaves_at = std::collections::VecDeque::<f64>::new();
    let (mut now, mut blocked, mut delays) = (0.0, 0_u32, Vec::new());
    for _ in 0..queue.packets {
        now += exponential(&mut random, queue.arrivals_per_s);
        while leaves_at.front().is_some_and(|&at| at <= now) {
            leaves_at.pop_front();
        }
        if leaves_at.len() >= queue.places as usize {
            blocked += 1;
            continue;
        }
        let begins_at = leaves_at.back().copied().unwrap_or(now);
        let ends_at = begins_at + exponential(&mut random, queue.services_per_s);
        leaves_at.push_back(ends_at);
        delays.push(ends_at - now);
    }
    measured.set("blocking_percent", 100.0 * f64::from(blocked) / f64::from(queue.packets));
    if delays.is_empty() {
        return;
    }
    measured.set("delay_mean_ms", 1000.0 * delays.iter().sum::<f64>() / delays.len() as f64);
    delays.sort_by(f64::total_cmp);
    for (name, share) in [("delay_p50_ms", 0.5), ("delay_p95_ms", 0.95), ("delay_p99_ms", 0.99)] {
        let place = ((delays.len() - 1) as f64 * share).round() as usize;
        measured.set(name, 1000.0 * delays[place]);
    }
}

/// A time with the mean 1 / `per_s`.
fn exponential(random: &mut Random, per_s: f64) -> f64 {
    // Between 0 and 1, neither included.
    let share = ((random.public_u64() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64;
    -share.ln() / per_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_is_that_of_the_textbook() {
        for rho in [0.1, 0.5, 0.9, 1.17, 3.8] {
            for places in [1, 2, 6, 30] {
                let textbook = (1.0 - rho) * f64::powi(rho, places) / (1.0 - f64::powi(rho, places + 1));
                assert!((blocking(rho, places as u32) / textbook - 1.0).abs() < 1e-9, "{rho} {places}");
            }
        }
        assert!((blocking(1.0, 4) - 0.2).abs() < 1e-12);
    }
}
