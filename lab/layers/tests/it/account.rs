//! Under a clock of the test's own.

use inhost_base::Random;
use inhost_event::Layer;
use inhost_layers::{Account, Direction, MOST_TRANSITIONS, Meter, Mode, Ring, Segment, Size, Transition};
use inhost_runtime::{FrameHead, LayerWatch, Phase};
use std::cell::Cell;
use std::rc::Rc;

fn segment(is_sent: bool, payload_bytes: u32) -> Segment {
    Segment { is_sent, local_port: 80, remote_port: 1025, payload_bytes }
}

#[test]
fn each_nanosecond_belongs_to_one_layer() {
    for seed in 0..50 {
        let mut random = Random::from_number(seed);
        let clock_cost_ns = u64::from(random.public_below(40));
        let mut account = Account::new(clock_cost_ns);
        let (mut at, mut rounds_ns) = (1_000u64, 0);
        for _ in 0..200 {
            at += u64::from(random.public_below(500));
            let began = at;
            account.begin(at);
            for phase in Phase::ALL {
                account.enter_phase(phase, at);
                for _ in 0..random.public_below(60) {
                    at += u64::from(random.public_below(300));
                    // Spans that are never left, too, and those that were never entered.
                    match random.public_below(5) {
                        0..=1 => account.enter(Layer::ALL[random.public_below(15) as usize], at),
                        2..=3 => account.leave(at),
                        _ => account.segment(&segment(random.public_chance(0.5), random.public_below(2000))),
                    }
                }
            }
            at += u64::from(random.public_below(300));
            account.end(at);
            rounds_ns += at - began;
        }
        assert_eq!(account.total_ns(), rounds_ns, "seed {seed}");
        assert_eq!(account.times().iter().sum::<u64>(), rounds_ns, "seed {seed}");
        // The stacks have all but the readings of the clock.
        let stacks_ns: u64 = account.stacks().map(|(_, ns, _)| ns).sum();
        let instrument_ns = account.times()[Layer::Instrument as usize];
        assert!(stacks_ns <= rounds_ns && stacks_ns >= rounds_ns - instrument_ns, "seed {seed}");
        assert!(account.stacks().count() <= 512, "seed {seed}");
    }
}

#[test]
fn a_round_counts_for_the_size_that_is_most_frequent_in_it() {
    let mut account = Account::new(0);
    account.begin(0);
    account.enter(Layer::Link, 0);
    for bytes in [1460, 1460, 12, 0, 0, 0] {
        account.segment(&segment(false, bytes));
    }
    account.leave(600);
    account.enter_phase(Phase::Run, 600);
    account.enter(Layer::Read, 600);
    account.leave(660);
    account.enter(Layer::Application, 660);
    account.enter_phase(Phase::Send, 700);
    account.enter(Layer::Tcp, 700);
    account.segment(&segment(true, 0));
    account.end(750);
    let row = account.row(Direction::Received, Size::To1460);
    assert_eq!((row.segments, row.bytes, row.rounds), (6, 2932, 1));
    assert_eq!((row.ns[Layer::Link as usize], row.ns[Layer::Read as usize], row.total_ns()), (600, 60, 660));
    let row = account.row(Direction::Sent, Size::Empty);
    assert_eq!((row.segments, row.total_ns()), (1, 50));
    assert_eq!(account.row(Direction::Received, Size::To100).rounds, 0);
}

/// A meter on a clock that moves on by ten at each look.
fn meter() -> (Meter, Rc<Cell<u64>>) {
    let now = Rc::new(Cell::new(0));
    let clock = now.clone();
    let meter = Meter::new(move || {
        clock.set(clock.get() + 10);
        clock.get()
    });
    (meter, now)
}

fn round(meter: &Meter) -> bool {
    if !meter.begins_round() {
        return false;
    }
    meter.enters(Layer::Tcp);
    meter.leaves();
    meter.ends_round();
    true
}

#[test]
fn off_measures_nothing_and_reads_no_clock() {
    let (meter, now) = meter();
    let before = now.get();
    assert!((0..1000).all(|_| !round(&meter)));
    assert_eq!(now.get(), before);
    let report = meter.report();
    assert_eq!((report.rounds, report.total_ns), (0, 0));
    assert!(report.text().contains("off"));
}

#[test]
fn sampling_takes_one_round_in_so_many() {
    let (meter, _) = meter();
    meter.set_mode(Mode::Sampled);
    meter.set_one_in(10);
    let measured = (0..100_000).filter(|_| round(&meter)).count();
    assert!((9_000..11_000).contains(&measured), "{measured}");
    assert_eq!(meter.report().rounds, measured as u64);
    assert!(meter.transitions().is_empty());
    meter.set_mode(Mode::Off);
    assert!(!round(&meter));
}

#[test]
fn the_cost_of_the_clock_is_the_instruments() {
    let (meter, _) = meter();
    meter.set_mode(Mode::Full);
    assert!(round(&meter));
    let report = meter.report();
    // A look takes ten, and nothing else any time.
    assert_eq!(report.clock_cost_ns, 10);
    assert_eq!((report.total_ns, report.layer_ns(Layer::Instrument), report.busy_ns()), (30, 30, 0));
}

#[test]
fn the_ring_is_bounded() {
    let mut ring = Ring::new(3);
    (0..10).for_each(|at| ring.push(at, Transition::Layer(Layer::Tcp)));
    assert_eq!((ring.len(), ring.lost()), (3, 7));
    assert_eq!(ring.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [7, 8, 9]);

    let (meter, _) = meter();
    meter.set_mode(Mode::Full);
    (0..MOST_TRANSITIONS).for_each(|_| assert!(round(&meter)));
    assert_eq!(meter.transitions().len(), MOST_TRANSITIONS);
    assert!(meter.transitions().lost() > 0);
    meter.reset();
    assert_eq!((meter.transitions().len(), meter.report().rounds), (0, 0));
}

#[test]
fn a_segment_is_found_in_its_frame() {
    // IPv4 and TCP with 12 bytes of options behind an Ethernet header, and the padding of a short frame.
    let mut frame = vec![0u8; 14];
    frame.extend([0x45, 0, 0, 57, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0, 80, 4, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0x80, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    frame.extend([0x5a; 5]);
    frame.resize(80, 0);
    let head = FrameHead { is_sent: false, head: &frame, link_bytes: 14, length_bytes: frame.len() };
    let expected = Segment { is_sent: false, local_port: 1025, remote_port: 80, payload_bytes: 5 };
    assert_eq!(Segment::of(&head), Some(expected));
    // Sent, with the headers alone.
    let head = FrameHead { is_sent: true, head: &frame[..66], link_bytes: 14, length_bytes: 71 };
    let expected = Segment { is_sent: true, local_port: 80, remote_port: 1025, payload_bytes: 5 };
    assert_eq!(Segment::of(&head), Some(expected));
    // Neither noise nor another protocol is one.
    frame[23] = 17;
    assert_eq!(
        Segment::of(&FrameHead { is_sent: false, head: &frame, link_bytes: 14, length_bytes: 80 }),
        None
    );
    for length in 0..frame.len() {
        let head = &frame[..length];
        assert_eq!(
            Segment::of(&FrameHead { is_sent: false, head, link_bytes: 14, length_bytes: length }),
            None
        );
    }
}
