//! What Slurm's programs are told, and what they say, as values (sbatch(1), squeue(1), sacct(1) of version 22.05 and later).

use std::collections::BTreeMap;

use crate::attempt::quote;
use crate::codec::Limits;
use crate::store::Task;

/// What `squeue` is to print of each job: number, state, reason and comment.
pub const SQUEUE: [&str; 6] = ["--me", "--array", "--noheader", "--states=all", "--format", "%i|%T|%r|%k"];
/// What `sacct` is to print, before the number of a job.
pub const SACCT: [&str; 5] = ["--allocations", "--noheader", "--parsable2", "--format=JobID,State", "--jobs"];
/// Octets of a job's name at Slurm.
const NAME_BYTES: usize = 64;

/// Where a job is at Slurm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It has not started.
    Waits,
    /// It has started, and has not ended.
    Runs,
    /// Its script has ended.
    Over,
    /// It was cancelled.
    Cancelled,
    /// Its time was over.
    TimeOut,
    /// It had too little memory.
    OutOfMemory,
    /// Its node is gone, or was given to another job.
    Lost,
}

impl Stage {
    /// Of the name of a state, which may have more behind it, as in `CANCELLED by 0`.
    pub fn named(state: &str) -> Stage {
        match state.split([' ', '+']).next().unwrap_or_default() {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT" | "RESV_DEL_HOLD" => {
                Stage::Waits
            }
            "COMPLETED" | "FAILED" => Stage::Over,
            "CANCELLED" | "REVOKED" => Stage::Cancelled,
            "TIMEOUT" | "DEADLINE" => Stage::TimeOut,
            "OUT_OF_MEMORY" => Stage::OutOfMemory,
            "NODE_FAIL" | "BOOT_FAIL" | "PREEMPTED" => Stage::Lost,
            // CONFIGURING, RUNNING, SUSPENDED, STOPPED, SIGNALING, STAGE_OUT, COMPLETING, RESIZING, and what is new.
            _ => Stage::Runs,
        }
    }
}

/// A job, or an element of an array, at Slurm.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its number: `12`, or `12_3`.
    pub id: String,
    /// Its state, as Slurm names it.
    pub state: String,
    /// Why it waits.
    pub reason: String,
    /// Its comment.
    pub comment: String,
}

/// The lines of `squeue` with `SQUEUE`. What is not one of them is left out.
pub fn squeue(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let mut fields = line.splitn(4, '|').map(str::to_owned);
        let (id, state, reason) = (fields.next()?, fields.next()?, fields.next()?);
        let comment = fields.next()?;
        number(&id)?;
        Some(Row { id, state, reason, comment })
    };
    text.lines().filter_map(row).collect()
}

/// The state of a job in the lines of `sacct` with `SACCT`.
pub fn sacct(text: &str, id: &str) -> Option<String> {
    let state = |line: &str| Some(line.split_once('|').filter(|(of, _)| *of == id)?.1.to_owned());
    // A job that was queued again has a line for each time.
    text.lines().filter_map(state).next_back()
}

/// The job's number in what `sbatch --parsable` says, which may name its cluster, too.
pub fn sbatch(text: &str) -> Option<&str> {
    text.trim().split(';').next().filter(|id| number(id).is_some_and(|(_, index)| index.is_none()))
}

/// The number of a job, and the index of an element.
pub fn number(id: &str) -> Option<(u64, Option<u32>)> {
    let (job, index) = id.split_once('_').map_or((id, None), |(job, index)| (job, Some(index)));
    let digits = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
    if !digits(job) || !index.is_none_or(digits) {
        return None;
    }
    Some((job.parse().ok()?, index.map(str::parse).transpose().ok()?))
}

/// What names a batch of elements at Slurm, in the job's comment, so that it is found again after a crash: the attempt of
/// the array, or of the job.
pub fn comment(task: &Task) -> String {
    // The key is that of the queue, the job's number and the attempt's.
    let queue = task.key.rsplitn(3, '-').last().unwrap_or(&task.key);
    format!("inhost-{queue}-{}-{}", task.array.unwrap_or(task.id), task.attempt)
}

/// Tasks that one `sbatch` submits: elements of an array in the same attempt, or a job by itself.
pub fn batches(tasks: &[Task]) -> Vec<Vec<usize>> {
    let mut batches: BTreeMap<(i64, u32), Vec<usize>> = BTreeMap::new();
    for (number, task) in tasks.iter().enumerate() {
        batches.entry((task.array.unwrap_or(task.id), task.attempt)).or_default().push(number);
    }
    batches.into_values().collect()
}

/// The arguments of `sbatch` for a batch.
pub fn arguments(batch: &[&Task], limits: &Limits, grace_s: u64) -> Vec<String> {
    let Some(first) = batch.first() else { return Vec::new() };
    let mut name: String = first.submission.name.chars().filter(|char| !char.is_control()).collect();
    name.truncate(name.floor_char_boundary(NAME_BYTES));
    let mut arguments = vec![
        "--parsable".to_owned(),
        // The queue decides whether there is another attempt.
        "--no-requeue".to_owned(),
        "--export=NIL".to_owned(),
        format!("--job-name={name}"),
        format!("--comment={}", comment(first)),
        "--chdir=/".to_owned(),
        "--input=/dev/null".to_owned(),
        "--output=/dev/null".to_owned(),
    ];
    let indices: Vec<String> =
        batch.iter().filter_map(|task| task.index).map(|index| index.to_string()).collect();
    if !indices.is_empty() {
        arguments.push(format!("--array={}", indices.join(",")));
    }
    if let Some(wall_s) = limits.wall_s {
        // The wrapper is the one who ends it, with a status.
        arguments.push(format!("--time={}", wall_s.saturating_add(grace_s) / 60 + 2));
    }
    if let Some(bytes) = limits.memory_bytes {
        arguments.push(format!("--mem={}K", bytes.div_ceil(1024)));
    }
    if let Some(percent) = limits.cpu_percent {
        arguments.push(format!("--cpus-per-task={}", percent.div_ceil(100).max(1)));
    }
    arguments
}

/// The script of a batch: it finds the folder of its element, and starts the wrapper there.
pub fn script(batch: &[&Task]) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let mut text = b"#!/bin/sh\ncase ${SLURM_ARRAY_TASK_ID-} in\n".to_vec();
    for task in batch {
        text.extend(task.index.map_or_else(|| "''".to_owned(), |index| index.to_string()).into_bytes());
        text.extend(b") cd ");
        quote(&mut text, task.folder.as_os_str().as_bytes());
        text.extend(b" ;;\n");
    }
    text.extend(b"*) exit 125 ;;\nesac || exit 125\nexec /bin/sh ./launch\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn task(id: i64, array: Option<i64>, index: Option<u32>) -> Task {
        Task {
            id,
            attempt: 2,
            array,
            index,
            user: "ada".into(),
            submission: Arc::new(crate::codec::Submission::new("tides\n", ":")),
            folder: format!("/q/it's/{id}/2").into(),
            handle: None,
            is_cancelling: false,
            started_s: 0,
            reason: String::new(),
            key: format!("0a1b-{id}-2"),
        }
    }

    #[test]
    fn lines_of_slurm_are_values() {
        let rows =
            squeue("12_3|RUNNING|None|inhost-0a1b-7-1\n13|PENDING|Resources|a|b\nnonsense\n1_x|a|b|c\n");
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].id.as_str(), rows[1].comment.as_str()), ("12_3", "a|b"));
        assert_eq!(
            sacct("12|COMPLETED\n12_3|NODE_FAIL\n12_3|CANCELLED by 0\n", "12_3").unwrap(),
            "CANCELLED by 0"
        );
        assert_eq!(sacct("", "12"), None);
        assert_eq!(
            (sbatch("77\n"), sbatch("77;main\n"), sbatch("error"), sbatch("")),
            (Some("77"), Some("77"), None, None)
        );
        assert_eq!(
            [number("12_3"), number("12"), number("-1"), number("1_"), number("1_2_3")],
            [Some((12, Some(3))), Some((12, None)), None, None, None]
        );
        let stages =
            ["PENDING", "RUNNING", "COMPLETED", "CANCELLED by 0", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"];
        assert_eq!(
            stages.map(Stage::named),
            [
                Stage::Waits,
                Stage::Runs,
                Stage::Over,
                Stage::Cancelled,
                Stage::Lost,
                Stage::OutOfMemory,
                Stage::TimeOut
            ]
        );
    }

    #[test]
    fn elements_of_an_array_go_together() {
        let tasks = [task(8, Some(7), Some(1)), task(12, None, None), task(9, Some(7), Some(4))];
        assert_eq!(batches(&tasks), [vec![0, 2], vec![1]]);
        assert_eq!(
            (comment(&tasks[2]), comment(&tasks[1])),
            ("inhost-0a1b-7-2".into(), "inhost-0a1b-12-2".into())
        );
        let limits = Limits {
            wall_s: Some(61),
            memory_bytes: Some(1025),
            cpu_percent: Some(150),
            ..Limits::default()
        };
        let words = arguments(&[&tasks[0], &tasks[2]], &limits, 5);
        for word in ["--array=1,4", "--job-name=tides", "--time=3", "--mem=2K", "--cpus-per-task=2"] {
            assert!(words.iter().any(|other| other == word), "{words:?}");
        }
        let text = String::from_utf8(script(&[&tasks[0], &tasks[2]])).unwrap();
        assert!(text.contains("4) cd '/q/it'\\''s/9/2' ;;\n"), "{text}");
        assert!(String::from_utf8(script(&[&tasks[1]])).unwrap().contains("'') cd "));
    }
}
