//! `inhost inett`: measures a network or a stack, over the system's sockets or those of a host.

mod plan;
mod plot;
mod sweep;

use crate::args::{Inett, InettFace};
use crate::failure::{Failure, print_error};
use crate::output::show;
use crate::target::{Schemes, Target};
use crate::through::{Private, note_private, seen_at};
use inhost_base::{Duration, Endpoint, Ipv6Addr};
use inhost_common::Cleaner;
use inhost_inett::driver::{Progress, ServeOptions, Served, Stop, Stopper, run as measure, serve};
use inhost_inett::face::{
    ControlFace, Face, Kernel, LocalFace, RemoteFace, XtiFace, ZeroCopyFace, watch_layers,
};
use inhost_inett::here::beside;
use inhost_inett::iperf3::PORT;
use inhost_inett::plan::Plan;
use inhost_inett::result::Outcome;
use inhost_runtime::Runtime;
use inhost_stack::StackConfig;
use plot::Plot;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::ToSocketAddrs;

/// How long a host that is used may take to close its connections.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// What is to be done over a face.
enum Task {
    /// Serve at a port.
    Serve { options: ServeOptions, at: Endpoint },
    /// Measure.
    Once { server: Server, plan: Box<Plan> },
    /// Measure the points of a grid.
    Sweep { server: Server, grid: sweep::Grid },
}

/// The other end, before its name is looked up.
struct Server {
    name: String,
    port: u16,
}

/// Serves or measures.
pub fn run(arguments: &Inett) -> Result<(), Failure> {
    if arguments.common.timeout.is_some() {
        let why = "inett waits 20 s for each answer, and --timeout does not change that; --time is how long to measure";
        return Err(Failure::usage(why));
    }
    if arguments.link.is_some() && matches!(arguments.face, Some(InettFace::System | InettFace::Control)) {
        return Err(Failure::usage(
            "--link is of a host of its own; --face system and --face control have none",
        ));
    }
    if arguments.via.is_some() && arguments.face.is_some_and(|face| face != InettFace::Control) {
        return Err(Failure::usage("--via is of --face control"));
    }
    let task = task(arguments)?;
    let (stopper, stop) = Stop::new();
    stop_at_signals(stopper)?;
    let default = match (&arguments.link, &arguments.via) {
        (Some(_), _) => InettFace::Local,
        (None, Some(_)) => InettFace::Control,
        (None, None) => InettFace::System,
    };
    let face = arguments.face.unwrap_or(default);
    match face {
        InettFace::System if arguments.layers => Err(Failure::usage(
            "--layers is of a host of inhost; the system does not tell for which layer it works",
        )),
        InettFace::Control if arguments.layers => Err(Failure::usage(
            "--layers is of a host of this command; ask the running host with inhost layers --for SECONDS",
        )),
        InettFace::System => over_system(arguments, &task, &stop),
        InettFace::Control => over_control(arguments, &task, &stop),
        face => over_host(arguments, task, &stop, face),
    }
}

fn task(arguments: &Inett) -> Result<Task, Failure> {
    let Some(host) = &arguments.host else {
        let mut options = ServeOptions::default();
        options.is_one_off = arguments.one_off;
        return Ok(Task::Serve { options, at: Endpoint::new(Ipv6Addr::UNSPECIFIED, arguments.port) });
    };
    let target = Target::parse(host, Schemes::Of(&["iperf3"]))?;
    target.without_path("a server of inett")?;
    let server = Server { name: target.host, port: target.port.unwrap_or(PORT) };
    match &arguments.sweep {
        Some(path) => Ok(Task::Sweep { server, grid: sweep::Grid::read(path, arguments.log.as_deref())? }),
        None => {
            let plan = plan::plan(arguments)?;
            plan.validate().map_err(|e| Failure::usage(e.to_string()))?;
            Ok(Task::Once { server, plan: Box::new(plan) })
        }
    }
}

/// The first signal ends the measurement, and shows what there is; the second one ends the program.
fn stop_at_signals(stopper: Stopper) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::operation(format!("signals cannot be received: {e}"));
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let wait = move || {
        for (count, _) in signals.forever().enumerate() {
            match count {
                0 => stopper.stop(),
                _ => std::process::exit(130),
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait).map(drop).map_err(failed)
}

/// The other end, by the system's names; none for a server.
fn found_by_system(arguments: &Inett, task: &Task) -> Result<Option<Endpoint>, Failure> {
    let family = arguments.common.family();
    let find = |name: &str| {
        let found = (name, 0).to_socket_addrs().map_err(|e| format!("{name}: {e}"))?;
        let wanted = found.map(|at| at.ip()).find(|address| family.wants(address));
        wanted.ok_or_else(|| family.missing(name))
    };
    match task {
        Task::Serve { .. } => Ok(None),
        Task::Once { server, .. } | Task::Sweep { server, .. } => {
            let address = find(&server.name).map_err(Failure::operation)?;
            Ok(Some(Endpoint::new(address, server.port)))
        }
    }
}

fn over_system(arguments: &Inett, task: &Task, stop: &Stop) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::operation(format!("the client cannot start: {e}")))?;
    let server = found_by_system(arguments, task)?;
    runtime.block_on(async { perform(arguments, &Kernel::new(), task, server, stop).await })
}

fn over_control(arguments: &Inett, task: &Task, stop: &Stop) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::operation(format!("the running host is not used: {e}"));
    let path = match &arguments.via {
        Some(path) => path.clone(),
        None => inhost_runtime::control::Client::find()
            .map_err(failed)?
            .ok_or_else(|| Failure::operation("no host runs: start one with inhost serve, or give --via"))?,
    };
    let server = found_by_system(arguments, task)?;
    let mut runtime = Runtime::new(StackConfig::default()).map_err(failed)?;
    let face = ControlFace::open(&path, runtime.host().clone(), runtime.handle()).map_err(failed)?;
    let done = runtime.run(perform(arguments, &face, task, server, stop)).map_err(failed)?;
    runtime.shutdown(CLOSE_WITHIN).map_err(|e| Failure::operation(format!("unclean shutdown: {e}")))?;
    done
}

fn over_host(arguments: &Inett, task: Task, stop: &Stop, face: InettFace) -> Result<(), Failure> {
    note_private(&arguments.common, arguments.link.as_deref());
    let Private { mut runtime, links, names, reaches_loopback } = Private::new(arguments.link.as_deref())?;
    let cannot_wait = |e: std::io::Error| Failure::operation(format!("the host cannot wait: {e}"));
    let server = match &task {
        Task::Serve { .. } => None,
        Task::Once { server, .. } | Task::Sweep { server, .. } => {
            let family = arguments.common.family();
            let found = runtime.run(names.look_up(&server.name)).map_err(cannot_wait)?;
            let found = found.map_err(|e| Failure::operation(e.to_string()))?;
            let address = found.into_iter().find(|address| family.wants(address));
            let address = address.ok_or_else(|| Failure::operation(family.missing(&server.name)))?;
            Some(Endpoint::new(seen_at(address, reaches_loopback), server.port))
        }
    };
    if arguments.layers {
        watch_layers(&mut runtime);
    }
    let host = runtime.host().clone();
    let done = match face {
        InettFace::Send => {
            let done = beside(&mut runtime, |remote| {
                let face = RemoteFace::new(remote);
                futures_lite::future::block_on(perform(arguments, &face, &task, server, stop))
            });
            let failed = || Err(Failure::operation("the measuring thread has failed"));
            done.map(|done| done.unwrap_or_else(failed))
        }
        InettFace::Xti => {
            let face = XtiFace::under_real_clock(host);
            runtime.run(perform(arguments, &face, &task, server, stop))
        }
        InettFace::ZeroCopy => {
            let face = ZeroCopyFace::under_real_clock(host);
            runtime.run(perform(arguments, &face, &task, server, stop))
        }
        _ => {
            let face = LocalFace::under_real_clock(host);
            runtime.run(perform(arguments, &face, &task, server, stop))
        }
    };
    let done = done.map_err(cannot_wait)?;
    drop(links);
    runtime.shutdown(CLOSE_WITHIN).map_err(|e| Failure::operation(format!("unclean shutdown: {e}")))?;
    done
}

/// Does the task over a face. `server` is the other end, except of a server.
async fn perform<F: Face>(
    arguments: &Inett,
    face: &F,
    task: &Task,
    server: Option<Endpoint>,
    stop: &Stop,
) -> Result<(), Failure> {
    match (task, server) {
        (Task::Serve { options, at }, _) => {
            let mut told = |served| say_served(arguments.json, served);
            let done = serve(face, *at, options, stop, &mut told).await;
            done.map_err(|e| Failure::operation(format!("cannot serve at port {}: {e}", at.port)))
        }
        (Task::Once { plan, .. }, Some(server)) => once(arguments, face, server, plan, stop).await,
        (Task::Sweep { grid, .. }, Some(server)) => sweep::run(arguments, face, server, grid, stop).await,
        (_, None) => Ok(()),
    }
}

fn say_served(is_json: bool, served: Served) {
    let text = match (is_json, served) {
        (true, Served::Listening(at)) => json!({ "listening": at.to_string() }).to_string(),
        (true, Served::Began(plan)) => json!({ "began": plan }).to_string(),
        (true, Served::Ended { own, client }) => {
            json!({ "ended": { "server": own, "client": client } }).to_string()
        }
        (true, Served::Failed(why)) => json!({ "failed": why }).to_string(),
        (false, Served::Listening(at)) => {
            format!("serving at port {}; an interrupt (Ctrl-C) ends it", at.port)
        }
        (false, Served::Began(plan)) => format!("a test begins: {}", plan::words(&plan)),
        (false, Served::Ended { own, .. }) => plan::found(&own),
        (false, Served::Failed(why)) => format!("it failed: {}", Cleaner::line(why.as_bytes())),
        _ => return,
    };
    show(&(text + "\n"));
}

async fn once<F: Face>(
    arguments: &Inett,
    face: &F,
    server: Endpoint,
    plan: &Plan,
    stop: &Stop,
) -> Result<(), Failure> {
    let mut plot = if arguments.plot { Some(Plot::begin(plan)?) } else { None };
    let is_text = !arguments.json && !arguments.csv;
    let mut told = |progress: Progress<'_>| match (&mut plot, progress) {
        (Some(plot), progress) => plot.take(&progress),
        (None, Progress::Interval(interval)) if is_text => show(&interval.text()),
        _ => {}
    };
    let outcome = measure(face, server, plan, stop, &mut told).await;
    drop(plot);
    let mut outcome = outcome.map_err(|e| Failure::operation(format!("{server}: {e}")))?;
    if is_text {
        // They were shown as they came.
        outcome.repetitions.iter_mut().for_each(|repetition| repetition.intervals.clear());
    }
    show(&match (arguments.json, arguments.csv) {
        (true, _) => outcome.json() + "\n",
        (_, true) => format!("{}\n{}", Outcome::CSV_HEAD, outcome.csv()),
        _ => outcome.text(),
    });
    if let Some(why) = &outcome.failure {
        print_error(format_args!("a repetition failed: {}", Cleaner::line(why.as_bytes())));
    }
    Ok(())
}
