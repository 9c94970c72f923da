//! A host of ours under the real clock, measured from another thread and from a task on it.

use std::sync::mpsc;

use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_inett::driver::{ServeOptions, Stop, run, serve};
use inhost_inett::face::{Face, LocalFace, RemoteFace};
use inhost_inett::result::Outcome;
use inhost_runtime::Runtime;
use inhost_stack::StackConfig;

use super::kernel::{block_on, plan};

const AT: Endpoint = Endpoint { address: std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port: 5201 };

/// Both ends on one face, in one task.
pub async fn measure_here<F: Face>(face: &F, text: &str) -> Outcome {
    let (stopper, stop) = Stop::new();
    let options = ServeOptions::default();
    let mut told = |_| {};
    let server = serve(face, AT, &options, &stop, &mut told);
    let client = async {
        // The server listens first.
        face.sleep_until(face.now() + Duration::from_millis(50)).await;
        let (_own, never) = Stop::new();
        let outcome = run(face, AT, &plan(text), &never, &mut |_| {}).await;
        stopper.stop();
        outcome.unwrap_or_else(|why| panic!("{text}: {why}"))
    };
    let (served, outcome) = tokio::join!(server, client);
    served.unwrap();
    outcome
}

const PLANS: [&str; 4] = [
    "time_ms = 400\nstreams = 2",
    "time_ms = 400\ndirection = 'receive'\ncongestion = 'newreno'\nwindow_bytes = 262144",
    "protocol = 'udp'\ntime_ms = 400\nrate_bits_per_second = 20000000\ndirection = 'both'",
    "kind = 'screen'\ncount = 100\nconnections = 2",
];

fn check(text: &str, outcome: &Outcome) {
    let least = if text.contains("screen") { 1.0 } else { 1e7 };
    assert!(outcome.summary.unwrap().mean >= least, "{text}: {}", outcome.text());
    let processor = outcome.repetitions[0].client_processor.unwrap();
    assert!(processor.host_thread_seconds.unwrap() > 0.0, "{text}: {processor:?}");
}

#[test]
fn from_another_thread() {
    let (give, take) = mpsc::channel();
    let (end, ended) = async_channel::bounded::<()>(1);
    let host = std::thread::spawn(move || {
        let mut runtime = Runtime::new(StackConfig::default()).unwrap();
        give.send(runtime.host().remote()).unwrap();
        runtime.run(async move { ended.recv().await.is_err() }).unwrap();
        runtime.shutdown(Duration::from_secs(1)).unwrap();
    });
    let face = RemoteFace::new(take.recv_timeout(inhost_interop::DEADLINE).unwrap());
    for text in PLANS {
        check(text, &block_on(measure_here(&face, text)));
    }
    drop(end);
    host.join().unwrap();
}

#[test]
fn from_a_task_on_it() {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let face = LocalFace::under_real_clock(runtime.host().clone());
    for text in PLANS {
        check(text, &runtime.run(measure_here(&face, text)).unwrap());
    }
    runtime.shutdown(Duration::from_secs(1)).unwrap();
}
