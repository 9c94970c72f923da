//! Situations made with the simulator. The truth is how they are made: links, buffers and programs.

use super::network::*;
use inhost_explain::{Cause, Sign, Vantage, Verdict};
use inhost_sim::{Duration, LinkConfig, Loss, QueueConfig};
use inhost_tcp::Config;

fn with(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::default();
    change(&mut config);
    config
}
/// As our stack is, and as Linux is.
fn stacks() -> [Config; 2] {
    [Config::default(), Config::linux()]
}
fn show(verdict: &Verdict) -> String {
    let shares = |side: usize| {
        verdict.directions[side]
            .shares
            .iter()
            .map(|share| format!("{:?} {:.1} %", share.cause, share.per_cent))
            .collect::<Vec<_>>()
    };
    format!("{}\n{:?}\n{:?}\n{:?}", verdict.text(), shares(0), shares(1), verdict.findings)
}
/// The cause at each vantage, its share at least, and nothing sure that is wrong.
fn expect(name: &str, verdicts: &[Verdict; 3], direction: usize, cause: Cause, least_per_cent: f64) {
    for (verdict, vantage) in verdicts.iter().zip([Vantage::Client, Vantage::Middle, Vantage::Server]) {
        println!("{name} {vantage:?}: {}", show(verdict));
    }
    for (verdict, vantage) in verdicts.iter().zip([Vantage::Client, Vantage::Middle, Vantage::Server]) {
        assert_eq!(verdict.vantage, vantage, "{name}");
        let share = verdict.per_cent(direction, cause);
        assert_eq!((verdict.cause, verdict.direction), (cause, direction), "{name} {vantage:?}");
        assert!(share >= least_per_cent, "{name} {vantage:?}: {share:.1} % {cause:?}\n{}", show(verdict));
    }
}

#[test]
fn a_small_window() {
    let small = with(|tcp| {
        tcp.receive_buffer_limit_bytes = 65_536;
        tcp.receive_buffer_initial_bytes = 65_536;
        tcp.window_scaling = false;
    });
    // Some 300 round trips.
    let client = sends(20_000_000);
    let verdicts = Situation { client, tcp: [Config::default(), small], ..Situation::default() }.verdicts();
    expect("small window", &verdicts, 0, Cause::ReceiverWindow, 70.0);
    for verdict in &verdicts {
        assert!(verdict.has(Sign::NoWindowScaling));
        assert!(verdict.remedy.contains("the server did not offer window scaling"), "{}", verdict.remedy);
    }
}

#[test]
fn slow_start_does_not_end() {
    let roomy = with(|tcp| tcp.receive_buffer_initial_bytes = 4 << 20);
    let tcp = [Config::default(), roomy];
    let verdicts = Situation { client: sends(600_000), tcp, ..Situation::default() }.verdicts();
    expect("slow start", &verdicts, 0, Cause::SlowStart, 50.0);
}

#[test]
fn a_reader_that_does_not_read() {
    let server = program(|host| async move {
        let Ok(stream) = listener().accept().await else { return };
        let mut place = vec![0; 1 << 16];
        host.sleep(Duration::from_secs(3)).await;
        while let Ok(1..) = stream.receive(&mut place).await {}
        stream.shutdown();
    });
    let small = with(|tcp| {
        tcp.receive_buffer_limit_bytes = 100_000;
        tcp.receive_buffer_initial_bytes = 100_000;
    });
    let client = sends(300_000);
    let verdicts =
        Situation { server, client, tcp: [Config::default(), small], ..Situation::default() }.verdicts();
    expect("zero window", &verdicts, 0, Cause::ZeroWindow, 60.0);
}

#[test]
fn a_server_that_thinks() {
    let client = program(|host| async move {
        let Ok(stream) = host.connect(server_at()).await else { return };
        for _ in 0..5 {
            let _ = stream.send(b"question", Default::default()).await;
            let mut left = 5000;
            while left > 0 {
                let Ok(count @ 1..) = stream.receive(&mut [0; 4096]).await else { return };
                left -= count.min(left);
            }
        }
        stream.shutdown();
    });
    let server = program(|host| async move {
        let Ok(stream) = listener().accept().await else { return };
        while let Ok(1..) = stream.receive(&mut [0; 100]).await {
            host.sleep(Duration::from_millis(300)).await;
            let _ = stream.send(&[1; 5000], Default::default()).await;
        }
        stream.shutdown();
    });
    let verdicts = Situation { client, server, ..Situation::default() }.verdicts();
    expect("think time", &verdicts, 1, Cause::ThinkTime, 75.0);
}

/// The acknowledgments of the requests come with the answers, before they would be sent alone.
#[test]
fn a_server_that_thinks_for_less_than_an_acknowledgment_is_delayed() {
    for tcp in stacks() {
        let client = program(|host| async move {
            let Ok(stream) = host.connect(server_at()).await else { return };
            for _ in 0..60 {
                let _ = stream.send(b"question", Default::default()).await;
                let Ok(1..) = stream.receive(&mut [0; 4096]).await else { return };
            }
            stream.shutdown();
        });
        let server = program(|host| async move {
            let Ok(stream) = listener().accept().await else { return };
            while let Ok(1..) = stream.receive(&mut [0; 100]).await {
                host.sleep(Duration::from_millis(25)).await;
                let _ = stream.send(b"an answer", Default::default()).await;
            }
            stream.shutdown();
        });
        let links = [[link(1), link(1)], [link(1), link(1)]];
        let tcp = [tcp.clone(), tcp];
        let verdicts = Situation { client, server, links, tcp, ..Situation::default() }.verdicts();
        expect("short thoughts", &verdicts, 1, Cause::ThinkTime, 80.0);
        for verdict in &verdicts {
            let share = verdict.per_cent(0, Cause::AwaitingPeer);
            assert!((80.0..90.0).contains(&share), "{share:.1} %\n{}", show(verdict));
        }
    }
}

#[test]
fn a_slow_source() {
    let client = program(|host| async move {
        let Ok(stream) = host.connect(server_at()).await else { return };
        for _ in 0..20 {
            let _ = stream.send(&[1; 3000], Default::default()).await;
            host.sleep(Duration::from_millis(200)).await;
        }
        stream.shutdown();
    });
    let verdicts = Situation { client, ..Situation::default() }.verdicts();
    expect("slow source", &verdicts, 0, Cause::ApplicationIdle, 65.0);
}

#[test]
fn small_writes_and_delayed_acknowledgments() {
    let client = program(|host| async move {
        let Ok(stream) = host.connect(server_at()).await else { return };
        for _ in 0..20 {
            // Two small writes a request: the second waits for the acknowledgment of the first.
            let _ = stream.send(&[1; 100], Default::default()).await;
            host.sleep(Duration::from_micros(50)).await;
            let _ = stream.send(&[1; 100], Default::default()).await;
            let mut left = 100;
            while left > 0 {
                let Ok(count @ 1..) = stream.receive(&mut [0; 4096]).await else { return };
                left -= count.min(left);
            }
        }
        stream.shutdown();
    });
    let server = program(|_| async move {
        let Ok(stream) = listener().accept().await else { return };
        loop {
            let mut left = 200;
            while left > 0 {
                let Ok(count @ 1..) = stream.receive(&mut [0; 4096]).await else { return };
                left -= count.min(left);
            }
            let _ = stream.send(&[1; 100], Default::default()).await;
        }
    });
    let links = [[link(1), link(1)], [link(1), link(1)]];
    let verdicts = Situation { client, server, links, ..Situation::default() }.verdicts();
    expect("Nagle", &verdicts, 0, Cause::NagleDelayedAck, 60.0);
}

fn bottleneck(packets: usize) -> [LinkConfig; 2] {
    let narrow = LinkConfig {
        rate_bits_per_second: Some(10_000_000),
        queue: QueueConfig::tail_drop(packets),
        ..link(10)
    };
    [narrow, link(10)]
}

#[test]
fn a_full_bottleneck_with_a_long_queue() {
    let links = [[link(10), link(10)], bottleneck(2000)];
    let verdicts = Situation { links, client: sends(6_000_000), ..Situation::default() }.verdicts();
    expect("bufferbloat", &verdicts, 0, Cause::BottleneckRate, 60.0);
    for verdict in &verdicts {
        assert!(verdict.has(Sign::Bufferbloat), "{}", show(verdict));
    }
}

#[test]
fn random_loss() {
    let lossy = LinkConfig { loss: Loss::per_mille(20), ..link(10) };
    let links = [[link(10), link(10)], [lossy, link(10)]];
    let verdicts = Situation { links, client: sends(3_000_000), ..Situation::default() }.verdicts();
    for verdict in &verdicts {
        println!("{}", show(verdict));
    }
    for verdict in &verdicts {
        let hurt = [Cause::FastRecovery, Cause::CongestionWindow, Cause::Timeout, Cause::TailLoss];
        let sum: f64 = hurt.iter().map(|&cause| verdict.per_cent(0, cause)).sum();
        assert!(sum > 70.0, "{}", show(verdict));
        assert!(verdict.remedy.starts_with("mend the loss of the path"), "{}", show(verdict));
    }
    assert!(verdicts[0].has(Sign::RandomLoss));
}

#[test]
fn the_first_syn_is_lost() {
    let lossy = LinkConfig { loss: Loss::Scripted(vec![1]), ..link(10) };
    let links = [[link(10), link(10)], [lossy, link(10)]];
    let verdicts = Situation { links, client: sends(1000), ..Situation::default() }.verdicts();
    let [client, middle, _] = &verdicts;
    for verdict in [client, middle] {
        println!("{}", show(verdict));
        assert_eq!(verdict.cause, Cause::SynLoss);
        assert!(verdict.per_cent(0, Cause::SynLoss) > 80.0);
    }
}

#[test]
fn the_last_segment_is_lost() {
    // One message of three segments a second; the last is lost each time.
    let client = program(|host| async move {
        let Ok(stream) = host.connect(server_at()).await else { return };
        for _ in 0..4 {
            let _ = stream.send(&[1; 4000], Default::default()).await;
            let mut place = [0; 100];
            let _ = stream.receive(&mut place).await;
        }
        stream.shutdown();
    });
    let server = program(|_| async move {
        let Ok(stream) = listener().accept().await else { return };
        loop {
            let mut left = 4000;
            while left > 0 {
                let Ok(count @ 1..) = stream.receive(&mut [0; 4096]).await else { return };
                left -= count.min(left);
            }
            let _ = stream.send(&[1; 100], Default::default()).await;
        }
    });
    // SYN, ACK, three segments: the fifth is the last; then its probe, and so on.
    let lossy = LinkConfig { loss: Loss::Scripted(vec![5, 10, 15]), ..link(10) };
    let links = [[link(10), link(10)], [lossy, link(10)]];
    let verdicts = Situation { client, server, links, ..Situation::default() }.verdicts();
    verdicts.iter().for_each(|verdict| println!("{}", show(verdict)));
    assert!(verdicts[0].per_cent(0, Cause::TailLoss) + verdicts[0].per_cent(0, Cause::Timeout) > 20.0);
}

#[test]
fn a_black_hole_of_mtu() {
    let hole = LinkConfig { mtu_bytes: Some(1000), ..link(10) };
    let links = [[link(10), link(10)], [hole, link(10)]];
    let client = program(|host| async move {
        let Ok(stream) = host.connect(server_at()).await else { return };
        let _ = stream.send(&[1; 200], Default::default()).await;
        host.sleep(Duration::from_millis(200)).await;
        let mut left = 30_000;
        while left > 0 {
            let Ok(count) = stream.send(&[1; 3000], Default::default()).await else { return };
            left -= count.min(left);
        }
        stream.shutdown();
    });
    let verdicts = Situation { client, links, ..Situation::default() }.verdicts();
    verdicts.iter().for_each(|verdict| println!("{}", show(verdict)));
    for verdict in &verdicts[..2] {
        assert_eq!(verdict.cause, Cause::MtuBlackHole);
    }
}

#[test]
fn a_window_that_restarts_after_each_pause() {
    let client = program(|host| async move {
        let Ok(stream) = host.connect(server_at()).await else { return };
        let piece = vec![1; 1 << 16];
        for _ in 0..4 {
            let mut left = 1_500_000usize;
            while left > 0 {
                let Ok(count) = stream.send(&piece[..left.min(1 << 16)], Default::default()).await else {
                    return;
                };
                left -= count;
            }
            host.sleep(Duration::from_millis(900)).await;
        }
        stream.shutdown();
    });
    let verdicts = Situation { client, ..Situation::default() }.verdicts();
    verdicts.iter().for_each(|verdict| println!("{}", show(verdict)));
    for verdict in &verdicts {
        assert!(verdict.per_cent(0, Cause::SlowStartRestart) > 10.0);
    }
}

#[test]
fn two_causes_a_small_window_and_a_slow_source() {
    let client = program(|host| async move {
        let Ok(stream) = host.connect(server_at()).await else { return };
        let piece = vec![1; 1 << 16];
        for _ in 0..3 {
            let mut left = 400_000usize;
            while left > 0 {
                let Ok(count) = stream.send(&piece[..left.min(1 << 16)], Default::default()).await else {
                    return;
                };
                left -= count;
            }
            host.sleep(Duration::from_millis(500)).await;
        }
        stream.shutdown();
    });
    let small = with(|tcp| {
        tcp.receive_buffer_limit_bytes = 65_536;
        tcp.receive_buffer_initial_bytes = 65_536;
    });
    let verdicts = Situation { client, tcp: [Config::default(), small], ..Situation::default() }.verdicts();
    verdicts.iter().for_each(|verdict| println!("{}", show(verdict)));
    for verdict in &verdicts {
        assert!(verdict.per_cent(0, Cause::ReceiverWindow) > 25.0);
        assert!(verdict.per_cent(0, Cause::ApplicationIdle) > 25.0);
    }
}

#[test]
fn a_paced_sender() {
    let paced = with(|tcp| tcp.max_pacing_rate_bytes_per_second = Some(500_000));
    let verdicts = Situation { tcp: [paced, Config::default()], ..Situation::default() }.verdicts();
    expect("pacing", &verdicts, 0, Cause::Pacing, 60.0);
    for verdict in &verdicts {
        assert!(verdict.confidence < 0.8, "a link of that rate looks alike");
    }
}

#[test]
fn exchanges_without_thought() {
    for tcp in stacks() {
        let client = program(|host| async move {
            let Ok(stream) = host.connect(server_at()).await else { return };
            for _ in 0..30 {
                let _ = stream.send(b"question", Default::default()).await;
                let Ok(1..) = stream.receive(&mut [0; 4096]).await else { return };
            }
            stream.shutdown();
        });
        let server = program(|_| async move {
            let Ok(stream) = listener().accept().await else { return };
            while let Ok(1..) = stream.receive(&mut [0; 100]).await {
                let _ = stream.send(&[1; 500], Default::default()).await;
            }
            stream.shutdown();
        });
        let tcp = [tcp.clone(), tcp];
        let verdicts = Situation { client, server, tcp, ..Situation::default() }.verdicts();
        for verdict in &verdicts {
            assert_eq!(verdict.cause, Cause::AwaitingAcknowledgment, "{}", show(verdict));
            assert!(verdict.diagnosis.contains("small exchanges"), "{}", show(verdict));
        }
    }
}

/// Writes whose acknowledgments are delayed: neither exchanges nor a fault.
#[test]
fn writes_wait_for_delayed_acknowledgments() {
    let client = program(|host| async move {
        let Ok(stream) = host.connect(server_at()).await else { return };
        for _ in 0..10 {
            let _ = stream.send(b"a note", Default::default()).await;
            host.sleep(Duration::from_millis(45)).await;
        }
        stream.shutdown();
    });
    let links = [[link(1), link(1)], [link(1), link(1)]];
    for verdict in (Situation { client, links, ..Situation::default() }).verdicts() {
        assert_eq!(verdict.cause, Cause::AwaitingAcknowledgment, "{}", show(&verdict));
        assert!(verdict.diagnosis.contains("the server delays the acknowledgment"), "{}", show(&verdict));
        assert!(verdict.remedy.starts_with("nothing for this transfer"), "{}", show(&verdict));
    }
}

#[test]
fn a_send_buffer_looks_like_a_congestion_window() {
    let small = with(|tcp| {
        tcp.send_buffer_limit_bytes = 65_536;
        tcp.send_buffer_initial_bytes = 65_536;
    });
    let verdicts = Situation { tcp: [small, Config::default()], ..Situation::default() }.verdicts();
    for verdict in &verdicts {
        println!("{}", show(verdict));
        // Our sender spreads it: away from the sender that looks like a pacer's rate.
        let is_so = matches!(verdict.cause, Cause::CongestionWindow | Cause::Pacing);
        assert!(is_so && verdict.confidence < 0.8, "{}", show(verdict));
    }
}

#[test]
fn a_bottleneck_with_a_short_queue() {
    for tcp in stacks() {
        let links = [[link(10), link(10)], bottleneck(15)];
        let tcp = [tcp.clone(), tcp];
        let verdicts = Situation { links, tcp, client: sends(6_000_000), ..Situation::default() }.verdicts();
        for verdict in &verdicts {
            println!("{}", show(verdict));
            assert!(verdict.has(Sign::BurstLoss) && !verdict.has(Sign::Bufferbloat), "{}", show(verdict));
            let sum = verdict.per_cent(0, Cause::BottleneckRate) + verdict.per_cent(0, Cause::FastRecovery);
            assert!(sum > 60.0, "{}", show(verdict));
        }
    }
}

#[test]
fn a_path_that_reorders() {
    let path = LinkConfig { reordered_per_million: 10_000, ..link(10) };
    let links = [[link(10), link(10)], [path, link(10)]];
    let verdicts = Situation { links, ..Situation::default() }.verdicts();
    for verdict in &verdicts {
        println!("{}", show(verdict));
        assert!(verdict.has(Sign::Reordering) || verdict.has(Sign::ReorderingMistaken), "{}", show(verdict));
        let counts = verdict.directions[0].retransmissions;
        assert!(counts.spurious + counts.needless >= counts.total / 3, "nothing was lost: {}", show(verdict));
        // Late is not lost.
        assert!(!verdict.diagnosis.contains("losses of"), "{}", show(verdict));
    }
}

#[test]
fn two_causes_a_thinking_server_and_slow_start() {
    for tcp in stacks() {
        let client = program(|host| async move {
            let Ok(stream) = host.connect(server_at()).await else { return };
            let _ = stream.send(b"question", Default::default()).await;
            let mut place = vec![0; 1 << 16];
            while let Ok(1..) = stream.receive(&mut place).await {}
            stream.shutdown();
        });
        let server = program(|host| async move {
            let Ok(stream) = listener().accept().await else { return };
            let _ = stream.receive(&mut [0; 100]).await;
            host.sleep(Duration::from_millis(150)).await;
            let mut left = 200_000usize;
            while left > 0 {
                let Ok(count) = stream.send(&[1; 1 << 14][..left.min(1 << 14)], Default::default()).await
                else {
                    return;
                };
                left -= count;
            }
            stream.shutdown();
        });
        let tcp = [tcp.clone(), tcp];
        for verdict in (Situation { client, server, tcp, ..Situation::default() }).verdicts() {
            println!("{}", show(&verdict));
            assert_eq!(verdict.direction, 1);
            // 150 ms of thought and some 120 ms of slow start in some 400 ms, of which Linux's first window takes a part.
            assert!((25.0..50.0).contains(&verdict.per_cent(1, Cause::ThinkTime)), "{}", show(&verdict));
            assert!((15.0..45.0).contains(&verdict.per_cent(1, Cause::SlowStart)), "{}", show(&verdict));
        }
    }
}

#[test]
fn two_causes_a_bottleneck_and_a_slow_source() {
    for tcp in stacks() {
        let client = program(|host| async move {
            let Ok(stream) = host.connect(server_at()).await else { return };
            let piece = vec![1; 1 << 16];
            for _ in 0..3 {
                let mut left = 1_250_000usize;
                while left > 0 {
                    let Ok(count) = stream.send(&piece[..left.min(1 << 16)], Default::default()).await else {
                        return;
                    };
                    left -= count;
                }
                host.sleep(Duration::from_millis(2500)).await;
            }
            stream.shutdown();
        });
        let links = [[link(10), link(10)], bottleneck(300)];
        let tcp = [tcp.clone(), tcp];
        for verdict in (Situation { client, links, tcp, ..Situation::default() }).verdicts() {
            println!("{}", show(&verdict));
            // Three times a second of sending and a second and a half of nothing.
            assert!(verdict.per_cent(0, Cause::BottleneckRate) > 20.0, "{}", show(&verdict));
            assert!(verdict.per_cent(0, Cause::ApplicationIdle) > 40.0, "{}", show(&verdict));
        }
    }
}
