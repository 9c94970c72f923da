//! What goes wrong in the tasks of simulated hosts, detached ones included, fails the run and names the task.

use std::cell::Cell;
use std::rc::Rc;

use inhost_sim::{Duration, Node, ProgramResult, Simulation};
use inhost_socket::yield_now;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PORT: u16 = 7;

/// A client that is content with whatever the server does.
async fn hello(node: Node) -> ProgramResult {
    let mut stream = node.dial("server", PORT).await?;
    stream.write_all(b"hello").await?;
    stream.shutdown();
    node.sleep(Duration::from_secs(2)).await;
    Ok(())
}

fn failure(simulation: &mut Simulation) -> String {
    simulation.set_time_limit(Duration::from_secs(60));
    simulation.run().unwrap_err().to_string()
}

#[test]
fn a_panic_in_a_detached_task_fails_the_run_with_host_and_time() {
    let mut simulation = Simulation::new(1);
    simulation.host("server", async |node| {
        let listener = node.bind(PORT)?;
        loop {
            let mut stream = listener.accept().await?;
            node.spawn(async move {
                let mut text = [0; 5];
                stream.read_exact(&mut text).await.unwrap();
                assert_eq!(&text, b"HELLO", "not what was to come");
            })
            .detach();
        }
    });
    simulation.client("client", hello);
    let why = failure(&mut simulation);
    assert!(why.starts_with("server: a task panicked at 1."), "{why}");
    assert!(why.contains("lab/sim/tests/it/tasks.rs:") && why.contains("not what was to come"), "{why}");
    assert!(why.contains("INHOST_SIM_SEED=1"), "{why}");
}

#[test]
fn a_panic_that_somebody_awaits_is_told_of_once_and_where_it_was() {
    let mut simulation = Simulation::new(1);
    simulation.client("client", async |node| {
        node.sleep(Duration::from_millis(500)).await;
        node.spawn(async { panic!("on purpose") }).await;
        Ok(())
    });
    let why = failure(&mut simulation);
    assert!(why.starts_with("client: a task panicked at 1.5"), "{why}");
    assert_eq!(why.matches("on purpose").count(), 1, "{why}");
}

#[test]
fn a_task_that_wakes_itself_for_ever_is_named() {
    let mut simulation = Simulation::new(1);
    simulation.host("server", async |node| {
        node.spawn(async { std::future::pending::<()>().await }).detach();
        node.sleep(Duration::from_millis(250)).await;
        node.spawn(async {
            loop {
                yield_now().await;
            }
        })
        .detach();
        Ok(())
    });
    simulation.client("client", async |node| {
        node.sleep(Duration::from_secs(30)).await;
        Ok(())
    });
    let why = failure(&mut simulation);
    assert!(why.starts_with("server: a task spins at 1.2"), "{why}");
    assert!(why.contains("lab/sim/tests/it/tasks.rs:"), "{why}");
}

#[test]
fn tasks_of_two_hosts_that_wake_each_other_for_ever_are_named() {
    let mut simulation = Simulation::new(1);
    let turn = Rc::new(Cell::new(0));
    for (number, name) in ["even", "odd"].into_iter().enumerate() {
        let turn = turn.clone();
        simulation.client(name, async move |node| {
            // Each waits for the other by looking again and again.
            for _ in 0..u64::MAX {
                if turn.get() % 2 == number {
                    turn.set(turn.get() + 1);
                }
                yield_now().await;
            }
            node.sleep(Duration::from_secs(1)).await;
            Ok(())
        });
    }
    let why = failure(&mut simulation);
    assert!(why.contains(": a task spins at 1.0"), "{why}");
}

#[test]
fn a_task_that_reads_at_the_end_of_a_stream_for_ever_is_named() {
    let mut simulation = Simulation::new(1);
    simulation.host("server", async |node| {
        let listener = node.bind(PORT)?;
        let mut stream = listener.accept().await?;
        let (mut place, mut count) = ([0; 100], 0);
        // The end of the stream is a read of nothing, again and again.
        while count < 100 {
            count += stream.read(&mut place).await?;
        }
        Ok(())
    });
    simulation.client("client", hello);
    let why = failure(&mut simulation);
    assert!(why.starts_with("server: a task spins at 1."), "{why}");
    assert!(why.contains("within one poll"), "{why}");
}

#[test]
fn a_host_with_much_to_do_does_not_spin() {
    let mut simulation = Simulation::new(1);
    simulation.host("server", async |node| {
        let listener = node.bind(PORT)?;
        loop {
            let mut stream = listener.accept().await?;
            node.spawn(async move {
                let mut place = [0; 1 << 16];
                while stream.read(&mut place).await.is_ok_and(|count| count > 0) {}
            })
            .detach();
        }
    });
    for number in 0..20 {
        simulation.client(&format!("client {number}"), async |node| {
            let mut stream = node.dial("server", PORT).await?;
            for _ in 0..20_000 {
                stream.write_all(b"x").await?;
                yield_now().await;
            }
            Ok(())
        });
    }
    simulation.run().unwrap();
}

#[test]
fn the_time_limit_of_a_program_does_not_read_as_that_of_the_run() {
    let program = |limit_of_run| {
        let mut simulation = Simulation::new(1);
        simulation.client("client", async |node| {
            node.timeout(Duration::from_secs(5), std::future::pending::<()>()).await?;
            Ok(())
        });
        simulation.set_time_limit(limit_of_run);
        simulation.run().unwrap_err().to_string()
    };
    let (own, of_run) = (program(Duration::from_secs(60)), program(Duration::from_secs(2)));
    assert!(own.starts_with("client: its program ended at 6.000"), "{own}");
    assert!(own.contains("not done within the 5.000 s that Host::timeout gave it"), "{own}");
    assert!(of_run.starts_with("the run's time limit of 2.000 s was reached at 3.000"), "{of_run}");
}

#[test]
fn a_loop_that_does_nothing_ends_the_process_within_a_second_and_says_where() {
    const CHILD: &str = "INHOST_SIM_TEST_LOOPS";
    const NAME: &str = "tasks::a_loop_that_does_nothing_ends_the_process_within_a_second_and_says_where";
    if std::env::var_os(CHILD).is_some() {
        let mut simulation = Simulation::new(1);
        simulation.client("client", async |node| {
            node.sleep(Duration::from_millis(500)).await;
            let flag = Cell::new(false);
            while !flag.get() {
                std::hint::spin_loop();
            }
            Ok(())
        });
        let _ = simulation.run();
        return;
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let child = inhost_interop::output(child.args([NAME, "--exact", "--nocapture"]).env(CHILD, "1"));
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success(), "{said}");
    assert!(said.contains("client: a task spins at 1.500 s: one poll has taken 8"), "{said}");
    assert!(said.contains("lab/sim/tests/it/tasks.rs:") && said.contains("INHOST_SIM_SEED=1"), "{said}");
}
