//! The queue's tables, and what is done to them. All of it waits for the disk.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::records::{
    Change, End, Outcome, Plan, Quotas, Retention, Scope, StoreError, Submitted, Task, attempt_folder,
};
use crate::codec::{Job, Submission, status_text};
use crate::deliver::{ATTEMPTS, Deliver, FIRST_DELAY_S};
use crate::machine::{
    Candidate, Event, Group, Need, Running, Shares, State, choose, dependency, retry_delay_s,
};

/// Version of the tables.
const VERSION: i64 = 1;
/// Jobs that are looked at to choose the next ones.
const CANDIDATES: i64 = 10_000;
/// Jobs of a list.
const LISTED: usize = 1000;
/// Deliveries of one round.
const DELIVERIES: i64 = 16;
/// Jobs that one call removes.
const REMOVED: i64 = 500;
/// Characters of a reason.
const REASON_CHARS: usize = 300;
/// How long the first retry waits.
const RETRY_DELAY_S: u64 = 10;
/// How often a job is started whose wrapper does not begin, besides its retries.
const STARTS: u32 = 8;
/// The back end of this host.
pub(crate) const LOCAL: &str = "local";

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS batch (
  id INTEGER PRIMARY KEY AUTOINCREMENT, user TEXT NOT NULL, key TEXT, job INTEGER NOT NULL, count INTEGER NOT NULL,
  body TEXT NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS batch_key ON batch (user, key) WHERE key IS NOT NULL;
CREATE TABLE IF NOT EXISTS job (
  id INTEGER PRIMARY KEY AUTOINCREMENT, batch INTEGER NOT NULL, array INTEGER, idx INTEGER, user TEXT NOT NULL,
  name TEXT NOT NULL, state TEXT NOT NULL, backend TEXT NOT NULL, priority INTEGER NOT NULL, at_a_time INTEGER,
  submitted INTEGER NOT NULL, not_before INTEGER NOT NULL, started INTEGER, ended INTEGER,
  attempts INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0, exit_status INTEGER,
  reason TEXT NOT NULL DEFAULT '', handle TEXT, cancelling INTEGER NOT NULL DEFAULT 0,
  output INTEGER NOT NULL DEFAULT 0, delivery INTEGER, delivery_due INTEGER NOT NULL DEFAULT 0,
  delivery_attempts INTEGER NOT NULL DEFAULT 0, delivery_reason TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS job_next ON job (backend, state, not_before);
CREATE INDEX IF NOT EXISTS job_user ON job (user, state);
CREATE INDEX IF NOT EXISTS job_array ON job (array) WHERE array IS NOT NULL;
CREATE INDEX IF NOT EXISTS job_batch ON job (batch);
CREATE INDEX IF NOT EXISTS job_delivery ON job (delivery_due) WHERE delivery IS NOT NULL;
CREATE INDEX IF NOT EXISTS job_ended ON job (ended) WHERE ended IS NOT NULL;
CREATE TABLE IF NOT EXISTS need (batch INTEGER NOT NULL, kind TEXT NOT NULL, target INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS need_batch ON need (batch);
CREATE INDEX IF NOT EXISTS need_target ON need (target);
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO meta VALUES ('key', lower(hex(randomblob(12))));
";

const JOB: &str = "id, array, idx, user, name, state, reason, backend, handle, priority, submitted, not_before, started, ended,
  attempts, exit_status, output, delivery IS NOT NULL, delivery_reason, cancelling";

type Answer<T> = Result<T, StoreError>;

/// Which jobs a list has.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Selection {
    /// Those of one state.
    pub state: Option<State>,
    /// Those of one array.
    pub array: Option<i64>,
    /// Those with a smaller number, to go on after a list.
    pub before: Option<i64>,
    /// How many, up to 1000.
    pub count: usize,
}

impl Default for Selection {
    fn default() -> Self {
        Selection { state: None, array: None, before: None, count: LISTED }
    }
}

/// A delivery that is due.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub job: Job,
    pub to: Deliver,
    pub number: i64,
    pub attempts: u32,
    /// Whether it may replace a file.
    pub replace: bool,
}

/// The tables of a queue.
pub(super) struct Tables {
    db: Connection,
    folder: PathBuf,
    /// Begins the keys that name attempts of this queue at other places.
    key: String,
    garbage: Vec<i64>,
    /// The first failure of the database in this transaction, which may have ended it.
    trouble: Option<String>,
}

impl Tables {
    pub fn open(folder: &Path) -> Answer<Tables> {
        make_folder(&folder.join("jobs"))?;
        let path = folder.join("jobs.sqlite");
        // It has scripts, and URLs with passwords. SQLite gives its other files the same mode.
        let made = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        made.map_err(|error| StoreError::Io(path.clone(), error))?;
        Tables::of(Connection::open(path)?, folder)
    }
    pub fn in_memory(folder: &Path) -> Answer<Tables> {
        Tables::of(Connection::open_in_memory()?, folder)
    }
    fn of(db: Connection, folder: &Path) -> Answer<Tables> {
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
            db.execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;"))?;
        }
        let key = db.query_row("SELECT value FROM meta WHERE name = 'key'", [], |row| row.get(0))?;
        Ok(Tables { db, folder: folder.to_owned(), key, garbage: Vec::new(), trouble: None })
    }
    /// Lets the database have so many pages, as a disk that is full.
    #[cfg(test)]
    pub fn limit_pages(&self, pages: u32) -> Answer<()> {
        Ok(self.db.pragma_update(None, "max_page_count", pages)?)
    }
    /// Begins a transaction. One that is not durable may be lost in a power failure, not in a crash of the program.
    pub fn begin(&mut self, is_durable: bool) -> rusqlite::Result<()> {
        self.trouble = None;
        let mode = if is_durable { "FULL" } else { "NORMAL" };
        self.db.execute_batch(&format!("PRAGMA synchronous = {mode}; BEGIN IMMEDIATE"))
    }
    pub fn commit(&mut self) -> rusqlite::Result<()> {
        self.db.execute_batch("COMMIT")
    }
    /// The first failure of the database in this transaction. A full disk ends the transaction at once, and what follows
    /// fails otherwise.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }
    pub fn abandon(&mut self) {
        let _ = self.db.execute_batch("ROLLBACK");
        self.garbage.clear();
    }
    /// Does `work` whole or not at all.
    pub fn saved<T>(&mut self, work: impl FnOnce(&mut Tables) -> Answer<T>) -> Answer<T> {
        self.db.execute_batch("SAVEPOINT operation")?;
        let garbage = self.garbage.len();
        let result = work(self);
        let end = match &result {
            Ok(_) => "RELEASE operation",
            Err(_) => {
                self.garbage.truncate(garbage);
                "ROLLBACK TO operation; RELEASE operation"
            }
        };
        if let Err(StoreError::Database(error)) = &result {
            self.trouble.get_or_insert_with(|| error.to_string());
        }
        match self.db.execute_batch(end) {
            Err(error) if result.is_ok() => Err(error.into()),
            _ => result,
        }
    }
    /// Removes the files of jobs that are no longer in the tables.
    pub fn remove_garbage(&mut self) {
        for id in self.garbage.drain(..) {
            let _ = fs::remove_dir_all(self.folder.join("jobs").join(id.to_string()));
        }
    }

    pub fn submit(
        &mut self,
        user: &str,
        key: Option<&str>,
        submission: &Submission,
        quotas: Quotas,
        now_s: u64,
    ) -> Answer<Submitted> {
        let body = serde_json::to_string(submission).map_err(|error| StoreError::State(error.to_string()))?;
        let known = self
            .db
            .prepare_cached("SELECT job, count, body FROM batch WHERE user = ? AND key = ?")?
            .query_row(params![user, key], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?)))
            .optional()?;
        match known {
            Some((id, count, same)) if same == body => return Ok(Submitted { id, count, is_new: false }),
            Some(_) => return Err(StoreError::KeyUsed),
            None => {}
        }
        if let Some(path) = submission.occupied() {
            let why = format!("deliver: {} is there already; --replace lets it be replaced", path.display());
            return Err(StoreError::State(why));
        }
        let indices = submission.indices();
        self.check_quotas(user, indices.len() as u64, quotas)?;
        let next: i64 = self.db.query_row(
            "SELECT IFNULL((SELECT seq FROM sqlite_sequence WHERE name = 'job'), 0) + 1",
            [],
            |row| row.get(0),
        )?;
        let array = submission.array.map(|_| next);
        let first = next + i64::from(array.is_some());
        self.db
            .prepare_cached("INSERT INTO batch (user, key, job, count, body) VALUES (?, ?, ?, ?, ?)")?
            .execute(params![user, key, next, indices.len() as i64, body])?;
        let batch = self.db.last_insert_rowid();
        for after in &submission.after {
            self.scope_holds(user, after.job)?;
            self.db
                .prepare_cached("INSERT INTO need (batch, kind, target) VALUES (?, ?, ?)")?
                .execute(params![batch, word(&after.need), after.job])?;
        }
        let state = if submission.is_held { State::Held } else { State::Waiting };
        let backend = submission.to.as_deref().unwrap_or(LOCAL);
        let at_a_time = submission.array.and_then(|array| array.at_a_time);
        let delayed_s = if submission.delay_s > 0 { now_s.saturating_add(submission.delay_s) } else { 0 };
        let not_before_s = submission.not_before_s.max(delayed_s);
        let name = if submission.name.is_empty() { "job" } else { &submission.name };
        for (id, index) in (first..).zip(&indices) {
            self.db
                .prepare_cached(
                    "INSERT INTO job (id, batch, array, idx, user, name, state, backend, priority, at_a_time, submitted,
                     not_before) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                )?
                .execute(params![
                    id, batch, array, index, user, name, state.name(), backend, submission.priority, at_a_time,
                    signed(now_s), signed(not_before_s)
                ])?;
        }
        let ended = self.consider(batch)?;
        self.are_over(ended, now_s)?;
        Ok(Submitted { id: next, count: u32::try_from(indices.len()).unwrap_or(u32::MAX), is_new: true })
    }
    fn check_quotas(&self, user: &str, more: u64, quotas: Quotas) -> Answer<()> {
        let open: i64 = self
            .db
            .prepare_cached(
                "SELECT COUNT(*) FROM job WHERE user = ? AND state IN ('held', 'waiting', 'queued', 'running')",
            )?
            .query_row([user], |row| row.get(0))?;
        if unsigned(open) + more > quotas.jobs {
            return Err(StoreError::Quota(format!("a user may have {} jobs that are not over", quotas.jobs)));
        }
        let output: i64 = self
            .db
            .prepare_cached("SELECT IFNULL(SUM(output), 0) FROM job WHERE user = ?")?
            .query_row([user], |row| row.get(0))?;
        if unsigned(output) > quotas.output_bytes {
            let detail = format!("more than {} octets of output of this user are kept", quotas.output_bytes);
            return Err(StoreError::Quota(detail));
        }
        Ok(())
    }
    /// Whether a user may name a job or array.
    fn scope_holds(&self, user: &str, id: i64) -> Answer<()> {
        let is_own: bool = self
            .db
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM job WHERE (id = ?1 OR array = ?1) AND user = ?2)")?
            .query_row(params![id, user], |row| row.get(0))?;
        if is_own { Ok(()) } else { Err(StoreError::Unknown(id)) }
    }
    /// Looks at what the jobs of a batch wait for; the jobs that can never run, and have ended by that.
    fn consider(&mut self, batch: i64) -> Answer<Vec<i64>> {
        let needs: Vec<(String, i64)> = self
            .db
            .prepare_cached("SELECT kind, target FROM need WHERE batch = ?")?
            .query_map([batch], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        let (mut is_met, mut blame) = (true, None);
        for (kind, target) in needs {
            let need = match kind.as_str() {
                "afterok" => Need::AfterOk,
                "afternotok" => Need::AfterNotOk,
                _ => Need::AfterAny,
            };
            match dependency(need, self.group(target)?) {
                Some(true) => {}
                Some(false) => blame = Some((kind, target)),
                None => is_met = false,
            }
        }
        let event = match &blame {
            Some(_) => Event::Impossible,
            None if is_met => Event::Ready,
            None => return Ok(Vec::new()),
        };
        let reason =
            blame.map(|(kind, target)| format!("{kind} of job {target} cannot be met")).unwrap_or_default();
        let waiting: Vec<i64> = self
            .db
            .prepare_cached("SELECT id FROM job WHERE batch = ? AND state IN ('waiting', 'held')")?
            .query_map([batch], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let mut ended = Vec::new();
        for id in waiting {
            ended.extend(self.step(id, event, &reason)?.filter(|state| state.is_over()).map(|_| id));
        }
        Ok(ended)
    }
    fn group(&self, target: i64) -> Answer<Group> {
        let mut group = Group::default();
        let mut select = self.db.prepare_cached("SELECT state FROM job WHERE id = ?1 OR array = ?1")?;
        let mut rows = select.query([target])?;
        while let Some(row) = rows.next()? {
            group.add(state(&row.get::<_, String>(0)?));
        }
        Ok(group)
    }
    /// One event of a job; its state after it, `None` where it cannot happen.
    fn step(&mut self, id: i64, event: Event, reason: &str) -> Answer<Option<State>> {
        let now: Option<String> = self
            .db
            .prepare_cached("SELECT state FROM job WHERE id = ?")?
            .query_row([id], |row| row.get(0))
            .optional()?;
        let Some(next) = now.and_then(|now| state(&now).after(event)) else { return Ok(None) };
        self.db.prepare_cached("UPDATE job SET state = ?, reason = ? WHERE id = ?")?.execute(params![
            next.name(),
            short(reason),
            id
        ])?;
        Ok(Some(next))
    }
    /// Jobs have ended: what waits for them is looked at, and what waits for that.
    fn are_over(&mut self, mut ended: Vec<i64>, now_s: u64) -> Answer<()> {
        while let Some(id) = ended.pop() {
            self.db
                .prepare_cached("UPDATE job SET ended = ?, cancelling = 0 WHERE id = ?")?
                .execute(params![signed(now_s), id])?;
            let waiting: Vec<i64> = self
                .db
                .prepare_cached(
                    "SELECT DISTINCT batch FROM need WHERE target IN (?1, (SELECT array FROM job WHERE id = ?1))",
                )?
                .query_map([id], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            for batch in waiting {
                ended.extend(self.consider(batch)?);
            }
        }
        Ok(())
    }

    pub fn list(&self, scope: &Scope, selection: &Selection) -> Answer<Vec<Job>> {
        let count = i64::try_from(selection.count.min(LISTED)).unwrap_or(i64::MAX);
        let mut select = self.db.prepare_cached(&format!(
            "SELECT {JOB} FROM job WHERE (?1 IS NULL OR user = ?1) AND (?2 IS NULL OR state = ?2)
             AND (?3 IS NULL OR array = ?3) AND (?4 IS NULL OR id < ?4) ORDER BY id DESC LIMIT ?5"
        ))?;
        let state = selection.state.map(State::name);
        let rows =
            select.query_map(params![scope.user(), state, selection.array, selection.before, count], job)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
    pub fn job(&self, scope: &Scope, id: i64) -> Answer<Job> {
        let mut select = self
            .db
            .prepare_cached(&format!("SELECT {JOB} FROM job WHERE id = ?1 AND (?2 IS NULL OR user = ?2)"))?;
        select.query_row(params![id, scope.user()], job).optional()?.ok_or(StoreError::Unknown(id))
    }
    pub fn change(&mut self, scope: &Scope, id: i64, change: Change, now_s: u64) -> Answer<u32> {
        let found: Vec<(i64, i64, String)> = self
            .db
            .prepare_cached(
                "SELECT id, batch, state FROM job WHERE (id = ?1 OR array = ?1) AND (?2 IS NULL OR user = ?2)",
            )?
            .query_map(params![id, scope.user()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_, _>>()?;
        let (Some((_, _, first)), mut changed) = (found.first().cloned(), 0) else {
            return Err(StoreError::Unknown(id));
        };
        let mut released = Vec::new();
        for (id, batch, before) in found {
            changed += u32::from(match change {
                Change::Hold => self.step(id, Event::Hold, "held")?.is_some(),
                Change::Release => {
                    let is_released = self.step(id, Event::Release, "")?.is_some();
                    if is_released && !released.contains(&batch) {
                        released.push(batch);
                    }
                    is_released
                }
                // Its processes end first.
                Change::Cancel if before == State::Running.name() => {
                    self.db.prepare_cached("UPDATE job SET cancelling = 1 WHERE id = ?")?.execute([id])?;
                    true
                }
                Change::Cancel => match self.step(id, Event::Cancel, "cancelled")? {
                    Some(_) => {
                        self.are_over(vec![id], now_s)?;
                        true
                    }
                    None => false,
                },
            });
        }
        for batch in released {
            let ended = self.consider(batch)?;
            self.are_over(ended, now_s)?;
        }
        // The same again is the same: a request whose answer was lost is repeated.
        let is_so = match change {
            Change::Hold => first == State::Held.name(),
            Change::Release => [State::Waiting, State::Queued].iter().any(|state| first == state.name()),
            Change::Cancel => first == State::Cancelled.name(),
        };
        if changed == 0 && !is_so {
            let verb = match change {
                Change::Hold => "held",
                Change::Release => "released",
                Change::Cancel => "cancelled",
            };
            return Err(StoreError::State(format!("job {id} is {first}, and cannot be {verb}")));
        }
        Ok(changed)
    }

    pub fn plan(&mut self, backend: &str, shares: Shares, now_s: u64) -> Answer<Plan> {
        let mut running = Running::default();
        {
            let mut select = self
                .db
                .prepare_cached("SELECT user, array FROM job WHERE backend = ? AND state = 'running'")?;
            let mut rows = select.query([backend])?;
            while let Some(row) = rows.next()? {
                *running.users.entry(row.get(0)?).or_default() += 1;
                if let Some(array) = row.get::<_, Option<i64>>(1)? {
                    *running.arrays.entry(array).or_default() += 1;
                }
            }
        }
        let candidates = self
            .db
            .prepare_cached(
                "SELECT id, user, priority, array, at_a_time FROM job
                 WHERE backend = ? AND state = 'queued' AND not_before <= ? ORDER BY priority DESC, id LIMIT ?",
            )?
            .query_map(params![backend, signed(now_s), CANDIDATES], |row| {
                Ok(Candidate {
                    id: row.get(0)?,
                    user: row.get(1)?,
                    priority: row.get(2)?,
                    array: row.get(3)?,
                    at_a_time: row.get(4)?,
                })
            })?
            .collect::<Result<Vec<_>, _>>()?;
        let mut start = Vec::new();
        for id in choose(&candidates, running, shares) {
            if self.step(id, Event::Start, "")?.is_some() {
                self.db
                    .prepare_cached(
                        "UPDATE job SET attempts = attempts + 1, started = ?, handle = NULL, exit_status = NULL WHERE id = ?",
                    )?
                    .execute(params![signed(now_s), id])?;
                start.extend(self.task(id)?);
            }
        }
        let next_s: Option<i64> = self
            .db
            .prepare_cached(
                "SELECT MIN(not_before) FROM job WHERE backend = ? AND state = 'queued' AND not_before > ?",
            )?
            .query_row(params![backend, signed(now_s)], |row| row.get(0))?;
        Ok(Plan { start, next_s: next_s.map(unsigned) })
    }
    /// Whether a job may start at a back end.
    pub fn has_queued(&self, backend: &str, now_s: u64) -> Answer<bool> {
        let mut select = self.db.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM job WHERE backend = ? AND state = 'queued' AND not_before <= ?)",
        )?;
        Ok(select.query_row(params![backend, signed(now_s)], |row| row.get(0))?)
    }
    /// Notes why the jobs of a back end wait that may start.
    pub fn keep_queued(&mut self, backend: &str, reason: &str, now_s: u64) -> Answer<()> {
        self.db
            .prepare_cached(
                "UPDATE job SET reason = ?1 WHERE backend = ?2 AND state = 'queued' AND not_before <= ?3 AND reason <> ?1",
            )?
            .execute(params![short(reason), backend, signed(now_s)])?;
        Ok(())
    }
    fn task(&self, id: i64) -> Answer<Option<Task>> {
        let mut select = self.db.prepare_cached(
            "SELECT j.id, j.attempts, j.array, j.idx, j.user, b.body, j.handle, j.cancelling, j.started, j.reason
             FROM job j JOIN batch b ON b.id = j.batch WHERE j.id = ?",
        )?;
        let task = select.query_row([id], |row| {
            let (id, attempt): (i64, u32) = (row.get(0)?, row.get(1)?);
            let body: String = row.get(5)?;
            let wrong = |error| {
                rusqlite::Error::FromSqlConversionFailure(5, rusqlite::types::Type::Text, Box::new(error))
            };
            Ok(Task {
                id,
                attempt,
                array: row.get(2)?,
                index: row.get(3)?,
                user: row.get(4)?,
                submission: Arc::new(serde_json::from_str(&body).map_err(wrong)?),
                folder: attempt_folder(&self.folder, id, attempt),
                handle: row.get(6)?,
                is_cancelling: row.get(7)?,
                started_s: unsigned(row.get::<_, Option<i64>>(8)?.unwrap_or(0)),
                reason: row.get(9)?,
                key: format!("{}-{id}-{attempt}", self.key),
            })
        });
        Ok(task.optional()?)
    }
    pub fn running(&self, backend: &str) -> Answer<Vec<Task>> {
        let ids: Vec<i64> = self
            .db
            .prepare_cached("SELECT id FROM job WHERE backend = ? AND state = 'running' ORDER BY id")?
            .query_map([backend], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let tasks: Answer<Vec<_>> = ids.into_iter().map(|id| self.task(id)).collect();
        Ok(tasks?.into_iter().flatten().collect())
    }
    pub fn note(&mut self, id: i64, attempt: u32, handle: Option<&str>, reason: &str) -> Answer<()> {
        self.db
            .prepare_cached(
                "UPDATE job SET handle = IFNULL(?, handle), reason = ? WHERE id = ? AND attempts = ? AND state = 'running'",
            )?
            .execute(params![handle, short(reason), id, attempt])?;
        Ok(())
    }
    pub fn settle(&mut self, end: &End, now_s: u64) -> Answer<()> {
        let Some(task) = self.task(end.id)?.filter(|task| task.attempt == end.attempt) else { return Ok(()) };
        let submission = &task.submission;
        let failures: u32 = self
            .db
            .prepare_cached("SELECT failures FROM job WHERE id = ?")?
            .query_row([end.id], |row| row.get(0))?;
        let (mut event, status, mut reason) = match &end.outcome {
            Outcome::Exit(0, why) => (Event::Succeed, Some(0), why.clone()),
            Outcome::Exit(status, why) if why.is_empty() => {
                (Event::Fail, Some(*status), status_text(*status))
            }
            Outcome::Exit(status, why) => (Event::Fail, Some(*status), why.clone()),
            Outcome::Vanished(why) => (Event::Vanish, None, why.clone()),
            Outcome::NeverStarted if task.attempt > submission.retries.saturating_add(STARTS) => {
                (Event::Fail, None, "its wrapper never started".to_owned())
            }
            Outcome::NeverStarted => (Event::Requeue, None, "it is started again".to_owned()),
            Outcome::Refused(why) => (Event::Fail, None, why.clone()),
            Outcome::Cancelled(why) => (Event::Cancel, None, why.clone()),
        };
        let (mut not_before, mut failed) = (0, failures);
        if matches!(end.outcome, Outcome::NeverStarted) {
            not_before = now_s.saturating_add(retry_delay_s(1, task.attempt));
        }
        if task.is_cancelling {
            (event, reason) = (Event::Cancel, "cancelled".to_owned());
        } else if matches!(event, Event::Fail | Event::Vanish) {
            failed += 1;
            if failed <= submission.retries {
                let delay_s = retry_delay_s(submission.retry_delay_s.unwrap_or(RETRY_DELAY_S), failed);
                event = Event::Requeue;
                not_before = now_s.saturating_add(delay_s);
                reason = format!("retry {failed} of {}: {reason}", submission.retries);
            }
        }
        let Some(next) = self.step(end.id, event, &reason)? else { return Ok(()) };
        self.db
            .prepare_cached(
                "UPDATE job SET exit_status = ?, failures = ?, output = output + ?, not_before = MAX(not_before, ?) WHERE id = ?",
            )?
            .execute(params![status, failed, signed(end.output_bytes), signed(not_before), end.id])?;
        if next.is_over() {
            if next != State::Cancelled && !submission.deliver.is_empty() {
                self.db
                    .prepare_cached(
                        "UPDATE job SET delivery = 0, delivery_due = ?, delivery_reason = 'due' WHERE id = ?",
                    )?
                    .execute(params![signed(now_s), end.id])?;
            }
            self.are_over(vec![end.id], now_s)?;
        }
        Ok(())
    }

    pub fn deliveries(&self, now_s: u64, under_way: usize) -> Answer<Vec<Delivery>> {
        let count = DELIVERIES.saturating_add(i64::try_from(under_way).unwrap_or(0));
        let mut select = self.db.prepare_cached(&format!(
            "SELECT {JOB}, delivery, delivery_attempts FROM job WHERE delivery IS NOT NULL AND delivery_due <= ?
             ORDER BY delivery_due LIMIT ?"
        ))?;
        let due: Vec<(Job, i64, u32)> = select
            .query_map(params![signed(now_s), count], |row| Ok((job(row)?, row.get(20)?, row.get(21)?)))?
            .collect::<Result<_, _>>()?;
        let mut deliveries = Vec::new();
        for (job, number, attempts) in due {
            let Some(task) = self.task(job.id)? else { continue };
            let to =
                usize::try_from(number).ok().and_then(|number| task.submission.deliver.get(number).cloned());
            let replace = task.submission.replace;
            deliveries.extend(to.map(|to| Delivery { job, to, number, attempts, replace }));
        }
        Ok(deliveries)
    }
    pub fn delivered(&mut self, delivery: &Delivery, result: Result<(), String>, now_s: u64) -> Answer<()> {
        let id = delivery.job.id;
        let count = self.task(id)?.map_or(0, |task| task.submission.deliver.len());
        let is_last = delivery.number + 1 >= i64::try_from(count).unwrap_or(i64::MAX);
        let attempts = delivery.attempts + 1;
        let is_given_up = result.is_err() && attempts >= ATTEMPTS;
        let reason = match &result {
            Ok(()) => String::new(),
            Err(why) if is_given_up => format!("given up after {attempts} attempts: {why}"),
            Err(why) => format!("attempt {attempts}: {why}"),
        };
        let (number, due, attempts) = match (result.is_ok() || is_given_up, is_last) {
            (true, true) => (None, 0, 0),
            (true, false) => (Some(delivery.number + 1), now_s, 0),
            (false, _) => (
                Some(delivery.number),
                now_s.saturating_add(retry_delay_s(FIRST_DELAY_S, attempts)),
                attempts,
            ),
        };
        self.db
            .prepare_cached(
                "UPDATE job SET delivery = ?, delivery_due = ?, delivery_attempts = ?, delivery_reason = ? WHERE id = ?",
            )?
            .execute(params![number, signed(due), attempts, short(&reason), id])?;
        Ok(())
    }

    pub fn expire(&mut self, retention: Retention, now_s: u64) -> Answer<usize> {
        // What others wait for, and what is to be delivered, stays.
        let old: Vec<(i64, i64)> = self
            .db
            .prepare_cached(
                "SELECT id, batch FROM job j WHERE ended IS NOT NULL AND delivery IS NULL
                 AND (ended <= ?1 OR id <= (SELECT id FROM job WHERE ended IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET ?2))
                 AND NOT EXISTS (SELECT 1 FROM need n JOIN job w ON w.batch = n.batch
                                 WHERE n.target IN (j.id, j.array) AND w.state IN ('held', 'waiting'))
                 ORDER BY id LIMIT ?3",
            )?
            .query_map(
                params![signed(now_s.saturating_sub(retention.age_s)), signed(retention.jobs), REMOVED],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?
            .collect::<Result<_, _>>()?;
        for &(id, batch) in &old {
            self.db.prepare_cached("DELETE FROM job WHERE id = ?")?.execute([id])?;
            let is_left: bool = self
                .db
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM job WHERE batch = ?)")?
                .query_row([batch], |row| row.get(0))?;
            if !is_left {
                self.db.prepare_cached("DELETE FROM batch WHERE id = ?")?.execute([batch])?;
                self.db.prepare_cached("DELETE FROM need WHERE batch = ?")?.execute([batch])?;
            }
            self.garbage.push(id);
        }
        Ok(old.len())
    }
}

fn job(row: &Row<'_>) -> rusqlite::Result<Job> {
    let backend: String = row.get(7)?;
    let time = |column| row.get::<_, Option<i64>>(column).map(|at| at.map(unsigned));
    let is_pending: bool = row.get(17)?;
    let delivery: String = row.get(18)?;
    Ok(Job {
        id: row.get(0)?,
        array: row.get(1)?,
        index: row.get(2)?,
        user: row.get(3)?,
        name: row.get(4)?,
        state: Some(state(&row.get::<_, String>(5)?)),
        reason: row.get(6)?,
        to: (backend != LOCAL).then_some(backend),
        handle: row.get(8)?,
        priority: row.get(9)?,
        submitted_s: time(10)?.unwrap_or(0),
        not_before_s: time(11)?.unwrap_or(0),
        started_s: time(12)?,
        ended_s: time(13)?,
        attempts: row.get(14)?,
        exit_status: row.get(15)?,
        output_bytes: unsigned(row.get(16)?),
        delivery: if is_pending && delivery.is_empty() { "due".to_owned() } else { delivery },
        is_cancelling: row.get(19)?,
    })
}

/// A state that this program wrote.
fn state(name: &str) -> State {
    State::named(name).unwrap_or(State::Lost)
}

fn word(need: &Need) -> &'static str {
    match need {
        Need::AfterOk => "afterok",
        Need::AfterAny => "afterany",
        Need::AfterNotOk => "afternotok",
    }
}

fn short(text: &str) -> String {
    text.chars().take(REASON_CHARS).collect()
}

/// Numbers of SQLite are signed.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn make_folder(path: &Path) -> Answer<()> {
    use std::os::unix::fs::DirBuilderExt;
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| StoreError::Io(path.to_owned(), error))
}
