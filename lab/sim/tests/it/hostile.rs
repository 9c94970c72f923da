//! A slice of `make hostile`.

use inhost_sim::hostile;

/// Frames thrown.
const FRAMES: u64 = 50_000;

#[test]
fn fifty_thousand_frames_in_the_middle_of_transfers() {
    let report = hostile::run(1, FRAMES, &mut |_| {}).unwrap();
    assert!(report.thrown.values().all(|&count| count > 0), "{report:#?}");
    assert!(report.void > FRAMES / 5 && report.answerable > FRAMES / 3, "{report:#?}");
    assert!(report.stream_bytes > 1_000_000, "{report:#?}");
}

#[test]
fn peers_that_send_pieces_and_peers_that_read_nothing_starve_nobody() {
    let report = hostile::run_peers(4, 4 * FRAMES, &mut |_| {}).unwrap();
    assert_eq!(report.thrown.len(), 2, "{report:#?}");
    assert!(report.thrown.values().all(|&count| count > FRAMES), "{report:#?}");
    assert!(report.most_memory_bytes <= hostile::MEMORY_BYTES, "{report:#?}");
    assert!(report.stream_bytes > 1_000_000, "{report:#?}");
}

#[test]
fn challenges_are_limited_to_ten_a_second_and_connection() {
    // Two hundred at each of four connections, within a second, or across the turn of one.
    let answers = hostile::challenges(3, 200).unwrap();
    assert!((40..=80).contains(&answers), "{answers} answers");
}
