//! Integration tests, one program for all: a program costs more to link than to run.

mod sim_net;
mod sim_net_faults;
mod tokio;
mod udp;

/// What a test within tokio gives, by the deadline.
async fn in_time<T>(test: impl Future<Output = T>) -> T {
    ::tokio::time::timeout(inhost_interop::DEADLINE, test).await.expect("done by the deadline")
}
