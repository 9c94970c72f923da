//! Why the records cannot be used.

use std::fmt;
use std::path::PathBuf;

/// Why the records cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum HistoryError {
    /// The database.
    Database(rusqlite::Error),
    /// A file of the folder.
    Io(PathBuf, std::io::Error),
    /// There are no records in the folder.
    Missing(PathBuf),
    /// The records are another version's.
    Version(i64),
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HistoryError::Database(error) => write!(f, "the database of records: {error}"),
            HistoryError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            HistoryError::Missing(path) => write!(f, "{}: there are no records", path.display()),
            HistoryError::Version(version) => {
                write!(f, "the records were written by another version of this program ({version})")
            }
        }
    }
}
impl std::error::Error for HistoryError {}
impl From<rusqlite::Error> for HistoryError {
    fn from(error: rusqlite::Error) -> HistoryError {
        HistoryError::Database(error)
    }
}
