//! Every kind of measurement over each face of a host, and the faces in the simulator.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc;

use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_inett::driver::{ServeOptions, Stop, run, serve};
use inhost_inett::face::{ControlFace, Face, XtiFace, ZeroCopyFace};
use inhost_inett::here::{FaceName, HereError, Setup, measure};
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

fn setup(text: &str) -> Setup {
    toml::from_str(&format!("{text}\nplan = {{ kind = 'echo', count = 20 }}")).unwrap()
}

#[test]
fn every_link_without_privilege_carries_a_measurement() {
    for link in ["memory:wire,delay=1ms", "serial:/dev/ptmx,baud=1000000", "user"] {
        let by = |face: &str| setup(&format!("face = '{face}'\nlink = '{link}'")).measure();
        for face in ["local", "xti", "zero-copy", "send"] {
            let outcome = by(face).unwrap_or_else(|why| panic!("{face} over {link}: {why}"));
            let mean_us = outcome.summary.unwrap().mean;
            assert!(outcome.failure.is_none() && outcome.repetitions[0].transactions.unwrap().count == 20);
            // The delay is that of each frame, and an octet takes 10 µs of the line, of which an echo has 82 at least.
            let least_us = [("memory", 2000.0), ("serial", 820.0), ("user", 0.1)];
            let (_, least_us) = least_us.into_iter().find(|(kind, _)| link.starts_with(kind)).unwrap();
            assert!(mean_us >= least_us, "{face} over {link}: {mean_us} µs");
        }
        match (link, by("blocking")) {
            ("user", refused) => assert!(matches!(refused, Err(HereError::Unsupported)), "{refused:?}"),
            (_, carried) => assert!(carried.unwrap().summary.is_some(), "{link}"),
        }
    }
}

#[test]
fn what_a_face_or_a_link_cannot_be_is_refused_and_says_why() {
    for (text, says) in [
        ("link = 'memory:wire'", "the face system has no such host"),
        ("face = 'control'\nlayers = true", "the face control has no such host"),
        ("face = 'local'\nlink = 'memory:wire,address=10.0.0.1/24'", "have their addresses already"),
        ("face = 'local'\nlink = 'serial:/dev/ttyS0'", "on serial:/dev/ptmx only"),
        ("face = 'local'\nlink = 'tun:inett0'", "needs address= and host="),
    ] {
        let why = setup(text).measure().unwrap_err().to_string();
        assert!(why.contains(says), "{text}: {why}");
    }
    assert!(toml::from_str::<Setup>("link = 'carrier-pigeon'").is_err());
}

/// The layers are the time that was measured, up to the rounds at both ends of it.
#[test]
fn layers_sum_to_the_time_that_was_measured() {
    for (face, link, warm_up_ms) in [
        ("local", "loopback", 1000),
        ("xti", "memory:wire", 0),
        ("send", "loopback", 0),
        ("blocking", "loopback", 0),
    ] {
        let text = format!(
            "face = '{face}'\nlink = '{link}'\nlayers = true\n\
             plan = {{ time_ms = 400, warm_up_ms = {warm_up_ms}, write_bytes = 1024 }}"
        );
        let outcome = toml::from_str::<Setup>(&text).unwrap().measure().unwrap();
        let repetition = &outcome.repetitions[0];
        let layers = &repetition.client_layers;
        let (sum_s, measured_s) =
            (layers.values().map(|of| of.seconds).sum::<f64>(), repetition.sent.unwrap().seconds);
        assert!((sum_s / measured_s - 1.0).abs() < 0.2, "{face}: {sum_s} s of {measured_s} s: {layers:?}");
        let shares: f64 = layers.values().filter_map(|of| of.share).sum();
        assert!((shares - 1.0).abs() < 1e-9 && layers["TCP"].share > Some(0.0), "{face}: {layers:?}");
        assert!(layers["instrument"].share.is_none() && outcome.text().contains("'s host worked for: "));
    }
    let without = measure(FaceName::Local, &plan("time_ms = 50")).unwrap();
    assert!(without.repetitions[0].client_layers.is_empty() && !without.json().contains("layers"));
}
