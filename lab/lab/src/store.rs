//! Results on disk, in SQLite.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params, params_from_iter};

use crate::experiment::{Experiment, Point};
use crate::kinds::Measures;

/// The version of the program, which results are kept with: another one may have other results.
pub const PROGRAM: &str = env!("CARGO_PKG_VERSION");
/// The layout of the file.
const VERSION: i64 = 1;
/// For how long another program may write.
const WAIT: Duration = Duration::from_secs(30);

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
    /// Opens one that is there, for reading only: it may be somebody else's.
    ///
    /// # Errors
    /// It cannot be read, is not a file of results, or was made by a later version.
    pub fn open_to_read(path: &Path) -> Result<Store, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        match Store::reading(Connection::open_with_flags(path, flags)?) {
            // A run was killed, or its file copied, so that it is not at rest: see `drop`. Where no other file is beside it
            // and none can be made, nobody writes to it.
            Err(StoreError::Database(why)) if needs_others(&why) && !beside(path, "-wal").exists() => {
                let flags = flags | OpenFlags::SQLITE_OPEN_URI;
                Store::reading(Connection::open_with_flags(immutable(path), flags)?)
            }
            other => other,
        }
    }
    fn reading(db: Connection) -> Result<Store, StoreError> {
        db.busy_timeout(WAIT)?;
        match db.pragma_query_value(None, "user_version", |row| row.get(0))? {
            VERSION => Ok(Store(db)),
            later if later > VERSION => Err(StoreError::Version(later)),
            _ => Err(StoreError::Strange),
        }
    }
    /// One that is not kept.
    ///
    /// # Errors
    /// SQLite has no memory.
    pub fn in_memory() -> Result<Store, StoreError> {
        Store::prepare(Connection::open_in_memory()?)
    }
    fn prepare(db: Connection) -> Result<Store, StoreError> {
        db.busy_timeout(WAIT)?;
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
        let other = Store::open_to_read(from)?;
        let all = self.0.unchecked_transaction()?;
        let count = copy(&other.0, &all, "run", 8)?;
        copy(&other.0, &all, "own", 2)?;
        all.commit()?;
        Ok(count)
    }
}

impl Drop for Store {
    /// Makes it one file again. In WAL mode readers are not in the way of the writer, but SQLite needs other files beside it,
    /// which a user who may only read cannot make. Where another program has it open, it stays as it is.
    fn drop(&mut self) {
        let _ = self.0.busy_timeout(Duration::ZERO);
        let _ = self.0.pragma_update(None, "journal_mode", "DELETE");
    }
}

/// Whether SQLite could not make the files that it keeps beside one in WAL mode.
fn needs_others(why: &rusqlite::Error) -> bool {
    matches!(why.sqlite_error_code(), Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen))
}

/// The path of a file beside another one.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The URI by which SQLite reads a file as one that does not change.
fn immutable(path: &Path) -> String {
    let octets = path.as_os_str().as_encoded_bytes().iter();
    let name: String = octets.map(|octet| format!("%{octet:02x}")).collect();
    format!("file:{name}?immutable=1")
}

/// Copies the rows of a table, instead of those with the same key. How many there are.
fn copy(from: &Connection, to: &Connection, table: &str, columns: usize) -> Result<usize, StoreError> {
    let places = vec!["?"; columns].join(", ");
    let mut insert = to.prepare(&format!("INSERT OR REPLACE INTO {table} VALUES ({places})"))?;
    let mut select = from.prepare(&format!("SELECT * FROM {table}"))?;
    let mut rows = select.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|column| row.get(column)).collect::<Result<Vec<Value>, _>>()?;
        count += insert.execute(params_from_iter(values))?;
    }
    Ok(count)
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
    /// It is not a file of results.
    Strange,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Database(error) => write!(f, "{error}"),
            StoreError::Result(error) => write!(f, "a result is not one: {error}"),
            StoreError::Strange => f.write_str("it is not a file of results; inhost lab run makes one"),
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
