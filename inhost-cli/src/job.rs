//! `inhost job`: batch jobs of this host, or of another one.

mod desk;

use crate::args::{Job as Command, JobNamed, JobQueue, JobSubmit, Stands};
use crate::client::ClientHost;
use crate::failure::Failure;
use crate::netstat::table::{Column, table};
use crate::output::{show, show_octets};
use crate::through::HostChoice;
use crate::time::{now_s, relative};
use desk::{Desk, Place};
use futures_lite::future::or;
use inhost_base::Duration;
use inhost_common::Cleaner;
use inhost_jobs::codec::{After, Array, Job, Submission};
use inhost_jobs::deliver::Deliver;
use inhost_jobs::machine::{Need, State};
use inhost_jobs::queue::Output;
use inhost_jobs::store::{Change, Selection};
use inhost_runtime::{Runtime, entropy};
use inhost_socket::Host;
use inhost_stack::StackConfig;
use serde_json::json;
use std::fmt::Write as _;
use std::future::pending;
use std::io::{self, Read, Write as _};
use std::path::PathBuf;

/// How often a job is looked at whose end is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often the disk of the queue is looked at.
const LOOK_AT_DISK_EVERY: Duration = Duration::from_secs(1);
/// Width of the column that says why.
const WHY: usize = 36;

/// Runs a command.
pub fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Submit(arguments) => submit(arguments),
        Command::List { state, limit, at } => list(*state, (*limit).into(), at),
        Command::Show { id, at } => {
            let jobs = with_desk(at, async |desk, _| all_of(desk, *id).await)?;
            show(&match (&jobs[..], at.json) {
                ([job], true) => format!("{}\n", json!(job)),
                (jobs, true) => format!("{}\n", json!(jobs)),
                ([job], false) => whole(job, now_s()),
                (jobs, false) => listing(jobs, now_s(), WHY),
            });
            Ok(())
        }
        Command::Log { id, error, follow, at } => {
            let put: Put =
                if *error { (&[Output::Stderr], to_stdout) } else { (&[Output::Stdout], to_stdout) };
            let hint = goes_on(*id, at);
            with_desk(at, async |desk, host| {
                let printed = print_all(desk, host, *id, put, None, *follow).await;
                printed.map_err(|why| if *follow { format!("{why}; {hint}") } else { why })
            })
        }
        Command::Hold(named) => change(named, Change::Hold, "held"),
        Command::Release(named) => change(named, Change::Release, "released"),
        Command::Cancel(named) => change(named, Change::Cancel, "cancelled"),
    }
}

/// Does `work` at the queue that is meant.
fn with_desk<T>(
    at: &JobQueue,
    work: impl AsyncFnOnce(&Desk, &Host) -> Result<T, String>,
) -> Result<T, Failure> {
    let cannot_wait = |e: io::Error| Failure::operation(format!("the client cannot wait: {e}"));
    let done = match Place::find(at)? {
        Place::Here(section) => {
            let mut runtime = Runtime::new(StackConfig::default())
                .map_err(|e| Failure::operation(format!("the client cannot start: {e}")))?;
            let host = runtime.host().clone();
            let desk = Desk::here(&section, &host)?;
            let watch = tell_full_disk(section.folder(), &host);
            runtime.run(or(work(&desk, &host), watch)).map_err(cannot_wait)?
        }
        Place::There { target, client } => {
            let mut own = ClientHost::start(HostChoice::find(&at.reach)?)?;
            let host = own.runtime.host().clone();
            let desk = Desk::there(target, client, at, own.maker.clone(), &host)?;
            let done = own.runtime.run(work(&desk, &host)).map_err(cannot_wait)?;
            own.end()?;
            done
        }
    };
    done.map_err(|why| Failure::operation(format!("job: {why}")))
}

/// Says when the disk of a queue is full: then the states of its jobs are what they were before.
async fn tell_full_disk<T>(folder: PathBuf, host: &Host) -> T {
    // The last blocks of a disk are root's.
    let left = |disk: rustix::fs::StatVfs| match rustix::process::geteuid().is_root() {
        true => disk.f_bfree,
        false => disk.f_bavail,
    };
    while !rustix::fs::statvfs(&folder).is_ok_and(|disk| left(disk) == 0) {
        host.sleep(LOOK_AT_DISK_EVERY).await;
    }
    let shown = folder.display();
    crate::failure::print_error(format_args!(
        "the disk of {shown} is full: the host cannot note there which jobs have ended; make room"
    ));
    pending().await
}

fn submit(arguments: &JobSubmit) -> Result<(), Failure> {
    let submission = submission(arguments)?;
    submission.check().map_err(|why| Failure::usage(format!("job: {why}")))?;
    let key = match &arguments.key {
        Some(key) => key.clone(),
        None => random_key()?,
    };
    let at = &arguments.at;
    let ended = with_desk(at, async |desk, host| {
        let id = desk.submit(&key, submission).await?;
        match (at.json, arguments.follow) {
            (true, _) => show(&format!("{}\n", json!({ "job": id }))),
            (false, false) => show(&format!("job {id}\n")),
            // Standard output is the job's.
            (false, true) => crate::failure::print_error(format_args!("job {id}")),
        }
        if let Some(advice) = desk.advice().filter(|_| !at.json) {
            crate::failure::print_error(advice);
        }
        if !arguments.follow {
            return Ok(None);
        }
        let put = if at.json { to_stderr } else { to_its_own };
        let followed = async {
            print_all(desk, host, id, (&[Output::Stdout, Output::Stderr], put), Some(1), true).await?;
            wait(desk, host, id).await
        };
        let jobs = followed.await.map_err(|why| format!("{why}; {}", goes_on(id, at)))?;
        Ok(Some((id, jobs)))
    })?;
    let Some((id, jobs)) = ended else { return Ok(()) };
    if at.json {
        show(&match &jobs[..] {
            [job] => format!("{}\n", json!(job)),
            jobs => format!("{}\n", json!(jobs)),
        });
    }
    for job in jobs.iter().filter(|job| job.state() == State::Done && !job.reason.is_empty()) {
        crate::failure::print_error(format_args!("{}: {}", called(job), clean(&job.reason)));
    }
    match how_it_failed(id, &jobs) {
        None => Ok(()),
        Some(how) => Err(Failure::operation(format!("{how}; inhost job show{} {id} tells more", server(at)))),
    }
}

/// How a job or an array has failed, if it has.
fn how_it_failed(id: i64, jobs: &[Job]) -> Option<String> {
    let mut failed = jobs.iter().filter(|job| job.state() != State::Done);
    let first = failed.next()?;
    let state = match first.state() {
        State::Failed => "failed",
        State::Cancelled => "was cancelled",
        _ => "was lost",
    };
    let why = clean(&why(first));
    let how = match why.as_str() {
        "" | "cancelled" => format!("{} {state}", called(first)),
        why => format!("{} {state}: {why}", called(first)),
    };
    Some(match (jobs.len(), 1 + failed.count()) {
        (1, _) => how,
        (all, count) => format!("array {id}: {count} of {all} jobs did not succeed; {how}"),
    })
}

/// A job by its number, with that of its element.
fn called(job: &Job) -> String {
    match job.index {
        Some(index) => format!("job {}, element {index},", job.id),
        None => format!("job {}", job.id),
    }
}

/// What to do when following a job has ended before the job.
fn goes_on(id: i64, at: &JobQueue) -> String {
    format!("job {id} may go on: inhost job log --follow{} {id} shows it", server(at))
}

/// The server's option of a command that is advised.
fn server(at: &JobQueue) -> String {
    at.server.as_ref().map(|server| format!(" --server {server}")).unwrap_or_default()
}

/// The name of one submission, by which it is known when it is sent twice.
fn random_key() -> Result<String, Failure> {
    let random = entropy().map_err(|e| Failure::operation(format!("the system has no entropy: {e}")))?;
    Ok(random[..16].iter().fold(String::new(), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    }))
}

fn submission(arguments: &JobSubmit) -> Result<Submission, Failure> {
    let path = &arguments.script;
    let is_input = path.as_os_str() == "-";
    let failed = |e| Failure::operation(format!("cannot read {}: {e}", path.display()));
    let mut script = String::new();
    match is_input {
        true => std::io::stdin().read_to_string(&mut script).map_err(failed)?,
        false => {
            std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut script)).map_err(failed)?
        }
    };
    let own_name = path.file_stem().filter(|_| !is_input).map(|name| name.to_string_lossy().into_owned());
    let name = arguments.name.clone().or(own_name).unwrap_or_else(|| "job".into());
    let mut job = Submission::new(&name, &script);
    job.environment = arguments.env.iter().cloned().collect();
    job.to.clone_from(&arguments.to);
    job.priority = arguments.priority;
    job.array = arguments.array.map(|(first, last, at_a_time)| Array { first, last, at_a_time });
    let need = |how: &str| match how {
        "afterok" => Need::AfterOk,
        "afterany" => Need::AfterAny,
        _ => Need::AfterNotOk,
    };
    job.after = arguments.after.iter().map(|(how, job)| After { need: need(how), job: *job }).collect();
    job.delay_s = arguments.delay_s.unwrap_or(0);
    (job.retries, job.retry_delay_s) = (arguments.retries, arguments.retry_delay);
    job.is_held = arguments.hold;
    let limits = &mut job.limits;
    (limits.wall_s, limits.cpu_s) = (arguments.wall, arguments.cpu);
    (limits.memory_bytes, limits.file_bytes) = (arguments.memory, arguments.file_size);
    (limits.open_files, limits.processes) = (arguments.open_files, arguments.processes);
    limits.output_bytes = arguments.output;
    job.deliver = arguments.deliver.iter().map(|to| deliver(to)).collect();
    job.replace = arguments.replace;
    Ok(job)
}

fn deliver(to: &str) -> Deliver {
    match to {
        to if to.starts_with('/') => Deliver::File(to.into()),
        to if to.contains("://") => Deliver::Ftp(to.into()),
        to => Deliver::Mail(to.into()),
    }
}

/// Streams of a job, and where their octets go; false when nobody reads them any more.
type Put<'a> = (&'a [Output], fn(Output, &[u8]) -> bool);

/// As the job wrote it, as `cat` would give it.
fn to_stdout(_: Output, octets: &[u8]) -> bool {
    show_octets(octets)
}

fn to_stderr(_: Output, octets: &[u8]) -> bool {
    // As for every other line there: if it is closed, nobody wants to read it.
    let _ = io::stderr().write_all(octets);
    true
}

fn to_its_own(output: Output, octets: &[u8]) -> bool {
    match output {
        Output::Stdout => to_stdout(output, octets),
        Output::Stderr => to_stderr(output, octets),
    }
}

/// Prints the output of a job, or of the elements of an array, one after the other.
async fn print_all(
    desk: &Desk,
    host: &Host,
    id: i64,
    put: Put<'_>,
    attempt: Option<u32>,
    follow: bool,
) -> Result<(), String> {
    let jobs = all_of(desk, id).await?;
    for job in jobs.iter().rev() {
        let title = job.array.map(|_| format!("{}:", called(job).trim_end_matches(',')));
        if !print_output(desk, host, job.id, put, title, attempt, follow).await? {
            break;
        }
    }
    Ok(())
}

/// Prints the output of an attempt from its beginning, of the latest one for `None`: to its end of now; to follow a job,
/// that of the attempts after it, too, until the job is over. False when nobody reads it any more.
async fn print_output(
    desk: &Desk,
    host: &Host,
    id: i64,
    (outputs, put): Put<'_>,
    mut title: Option<String>,
    mut attempt: Option<u32>,
    follow: bool,
) -> Result<bool, String> {
    let mut streams: Vec<(Output, u64)> = outputs.iter().map(|&output| (output, 0)).collect();
    loop {
        let (mut is_open, mut is_at_end) = (false, true);
        for (output, offset) in &mut streams {
            let heard = desk.output(id, *output, attempt, *offset).await?;
            if follow && attempt.is_none() && heard.attempt > 0 {
                attempt = Some(heard.attempt);
            }
            is_open |= heard.is_open;
            if heard.octets.is_empty() {
                continue;
            }
            is_at_end = false;
            *offset += heard.octets.len() as u64;
            if let Some(title) = title.take() {
                crate::failure::print_error(title);
            }
            if !put(*output, &heard.octets) {
                return Ok(false);
            }
        }
        if !is_at_end {
            continue;
        }
        if !follow || !is_open {
            return Ok(true);
        }
        let latest = desk.job(id).await?.attempts;
        match attempt {
            Some(now) if latest > now => {
                attempt = Some(now + 1);
                streams.iter_mut().for_each(|(_, offset)| *offset = 0);
            }
            _ => host.sleep(LOOK_EVERY).await,
        }
    }
}

/// The elements of the array of that number, or the one job.
async fn all_of(desk: &Desk, id: i64) -> Result<Vec<Job>, String> {
    let mut selection = Selection::default();
    selection.array = Some(id);
    let mut jobs = desk.list(selection).await?;
    if jobs.is_empty() {
        jobs.push(desk.job(id).await?);
    }
    Ok(jobs)
}

/// Waits for the end of a job, or of all elements of an array.
async fn wait(desk: &Desk, host: &Host, id: i64) -> Result<Vec<Job>, String> {
    loop {
        let jobs = all_of(desk, id).await?;
        if jobs.iter().all(|job| job.state().is_over()) {
            return Ok(jobs);
        }
        host.sleep(LOOK_EVERY).await;
    }
}

fn change(named: &JobNamed, change: Change, done: &str) -> Result<(), Failure> {
    with_desk(&named.at, async |desk, _| desk.change(named.id, change).await)?;
    show(&match named.at.json {
        true => format!("{}\n", json!({ "job": named.id, "is": done })),
        false => format!("job {} {done}\n", named.id),
    });
    Ok(())
}

fn list(state: Option<Stands>, limit: usize, at: &JobQueue) -> Result<(), Failure> {
    let mut selection = Selection::default();
    selection.count = limit;
    selection.state = state.map(|state| match state {
        Stands::Held => State::Held,
        Stands::Waiting => State::Waiting,
        Stands::Queued => State::Queued,
        Stands::Running => State::Running,
        Stands::Done => State::Done,
        Stands::Failed => State::Failed,
        Stands::Cancelled => State::Cancelled,
        Stands::Lost => State::Lost,
    });
    let jobs = with_desk(at, async |desk, _| desk.list(selection).await)?;
    if at.json {
        show(&format!("{}\n", json!(jobs)));
        return Ok(());
    }
    show(&if jobs.is_empty() { "No jobs.\n".to_owned() } else { listing(&jobs, now_s(), WHY) });
    Ok(())
}

/// A table of jobs. `now` is the time in seconds since 1970, `why` the width of the last column.
pub fn listing(jobs: &[Job], now: u64, why_width: usize) -> String {
    let columns = [
        Column::Right("Array", 6),
        Column::Right("Job", 7),
        Column::Left("Name", 18),
        Column::Left("User", 8),
        Column::Left("State", 9),
        Column::Left("Since", 10),
        Column::Left("Why", why_width),
    ];
    let rows = jobs.iter().map(|job| {
        let since_s = job.ended_s.or(job.started_s).unwrap_or(job.submitted_s);
        [
            job.array.map(|array| array.to_string()).unwrap_or_default(),
            job.id.to_string(),
            clean(&named(job)),
            clean(&job.user),
            job.state().name().to_owned(),
            relative(since_s, now),
            clean(&why(job)),
        ]
    });
    table(columns, rows)
}

/// The name, with the index of an array.
fn named(job: &Job) -> String {
    job.index.map_or_else(|| job.name.clone(), |index| format!("{}[{index}]", job.name))
}

fn why(job: &Job) -> String {
    match job.exit_status {
        _ if !job.reason.is_empty() => job.reason.clone(),
        Some(status) if status != 0 => format!("status {status}"),
        _ => job.delivery.clone(),
    }
}

fn whole(job: &Job, now: u64) -> String {
    let time = |at_s: u64| relative(at_s, now);
    let lines = [
        ("Job", Some(job.id.to_string())),
        ("Name", Some(job.name.clone())),
        ("Array", job.array.zip(job.index).map(|(array, index)| format!("{array}, element {index}"))),
        ("User", Some(job.user.clone())),
        ("State", Some(job.state().name().to_owned())),
        ("Why", Some(job.reason.clone())),
        ("Runs at", job.to.clone()),
        ("Known there as", job.handle.clone()),
        ("Priority", Some(job.priority.to_string())),
        ("Submitted", Some(time(job.submitted_s))),
        ("Not before", Some(job.not_before_s).filter(|&at_s| at_s > 0).map(time)),
        ("Started", job.started_s.map(time)),
        ("Ended", job.ended_s.map(time)),
        ("Attempts", Some(job.attempts.to_string())),
        ("Status", job.exit_status.map(|status| status.to_string())),
        ("Output", Some(format!("{} bytes", job.output_bytes)).filter(|_| job.state().is_over())),
        ("Delivery", Some(job.delivery.clone())),
    ];
    lines.into_iter().fold(String::new(), |mut text, (title, value)| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let _ = writeln!(text, "{title:<15} {}", clean(&value));
        }
        text
    })
}

/// A text of users as a part of one line.
fn clean(text: &str) -> String {
    Cleaner::line(text.as_bytes())
}
