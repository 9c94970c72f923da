//! The figures of the four papers, by their path in the file.

use std::fmt;

/// The file: each value was read out of a paper's text.
pub const TABLES: &str = include_str!("../tables.toml");

/// Why there is no such figure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoFigure(String);

impl NoFigure {
    /// An empty list.
    pub(crate) fn empty() -> NoFigure {
        NoFigure(String::new())
    }
}

impl fmt::Display for NoFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            "" => f.write_str("a list of figures is empty"),
            path => write!(
                f,
                "the papers' tables have no numbers at {path}; a number of your own is value = NUMBER"
            ),
        }
    }
}
impl std::error::Error for NoFigure {}

/// The numbers at a path such as `mit.table_6_4.measured`: a list, or a single one. Behind it may stand which of a list, as
/// `[1]`, or from which on, as `[1..]`.
///
/// # Errors
/// There are none.
pub fn numbers(path: &str) -> Result<Vec<f64>, NoFigure> {
    let missing = || NoFigure(path.to_owned());
    let (name, part) = match path.strip_suffix(']').and_then(|path| path.split_once('[')) {
        Some((name, part)) => (name, Some(part)),
        None => (path, None),
    };
    let mut value = &toml::Value::Table(TABLES.parse::<toml::Table>().map_err(|_| missing())?);
    for key in name.split('.') {
        value = value.get(key).ok_or_else(missing)?;
    }
    let number =
        |value: &toml::Value| value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
    let list = match value {
        toml::Value::Array(list) => list.iter().map(number).collect(),
        single => number(single).map(|number| vec![number]),
    };
    let list = list.ok_or_else(missing)?;
    let number = |text: &str| text.parse::<usize>().map_err(|_| missing());
    let chosen = match part {
        None => Some(&list[..]),
        Some(part) => match part.strip_suffix("..") {
            Some(first) => list.get(number(first)?..),
            None => number(part)?.checked_add(1).and_then(|end| list.get(end - 1..end)),
        },
    };
    chosen.filter(|list| !list.is_empty()).map(<[f64]>::to_vec).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_paths() {
        assert_eq!(numbers("mit.table_6_4.measured").unwrap(), [0.1219, 0.0718, 0.0638]);
        assert_eq!(numbers("mit.table_6_2.predicted_s").unwrap(), [572.5]);
        assert_eq!(numbers("mit.table_6_4.measured[1]").unwrap(), [0.0718]);
        assert_eq!(numbers("mit.table_6_4.measured[1..]").unwrap(), [0.0718, 0.0638]);
        for path in [
            "mit.table_6_4.nothing",
            "mit",
            "mit.paper",
            "",
            "mit.table_6_4.measured[3]",
            "mit.table_6_4.measured[9..]",
            "a[",
            "]",
        ] {
            assert!(numbers(path).is_err(), "{path}");
        }
    }
}
