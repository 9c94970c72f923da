//! Each structure carries the same bytes in the same segments. A run that is not done after 40 seconds is an error.

use inhost_structures::measure::{Figure, Plan, Samples};
use inhost_structures::{Load, Outcome, SEGMENT_BYTES, Structure, WRITE_BYTES};

fn run(structure: Structure, load: Load) -> Outcome {
    let outcome = structure.run(load).unwrap_or_else(|why| panic!("{}: {why}", structure.name()));
    outcome.check().unwrap_or_else(|why| panic!("{}: {why}", structure.name()));
    outcome
}

#[test]
fn every_structure_echoes_the_same_characters_in_the_same_segments() {
    for structure in Structure::ALL {
        let outcome = run(structure, Load::Echo(300));
        assert_eq!(outcome.delivered, [300, 300], "{}", structure.name());
        assert_eq!(outcome.sent.map(|sent| sent.data_segments), [300, 300], "{}", structure.name());
        assert_eq!(outcome.times.count(), 300);
        assert!(outcome.dispatches >= 2 * 300, "{}: {}", structure.name(), outcome.dispatches);
    }
}

#[test]
fn every_structure_delivers_the_same_stream_in_full_segments() {
    let writes = 300;
    for structure in Structure::ALL {
        let outcome = run(structure, Load::Bulk(writes));
        let bytes = writes * WRITE_BYTES as u64;
        assert_eq!(outcome.delivered, [1, bytes], "{}", structure.name());
        let sent = outcome.sent[0];
        assert_eq!((sent.data_bytes, sent.data_segments), (bytes, bytes / SEGMENT_BYTES as u64));
        assert!(outcome.sent[1].bare_segments > 0);
    }
}

#[test]
fn a_run_that_carried_something_else_is_found() {
    let mut outcome = run(Structure::Round, Load::Echo(20));
    outcome.sent[0].data_segments += 1;
    assert!(outcome.check().unwrap_err().contains("21"));
    outcome.sent[0].data_segments -= 1;
    outcome.delivered[1] -= 1;
    assert!(outcome.check().is_err());
}

#[test]
fn a_bare_dispatch_is_made_as_often_as_asked_for() {
    for structure in Structure::ALL {
        let count = structure.dispatch(1000).unwrap();
        assert!((1000..=1001).contains(&count), "{}: {count}", structure.name());
    }
}

#[test]
fn what_is_measured_has_an_interval_under_each_structure() {
    let plan = Plan { repetitions: 2, dispatches: 100, echoes: 50, writes: 20 };
    let mut samples = Samples::default();
    for turn in 0..2 {
        samples.repeat(&plan, turn).unwrap();
    }
    for structure in Structure::ALL {
        for figure in
            [Figure::Dispatch, Figure::EchoMedian, Figure::EchoCpu, Figure::Rate, Figure::SegmentCpu]
        {
            let estimate = samples.estimate(figure, structure).unwrap();
            assert!(estimate.mean > 0.0 && estimate.count == 2, "{figure:?} of {}", structure.name());
        }
    }
}
