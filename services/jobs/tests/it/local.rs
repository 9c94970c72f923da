//! The queue as a process that runs jobs, and is killed.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use futures_lite::future::block_on;
use inhost_interop::{lines, pause, until, within};
use inhost_jobs::codec::{Job, Limits, Submission};
use inhost_jobs::deliver::Deliver;
use inhost_jobs::machine::State;
use inhost_jobs::store::{Change, Quotas, Scope, Selection, Store, StoreError};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// A folder that is removed with its test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("inhost-jobs-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Jobs of a test that fails end with it: the script's group, and by that its wrapper.
        for job in fs::read_dir(self.0.join("jobs")).into_iter().flatten().flatten() {
            for attempt in fs::read_dir(job.path()).into_iter().flatten().flatten() {
                if attempt.path().join("status").exists() {
                    continue;
                }
                let group = fs::read_to_string(attempt.path().join("group")).ok();
                if let Some(group) = group.and_then(|text| Pid::from_raw(text.trim().parse().ok()?)) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
            }
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The queue's process. Dropped, it is killed as by kill -9.
pub struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    pub fn start(folder: &Path, slots: usize) -> Process {
        Process::with(folder, slots, |_| {})
    }
    /// With more arguments and environment.
    pub fn with(folder: &Path, slots: usize, more: impl FnOnce(&mut Command)) -> Process {
        let mut program = std::env::current_exe().unwrap();
        program.pop();
        program.pop();
        program.push("examples/jobs_queue");
        let mut command = Command::new(program);
        command.args([folder.as_os_str(), slots.to_string().as_ref()]);
        more(&mut command);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = lines(child.stdout.take().unwrap());
        let process = Process { child, lines };
        assert_eq!(process.lines.recv_timeout(Duration::from_secs(30)).unwrap(), "ready");
        process
    }
    pub fn submit(&mut self, key: &str, script: &str) {
        let line = format!("{key}\t{}\n", script.replace('\n', "\\n"));
        // It may have been killed.
        let _ = self.child.stdin.as_mut().unwrap().write_all(line.as_bytes());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn all(store: &Store) -> Vec<Job> {
    let (mut jobs, mut selection) = (Vec::new(), Selection::default());
    loop {
        let page = block_on(store.list(Scope::All, selection.clone())).unwrap();
        let Some(last) = page.last() else { return jobs };
        selection.before = Some(last.id);
        jobs.extend(page);
    }
}

pub fn job(store: &Store, id: i64) -> Job {
    block_on(store.job(Scope::All, id)).unwrap()
}

/// Submits past the running process, which looks at its queue at least each minute; `poke` makes it look now.
pub fn submit(process: &mut Process, store: &Store, submission: Submission) -> i64 {
    let id = block_on(store.submit("ada", None, submission, Quotas::default(), 1)).unwrap().id;
    process.submit(&format!("poke{id}"), ":");
    id
}

pub fn ended(store: &Store, id: i64) -> Job {
    until("the job ends", || Some(job(store, id)).filter(|job| job.state().is_over()))
}

pub fn stdout(store: &Store, job: &Job) -> String {
    fs::read_to_string(store.folder(job.id, job.attempts).join("stdout")).unwrap()
}

#[test]
fn a_thousand_jobs_run() {
    const JOBS: usize = 1000;
    let folder = Folder::new("thousand");
    let mut process = Process::start(&folder.0, 8);
    let store = Store::open(&folder.0).unwrap();
    let begin = fs::metadata(folder.0.join("lock")).unwrap().modified().unwrap();
    for number in 0..JOBS {
        process.submit(&format!("k{number}"), &format!("echo {number}"));
    }
    let done = Selection::default();
    let all_done = || {
        let jobs = block_on(store.list(Scope::All, done.clone())).unwrap();
        let count = jobs.iter().filter(|job| job.state() == State::Done).count();
        (count == JOBS).then_some(jobs)
    };
    let jobs = within(Duration::from_secs(50), all_done).expect("all are done");
    let last = folder.0.join("jobs").join(jobs[0].id.to_string()).join("1/status");
    let took = fs::metadata(last).unwrap().modified().unwrap().duration_since(begin).unwrap();
    println!("{JOBS} jobs in {took:?}: {:.0} jobs/s", JOBS as f64 / took.as_secs_f64());
    for job in jobs {
        assert_eq!(stdout(&store, &job), format!("{}\n", &job.name[1..]));
    }
}

#[test]
fn a_killed_queue_loses_nothing_and_runs_nothing_twice() {
    const JOBS: usize = 120;
    let folder = Folder::new("killed");
    let (log, locks) = (folder.0.join("log"), folder.0.join("locks"));
    fs::create_dir(&locks).unwrap();
    let script = |key: &str| {
        let (log, lock) = (log.display(), locks.join(key).display().to_string());
        format!(
            "mkdir {lock} || echo double {key} >>{log}\necho start {key} >>{log}\nsleep 0.$(($$ % 4))5\nrmdir {lock}\necho end {key} >>{log}"
        )
    };
    let mut acknowledged = BTreeMap::new();
    let mut kills = 0;
    let mut random = inhost_base::Random::from_number(5);
    while acknowledged.len() < JOBS {
        let mut process = Process::start(&folder.0, 6);
        for key in (0..JOBS).map(|number| format!("k{number}")).filter(|key| !acknowledged.contains_key(key))
        {
            process.submit(&key, &script(&key));
        }
        pause(Duration::from_millis(u64::from(10 + random.public_below(150))));
        drop(process.child.kill());
        kills += 1;
        while let Ok(line) = process.lines.recv_timeout(Duration::from_secs(5)) {
            if let ["ack", key, id] = line.split(' ').collect::<Vec<_>>()[..] {
                acknowledged.insert(key.to_owned(), id.parse::<i64>().unwrap());
            }
        }
    }
    // All are in the queue; now it is killed while they run.
    for _ in 0..5 {
        let process = Process::start(&folder.0, 6);
        pause(Duration::from_millis(u64::from(50 + random.public_below(300))));
        drop(process);
        kills += 1;
    }
    let _process = Process::start(&folder.0, 16);
    let store = Store::open(&folder.0).unwrap();
    for (key, &id) in &acknowledged {
        let job = ended(&store, id);
        assert_eq!((job.state(), &job.name), (State::Done, key), "{job:?}");
    }
    let text = fs::read_to_string(&log).unwrap();
    let count = |line: String| text.lines().filter(|&other| other == line).count();
    for key in acknowledged.keys() {
        let counts =
            (count(format!("start {key}")), count(format!("end {key}")), count(format!("double {key}")));
        assert_eq!(counts, (1, 1, 0), "{key}");
    }
    let again = all(&store).iter().filter(|job| job.attempts > 1).count();
    println!("{kills} kills, {JOBS} jobs, {again} of them were started anew");
    assert_eq!(all(&store).len(), JOBS, "a key is one job");
}

#[test]
fn limits_hold_and_say_so() {
    let folder = Folder::new("limits");
    let mut process = Process::start(&folder.0, 8);
    let store = Store::open(&folder.0).unwrap();
    let mut limited = |script: &str, change: &dyn Fn(&mut Limits)| {
        let mut submission = Submission::new("limited", script);
        change(&mut submission.limits);
        let id = submit(&mut process, &store, submission);
        ended(&store, id)
    };
    let late = limited("sleep 60 & sleep 60", &|limits| limits.wall_s = Some(1));
    assert!(late.state() == State::Failed && late.reason.contains("time limit"), "{late:?}");
    let long = limited("head -c 100000 /dev/zero; echo x >&2", &|limits| limits.output_bytes = Some(1000));
    let told = "its output was cut at 1000 bytes (--output)";
    assert!(long.state() == State::Done && long.reason == told && long.output_bytes == 1002, "{long:?}");
    let large = limited("head -c 100000 /dev/zero >f", &|limits| limits.file_bytes = Some(1000));
    assert_eq!(large.state(), State::Failed, "{large:?}");
    assert!(large.reason.contains("(--file-size)"), "{large:?}");
    let busy = limited("while :; do :; done", &|limits| limits.cpu_s = Some(1));
    let told = "its processor time has reached the limit of 1 s (--cpu)";
    assert!(busy.state() == State::Failed && busy.reason == told, "{busy:?}");
    let stubborn = limited("trap : XCPU; while :; do :; done", &|limits| limits.cpu_s = Some(1));
    assert!(stubborn.state() == State::Failed && stubborn.reason == "signal 9", "{stubborn:?}");
    let open = limited("ulimit -n; ulimit -v", &|limits| {
        (limits.open_files, limits.memory_bytes) = (Some(33), Some(1 << 30));
    });
    assert_eq!(stdout(&store, &open), "33\n1048576\n");
    let other =
        limited("#!/usr/bin/env bash\n[[ $0 == */script ]] && echo $INHOST_JOB_NAME; pwd; exit 7", &|_| {});
    assert!(stdout(&store, &other).starts_with("limited\n") && other.exit_status == Some(7), "{other:?}");
    let clean = limited("env | cut -d= -f1 | sort | tr '\\n' ' '", &|_| {});
    assert!(!stdout(&store, &clean).contains("CARGO"), "{}", stdout(&store, &clean));
}

#[test]
fn a_cancelled_job_ends_with_all_that_it_started() {
    let folder = Folder::new("cancelled");
    let mut process = Process::start(&folder.0, 8);
    let store = Store::open(&folder.0).unwrap();
    let script = "trap '' TERM; (trap '' TERM; sleep 987) & echo $! ; wait; sleep 987";
    let id = submit(&mut process, &store, Submission::new("stubborn", script));
    let child = until("it runs", || {
        let text = fs::read_to_string(store.folder(id, 1).join("stdout")).ok()?;
        text.trim().parse::<u32>().ok()
    });
    // A second host takes the job over, and it is that one which ends it.
    drop(process);
    assert!(Path::new(&format!("/proc/{child}")).exists(), "it goes on");
    let mut process = Process::start(&folder.0, 8);
    block_on(store.change(Scope::User("ada".into()), id, Change::Cancel, 1)).unwrap();
    process.submit("poke", ":");
    let job = ended(&store, id);
    assert_eq!(job.state(), State::Cancelled, "{job:?}");
    until("its child is gone", || {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
    let again = block_on(store.change(Scope::All, id, Change::Cancel, 1));
    assert!(matches!(again, Ok(0)), "the same again is the same: {again:?}");
    let held = block_on(store.change(Scope::All, id, Change::Hold, 1));
    assert!(matches!(held, Err(StoreError::State(_))));
}

#[test]
fn a_job_whose_wrapper_is_killed_is_lost_and_retried() {
    let folder = Folder::new("lost");
    let mut process = Process::start(&folder.0, 8);
    let store = Store::open(&folder.0).unwrap();
    let mut submission =
        Submission::new("lost", "echo run; sleep 0.5; test $INHOST_JOB_ATTEMPT = 2 || sleep 976");
    (submission.retries, submission.retry_delay_s) = (1, Some(1));
    submission.deliver = vec![Deliver::File(folder.0.join("out.%j"))];
    let id = submit(&mut process, &store, submission);
    let wrapper = until("its process", || {
        let text = fs::read_to_string(store.folder(id, 1).join("pid")).ok()?;
        text.lines().nth(1)?.split(' ').next()?.parse().ok()
    });
    kill_process(Pid::from_raw(wrapper).unwrap(), Signal::KILL).unwrap();
    let job = ended(&store, id);
    assert_eq!((job.state(), job.attempts), (State::Done, 2), "{job:?}");
    let delivered = until("delivery", || fs::read_to_string(folder.0.join(format!("out.{id}"))).ok());
    assert_eq!(delivered, "run\n");
    until("it says so", || job_is_delivered(&store, id));
}

fn job_is_delivered(store: &Store, id: i64) -> Option<()> {
    job(store, id).delivery.is_empty().then_some(())
}
