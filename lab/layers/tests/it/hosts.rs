//! Two hosts on a link in memory, each with its meter.

use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_event::Layer;
use inhost_interop::until;
use inhost_layers::{Direction, Meter, Mode, Report};
use inhost_link::memory;
use inhost_runtime::{Runtime, interface};
use inhost_stack::{DuplicateDetection, ListenOptions, StackConfig};
use std::rc::Rc;
use std::sync::mpsc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const BYTES: usize = 1 << 20;

fn runtime(driver: memory::Memory, last: u8, mode: Mode) -> (Runtime, Meter) {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let host = runtime.host().clone();
    let mut config = interface("memory", &driver);
    config.duplicate_detection = DuplicateDetection::Off;
    let config = config.with_address(format!("10.9.0.{last}/24").parse().unwrap());
    runtime.add_link(&host, config, Box::new(driver)).unwrap();
    let clock = runtime.clock();
    let meter = Meter::new(move || clock.now().as_nanos());
    runtime.watch_layers(Rc::new(meter.clone()));
    meter.set_mode(mode);
    (runtime, meter)
}

/// A megabyte from one host to another; what both meters say.
fn transfer(mode: Mode) -> (Report, Report) {
    let config = memory::Config { doorbell: true, mtu_bytes: 1500, ..memory::Config::default() };
    let (near, far) = memory::pair(&config).unwrap();
    let at = Endpoint::new(Ipv4Addr::new(10, 9, 0, 2), 9);
    let (listens, listening) = mpsc::channel();
    let receiver = std::thread::spawn(move || {
        let (mut runtime, meter) = runtime(far, 2, mode);
        let host = runtime.host().clone();
        let listener = host.listen(at, ListenOptions::default()).unwrap();
        listens.send(()).unwrap();
        let received = runtime.run(host.timeout(Duration::from_secs(60), async {
            let mut stream = listener.accept().await.unwrap();
            let (mut place, mut received) = (vec![0; 16 << 10], 0);
            while let Ok(count @ 1..) = stream.read(&mut place).await {
                received += count;
            }
            received
        }));
        assert_eq!(received.unwrap(), Ok(BYTES));
        runtime.shutdown(Duration::from_secs(1)).unwrap();
        meter.report()
    });
    until("the receiver to listen", || listening.try_recv().ok());
    let (mut runtime, meter) = runtime(near, 1, mode);
    let host = runtime.host().clone();
    let sent = runtime.run(host.timeout(Duration::from_secs(60), async {
        let mut stream = host.connect(at).await.unwrap();
        stream.write_all(&vec![0x5a; BYTES]).await.unwrap();
        stream.shutdown();
    }));
    assert_eq!(sent.unwrap(), Ok(()));
    runtime.shutdown(Duration::from_secs(1)).unwrap();
    until("the receiver to end", || receiver.is_finished().then_some(()));
    (meter.report(), receiver.join().unwrap())
}

#[test]
fn a_transfer_is_told_at_both_ends() {
    let (sender, receiver) = transfer(Mode::Full);
    for report in [&sender, &receiver] {
        assert_eq!(report.layers.iter().map(|layer| layer.ns).sum::<u64>(), report.total_ns);
        for layer in
            [Layer::Link, Layer::Tcp, Layer::Checksum, Layer::Application, Layer::Idle, Layer::Recorder]
        {
            assert!(report.layer_ns(layer) > 0, "{}: {}", layer.text(), report.text());
        }
    }
    assert!(
        sender.layer_ns(Layer::WriteAndSum) > 0 && sender.layer_ns(Layer::Timers) > 0,
        "{}",
        sender.text()
    );
    assert!(receiver.layer_ns(Layer::Read) > 0, "{}", receiver.text());
    let bytes = |report: &Report, direction: Direction| -> u64 {
        report.segments.iter().filter(|row| row.direction == direction.text()).map(|row| row.bytes).sum()
    };
    assert_eq!(bytes(&sender, Direction::Sent), BYTES as u64);
    assert_eq!(bytes(&receiver, Direction::Received), BYTES as u64);
    // The stacks of calls are as they nest.
    assert!(
        sender
            .folded()
            .lines()
            .any(|line| line.starts_with("inhost;run;application;TCP;copy in and checksum "))
    );
    assert!(receiver.folded().lines().any(|line| line.starts_with("inhost;receive;TCP;checksum ")));
    // What is said as JSON is read again.
    let json = serde_json::to_string(&sender).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), sender);
}

#[test]
fn off_marks_nothing() {
    let (sender, receiver) = transfer(Mode::Off);
    assert_eq!((sender.rounds, receiver.rounds), (0, 0));
    assert!(sender.stacks.is_empty() && receiver.segments.is_empty());
}
