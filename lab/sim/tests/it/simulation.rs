//! Programs on simulated hosts: what ends a run, and what it says then.

use inhost_base::Duration;
use inhost_sim::{LinkConfig, Loss, Node, ProgramResult, Simulation};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PORT: u16 = 7;

async fn echo(node: Node) -> ProgramResult {
    let listener = node.bind(PORT)?;
    loop {
        let stream = listener.accept().await?;
        node.spawn(async move {
            let (mut from, mut to) = tokio::io::split(stream);
            tokio::io::copy(&mut from, &mut to).await?;
            to.shutdown().await
        })
        .detach();
    }
}

async fn ask(node: Node, bytes: usize) -> ProgramResult {
    let mut stream = node.dial("server", PORT).await?;
    let sent: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
    stream.write_all(&sent).await?;
    stream.shutdown();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await?;
    assert!(received == sent, "{} of {bytes} bytes came back, or others", received.len());
    Ok(())
}

fn lossy() -> LinkConfig {
    LinkConfig { loss: Loss::per_mille(80), delay: Duration::from_millis(7), ..LinkConfig::default() }
}

#[test]
fn clients_end_the_run_and_the_same_seed_gives_the_same_one() {
    let run = |seed| {
        let mut simulation = Simulation::new(seed);
        simulation.set_link(lossy());
        simulation.host("server", echo);
        for number in 0..3 {
            simulation
                .client(&format!("client {number}"), async move |node| ask(node, 20_000 * number).await);
        }
        simulation.run().unwrap()
    };
    let (first, again, other) = (run(5), run(5), run(6));
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert!(first.payload_bytes > 2 * 60_000, "{first:?}");
}

#[test]
fn a_failure_says_who_and_how_to_see_it_again() {
    let mut simulation = Simulation::new(9);
    simulation.host("server", echo);
    simulation.client("client", async |node| {
        node.dial("nobody", PORT).await?;
        Ok(())
    });
    let why = simulation.run().unwrap_err();
    assert_eq!(why.why, "client: its program ended at 1.000 s with an error: no host is called nobody");
    assert!(why.command.starts_with("INHOST_SIM_SEED=9 INHOST_SIM_PCAPNG=seed-9.pcapng "), "{}", why.command);
    assert!(
        why.command.ends_with("a_failure_says_who_and_how_to_see_it_again --exact --nocapture"),
        "{}",
        why.command
    );

    let mut simulation = Simulation::new(9);
    simulation.client("client", async |_| panic!("on purpose"));
    let why = simulation.run().unwrap_err().why;
    assert!(why.starts_with("client: a task panicked at 1.000 s: on purpose (spawned at "), "{why}");
}

#[test]
fn who_waits_for_ever_is_found() {
    let mut simulation = Simulation::new(1);
    simulation.client("client", async |node| {
        let listener = node.bind(PORT)?;
        listener.accept().await?;
        Ok(())
    });
    let why = simulation.run().unwrap_err().why;
    assert!(why.starts_with("deadlock at ") && why.ends_with(" and client waits"), "{why}");
}

#[test]
fn cuts_pauses_and_changes_come_in_mid_run() {
    let mut simulation = Simulation::new(3);
    simulation.set_link(LinkConfig { rate_bits_per_second: Some(2_000_000), ..LinkConfig::default() });
    let server = simulation.host("server", echo);
    simulation.client("client", async |node| ask(node, 300_000).await);
    let network = simulation.network();
    network.after(Duration::from_millis(200), move |network| network.cut(server));
    network.after(Duration::from_millis(900), move |network| network.heal(server));
    network.after(Duration::from_millis(1500), move |network| network.pause(server, Duration::from_secs(2)));
    let report = simulation.run().unwrap();
    // 300,000 bytes take 1.2 s each way at the same time; the rest is waiting.
    assert!(report.virtual_time > Duration::from_secs(3), "{report:?}");
    let network = simulation.network();
    assert!(network.statistics(server, 0).cut + network.statistics(server, 1).cut > 0);
}

#[test]
fn what_is_over_is_forgotten_by_the_checker() {
    let mut simulation = Simulation::new(4);
    simulation.set_link(lossy());
    simulation.host("server", echo);
    simulation.client("client", async |node| {
        for _ in 0..200 {
            ask(node.clone(), 2000).await?;
            node.sleep(Duration::from_secs(10)).await;
        }
        Ok(())
    });
    simulation.run().unwrap();
    let remembered = simulation.network().checker().remembered();
    // Both ends of what was there in five minutes, and in the one between two looks.
    assert!((2..=2 * 6 * (5 + 1)).contains(&remembered), "{remembered} ends of 400 are remembered");
}
