//! The flight recorder of the host that serves: traps, files, and packets that break a protocol.

use crate::config::Record;
use crate::failure::Failure;
use inhost_base::{Duration, Endpoint, Instant};
use inhost_event::Drop;
use inhost_record::{Condition, Notice, Offence, Recorder, Selection, Sprung, Writer};
use inhost_runtime::Runtime;
use inhost_socket::Host;
use std::io;
use std::path::{Path, PathBuf};
use tracing::{info, warn};

/// How often the shares of ledgers are looked at.
const SHARES_EVERY: Duration = Duration::from_secs(1);
/// Places of sockets that are looked at in one go; the rest has its turn later.
const SHARES_AT_A_TIME: usize = 2000;
/// A connection younger than this has no shares to speak of.
const LEAST_AGE: Duration = Duration::from_secs(1);
/// Offences that are logged, and files that are written, in a minute; the rest is counted.
const OFFENCES_A_MINUTE: u32 = 10;
const FILES_A_MINUTE: u32 = 10;
/// How often it is said that more happened than could be looked at.
const LOSSES_A_MINUTE: u32 = 1;

/// Gives the host its recorder, before it has links.
pub fn start(runtime: &mut Runtime, config: &Record) -> Result<(), Failure> {
    let host = runtime.host().clone();
    let mut recording = inhost_record::Config::default();
    recording.memory_bytes = config.memory_bytes()?;
    recording.host = config.name.clone().unwrap_or_else(name);
    runtime.record(&host, Some(recording));
    let Some(recorder) = runtime.recorder(&host) else { return Ok(()) };
    for trap in config.traps()? {
        recorder.arm(trap);
    }
    let keeper = Keeper {
        host: host.clone(),
        recorder: recorder.clone(),
        folder: config.folder.clone(),
        offences: Limit::new(OFFENCES_A_MINUTE),
        files: Limit::new(FILES_A_MINUTE),
        losses: Limit::new(LOSSES_A_MINUTE),
        lost: 0,
        written: 0,
    };
    host.spawn(keeper.run()).detach();
    host.spawn(watch_shares(host.clone(), recorder)).detach();
    Ok(())
}

/// The machine's name.
pub fn name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.split_whitespace().next().unwrap_or("inhost").to_owned()
}

/// So many in a minute.
struct Limit {
    most: u32,
    since: Instant,
    count: u32,
    left_out: u64,
}

impl Limit {
    fn new(most: u32) -> Limit {
        Limit { most, since: Instant::ZERO, count: 0, left_out: 0 }
    }
    /// Whether one more is allowed; then how many were left out before.
    fn take(&mut self, now: Instant) -> Option<u64> {
        if now.since(self.since) >= Duration::from_secs(60) {
            (self.since, self.count) = (now, 0);
        }
        if self.count >= self.most {
            self.left_out += 1;
            return None;
        }
        self.count += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Takes the recorder's notices.
struct Keeper {
    host: Host,
    recorder: Recorder,
    folder: Option<PathBuf>,
    offences: Limit,
    files: Limit,
    losses: Limit,
    /// Notices that were lost and not told of yet.
    lost: u64,
    written: u64,
}

impl Keeper {
    async fn run(mut self) {
        loop {
            let notice = self.recorder.notice().await;
            self.tell_lost();
            match notice {
                Notice::Sprung(sprung) => self.sprung(sprung).await,
                Notice::Offence(offence) => self.offence(offence).await,
            }
        }
    }
    /// Says how much came faster than it could be looked at.
    fn tell_lost(&mut self) {
        self.lost += self.recorder.take_lost_notices();
        if self.lost > 0 && self.losses.take(self.host.now()).is_some() {
            let lost = std::mem::take(&mut self.lost);
            warn!(target: "record", lost, "traps sprang, or packets were broken, faster than this could be looked at");
        }
    }
    async fn sprung(&mut self, sprung: Sprung) {
        // The ends in a packet with a wrong checksum may be what is wrong: everything is written.
        let ends = sprung.ends.filter(|_| sprung.trap.condition != Condition::BadChecksum);
        let of = sprung.ends.map_or(String::new(), |(one, other)| format!(", between {one} and {other}"));
        let why = format!("trap: {}{of}", sprung.trap);
        self.write("trap", &why, ends).await;
    }
    async fn offence(&mut self, offence: Offence) {
        let Offence { why, link, ends, ref head, .. } = offence;
        let of = ends.map_or(String::new(), |(from, to)| format!(" from {from} to {to}"));
        let text = format!("packet{of} on link {}: {}", link.0, why.text());
        if let Some(left_out) = self.offences.take(self.host.now()) {
            let hex = hex(head);
            warn!(target: "packet", left_out, "{text}\n{hex}");
        }
        // A cut or forged packet tells of somebody else; a wrong checksum on a link is our concern.
        let traps = self.recorder.traps();
        if why == Drop::Checksum && !traps.iter().any(|(trap, _)| trap.condition == Condition::BadChecksum) {
            self.write("packet", &text, None).await;
        }
    }
    /// Writes what is held of a connection, and of everybody where none is known.
    async fn write(&mut self, kind: &str, why: &str, ends: Option<(Endpoint, Endpoint)>) {
        let Some(folder) = &self.folder else {
            info!(target: "record", "{why}; [record] folder says where what led to it is written");
            return;
        };
        let Some(left_out) = self.files.take(self.host.now()) else { return };
        self.written += 1;
        let at = self.recorder.unix_ns(self.host.now()) / 1_000_000;
        let path = folder.join(format!("{kind}-{at}-{}.pcapng", self.written));
        if let Some(ends) = ends {
            self.recorder.note(self.host.now(), ends, why.to_owned());
        }
        match self.recorded(ends) {
            Ok(bytes) => {
                let to = path.clone();
                let written = blocking::unblock(move || put(&to, &bytes)).await;
                match written {
                    Ok(()) => info!(target: "record", left_out, "{why}: written to {}", path.display()),
                    Err(e) => warn!(target: "record", "{why}: {}: {e}", path.display()),
                }
            }
            Err(e) => warn!(target: "record", "{why}: {e}"),
        }
    }
    fn recorded(&self, ends: Option<(Endpoint, Endpoint)>) -> io::Result<Vec<u8>> {
        let mut writer = Writer::new(Vec::new())?;
        let selection = ends.map_or(Selection::default(), |(one, other)| Selection::of([one, other]));
        let ends_of = |socket| {
            self.host.with_stack(|stack, now| {
                let info = stack.instruments().info(inhost_stack::SocketId(socket), now)?;
                Some((info.local, info.remote?))
            })
        };
        self.recorder.write(&mut writer, &mut 0, &selection, &ends_of)?;
        Ok(writer.into_inner())
    }
}

/// Writes a new file, for its owner alone: it has what others said. It has its name once it is whole.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let part = path.with_extension("part");
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    let written = io::Write::write_all(&mut file, bytes).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    written
}

/// Looks at the ledgers while a trap waits for a share.
async fn watch_shares(host: Host, recorder: Recorder) {
    let mut place = 0;
    loop {
        host.sleep(SHARES_EVERY).await;
        let traps = recorder.traps();
        let waits = traps.iter().any(|(trap, _)| matches!(trap.condition, Condition::Share(..)));
        if !waits {
            continue;
        }
        host.with_stack(|stack, now| {
            let places = stack.instruments().socket_places();
            for _ in 0..SHARES_AT_A_TIME.min(places) {
                place = (place + 1) % places;
                let Some(of) = stack.instruments().socket_at(place, now) else { continue };
                let (Some(remote), Some(info)) = (of.remote, of.tcp) else { continue };
                if info.age < LEAST_AGE {
                    continue;
                }
                let (ledger, age_ns) = (info.ledgers.send, info.age.as_nanos());
                recorder.spring(now, (of.local, remote), |condition| match condition {
                    Condition::Share(cause, bound) => {
                        u128::from(ledger.of(*cause).as_nanos()) * 100
                            > u128::from(age_ns) * u128::from(*bound)
                    }
                    _ => false,
                });
            }
        });
    }
}

/// Bytes in hexadecimal, sixteen a line with their place.
fn hex(bytes: &[u8]) -> String {
    let line = |(at, row): (usize, &[u8])| {
        let digits: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("  {:04x}  {}", at * 16, digits.join(" "))
    };
    bytes.chunks(16).enumerate().map(line).collect::<Vec<_>>().join("\n")
}
