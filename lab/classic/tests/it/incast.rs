//! Incast.

use super::measure;

fn run(servers: u32, more: &str) -> inhost_classic::Measured {
    measure(&format!("kind = \"incast\"\nservers = {servers}\n{more}"), 1)
}

#[test]
fn one_server_fills_the_port() {
    assert!(run(1, "")["goodput_percent"] > 95.0);
}

#[test]
fn many_servers_collapse_with_a_timer_of_200_ms_and_not_with_one_of_1_ms() {
    for servers in [8, 16, 32, 64] {
        let (slow, fast) = (run(servers, ""), run(servers, "min_timeout_ms = 1.0"));
        assert!(slow["goodput_percent"] < 15.0 && slow["timeouts"] > 0.0, "{servers}");
        assert!(fast["goodput_percent"] > 70.0, "{servers}");
        // Every second block at least waits for a timeout: its time is the timer's and not the port's.
        assert!((80.0..=800.0).contains(&slow["block_ms"]), "{servers}: {}", slow["block_ms"]);
        assert!(fast["block_ms"] < 15.0);
    }
}

#[test]
fn a_large_buffer_does_as_well() {
    let measured = run(16, "buffer_bytes = 4194304");
    assert!(measured["goodput_percent"] > 90.0 && measured["dropped"] == 0.0);
}

#[test]
fn the_losses_of_today_s_recovery_are_not_all_found_by_it() {
    let measured = run(32, "recovery = \"today\"");
    assert!(measured["timeouts"] > 0.0 && measured["goodput_percent"] < 30.0);
}
