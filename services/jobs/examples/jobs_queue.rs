//! A queue that runs jobs of this host, as a program: tests kill it. `jobs_queue FOLDER SLOTS [slurm]` runs the queue, and
//! hands the jobs of the place `cluster` to Slurm, if that word is there; each line of
//! its standard input is a key, a tab and a script, and is submitted; it prints `ack KEY ID`.

use std::io::BufRead;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_lite::future::{block_on, or};
use inhost_base::Instant;
use inhost_common::{Clock, LocalFuture};
use inhost_jobs::codec::Submission;
use inhost_jobs::machine::Shares;
use inhost_jobs::queue::{Queue, QueueConfig};
use inhost_jobs::runner::{Local, LocalConfig};
use inhost_jobs::slurm::{Slurm, SlurmConfig};
use inhost_jobs::store::Store;

#[expect(clippy::disallowed_methods, reason = "a program of its own reads the clock")]
fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The real clock, outside of a host.
struct Real;

impl Clock for Real {
    fn now(&self) -> Instant {
        Instant::ZERO + inhost_base::Duration::from_millis(unix_time().as_millis() as u64)
    }
    fn sleep_until(&self, at: Instant) -> LocalFuture<()> {
        let time = Duration::from_nanos(at.since(self.now()).as_nanos());
        Box::pin(blocking::unblock(move || {
            let (_open, never) = channel::<()>();
            let _ = never.recv_timeout(time);
        }))
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the queue's folder"));
    let slots = arguments.next().and_then(|slots| slots.parse().ok()).unwrap_or(4);
    let is_slurm = arguments.next().is_some_and(|word| word == "slurm");
    let store = Store::open(&folder).expect("the queue opens");
    // A process that was killed while it started a job has a child with its lock, until that child runs the job.
    let lock = inhost_interop::until("the lock", || store.lock().ok());
    let mut config = QueueConfig::default();
    config.quotas.jobs = 100_000;
    let queue = Rc::new(Queue::new(store, config, Rc::new(Real), unix_time));
    let local = Rc::new(Local::new(LocalConfig::new(unix_time)));
    let mut shares = Shares::default();
    (shares.slots, shares.slots_per_user) = (slots, slots);
    let (lines, submitted) = async_channel::unbounded::<String>();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let _ = lines.send_blocking(line);
        }
    });
    let own = queue.clone();
    let submitting = async move {
        while let Ok(line) = submitted.recv().await {
            let Some((key, script)) = line.split_once('\t') else { continue };
            let submission = Submission::new(key, &script.replace("\\n", "\n"));
            match own.submit("ada", Some(key), submission).await {
                Ok(submitted) => println!("ack {key} {}", submitted.id),
                Err(why) => println!("refused {key} {why}"),
            }
        }
        std::future::pending().await
    };
    let cluster = Rc::new(Slurm::new(SlurmConfig::new(unix_time)));
    let other = queue.clone();
    let handing_over = async move {
        match is_slurm {
            true => other.run("cluster", cluster, shares).await,
            false => std::future::pending().await,
        }
    };
    println!("ready");
    let running = or(queue.clone().run("local", local, shares), handing_over);
    block_on(or(submitting, or(running, queue.deliver())));
    drop(lock);
}
