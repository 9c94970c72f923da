//! `inhost tftp`: one file from or to a server.

mod network;
mod remote;

use crate::args::{Tftp, TftpCommand, TftpOptions};
use crate::client::ClientHost;
use crate::failure::Failure;
use crate::ftp::show::size;
use crate::ftp::{place, size_here};
use crate::progress::Progress;
use crate::through::{HostChoice, interrupts};
use futures_lite::future::or;
use inhost_base::{Duration, Endpoint, Instant};
use inhost_common::storage::{Folder, Storage, VirtualPath};
use inhost_socket::Host;
use inhost_tftp::driver::{self, get, put};
use inhost_tftp::{BLOCK_BYTES, Mode, Options, Request, Rollover, Settings, Summary, TransferError};
use remote::Remote;
use serde_json::json;
use std::cell::Cell;
use std::rc::Rc;

/// What is to be done.
struct Work {
    is_put: bool,
    remote: Remote,
    folder: Folder,
    path: VirtualPath,
    /// Octets, where they are known before.
    total_bytes: Option<u64>,
}

/// How far a transfer is, and when its file was whole: what follows, until the peer has its last acknowledgment for
/// certain, is not the transfer's time.
struct Watch<'a> {
    moved: Rc<Cell<u64>>,
    host: &'a Host,
    settled_at: Cell<Option<Instant>>,
}

impl driver::Progress for Watch<'_> {
    fn moved(&self, file_bytes: u64, _: Instant) {
        self.moved.set(file_bytes);
    }
    fn settled(&self, _: &Result<Summary, TransferError>) {
        self.settled_at.set(Some(self.host.now()));
    }
}

/// Runs what was asked.
pub fn run(arguments: &Tftp) -> Result<(), Failure> {
    match &arguments.command {
        TftpCommand::Get { remote, file, options } => {
            let remote = Remote::parse(remote, options.port)?;
            let own = remote.own_name()?.to_owned();
            let named = file.clone().unwrap_or_else(|| own.clone().into());
            let (folder, path) = place(&named, &own)?;
            on_host(options, Work { is_put: false, remote, folder, path, total_bytes: None })
        }
        TftpCommand::Put { file, remote, options } => {
            let mut remote = Remote::parse(remote, options.port)?;
            let (folder, path) = place(file, "")?;
            if remote.file.is_empty() || remote.file.ends_with('/') {
                remote.file += path.name().unwrap_or_default();
            }
            on_host(options, Work { is_put: true, remote, folder, path, total_bytes: size_here(file) })
        }
    }
}

fn on_host(options: &TftpOptions, work: Work) -> Result<(), Failure> {
    let mut client = ClientHost::start(HostChoice::find(&options.reach)?)?;
    let (maker, host) = (client.maker.clone(), client.runtime.host().clone());
    // An unfinished file in which nothing is goes with what holds it.
    let signals = interrupts(&client.runtime)?;
    let moving = async {
        let common = &options.reach.common;
        let server = network::look_up(&maker, &work.remote, common.family()).await?;
        common.note(format_args!("the server is {server}"));
        let datagrams = network::open(&maker, &server).await?;
        move_file(&work, options, server, &datagrams, &host).await
    };
    let interrupted = async {
        signals.next().await;
        Err("interrupted".to_owned())
    };
    let done = client.runtime.run(or(moving, interrupted));
    let done = done.map_err(|e| Failure::operation(format!("the client cannot wait: {e}")))?;
    client.end()?;
    done.map_err(|why| Failure::operation(format!("tftp: {why}")))
}

async fn move_file(
    work: &Work,
    options: &TftpOptions,
    server: Endpoint,
    datagrams: &network::Socket,
    host: &Host,
) -> Result<(), String> {
    let mode = if options.mode == "netascii" { Mode::Netascii } else { Mode::Octet };
    let name = work.remote.file.clone();
    let request = Request { is_write: work.is_put, name, mode, options: asked(options) };
    let mut settings = Settings::default();
    settings.rollover = options.rollover.map(rollover);
    settings.give_up_after = options.reach.common.limit().unwrap_or(settings.give_up_after);
    let file = (&work.folder as &dyn Storage, &work.path);
    let shown = work.path.name().unwrap_or_default();
    let progress_shown = Progress::new(host, shown, options.quiet || options.json).of(work.total_bytes);
    let (moved, began) = (Rc::new(Cell::new(0)), host.now());
    let watch = Watch { moved: moved.clone(), host, settled_at: Cell::new(None) };
    let world = (datagrams, host);
    let carried = async {
        match work.is_put {
            true => put(request, server, file, settings, world, &watch).await,
            false => get(request, server, file, settings, world, &watch).await,
        }
    };
    let outcome = progress_shown.during(moved, carried).await;
    let summary = outcome.map_err(|error| format!("{}: {error}", work.remote))?;
    let took = watch.settled_at.get().unwrap_or_else(|| host.now()).since(began);
    match (options.json, options.quiet) {
        (true, _) => say!("{}", report(work, server, &summary, took)),
        (false, true) => {}
        (false, false) => say!("{shown}: {}", sentence(&summary, took)),
    }
    Ok(())
}

/// The options that are asked for. What is the protocol's default anyway is not.
fn asked(options: &TftpOptions) -> Options {
    if options.no_options {
        return Options::default();
    }
    let mut wanted = Options::default();
    wanted.block_size = (options.block_size != BLOCK_BYTES).then_some(options.block_size);
    wanted.timeout_s = options.resend_after;
    wanted.transfer_size = Some(0);
    wanted.window = (options.window > 1).then_some(options.window);
    wanted.rollover = options.rollover.map(rollover);
    wanted
}

fn rollover(number: u8) -> Rollover {
    if number == 0 { Rollover::ToZero } else { Rollover::ToOne }
}

fn report(work: &Work, server: Endpoint, summary: &Summary, took: Duration) -> serde_json::Value {
    let seconds = took.as_secs_f64();
    json!({
        "file": work.remote.file,
        "direction": if work.is_put { "put" } else { "get" },
        "server": server.to_string(),
        "bytes": summary.file_bytes,
        "seconds": seconds,
        "bytes_per_second": (summary.file_bytes as f64 / seconds.max(1e-9)) as u64,
        "block_size": summary.agreed.block_size.unwrap_or(BLOCK_BYTES),
        "window": summary.agreed.window.unwrap_or(1),
        "blocks_again": summary.blocks_again,
    })
}

fn sentence(summary: &Summary, took: Duration) -> String {
    let rate = size((summary.file_bytes as f64 / took.as_secs_f64().max(0.001)) as u64);
    let block = summary.agreed.block_size.unwrap_or(BLOCK_BYTES);
    let window = summary.agreed.window.unwrap_or(1);
    let again = match summary.blocks_again {
        0 => String::new(),
        blocks => format!(", {blocks} of them again"),
    };
    format!("{} bytes ({rate}/s) in blocks of {block}, {window} at a time{again}", summary.file_bytes)
}
