//! Jobs at a real Slurm: its controller, two nodes, and its accounting over MariaDB, on this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use futures_lite::future::block_on;
use inhost_interop::slurm::{Cluster, LONG};
use inhost_interop::{output, run, until, within};
use inhost_jobs::codec::{After, Array, Job, Limits, Submission};
use inhost_jobs::machine::{Need, State};
use inhost_jobs::store::{Change, Scope, Store};

use crate::local::{Folder, Process, all, job, stdout, submit};

fn ended(store: &Store, id: i64) -> Job {
    within(LONG, || Some(job(store, id)).filter(|job| job.state().is_over()))
        .unwrap_or_else(|| panic!("does not end: {:?}", job(store, id)))
}

/// A queue that hands jobs to the cluster.
fn queue_of(cluster: &Cluster, folder: &Path) -> Process {
    Process::with(folder, 100, |command| {
        command.arg("slurm").env("SLURM_CONF", cluster.config());
    })
}

fn at_slurm(name: &str, script: &str, with: impl FnOnce(&mut Submission)) -> Submission {
    let mut submission = Submission::new(name, script);
    submission.to = Some("cluster".into());
    with(&mut submission);
    submission
}

#[test]
#[ignore = "long run: make test-slurm"]
fn an_array_whose_node_dies_is_done_once_each() {
    let folder = Folder::new("slurm");
    let mut cluster = Cluster::start(&folder.0);
    let mut queue = queue_of(&cluster, &folder.0);
    let store = Store::open(&folder.0).unwrap();
    let marks = folder.0.join("marks");
    fs::create_dir(&marks).unwrap();
    let script = format!(
        "echo part $INHOST_ARRAY_INDEX of $SLURM_ARRAY_TASK_ID\nsleep 4\necho $SLURMD_NODENAME >{}/$INHOST_ARRAY_INDEX-$INHOST_JOB_ATTEMPT\n",
        marks.display()
    );
    let array = Some(Array { first: 11, last: 26, at_a_time: None });
    let id = submit(
        &mut queue,
        &store,
        at_slurm("tides", &script, |job| {
            (job.array, job.retries, job.retry_delay_s) = (array, 3, Some(1));
        }),
    );
    let after = vec![After { need: Need::AfterOk, job: id }];
    let last = submit(&mut queue, &store, at_slurm("last", "echo all", |job| job.after = after));
    let on_n1 = || {
        let text = run(cluster.tool("squeue").args(["-h", "-r", "-t", "RUNNING", "-w", "n1", "-o", "%i"]));
        (text.lines().count() >= 3).then_some(())
    };
    until("n1 works", on_n1);
    // The queue's host dies, and a node.
    drop(queue);
    cluster.kill_node("n1");
    let mut queue = queue_of(&cluster, &folder.0);
    queue.submit("poke", ":");
    let end = ended(&store, last);
    assert_eq!((end.state(), stdout(&store, &end).as_str()), (State::Done, "all\n"));
    let elements: Vec<Job> = all(&store).into_iter().filter(|job| job.array == Some(id)).collect();
    assert_eq!(elements.len(), 16);
    for job in &elements {
        let index = job.index.unwrap();
        assert_eq!(job.state(), State::Done, "{job:?}");
        assert_eq!(stdout(&store, job), format!("part {index} of {index}\n"));
        let done = (1..=4).filter(|attempt| marks.join(format!("{index}-{attempt}")).exists());
        assert_eq!(done.count(), 1, "element {index} has been done once");
    }
    assert!(elements.iter().any(|job| job.attempts > 1), "the node had some of them");
    // The node comes back.
    cluster.start_node("n1");
    cluster.are_idle(2);
}

#[test]
#[ignore = "long run: make test-slurm"]
fn ends_refusals_and_cancellations_are_those_of_slurm() {
    let folder = Folder::new("slurm-ends");
    let cluster = Cluster::start(&folder.0);
    let mut queue = queue_of(&cluster, &folder.0);
    let store = Store::open(&folder.0).unwrap();
    let fails = submit(&mut queue, &store, at_slurm("fails", "echo $PATH; echo no >&2; exit 3", |_| ()));
    let mut limits = Limits::default();
    (limits.wall_s, limits.output_bytes) = (Some(1), Some(10));
    let slow = submit(&mut queue, &store, at_slurm("slow", "yes; sleep 600", |job| job.limits = limits));
    let array = Some(Array { first: 5000, last: 5001, at_a_time: None });
    let wide = submit(&mut queue, &store, at_slurm("wide", ":", |job| job.array = array));
    let environment = BTreeMap::from([("PATH".to_owned(), "/it's here".to_owned())]);
    let own = submit(&mut queue, &store, at_slurm("own", "echo $PATH", |job| job.environment = environment));
    let end = ended(&store, fails);
    assert_eq!((end.state(), end.exit_status), (State::Failed, Some(3)), "{end:?}");
    assert_eq!(stdout(&store, &end), "/usr/local/bin:/usr/bin:/bin\n");
    assert_eq!(stdout(&store, &ended(&store, own)), "/it's here\n");
    let end = ended(&store, slow);
    assert_eq!((end.exit_status, end.output_bytes), (Some(124), 10), "{end:?}");
    let end = ended(&store, wide + 1);
    assert!(end.state() == State::Failed && end.reason.contains("Invalid job array"), "{end:?}");
    // Cancelled here.
    let cancelled = submit(&mut queue, &store, at_slurm("cancelled", "sleep 601", |_| ()));
    until("it runs", || job(&store, cancelled).handle.filter(|_| job(&store, cancelled).reason.is_empty()));
    block_on(store.change(Scope::All, cancelled, Change::Cancel, 1)).unwrap();
    queue.submit("poke", ":");
    assert_eq!(ended(&store, cancelled).state(), State::Cancelled);
    // Cancelled there while no host looks, and forgotten by the controller: its accounting knows.
    let forgotten = submit(&mut queue, &store, at_slurm("forgotten", "sleep 602", |_| ()));
    let there = until("it is handed over", || job(&store, forgotten).handle);
    drop(queue);
    run(cluster.tool("scancel").arg(&there));
    let is_forgotten = within(LONG, || {
        let listed = output(cluster.tool("squeue").args(["-h", "--states=all", "-o", "%i"]));
        (!String::from_utf8_lossy(&listed.stdout).lines().any(|id| id == there)).then_some(())
    });
    assert!(is_forgotten.is_some());
    let _queue = queue_of(&cluster, &folder.0);
    let end = ended(&store, forgotten);
    assert!(end.state() == State::Cancelled && end.reason.contains("at Slurm"), "{end:?}");
}
