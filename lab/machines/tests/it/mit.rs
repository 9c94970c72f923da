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
