//! Distributions of sizes and times: constant, uniform, exponential, or a table traced from a file.

use inhost_base::Random;
use serde::{Deserialize, Serialize};

/// Most values of a table.
pub const TABLE_MAX: usize = 4096;
/// Largest value of a distribution.
pub const VALUE_MAX: u64 = 1 << 40;
/// An exponential draw is cut at this multiple of the mean: one draw in 5·10⁻⁹ would be longer.
const EXPONENTIAL_CUT: f64 = 19.0;

/// How values are drawn. The unit is that of the key: bytes for sizes, microseconds for times.
///
/// ```
/// use inhost_base::Random;
/// use inhost_inett::distribution::Distribution;
/// let mut random = Random::from_number(7);
/// assert_eq!(Distribution::Constant(1966).draw(&mut random), 1966);
/// assert!((10..=20).contains(&Distribution::Uniform { least: 10, most: 20 }.draw(&mut random)));
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// Always this value.
    Constant(u64),
    /// Each whole number from `least` to `most`, with the same probability.
    Uniform {
        /// The least value.
        least: u64,
        /// The greatest value.
        most: u64,
    },
    /// Exponential with this mean, rounded to a whole number.
    Exponential {
        /// The mean.
        mean: u64,
    },
    /// One of these values, each with the same probability: a trace of real sizes or times.
    Table(Vec<u64>),
}

impl Default for Distribution {
    fn default() -> Self {
        Distribution::Constant(0)
    }
}

impl Distribution {
    /// A table from text: one whole number a line; empty lines and what follows `#` are ignored.
    ///
    /// # Errors
    /// When a line is not a number, or there are none or too many.
    pub fn from_trace(text: &str) -> Result<Distribution, DistributionError> {
        let mut values = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let value = line.parse().map_err(|_| DistributionError::NotANumber { line: number + 1 })?;
            if values.len() == TABLE_MAX {
                return Err(DistributionError::TableSize);
            }
            values.push(value);
        }
        let table = Distribution::Table(values);
        table.validate()?;
        Ok(table)
    }
    /// Whether the values make sense.
    ///
    /// # Errors
    /// The first limit that does not hold.
    pub fn validate(&self) -> Result<(), DistributionError> {
        let values: &[u64] = match self {
            Distribution::Constant(value) => &[*value],
            Distribution::Uniform { least, most } if least <= most => &[*least, *most],
            Distribution::Uniform { .. } => return Err(DistributionError::Order),
            Distribution::Exponential { mean } => &[*mean],
            Distribution::Table(values) if (1..=TABLE_MAX).contains(&values.len()) => values,
            Distribution::Table(_) => return Err(DistributionError::TableSize),
        };
        match values.iter().all(|value| *value <= VALUE_MAX) {
            true => Ok(()),
            false => Err(DistributionError::TooLarge),
        }
    }
    /// The next value. It follows from the random source alone.
    pub fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Distribution::Constant(value) => *value,
            Distribution::Uniform { least, most } => {
                let span = u128::from(most.saturating_sub(*least)) + 1;
                let offset = (u128::from(random.public_u64()) * span) >> 64;
                least.saturating_add(offset as u64)
            }
            Distribution::Exponential { mean } => {
                // In (0, 1], so that the logarithm exists.
                let unit = ((random.public_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                ((-unit.ln()).min(EXPONENTIAL_CUT) * *mean as f64).round() as u64
            }
            Distribution::Table(values) => {
                let at = (u128::from(random.public_u64()) * values.len() as u128) >> 64;
                values.get(at as usize).copied().unwrap_or_default()
            }
        }
    }
    /// The greatest value that can be drawn.
    pub fn greatest(&self) -> u64 {
        match self {
            Distribution::Constant(value) => *value,
            Distribution::Uniform { most, .. } => *most,
            Distribution::Exponential { mean } => (EXPONENTIAL_CUT * *mean as f64).round() as u64,
            Distribution::Table(values) => values.iter().copied().max().unwrap_or_default(),
        }
    }
}

/// What is wrong with a distribution.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DistributionError {
    /// A line of a trace is not a whole number.
    NotANumber {
        /// The line, from 1.
        line: usize,
    },
    /// The table is empty or longer than [`TABLE_MAX`].
    TableSize,
    /// The least value is above the greatest.
    Order,
    /// A value is above [`VALUE_MAX`].
    TooLarge,
}

impl core::fmt::Display for DistributionError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            DistributionError::NotANumber { line } => {
                write!(f, "line {line} of the trace is not a whole number")
            }
            DistributionError::TableSize => write!(f, "a table has between 1 and {TABLE_MAX} values"),
            DistributionError::Order => f.write_str("the least value is above the greatest"),
            DistributionError::TooLarge => write!(f, "a value is above {VALUE_MAX}"),
        }
    }
}
impl core::error::Error for DistributionError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(of: &Distribution) -> f64 {
        let mut random = Random::from_number(1);
        (0..20_000).map(|_| of.draw(&mut random) as f64).sum::<f64>() / 20_000.0
    }

    #[test]
    fn each_has_its_mean_and_repeats_from_its_seed() {
        for (of, expected) in [
            (Distribution::Constant(7), 7.0),
            (Distribution::Uniform { least: 100, most: 300 }, 200.0),
            (Distribution::Exponential { mean: 1000 }, 1000.0),
            (Distribution::Table(vec![10, 20, 60]), 30.0),
        ] {
            let found = mean(&of);
            assert!((found - expected).abs() < expected * 0.03, "{of:?}: {found}");
            assert_eq!(found, mean(&of));
        }
    }

    #[test]
    fn a_trace_is_read_and_rubbish_is_refused() {
        assert_eq!(
            Distribution::from_trace("# sizes\n1\n\n 20 # twice\n"),
            Ok(Distribution::Table(vec![1, 20]))
        );
        assert_eq!(Distribution::from_trace("1\ntwo"), Err(DistributionError::NotANumber { line: 2 }));
        assert_eq!(Distribution::from_trace(""), Err(DistributionError::TableSize));
        assert_eq!(Distribution::from_trace(&"1\n".repeat(5000)), Err(DistributionError::TableSize));
        assert_eq!(Distribution::Uniform { least: 2, most: 1 }.validate(), Err(DistributionError::Order));
        assert_eq!(Distribution::Constant(u64::MAX).validate(), Err(DistributionError::TooLarge));
    }

    #[test]
    fn no_draw_is_above_the_greatest() {
        let mut random = Random::from_number(3);
        for of in [
            Distribution::Exponential { mean: VALUE_MAX },
            Distribution::Uniform { least: 0, most: u64::MAX },
            Distribution::Table(vec![5]),
        ] {
            assert!((0..1000).all(|_| of.draw(&mut random) <= of.greatest()));
        }
    }
}
