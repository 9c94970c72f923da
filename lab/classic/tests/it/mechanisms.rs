//! Congestion collapse.

use super::measure;

const OFF: [&str; 3] = ["congestion_window = false", "adaptive_timer = false", "fast_retransmit = false"];

fn run(offered_percent: u32, off: &[&str]) -> inhost_classic::Measured {
    measure(&format!("kind = \"mechanisms\"\noffered_percent = {offered_percent}\n{}", off.join("\n")), 1)
}

#[test]
fn goodput_follows_the_load_up_to_the_bottleneck_with_any_mechanisms() {
    for off in [&OFF[..], &OFF[..0]] {
        for offered_percent in [25, 50, 75] {
            let measured = run(offered_percent, off);
            assert!((measured["goodput_percent"] - f64::from(offered_percent)).abs() < 1.0);
            assert!(measured["retransmitted_percent"] < 0.1);
        }
    }
}

#[test]
fn with_all_mechanisms_goodput_stays_and_without_them_it_collapses() {
    for offered_percent in [150, 200, 400] {
        let (with, without) = (run(offered_percent, &[]), run(offered_percent, &OFF));
        assert!(with["goodput_percent"] > 98.0);
        assert!(with["dropped_percent"] < 2.0);
        // RFC 896: copies of what is still in the queue take the place of data.
        assert!(without["goodput_percent"] < 65.0, "{offered_percent}");
        assert!(without["duplicate_percent"] > 30.0);
        assert!(without["dropped_percent"] > 40.0);
    }
}

#[test]
fn each_mechanism_prevents_what_it_is_for() {
    let all = run(200, &[]);
    let [window, timer, fast] = OFF.map(|off| run(200, &[off]));
    // Without a congestion window, loss rises several times.
    assert!(window["dropped_percent"] > 3.0 * all["dropped_percent"]);
    // A timer shorter than the queue repeats what is not lost.
    assert!(timer["goodput_percent"] < 92.0 && timer["duplicate_percent"] > 5.0 && timer["timeouts"] > 100.0);
    assert!(all["duplicate_percent"] < 1.0);
    // Without fast retransmit, each loss waits for the timer.
    assert!(fast["timeouts"] > 10.0 && all["timeouts"] < 5.0);
    // A timer that does not double fires more often (RFC 6298 §5.5).
    let [doubles, not] = [true, false].map(|on| {
        let off = format!("back_off = {on}");
        run(200, &[OFF[0], OFF[2], &off])
    });
    assert!(
        not["timeouts"] > 1.5 * doubles["timeouts"]
            && not["dropped_percent"] > 1.3 * doubles["dropped_percent"]
    );
    // Two missing are worse than one.
    let both = run(200, &OFF[..2]);
    assert!(both["goodput_percent"] < window["goodput_percent"].min(timer["goodput_percent"]) - 10.0);
}
