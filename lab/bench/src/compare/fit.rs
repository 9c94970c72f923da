//! What a segment costs and what a byte costs, fitted to runs with segments of different sizes: CPU = A · segments +
//! B · bytes (UCLA's Internet host, chapter 3).

use super::result::Answer;

/// MTUs that are run, from where segments are all the cost to where bytes are.
pub const MTUS_BYTES: [u32; 5] = [576, 1500, 4096, 16_384, 65_535];

/// Nanoseconds of a segment and of a kilobyte (1000 bytes), and how far the worst run lies off, in parts of its time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// A.
    pub segment_ns: f64,
    /// B.
    pub kilobyte_ns: f64,
    /// The largest error.
    pub worst: f64,
}

/// The answer that stands for those of all runs.
pub fn answer(runs: &[Answer]) -> Result<Answer, String> {
    let point = |run: &Answer| {
        let of = |key: &str| run.figures.get(key).copied();
        Some((of("segments")?, of("bytes")?, of("core_seconds")?))
    };
    let points: Option<Vec<_>> = runs.iter().map(point).collect();
    let cost = points.and_then(|points| cost(&points)).ok_or("the runs do not tell segments from bytes")?;
    let sizes: Vec<String> = MTUS_BYTES.iter().map(u32::to_string).collect();
    let settings = runs.last().map(|run| run.settings.as_str()).unwrap_or_default();
    Ok(Answer {
        figures: [("A".to_owned(), cost.segment_ns), ("B".to_owned(), cost.kilobyte_ns)].into(),
        settings: format!(
            "MTUs {}; the worst lies {:.0} % off; {settings}",
            sizes.join(", "),
            100.0 * cost.worst
        ),
    })
}

/// The least squares of the errors in parts of each run's time, so that a long run counts no more than a short one.
/// `None` where the runs are too alike.
fn cost(points: &[(f64, f64, f64)]) -> Option<Cost> {
    let (mut ss, mut sb, mut bb, mut s1, mut b1) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (segments, bytes, seconds) in points.iter().filter(|point| point.2 > 0.0) {
        // Thousands of each in a second: numbers of one size.
        let (s, b) = (segments / seconds / 1e6, bytes / seconds / 1e9);
        ss += s * s;
        sb += s * b;
        bb += b * b;
        s1 += s;
        b1 += b;
    }
    let determinant = ss * bb - sb * sb;
    if determinant <= 1e-9 * ss * bb || determinant.is_nan() {
        return None;
    }
    let (per_segment, per_byte) = ((s1 * bb - b1 * sb) / determinant, (b1 * ss - s1 * sb) / determinant);
    let error = |(segments, bytes, seconds): &(f64, f64, f64)| {
        ((per_segment * segments / 1e6 + per_byte * bytes / 1e9) / seconds - 1.0).abs()
    };
    let worst = points.iter().map(error).fold(0.0, f64::max);
    Some(Cost { segment_ns: per_segment * 1e3, kilobyte_ns: per_byte * 1e3, worst })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_found_again() {
        let run = |segments: f64, bytes: f64| (segments, bytes, segments * 150e-9 + bytes * 0.1e-9);
        let points = [run(1e6, 0.5e9), run(0.7e6, 1.0e9), run(1e5, 6.0e9)];
        let cost = cost(&points).unwrap();
        assert!(
            (cost.segment_ns - 150.0).abs() < 1e-6 && (cost.kilobyte_ns - 100.0).abs() < 1e-6,
            "{cost:?}"
        );
        assert!(cost.worst < 1e-9);
    }

    #[test]
    fn one_size_of_segments_tells_nothing() {
        assert_eq!(cost(&[(1e6, 1.5e9, 1.0), (2e6, 3e9, 2.0)]), None);
        assert_eq!(cost(&[]), None);
        assert!(answer(&[Answer::default()]).is_err());
    }
}
