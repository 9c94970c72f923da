//! The server under loss, delay and partitions.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use inhost::sim::{LinkConfig, Loss, Node, ProgramResult, Simulation};
use tokio_util::codec::{Framed, LinesCodec};

use crate::net::{TcpListener, TcpStream};
use crate::{server, time};

const NAMES: [&str; 4] = ["ada", "edsger", "grace", "radia"];
/// Lines that each client says.
const LINES: usize = 20;

type Lines = Framed<TcpStream, LinesCodec>;

async fn serve(_: Node) -> ProgramResult {
    Ok(server::serve(TcpListener::bind("0.0.0.0:6142").await?).await?)
}

/// Calls until somebody answers: a call may meet the partition.
async fn call() -> Lines {
    loop {
        if let Ok(stream) = TcpStream::connect("server:6142").await {
            return Framed::new(stream, LinesCodec::new());
        }
        time::sleep(Duration::from_secs(1)).await;
    }
}

/// What one client knows of another.
#[derive(Default)]
struct Other {
    lines: usize,
    has_left: bool,
}

/// What a client heard of the others, and how it ended.
#[derive(Default)]
struct Heard {
    present: BTreeSet<String>,
    others: BTreeMap<String, Other>,
}

impl Heard {
    /// Takes one line, which must be the next of whoever said it.
    fn take(&mut self, line: &str) {
        if let Some(name) = line.strip_suffix(" is here") {
            self.present.insert(name.to_owned());
        } else if let Some(name) = line.strip_suffix(" has left") {
            self.others.entry(name.to_owned()).or_default().has_left = true;
        } else {
            let (name, text) = line.split_once(": ").unwrap_or_else(|| panic!("{line:?}"));
            let other = self.others.entry(name.to_owned()).or_default();
            assert!(!other.has_left, "{name} said {text:?} after the end");
            assert_eq!(text, format!("line {}", other.lines), "of {name}");
            other.lines += 1;
        }
    }
    /// Whether everything that the others will say was heard.
    fn is_all(&self, me: &str) -> bool {
        let is_done = |other: &Other| other.lines == LINES || other.has_left && other.lines == LINES / 2;
        NAMES.iter().filter(|&&name| name != me).all(|&name| self.others.get(name).is_some_and(is_done))
    }
}

/// Why a client stopped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stopped {
    HeardAll,
    Left,
    ConnectionEnded,
}

/// One client: says its lines once everybody is here, and listens to the others'. One that leaves early says half of them.
async fn chat(node: Node, me: &str, leaves_early: bool) -> io::Result<Stopped> {
    let mut lines = call().await;
    if lines.send(me).await.is_err() {
        return Ok(Stopped::ConnectionEnded);
    }
    let Some(Ok(welcome)) = lines.next().await else { return Ok(Stopped::ConnectionEnded) };
    let others = welcome.strip_prefix(&format!("welcome, {me}; others here: ")).unwrap();
    let others: usize = others.parse().unwrap();
    let mut heard = Heard::default();
    let mut said = 0;
    let mut due = time::Instant::now();
    let to_say = if leaves_early { LINES / 2 } else { LINES };
    loop {
        if said == LINES && heard.is_all(me) {
            return Ok(Stopped::HeardAll);
        }
        if leaves_early && said == to_say {
            // The room is still listened to: what comes in unread would be answered by a reset, and lines could be lost.
            SinkExt::<&str>::close(&mut lines).await.map_err(io::Error::other)?;
            while let Some(Ok(line)) = lines.next().await {
                heard.take(&line);
            }
            return Ok(Stopped::Left);
        }
        let is_everybody_here = others + heard.present.len() >= NAMES.len() - 1;
        tokio::select! {
            biased;
            line = lines.next() => match line {
                Some(Ok(line)) => heard.take(&line),
                Some(Err(_)) | None => return Ok(Stopped::ConnectionEnded),
            },
            () = time::sleep_until(due), if said < to_say && is_everybody_here => {
                if lines.send(format!("line {said}")).await.is_err() {
                    return Ok(Stopped::ConnectionEnded);
                }
                said += 1;
                due = time::Instant::now() + Duration::from_millis(node.random_below(1500).into());
            }
        }
    }
}

/// A room on links of 20 to 40 ms that lose one frame in twenty, of whose clients one is cut off for a while.
fn room(simulation: &mut Simulation, early: Option<&'static str>) -> Rc<RefCell<Vec<Stopped>>> {
    let seed = simulation.seed();
    simulation.set_link(LinkConfig {
        delay: Duration::from_millis(20).into(),
        jitter: Duration::from_millis(20).into(),
        loss: Loss::per_mille(50),
        ..LinkConfig::default()
    });
    simulation.host("server", serve);
    let stopped = Rc::<RefCell<Vec<Stopped>>>::default();
    let hosts = NAMES.map(|name| {
        let stopped = stopped.clone();
        simulation.client(name, async move |node| {
            let why = chat(node, name, early == Some(name)).await?;
            stopped.borrow_mut().push(why);
            Ok(())
        })
    });
    // Who is cut off, when and for how long follows from the seed.
    let cut = hosts[seed as usize % hosts.len()];
    let (from, length) = (Duration::from_millis(200 * (seed % 50)), Duration::from_secs(1 + seed % 60));
    let network = simulation.network();
    network.after(from.into(), move |network| network.partition(&[cut]));
    network.after((from + length).into(), |network| network.heal_all());
    stopped
}

#[inhost::sim_test(seeds = 100)]
fn each_line_reaches_all_others_in_order(simulation: &mut Simulation) {
    let stopped = room(simulation, None);
    simulation.run().unwrap_or_else(|why| panic!("{why}"));
    // No partition is long enough to end a connection, so nobody may have missed anything.
    assert_eq!(*stopped.borrow(), [Stopped::HeardAll; NAMES.len()]);
}

#[inhost::sim_test(seeds = 100)]
fn who_leaves_is_heard_to_the_last_line(simulation: &mut Simulation) {
    let stopped = room(simulation, Some("grace"));
    simulation.run().unwrap_or_else(|why| panic!("{why}"));
    let mut stopped = stopped.borrow().clone();
    stopped.sort();
    assert_eq!(stopped, [Stopped::HeardAll, Stopped::HeardAll, Stopped::HeardAll, Stopped::Left]);
}

/// Reads nothing for a while. What was sent before the end can be read then, without a gap.
async fn read_late(name: &str, wait: Duration, of_lines: usize) -> ProgramResult {
    let mut lines = call().await;
    lines.send(name).await?;
    time::sleep(wait).await;
    let mut heard = 0;
    while let Some(Ok(line)) = lines.next().await {
        if let Some(number) = line.strip_prefix("talker: ") {
            assert_eq!(number[..6].parse(), Ok(heard));
            heard += 1;
        }
    }
    assert!((1..of_lines).contains(&heard), "{heard}");
    Ok(())
}

#[inhost::sim_test(seeds = 10)]
fn who_is_too_slow_is_let_go_without_a_gap_and_the_others_go_on(simulation: &mut Simulation) {
    const TALK_LINES: usize = 20_000;
    simulation.host("server", serve);
    // One misses the server's patience, the other only its memory of lines.
    simulation.client("silent", async |_| read_late("silent", Duration::from_secs(600), TALK_LINES).await);
    simulation.client("slow", async |_| read_late("slow", Duration::from_secs(30), TALK_LINES).await);
    simulation.client("talker", async |_| {
        time::sleep(Duration::from_secs(1)).await;
        let mut lines = call().await;
        lines.send("talker").await?;
        for number in 0..TALK_LINES {
            lines.send(format!("{number:06}{}", "-".repeat(500))).await?;
        }
        let mut still_here = BTreeSet::from(["silent has left".to_owned(), "slow has left".to_owned()]);
        while !still_here.is_empty() {
            let line = lines.next().await.ok_or("the talker was let go")??;
            still_here.remove(&line);
        }
        Ok(())
    });
}

#[test]
fn a_seed_gives_the_same_run_each_time() {
    let run = || {
        let mut simulation = Simulation::new(7);
        room(&mut simulation, None);
        simulation.run().unwrap()
    };
    assert_eq!(run(), run());
}
