//! One seed after the other: the scenario of each, run and checked.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr};
use inhost_socket::{Host, Listener, Stream, Task};
use inhost_stack::{ListenOptions, SendHow};

use crate::digest::{Digest, Takes};
use crate::network::{Network, Ran, Watcher};
use crate::scenario::{ConnectionPlan, Offloads, Orphan, Scenario};
use crate::stream::{Fault, Talk};

/// Rounds after which a run is called endless.
const ROUND_LIMIT: u64 = 4_000_000;
/// Time for the calls to be done.
const CALLS_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// Time for closing connections to be gone.
const CLOSING_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// A writer who found no room for so long gives up.
const FULL_AFTER: Duration = Duration::from_secs(120);
/// Attempts to call, on a wire on which even the neighbour is not found.
const ATTEMPTS: u32 = 100;

/// Statistics of a successful run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // The names say it.
pub struct Summary {
    pub segments: u64,
    pub stream_bytes: u64,
    pub rounds: u64,
    pub jumps: u64,
    pub virtual_time: Duration,
}

/// What a run found wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The scenario's seed.
    pub seed: u64,
    /// Violations found so far, as text.
    pub why: String,
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.why)
    }
}
impl core::error::Error for Failure {}

/// Runs the scenario of `seed` and checks that what is delivered is what was sent, in order, once; that both ends
/// close; that all memory comes back; and what [`Checker`](crate::Checker) watches. `tap` sees every frame, too.
pub fn run(seed: u64, tap: Option<Box<dyn Watcher>>) -> Result<Summary, Failure> {
    run_with(seed, Offloads::Drawn, tap)
}
/// As [`run`], with every offload on or off.
pub fn run_with(seed: u64, offloads: Offloads, tap: Option<Box<dyn Watcher>>) -> Result<Summary, Failure> {
    let scenario = Scenario::draw(seed).with_offloads(offloads);
    let watch = |network: &mut Network| {
        if let Some(tap) = tap {
            network.watch(tap);
        }
    };
    run_scenario(&scenario, watch).map_err(|why| Failure { seed, why })
}
/// The digest of what [`run`] does with `seed`.
pub fn digest(seed: u64, takes: Takes) -> Result<u64, Failure> {
    let digest = Digest::default();
    let scenario = Scenario::draw(seed);
    run_scenario(&scenario, |network| digest.attach(network, takes)).map_err(|why| Failure { seed, why })?;
    Ok(digest.value())
}

/// What [`digest`] gives for `seed` with every host frozen and thawed at one of `one_in` moments, and how often that was.
#[cfg(feature = "freeze")]
pub fn digest_frozen(seed: u64, takes: Takes, one_in: u32) -> Result<(u64, u64), Failure> {
    let (digest, done) = (Digest::default(), Rc::<Cell<u64>>::default());
    let watch = |network: &mut Network| {
        digest.attach(network, takes);
        network.freeze_hosts(crate::Freezer::new(seed, one_in, done.clone()));
    };
    run_scenario(&Scenario::draw(seed), watch).map_err(|why| Failure { seed, why })?;
    Ok((digest.value(), done.get()))
}

/// How far a call is.
#[derive(Debug, Default)]
struct Progress {
    /// Attempts that the caller gave up.
    given_up: Cell<u32>,
    caller: RefCell<Option<Result<(), String>>>,
    /// It was the connection that failed the caller.
    was_ended: Cell<bool>,
    called: RefCell<Vec<Result<(), Fault>>>,
}

fn run_scenario(scenario: &Scenario, watch: impl FnOnce(&mut Network)) -> Result<Summary, String> {
    let began = Instant::from_millis(1000);
    let mut network = scenario.build(began, ROUND_LIMIT).map_err(|why| why.to_string())?;
    watch(&mut network);
    let mut calls = Vec::new();
    for call in &scenario.calls {
        calls.push(start(scenario, call, &network)?);
    }
    let orphans = start_orphans(scenario, &network)?;
    let ran = network.run(CALLS_LIMIT, |_| {
        calls.iter().zip(&scenario.calls).all(|((progress, _), call)| is_over(progress, call))
            && orphans.iter().all(|[lets_go, _]| lets_go.is_finished())
    });
    violations(&network)?;
    if ran != Ran::Done {
        let progress: Vec<_> = calls.iter().map(|(progress, _)| progress).collect();
        return Err(format!("{ran:?} at {:?}, {progress:?}; {}", network.now(), sockets(&network)));
    }
    let counted =
        |host: &Host| host.with_stack(|stack, _| stack.instruments().counters().closed_windows_reset);
    let mut resets = network.hosts().map(counted).sum();
    for ((progress, _), call) in calls.iter().zip(&scenario.calls) {
        judge(progress, call, &mut resets)?;
    }
    drop((calls, orphans));
    settle(&mut network)?;
    Ok(Summary {
        segments: network.checker().segments(),
        stream_bytes: scenario.calls.iter().flat_map(|call| call.talks).map(|talk| talk.send_bytes).sum(),
        rounds: network.rounds(),
        jumps: network.jumps(),
        virtual_time: network.now().since(began),
    })
}

fn start(
    scenario: &Scenario,
    call: &ConnectionPlan,
    network: &Network,
) -> Result<(Rc<Progress>, [Task<()>; 2]), String> {
    let progress = Rc::new(Progress::default());
    let (caller, called) = (network.host(call.caller), network.host(call.called));
    let listener =
        called.listen(call.listens_at(), ListenOptions::default()).map_err(|why| why.to_string())?;
    let serves = called.spawn(serve(called.clone(), listener, call.talks[1], progress.clone()));
    let calls =
        caller.spawn(make_call(caller.clone(), scenario.remote(call), call.clone(), progress.clone()));
    Ok((progress, [serves, calls]))
}

/// Orphaned connections, whose peer holds on to them until they are over: they end by timeout, or [`settle`] waits in
/// vain.
fn start_orphans(scenario: &Scenario, network: &Network) -> Result<Vec<[Task<()>; 2]>, String> {
    let start = |orphan: &Orphan| {
        let (caller, called) = (network.host(orphan.caller).clone(), network.host(orphan.called).clone());
        let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, orphan.port);
        let listener = called.listen(at, ListenOptions::default()).map_err(|why| why.to_string())?;
        let holder = called.clone();
        let holds = called.spawn(async move {
            while let Ok(stream) = listener.accept().await {
                holder.spawn(async move { stream.closed().await }).detach();
            }
        });
        let (remote, orphan) = (scenario.remote_of_orphan(orphan), orphan.clone());
        let host = caller.clone();
        let lets_go = caller.spawn(async move {
            host.sleep(orphan.starts_after).await;
            let Ok(stream) = host.connect(remote).await else { return };
            let bytes = vec![7; orphan.write_bytes];
            let mut written = 0;
            while written < bytes.len()
                && let Ok(Ok(taken)) =
                    host.timeout(FULL_AFTER, stream.send(&bytes[written..], SendHow::default())).await
            {
                written += taken;
            }
        });
        Ok([lets_go, holds])
    };
    scenario.orphans.iter().map(start).collect()
}

async fn serve(host: Host, listener: Listener, talk: Talk, progress: Rc<Progress>) {
    while let Ok(stream) = listener.accept().await {
        let progress = progress.clone();
        host.spawn(async move {
            let result = talk.run(&stream).await;
            progress.called.borrow_mut().push(result);
        })
        .detach();
    }
}

async fn make_call(host: Host, remote: Endpoint, call: ConnectionPlan, progress: Rc<Progress>) {
    host.sleep(call.starts_after).await;
    let mut stream = Err(String::new());
    for _ in 0..ATTEMPTS {
        match host.connect(remote).await {
            Ok(connected) => {
                stream = Ok(connected);
                break;
            }
            Err(why) => {
                progress.given_up.set(progress.given_up.get() + 1);
                stream = Err(why.to_string());
                host.sleep(Duration::from_secs(1)).await;
            }
        }
    }
    let result = match stream {
        Ok(stream) => talk_or_abort(&host, &stream, &call).await.map_err(|fault| {
            progress.was_ended.set(is_end(&fault));
            format!("the caller: {fault}")
        }),
        Err(why) => Err(format!("no connection: {why}")),
    };
    *progress.caller.borrow_mut() = Some(result);
}

async fn talk_or_abort(host: &Host, stream: &Stream, call: &ConnectionPlan) -> Result<(), Fault> {
    let talks = call.talks[0].run(stream);
    let Some(limit) = call.aborts_after else { return talks.await };
    match host.timeout(limit, talks).await {
        Ok(result) => result,
        Err(_) => {
            stream.abort();
            Ok(())
        }
    }
}

fn is_over(progress: &Progress, call: &ConnectionPlan) -> bool {
    let called = progress.called.borrow();
    let enough = match call.aborts_after {
        // One that was aborted before it was accepted is never served.
        Some(_) => true,
        None => called.iter().any(Result::is_ok) || called.len() > progress.given_up.get() as usize,
    };
    match &*progress.caller.borrow() {
        Some(Ok(())) => enough,
        Some(Err(_)) => true,
        None => false,
    }
}

/// Whether the connection ended too soon; otherwise what came was wrong.
fn is_end(fault: &Fault) -> bool {
    matches!(fault, Fault::Receiving(_) | Fault::Sending(_))
}

/// A host whose memory is short resets connections behind closed windows: `resets` of them in all.
fn judge(progress: &Progress, call: &ConnectionPlan, resets: &mut u64) -> Result<(), String> {
    let mut excused = progress.given_up.get() + u32::from(call.aborts_after.is_some());
    if let Some(Err(why)) = &*progress.caller.borrow() {
        if !progress.was_ended.get() || *resets == 0 {
            return Err(format!("port {}: {why}", call.port));
        }
        (*resets, excused) = (*resets - 1, excused + 1);
    }
    for fault in progress.called.borrow().iter().filter_map(|result| result.err()) {
        if is_end(&fault) && excused == 0 && *resets > 0 {
            (*resets, excused) = (*resets - 1, 1);
        }
        if !is_end(&fault) || excused == 0 {
            return Err(format!("port {}: who was called: {fault}", call.port));
        }
        excused -= 1;
    }
    Ok(())
}

/// What the checker found, and what went wrong in a task.
fn violations(network: &Network) -> Result<(), String> {
    if let Some(failure) = network.task_failure() {
        return Err(format!("host {}: {failure}", failure.host));
    }
    match network.checker().violations() {
        [] => Ok(()),
        violations => Err(violations.join("\n")),
    }
}

/// Waits until every connection is gone, and looks that nothing is left.
fn settle(network: &mut Network) -> Result<(), String> {
    let ran = network.run(CLOSING_LIMIT, |network| {
        network.hosts().all(|host| host.with_stack(|stack, _| stack.instruments().socket_count() == 0))
    });
    violations(network)?;
    if ran != Ran::Done {
        return Err(format!("{ran:?} while closing; {}", sockets(network)));
    }
    // Frames that are still on the wire come to nobody.
    if network.pass(Duration::from_secs(300)) == Ran::Endless {
        return Err(format!("endless after closing; {}", sockets(network)));
    }
    violations(network)?;
    for (number, host) in network.hosts().enumerate() {
        let left = host.with_stack(|stack, _| stack.memory().outstanding_bytes());
        if left != 0 {
            return Err(format!("host {number} keeps {left} bytes of its pool"));
        }
    }
    Ok(())
}

fn sockets(network: &Network) -> String {
    let all: Vec<_> = network
        .hosts()
        .map(|host| host.with_stack(|stack, now| stack.instruments().sockets(now).collect::<Vec<_>>()))
        .collect();
    format!("{all:#?}")
}
