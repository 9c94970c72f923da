//! Shared part of `inhost whois` and `inhost finger`: one query line, one answer.

use crate::args::{Asking, Common};
use crate::client::ClientHost;
use crate::connection::Connector;
use crate::failure::Failure;
use crate::through::HostChoice;
use futures_lite::future::or;
use inhost_base::Duration;
use inhost_common::Cleaner;
use inhost_common::ask::ask;
use inhost_telnet::driver::Connect;
use std::future::Future;

/// How long an answer may take by default.
const WAIT: Duration = Duration::from_secs(30);

/// Asks servers for a client.
pub struct Asker {
    connector: Connector,
    clock: inhost_socket::Host,
    wait: Duration,
}

/// Runs a client that asks, on the host that the flags name.
pub fn run<T, F>(asking: &Asking, work: impl FnOnce(Asker) -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut client = ClientHost::start(HostChoice::find(&asking.reach)?)?;
    let wait = asking.reach.common.limit().unwrap_or(WAIT);
    // The limit is on the answer as a whole.
    let common = Common { timeout: None, ..asking.reach.common.clone() };
    let clock = client.runtime.host().clone();
    let connector = Connector { maker: client.maker.clone(), common, clock: clock.clone() };
    let asker = Asker { connector, clock, wait };
    let done = client.runtime.run(work(asker));
    let done = done.map_err(|e| Failure::operation(format!("the client cannot wait: {e}")))?;
    client.end()?;
    done
}

impl Asker {
    /// The answer of `host` to `line`, fit to be shown, with why it may not be whole, in one line. `tell` gets it as it
    /// arrives.
    pub async fn ask(
        &self,
        host: &str,
        port: u16,
        line: &str,
        tell: impl Fn(&str),
    ) -> (String, Option<String>) {
        let (mut cleaner, mut text) = (Cleaner::default(), String::new());
        let answer = async {
            let mut connected = self.connector.connect(host, port).await?;
            let mut shown = 0;
            let done = ask(&mut connected.stream, line, |piece| {
                cleaner.take(piece, &mut text);
                tell(text.get(shown..).unwrap_or_default());
                shown = text.len();
            });
            done.await.map_err(|why| format!("{host} port {port}: {why}"))
        };
        let late = async {
            self.clock.sleep(self.wait).await;
            Err(format!(
                "{host} port {port}: no whole answer within {} s (--timeout)",
                self.wait.as_secs_f64()
            ))
        };
        let done = or(answer, late).await;
        let before = text.len();
        cleaner.end(&mut text);
        tell(text.get(before..).unwrap_or_default());
        (text, done.err())
    }
}
