//! The applications at both ends: tasks of the hosts that do what they are told.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use async_channel::{Receiver, Sender, unbounded};
use inhost_base::Endpoint;
use inhost_sim::byte_at;
use inhost_socket::{Host, Listener, Stream, Task, both};
use inhost_stack::{ConnectOptions, SendHow};

use crate::command::Amount;

/// Bytes that one call writes or reads.
const PIECE_BYTES: u64 = 16 << 10;
/// Tells the bytes of both directions apart.
const STREAM_SEED: u64 = 7;

/// An order to the application that writes.
enum Write {
    Bytes(u64),
    Close,
}

/// The application at one end of a connection: a task that opens it, and then one part that writes and one that reads.
pub struct Application {
    writes: Sender<Write>,
    reads: Sender<Amount>,
    shared: Rc<Shared>,
    /// Dropping it ends the application.
    _task: Task<()>,
}

#[derive(Default)]
struct Shared {
    stream: RefCell<Option<Rc<Stream>>>,
    opening: Cell<Option<&'static str>>,
    writing: Cell<Doing>,
    reading: Cell<Doing>,
    said: RefCell<Vec<String>>,
}

/// What a part of the application does.
#[derive(Clone, Copy, Default)]
enum Doing {
    /// It has not begun.
    #[default]
    Nothing,
    /// It waits to be told.
    Idle,
    /// So many bytes are done of so many.
    Bytes(u64, Option<u64>),
    /// Its direction is over.
    Over,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doing::Nothing => f.write_str("waits for the connection"),
            Doing::Idle => f.write_str("waits to be told"),
            Doing::Bytes(done, Some(all)) => write!(f, "{done} of {all} bytes are done"),
            Doing::Bytes(done, None) => write!(f, "{done} bytes are done; goes on to the end of the stream"),
            Doing::Over => f.write_str("is over"),
        }
    }
}

impl Application {
    /// One that calls `remote`.
    pub fn call(host: &Host, remote: Endpoint, options: ConnectOptions) -> Application {
        Application::start(host, "waits for the handshake", move |host, shared| async move {
            match host.connect_with(remote, options).await {
                Ok(stream) => Some(stream),
                Err(why) => {
                    shared.say(format!("the call failed: {why}"));
                    None
                }
            }
        })
    }
    /// One that takes the first caller of `listener`.
    pub fn accept(host: &Host, listener: Listener) -> Application {
        Application::start(host, "waits for a caller", move |_, shared| async move {
            match listener.accept().await {
                Ok(stream) => Some(stream),
                Err(why) => {
                    shared.say(format!("no caller: {why}"));
                    None
                }
            }
        })
    }
    fn start<F>(
        host: &Host,
        what: &'static str,
        open: impl FnOnce(Host, Rc<Shared>) -> F + 'static,
    ) -> Application
    where
        F: Future<Output = Option<Stream>> + 'static,
    {
        let (writes, to_write) = unbounded();
        let (reads, to_read) = unbounded();
        let shared = Rc::new(Shared::default());
        shared.opening.set(Some(what));
        let (own, of_task) = (host.clone(), shared.clone());
        let task = host.spawn(async move {
            let stream = open(own, of_task.clone()).await;
            of_task.opening.set(None);
            let Some(stream) = stream.map(Rc::new) else { return };
            *of_task.stream.borrow_mut() = Some(stream.clone());
            of_task.say("the connection is open".to_owned());
            both(of_task.write(&stream, to_write), of_task.read(&stream, to_read)).await;
        });
        Application { writes, reads, shared, _task: task }
    }
    /// Has it write so many bytes, after those that it was told before.
    pub fn write(&self, bytes: u64) {
        // It ends with the session, which holds both ends of the channel.
        let _ = self.writes.try_send(Write::Bytes(bytes));
    }
    /// Has it read.
    pub fn read(&self, amount: Amount) {
        let _ = self.reads.try_send(amount);
    }
    /// Has it close its direction, once all is written.
    pub fn close(&self) {
        let _ = self.writes.try_send(Write::Close);
    }
    /// Aborts the connection; false when it is not open.
    pub fn abort(&self) -> bool {
        self.shared.stream.borrow().as_ref().map(|stream| stream.abort()).is_some()
    }
    /// What its parts do.
    pub fn describe(&self) -> Vec<String> {
        match self.shared.opening.get() {
            Some(what) => vec![what.to_owned()],
            None => vec![
                format!("writing: {}", self.shared.writing.get()),
                format!("reading: {}", self.shared.reading.get()),
            ],
        }
    }
    /// What it has said since it was asked last.
    pub fn take_said(&self) -> Vec<String> {
        self.shared.said.take()
    }
}

impl Shared {
    fn say(&self, words: String) {
        self.said.borrow_mut().push(words);
    }
    async fn write(&self, stream: &Stream, orders: Receiver<Write>) {
        let mut at = 0;
        self.writing.set(Doing::Idle);
        while let Ok(order) = orders.recv().await {
            let Write::Bytes(all) = order else {
                stream.shutdown();
                self.writing.set(Doing::Over);
                return self.say("no more will be written".to_owned());
            };
            let mut done = 0;
            while done < all {
                self.writing.set(Doing::Bytes(done, Some(all)));
                let piece = (all - done).min(PIECE_BYTES);
                let bytes: Vec<u8> = (at..at + piece).map(|place| byte_at(STREAM_SEED, place)).collect();
                match stream.send(&bytes, SendHow::default()).await {
                    Ok(count) => (done, at) = (done + count as u64, at + count as u64),
                    Err(why) => {
                        self.writing.set(Doing::Over);
                        return self.say(format!("writing failed: {why}"));
                    }
                }
            }
            self.writing.set(Doing::Idle);
            self.say(format!("{all} bytes are written"));
        }
    }
    async fn read(&self, stream: &Stream, orders: Receiver<Amount>) {
        let mut at = 0;
        let mut place = vec![0; PIECE_BYTES as usize];
        self.reading.set(Doing::Idle);
        while let Ok(amount) = orders.recv().await {
            let all = match amount {
                Amount::Bytes(bytes) => Some(bytes),
                Amount::All => None,
            };
            let mut done = 0;
            while all.is_none_or(|all| done < all) {
                self.reading.set(Doing::Bytes(done, all));
                let most = all.map_or(PIECE_BYTES, |all| (all - done).min(PIECE_BYTES)) as usize;
                match stream.receive(&mut place[..most]).await {
                    Ok(0) => {
                        self.reading.set(Doing::Over);
                        return self.say("reads the end of the stream".to_owned());
                    }
                    Ok(count) => {
                        let mut read = place[..count].iter().zip(at..);
                        let is_right = read.all(|(byte, place)| *byte == byte_at(STREAM_SEED, place));
                        let right = if is_right { "" } else { ", which are others than were written" };
                        self.say(format!("reads {count} bytes{right}"));
                        (done, at) = (done + count as u64, at + count as u64);
                    }
                    Err(why) => {
                        self.reading.set(Doing::Over);
                        return self.say(format!("reading failed: {why}"));
                    }
                }
            }
            self.reading.set(Doing::Idle);
        }
    }
}
