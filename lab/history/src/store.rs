//! The tables, and what is added to them and removed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use inhost_event::{ReceiveCause, SendCause};
use rusqlite::{Connection, OpenFlags, Row, ToSql, params};

use crate::{HistoryError, Limits, Record};

/// Version of the tables.
const VERSION: i64 = 1;
/// Rows that are removed in one transaction.
const REMOVED_AT_ONCE: u64 = 5000;
const MINUTE_MS: u64 = 60_000;
/// How long somebody who reads or removes may hold up another.
const BUSY: std::time::Duration = std::time::Duration::from_secs(5);

/// Columns of the times by cause, of both sides.
pub(crate) const TIMES: usize = SendCause::COUNT + ReceiveCause::COUNT;
/// Columns of a minute before those of the times.
pub(crate) const SUMS: &str = "connections, failed, sent, received, again";

/// The names of the columns of the times: `s0` for the sending side's first cause.
pub(crate) fn times(shape: impl Fn(&str) -> String) -> String {
    let sending = (0..SendCause::COUNT).map(|n| format!("s{n}"));
    let receiving = (0..ReceiveCause::COUNT).map(|n| format!("r{n}"));
    sending.chain(receiving).map(|name| shape(&name)).collect::<Vec<_>>().join(", ")
}

/// Every question finds an index that begins with what it asks for; `docs/history.md` says what it does then.
fn tables() -> String {
    let times = times(|name| format!("{name} INTEGER NOT NULL"));
    format!(
        "CREATE TABLE IF NOT EXISTS connection (
           id INTEGER PRIMARY KEY, ended INTEGER NOT NULL, local BLOB NOT NULL, local_port INTEGER NOT NULL,
           remote BLOB NOT NULL, remote_port INTEGER NOT NULL, called INTEGER NOT NULL, age INTEGER NOT NULL,
           sent INTEGER NOT NULL, received INTEGER NOT NULL, again INTEGER NOT NULL, again_bytes INTEGER NOT NULL,
           timeouts INTEGER NOT NULL, round_trip INTEGER, error TEXT, cause INTEGER NOT NULL, rate INTEGER NOT NULL,
           {times});
         CREATE INDEX IF NOT EXISTS by_time ON connection (ended, remote);
         CREATE INDEX IF NOT EXISTS by_peer ON connection (remote, ended);
         CREATE INDEX IF NOT EXISTS by_cause ON connection (cause, ended);
         CREATE INDEX IF NOT EXISTS by_rate ON connection (rate);
         CREATE TABLE IF NOT EXISTS minute (
           minute INTEGER PRIMARY KEY, connections INTEGER NOT NULL, failed INTEGER NOT NULL, sent INTEGER NOT NULL,
           received INTEGER NOT NULL, again INTEGER NOT NULL, {times});"
    )
}

/// The database of a folder.
pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join("history.sqlite")
}

/// What a database is asked about a record: its columns in this order.
pub(crate) fn columns() -> String {
    let times = times(str::to_owned);
    format!(
        "id, ended, local, local_port, remote, remote_port, called, age, sent, received, again, again_bytes, timeouts, \
         round_trip, error, {times}"
    )
}

/// A row of [`columns`].
pub(crate) fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let end = |at: usize| -> rusqlite::Result<SocketAddr> {
        let address: [u8; 16] = row.get(at)?;
        Ok(SocketAddr::new(IpAddr::V6(Ipv6Addr::from(address)).to_canonical(), row.get(at + 1)?))
    };
    let number = |at: usize| -> rusqlite::Result<u64> { row.get::<_, i64>(at).map(i64::cast_unsigned) };
    let mut times = [0; TIMES];
    for (at, time) in times.iter_mut().enumerate() {
        *time = number(15 + at)?;
    }
    let (send, receive) = times.split_at(SendCause::COUNT);
    Ok(Record {
        ended_ms: number(1)?,
        local: end(2)?,
        remote: end(4)?,
        called: row.get(6)?,
        age_ns: number(7)?,
        sent_bytes: number(8)?,
        received_bytes: number(9)?,
        retransmitted_segments: row.get(10)?,
        retransmitted_bytes: number(11)?,
        timeouts: row.get(12)?,
        round_trip_ns: row.get::<_, Option<i64>>(13)?.map(i64::cast_unsigned),
        error: row.get(14)?,
        send_ns: send.try_into().unwrap_or_default(),
        receive_ns: receive.try_into().unwrap_or_default(),
    })
}

/// An address as the tables have it: IPv4 mapped, so that the addresses of a prefix stand together.
pub(crate) fn address(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The database, for the one who writes.
pub(crate) struct Store {
    db: Connection,
    insert: String,
    count: String,
}

/// What a minute's row gets added.
#[derive(Default)]
struct Minute {
    sums: [u64; 5],
    times: [u64; TIMES],
}

impl Store {
    /// Opens the database of a folder for writing, and makes both where there are none, for their owner alone.
    pub(crate) fn open(folder: &Path) -> Result<Store, HistoryError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| HistoryError::Io(path, error)
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(folder))?;
        let path = path(folder);
        let mut options = fs::OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        options.open(&path).map_err(failed(&path))?;
        let db = Connection::open(&path)?;
        db.busy_timeout(BUSY)?;
        // What was committed survives the process, and all but the last moments a loss of power.
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8000; PRAGMA temp_store = MEMORY;",
        )?;
        check_version(&db)?;
        db.execute_batch(&tables())?;
        db.pragma_update(None, "user_version", VERSION)?;
        let places = (1..=16 + TIMES).map(|n| format!("?{n}")).collect::<Vec<_>>().join(", ");
        let names = times(str::to_owned);
        let insert = format!(
            "INSERT INTO connection (ended, local, local_port, remote, remote_port, called, age, sent, received, again, \
             again_bytes, timeouts, round_trip, error, cause, rate, {names}) VALUES ({places})"
        );
        let places = (1..=6 + TIMES).map(|n| format!("?{n}")).collect::<Vec<_>>().join(", ");
        let mut count = format!(
            "INSERT INTO minute (minute, {SUMS}, {names}) VALUES ({places}) ON CONFLICT (minute) DO UPDATE SET "
        );
        let added = |name: &str| format!("{name} = {name} + excluded.{name}");
        let sums = SUMS.split(", ").map(added).collect::<Vec<_>>().join(", ");
        let _ = write!(count, "{sums}, {}", times(added));
        Ok(Store { db, insert, count })
    }

    /// Adds records in one transaction.
    pub(crate) fn add(&mut self, records: &[Record]) -> Result<(), HistoryError> {
        let transaction = self.db.transaction()?;
        let mut minutes = BTreeMap::<u64, Minute>::new();
        {
            let mut insert = transaction.prepare_cached(&self.insert)?;
            for record in records {
                add(&mut insert, record)?;
                minutes.entry(record.ended_ms / MINUTE_MS).or_default().add(record);
            }
            let mut count = transaction.prepare_cached(&self.count)?;
            for (minute, of) in &minutes {
                let numbers = std::iter::once(minute).chain(&of.sums).chain(&of.times);
                count.execute(rusqlite::params_from_iter(numbers.map(|number| integer(*number))))?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Removes some of what is over the limits at a time; whether more is to be removed.
    pub(crate) fn remove(&mut self, limits: &Limits, now_ms: u64) -> Result<bool, HistoryError> {
        let oldest_ms = now_ms.saturating_sub(u64::from(limits.days) * 24 * 60 * MINUTE_MS);
        let last: i64 =
            self.db.query_one("SELECT ifnull(max(id), 0) FROM connection", [], |row| row.get(0))?;
        let first = last.saturating_sub(integer(limits.connections));
        let transaction = self.db.transaction()?;
        let many = transaction.execute(
            "DELETE FROM connection WHERE id IN (SELECT id FROM connection WHERE id <= ?1 ORDER BY id LIMIT ?2)",
            params![first, integer(REMOVED_AT_ONCE)],
        )?;
        let old = transaction.execute(
            "DELETE FROM connection WHERE id IN (SELECT id FROM connection WHERE ended < ?1 ORDER BY ended LIMIT ?2)",
            params![integer(oldest_ms), integer(REMOVED_AT_ONCE)],
        )?;
        transaction.execute("DELETE FROM minute WHERE minute < ?1", [integer(oldest_ms / MINUTE_MS)])?;
        transaction.commit()?;
        Ok((many.max(old)) as u64 == REMOVED_AT_ONCE)
    }
}

fn add(insert: &mut rusqlite::CachedStatement<'_>, record: &Record) -> rusqlite::Result<()> {
    let numbers: Vec<i64> = record.send_ns.iter().chain(&record.receive_ns).map(|ns| integer(*ns)).collect();
    let (local, remote) = (address(record.local.ip()), address(record.remote.ip()));
    let mut values: Vec<&dyn ToSql> = Vec::with_capacity(16 + TIMES);
    let (ended, age) = (integer(record.ended_ms), integer(record.age_ns));
    let (sent, received) = (integer(record.sent_bytes), integer(record.received_bytes));
    let (local_port, remote_port) = (record.local.port(), record.remote.port());
    let (again_bytes, round_trip) = (integer(record.retransmitted_bytes), record.round_trip_ns.map(integer));
    let (cause, rate) = (record.limit().number(), integer(record.bits_per_second()));
    values.extend([
        &ended as &dyn ToSql,
        &local,
        &local_port,
        &remote,
        &remote_port,
        &record.called,
        &age,
        &sent,
    ]);
    values.extend([&received as &dyn ToSql, &record.retransmitted_segments, &again_bytes, &record.timeouts]);
    values.extend([&round_trip as &dyn ToSql, &record.error, &cause, &rate]);
    values.extend(numbers.iter().map(|number| number as &dyn ToSql));
    insert.execute(&values[..]).map(drop)
}

impl Minute {
    fn add(&mut self, record: &Record) {
        let failed = u64::from(record.error.is_some());
        let again = u64::from(record.retransmitted_segments);
        let more = [1, failed, record.sent_bytes, record.received_bytes, again];
        self.sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        let more = record.send_ns.iter().chain(&record.receive_ns);
        self.times.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
    }
}

/// Opens the database of a folder for questions.
pub(crate) fn open_to_read(folder: &Path) -> Result<Connection, HistoryError> {
    let path = path(folder);
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => return Err(HistoryError::Missing(path)),
        Err(why) => return Err(HistoryError::Io(path, why)),
    }
    let db = Connection::open_with_flags(
        &path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    db.busy_timeout(BUSY)?;
    check_version(&db)?;
    Ok(db)
}

/// Tables of another version are not touched.
fn check_version(db: &Connection) -> Result<(), HistoryError> {
    match db.pragma_query_value(None, "user_version", |row| row.get(0))? {
        0 | VERSION => Ok(()),
        other => Err(HistoryError::Version(other)),
    }
}
