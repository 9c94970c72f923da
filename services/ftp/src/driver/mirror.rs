//! Mirroring of directory trees over several connections.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use inhost_base::{Duration, Instant};

use super::operations::{GetOptions, Remote, get_known, list, local, look, put};
use super::{Clock, Connection, Network};
use crate::client::{ClientError, Listed};
use crate::codec::Kind;
use inhost_common::storage::{Folder, Storage, StorageError, VirtualPath, is_partial};

/// Jobs of a mirror that wait; a directory beyond is left for when there is room.
const JOBS: usize = 1 << 20;
/// Jobs of one mirror that are begun anew on another connection.
const AGAIN: u32 = 256;
/// Polling interval of an idle worker.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Directories, one in another, that a mirror goes into.
const DEPTH: usize = 128;

/// A tree that is being mirrored by several connections.
#[non_exhaustive]
pub struct MirrorPlan {
    folder: Folder,
    options: GetOptions,
    upload: bool,
    jobs: RefCell<VecDeque<Job>>,
    busy: Cell<usize>,
    /// Jobs that may still be begun anew on another connection.
    again: Cell<u32>,
    /// Files that were moved.
    pub files: Cell<u64>,
    /// Files that were there already.
    pub kept: Cell<u64>,
    /// Octets of the files that were moved.
    pub bytes: Cell<u64>,
    /// Errors, one for each file.
    pub failures: RefCell<Vec<String>>,
    /// Skipped entries: links to folders, what lies within itself, unfinished transfers, and what is neither a file nor a
    /// folder.
    pub left_out: RefCell<Vec<String>>,
}

/// The directories that a directory lies in, the nearest first.
#[derive(Clone, Default)]
struct Above {
    depth: usize,
    /// As the server tells them apart, where it does.
    nearest: Option<Rc<(Option<String>, Above)>>,
}

impl Above {
    fn with(&self, unique: Option<String>) -> Above {
        Above { depth: self.depth + 1, nearest: Some(Rc::new((unique, self.clone()))) }
    }
    fn has(&self, unique: Option<&str>) -> bool {
        let Some(nearest) = &self.nearest else { return false };
        (unique.is_some() && nearest.0.as_deref() == unique) || nearest.1.has(unique)
    }
}

#[derive(Clone)]
enum Job {
    Directory { there: String, here: VirtualPath, above: Above },
    File { there: String, here: VirtualPath, listed: Listed },
}

impl MirrorPlan {
    /// Of `there` to `folder`, or with `upload` of `folder` to `there`.
    pub fn new(folder: Folder, there: &str, upload: bool, options: GetOptions) -> MirrorPlan {
        let there = there.trim_end_matches('/').to_owned();
        let first = Job::Directory { there, here: VirtualPath::root(), above: Above::default() };
        MirrorPlan {
            folder,
            options,
            upload,
            jobs: RefCell::new(VecDeque::from([first])),
            busy: Cell::new(0),
            again: Cell::new(AGAIN),
            files: Cell::new(0),
            kept: Cell::new(0),
            bytes: Cell::new(0),
            failures: RefCell::default(),
            left_out: RefCell::default(),
        }
    }
    /// Whether a name is that of an unfinished transfer, of which a mirror has nothing.
    fn is_unfinished(&self, name: &str, path: &str) -> bool {
        let is_unfinished = is_partial(name);
        if is_unfinished {
            self.left_out.borrow_mut().push(format!("{path} is an unfinished transfer"));
        }
        is_unfinished
    }
    fn leave_out(&self, name: &str) {
        self.left_out.borrow_mut().push(format!("{name} is neither a file nor a folder"));
    }
    /// Goes into a directory, unless that would never end: `unique` is what tells it from others.
    fn enter(&self, there: String, here: VirtualPath, above: &Above, unique: Option<&str>) {
        match () {
            () if above.has(unique) => {
                self.left_out.borrow_mut().push(format!("{there} lies within itself, by a link"));
            }
            () if above.depth >= DEPTH => {
                let why = format!("{there}: more than {DEPTH} folders lie in each other");
                self.failures.borrow_mut().push(why);
            }
            () => self.push(Job::Directory { there, here, above: above.clone() }),
        }
    }
    fn push(&self, job: Job) {
        let mut jobs = self.jobs.borrow_mut();
        match jobs.len() < JOBS {
            true => jobs.push_back(job),
            false => self.failures.borrow_mut().push("too many files at once; mirror again".to_owned()),
        }
    }
}

/// Works on a plan until nothing is left of it. Several may, each on its connection; what fails is noted and the rest
/// goes on, but for a lost connection. [`ClientError::Data`] asks for another connection to go on with: on this one no
/// data moves any more.
pub async fn mirror<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    clock: &C,
    plan: &MirrorPlan,
) -> Result<(), ClientError> {
    loop {
        let job = plan.jobs.borrow_mut().pop_front();
        let Some(job) = job else {
            if plan.busy.get() == 0 {
                return Ok(());
            }
            let until: Instant = clock.now() + LOOK_AGAIN;
            clock.sleep_until(until).await;
            continue;
        };
        plan.busy.set(plan.busy.get() + 1);
        let name = match &job {
            Job::Directory { there, .. } | Job::File { there, .. } => there.clone(),
        };
        let kept = job.clone();
        let done = match (job, plan.upload) {
            (Job::Directory { there, here, above }, false) => {
                fetch_directory(connection, plan, there, here, above).await
            }
            (Job::Directory { there, here, above }, true) => {
                send_directory(connection, plan, there, here, above).await
            }
            (Job::File { there, here, listed }, upload) => {
                let moved = match upload {
                    false => {
                        let remote =
                            Remote { path: &there, size: Some(listed.size_bytes), time: listed.modified };
                        get_known(connection, &remote, &plan.folder, &here, plan.options).await
                    }
                    true => put(connection, &plan.folder, &here, &there, plan.options).await,
                };
                moved.map(|moved| {
                    plan.files.set(plan.files.get() + 1);
                    plan.bytes.set(plan.bytes.get() + moved.size_bytes - moved.resumed_bytes);
                })
            }
        };
        plan.busy.set(plan.busy.get() - 1);
        match done {
            Err(ClientError::Connection(why)) => return Err(ClientError::Connection(why)),
            // A server that requires session resumption but sent no ticket sends one on a new connection.
            Err(ClientError::Refused(said, reply))
                if connection.is_protected() && matches!(reply.code, 425 | 522) && plan.again.get() > 0 =>
            {
                plan.again.set(plan.again.get() - 1);
                plan.push(kept);
                return Err(ClientError::Data(format!("{said}: {reply}")));
            }
            Err(error) => plan.failures.borrow_mut().push(format!("{name}: {error}")),
            Ok(()) => {}
        }
    }
}

async fn fetch_directory<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    plan: &MirrorPlan,
    there: String,
    here: VirtualPath,
    above: Above,
) -> Result<(), ClientError> {
    let looked = look(connection, if there.is_empty() { "/" } else { &there }, plan.options.via).await?;
    let above = above.with(looked.unique);
    if here != VirtualPath::root() {
        match plan.folder.make_directory(&here, 0o022).await {
            Ok(()) | Err(StorageError::Exists) => {}
            Err(error) => return Err(local(error, &here)),
        }
    }
    for name in looked.refused {
        plan.failures.borrow_mut().push(format!("{there}/{name}: no file here can have that name"));
    }
    for listed in looked.listed {
        // The name is one part of a path; the parser lets no other through.
        let (there, here) = (format!("{there}/{}", listed.name), here.join(&listed.name));
        match listed.kind {
            Kind::File if plan.is_unfinished(&listed.name, &there) => {}
            Kind::Directory => plan.enter(there, here, &above, listed.unique.as_deref()),
            Kind::File => {
                let own = plan.folder.facts(&here).await.ok();
                let is_same = own.is_some_and(|own| {
                    own.size_bytes == listed.size_bytes
                        && listed
                            .modified
                            .is_none_or(|time| own.modified.is_some_and(|t| t.seconds == time.seconds))
                });
                match is_same {
                    true => plan.kept.set(plan.kept.get() + 1),
                    false => plan.push(Job::File { there, here, listed }),
                }
            }
            _ => plan.leave_out(&there),
        }
    }
    Ok(())
}

async fn send_directory<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    plan: &MirrorPlan,
    there: String,
    here: VirtualPath,
    above: Above,
) -> Result<(), ClientError> {
    let known = match list(connection, if there.is_empty() { "/" } else { &there }, plan.options.via).await {
        Ok(listed) if !listed.is_empty() => listed,
        Ok(_) | Err(ClientError::Refused(..)) => {
            // Some servers list what is not there as empty. One that has it refuses, and then all is well.
            match connection.command(format!("MKD {there}")).await {
                Ok(_) | Err(ClientError::Refused(..)) => Vec::new(),
                Err(error) => return Err(error),
            }
        }
        Err(error) => return Err(error),
    };
    let above = above.with(None);
    let mut listing = plan.folder.list(&here).await.map_err(|error| local(error, &here))?;
    loop {
        let (rest, batch) = listing.next().await;
        let batch = batch.map_err(|error| local(error, &here))?;
        if batch.is_empty() {
            return Ok(());
        }
        for (name, facts) in batch {
            let (there, here) = (format!("{there}/{name}"), here.join(&name));
            match facts.kind {
                // The target of a link is sent at its own place, or is outside the request.
                Kind::Directory if plan.folder.is_link(&here).await.unwrap_or(false) => {
                    plan.left_out.borrow_mut().push(format!("{here} is a link to a folder"));
                }
                Kind::Directory => {
                    let is_known = known.iter().any(|listed| listed.name == name);
                    if !is_known {
                        connection.command(format!("MKD {there}")).await?;
                    }
                    plan.enter(there, here, &above, None);
                }
                Kind::File if plan.is_unfinished(&name, &here.to_string()) => {}
                Kind::File => {
                    let size_bytes = facts.size_bytes;
                    let is_same = known.iter().any(|listed| {
                        let same_time = listed.modified.is_none_or(|time| Some(time) == facts.modified);
                        listed.name == name && listed.size_bytes == size_bytes && same_time
                    });
                    let listed =
                        Listed { name, kind: Kind::File, size_bytes, modified: facts.modified, unique: None };
                    match is_same {
                        true => plan.kept.set(plan.kept.get() + 1),
                        false => plan.push(Job::File { there, here, listed }),
                    }
                }
                _ => plan.leave_out(&here.to_string()),
            }
        }
        listing = rest;
    }
}
