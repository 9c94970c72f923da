//! Rate samples against a path whose rate is known.

use super::*;

/// A transmission on the way.
struct Record {
    mark: RateMark,
    sent_at: Instant,
    bytes: u32,
}

#[test]
fn a_bulk_transfer_shows_the_rate_of_the_path() {
    // A segment each 100 us, 10 MB/s; 200 in flight, acknowledged by twos.
    let mut sampler = RateSampler::default();
    let mut flight = std::collections::VecDeque::new();
    let mut now = Instant::from_millis(1000);
    let mut in_flight = 0;
    for _ in 0..200 {
        flight.push_back(Record { mark: sampler.sent(in_flight, now), sent_at: now, bytes: 1000 });
        in_flight += 1000;
    }
    now += Duration::from_millis(20);
    let mut rates = Vec::new();
    for _ in 0..2000 {
        now += Duration::from_micros(200);
        let mut builder = SampleBuilder::default();
        for _ in 0..2 {
            let Record { mark, sent_at, bytes } = flight.pop_front().unwrap();
            sampler.delivered(&mut builder, mark, sent_at, bytes, now);
            in_flight -= bytes;
        }
        let sample = sampler.sample(&builder, Duration::from_millis(1), now).unwrap();
        assert!(!sample.application_limited);
        rates.push(sample.bytes_per_s());
        for _ in 0..2 {
            flight.push_back(Record { mark: sampler.sent(in_flight, now), sent_at: now, bytes: 1000 });
            in_flight += 1000;
        }
    }
    for rate in &rates[200..] {
        assert!(rate.abs_diff(10_000_000) < 200_000, "{rate}");
    }
    assert_eq!(sampler.delivered_bytes(), 4_000_000);
}

#[test]
fn an_application_that_has_too_little_is_told_apart() {
    let mut sampler = RateSampler::default();
    let start = Instant::from_millis(1);
    let first = sampler.sent(0, start);
    sampler.application_limited(1000);
    let second = sampler.sent(1000, start);
    let now = start + Duration::from_millis(10);
    let sampled = |sampler: &mut RateSampler, mark, sent_at, now| {
        let mut builder = SampleBuilder::default();
        sampler.delivered(&mut builder, mark, sent_at, 1000, now);
        sampler.sample(&builder, Duration::ZERO, now).unwrap()
    };
    assert!(!sampled(&mut sampler, first, start, now).application_limited);
    assert!(sampled(&mut sampler, second, start, now).application_limited);
    // All that was sent meanwhile is delivered: what leaves now is on its own.
    let third = sampler.sent(0, now);
    let later = now + Duration::from_millis(10);
    let sample = sampled(&mut sampler, third, now, later);
    assert!(!sample.application_limited);
    assert_eq!((sample.delivered_bytes, sample.prior_delivered_bytes), (1000, 2000));
    assert_eq!(sample.interval, Duration::from_millis(10), "the idle time before is not a part of it");
}

#[test]
fn acknowledgments_that_come_at_once_do_not_show_a_rate_that_was_never_sent() {
    // Ten segments leave over 10 ms; their acknowledgments were held back and come together.
    let mut sampler = RateSampler::default();
    let mut marks = Vec::new();
    let mut now = Instant::from_millis(1);
    for sent in 0..10 {
        marks.push((sampler.sent(sent * 1000, now), now));
        now += Duration::from_millis(1);
    }
    now += Duration::from_millis(5);
    let mut builder = SampleBuilder::default();
    sampler.delivered(&mut builder, marks[0].0, marks[0].1, 1000, now);
    sampler.sample(&builder, Duration::ZERO, now).unwrap();
    let mut builder = SampleBuilder::default();
    for &(mark, sent_at) in &marks[1..] {
        sampler.delivered(&mut builder, mark, sent_at, 1000, now);
    }
    let sample = sampler.sample(&builder, Duration::ZERO, now).unwrap();
    assert!(sample.interval >= Duration::from_millis(14), "{}", sample.interval);
    assert_eq!(sample.delivered_bytes, 10_000);
}

#[test]
fn a_sample_shorter_than_the_least_round_trip_is_none() {
    let mut sampler = RateSampler::default();
    let start = Instant::from_millis(1);
    let mark = sampler.sent(0, start);
    let now = start + Duration::from_millis(1);
    let mut builder = SampleBuilder::default();
    sampler.delivered(&mut builder, mark, start, 1000, now);
    assert_eq!(sampler.sample(&builder, Duration::from_millis(20), now), None);
    assert_eq!(sampler.sample(&SampleBuilder::default(), Duration::ZERO, now), None);
}
