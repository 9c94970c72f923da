//! Every kind of measurement over each face of a host, and the faces in the simulator.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc;

use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_inett::driver::{ServeOptions, Stop, run, serve};
use inhost_inett::face::{ControlFace, Face, XtiFace, ZeroCopyFace};
use inhost_inett::here::{FaceName, measure};
use inhost_inett::result::Outcome;
use inhost_runtime::Runtime;
use inhost_runtime::control::Server;
use inhost_sim::{LinkConfig, Loss, Node, Simulation};
use inhost_socket::Host;
use inhost_stack::StackConfig;

use super::kernel::plan;
use super::remote::measure_here;

const PLANS: [&str; 6] = [
    "time_ms = 300\nstreams = 2",
    "time_ms = 300\ndirection = 'both'\nwrite_bytes = 100",
    "protocol = 'udp'\ntime_ms = 300\nrate_bits_per_second = 20000000\ndirection = 'both'",
    "kind = 'screen'\ncount = 100\nconnections = 2",
    "kind = 'connect'\ncount = 100",
    "kind = 'connections'\nconnections = 50",
];

fn check(text: &str, outcome: &Outcome) {
    let least = if text.contains("kind") { 1.0 } else { 1e7 };
    assert!(outcome.failure.is_none(), "{text}: {:?}", outcome.failure);
    assert!(outcome.summary.unwrap().mean >= least, "{text}: {}", outcome.text());
}

fn on_a_host<F: Face>(face: impl FnOnce(Host) -> F) {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let face = face(runtime.host().clone());
    for text in PLANS {
        check(text, &runtime.run(measure_here(&face, text)).unwrap());
    }
    let sized = "time_ms = 100\nwindow_bytes = 100000\nno_delay = true";
    check(sized, &runtime.run(measure_here(&face, sized)).unwrap());
    runtime.shutdown(Duration::from_secs(1)).unwrap();
}

#[test]
fn by_the_transport_interface() {
    on_a_host(XtiFace::under_real_clock);
}

#[test]
fn by_reference() {
    on_a_host(ZeroCopyFace::under_real_clock);
}

/// A host with a control socket, on a thread.
fn served(name: &str) -> (PathBuf, async_channel::Sender<()>, std::thread::JoinHandle<()>) {
    use std::os::unix::fs::DirBuilderExt;
    let folder = std::env::temp_dir().join(format!("inhost-inett-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
    let (give, take) = mpsc::channel();
    let (end, ended) = async_channel::bounded::<()>(1);
    let path = folder.join("host.sock");
    let at = path.clone();
    let thread = std::thread::spawn(move || {
        let mut runtime = Runtime::new(StackConfig::default()).unwrap();
        let server = Server::open(runtime.host(), runtime.handle(), &at).unwrap();
        give.send(()).unwrap();
        runtime.run(async move { ended.recv().await.is_err() }).unwrap();
        drop(server);
        runtime.shutdown(Duration::from_secs(1)).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    });
    take.recv_timeout(inhost_interop::DEADLINE).unwrap();
    (path, end, thread)
}

#[test]
fn through_the_control_socket_of_a_running_host() {
    let (path, end, thread) = served("control");
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let face = ControlFace::open(&path, runtime.host().clone(), runtime.handle()).unwrap();
    for text in PLANS {
        check(text, &runtime.run(measure_here(&face, text)).unwrap());
    }
    runtime.shutdown(Duration::from_secs(1)).unwrap();
    drop(end);
    thread.join().unwrap();
}

#[test]
fn both_ends_in_this_process_on_each_face_by_its_name() {
    for &face in FaceName::ALL {
        for text in ["time_ms = 200\nwrite_bytes = 512", "kind = 'echo'\ncount = 50"] {
            let outcome = measure(face, &plan(text)).unwrap_or_else(|why| panic!("{}: {why}", face.text()));
            check(text, &outcome);
        }
        let name = serde_json::to_string(&face).unwrap();
        assert_eq!(name, format!("\"{}\"", face.text()));
    }
}

/// Measures between two simulated hosts that lose a hundredth of their frames.
fn simulated<F: Face>(text: &str, face: impl Fn(Host) -> F + 'static) -> Outcome {
    let mut simulation = Simulation::new(3);
    simulation.set_link(LinkConfig {
        delay: Duration::from_millis(5),
        loss: Loss::per_mille(10),
        ..LinkConfig::default()
    });
    let (plan, face) = (plan(text), Rc::new(face));
    let (_stopper, stop) = Stop::new();
    let (stopped, of_server) = (stop.clone(), face.clone());
    simulation.host("server", async move |node: Node| {
        let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, 5201);
        let face = of_server(node.host().clone());
        serve(&face, at, &ServeOptions::default(), &stopped, &mut |_| {}).await?;
        Ok(())
    });
    let (give, take) = mpsc::channel();
    simulation.client("client", async move |node: Node| {
        let server = Endpoint::new(node.lookup("server").unwrap(), 5201);
        let face = face(node.host().clone());
        give.send(run(&face, server, &plan, &stop, &mut |_| {}).await?)?;
        Ok(())
    });
    simulation.run().unwrap();
    take.try_recv().unwrap()
}

#[test]
fn figures_of_each_face_follow_from_the_seed_in_the_simulator() {
    for text in ["time_ms = 3000\nwarm_up_ms = 1000\ndirection = 'both'", "kind = 'request'\ncount = 100"] {
        let once = [simulated(text, XtiFace::new), simulated(text, ZeroCopyFace::new)];
        let again = [simulated(text, XtiFace::new), simulated(text, ZeroCopyFace::new)];
        for (once, again) in once.iter().zip(&again) {
            assert!(once.failure.is_none() && once.summary.unwrap().mean > 1e4, "{text}: {}", once.text());
            assert_eq!(once.json(), again.json());
        }
    }
}
