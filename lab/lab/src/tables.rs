//! The figures of the four papers, by their path in the file.

use std::fmt;

/// The file: each value was read out of a paper's text.
pub const TABLES: &str = include_str!("../tables.toml");

/// Why there is no such figure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoFigure(String);

impl fmt::Display for NoFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the papers' tables have no numbers at {}", self.0)
    }
}
impl std::error::Error for NoFigure {}

/// The numbers at a path such as `mit.table_6_4.measured`: a list, or a single one.
///
/// # Errors
/// There are none.
pub fn numbers(path: &str) -> Result<Vec<f64>, NoFigure> {
    let missing = || NoFigure(path.to_owned());
    let mut value = &toml::Value::Table(TABLES.parse::<toml::Table>().map_err(|_| missing())?);
    for key in path.split('.') {
        value = value.get(key).ok_or_else(missing)?;
    }
    let number =
        |value: &toml::Value| value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
    let list = match value {
        toml::Value::Array(list) => list.iter().map(number).collect(),
        single => number(single).map(|number| vec![number]),
    };
    list.filter(|list| !list.is_empty()).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_paths() {
        assert_eq!(numbers("mit.table_6_4.measured").unwrap(), [0.1219, 0.0718, 0.0638]);
        assert_eq!(numbers("mit.table_6_2.predicted_s").unwrap(), [572.5]);
        for path in ["mit.table_6_4.nothing", "mit", "mit.paper", ""] {
            assert!(numbers(path).is_err(), "{path}");
        }
    }
}
