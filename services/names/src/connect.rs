//! A connection by name: the pure race of [`crate::race`], driven on a host.

use crate::resolve::telling;
use crate::{ConnectByNameError, Family, LookUpError, Names, Race, RaceConfig, Step};
use futures_lite::future;
use inhost_base::{Endpoint, IpAddr};
use inhost_socket::errno::Errno;
use inhost_socket::{Host, Stream};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;
type Found = Result<Vec<IpAddr>, LookUpError>;

/// Event during a race.
enum News {
    Answer(Family, Found),
    Attempt(IpAddr, io::Result<Stream>),
    Time,
}

/// State of one race.
struct UnderWay<'a> {
    look_ups: Vec<(Family, Pending<'a, Found>)>,
    attempts: Vec<(IpAddr, Pending<'a, io::Result<Stream>>)>,
}

impl UnderWay<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<News> {
        for index in 0..self.attempts.len() {
            if let Poll::Ready(result) = self.attempts[index].1.as_mut().poll(context) {
                return Poll::Ready(News::Attempt(self.attempts.remove(index).0, result));
            }
        }
        for index in 0..self.look_ups.len() {
            if let Poll::Ready(found) = self.look_ups[index].1.as_mut().poll(context) {
                return Poll::Ready(News::Answer(self.look_ups.remove(index).0, found));
            }
        }
        Poll::Pending
    }
}

/// Source of the addresses.
pub(crate) enum Source<'a> {
    /// They are known.
    Known(Vec<IpAddr>),
    /// Each family's is asked for.
    Dns(&'a Names),
}

/// Connects to the first address of `name` that accepts; attempts that lose are dropped, which closes them.
pub(crate) async fn connect(
    host: &Host,
    source: Source<'_>,
    name: &str,
    port: u16,
    config: RaceConfig,
) -> Result<Stream, ConnectByNameError> {
    let mut race = Race::new(config);
    let mut under_way = UnderWay { look_ups: Vec::new(), attempts: Vec::new() };
    for family in [Family::Six, Family::Four] {
        let look_up: Pending<'_, Found> = match &source {
            Source::Known(addresses) => {
                let of_family = addresses.iter().copied().filter(|a| Family::of(*a) == family).collect();
                Box::pin(future::ready(Ok(of_family)))
            }
            Source::Dns(names) => Box::pin(names.look_up_family(name, family)),
        };
        under_way.look_ups.push((family, look_up));
    }
    let (mut look_up_error, mut failures) = (None, Vec::new());
    loop {
        let until = match race.step(host.now()) {
            Step::Attempt(address) => {
                let attempt =
                    async move { host.connect(Endpoint::new(address, port)).await.map_err(Errno::into_io) };
                under_way.attempts.push((address, Box::pin(attempt)));
                continue;
            }
            Step::Exhausted => {
                return Err(match look_up_error {
                    Some(error) if failures.is_empty() => ConnectByNameError::LookUp(error),
                    _ => ConnectByNameError::Attempts { name: name.to_owned(), port, failures },
                });
            }
            Step::Wait(until) => until,
        };
        let time = async {
            host.sleep_until(until).await;
            News::Time
        };
        match future::or(future::poll_fn(|context| under_way.poll(context)), time).await {
            News::Time => {}
            News::Attempt(_, Ok(stream)) => return Ok(stream),
            News::Attempt(address, Err(error)) => {
                failures.push((address, error));
                race.failed(host.now());
            }
            News::Answer(family, found) => {
                let addresses = found.unwrap_or_else(|error| {
                    look_up_error = Some(match look_up_error.take() {
                        Some(earlier) => telling(earlier, error),
                        None => error,
                    });
                    Vec::new()
                });
                race.answered(family, &addresses, host.now(), |list| order(host, list));
            }
        }
    }
}

/// The order of RFC 6724 §6, which only the host's own addresses and routes can tell.
pub(crate) fn order(host: &Host, addresses: &mut [IpAddr]) {
    host.with_stack(|stack, now| stack.ip_mut().paths_mut().order_destinations(addresses, now));
}
