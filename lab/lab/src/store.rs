//! Results on disk, in SQLite.

use std::fmt;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use crate::experiment::{Experiment, Point};
use crate::kinds::Measures;

/// The version of the program, which results are kept with: another one may have other results.
pub const PROGRAM: &str = env!("CARGO_PKG_VERSION");
/// The layout of the file.
const VERSION: i64 = 1;

/// A result.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The point's number.
    pub point: usize,
    /// The seed.
    pub seed: u64,
    /// What was measured, or why not.
    pub result: Result<Measures, String>,
    /// How long it took, in milliseconds of the wall clock.
    pub took_ms: u64,
    /// The version of the program.
    pub version: String,
}

/// The file of results.
pub struct Store(Connection);

impl Store {
    /// Opens or makes it.
    ///
    /// # Errors
    /// It cannot be opened, or was made by a later version.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        Store::prepare(Connection::open(path)?)
    }
    /// One that is not kept.
    ///
    /// # Errors
    /// SQLite has no memory.
    pub fn in_memory() -> Result<Store, StoreError> {
        Store::prepare(Connection::open_in_memory()?)
    }
    fn prepare(db: Connection) -> Result<Store, StoreError> {
        db.busy_timeout(std::time::Duration::from_secs(30))?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "NORMAL")?;
        let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version > VERSION {
            return Err(StoreError::Version(version));
        }
        db.execute_batch(
            "CREATE TABLE IF NOT EXISTS run (
               experiment TEXT NOT NULL, setup TEXT NOT NULL, seed INTEGER NOT NULL, point INTEGER NOT NULL,
               measured TEXT, failure TEXT, took_ms INTEGER NOT NULL, version TEXT NOT NULL,
               PRIMARY KEY (experiment, setup, seed)) WITHOUT ROWID;
             CREATE TABLE IF NOT EXISTS own (experiment TEXT PRIMARY KEY, file TEXT NOT NULL) WITHOUT ROWID",
        )?;
        db.pragma_update(None, "user_version", VERSION)?;
        Ok(Store(db))
    }
    /// Whether a point was measured with a seed, by this version of the program.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn has(&self, experiment: &Experiment, point: &Point, seed: u64) -> Result<bool, StoreError> {
        let found = self
            .0
            .prepare_cached(
                "SELECT 1 FROM run WHERE experiment = ? AND setup = ? AND seed = ? AND version = ? AND measured IS NOT NULL",
            )?
            .query_row(params![experiment.name, key(experiment, point), signed(seed), PROGRAM], |_| Ok(()))
            .optional()?;
        Ok(found.is_some())
    }
    /// Writes a result down, instead of an earlier one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, experiment: &Experiment, point: &Point, row: &Row) -> Result<(), StoreError> {
        let measured = row.result.as_ref().ok().map(serde_json::to_string).transpose()?;
        self.0.prepare_cached("INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?)")?.execute(
            params![
                experiment.name,
                key(experiment, point),
                signed(row.seed),
                row.point as i64,
                measured,
                row.result.as_ref().err(),
                signed(row.took_ms),
                row.version
            ],
        )?;
        Ok(())
    }
    /// The results of a point, by their seeds.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn rows(&self, experiment: &Experiment, point: &Point) -> Result<Vec<Row>, StoreError> {
        let mut select = self.0.prepare_cached(
            "SELECT seed, measured, failure, took_ms, version FROM run WHERE experiment = ? AND setup = ? AND seed <= ?
             ORDER BY seed",
        )?;
        let seeds = signed(experiment.seeds);
        let mut rows = select.query(params![experiment.name, key(experiment, point), seeds])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let (measured, failure): (Option<String>, Option<String>) = (row.get(1)?, row.get(2)?);
            found.push(Row {
                point: point.number,
                seed: u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0),
                result: match measured {
                    Some(text) => Ok(serde_json::from_str(&text)?),
                    None => Err(failure.unwrap_or_default()),
                },
                took_ms: u64::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
                version: row.get(4)?,
            });
        }
        Ok(found)
    }
    /// Keeps the text of a user's own experiment, so that it is known by its name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, name: &str, text: &str) -> Result<(), StoreError> {
        self.0.prepare_cached("INSERT OR REPLACE INTO own VALUES (?, ?)")?.execute([name, text])?;
        Ok(())
    }
    /// Names and texts of the experiments that were kept.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn kept(&self) -> Result<Vec<(String, String)>, StoreError> {
        let mut select = self.0.prepare_cached("SELECT experiment, file FROM own ORDER BY experiment")?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
    /// Takes over the results of another file.
    ///
    /// # Errors
    /// One of them cannot be read or written.
    pub fn gather(&self, from: &Path) -> Result<usize, StoreError> {
        // It may have to be brought to this layout.
        drop(Store::open(from)?);
        self.0.execute("ATTACH DATABASE ? AS other", [from.to_string_lossy()])?;
        let count = self.0.execute("INSERT OR REPLACE INTO run SELECT * FROM other.run", []);
        let own = self.0.execute("INSERT OR REPLACE INTO own SELECT * FROM other.own", []);
        self.0.execute("DETACH DATABASE other", [])?;
        own?;
        Ok(count?)
    }
}

/// The whole setup as text: what makes two runs the same.
fn key(experiment: &Experiment, point: &Point) -> String {
    // Tables are ordered by their keys.
    serde_json::to_string(&(experiment.kind, &point.setup)).unwrap_or_default()
}

/// Numbers of SQLite are signed.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Why results cannot be kept or read.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// SQLite fails.
    Database(rusqlite::Error),
    /// A result is not one.
    Result(serde_json::Error),
    /// It was made by a later version.
    Version(i64),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Database(error) => write!(f, "{error}"),
            StoreError::Result(error) => write!(f, "a result is not one: {error}"),
            StoreError::Version(version) => write!(f, "it has version {version}, later than this program's"),
        }
    }
}
impl std::error::Error for StoreError {}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::Database(error)
    }
}
impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        StoreError::Result(error)
    }
}
