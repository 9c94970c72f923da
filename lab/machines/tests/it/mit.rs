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

/// One way of a packet of `bytes` there and back, in seconds.
fn packet_s(bytes: u32, how: &str) -> f64 {
    let setup = format!(
        r#"
        machine = {{ kind = "ibm-pc" }}
        link = {{ kind = "llp", bits_per_second = 9600 }}
        program = {{ kind = "echo", count = 20, bytes = {bytes}, {how} }}
        "#
    );
    measure(&setup, 1).of("echo_ms").unwrap() / 2000.0
}

#[test]
fn differences_of_runs_give_the_breakdown_of_table_6_1() {
    let theirs = [(466, 0.1825, 0.3225, 0.5344), (500, 0.1959, 0.3460, 0.5698)];
    for (bytes, carriage_returns_s, characters_s, line_s) in theirs {
        let silent = packet_s(bytes, "prints = false");
        let plain = packet_s(bytes, "prints = true");
        let scrolled = packet_s(bytes, "prints = true, scrolls = true");
        is_near(&format!("6-1 CRO({bytes})"), scrolled - plain, carriage_returns_s, 1.0);
        is_near(&format!("6-1 PCO({bytes})"), plain - silent, characters_s, 1.0);
        // OOF and OOV: what neither line nor screen takes. Escapes on the line count for both.
        let other_s = 0.01 + 154e-6 * f64::from(bytes);
        is_near(&format!("6-1 OP({bytes})"), silent, line_s + other_s, 1.0);
    }
}

#[test]
fn a_screenful_takes_the_processor_as_long_as_in_table_6_3() {
    // At a speed at which no acknowledgment is sent before the end.
    let ours = measure(
        r#"
        machine = { kind = "ibm-pc" }
        link = { kind = "llp", bits_per_second = 9600 }
        program = { kind = "screenful" }
        parameters = { peer = { kind = "ideal" } }
        "#,
        1,
    );
    is_near("6-3", ours.of("busy_s").unwrap(), 2.7993, 1.0);
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
    // From table 6-2's own parts, 6.239 s for a window: the sender works for eight times 613.3 ms and 5 ms, and the receiver
    // waits for 443.4 and 48.4 ms.
    is_near("6-2 sender's idle share", ours.of("sender_idle_percent").unwrap(), 21.3, 3.0);
    is_near("6-2 receiver's idle share", ours.of("receiver_idle_percent").unwrap(), 7.9, 3.0);
    is_near("6-2 packets sent", ours.of("acknowledgments_sent").unwrap(), 92.0, 10.0);
    is_near("6-2 data rate", ours.of("throughput_kbps").unwrap(), 4.9, 5.0);
    let ours = measure(&setup("total_bytes = 367000"), 1);
    println!("{ours:?}");
    is_near("6-2 predicted seconds", ours.of("duration_s").unwrap(), 572.5, 1.0);
}

#[test]
fn foreign_hosts_echo_through_the_concentrator_as_in_table_6_6() {
    // The hosts' own times are fitted at 19,200 bit/s; those at 9,600 are judged. The paper's CSR at 9,600 is illegible, and is
    // its time at 19,200 with the difference that is printed.
    let rows =
        [("csr", 175.0, 128.0), ("comet", 196.0, 136.0), ("xx", 212.0, 161.0), ("multics", 382.0, 325.0)];
    for (host, at_9600, at_19200) in rows {
        let ours = [9600, 19_200].map(|speed| {
            let setup = format!(
                r#"
                machine = {{ kind = "ibm-pc" }}
                link = {{ kind = "concentrator", bits_per_second = {speed} }}
                program = {{ kind = "echo", count = 100 }}
                parameters = {{ peer = {{ kind = "{host}" }} }}
                "#
            );
            measure(&setup, 1).of("echo_ms").unwrap()
        });
        is_near(&format!("6-6 {host} at 9600"), ours[0], at_9600, 10.0);
        is_near(&format!("6-6 {host} at 19200"), ours[1], at_19200, 3.0);
    }
}

fn screenful_from(host: &str, segment_bytes: u32, more: &str, seed: u64) -> inhost_machines::Measured {
    let setup = format!(
        r#"
        machine = {{ kind = "ibm-pc" }}
        link = {{ kind = "concentrator", bits_per_second = 19200 {more} }}
        program = {{ kind = "screenful" }}
        parameters = {{ peer = {{ kind = "{host}" }}, segment_bytes = {segment_bytes} }}
        "#
    );
    measure(&setup, seed)
}

#[test]
fn screens_come_through_the_concentrator_as_in_table_6_7() {
    // CSR sends four packets, and XX eight.
    for (host, segment_bytes, packets, predicted, measured, percent) in
        [("csr", 500, 4.0, 2.67, 2.91, 10.0), ("xx", 250, 8.0, 2.77, 3.19, 15.0)]
    {
        let ours = screenful_from(host, segment_bytes, "", 1);
        assert_eq!(ours.of("packets"), Some(packets));
        is_near(&format!("6-7 {host}, predicted"), ours.of("screenful_s").unwrap(), predicted, 3.0);
        is_near(&format!("6-7 {host}, measured"), ours.of("screenful_s").unwrap(), measured, percent);
    }
}

#[test]
fn a_packet_lost_to_the_concentrator_s_bug_costs_a_timeout_as_in_figure_6_3() {
    // The paper has clumps at about 3, 7 and 11 seconds, for none, one and two retransmissions. This host repeats all that was
    // lost after one timeout of four seconds, of which the work on earlier packets hides a part: it has two clumps.
    let runs: Vec<(f64, f64)> = (0..20)
        .map(|seed| screenful_from("csr", 500, ", lost_percent = 30", seed))
        .map(|ours| (ours.of("screenful_s").unwrap(), ours.of("packets").unwrap() - 4.0))
        .collect();
    let (whole, repeated): (Vec<_>, Vec<_>) =
        runs.iter().partition(|&&(_, retransmissions)| retransmissions == 0.0);
    assert!(whole.len() > 3 && repeated.len() > 3, "{runs:?}");
    assert!(whole.iter().all(|(seconds, _)| (2.5..3.0).contains(seconds)), "{whole:?}");
    assert!(repeated.iter().all(|(seconds, _)| (4.5..11.5).contains(seconds)), "{repeated:?}");
}

#[test]
fn more_packets_than_the_concentrator_has_buffers_are_lost() {
    // Comet sends more than twenty packets of about eighty bytes (MIT §6.3.3).
    let lossless = screenful_from("comet", 80, ", packet_buffers = 32", 1);
    let few = screenful_from("comet", 80, "", 1);
    assert_eq!(lossless.of("packets"), Some(25.0));
    assert!(few.of("packets").unwrap() > 25.0, "{few:?}");
    assert!(few.of("screenful_s").unwrap() > lossless.of("screenful_s").unwrap() + 1.0);
}

#[test]
fn slip_saves_the_handshake_of_llp_and_its_waits() {
    let echo_ms = |link: &str| {
        let setup = format!(
            r#"
            machine = {{ kind = "ibm-pc" }}
            link = {{ kind = "{link}", bits_per_second = 9600 }}
            program = {{ kind = "echo", count = 100 }}
            "#
        );
        measure(&setup, 1).of("echo_ms").unwrap()
    };
    // LLP has 48 octets one way, and SLIP 42 or 43 with its ENDs.
    let saved_octets = (echo_ms("llp") - echo_ms("slip")) / 2.0 / 1.0417;
    assert!((4.0..7.0).contains(&saved_octets), "{saved_octets}");
}

#[test]
fn the_scheduler_of_procedures_saves_what_section_4_2_4_says() {
    let echo_ms = |machine: &str| {
        let setup = format!(
            r#"
            machine = {{ kind = "{machine}" }}
            link = {{ kind = "llp", bits_per_second = 9600 }}
            program = {{ kind = "echo", count = 100 }}
            "#
        );
        measure(&setup, 1).of("echo_ms").unwrap()
    };
    // Two packets sent and two received: half a millisecond, which no user would notice. Escapes on the line, which follow from
    // the numbers in the headers, come and go by a tenth.
    let saved_ms = echo_ms("ibm-pc") - echo_ms("ibm-pc-with-procedures");
    assert!((saved_ms - 0.53).abs() < 0.15, "{saved_ms}");
}

#[test]
fn an_ethernet_card_would_do_for_a_pc_what_section_7_1_expects() {
    let on_ethernet = |program: &str| {
        let setup = format!(
            r#"
            machine = {{ kind = "ibm-pc" }}
            link = {{ kind = "ethernet" }}
            program = {{ {program} }}
            parameters = {{ window_bytes = 4000, segment_bytes = 500 }}
            "#
        );
        measure(&setup, 1)
    };
    // "By as much as a factor of two or three", from 63.8 ms.
    let echo_ms = on_ethernet(r#"kind = "echo", count = 100"#).of("echo_ms").unwrap();
    is_near("7.1, echo", echo_ms, 63.8 / 3.0, 5.0);
    // "From 2.8 seconds to 2.3 seconds".
    let screenful_s = on_ethernet(r#"kind = "screenful""#).of("screenful_s").unwrap();
    is_near("7.1, screenful", screenful_s, 2.30, 1.0);
}

#[test]
fn an_answer_before_the_last_packet_lets_both_ends_work_at_a_time() {
    let kbps = |early_answer: bool| {
        let setup = format!(
            r#"
            machine = {{ kind = "ibm-pc" }}
            link = {{ kind = "llp", bits_per_second = 9600 }}
            program = {{ kind = "bulk", write_bytes = 500, duration_s = 600, prints = true }}
            parameters = {{ early_answer = {early_answer} }}
            "#
        );
        measure(&setup, 1).of("throughput_kbps").unwrap()
    };
    // MIT §7.1 expects it, and does not say how much.
    assert!(kbps(true) > 1.03 * kbps(false));
}
