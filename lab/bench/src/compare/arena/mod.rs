//! Where a stack meets the kernel: a network namespace with the kernel's end of a link, what runs there, and the process
//! under test at the other end.

mod ends;
mod flood;
mod machine_time;
mod place;

use super::result::Answer;
use ends::{Ends, Load};
use machine_time::MachineTime;
pub use place::{KERNEL, Link, PROCESS, Place};
use rustix::process::{Resource, Rlimit};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::park_timeout;
use std::time::Duration;

/// The share of the time that goes by before anything is counted.
const WARM_UP: f64 = 0.3;
/// The share of the time that each load of a flood takes; there are four of them.
const FLOOD_PHASE: f64 = 0.25;
/// Seconds that a process runs beyond what is counted.
const SLACK_S: f64 = 0.5;
/// Attempts at a run.
const TRIES: u32 = 3;
/// The longest that a process may take to connect, and to end.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Descriptors of this process where it opens many connections.
const DESCRIPTORS: u64 = 16_384;

/// Runs a process under `word`, which is the link and the load: `tun-plain:send`.
pub fn run(program: &Path, word: &str, seconds: f64) -> Result<Answer, String> {
    let (link, load) = word.split_once(':').ok_or("a link and a load are wanted")?;
    let link: place::Link = link.parse()?;
    let (load, is_called) = ends::load(load)?;
    let mut tries = 0;
    loop {
        // Its own thread: it changes its namespace for good.
        let answer = std::thread::scope(|scope| {
            let running = scope.spawn(|| measure(program, word, link, (load, is_called), seconds));
            running.join().map_err(|_| "the measuring thread failed".to_owned())?
        });
        tries += 1;
        match answer {
            // On a busy machine a device may come up so late that the first segment is lost.
            Err(why) if tries < TRIES => eprintln!("{word}: {why}; once more"),
            done => return done,
        }
    }
}

fn measure(
    program: &Path,
    word: &str,
    link: place::Link,
    (load, is_called): (Load, bool),
    seconds: f64,
) -> Result<Answer, String> {
    let place = Place::new(link)?;
    if load.is_on_one_core() {
        stay_on_one_core()?;
    }
    if load == Load::Open {
        raise_descriptor_limit()?;
    }
    let ends = Ends::start(load, is_called)?;
    let length = seconds * (1.0 + WARM_UP) + SLACK_S;
    let mut command = Command::new(program);
    command.arg(word).arg(length.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = place.spawn(&mut command)?;
    let counted = count(&ends, &mut child, seconds);
    if ends.counts_bytes() {
        ends.stop();
    }
    let answered = finish(child);
    ends.stop();
    let (counted, mut answer) = match (counted, answered) {
        // Why the process ended says more than that it did.
        (Err(_), Err(why)) | (Ok(_), Err(why)) => return Err(why),
        (Err(why), Ok(_)) => return Err(why),
        (Ok(counted), Ok(answer)) => (counted, answer),
    };
    answer.figures.extend(counted);
    Ok(answer)
}

/// Bytes and time of all cores within the window that counts.
fn count(ends: &Ends, child: &mut Child, seconds: f64) -> Result<Vec<(String, f64)>, String> {
    match ends.load {
        Load::Send | Load::Receive | Load::Bodies => {}
        Load::Echo | Load::EchoOnCores | Load::Connect | Load::Open => return Ok(Vec::new()),
        Load::Consume => return flood::run(Duration::from_secs_f64(seconds * FLOOD_PHASE)),
    }
    ends.wait_for_connection(TIMEOUT, || child.try_wait().is_ok_and(|ended| ended.is_none()))?;
    park_timeout(Duration::from_secs_f64(seconds * WARM_UP));
    let clock = inhost_runtime::Clock::start();
    let (began, bytes, time) = (clock.now(), ends.bytes(), MachineTime::now(child.id())?);
    park_timeout(Duration::from_secs_f64(seconds));
    let bytes = (ends.bytes() - bytes) as f64;
    let spent = MachineTime::now(child.id())?.since(&time);
    let seconds = clock.now().since(began).as_secs_f64();
    if bytes == 0.0 {
        return Err("nothing was carried".into());
    }
    let gigabytes = bytes / 1e9;
    Ok(vec![
        ("rate".into(), bytes * 8.0 / seconds / 1e9),
        ("cpu".into(), spent.machine_s / gigabytes),
        ("cpu-process".into(), spent.process_s / gigabytes),
    ])
}

/// Waits for the process, and reads what it says.
fn finish(mut child: Child) -> Result<Answer, String> {
    let mut waited = Duration::ZERO;
    while child.try_wait().map_err(|e| e.to_string())?.is_none() {
        if waited > TIMEOUT {
            let _ = child.kill();
            let _ = child.wait();
            return Err("it did not end in time".into());
        }
        waited += Duration::from_millis(10);
        park_timeout(Duration::from_millis(10));
    }
    super::run::read(child.wait_with_output().map_err(|e| e.to_string())?)
}

/// As many descriptors as there are connections: soft and hard limit, of a root who may raise it.
fn raise_descriptor_limit() -> Result<(), String> {
    let limit = Rlimit { current: Some(DESCRIPTORS), maximum: Some(DESCRIPTORS) };
    let has = rustix::process::getrlimit(Resource::Nofile);
    if has.current.is_none_or(|current| current >= DESCRIPTORS) {
        return Ok(());
    }
    rustix::process::setrlimit(Resource::Nofile, limit).map_err(|e| format!("{DESCRIPTORS} descriptors: {e}"))
}

/// This thread, and all that it starts from now on, keep to the first core.
fn stay_on_one_core() -> Result<(), String> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(0);
    rustix::thread::sched_setaffinity(None, &set).map_err(|e| format!("cannot keep to one core: {e}"))
}
