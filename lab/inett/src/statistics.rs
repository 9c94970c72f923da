//! Mean, deviation, Student's confidence interval, percentiles, and the rule of repetition.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Longest time that a histogram tells apart: one hour, in nanoseconds.
const TIME_MAX_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits of a histogram.
const TIME_DIGITS: u8 = 3;

/// Mean of a sample, and how sure it is.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// Values.
    pub count: usize,
    /// Arithmetic mean, in the unit of the values.
    pub mean: f64,
    /// Standard deviation of the sample (divisor `count - 1`); 0 for a single value.
    pub deviation: f64,
    /// Half the width of the 95 % confidence interval of the mean, by Student's t; none for a single value.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// Of a sample; `None` where it is empty or has a value that is not finite.
    ///
    /// ```
    /// use inhost_inett::statistics::Estimate;
    /// let estimate = Estimate::of(&[9.0, 10.0, 11.0]).unwrap();
    /// assert_eq!((estimate.mean, estimate.deviation), (10.0, 1.0));
    /// assert!((estimate.half_width.unwrap() - 2.484).abs() < 0.001);
    /// ```
    pub fn of(values: &[f64]) -> Option<Estimate> {
        if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        if count == 1 {
            return Some(Estimate { count, mean, deviation: 0.0, half_width: None });
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (count - 1) as f64).sqrt();
        let half_width = StudentsT::new(0.0, 1.0, (count - 1) as f64)
            .ok()
            .map(|t| t.inverse_cdf(0.975) * deviation / (count as f64).sqrt());
        Some(Estimate { count, mean, deviation, half_width })
    }
    /// The half width as a share of the mean, 0 and up.
    pub fn half_width_share(&self) -> Option<f64> {
        let half_width = self.half_width?;
        match self.mean == 0.0 {
            true => (half_width == 0.0).then_some(0.0),
            false => Some((half_width / self.mean).abs()),
        }
    }
}

/// When to stop repeating a measurement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rule {
    /// Repetitions at least; 3 or more make sense of a deviation.
    pub at_least: u32,
    /// Repetitions at most.
    pub at_most: u32,
    /// Half width of the 95 % confidence interval that is asked for, as a share of the mean.
    pub share: f64,
}

/// What the rule says after a repetition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// Repeat.
    Again,
    /// The interval is as narrow as asked for.
    Sufficient,
    /// The limit of repetitions is reached, and the interval is wider than asked for.
    NotSufficient,
}

impl Rule {
    /// What to do after these values.
    pub fn advise(&self, values: &[f64]) -> Advice {
        let is_narrow = Estimate::of(values)
            .and_then(|estimate| estimate.half_width_share())
            .is_some_and(|share| share <= self.share);
        let count = values.len();
        match () {
            () if count < self.at_least as usize && count < self.at_most as usize => Advice::Again,
            () if is_narrow => Advice::Sufficient,
            () if count >= self.at_most as usize => Advice::NotSufficient,
            () => Advice::Again,
        }
    }
}

/// Times of transactions. Memory is bounded, however many there are.
#[derive(Clone, Debug)]
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Self {
        match Histogram::new_with_bounds(1, TIME_MAX_NS, TIME_DIGITS) {
            Ok(histogram) => Times(histogram),
            Err(why) => unreachable!("the bounds are constants: {why}"),
        }
    }
}

impl Times {
    /// Takes one time, in nanoseconds.
    pub fn take(&mut self, ns: u64) {
        self.0.saturating_record(ns.max(1));
    }
    /// How many were taken.
    pub fn count(&self) -> u64 {
        self.0.len()
    }
    /// What they are, in microseconds; `None` where none was taken.
    pub fn percentiles(&self) -> Option<Percentiles> {
        if self.count() == 0 {
            return None;
        }
        let at = |share: f64| self.0.value_at_quantile(share) as f64 / 1e3;
        Some(Percentiles {
            least_us: self.0.min() as f64 / 1e3,
            mean_us: self.0.mean() / 1e3,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            most_us: self.0.max() as f64 / 1e3,
        })
    }
}

/// Percentiles of times in microseconds, to three significant digits.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Percentiles {
    pub least_us: f64,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub most_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_tables() {
        // t(0.975, 4) = 2.776 and t(0.975, 9) = 2.262.
        let five = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((five.half_width.unwrap() - 2.776 * five.deviation / 5_f64.sqrt()).abs() < 1e-3);
        let ten = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]).unwrap();
        assert!((ten.half_width.unwrap() - 2.262 * ten.deviation / 10_f64.sqrt()).abs() < 1e-3);
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0, f64::NAN]), None);
        assert_eq!(Estimate::of(&[4.0]).unwrap().half_width, None);
    }

    #[test]
    fn repetition_ends_when_the_interval_is_narrow_or_at_its_limit() {
        let rule = Rule { at_least: 3, at_most: 5, share: 0.05 };
        assert_eq!(rule.advise(&[]), Advice::Again);
        assert_eq!(rule.advise(&[1.0, 1.0]), Advice::Again);
        assert_eq!(rule.advise(&[1.0, 1.0, 1.0]), Advice::Sufficient);
        assert_eq!(rule.advise(&[1.0, 2.0, 3.0]), Advice::Again);
        assert_eq!(rule.advise(&[1.0, 2.0, 3.0, 9.0, 1.0]), Advice::NotSufficient);
        let once = Rule { at_least: 3, at_most: 1, share: 0.05 };
        assert_eq!(once.advise(&[1.0]), Advice::NotSufficient);
        assert_eq!(rule.advise(&[0.0, 0.0, 0.0]), Advice::Sufficient);
    }

    #[test]
    fn percentiles_have_three_digits() {
        let mut times = Times::default();
        assert_eq!(times.percentiles(), None);
        (1..=1000).for_each(|us| times.take(us * 1000));
        let found = times.percentiles().unwrap();
        assert!((found.p50_us - 500.0).abs() < 1.0 && (found.p99_us - 990.0).abs() < 1.0, "{found:?}");
        times.take(u64::MAX);
        times.take(0);
        assert_eq!(times.count(), 1002);
    }
}
