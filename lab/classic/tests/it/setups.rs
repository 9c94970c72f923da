//! What holds for all setups: defaults, ranges, repetition.

use inhost_classic::{Setup, SetupError, run};

const KINDS: [&str; 9] = [
    "mechanisms",
    "rtt-unfairness",
    "bufferbloat",
    "nagle",
    "incast",
    "reordering",
    "gateway",
    "loss-law",
    "window-law",
];

fn setup(text: &str) -> Setup {
    toml::from_str(text).unwrap()
}

#[test]
fn all_have_defaults_and_come_back_from_toml() {
    for kind in KINDS {
        let setup = setup(&format!("kind = \"{kind}\""));
        let text = toml::to_string(&setup).unwrap();
        assert!(text.contains(kind));
        assert_eq!(toml::from_str::<Setup>(&text).unwrap(), setup);
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_and_another_one_others() {
    for kind in KINDS {
        let setup = setup(&format!("kind = \"{kind}\""));
        let [first, again, other] = [7, 7, 8].map(|seed| run(&setup, seed).unwrap());
        let bits = |measured: &inhost_classic::Measured| {
            measured.iter().map(|(name, value)| (name.clone(), value.to_bits())).collect::<Vec<_>>()
        };
        assert_eq!(bits(&first), bits(&again), "{kind}");
        assert!(first.values().all(|value| value.is_finite()), "{kind}: {first:?}");
        let is_by_chance = ["mechanisms", "rtt-unfairness", "reordering", "loss-law"].contains(&kind);
        assert!(!is_by_chance || bits(&first) != bits(&other), "{kind}");
    }
}

#[test]
fn names_end_with_their_units() {
    // Counts and ratios have none.
    let plain = [
        "timeouts",
        "dropped",
        "requests",
        "segments",
        "reorderings",
        "share_ratio",
        "round_trip_ratio",
        "queued_round_trip_ratio",
        "exponent",
        "queued_exponent",
        "screenful_dropped",
        "screenful_packets",
        "bulk_dropped",
        "bulk_marked",
    ];
    for kind in KINDS {
        for name in run(&setup(&format!("kind = \"{kind}\"")), 1).unwrap().keys() {
            let has_unit = ["_ms", "_s", "_mbps", "_bps", "_percent"].iter().any(|unit| name.ends_with(unit));
            assert!(has_unit || plain.contains(&name.as_str()), "{kind}: {name}");
        }
    }
}

#[test]
fn unknown_keys_and_kinds_are_errors() {
    for text in [
        "kind = \"nagle\"\nnagel = true",
        "kind = \"none\"",
        "nagle = true",
        "kind = \"incast\"\nservers = -1",
    ] {
        assert!(toml::from_str::<Setup>(text).is_err(), "{text}");
    }
}

#[test]
fn numbers_out_of_range_are_errors() {
    for text in [
        "kind = \"incast\"\nservers = 0",
        "kind = \"incast\"\nservers = 129",
        "kind = \"loss-law\"\nloss_percent = 0.0",
        "kind = \"loss-law\"\nround_trip_ms = nan",
        "kind = \"bufferbloat\"\nbottleneck_mbps = inf",
        "kind = \"bufferbloat\"\nbuffer_packets = 0",
        "kind = \"mechanisms\"\noffered_percent = -1.0",
        "kind = \"rtt-unfairness\"\nratio = 21.0",
        "kind = \"nagle\"\ndelayed_ack_ms = 501.0",
        "kind = \"reordering\"\nextent_ms = 181.0",
        "kind = \"gateway\"\nline_bps = 1",
        "kind = \"window-law\"\nwindow_segments = 1",
    ] {
        let error = run(&setup(text), 1).unwrap_err();
        assert!(matches!(error, SetupError::OutOfRange { .. }), "{text}: {error}");
        assert!(error.to_string().contains("is out of range"));
    }
}

/// The ends of the ranges where a run is short enough for a test: a result or an error, but no panic.
#[test]
fn extreme_setups_end() {
    for text in [
        "kind = \"mechanisms\"\nsenders = 100\nwindow_segments = 500\nbuffer_packets = 1\nduration_s = 5\noffered_percent = 1000.0\ncongestion_window = false\nadaptive_timer = false\nfixed_timer_ms = 10.0",
        "kind = \"mechanisms\"\nsenders = 1\nwindow_segments = 2\nbottleneck_mbps = 0.1\noffered_percent = 1.0\nduration_s = 1",
        "kind = \"rtt-unfairness\"\nflows = 20\nbuffer_packets = 1\nratio = 20.0\nduration_s = 5\nbottleneck_mbps = 0.1",
        "kind = \"bufferbloat\"\nbuffer_packets = 1\nbottleneck_mbps = 0.1\nbulk_flows = 20\nduration_s = 5",
        "kind = \"bufferbloat\"\nqueue = \"fq-codel\"\nbuffer_packets = 1\npace_mbps = 0.001\nround_trip_ms = 1000.0\nduration_s = 5",
        "kind = \"nagle\"\nwrite_bytes = 700\nround_trip_ms = 1000.0\ntransactions = 3",
        "kind = \"incast\"\nservers = 128\nblock_bytes = 1000\nbuffer_bytes = 1514\nblocks = 2",
        "kind = \"incast\"\nservers = 2\nport_mbps = 1.0\nround_trip_ms = 100.0\nmin_timeout_ms = 0.1\nblocks = 1",
        "kind = \"reordering\"\nreordered_percent = 50.0\nextent_ms = 180.0\nloss_percent = 10.0\nbuffer_packets = 1\nduration_s = 5",
        "kind = \"gateway\"\nbuffers = 1\nline_bps = 300\npacket_bytes = 1000",
        "kind = \"gateway\"\nbuffers = 1000\nline_bps = 1000000\npacket_bytes = 64\nsender = \"today\"\nqueue = \"codel\"",
        "kind = \"loss-law\"\nloss_percent = 20.0\nround_trip_ms = 1000.0\nlosses = 10",
        "kind = \"loss-law\"\nloss_percent = 1.0\nround_trip_ms = 1.0\nlosses = 10",
        "kind = \"window-law\"\nwindow_segments = 1000\nround_trip_ms = 1.0\nround_trips = 10",
    ] {
        println!("{text}\n  {:?}", run(&setup(text), 3));
    }
}
