//! The queue's tables, and what is done to them. All of it waits for the disk.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::reason::Reason;
use crate::body::Body;
use crate::codec::{MailFrom, Mailbox, Notify, Recipient, Returns};

/// Version of the tables.
const VERSION: i64 = 2;
/// How long a destination that failed is given to one connection.
const PROBE_S: u64 = 600;
/// Dialogues that are kept of a destination.
const DIALOGUES: i64 = 4;
/// Dialogues that are kept of all destinations.
const ALL_DIALOGUES: i64 = 1000;
/// Failed recipients that are kept.
const FAILURES: i64 = 1000;
/// Octets of a dialogue that are kept.
const DIALOGUE_BYTES: usize = 8 << 10;
/// Age at which a file that belongs to no message is removed.
const STRAY_AGE: std::time::Duration = std::time::Duration::from_secs(24 * 3600);
/// Temporary files of SQLite stay in memory; what is deleted is not overwritten.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS message (
  id INTEGER PRIMARY KEY AUTOINCREMENT, sender TEXT, arrived INTEGER NOT NULL, expires INTEGER NOT NULL,
  size INTEGER NOT NULL, flags INTEGER NOT NULL, envelope_id TEXT, origin TEXT NOT NULL, head BLOB NOT NULL,
  body BLOB, file TEXT);
CREATE TABLE IF NOT EXISTS recipient (
  id INTEGER PRIMARY KEY, message INTEGER NOT NULL, address TEXT NOT NULL, domain TEXT NOT NULL,
  state INTEGER NOT NULL, due INTEGER NOT NULL, attempts INTEGER NOT NULL, notify INTEGER, original TEXT,
  reason TEXT, warned INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS recipient_due ON recipient (domain, state, due);
CREATE INDEX IF NOT EXISTS recipient_message ON recipient (message);
CREATE TABLE IF NOT EXISTS destination (
  domain TEXT PRIMARY KEY, due INTEGER, failures INTEGER NOT NULL, not_before INTEGER NOT NULL, reason TEXT)
  WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS destination_due ON destination (due);
CREATE TABLE IF NOT EXISTS dialogue (
  id INTEGER PRIMARY KEY AUTOINCREMENT, domain TEXT NOT NULL, at INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS dialogue_domain ON dialogue (domain);
CREATE TABLE IF NOT EXISTS failure (
  id INTEGER PRIMARY KEY AUTOINCREMENT, message INTEGER NOT NULL, address TEXT NOT NULL, domain TEXT NOT NULL,
  reason TEXT NOT NULL);
";

const EIGHT_BIT: i64 = 1;
const UTF8: i64 = 2;
const FULL: i64 = 4;
const HEADERS: i64 = 8;
const SIGN: i64 = 16;

pub(super) const WAITING: i64 = 0;
pub(super) const CLAIMED: i64 = 1;
pub(super) const HELD: i64 = 2;

/// Why the queue cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The database.
    Database(rusqlite::Error),
    /// A file of the queue's folder.
    Io(PathBuf, std::io::Error),
    /// The queue is another version's.
    Version(i64),
    /// Another host sends from this queue.
    Locked,
    /// The queue's thread has ended.
    Closed,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Database(error) => write!(f, "the queue's database: {error}"),
            StoreError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            StoreError::Version(version) => write!(f, "the queue was written by a newer version ({version})"),
            StoreError::Locked => f.write_str("another host sends from this queue"),
            StoreError::Closed => f.write_str("the queue is closed"),
        }
    }
}
impl std::error::Error for StoreError {}
impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        StoreError::Database(error)
    }
}

/// What an operation gives.
pub type Result_<T> = Result<T, StoreError>;

/// A message for the queue. Times are seconds since 1970, UTC.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// The sender with its parameters.
    pub mail: MailFrom,
    /// The recipients, each with its destination.
    pub recipients: Vec<NewRecipient>,
    /// The message. A file is one of the queue's own `text` folder, and is kept from now on.
    pub body: Body,
    /// From where it came, for people.
    pub origin: String,
    /// When it came.
    pub arrived_s: u64,
    /// Until when it is tried.
    pub expires_s: u64,
    /// Whether it is to be signed when it is sent.
    pub is_signed: bool,
}

/// A recipient for the queue.
#[derive(Clone, Debug)]
pub struct NewRecipient {
    /// The mailbox with its parameters.
    pub recipient: Recipient,
    /// Whose servers get it: a domain.
    pub domain: String,
}

/// Recipients of one destination, which were given to a connection.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The destination.
    pub domain: String,
    /// The recipients; those of one message stand together.
    pub items: Vec<Item>,
}

/// A recipient that is to be tried now.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its number.
    pub id: i64,
    /// The message's number.
    pub message: i64,
    /// The mailbox with its parameters.
    pub recipient: Recipient,
    /// Attempts that failed.
    pub attempts: u32,
    /// Whether the sender was told that it takes long.
    pub is_warned: bool,
}

/// A message with its envelope, without recipients.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub mail: MailFrom,
    pub body: Body,
    pub arrived_s: u64,
    pub expires_s: u64,
    pub is_signed: bool,
}

/// What came of a recipient.
#[derive(Clone, Debug)]
pub enum Fate {
    /// It leaves the queue.
    Done,
    /// It leaves the queue, and does not have the message for this reason.
    Failed(Reason),
    /// It waits until then, for this reason.
    Later {
        /// Seconds since 1970.
        due_s: u64,
        /// Why.
        reason: Reason,
        /// Whether the sender was told that it takes long.
        is_warned: bool,
    },
    /// It waits as before: the attempt was not one.
    Back,
}

/// What came of a destination.
#[derive(Clone, Debug)]
pub enum DestinationFate {
    /// It can be reached.
    Reached,
    /// It cannot, and is tried again then.
    Failed {
        /// Seconds since 1970.
        due_s: u64,
        /// Failures in a row, this one included.
        failures: u32,
        /// Why.
        reason: Reason,
    },
}

/// What came of a batch, or of a part of it. All of it is noted, or nothing.
#[derive(Clone, Debug, Default)]
pub struct Settlement {
    /// Recipients by number.
    pub fates: Vec<(i64, Fate)>,
    /// The destination.
    pub destination: Option<(String, DestinationFate)>,
    /// A dialogue that went wrong, with its destination and time.
    pub dialogue: Option<(String, u64, String)>,
    /// Reports to senders.
    pub reports: Vec<NewMessage>,
}

/// The open tables.
pub(crate) struct Store {
    pub(super) db: Connection,
    pub(super) folder: Option<PathBuf>,
    /// Files to remove once what removes them is committed.
    pub(super) garbage: Vec<PathBuf>,
    /// Whether a file was added since the last commit.
    pub(super) has_new_files: bool,
}

impl Store {
    /// Opens the queue in `folder`, and makes it where there is none; in memory without one.
    pub fn open(folder: Option<&Path>) -> Result_<Store> {
        let db = match folder {
            None => Connection::open_in_memory()?,
            Some(folder) => {
                make_folder(folder)?;
                make_folder(&folder.join("text"))?;
                let path = folder.join("queue.sqlite");
                // It has messages. SQLite gives its other files the same mode.
                let made = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
                made.map_err(|error| StoreError::Io(path.clone(), error))?;
                Connection::open(path)?
            }
        };
        db.busy_timeout(std::time::Duration::from_secs(10))?;
        db.set_prepared_statement_cache_capacity(64);
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;",
        )?;
        let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version > VERSION {
            return Err(StoreError::Version(version));
        }
        if version < VERSION {
            db.execute_batch(&format!("BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;"))?;
        }
        let folder = folder.map(Path::to_owned);
        Ok(Store { db, folder, garbage: Vec::new(), has_new_files: false })
    }

    /// Nothing is under way; old files of messages that were never acknowledged are removed.
    pub fn recover(&mut self) -> Result_<()> {
        self.db.execute_batch(&format!(
            "UPDATE recipient SET state = {WAITING} WHERE state = {CLAIMED};
             INSERT INTO destination (domain, due, failures, not_before)
               SELECT domain, MIN(due), 0, 0 FROM recipient WHERE state = {WAITING} GROUP BY domain
               ON CONFLICT (domain) DO UPDATE SET due = MAX(excluded.due, destination.not_before);"
        ))?;
        let Some(folder) = self.folder.as_ref().map(|folder| folder.join("text")) else { return Ok(()) };
        let mut names = self.db.prepare("SELECT file FROM message WHERE file IS NOT NULL")?;
        let known =
            names.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<BTreeSet<_>, _>>()?;
        for entry in fs::read_dir(&folder).map_err(|error| StoreError::Io(folder.clone(), error))?.flatten() {
            let is_known = entry.file_name().to_str().is_some_and(|name| known.contains(name));
            // A young one may be a message that comes to another process.
            let age = entry
                .metadata()
                .and_then(|about| about.modified())
                .map(|at| at.elapsed().unwrap_or_default());
            if !is_known && age.is_ok_and(|age| age >= STRAY_AGE) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    /// Adds a message; gives its number.
    pub fn add(&mut self, message: &NewMessage) -> Result_<i64> {
        let (mail, body) = (&message.mail, &message.body);
        let mut flags = i64::from(mail.is_eight_bit) * EIGHT_BIT + i64::from(mail.is_utf8) * UTF8;
        flags += i64::from(message.is_signed) * SIGN;
        flags += match mail.returns {
            Some(Returns::Full) => FULL,
            Some(Returns::Headers) => HEADERS,
            None => 0,
        };
        let file = body.file().and_then(|file| file.path().file_name()?.to_str().map(str::to_owned));
        self.has_new_files |= file.is_some();
        self.db
            .prepare_cached(
                "INSERT INTO message (sender, arrived, expires, size, flags, envelope_id, origin, head, body, file)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                mail.sender.as_ref().map(ToString::to_string),
                seconds(message.arrived_s),
                seconds(message.expires_s),
                seconds(body.size_bytes()),
                flags,
                mail.envelope_id,
                message.origin,
                body.head().as_ref(),
                body.memory().map(Bytes::as_ref),
                file,
            ])?;
        let id = self.db.last_insert_rowid();
        let mut insert = self.db.prepare_cached(
            "INSERT INTO recipient (message, address, domain, state, due, attempts, notify, original, warned)
             VALUES (?, ?, ?, ?, ?, 0, ?, ?, 0)",
        )?;
        let mut wants = self.db.prepare_cached(
            "INSERT INTO destination (domain, due, failures, not_before) VALUES (?1, ?2, 0, 0)
             ON CONFLICT (domain) DO UPDATE SET due = MAX(MIN(IFNULL(due, ?2), ?2), not_before)",
        )?;
        let mut last = None;
        for NewRecipient { recipient, domain } in &message.recipients {
            let (due, notify) = (seconds(message.arrived_s), recipient.notify.map(notify_bits));
            let address = recipient.mailbox.to_string();
            insert.execute(params![id, address, domain, WAITING, due, notify, recipient.original])?;
            if last != Some(domain) {
                wants.execute(params![domain, due])?;
                last = Some(domain);
            }
        }
        if let Some(file) = body.file() {
            // A crash before the commit leaves a file that `recover` removes.
            file.keep();
        }
        Ok(id)
    }

    /// Gives out what is due of up to `destinations` destinations, except `busy` ones, up to `items` recipients of each.
    pub fn claim(
        &mut self,
        now_s: u64,
        destinations: usize,
        items: usize,
        busy: &BTreeSet<String>,
    ) -> Result_<Vec<Batch>> {
        let mut domains = Vec::new();
        {
            let mut due =
                self.db.prepare_cached("SELECT domain FROM destination WHERE due <= ? ORDER BY due")?;
            let mut rows = due.query([seconds(now_s)])?;
            while domains.len() < destinations
                && let Some(row) = rows.next()?
            {
                let domain: String = row.get(0)?;
                if !busy.contains(&domain) {
                    domains.push(domain);
                }
            }
        }
        let mut batches = Vec::new();
        for domain in domains {
            let batch = self.claim_of(&domain, now_s, items)?;
            if !batch.items.is_empty() {
                batches.push(batch);
            }
        }
        Ok(batches)
    }

    /// Gives out what is due of one destination.
    pub fn claim_of(&mut self, domain: &str, now_s: u64, items: usize) -> Result_<Batch> {
        let mut found = self
            .db
            .prepare_cached(
                "SELECT id, message, address, notify, original, attempts, warned FROM recipient
                 WHERE domain = ? AND state = ? AND due <= ? ORDER BY due, message LIMIT ?",
            )?
            .query_map(params![domain, WAITING, seconds(now_s), limit(items)], item)?
            .collect::<Result<Vec<_>, _>>()?;
        found.sort_by_key(|item| item.message);
        let mut claim = self.db.prepare_cached("UPDATE recipient SET state = ? WHERE id = ?")?;
        for item in &found {
            claim.execute(params![CLAIMED, item.id])?;
        }
        self.schedule(domain)?;
        // One that failed is tried by one connection; the others wait for what comes of it.
        if !found.is_empty() {
            self.db
                .prepare_cached(
                    "UPDATE destination SET not_before = ?2, due = MAX(due, ?2)
                     WHERE domain = ?1 AND failures > 0",
                )?
                .execute(params![domain, seconds(now_s + PROBE_S)])?;
        }
        Ok(Batch { domain: domain.to_owned(), items: found })
    }

    /// Takes back what was given out of a destination.
    pub fn release(&mut self, domain: &str) -> Result_<()> {
        self.db
            .prepare_cached("UPDATE recipient SET state = ? WHERE domain = ? AND state = ?")?
            .execute(params![WAITING, domain, CLAIMED])?;
        self.schedule(domain)
    }

    /// When something is due next.
    pub fn next_due_s(&self) -> Result_<Option<u64>> {
        let due: Option<i64> =
            self.db.prepare_cached("SELECT MIN(due) FROM destination")?.query_row([], |row| row.get(0))?;
        Ok(due.map(|due| u64::try_from(due).unwrap_or(0)))
    }

    /// The destination is due when the first of its recipients is, and not while it is left alone after a failure.
    fn schedule(&self, domain: &str) -> Result_<()> {
        self.db
            .prepare_cached(
                "UPDATE destination SET due = (SELECT MAX(MIN(due), destination.not_before) FROM recipient
                   WHERE domain = ?1 AND state = ?2) WHERE domain = ?1",
            )?
            .execute(params![domain, WAITING])?;
        // One that nobody writes to any more is forgotten.
        self.db
            .prepare_cached(
                "DELETE FROM destination WHERE domain = ?1 AND due IS NULL
                 AND NOT EXISTS (SELECT 1 FROM recipient WHERE domain = ?1)",
            )?
            .execute([domain])?;
        Ok(())
    }

    /// A message.
    pub fn load(&self, id: i64) -> Result_<Option<Stored>> {
        let folder = self.folder.clone();
        let mut select = self.db.prepare_cached(
            "SELECT sender, arrived, expires, size, flags, envelope_id, head, body, file FROM message WHERE id = ?",
        )?;
        let stored = select.query_row([id], |row| stored(row, folder.as_deref()));
        Ok(stored.optional()?)
    }

    /// Notes what came of recipients.
    pub fn settle(&mut self, settlement: &Settlement) -> Result_<()> {
        let mut domains = BTreeSet::new();
        for (id, fate) in &settlement.fates {
            let found: Option<(i64, String)> = self
                .db
                .prepare_cached("SELECT message, domain FROM recipient WHERE id = ?")?
                .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            // Dropped by hand meanwhile.
            let Some((message, domain)) = found else { continue };
            match fate {
                Fate::Done => self.remove(*id, message)?,
                Fate::Failed(reason) => {
                    self.keep_failure(*id, reason)?;
                    self.remove(*id, message)?;
                }
                Fate::Back => {
                    self.db
                        .prepare_cached("UPDATE recipient SET state = ? WHERE id = ? AND state = ?")?
                        .execute(params![WAITING, id, CLAIMED])?;
                }
                Fate::Later { due_s, reason, is_warned } => {
                    self.db
                        .prepare_cached(
                            "UPDATE recipient SET state = 0, due = ?, attempts = attempts + 1,
                             reason = ?, warned = ? WHERE id = ?",
                        )?
                        .execute(params![seconds(*due_s), json(reason), is_warned, id])?;
                }
            }
            domains.insert(domain);
        }
        match &settlement.destination {
            None => {}
            Some((domain, DestinationFate::Reached)) => {
                self.db
                    .prepare_cached(
                        "UPDATE destination SET failures = 0, not_before = 0, reason = NULL
                         WHERE domain = ? AND failures > 0",
                    )?
                    .execute([domain])?;
                domains.insert(domain.clone());
            }
            Some((domain, DestinationFate::Failed { due_s, failures, reason })) => {
                self.db
                    .prepare_cached(
                        "UPDATE destination SET failures = ?, not_before = ?, reason = ? WHERE domain = ?",
                    )?
                    .execute(params![failures, seconds(*due_s), json(reason), domain])?;
                domains.insert(domain.clone());
            }
        }
        for domain in &domains {
            self.schedule(domain)?;
        }
        if let Some((domain, at_s, text)) = &settlement.dialogue {
            self.keep_dialogue(domain, *at_s, text)?;
        }
        for report in &settlement.reports {
            self.add(report)?;
        }
        Ok(())
    }

    /// How often a destination has failed in a row.
    pub fn failures(&self, domain: &str) -> Result_<u32> {
        let failures = self
            .db
            .prepare_cached("SELECT failures FROM destination WHERE domain = ?")?
            .query_row([domain], |row| row.get(0))
            .optional()?;
        Ok(failures.unwrap_or(0))
    }

    /// Claims up to `items` recipients of a destination that have expired, whether they are due or not.
    pub fn claim_expired(&mut self, domain: &str, now_s: u64, items: usize) -> Result_<Vec<Item>> {
        let found = self
            .db
            .prepare_cached(
                "SELECT r.id, r.message, r.address, r.notify, r.original, r.attempts, r.warned
                 FROM recipient r JOIN message m ON m.id = r.message
                 WHERE r.domain = ? AND r.state = ? AND m.expires <= ? LIMIT ?",
            )?
            .query_map(params![domain, WAITING, seconds(now_s), limit(items)], item)?
            .collect::<Result<Vec<_>, _>>()?;
        for item in &found {
            self.db
                .prepare_cached("UPDATE recipient SET state = ? WHERE id = ?")?
                .execute(params![CLAIMED, item.id])?;
        }
        Ok(found)
    }

    fn keep_dialogue(&self, domain: &str, at_s: u64, text: &str) -> Result_<()> {
        let mut end = text.len().min(DIALOGUE_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.db
            .prepare_cached("INSERT INTO dialogue (domain, at, text) VALUES (?, ?, ?)")?
            .execute(params![domain, seconds(at_s), &text[..end]])?;
        self.db
            .prepare_cached(
                "DELETE FROM dialogue WHERE domain = ?1 AND id NOT IN
                   (SELECT id FROM dialogue WHERE domain = ?1 ORDER BY id DESC LIMIT ?2)",
            )?
            .execute(params![domain, DIALOGUES])?;
        self.db
            .prepare_cached("DELETE FROM dialogue WHERE id <= (SELECT MAX(id) FROM dialogue) - ?")?
            .execute([ALL_DIALOGUES])?;
        Ok(())
    }

    fn keep_failure(&self, recipient: i64, reason: &Reason) -> Result_<()> {
        self.db
            .prepare_cached(
                "INSERT INTO failure (message, address, domain, reason)
                 SELECT message, address, domain, ?2 FROM recipient WHERE id = ?1",
            )?
            .execute(params![recipient, json(reason)])?;
        self.db
            .prepare_cached("DELETE FROM failure WHERE id <= (SELECT MAX(id) FROM failure) - ?")?
            .execute([FAILURES])?;
        Ok(())
    }

    /// Removes a recipient, and the message with its last one.
    pub(super) fn remove(&mut self, id: i64, message: i64) -> Result_<()> {
        self.db.prepare_cached("DELETE FROM recipient WHERE id = ?")?.execute([id])?;
        let is_needed: bool = self
            .db
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM recipient WHERE message = ?)")?
            .query_row([message], |row| row.get(0))?;
        if is_needed {
            return Ok(());
        }
        let file: Option<Option<String>> = self
            .db
            .prepare_cached("DELETE FROM message WHERE id = ? RETURNING file")?
            .query_row([message], |row| row.get(0))
            .optional()?;
        if let (Some(Some(file)), Some(folder)) = (file, &self.folder) {
            self.garbage.push(folder.join("text").join(file));
        }
        Ok(())
    }
}

fn make_folder(path: &Path) -> Result_<()> {
    use std::os::unix::fs::DirBuilderExt;
    match fs::DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Ok(()) => Ok(()),
        Err(error) => Err(StoreError::Io(path.to_owned(), error)),
    }
}

fn item(row: &Row<'_>) -> rusqlite::Result<Item> {
    let notify: Option<i64> = row.get(3)?;
    let mailbox = mailbox(row, 2)?;
    let mut recipient = Recipient::new(mailbox);
    recipient.notify = notify.map(notify_of);
    recipient.original = row.get(4)?;
    let (id, message, attempts, is_warned) = (row.get(0)?, row.get(1)?, row.get(5)?, row.get(6)?);
    Ok(Item { id, message, recipient, attempts, is_warned })
}

/// A mailbox that was written by this program.
fn mailbox(row: &Row<'_>, column: usize) -> rusqlite::Result<Mailbox> {
    let text: String = row.get(column)?;
    if text.eq_ignore_ascii_case("postmaster") {
        return Ok(Mailbox::postmaster());
    }
    text.parse().map_err(|_| rusqlite::Error::InvalidColumnType(column, text, rusqlite::types::Type::Text))
}

fn stored(row: &Row<'_>, folder: Option<&Path>) -> rusqlite::Result<Stored> {
    let mut mail = MailFrom::default();
    if !matches!(row.get::<_, Value>(0)?, Value::Null) {
        mail.sender = Some(mailbox(row, 0)?);
    }
    let flags: i64 = row.get(4)?;
    mail.is_eight_bit = flags & EIGHT_BIT != 0;
    mail.is_utf8 = flags & UTF8 != 0;
    mail.returns = match (flags & FULL != 0, flags & HEADERS != 0) {
        (true, _) => Some(Returns::Full),
        (_, true) => Some(Returns::Headers),
        _ => None,
    };
    mail.envelope_id = row.get(5)?;
    let head: Vec<u8> = row.get(6)?;
    let size: i64 = row.get(3)?;
    let body = match (row.get::<_, Option<Vec<u8>>>(7)?, row.get::<_, Option<String>>(8)?, folder) {
        (Some(text), ..) => Body::new(text),
        (None, Some(file), Some(folder)) => {
            let bytes = u64::try_from(size).unwrap_or(0).saturating_sub(head.len() as u64);
            Body::in_file(folder.join("text").join(file), bytes)
        }
        _ => Body::new(Bytes::new()),
    };
    let time = |column| row.get::<_, i64>(column).map(|at| u64::try_from(at).unwrap_or(0));
    Ok(Stored {
        mail,
        body: body.with_head(head),
        arrived_s: time(1)?,
        expires_s: time(2)?,
        is_signed: flags & SIGN != 0,
    })
}

/// Numbers of SQLite are signed.
pub(super) fn seconds(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A limit of rows.
pub(super) fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn json(reason: &Reason) -> String {
    serde_json::to_string(reason).unwrap_or_default()
}

fn notify_bits(notify: Notify) -> i64 {
    i64::from(notify.success) + 2 * i64::from(notify.failure) + 4 * i64::from(notify.delay)
}

fn notify_of(bits: i64) -> Notify {
    Notify { success: bits & 1 != 0, failure: bits & 2 != 0, delay: bits & 4 != 0 }
}
