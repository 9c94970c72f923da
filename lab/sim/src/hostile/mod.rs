//! Random, spoilt and forged frames into a host in the middle of transfers.
//!
//! The forger sees everything: it knows the windows, numbers and timestamps of each connection, mends every checksum
//! that it does not mean to be wrong, and lets exactly one check fail. After each frame the host is looked at: where a
//! checksum, an address, the window, the acknowledgment's range or the timestamp was wrong, nothing has changed but
//! the counters. Answers, tables and memory stay within their limits, and in the end every stream has arrived whole.

mod attacks;
mod forge;
mod many;
mod peers;
mod recent;
mod sight;
mod world;

use std::collections::BTreeMap;

use inhost_base::{Duration, Random};

use crate::digest::{Digest, Takes};
use crate::network::{Network, Ran};
pub use many::{FRAMES_A_WORLD, run_many};
pub use peers::{MEMORY_BYTES, run as run_peers};

use attacks::{Frame, KINDS, Make, May};
use forge::{Forger, Mark};
use sight::{Connection, Connections, Surroundings};
use world::{TRANSFERS, World};

/// Frames thrown at one instant, at most.
const FRAMES_A_ROUND: u64 = 32;
/// Frames between two looks at tables and memory.
const FRAMES_A_LOOK: u64 = 512;
/// How long a transfer may be without a word: a time-out or two, after a forgery that was to be believed.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);
/// Time between volleys, at most.
const MOST_BETWEEN_VOLLEYS: Duration = Duration::from_millis(1);
/// Once in so many volleys there is a rest, in which timers run down.
const VOLLEYS_A_REST: u32 = 10_000;
/// Longest pause.
const MOST_REST: Duration = Duration::from_secs(10);
/// ICMP errors that a second may see: a burst, and one each 10 ms.
const ERRORS_A_SECOND: u64 = 151;

/// Statistics of a successful run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Frames thrown, by kind.
    pub thrown: BTreeMap<&'static str, u64>,
    /// Frames that may do nothing but be counted.
    pub void: u64,
    /// Frames that change no connection and may be answered.
    pub answerable: u64,
    /// Stream bytes that arrived intact meanwhile, at both ends.
    pub stream_bytes: u64,
    /// The most memory in use, in bytes.
    pub most_memory_bytes: usize,
    /// The most resets sent in a second.
    pub most_resets_a_second: u64,
    /// The most ICMP errors sent in a second.
    pub most_errors_a_second: u64,
    /// Frames that the host sent, its transfers' own included.
    pub sent: u64,
    /// Time that passed for the host.
    pub virtual_time: Duration,
}

/// Throws `frames` frames, as `seed` draws them. `progress` gets the number of frames now and then.
pub fn run(seed: u64, frames: u64, progress: &mut dyn FnMut(u64)) -> Result<Report, String> {
    run_watched(seed, frames, progress, |_| {})
}
/// The digest of what `frames` frames of `seed` lead to: forged ones, or those of hostile peers.
pub fn digest(seed: u64, frames: u64, takes: Takes) -> Result<u64, String> {
    let digest = Digest::default();
    let watch = |network: &mut Network| digest.attach(network, takes);
    match many::is_siege(seed) {
        true => peers::run_watched(seed, frames, &mut |_| {}, watch)?,
        false => run_watched(seed, frames, &mut |_| {}, watch)?,
    };
    Ok(digest.value())
}
fn run_watched(
    seed: u64,
    frames: u64,
    progress: &mut dyn FnMut(u64),
    watch: impl FnOnce(&mut Network),
) -> Result<Report, String> {
    let mut attack = Attack::new(seed)?;
    watch(&mut attack.world.network);
    let began = attack.world.network.now();
    let mut thrown = 0;
    while thrown < frames {
        let volley = (1 + u64::from(attack.forger.below(FRAMES_A_ROUND as u32))).min(frames - thrown);
        for _ in 0..volley {
            attack.throw().map_err(|why| format!("seed {seed}, frame {thrown}: {why}"))?;
            thrown += 1;
            if thrown % FRAMES_A_LOOK == 0 {
                let in_use = attack.world.within_limits()?;
                if let Some(what) = attack.world.stalled(LONGEST_SILENCE) {
                    return Err(format!("seed {seed}, frame {thrown}: a transfer does not go on: {what}"));
                }
                let most = &mut attack.report.most_memory_bytes;
                *most = in_use.max(*most);
                progress(thrown);
            }
        }
        let is_rest = attack.forger.one_in(VOLLEYS_A_REST);
        let most = if is_rest { MOST_REST } else { MOST_BETWEEN_VOLLEYS };
        let time = most.times(u64::from(attack.forger.below(1000))).divided_by(1000);
        attack.world.network.pass(time);
        if let Some(why) = attack.world.fault() {
            return Err(format!("seed {seed}, frame {thrown}: {why}"));
        }
    }
    attack.report.virtual_time = attack.world.network.now().since(began);
    attack.end().map_err(|why| format!("seed {seed}, after {thrown} frames: {why}"))
}

struct Attack {
    world: World,
    forger: Forger,
    report: Report,
    /// The sum of what kinds are drawn by.
    weights: u32,
}

impl Attack {
    fn new(seed: u64) -> Result<Attack, String> {
        Ok(Attack {
            world: World::new(seed, true)?,
            forger: Forger { random: Random::from_number(seed ^ 0x40571e), link: 0 },
            report: Report::default(),
            weights: KINDS.iter().map(|kind| kind.1).sum(),
        })
    }
    fn draw(&mut self) -> (&'static str, Make) {
        let mut drawn = self.forger.below(self.weights);
        for (name, weight, make) in KINDS {
            match drawn.checked_sub(weight) {
                Some(rest) => drawn = rest,
                None => return (name, make),
            }
        }
        (KINDS[0].0, KINDS[0].2)
    }
    fn throw(&mut self) -> Result<(), String> {
        let (name, make) = self.draw();
        let number = self.forger.below(TRANSFERS as u32) as usize;
        let before = self.world.connections();
        let connection = before[number].as_ref().ok_or("a transfer is gone")?;
        let Some(frame) = self.make(make, number, connection) else { return Ok(()) };
        let link = self.forger.link;
        // What earlier frames left to be done is done first, with a frame that says nothing.
        self.world.network.inject(link, world::VICTIM, &[0]);
        let surroundings = (frame.may == May::Nothing).then(|| self.world.surroundings());
        let drops = self.world.drops(link);
        self.world.network.inject(link, world::VICTIM, &frame.bytes);
        *self.report.thrown.entry(name).or_default() += 1;
        self.judge(&frame, &before, surroundings.as_ref(), &drops)
            .map_err(|why| format!("{name} on link {link}, transfer {number}: {why}: {}", hex(&frame.bytes)))
    }
    fn make(&mut self, make: Make, number: usize, connection: &Connection) -> Option<Frame> {
        let transfer = &self.world.transfers[number];
        let recent = self.world.recent.borrow();
        let header = recent.headers.get(&(transfer.victim, transfer.peer))?;
        let frames = &recent.frames[transfer.link];
        self.forger.link = transfer.link;
        let real = frames.get(self.forger.below(frames.len() as u32) as usize)?;
        let mark = Mark { transfer, connection, timestamps: header.options.timestamps };
        Some(make(&mut self.forger, &mark, real))
    }
    fn judge(
        &mut self,
        frame: &Frame,
        before: &Connections,
        surroundings: Option<&Surroundings>,
        drops: &[u64; inhost_event::Drop::COUNT],
    ) -> Result<(), String> {
        if frame.may == May::Act {
            return Ok(());
        }
        self.report.answerable += u64::from(frame.may == May::BeAnswered);
        let after = self.world.connections();
        if after != *before {
            let changed = before.iter().zip(&after).find(|(before, after)| before != after);
            return Err(format!("a connection changed: {changed:?}"));
        }
        let now = self.world.drops(self.forger.link);
        if !frame.drops.is_empty() {
            let is_counted = frame.drops.iter().any(|&why| now[why as usize] == drops[why as usize] + 1);
            if !is_counted {
                return Err(format!("not counted as {:?}: {:?} became {:?}", frame.drops, drops, now));
            }
        }
        if let Some(surroundings) = surroundings {
            self.report.void += 1;
            let counted = now.iter().sum::<u64>() - drops.iter().sum::<u64>();
            if counted != 1 {
                return Err(format!("counted {counted} times: {drops:?} became {now:?}"));
            }
            let after = self.world.surroundings();
            if after != *surroundings {
                return Err(format!("the host changed: {surroundings:?} became {after:?}"));
            }
        }
        Ok(())
    }
    /// The attack is over: the transfers end well, and nothing is left.
    fn end(mut self) -> Result<Report, String> {
        let world = &mut self.world;
        world.finish()?;
        let recent = world.recent.clone();
        self.report.stream_bytes = world.received_bytes();
        self.report.sent = recent.borrow().sent;
        self.report.most_resets_a_second = recent.borrow().resets.most;
        self.report.most_errors_a_second = recent.borrow().errors.most;
        // A full bucket and its refill.
        let most_resets = 2 * u64::from(inhost_stack::StackConfig::default().resets_per_second);
        if self.report.most_resets_a_second > most_resets {
            return Err(format!("{} resets in a second", self.report.most_resets_a_second));
        }
        if self.report.most_errors_a_second > ERRORS_A_SECOND {
            return Err(format!("{} ICMP errors in a second", self.report.most_errors_a_second));
        }
        // Long enough for every handshake, fragment and neighbour to be given up, also by the slowest of the times that
        // a router advertised.
        let ran = world.network.pass(Duration::from_secs(1800));
        if ran == Ran::Endless {
            return Err("endless after the attack".to_owned());
        }
        world.within_limits()?;
        world.victim().with_stack(|stack, now| {
            let left = (
                stack.memory().outstanding_bytes(),
                stack.ip().reassemblies(),
                stack.instruments().socket_count(),
            );
            // Two listeners, two UDP sockets, and those listeners of transfers that were called here are gone.
            match left {
                (0, (0, 0), 4) => Ok(()),
                left => {
                    let sockets: Vec<String> = stack
                        .instruments()
                        .sockets(now)
                        .map(|info| {
                            format!("{} {:?} {:?} {:?}", info.local, info.remote, info.state, info.age)
                        })
                        .collect();
                    Err(format!("bytes, reassemblies and sockets left: {left:?}: {sockets:#?}"))
                }
            }
        })?;
        Ok(self.report)
    }
}

/// The front of a frame, as a violation shows it.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(160).map(|byte| format!("{byte:02x}")).collect()
}

/// Challenges at one connection of an idle host in the same second: `frames` resets and SYNs in the window of each,
/// and how many segments answered them in all.
pub fn challenges(seed: u64, frames: u64) -> Result<u64, String> {
    let mut world = World::new(seed, false)?;
    let mut forger = Forger { random: Random::from_number(seed), link: 0 };
    let acknowledged = world.recent.borrow().bare_acknowledgments;
    let second = world.network.now().as_millis() / 1000;
    for number in 0..frames as usize * TRANSFERS {
        let before = world.connections();
        let place = number % TRANSFERS;
        let (transfer, connection) = (&world.transfers[place], before[place].as_ref().ok_or("gone")?);
        forger.link = transfer.link;
        let header = world.recent.borrow().headers.get(&(transfer.victim, transfer.peer)).copied();
        let timestamps = header.and_then(|header| header.options.timestamps);
        let mark = Mark { transfer, connection, timestamps };
        let frame = attacks::challenging(&mut forger, &mark);
        let link = transfer.link;
        world.network.inject(link, world::VICTIM, &frame.bytes);
        if world.connections() != before {
            return Err("a challenged segment changed a connection".to_owned());
        }
        world.network.pass(Duration::from_micros(100));
    }
    // What the rounds took is far less than a second.
    if world.network.now().as_millis() / 1000 > second + 1 {
        return Err("it took too long".to_owned());
    }
    world.network.pass(Duration::from_millis(1));
    let answers = world.recent.borrow().bare_acknowledgments - acknowledged;
    Ok(answers)
}
