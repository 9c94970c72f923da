//! Jobs of this host: a script in its own folder, process group and cgroup.
//!
//! A wrapper of `/bin/sh` runs the script, so that a job goes on when the host is killed, and tells its end to the next
//! one. The files of an attempt:
//!
//! - `started`: a folder if the wrapper made it, a file if a host did: then the script never runs;
//! - `pid`: the system's boot, and the wrapper's line of `/proc/PID/stat`, which has its start time;
//! - `group`: the script's process group; `status`: its exit status, by rename, once its output is complete;
//! - `stdout`, `stderr`: its output, up to its limit; `work`: its working folder.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use inhost_common::LocalFuture;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::attempt::{self, Launch};
use crate::backend::{Backend, Look, Progress, Started};
use crate::codec::Limits;
use crate::store::{Outcome, Task};

/// How long a wrapper may take to tell its process.
const PID_WITHIN_S: u64 = 20;
/// How often jobs of an earlier host are looked at.
const INTERVAL_MS: u64 = 500;

/// Configuration of a [`Local`] back end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LocalConfig {
    /// Limits of jobs that say none. Default: 16 MiB of output.
    pub limits: Limits,
    /// Time from TERM to KILL, in seconds. Default 5.
    pub grace_s: u64,
    /// PATH of jobs. Default `/usr/local/bin:/usr/bin:/bin`.
    pub path: String,
    /// A folder of the cgroup v2 file system below which each job has a cgroup. Default: the process's own cgroup, where
    /// it can be written.
    pub cgroup: Option<PathBuf>,
    /// The time since 1970.
    pub unix_time: fn() -> Duration,
}

impl LocalConfig {
    /// The defaults, with a clock.
    pub fn new(unix_time: fn() -> Duration) -> LocalConfig {
        LocalConfig {
            limits: Limits { output_bytes: Some(16 << 20), ..Limits::default() },
            grace_s: 5,
            path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
            cgroup: own_cgroup(),
            unix_time,
        }
    }
}

/// Folders of attempts whose wrapper this process has started, and not reaped yet.
type Children = Arc<Mutex<BTreeSet<PathBuf>>>;

fn locked(children: &Children) -> MutexGuard<'_, BTreeSet<PathBuf>> {
    children.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs jobs on this host, as the user of this process.
pub struct Local {
    config: LocalConfig,
    ended: (async_channel::Sender<()>, async_channel::Receiver<()>),
    children: Children,
    /// When jobs were told to end, in seconds since 1970.
    told: Rc<RefCell<BTreeMap<i64, u64>>>,
}

impl Local {
    /// A back end.
    pub fn new(config: LocalConfig) -> Local {
        Local { config, ended: async_channel::bounded(1), children: Children::default(), told: Rc::default() }
    }
}

impl Backend for Local {
    fn start(&self, tasks: Vec<Task>) -> LocalFuture<Vec<Started>> {
        let (config, ended, children) = (self.config.clone(), self.ended.0.clone(), self.children.clone());
        let one = move |task: &Task| match start(task, &config, ended.clone(), children.clone()) {
            Ok(pid) => Ok(Some(pid.to_string())),
            Err(error) => Err(Outcome::Refused(format!("cannot be started: {error}"))),
        };
        Box::pin(blocking::unblock(move || tasks.iter().map(one).collect()))
    }
    fn look(&self, task: Task) -> LocalFuture<Look> {
        let (config, told, children) = (self.config.clone(), self.told.clone(), self.children.clone());
        let now_s = (config.unix_time)().as_secs();
        let since = told.borrow().get(&task.id).copied();
        Box::pin(async move {
            let (id, is_cancelling) = (task.id, task.is_cancelling);
            let progress = blocking::unblock(move || {
                let is_child = locked(&children).contains(&task.folder);
                look(&task, &config, now_s, since, is_child)
            })
            .await;
            match (&progress, is_cancelling) {
                (Progress::Running(_), true) => {
                    told.borrow_mut().entry(id).or_insert(now_s);
                }
                _ => {
                    told.borrow_mut().remove(&id);
                }
            }
            Look::new(progress)
        })
    }
    fn changed(&self) -> LocalFuture<()> {
        let ended = self.ended.1.clone();
        Box::pin(async move {
            let _ = ended.recv().await;
        })
    }
    fn interval_ms(&self) -> u64 {
        INTERVAL_MS
    }
}

/// The process's own cgroup, if it can be written.
fn own_cgroup() -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // Where version 1 has the controllers, version 2 may have a folder beside them.
    let folders = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(|root| Path::new(root).join(path));
    let is_usable = |folder: &PathBuf| {
        rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
            && folder.join("cgroup.controllers").exists()
    };
    folders.into_iter().find(is_usable)
}

/// The cgroup of an attempt.
fn cgroup(task: &Task, config: &LocalConfig) -> Option<PathBuf> {
    config.cgroup.as_ref().map(|folder| folder.join(format!("inhost-job-{}", task.key)))
}

/// Makes a cgroup. What it cannot limit is left to the limits of processes.
fn make_cgroup(folder: &Path, limits: &Limits) -> io::Result<()> {
    fs::create_dir(folder)?;
    let set = |file: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = fs::write(folder.join(file), value);
        }
    };
    set("memory.max", limits.memory_bytes.map(|bytes| bytes.to_string()));
    set("memory.swap.max", limits.memory_bytes.map(|_| "0".to_owned()));
    set("pids.max", limits.processes.map(|count| count.to_string()));
    set(
        "cpu.max",
        limits.cpu_percent.map(|percent| format!("{} 100000", percent.saturating_mul(1000).max(1000))),
    );
    Ok(())
}

fn start(
    task: &Task,
    config: &LocalConfig,
    ended: async_channel::Sender<()>,
    children: Children,
) -> io::Result<u32> {
    let folder = &task.folder;
    attempt::prepare(task)?;
    let limits = task.submission.limits.or(config.limits);
    let cgroup = cgroup(task, config).filter(|folder| make_cgroup(folder, &limits).is_ok());
    let launch = Launch::new(task, &limits, config.grace_s, cgroup.as_deref(), &config.path);
    let mut command = launch.command();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.current_dir(folder).process_group(0).spawn()?;
    let pid = child.id();
    locked(&children).insert(folder.clone());
    let folder = folder.clone();
    // Somebody has to reap it, and then it has ended.
    std::thread::Builder::new().name("job".into()).stack_size(64 << 10).spawn(move || {
        let _ = child.wait();
        locked(&children).remove(&folder);
        let _ = ended.try_send(());
    })?;
    Ok(pid)
}

/// Process and start time of a line of `/proc/PID/stat`, and whether it is a zombie.
pub(crate) fn stat(line: &str) -> Option<(i32, u64, bool)> {
    let (pid, rest) = line.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let is_zombie = matches!(fields.next()?, "Z" | "X");
    // The state is the third field, the start time the 22nd.
    Some((pid.parse().ok()?, fields.nth(18)?.parse().ok()?, is_zombie))
}

/// Whether the wrapper of `pid` runs: the same process, in the same boot of the system.
fn is_alive(told: &str) -> bool {
    let Some((boot, line)) = told.split_once('\n') else { return false };
    let Some((pid, start, _)) = stat(line) else { return false };
    let same_boot =
        fs::read_to_string("/proc/sys/kernel/random/boot_id").is_ok_and(|now| now.trim_end() == boot);
    let now = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    let now = now.and_then(|line| stat(line.trim_end()));
    same_boot && now.is_some_and(|(_, now, is_zombie)| now == start && !is_zombie)
}

fn look(task: &Task, config: &LocalConfig, now_s: u64, told_to_end: Option<u64>, is_child: bool) -> Progress {
    let folder = &task.folder;
    let bytes = || attempt::output_bytes(task);
    if let Some(outcome) = attempt::status(task, &config.limits) {
        clean(task, config);
        return Progress::Ended(outcome, bytes());
    }
    let Some(told) = attempt::fact(folder, "pid") else {
        if is_child {
            // Its wrapper has just begun.
            return Progress::Running(String::new());
        }
        let _ = fs::create_dir_all(folder);
        if attempt::never_starts(folder) {
            clean(task, config);
            return Progress::Ended(Outcome::NeverStarted, 0);
        }
        if now_s < task.started_s.saturating_add(PID_WITHIN_S) {
            return Progress::Running(String::new());
        }
        return Progress::Ended(Outcome::Vanished(and_disk("its wrapper never told its process", folder)), 0);
    };
    let is_alive = is_alive(&told);
    if task.is_cancelling || !is_alive {
        // A script without its wrapper is not watched by anybody: it ends.
        let is_late = told_to_end.is_some_and(|since| now_s >= since.saturating_add(config.grace_s));
        end(task, config, &told, is_late || !is_alive);
    }
    if is_alive {
        return Progress::Running(String::new());
    }
    // It may have written its status since.
    let outcome = attempt::status(task, &config.limits);
    clean(task, config);
    let vanished = || Outcome::Vanished(and_disk("its process is gone and left no status", folder));
    Progress::Ended(outcome.unwrap_or_else(vanished), bytes())
}

/// Why an attempt is lost, and whether its disk is full.
fn and_disk(why: &str, folder: &Path) -> String {
    match rustix::fs::statvfs(folder) {
        Ok(disk) if disk.f_bavail == 0 => format!("{why}; the disk of {} is full", folder.display()),
        _ => why.to_owned(),
    }
}

/// Ends the script: with TERM, or with KILL.
fn end(task: &Task, config: &LocalConfig, told: &str, is_kill: bool) {
    let signal = if is_kill { Signal::KILL } else { Signal::TERM };
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let is_this_boot = told.split_once('\n').is_some_and(|(then, _)| then == boot.trim_end());
    // A group's number is not used again while a process of the group is left; one that started before the job is another.
    let group = attempt::fact(&task.folder, "group").and_then(|group| Pid::from_raw(group.parse().ok()?));
    if let Some(group) = group.filter(|&group| is_this_boot && is_ours(group, told)) {
        let _ = kill_process_group(group, signal);
    }
    if let Some(cgroup) = cgroup(task, config).filter(|_| is_kill) {
        let _ = fs::write(cgroup.join("cgroup.kill"), "1");
    }
}

/// Whether a process of `group` may be one of the job: its leader, if it is left, started after the wrapper, and before
/// anything that could have its number again.
fn is_ours(group: Pid, told: &str) -> bool {
    let wrapper = told.split_once('\n').and_then(|(_, line)| stat(line));
    let leader = fs::read_to_string(format!("/proc/{}/stat", group.as_raw_nonzero())).ok();
    match (wrapper, leader.and_then(|line| stat(line.trim_end()))) {
        (Some((_, begin, _)), Some((_, start, _))) => start >= begin && start <= begin + 1000,
        _ => true,
    }
}

/// Removes the cgroup of an attempt that has ended, and what is left in it.
fn clean(task: &Task, config: &LocalConfig) {
    if let Some(cgroup) = cgroup(task, config).filter(|folder| folder.exists()) {
        let _ = fs::write(cgroup.join("cgroup.kill"), "1");
        let _ = fs::remove_dir(cgroup);
    }
    let _ = fs::set_permissions(&task.folder, fs::Permissions::from_mode(0o700));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_host_decided_the_next_one_knows() {
        let folder = std::env::temp_dir().join(format!("inhost-started-{}", std::process::id()));
        let [never, begun] = ["never", "begun"].map(|name| folder.join(name));
        fs::create_dir_all(&never).unwrap();
        // Decided, and killed before it was noted.
        assert!(attempt::never_starts(&never) && attempt::never_starts(&never));
        fs::create_dir_all(begun.join("started")).unwrap();
        assert!(!attempt::never_starts(&begun));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn stat_has_process_start_and_state() {
        let line = "4711 (a) (b) S 1 4711 4711 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 2";
        assert_eq!(stat(line), Some((4711, 123_456, false)));
        assert_eq!(stat(&line.replace(" S ", " Z ")), Some((4711, 123_456, true)));
        for cut in 0..line.len() - 3 {
            let _ = stat(&line[..cut]);
        }
    }
}
