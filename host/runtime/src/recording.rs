//! What a host's flight recorder holds, as pcapng: at once in memory, or in a file as it comes.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::{cell::RefCell, fmt};

use inhost_base::{Duration, Endpoint, Key};
use inhost_record::{Recorder, Selection, Writer, Written};
use inhost_socket::{Host, Task};

/// How often what is new goes to the file. The recorder holds it until then.
const WRITE_EVERY: Duration = Duration::from_millis(20);
/// Pieces that wait for the disk.
const WAITING_PIECES: usize = 16;

/// Both ends of a connection that the host has.
pub(crate) fn ends(host: &Host, socket: Key) -> Option<(Endpoint, Endpoint)> {
    host.with_stack(|stack, now| {
        let info = stack.instruments().info(inhost_stack::SocketId(socket), now)?;
        Some((info.local, info.remote?))
    })
}

/// What the recorder of `host` holds of `selection`, as pcapng into `to`.
///
/// # Errors
/// Those of `to`.
pub fn write_recorded<W: Write>(
    host: &Host,
    recorder: &Recorder,
    selection: &Selection,
    to: W,
) -> io::Result<(W, Written)> {
    let mut writer = Writer::new(to)?;
    let written = recorder.write(&mut writer, &mut 0, selection, &|socket| ends(host, socket))?;
    Ok((writer.into_inner(), written))
}

/// Writes what a host's flight recorder sees to a file, from the oldest frame that is held on, until it is dropped. A thread of
/// its own waits for the disk; frames that come faster than the disk takes them are lost, and a comment says how many. When the
/// disk fails, the file ends there, and [`Recording::failure`] says why.
///
/// ```
/// use inhost_base::Duration;
/// use inhost_runtime::{Recording, Runtime};
/// use inhost_stack::StackConfig;
///
/// let path = std::env::temp_dir().join(format!("inhost-recording-{}.pcapng", std::process::id()));
/// let mut runtime = Runtime::new(StackConfig::default())?;
/// let host = runtime.host().clone();
/// let recorder = runtime.recorder(&host).expect("each host has one");
/// let recording = Recording::start(&host, &recorder, &path)?;
/// runtime.run(host.sleep(Duration::from_millis(50)))?;
/// drop(recording);
/// assert_eq!(std::fs::read(&path)?[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "dropping it ends the recording"]
pub struct Recording {
    source: Rc<Source>,
    task: Option<Task<()>>,
    disk: Option<JoinHandle<()>>,
    failure: Arc<OnceLock<io::Error>>,
}

/// The host's end of a recording.
struct Source {
    host: Host,
    recorder: Recorder,
    state: RefCell<State>,
}

struct State {
    writer: Writer<Vec<u8>>,
    /// The first frame that is not written.
    from: u64,
    /// None once the recording ends.
    to: Option<SyncSender<Vec<u8>>>,
}

impl Recording {
    /// Begins a new file at `path`, in the place of one that is there.
    ///
    /// # Errors
    /// When the file cannot be made, or the system gives no thread.
    pub fn start(host: &Host, recorder: &Recorder, path: &Path) -> io::Result<Recording> {
        let file = File::create(path)?;
        let (to, pieces) = sync_channel(WAITING_PIECES);
        let failure = Arc::new(OnceLock::new());
        let failed = failure.clone();
        let disk = std::thread::Builder::new().name("record".to_owned()).spawn(move || {
            if let Err(error) = write(file, &pieces) {
                // It is the first.
                let _ = failed.set(error);
            }
        })?;
        let state = State { writer: Writer::new(Vec::new())?, from: recorder.oldest_frame(), to: Some(to) };
        let source =
            Rc::new(Source { host: host.clone(), recorder: recorder.clone(), state: RefCell::new(state) });
        let task = host.spawn(run(source.clone()));
        Ok(Recording { source, task: Some(task), disk: Some(disk), failure })
    }
    /// Why the file ends before its time: the disk failed, or is full.
    pub fn failure(&self) -> Option<io::Error> {
        let error = self.failure.get()?;
        Some(match error.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => error.kind().into(),
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        drop(self.task.take());
        self.source.add_new();
        let state = &mut *self.source.state.borrow_mut();
        if let Some(to) = state.to.take() {
            // It fails when the disk has.
            let _ = to.send(std::mem::take(state.writer.get_mut()));
        }
        if let Some(disk) = self.disk.take() {
            let _ = disk.join();
        }
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recording")
    }
}

impl Source {
    /// Adds what is new to what waits.
    fn add_new(&self) {
        let State { writer, from, .. } = &mut *self.state.borrow_mut();
        let ends = |socket| ends(&self.host, socket);
        // Memory takes everything.
        let written = self.recorder.write(writer, from, &Selection::default(), &ends).unwrap_or_default();
        if written.lost > 0 {
            let words = format!("recorder: {} frames were lost, because they were not written", written.lost);
            writer.comment(&self.recorder.line(self.host.now(), None, &words));
        }
    }
    /// Gives what waits to the disk; whether it can take more.
    fn hand_over(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        let waiting = state.writer.get_mut();
        if waiting.is_empty() {
            return true;
        }
        let Some(to) = &state.to else { return false };
        match to.try_send(std::mem::take(waiting)) {
            Ok(()) => true,
            Err(TrySendError::Full(piece)) => {
                *waiting = piece;
                false
            }
            Err(TrySendError::Disconnected(_)) => {
                state.to = None;
                false
            }
        }
    }
}

async fn run(source: Rc<Source>) {
    while source.state.borrow().to.is_some() {
        if source.hand_over() {
            source.add_new();
            source.hand_over();
        }
        source.host.sleep(WRITE_EVERY).await;
    }
}

/// Writes pieces until the last one, or until the disk fails.
fn write(mut file: File, pieces: &Receiver<Vec<u8>>) -> io::Result<()> {
    while let Ok(piece) = pieces.recv() {
        file.write_all(&piece)?;
    }
    Ok(())
}
