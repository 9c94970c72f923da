//! The few statistics that the figures need.

use inhost_base::Random;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Resamples of a bootstrap.
const RESAMPLES: usize = 2_000;
/// Buckets for each doubling.
const BUCKETS_A_DOUBLING: f64 = 16.0;

/// The value in the middle, or the mean of the two there; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The bound above which the median lies with 95 % confidence: the 5th percentile of the medians of resamples
/// (percentile bootstrap, one-sided). The resamples are the same in every run.
pub fn median_lower_bound(values: &[f64]) -> Option<f64> {
    let mut random = Random::from_number(values.len() as u64);
    let mut medians = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let draw = |_| values.get(random.public_below(values.len() as u32) as usize).copied();
        let resample: Option<Vec<f64>> = (0..values.len()).map(draw).collect();
        medians.push(median(&resample?)?);
    }
    medians.sort_by(f64::total_cmp);
    medians.get(RESAMPLES / 20).copied()
}

/// Jain's index of fairness: 1 when all have the same, 1/n when one has all.
pub fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    if squares == 0.0 { 0.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

/// How often each length of time was seen, in buckets that are 4 % wide.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram(BTreeMap<u16, u32>);

impl Histogram {
    /// Counts a length of time.
    pub fn add(&mut self, nanos: u64) {
        let bucket = (nanos.max(1) as f64).log2() * BUCKETS_A_DOUBLING;
        *self.0.entry(bucket as u16).or_default() += 1;
    }
    /// Counts all that another has counted.
    pub fn merge(&mut self, other: &Histogram) {
        for (bucket, count) in &other.0 {
            *self.0.entry(*bucket).or_default() += count;
        }
    }
    /// The length below which the share `quantile` lies: the middle of its bucket, in nanoseconds.
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        let all: u64 = self.0.values().map(|count| u64::from(*count)).sum();
        let wanted = (quantile * all as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in &self.0 {
            seen += u64::from(*count);
            if seen >= wanted {
                return Some(((f64::from(*bucket) + 0.5) / BUCKETS_A_DOUBLING).exp2());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_its_bound() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        let values: Vec<f64> = (0..20).map(|n| 0.9 + 0.01 * f64::from(n)).collect();
        let bound = median_lower_bound(&values).unwrap();
        assert!((0.93..0.99).contains(&bound), "{bound}");
        assert_eq!(median_lower_bound(&[1.0; 20]), Some(1.0));
        assert_eq!(median_lower_bound(&[]), None);
    }

    #[test]
    fn jain_of_the_equal_and_of_the_greedy() {
        assert_eq!(jain(&[5.0; 10]), 1.0);
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[0.0; 4]), 0.0);
    }

    #[test]
    fn quantiles_are_within_a_bucket() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|micros| histogram.add(micros * 1_000));
        for (quantile, micros) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = histogram.quantile(quantile).unwrap() / 1_000.0;
            assert!((found / micros - 1.0f64).abs() < 0.045, "{quantile}: {found}");
        }
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
