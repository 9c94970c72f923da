//! Integration tests, one program for all: a program costs more to link than to run.

mod bodies;
mod control;
mod links;
mod offload;
mod real_clock;
mod serial_line;
mod shards;
mod signals;
mod slirp;

use inhost_interop::{DEADLINE, join};
use inhost_runtime::Runtime;

/// What `work` gives, which the runtime does by the deadline.
#[track_caller]
fn in_time<T>(runtime: &mut Runtime, work: impl Future<Output = T>) -> T {
    let host = runtime.host().clone();
    runtime.run(host.timeout(DEADLINE.into(), work)).unwrap().expect("done by the deadline")
}

/// Lets the runtime work until `work` on another thread is done, and gives what it returned. A panic there is one here.
fn beside<T: Send + 'static>(runtime: &mut Runtime, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (running, ended) = async_channel::bounded::<()>(1);
    let worker = std::thread::spawn(move || {
        // Dropped when the thread ends, however that ends.
        let _running = running;
        work()
    });
    // There is no word; the end of the sender is awaited.
    let _ = in_time(runtime, ended.recv());
    join(worker)
}
