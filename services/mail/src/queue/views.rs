//! The queue as people look at it, and what they do to it by hand. It works beside a running host.

use std::path::{Path, PathBuf};

use rusqlite::{Row, params};
use serde::Serialize;

use super::reason::Reason;
use super::store::{CLAIMED, HELD, NewMessage, Result_, Store, WAITING, limit as rows_limit, seconds};
use super::worker::is_locked;

/// A queue that is looked at.
pub struct View {
    store: Store,
    folder: PathBuf,
}

/// Which recipients are meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selection {
    /// All.
    All,
    /// Those of a message.
    Message(i64),
    /// Those of a destination.
    Domain(String),
    /// Those of a sender.
    Sender(String),
}

/// The queue in figures.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct QueueSummary {
    /// Messages.
    pub messages: u64,
    /// Recipients that wait.
    pub recipients: u64,
    /// Those of them that are held.
    pub held: u64,
    /// Destinations.
    pub destinations: u64,
    /// Octets of messages.
    pub bytes: u64,
    /// When the oldest message came, in seconds since 1970.
    pub oldest_s: Option<u64>,
    /// Whether a host sends from this queue now.
    pub is_served: bool,
}

/// A destination with recipients that wait.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct DestinationView {
    /// The domain.
    pub domain: String,
    /// Recipients that wait.
    pub recipients: u64,
    /// Those of them that are under way.
    pub under_way: u64,
    /// When it is tried next.
    pub due_s: Option<u64>,
    /// Attempts in a row that failed.
    pub failures: u32,
    /// Why the last one failed.
    pub reason: Option<Reason>,
}

/// A message with the recipients that wait.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct MessageView {
    /// Its name: `m` and a number.
    pub name: String,
    /// The sender; empty for a report.
    pub sender: String,
    /// Size in octets.
    pub size_bytes: u64,
    /// From where it came.
    pub origin: String,
    /// When it came.
    pub arrived_s: u64,
    /// Until when it is tried.
    pub expires_s: u64,
    /// The recipients that wait.
    pub recipients: Vec<RecipientView>,
}

/// A recipient that does not get its message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct FailureView {
    /// The mailbox.
    pub address: String,
    /// The destination.
    pub domain: String,
    /// Why it failed, in a sentence.
    pub why: String,
    /// What to do about it.
    pub remedy: String,
    /// The reason as data.
    pub reason: Reason,
}

/// A recipient that waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct RecipientView {
    /// The mailbox.
    pub address: String,
    /// The destination.
    pub domain: String,
    /// `waiting`, `under way` or `held`.
    pub state: &'static str,
    /// Attempts that failed.
    pub attempts: u32,
    /// When it is tried next.
    pub due_s: u64,
    /// Why it waits, in a sentence.
    pub why: String,
    /// What to do about it.
    pub remedy: String,
    /// The reason as data, where an attempt has failed.
    pub reason: Option<Reason>,
}

impl View {
    /// Opens the queue in `folder`; it waits for the disk.
    pub fn open(folder: &Path) -> Result_<View> {
        Ok(View { store: Store::open(Some(folder))?, folder: folder.to_owned() })
    }
    /// Adds a message; its name, once it is durable. A running host finds it within a second.
    pub fn add(&mut self, message: &NewMessage) -> Result_<String> {
        self.store.db.execute_batch("BEGIN IMMEDIATE")?;
        let id = self.store.add(message);
        self.store.db.execute_batch(if id.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        Ok(format!("m{}", id?))
    }
    /// The queue in figures.
    pub fn summary(&self) -> Result_<QueueSummary> {
        let (messages, bytes, oldest) = self.store.db.query_row(
            "SELECT COUNT(*), IFNULL(SUM(size), 0), MIN(arrived) FROM message",
            [],
            |row| Ok((number(row, 0)?, number(row, 1)?, row.get::<_, Option<i64>>(2)?)),
        )?;
        let count = |sql: &str| self.store.db.query_row(sql, [], |row| number(row, 0));
        Ok(QueueSummary {
            messages,
            recipients: count("SELECT COUNT(*) FROM recipient")?,
            held: count(&format!("SELECT COUNT(*) FROM recipient WHERE state = {HELD}"))?,
            destinations: count("SELECT COUNT(DISTINCT domain) FROM recipient")?,
            bytes,
            oldest_s: oldest.map(|at| u64::try_from(at).unwrap_or(0)),
            is_served: is_locked(&self.folder),
        })
    }
    /// The destinations with the most recipients.
    pub fn destinations(&self, limit: usize) -> Result_<Vec<DestinationView>> {
        let mut select = self.store.db.prepare(&format!(
            "SELECT r.domain, COUNT(*), SUM(r.state = {CLAIMED}), d.due, IFNULL(d.failures, 0), d.reason
             FROM recipient r LEFT JOIN destination d ON d.domain = r.domain
             GROUP BY r.domain ORDER BY COUNT(*) DESC, r.domain LIMIT ?"
        ))?;
        let rows = select.query_map([rows_limit(limit)], |row| {
            Ok(DestinationView {
                domain: row.get(0)?,
                recipients: number(row, 1)?,
                under_way: number(row, 2)?,
                due_s: row.get::<_, Option<i64>>(3)?.map(|at| u64::try_from(at).unwrap_or(0)),
                failures: row.get(4)?,
                reason: reason(row, 5)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
    /// Messages with recipients of `selection`, the oldest first, up to `limit`. `now_s` is the time in seconds since
    /// 1970.
    pub fn messages(&self, selection: &Selection, limit: usize, now_s: u64) -> Result_<Vec<MessageView>> {
        let (condition, value) = condition(selection);
        let mut select = self.store.db.prepare(&format!(
            "SELECT id, sender, size, origin, arrived, expires FROM message
             WHERE id IN (SELECT message FROM recipient JOIN message ON message.id = recipient.message
                          WHERE {condition}) ORDER BY id LIMIT ?2"
        ))?;
        let rows = select.query_map(params![value, rows_limit(limit)], |row| {
            let id: i64 = row.get(0)?;
            let view = MessageView {
                name: format!("m{id}"),
                sender: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
                size_bytes: number(row, 2)?,
                origin: row.get(3)?,
                arrived_s: number(row, 4)?,
                expires_s: number(row, 5)?,
                recipients: Vec::new(),
            };
            Ok((id, view))
        })?;
        let is_served = is_locked(&self.folder);
        let mut views = Vec::new();
        for row in rows {
            let (id, mut view) = row?;
            view.recipients = self.recipients(id, is_served, now_s)?;
            views.push(view);
        }
        Ok(views)
    }
    fn recipients(&self, message: i64, is_served: bool, now_s: u64) -> Result_<Vec<RecipientView>> {
        let mut select = self.store.db.prepare_cached(
            "SELECT r.address, r.domain, r.state, r.attempts, r.due, r.reason, d.due, d.reason, d.failures
             FROM recipient r LEFT JOIN destination d ON d.domain = r.domain WHERE r.message = ? ORDER BY r.id",
        )?;
        let rows = select.query_map([message], |row| {
            let (domain, state, own): (String, i64, _) = (row.get(1)?, row.get(2)?, reason(row, 5)?);
            let failures: Option<u32> = row.get(8)?;
            let theirs = reason(row, 7)?.filter(|_| failures.is_some_and(|failures| failures > 0));
            let due_s = match theirs {
                Some(_) => {
                    number(row, 4)?.max(row.get::<_, Option<i64>>(6)?.unwrap_or(0).try_into().unwrap_or(0))
                }
                None => number(row, 4)?,
            };
            let reason = own.or(theirs);
            let (why, remedy) = match (state, &reason) {
                (HELD, _) => ("it is held".to_owned(), "`inhost mail retry` lets it go".to_owned()),
                (CLAIMED, _) => ("it is being sent now".to_owned(), String::new()),
                (_, None) if !is_served => (
                    "no host sends from this queue".to_owned(),
                    "start `inhost serve` with [mail] in host.toml, or see `inhost mail send --now`"
                        .to_owned(),
                ),
                (_, None) if due_s > now_s => ("its time has not come".to_owned(), String::new()),
                (_, None) => (
                    format!("others to {domain} are before it; connections to a destination are limited"),
                    "see mail.connections_per_destination".to_owned(),
                ),
                (_, Some(reason)) => (reason.to_string(), reason.remedy()),
            };
            Ok(RecipientView {
                address: row.get(0)?,
                domain,
                state: match state {
                    HELD => "held",
                    CLAIMED => "under way",
                    _ => "waiting",
                },
                attempts: row.get(3)?,
                due_s,
                why,
                remedy,
                reason,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
    /// The last dialogues with `domain` that went wrong, the newest first, each with its time.
    pub fn dialogues(&self, domain: &str) -> Result_<Vec<(u64, String)>> {
        let mut select = self
            .store
            .db
            .prepare_cached("SELECT at, text FROM dialogue WHERE domain = ? ORDER BY id DESC")?;
        let rows = select.query_map([domain], |row| Ok((number(row, 0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
    /// The recipients of a message that failed for good, as far as they are still known.
    pub fn failures(&self, message: i64) -> Result_<Vec<FailureView>> {
        let mut select = self
            .store
            .db
            .prepare_cached("SELECT address, domain, reason FROM failure WHERE message = ? ORDER BY id")?;
        let rows = select.query_map([message], |row| {
            let Some(reason) = reason(row, 2)? else { return Ok(None) };
            let (why, remedy) = (reason.to_string(), reason.remedy());
            Ok(Some(FailureView { address: row.get(0)?, domain: row.get(1)?, why, remedy, reason }))
        })?;
        Ok(rows.filter_map(Result::transpose).collect::<Result<_, _>>()?)
    }
    /// Has recipients tried at once, held ones too; how many.
    pub fn retry(&mut self, selection: &Selection, now_s: u64) -> Result_<usize> {
        let count = self.change(selection, &format!("state = {WAITING}, due = ?2"), seconds(now_s))?;
        self.store.db.execute_batch(
            "INSERT INTO destination (domain, due, failures, not_before)
               SELECT domain, MIN(due), 0, 0 FROM recipient WHERE state = 0 GROUP BY domain
               ON CONFLICT (domain) DO UPDATE SET due = excluded.due, not_before = 0;",
        )?;
        Ok(count)
    }
    /// Holds recipients; how many.
    pub fn hold(&mut self, selection: &Selection) -> Result_<usize> {
        self.change(selection, "state = ?2", HELD)
    }
    fn change(&mut self, selection: &Selection, what: &str, with: i64) -> Result_<usize> {
        let (condition, value) = condition(selection);
        let sql = format!(
            "UPDATE recipient SET {what} WHERE state <> {CLAIMED} AND id IN
               (SELECT recipient.id FROM recipient JOIN message ON message.id = recipient.message WHERE {condition})"
        );
        Ok(self.store.db.execute(&sql, params![value, with])?)
    }
    /// Removes recipients, without a report to anybody; how many.
    pub fn drop(&mut self, selection: &Selection) -> Result_<usize> {
        let (condition, value) = condition(selection);
        self.store.db.execute_batch("BEGIN IMMEDIATE")?;
        let found: Result<Vec<(i64, i64)>, _> = self
            .store
            .db
            .prepare(&format!(
                "SELECT recipient.id, message.id FROM recipient JOIN message ON message.id = recipient.message
                 WHERE {condition}"
            ))
            .and_then(|mut select| {
                select.query_map([value], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
            });
        let removed = found.map_err(Into::into).and_then(|found| {
            found.iter().try_for_each(|(id, message)| self.store.remove(*id, *message))?;
            Ok(found.len())
        });
        self.store.db.execute_batch(if removed.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        for path in self.store.garbage.drain(..).filter(|_| removed.is_ok()) {
            let _ = std::fs::remove_file(path);
        }
        removed
    }
}

fn condition(selection: &Selection) -> (&'static str, rusqlite::types::Value) {
    match selection {
        Selection::All => ("?1 IS NULL", rusqlite::types::Value::Null),
        Selection::Message(id) => ("message.id = ?1", (*id).into()),
        Selection::Domain(domain) => ("recipient.domain = ?1", domain.to_lowercase().into()),
        Selection::Sender(sender) => ("message.sender = ?1", sender.clone().into()),
    }
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
}

fn reason(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Reason>> {
    let text: Option<String> = row.get(column)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}
