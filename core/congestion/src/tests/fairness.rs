//! Ten flows on one bottleneck with a queue that drops at its tail, in rounds.

use super::*;

/// What the path and its queue hold, in segments.
const PATH: u32 = 1000;
const QUEUE: u32 = 500;
const ROUND_TRIP: Duration = Duration::from_millis(40);

/// Jain's index of what flows got that began a while after each other.
fn jain(choice: &CongestionChoice, flows: usize) -> f64 {
    let mut senders: Vec<Sender> = Vec::new();
    let mut got = vec![0.0; flows];
    let mut random = inhost_base::Random::from_number(7);
    for round in 0..20_000u32 {
        if senders.len() < flows && round % 50 == 0 {
            let mut sender = Sender::opened(choice);
            sender.now = senders.first().map_or(sender.now, |first| first.now);
            senders.push(sender);
        }
        let demand: u32 = senders.iter().map(|sender| sender.window() / SEGMENT).sum();
        let queue = demand.saturating_sub(PATH);
        let round_trip = ROUND_TRIP + ROUND_TRIP.times(u64::from(queue)).divided_by(u64::from(PATH));
        let dropped = demand.saturating_sub(PATH + QUEUE);
        for (sender, got) in senders.iter_mut().zip(&mut got) {
            let share = f64::from(sender.window() / SEGMENT) / f64::from(demand);
            if round >= 4000 {
                *got += share;
            }
            // Each drop hits a flow by its share of the queue.
            let hit = 1.0 - (1.0 - share).powi(dropped as i32);
            sender.round(round_trip);
            if dropped > 0 && random.public_chance(hit) {
                sender.sent_bytes = sender.acknowledged_bytes;
                sender.lose();
            }
        }
        let now = senders.iter().map(|sender| sender.now).max().unwrap();
        senders.iter_mut().for_each(|sender| sender.now = now);
    }
    let (sum, squares) = got.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (flows as f64 * squares)
}

#[test]
fn ten_flows_share_alike() {
    for choice in &[CongestionChoice::Cubic, CongestionChoice::NewReno, CongestionChoice::CubicInSegments] {
        let index = jain(choice, 10);
        println!("{choice:?}: {index:.3}");
        assert!(index >= 0.95, "{choice:?}: {index}");
    }
}
