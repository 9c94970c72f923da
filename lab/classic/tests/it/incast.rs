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
    for (servers, most_percent) in [(8, 40.0), (16, 15.0), (32, 15.0), (64, 15.0)] {
        let (slow, fast) = (run(servers, "blocks = 20"), run(servers, "blocks = 20\nmin_timeout_ms = 1.0"));
        assert!(slow["goodput_percent"] < most_percent && slow["timeouts"] > 0.0, "{servers}");
        assert!(fast["goodput_percent"] > 70.0, "{servers}");
        assert!(fast["block_ms"] < 15.0, "{servers}: {}", fast["block_ms"]);
        // From 16 servers on, most blocks wait for a timeout: their time is the timer's and not the port's.
        let least_ms = if servers < 16 { 20.0 } else { 100.0 };
        assert!((least_ms..=800.0).contains(&slow["block_ms"]), "{servers}: {}", slow["block_ms"]);
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
