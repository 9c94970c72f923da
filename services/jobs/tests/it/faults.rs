//! Jobs handed to another host over a link that loses packets, whose server comes late, and whose connections break.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant};
use inhost_common::service::Doors;
use inhost_common::{Admission, AdmissionLimits, LocalFuture};
use inhost_jobs::backend::{Backend, Look, Progress, Started};
use inhost_jobs::client::Client;
use inhost_jobs::codec::{Array, Submission};
use inhost_jobs::machine::{Shares, State};
use inhost_jobs::queue::{Output, Queue, QueueConfig};
use inhost_jobs::remote::{Dial, Duplex, Remote};
use inhost_jobs::server::{PORT, Server, config, sessions};
use inhost_jobs::store::{Outcome, Scope, Store, Task};
use inhost_link::Rates;
use inhost_socket::Host;

use crate::http::Three;
use crate::network::Network;

const JOBS: u32 = 12;
/// Octets of a job's output: more than one piece.
const OUTPUT_BYTES: usize = 100_000;

thread_local! {
    static UNIX_S: Cell<u64> = const { Cell::new(1_700_000_000) };
}

fn unix_time() -> std::time::Duration {
    std::time::Duration::from_secs(UNIX_S.get())
}

/// Runs nothing: the output is there at once.
struct AtOnce;

impl Backend for AtOnce {
    fn start(&self, tasks: Vec<Task>) -> LocalFuture<Vec<Started>> {
        for task in &tasks {
            std::fs::create_dir_all(&task.folder).unwrap();
            let line = format!("{:?} {}\n", task.index, task.submission.name);
            let text = line.repeat(OUTPUT_BYTES / line.len());
            std::fs::write(task.folder.join("stdout"), text).unwrap();
        }
        Box::pin(std::future::ready(tasks.iter().map(|_| Ok(None)).collect()))
    }
    fn look(&self, _: Task) -> LocalFuture<Look> {
        let ended = Progress::Ended(Outcome::Exit(0, String::new()), OUTPUT_BYTES as u64);
        Box::pin(std::future::ready(Look::new(ended)))
    }
    fn changed(&self) -> LocalFuture<()> {
        Box::pin(std::future::pending())
    }
    fn interval_ms(&self) -> u64 {
        1000
    }
}

/// Connects to the far host, and counts.
struct Counting {
    host: Host,
    count: Cell<u64>,
}

impl Dial for Counting {
    fn dial(&self) -> LocalFuture<io::Result<Box<dyn Duplex>>> {
        self.count.set(self.count.get() + 1);
        let host = self.host.clone();
        Box::pin(async move {
            let stream = host.connect(Endpoint::new([10, 9, 0, 2], PORT)).await.map_err(io::Error::other)?;
            Ok(Box::new(stream) as Box<dyn Duplex>)
        })
    }
}

fn queue(host: &Host, name: &str) -> (Rc<Queue>, std::path::PathBuf) {
    let folder = std::env::temp_dir().join(format!("inhost-jobs-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut config = QueueConfig::default();
    config.places.push("far".to_owned());
    let store = Store::in_memory(&folder).unwrap();
    (Rc::new(Queue::new(store, config, Rc::new(host.clone()), unix_time)), folder)
}

#[test]
fn every_job_runs_once_there_and_its_output_comes_back() {
    let mut rates = Rates::default();
    (rates.loss, rates.duplicate, rates.reorder) = (0.05, 0.05, 0.05);
    let mut network = Network::with(rates);
    // Jobs are on their way when the hosts are parted.
    let begin = Instant::ZERO + Duration::from_secs(140);
    network.cut = Some((begin, begin + Duration::from_secs(90)));
    let (near, far) = (network.ends[0].host.clone(), network.ends[1].host.clone());
    let (there, far_folder) = queue(&far, "far");
    let (here, near_folder) = queue(&near, "near");
    let (own, own_queue) = (far.clone(), there.clone());
    far.spawn(async move {
        // For the first minutes nobody listens; later the server goes away for a while, and its connections with it.
        own.sleep(Duration::from_secs(100)).await;
        for round in 0..6 {
            let server =
                Server { queue: own_queue.clone(), users: Rc::new(Three), config: config(), tls: None };
            let admission = Admission::new(AdmissionLimits::per_minute(256, 32, 100_000));
            let doors = Doors::new("jobs", &own, &Default::default(), admission, |_| ());
            doors.listen(PORT, sessions(&own, server)).unwrap();
            own.sleep(if round < 5 { Duration::from_millis(2500) } else { Duration::from_secs(1 << 20) })
                .await;
            doors.close().await;
            doors.admission().close();
            own.abort_all();
            own.sleep(Duration::from_secs(5)).await;
        }
    })
    .detach();
    far.spawn(there.clone().run("local", Rc::new(AtOnce), Shares::default())).detach();
    let client = Client::new("far", "ada", "a").unwrap();
    let dial = Rc::new(Counting { host: near.clone(), count: Cell::default() });
    let limits = inhost_jobs::codec::Limits::default();
    let remote = Remote::new(client, dial.clone(), Rc::new(near.clone()), here.store.clone(), limits);
    near.spawn(here.clone().run("far", Rc::new(remote), Shares::default())).detach();
    let (clock, queue) = (near.clone(), here.clone());
    let took = network.run(async move {
        let mut submission = Submission::new("tides", "echo");
        submission.to = Some("far".to_owned());
        submission.array = Some(Array { first: 1, last: JOBS, at_a_time: None });
        queue.submit("ada", Some("k"), submission).await.unwrap();
        loop {
            let jobs = queue.store.list(Scope::All, Default::default()).await.unwrap();
            if (Duration::from_secs(10)..Duration::from_secs(90)).contains(&clock.now().since(Instant::ZERO))
            {
                assert!(jobs.iter().all(|job| (job.state(), job.attempts) == (State::Queued, 0)), "{jobs:?}");
                assert!(jobs.iter().all(|job| job.reason.contains("no connection")), "{jobs:?}");
            }
            if jobs.iter().all(|job| job.state().is_over()) {
                return clock.now();
            }
            clock.sleep(Duration::from_secs(1)).await;
        }
    });
    let jobs = futures_lite::future::block_on(here.store.list(Scope::All, Default::default())).unwrap();
    assert_eq!(jobs.len(), JOBS as usize);
    for job in &jobs {
        assert_eq!((job.state(), job.attempts), (State::Done, 1), "{job:?}");
        let line = format!("Some({}) tides\n", job.index.unwrap());
        let path = here.store.folder(job.id, 1).join(Output::Stdout.name());
        assert_eq!(std::fs::read_to_string(path).unwrap(), line.repeat(OUTPUT_BYTES / line.len()));
    }
    let ran = futures_lite::future::block_on(there.store.list(Scope::All, Default::default())).unwrap();
    assert_eq!(ran.len(), JOBS as usize, "each of them once");
    println!("{JOBS} jobs in {took:?}, {} connections", dial.count.get());
    std::fs::remove_dir_all(near_folder).unwrap();
    std::fs::remove_dir_all(far_folder).unwrap();
}
