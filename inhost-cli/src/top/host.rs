//! Asks the running host what the screen shows, on a thread of its own: a host that is slow to answer holds no key up.

use super::model::{News, Samples, Wanted};
use crate::failure::Failure;
use crate::views::{open, view};
use inhost_runtime::control::{Client, ClientError};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Looks between two verdicts on a connection.
const LOOKS_A_VERDICT: u32 = 3;

/// Asks a host.
pub struct Asker {
    path: PathBuf,
    client: Option<Client>,
    every: Duration,
    looks: u32,
    /// The connection of the last look, and the time of its last sample.
    last: Option<(String, u64)>,
}

impl Asker {
    /// # Errors
    /// When no host answers.
    pub fn open(via: Option<&Path>, every: Duration) -> Result<Asker, Failure> {
        let (path, client) = open(via)?;
        Ok(Asker { path, client: Some(client), every, looks: 0, last: None })
    }
    /// Waits between two looks.
    // This process runs no host.
    #[allow(clippy::disallowed_methods)]
    pub fn pause(&self) {
        std::thread::sleep(self.every);
    }
    /// Asks again and again, until `tell` says that nobody listens. What is returned changes what is asked, at once.
    pub fn start(
        mut self,
        mut wanted: Wanted,
        tell: impl Fn(News) -> bool + Send + 'static,
    ) -> impl Fn(Wanted) {
        let (want, wants) = mpsc::channel();
        std::thread::spawn(move || {
            loop {
                if !wanted.is_paused && !self.ask(&wanted).into_iter().all(&tell) {
                    return;
                }
                match wants.recv_timeout(self.every) {
                    Ok(new) => wanted = wants.try_iter().last().unwrap_or(new),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        move |wanted| {
            let _ = want.send(wanted);
        }
    }
    /// Asks once.
    pub fn ask(&mut self, wanted: &Wanted) -> Vec<News> {
        let mut news = Vec::new();
        if let Err(why) = self.look(wanted, &mut news) {
            news.push(match why {
                ClientError::Refused { text, .. } => News::Refused(text),
                why => {
                    // The host has gone; there may be another.
                    self.client = None;
                    News::Silent(why.to_string())
                }
            });
        }
        news
    }
    fn look(&mut self, wanted: &Wanted, news: &mut Vec<News>) -> Result<(), ClientError> {
        let client = match &mut self.client {
            Some(client) => client,
            none => none.insert(Client::open(&self.path)?),
        };
        news.push(News::Overview(view(client, "host")?));
        let Some(id) = &wanted.connection else {
            self.last = None;
            news.push(News::Rows(view(client, &wanted.list)?));
            return Ok(());
        };
        let (is_new, after) = match &self.last {
            Some((last, after)) if last == id => (false, *after),
            _ => (true, 0),
        };
        let target = |what: &str| format!("connections/{id}{what}");
        let figures = match view(client, &target("")) {
            Err(ClientError::Refused { .. }) => {
                news.push(News::Ended(id.clone()));
                return Ok(());
            }
            figures => figures?,
        };
        let samples: Samples = view(client, &target(&format!("/samples?after={after}")))?;
        let after = samples.samples.last().map_or(after, |sample| sample.at_ns);
        self.looks = if is_new { 0 } else { self.looks + 1 };
        let verdict = match self.looks % LOOKS_A_VERDICT {
            0 => Some(view(client, &target("/verdict"))?),
            _ => None,
        };
        self.last = Some((id.clone(), after));
        news.push(News::Connection(id.clone(), figures, samples, verdict));
        Ok(())
    }
}
