//! Experiments at a cluster: an array of jobs, each with a part of the runs and a file of its own; the files are gathered.

use super::{broken, open};
use crate::args::LabRun;
use crate::failure::Failure;
use crate::output::show;
use inhost_lab::experiment::Experiment;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Whether there is a Slurm here, before anything is written for it.
pub fn find() -> Result<(), Failure> {
    let found = Command::new("sbatch").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.map(drop).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Failure::operation(
            "sbatch is not installed here, and --on slurm needs it; run this at a node of the cluster that submits jobs, or \
             without --on, which runs here",
        ),
        _ => Failure::operation(format!("sbatch cannot be started: {e}")),
    })
}

/// Hands the experiments over, waits for their end, and gathers what they have measured.
pub fn run(arguments: &LabRun, experiments: &[Experiment]) -> Result<(), Failure> {
    let failed = |what: &str, e: std::io::Error| Failure::operation(format!("{what}: {e}"));
    // Nodes see the folder of the results under the same name.
    let results = std::path::absolute(&arguments.results).map_err(|e| broken(&arguments.results, e))?;
    let store = open(&results)?;
    let program = std::env::current_exe().map_err(|e| failed("this program is not found", e))?;
    let folder = std::env::current_dir().map_err(|e| failed("the current folder", e))?;
    let part = |number: &str| PathBuf::from(format!("{}.{number}-of-{}", results.display(), arguments.jobs));
    let mut words =
        vec![program.to_string_lossy().into_owned(), "lab".into(), "run".into(), "--quiet".into()];
    words.extend(arguments.experiments.iter().cloned());
    words.extend(["--workers".into(), arguments.workers.unwrap_or(1).to_string()]);
    if arguments.again {
        words.push("--again".into());
    }
    let quoted = |word: &String| format!("'{}'", word.replace('\'', "'\\''"));
    let command = words.iter().map(quoted).collect::<Vec<_>>().join(" ");
    // The number of the part is the job's index.
    let own = quoted(&format!("{}.", results.display()));
    let script = format!(
        "#!/bin/sh\nexec {command} --part $SLURM_ARRAY_TASK_ID/{jobs} --results {own}$SLURM_ARRAY_TASK_ID-of-{jobs}\n",
        jobs = arguments.jobs
    );
    // What is known already is not measured again there.
    for number in 0..arguments.jobs {
        let path = part(&number.to_string());
        let other = open(&path)?;
        other.gather(&results).map_err(|e| broken(&path, e))?;
    }
    let mut sbatch = Command::new("sbatch")
        .args(["--wait", "--parsable", "--job-name=inhost-lab", "--export=NIL"])
        .arg(format!("--array=0-{}", arguments.jobs - 1))
        .arg(format!("--chdir={}", folder.display()))
        .arg(format!("--output={}.%a-of-{}.log", results.display(), arguments.jobs))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| failed("sbatch", e))?;
    if let Some(mut input) = sbatch.stdin.take() {
        // One that does not read it ends, and says why.
        let _ = input.write_all(script.as_bytes());
    }
    if !arguments.quiet {
        let names: Vec<&str> = experiments.iter().map(|experiment| experiment.name.as_str()).collect();
        show(&format!("{} jobs at Slurm: {}\n", arguments.jobs, names.join(", ")));
    }
    let ended = sbatch.wait_with_output().map_err(|e| failed("sbatch", e))?;
    let forget_parts = || {
        for number in 0..arguments.jobs {
            for end in ["", "-wal", "-shm", ".log"] {
                let _ = std::fs::remove_file(format!("{}{end}", part(&number.to_string()).display()));
            }
        }
    };
    // The number of the array comes first of all, where there is one.
    if !ended.status.success() && ended.stdout.trim_ascii().is_empty() {
        forget_parts();
        return Err(Failure::operation("sbatch did not take the jobs; what it says of it stands above"));
    }
    for number in 0..arguments.jobs {
        let path = part(&number.to_string());
        store.gather(&path).map_err(|e| broken(&path, e))?;
    }
    if !ended.status.success() {
        return Err(Failure::operation(format!(
            "a job failed; its words are in {}.N-of-{}.log, and the same command goes on where it was",
            results.display(),
            arguments.jobs
        )));
    }
    forget_parts();
    Ok(())
}
