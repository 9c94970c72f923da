//! UCLA TR46: the ACP on an IBM 3033, its connections looped back at the IMP.

use inhost_machines::Measured;

use super::{is_near, measure};

fn discard(machine: &str, write_bytes: u32, total_bytes: u32, sessions: u32) -> Measured {
    let setup = format!(
        r#"
        machine = {{ kind = "{machine}" }}
        link = {{ kind = "imp", bits_per_second = 100000 }}
        program = {{ kind = "bulk", write_bytes = {write_bytes}, total_bytes = {total_bytes}, sessions = {sessions} }}
        "#
    );
    let measured = measure(&setup, 1);
    println!("{machine} {write_bytes} {total_bytes} {sessions} {measured:?}");
    measured
}

#[test]
fn processor_time_is_that_of_figure_6() {
    // The last row has 453 segments for 200,000 bytes, so its writes had 444 bytes, and not the 222 of its label.
    let rows = [
        (74, 100_000, 10.24, 8155.0, 1354.0),
        (222, 100_000, 3.44, 2749.0, 453.0),
        (740, 100_000, 1.26, 862.0, 138.0),
        (3700, 100_000, 1.03, 713.0, 111.0),
        (444, 200_000, 3.59, 2750.0, 453.0),
    ];
    for (write_bytes, total_bytes, cpu_s, io_requests, segments) in rows {
        let ours = discard("ibm-3033", write_bytes, total_bytes, 1);
        let of = |name: &str| ours.of(name).unwrap();
        is_near(&format!("figure 6, {write_bytes}: seconds"), of("cpu_s"), cpu_s, 10.0);
        is_near(&format!("figure 6, {write_bytes}: I/O"), of("io_requests"), io_requests, 10.0);
        is_near(&format!("figure 6, {write_bytes}: segments"), of("packets_sent"), segments, 10.0);
        is_near(&format!("figure 6, {write_bytes}: ACKs"), of("acknowledgments_sent"), segments, 10.0);
    }
}
