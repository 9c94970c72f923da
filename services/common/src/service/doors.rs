//! The listeners of a service, which can be closed and opened while the service runs.

use std::cell::RefCell;
use std::fmt::Display;

use inhost_socket::Task;

use super::Problem;

/// Opens a listener and starts the task that serves it.
type Open = Box<dyn Fn() -> Result<Task<()>, Problem>>;

/// The listeners and datagram sockets of a service, each with the task that serves it. A session is a task of its own, so that it
/// goes on when its door is closed. Dropping this closes all.
#[derive(Default)]
pub struct Doors {
    all: RefCell<Vec<Open>>,
    open: RefCell<Vec<Task<()>>>,
}

impl Doors {
    /// Opens a door, and keeps `open` to open it again. The task that it starts must own its listener.
    pub fn add<E: Display>(&self, open: impl Fn() -> Result<Task<()>, E> + 'static) -> Result<(), E> {
        let task = open()?;
        self.open.borrow_mut().push(task);
        self.all
            .borrow_mut()
            .push(Box::new(move || open().map_err(|why| Problem::operation(why.to_string()))));
        Ok(())
    }
    /// Whether callers are taken.
    pub fn are_open(&self) -> bool {
        !self.open.borrow().is_empty()
    }
    /// Closes all doors; done when their ports are free. False when they were closed already.
    pub async fn close(&self) -> bool {
        let closing = self.open.take();
        let were_open = !closing.is_empty();
        for task in closing {
            task.cancel().await;
        }
        were_open
    }
    /// Opens all doors again, or none: then it says why. False when they were open already.
    pub fn open(&self) -> Result<bool, Problem> {
        if self.are_open() {
            return Ok(false);
        }
        let opened: Result<Vec<_>, _> = self.all.borrow().iter().map(|open| open()).collect();
        self.open.replace(opened?);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::{Endpoint, Instant};
    use inhost_socket::Host;
    use inhost_stack::{ListenOptions, Stack, StackConfig};
    use std::net::Ipv4Addr;

    #[test]
    fn a_closed_door_refuses_and_an_opened_one_takes_callers() {
        let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
        let here = Endpoint::new(Ipv4Addr::LOCALHOST, 80);
        let (own, doors) = (host.clone(), Doors::default());
        let open = move || {
            let listener = own.listen(here, ListenOptions::default())?;
            Ok::<_, inhost_socket::ListenError>(own.spawn(async move {
                while let Ok(caller) = listener.accept().await {
                    caller.abort();
                }
            }))
        };
        doors.add(open).unwrap();
        let refused = host.run_alone(async {
            assert!(host.connect(here).await.is_ok());
            assert!(doors.are_open() && doors.open() == Ok(false));
            assert!(doors.close().await && !doors.close().await);
            let refused = host.connect(here).await.is_err();
            assert_eq!(doors.open(), Ok(true));
            assert!(host.connect(here).await.is_ok());
            refused
        });
        assert_eq!(refused, Some(true));
    }
}
