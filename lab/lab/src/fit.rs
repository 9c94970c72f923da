//! Costs as sums: a measure is fitted as A times this and B times that, by least squares, with confidence.

use std::fmt;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::compare::{Results, Verdict};
use crate::experiment::{Experiment, Fit, Term};

/// Most terms of a sum.
pub const TERMS_MAX: usize = 4;

/// A fitted factor.
#[derive(Clone, PartialEq, Debug)]
pub struct Factor {
    /// Its name, which ends with its unit.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Half of its 95 % confidence interval; none where there are as many factors as points.
    pub half_width: Option<f64>,
    /// What the source prints, in the same unit.
    pub paper: Option<f64>,
    /// By how much ours is more, in percent of the source's.
    pub error_percent: Option<f64>,
    /// How it stands.
    pub verdict: Verdict,
}

/// A fitted sum.
#[derive(Clone, PartialEq, Debug)]
pub struct Fitted {
    /// What was fitted, as a sentence.
    pub text: String,
    /// Its factors; none where it could not be fitted.
    pub factors: Vec<Factor>,
    /// The share of the variance that it explains, from 0 to 1.
    pub explained: f64,
    /// Why it could not be fitted.
    pub trouble: Option<NoFit>,
}

/// Why a sum cannot be fitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoFit {
    /// Points are still to be measured, and the others do not suffice.
    Unmeasured,
    /// No point has all measures and keys of the sum.
    Unknown,
    /// There are fewer points than terms.
    TooFew,
    /// Other factors fit as well.
    Undetermined,
}

impl NoFit {
    /// Whether the file is wrong: more runs do not help.
    pub fn is_final(self) -> bool {
        self != NoFit::Unmeasured
    }
}

impl fmt::Display for NoFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoFit::Unmeasured => "too few points were measured",
            NoFit::Unknown => "no point has all of these measures and keys",
            NoFit::TooFew => "there are fewer points than terms",
            NoFit::Undetermined => {
                "its terms cannot be told apart: at these points one is always 0, or a multiple or a sum of others"
            }
        })
    }
}

/// Everything that an experiment fits.
pub fn fits(experiment: &Experiment, results: &[Results]) -> Vec<Fitted> {
    let mut found = Vec::new();
    for fit in &experiment.fit {
        let mut families: Vec<Option<String>> = Vec::new();
        for of in results {
            let family = of.point.named(&fit.by);
            if !families.contains(&family) {
                families.push(family);
            }
        }
        for family in families {
            let own = results.iter().filter(|of| of.point.named(&fit.by) == family);
            found.push(fitted(fit, own.collect(), family.as_deref()));
        }
    }
    found
}

/// The value of a term at a point: the sum of its parts, or 1.
fn value(term: &Term, of: &Results) -> Option<f64> {
    if term.of.is_empty() {
        return Some(1.0);
    }
    let part = |name: &String| of.point.number_of(name).or_else(|| of.measures.get(name).map(|of| of.mean));
    term.of.iter().map(part).sum()
}

fn fitted(fit: &Fit, points: Vec<&Results>, family: Option<&str>) -> Fitted {
    let row = |of: &&Results| {
        let x = fit.term.iter().map(|term| value(term, of)).collect::<Option<Vec<f64>>>()?;
        Some((x, of.measures.get(&fit.measure)?.mean))
    };
    let rows: Vec<(Vec<f64>, f64)> = points.iter().filter_map(row).collect();
    let terms: Vec<String> = fit
        .term
        .iter()
        .map(|term| match term.of.is_empty() {
            true => term.name.clone(),
            false => format!("{} ({})", term.name, term.of.join(" + ")),
        })
        .collect();
    let at = family.map_or_else(String::new, |family| format!(", {family}"));
    let text = format!("{} = {}{at}", fit.measure, terms.join(" + "));
    match least_squares(&rows) {
        Ok((values, widths, explained)) => {
            let found = fit.term.iter().zip(values.into_iter().zip(widths));
            let factors = found.map(|(term, (value, half))| factor(term, value, half)).collect();
            Fitted { text, factors, explained, trouble: None }
        }
        Err(why) => {
            let left = points.iter().filter(|of| of.measures.is_empty()).count();
            let why = match (rows.len(), left) {
                (0, left) if left < points.len() => NoFit::Unknown,
                (_, 0) => why,
                _ => NoFit::Unmeasured,
            };
            Fitted { text, factors: Vec::new(), explained: 0.0, trouble: Some(why) }
        }
    }
}

/// A fitted factor beside what the source prints.
fn factor(term: &Term, value: f64, half: Option<f64>) -> Factor {
    let (value, half_width) = (value * term.scale, half.map(|half| half * term.scale));
    let paper = term.printed().map(|paper| paper * term.paper_scale);
    let error_percent = paper.map(|paper| (value / paper - 1.0) * 100.0);
    let verdict = match (error_percent, term.tolerance_percent) {
        (Some(error), Some(allowed)) if error.abs() <= allowed => Verdict::Holds,
        (Some(_), Some(_)) => Verdict::Missed,
        _ => Verdict::Shown,
    };
    Factor { name: term.name.clone(), value, half_width, paper, error_percent, verdict }
}

/// Factors, half of their intervals, and the share that is explained.
type Solution = (Vec<f64>, Vec<Option<f64>>, f64);

fn least_squares(rows: &[(Vec<f64>, f64)]) -> Result<Solution, NoFit> {
    let count = rows.first().ok_or(NoFit::Unmeasured)?.0.len();
    if rows.len() < count {
        return Err(NoFit::TooFew);
    }
    // Columns of like size keep the sums well conditioned.
    let sizes: Vec<f64> =
        (0..count).map(|column| rows.iter().map(|(x, _)| x[column].abs()).fold(0.0, f64::max)).collect();
    if sizes.contains(&0.0) {
        return Err(NoFit::Undetermined);
    }
    let scaled = |x: &[f64]| x.iter().zip(&sizes).map(|(x, size)| x / size).collect::<Vec<f64>>();
    let mut products = vec![vec![0.0; count]; count];
    let mut right = vec![0.0; count];
    for (x, y) in rows {
        let x = scaled(x);
        for i in 0..count {
            right[i] += x[i] * y;
            for j in 0..count {
                products[i][j] += x[i] * x[j];
            }
        }
    }
    let inverse = inverse(products).ok_or(NoFit::Undetermined)?;
    let values: Vec<f64> =
        inverse.iter().map(|row| row.iter().zip(&right).map(|(a, b)| a * b).sum()).collect();
    let predicted = |x: &[f64]| scaled(x).iter().zip(&values).map(|(x, value)| x * value).sum::<f64>();
    let left: f64 = rows.iter().map(|(x, y)| (y - predicted(x)).powi(2)).sum();
    let mean = rows.iter().map(|(_, y)| y).sum::<f64>() / rows.len() as f64;
    let all: f64 = rows.iter().map(|(_, y)| (y - mean).powi(2)).sum();
    let freedom = rows.len() - count;
    let t = (freedom > 0)
        .then(|| StudentsT::new(0.0, 1.0, freedom as f64).ok())
        .flatten()
        .map(|student| student.inverse_cdf(0.975));
    let half =
        |at: usize| t.map(|t| t * (left / freedom as f64 * inverse[at][at]).max(0.0).sqrt() / sizes[at]);
    let widths = (0..count).map(half).collect();
    let values = values.iter().zip(&sizes).map(|(value, size)| value / size).collect();
    Ok((values, widths, if all > 0.0 { 1.0 - left / all } else { 1.0 }))
}

/// The inverse of a small matrix, by Gauss and Jordan with pivots.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let count = matrix.len();
    // What is left of a column that depends on others is a rounding error, which grows with the sums.
    let least = 1e-12 * matrix.iter().flatten().fold(0.0, |most: f64, &value| most.max(value.abs()));
    for (number, row) in matrix.iter_mut().enumerate() {
        row.extend((0..count).map(|column| f64::from(u8::from(column == number))));
    }
    for column in 0..count {
        let pivot =
            (column..count).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        matrix.swap(column, pivot);
        let divisor = matrix[column][column];
        if divisor.abs() <= least {
            return None;
        }
        matrix[column].iter_mut().for_each(|value| *value /= divisor);
        let own = matrix[column].clone();
        for (number, row) in matrix.iter_mut().enumerate() {
            let factor = row[column];
            if number != column {
                row.iter_mut().zip(&own).for_each(|(value, own)| *value -= factor * own);
            }
        }
    }
    Some(matrix.into_iter().map(|row| row[count..].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_and_their_intervals_are_those_of_a_textbook() {
        // y = 2 + 3 x, exactly.
        let rows: Vec<_> = (0..5).map(|x| (vec![1.0, f64::from(x)], 2.0 + 3.0 * f64::from(x))).collect();
        let (values, widths, explained) = least_squares(&rows).unwrap();
        assert!((values[0] - 2.0).abs() < 1e-9 && (values[1] - 3.0).abs() < 1e-9, "{values:?}");
        assert!(widths.iter().all(|half| half.unwrap() < 1e-6) && explained > 0.999_999);
        // Anscombe's first set: 3.0001 + 0.5001 x, standard errors 1.1247 and 0.1179, R² 0.6665.
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let rows: Vec<_> = x.iter().zip(y).map(|(&x, y)| (vec![1.0, x], y)).collect();
        let (values, widths, explained) = least_squares(&rows).unwrap();
        assert!((values[0] - 3.0001).abs() < 1e-4 && (values[1] - 0.5001).abs() < 1e-4, "{values:?}");
        // t of 9 degrees of freedom is 2.2622.
        assert!((widths[1].unwrap() / 2.2622 - 0.1179).abs() < 1e-4, "{widths:?}");
        assert!((explained - 0.6665).abs() < 1e-4);
        assert_eq!(least_squares(&[(vec![1.0, 1.0], 1.0), (vec![1.0, 1.0], 2.0)]), Err(NoFit::Undetermined));
        assert_eq!(least_squares(&[(vec![0.0], 1.0)]), Err(NoFit::Undetermined));
        assert_eq!(least_squares(&[(vec![1.0, 2.0], 1.0)]), Err(NoFit::TooFew));
        assert_eq!(least_squares(&[]), Err(NoFit::Unmeasured));
        // Many points: one column is three times the other, but for rounding.
        let rows: Vec<_> = (1..10_000).map(|x| f64::from(x) * 0.1).map(|x| (vec![x, x * 0.3], x)).collect();
        assert_eq!(least_squares(&rows), Err(NoFit::Undetermined));
    }
}
