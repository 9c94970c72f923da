//! News of work that a running host does for a client: lines of JSON on a descriptor that the control socket gives. The
//! client lets go of it to end the work.

use crate::failure::Failure;
use crate::through::open_host;
use inhost_runtime::control::Reply;
use inhost_runtime::{AsyncFd, Reactor};
use inhost_socket::Host;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};

/// Where the work tells its news.
pub struct Teller(AsyncFd<UnixStream>);

impl Teller {
    /// Tells one thing. False when nobody listens any more.
    pub async fn tell(&mut self, news: &impl Serialize) -> bool {
        let Ok(mut line) = serde_json::to_vec(news) else { return false };
        line.push(b'\n');
        self.0.write_all(&line).await.is_ok()
    }
}

/// Starts `work` on `host`, and gives the reply whose descriptor has its news. The work ends when nobody listens.
///
/// # Errors
/// When the system has no descriptor left.
pub fn start(host: &Host, reactor: &Reactor, work: impl AsyncFnOnce(Teller) + 'static) -> io::Result<Reply> {
    let (ours, theirs) = UnixStream::pair()?;
    let end = AsyncFd::new(reactor, ours.try_clone()?)?;
    let teller = Teller(AsyncFd::new(reactor, ours)?);
    host.spawn(futures_lite::future::or(work(teller), async move { end.hung_up().await })).detach();
    Ok(Reply { members: Map::new(), descriptor: Some(theirs.into()) })
}

/// The news as the client reads them.
pub struct News(Lines<BufReader<AsyncFd<UnixStream>>>);

impl News {
    /// Makes the request at the control socket `path`.
    pub async fn of(path: PathBuf, reactor: &Reactor, request: Value) -> Result<News, Failure> {
        let reply = blocking::unblock(move || {
            let mut client = open_host(&path).map_err(|e| e.text())?;
            client.request(&request).map_err(|e| e.to_string())
        });
        let (_, descriptor) = reply.await.map_err(Failure::operation)?;
        let descriptor = descriptor.ok_or_else(|| Failure::operation("the running host gave no news"))?;
        let stream = AsyncFd::new(reactor, UnixStream::from(descriptor))
            .map_err(|e| Failure::operation(format!("the news cannot be waited for: {e}")))?;
        Ok(News(BufReader::new(stream).lines()))
    }
    /// The next.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        let line = self.0.next_line().await;
        let line = line.map_err(|e| Failure::operation(format!("the running host: {e}")))?;
        let line = line.ok_or_else(|| Failure::operation("the running host has gone"))?;
        serde_json::from_str(&line)
            .map_err(|e| Failure::operation(format!("the running host said what is not understood: {e}")))
    }
}
