//! The pictures.

use inhost_event::Layer;
use inhost_layers::draw::{self, Bar, Line};
use inhost_layers::{Account, Mode, Report, Ring, Segment, Transition};
use inhost_runtime::Phase;

fn report() -> Report {
    let mut account = Account::new(5);
    account.begin(0);
    account.enter(Layer::Tcp, 100);
    account.enter(Layer::Checksum, 200);
    account.leave(400);
    account.leave(500);
    account.segment(&Segment { is_sent: false, local_port: 1, remote_port: 2, payload_bytes: 100 });
    account.enter_phase(Phase::Wait, 600);
    account.enter(Layer::Idle, 600);
    account.end(9_000);
    Report::of(Mode::Full, 1, &account)
}

#[test]
fn a_flame_graph_has_the_stacks_and_not_the_sleep() {
    let picture = draw::flame("here & now", &report());
    assert!(picture.contains("here &amp; now") && picture.contains("<title>checksum: 195 ns"), "{picture}");
    assert!(!picture.contains("idle"));
    let words = report().folded();
    assert!(words.contains("inhost;receive;TCP;checksum 195\n"), "{words}");
}

#[test]
fn bars_have_their_sums() {
    let parts = vec![(Layer::Tcp, 70.0), (Layer::Read, 30.0)];
    let picture = draw::bars("sender", "ns", &[Bar { label: "10".into(), parts }]);
    assert!(picture.contains(">100</text>") && picture.contains("<title>TCP: 70 ns, 70 %"), "{picture}");
    assert!(draw::segments("all", &report()).contains("received to 100"));
    assert!(draw::bars("nothing", "ns", &[]).ends_with("</svg>\n"));
}

#[test]
fn a_time_line_has_what_lies_in_it() {
    let mut ring = Ring::new(10);
    ring.push(0, Transition::Layer(Layer::Idle));
    ring.push(1_000, Transition::Layer(Layer::Link));
    let segment = Segment { is_sent: true, local_port: 1, remote_port: 2, payload_bytes: 1024 };
    ring.push(1_500, Transition::Segment(segment));
    ring.push(2_000, Transition::Layer(Layer::Application));
    ring.push(9_000, Transition::Layer(Layer::Tcp));
    let report = report().with_transitions(&ring);
    let lines = [Line { title: "sender", transitions: &report.transitions }];
    let picture = draw::time_line("a write", &lines, 500, 3_000);
    assert!(picture.contains("<title>link: 1000 ns") && picture.contains("sent: 1024 bytes"), "{picture}");
    assert!(!picture.contains("<title>TCP"), "{picture}");
}
