//! A program on our stack, under whichever clock.

use super::{CLIENT_PORT, SERVER_PORT};
use crate::explain::script::{Note, Notes, Settings, Step};
use crate::explain::situation::Side;
use inhost_base::{Duration, Endpoint, Instant};
use inhost_explain::Known;
use inhost_socket::{Host, Listener, Stream};
use inhost_stack::{ConnectOptions, ListenOptions, Local, StackConfig, TcpConfig};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often the connection's figures are kept.
const KEEP: Duration = Duration::from_millis(10);
/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// A host of ours, and what its program notes.
#[derive(Clone)]
pub struct Ours {
    /// The host.
    pub host: Host,
    /// The clock of the notes.
    pub clock: Rc<dyn Fn() -> Instant>,
    /// What the program noted.
    pub notes: Notes,
    /// Set by a program whose host vanishes.
    pub gone: Arc<AtomicBool>,
    /// What the host knew of its connection when it was looked at last.
    pub known: Rc<RefCell<Option<Known>>>,
}

/// The configuration of a host.
pub fn config(settings: &Settings) -> StackConfig {
    let mut tcp = TcpConfig::default();
    if let Some(window) = settings.receive_window_bytes {
        // The window is at most half of the memory.
        tcp.receive_buffer_initial_bytes = 2 * window as usize;
        tcp.receive_buffer_limit_bytes = 2 * window as usize;
    }
    if let Some(bytes) = settings.send_buffer_bytes {
        tcp.send_buffer_initial_bytes = bytes;
        tcp.send_buffer_limit_bytes = bytes;
    }
    tcp.window_scaling = settings.window_scaling;
    tcp.sack = settings.sack;
    tcp.timestamps = settings.timestamps;
    tcp.nagle = settings.nagle;
    if settings.congestion == "reno" {
        tcp.congestion = inhost_stack::CongestionChoice::NewReno;
    }
    tcp.max_pacing_rate_bytes_per_second = settings.pacing_bytes_per_second;
    tcp.restart_after_idle = settings.restart_after_idle;
    if let Some(mss) = settings.mss_bytes {
        tcp.mss_limit_bytes = mss;
    }
    let mut config = StackConfig::default();
    config.tcp = tcp;
    config.memory_limit_bytes = 256 << 20;
    config
}

/// Opens the server's port.
pub fn listen(host: &Host, side: &Side) -> Result<Listener, String> {
    let mut options = ListenOptions::default();
    if let Some(backlog) = side.settings.backlog {
        options.backlog = backlog;
    }
    let here = Endpoint::new(inhost_base::Ipv4Addr::UNSPECIFIED, SERVER_PORT);
    host.listen(here, options).map_err(|e| format!("our host does not listen: {e}"))
}

impl Ours {
    /// The client's program, which calls `server`.
    pub async fn call(self, side: Side, server: Endpoint) -> Result<(), String> {
        self.host.sleep(side.settings.wait_first).await;
        let mut fillers = Vec::new();
        for _ in 0..side.settings.fillers {
            fillers.push(self.host.connect(server).await.map_err(|e| e.to_string())?);
        }
        self.note(Note::Began);
        let mut options = ConnectOptions::default();
        options.local = Local { address: None, port: CLIENT_PORT };
        match self.host.connect_with(server, options).await {
            Ok(stream) => self.talk(stream, &side.script).await,
            Err(_) => self.note(Note::Failed),
        }
        Ok(())
    }
    /// The server's program.
    pub async fn serve(self, listener: Listener, side: Side) -> Result<(), String> {
        self.note(Note::Began);
        self.host.sleep(side.settings.wait_first).await;
        let mut others = Vec::new();
        loop {
            let stream = listener.accept().await.map_err(|e| e.to_string())?;
            if stream.remote().port == CLIENT_PORT {
                self.talk(stream, &side.script).await;
                return Ok(());
            }
            others.push(stream);
        }
    }
    fn note(&self, note: Note) {
        self.notes.add((self.clock)(), note);
    }
    async fn talk(&self, stream: Stream, script: &[Step]) {
        self.note(Note::Open);
        let stream = Rc::new(stream);
        let (keeper, kept) = (self.clone(), stream.clone());
        let keeps = self.host.spawn(async move {
            while keeper.keep(&kept) {
                keeper.host.sleep(KEEP).await;
            }
        });
        let ended = async {
            self.steps(&stream, script).await?;
            stream.shutdown();
            self.note(Note::Shut);
            self.read(&stream, usize::MAX, READ_BYTES, Duration::ZERO).await
        };
        let done = ended.await;
        self.keep(&stream);
        keeps.cancel().await;
        if done.is_none() {
            return self.note(Note::Failed);
        }
        self.note(Note::Done);
        // Until the peer has acknowledged the end, which it may never do.
        let _ = self.host.timeout(Duration::from_millis(300), stream.closed()).await;
    }
    /// Keeps the figures of the connection; false when there are none any more.
    fn keep(&self, stream: &Stream) -> bool {
        let Some(info) = stream.info() else { return false };
        let known = Known::new(stream.local().into(), stream.remote().into(), &info);
        self.known.replace(Some(known));
        true
    }
    /// Takes steps; none when the connection is over before they are.
    fn steps<'a>(
        &'a self,
        stream: &'a Stream,
        script: &'a [Step],
    ) -> Pin<Box<dyn Future<Output = Option<()>> + 'a>> {
        Box::pin(async move {
            for step in script {
                match step {
                    Step::Wait(time) => self.host.sleep(*time).await,
                    Step::Write { bytes, piece, every } => self.write(stream, *bytes, *piece, *every).await?,
                    Step::Read(bytes) => self.read(stream, *bytes, READ_BYTES, Duration::ZERO).await?,
                    Step::ReadToEnd => self.read(stream, usize::MAX, READ_BYTES, Duration::ZERO).await?,
                    Step::ReadSlowly { piece, every } => {
                        self.read(stream, usize::MAX, *piece, *every).await?
                    }
                    Step::Shutdown => {
                        stream.shutdown();
                        self.note(Note::Shut);
                    }
                    Step::Reset => {
                        self.keep(stream);
                        stream.abort();
                        self.note(Note::Reset);
                        return None;
                    }
                    Step::Vanish => {
                        self.note(Note::Vanished);
                        self.gone.store(true, Ordering::Relaxed);
                        return None;
                    }
                    Step::Repeat(times, steps) => {
                        for _ in 0..*times {
                            self.steps(stream, steps).await?;
                        }
                    }
                }
            }
            Some(())
        })
    }
    async fn write(&self, stream: &Stream, bytes: usize, piece: usize, every: Duration) -> Option<()> {
        let text = vec![0x5a; piece];
        let (mut left, mut next) = (bytes, self.host.now());
        while left > 0 {
            let mut call = piece.min(left);
            // Without an interval the program has all the rest to write.
            self.note(Note::Wants(if every == Duration::ZERO { left } else { call } as u64));
            left -= call;
            while call > 0 {
                let Ok(count) = stream.send(&text[..call], Default::default()).await else { return None };
                call -= count;
                self.note(Note::Wrote(count as u64));
            }
            if every > Duration::ZERO && left > 0 {
                next += every;
                self.host.sleep_until(next).await;
            }
        }
        Some(())
    }
    async fn read(&self, stream: &Stream, bytes: usize, piece: usize, every: Duration) -> Option<()> {
        let (mut place, mut left) = (vec![0; piece.min(bytes)], bytes);
        while left > 0 {
            if every > Duration::ZERO {
                self.host.sleep(every).await;
            }
            let most = place.len().min(left);
            self.note(Note::Reads);
            let count = stream.receive(&mut place[..most]).await.ok()?;
            self.note(Note::Read(count as u64));
            if count == 0 {
                return (bytes == usize::MAX).then_some(());
            }
            left -= count;
        }
        Some(())
    }
}
