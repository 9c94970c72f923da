//! MIT/LCS/TM-233: two IBM PCs on a serial line.

use super::{is_near, measure};

#[test]
fn characters_are_echoed_as_in_table_6_4() {
    let speeds = [4800, 9600, 19_200, 23_040];
    let predicted = [221.6, 121.6, 71.6, 63.2];
    let measured = [None, Some(121.9), Some(71.8), Some(63.8)];
    for (i, speed) in speeds.into_iter().enumerate() {
        let setup = format!(
            r#"
            machine = {{ kind = "ibm-pc" }}
            link = {{ kind = "llp", bits_per_second = {speed} }}
            program = {{ kind = "echo", count = 200 }}
            "#
        );
        let ours = measure(&setup, 1).of("echo_ms").unwrap();
        is_near(&format!("6-4 predicted at {speed}"), ours, predicted[i], 1.0);
        if let Some(measured) = measured[i] {
            is_near(&format!("6-4 measured at {speed}"), ours, measured, 10.0);
        }
    }
}

#[test]
fn a_screenful_is_handled_as_in_table_6_5() {
    let speeds = [4800, 9600, 19_200, 23_040];
    let predicted = [3.89, 2.67, 2.67, 2.67];
    let measured = [4.62, 2.82, 2.83, 2.84];
    for (i, speed) in speeds.into_iter().enumerate() {
        let setup = |peer: &str| {
            format!(
                r#"
                machine = {{ kind = "ibm-pc" }}
                link = {{ kind = "llp", bits_per_second = {speed} }}
                program = {{ kind = "screenful" }}
                parameters = {{ peer = {{ kind = "{peer}" }} }}
                "#
            )
        };
        // The prediction leaves the time of the sender out, so its sender is one that takes none.
        let ours = measure(&setup("ideal"), 1);
        assert_eq!(ours.of("packets"), Some(4.0));
        is_near(&format!("6-5 predicted at {speed}"), ours.of("screenful_s").unwrap(), predicted[i], 1.0);
        let ours = measure(&setup("ibm-pc"), 1).of("screenful_s").unwrap();
        // At 4800 a bug of the paper's own protocol lost acknowledgments, and is not modelled.
        let percent = if speed == 4800 { 15.0 } else { 10.0 };
        is_near(&format!("6-5 measured at {speed}"), ours, measured[i], percent);
    }
}

#[test]
fn the_maximum_transfer_is_that_of_table_6_2() {
    let setup = |until: &str| {
        format!(
            r#"
            machine = {{ kind = "ibm-pc" }}
            link = {{ kind = "llp", bits_per_second = 9600 }}
            program = {{ kind = "bulk", write_bytes = 500, prints = true, {until} }}
            "#
        )
    };
    let ours = measure(&setup("duration_s = 600"), 1);
    println!("{ours:?}");
    is_near("6-2 packets received", ours.of("packets_received").unwrap(), 734.0, 5.0);
    is_near("6-2 packets sent", ours.of("acknowledgments_sent").unwrap(), 92.0, 10.0);
    is_near("6-2 data rate", ours.of("throughput_kbps").unwrap(), 4.9, 5.0);
    let ours = measure(&setup("total_bytes = 367000"), 1);
    println!("{ours:?}");
    is_near("6-2 predicted seconds", ours.of("duration_s").unwrap(), 572.5, 1.0);
}
