//! The listeners of a service, which can be closed and opened while the service runs.

use std::cell::RefCell;
use std::rc::Rc;

use inhost_base::{Endpoint, Ipv6Addr};
use inhost_socket::{Host, Stream, Task, UdpSocket};
use inhost_stack::{ListenOptions, UdpOptions};

use super::Problem;
use crate::{Admission, Callers, Permit, SessionEvent, Transport};

/// Opens a listener and starts the task that serves it.
type Open = Box<dyn Fn() -> Result<Task<()>, Problem>>;

/// The listeners and datagram sockets of a service, each with the task that serves it, and the admission of its TCP callers. A
/// session is a task of its own, so that it goes on when its door is closed. Dropping this closes all.
///
/// ```
/// use inhost_base::{Endpoint, Instant};
/// use inhost_common::service::Doors;
/// use inhost_common::{Admission, AdmissionLimits, Callers, session_log};
/// use inhost_socket::Host;
/// use inhost_stack::{Stack, StackConfig};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
/// let admission = Admission::new(AdmissionLimits::default());
/// let doors = Doors::new("daytime", &host, &Callers::default(), admission, session_log!("daytime"));
/// doors.listen(13, async |mut stream, _, _permit| drop(stream.write_all(b"noon\r\n").await))?;
/// let said = host.run_alone(async {
///     let mut said = String::new();
///     host.connect(Endpoint::new([127, 0, 0, 1], 13)).await.unwrap().read_to_string(&mut said).await.unwrap();
///     said
/// });
/// assert_eq!(said.unwrap(), "noon\r\n");
/// # Ok::<(), inhost_common::service::Problem>(())
/// ```
pub struct Doors {
    service: &'static str,
    host: Host,
    callers: Callers,
    admission: Admission,
    log: Rc<dyn Fn(SessionEvent<'_>)>,
    takes: Rc<dyn Fn(Endpoint) -> bool>,
    all: RefCell<Vec<Open>>,
    open: RefCell<Vec<Task<()>>>,
}

impl Doors {
    /// None yet. `admission` counts the outer callers of `callers`; `log` is told who is refused.
    pub fn new(
        service: &'static str,
        host: &Host,
        callers: &Callers,
        admission: Admission,
        log: impl Fn(SessionEvent<'_>) + 'static,
    ) -> Doors {
        Doors {
            service,
            host: host.clone(),
            callers: callers.clone(),
            admission,
            log: Rc::new(log),
            takes: Rc::new(|_| true),
            all: RefCell::default(),
            open: RefCell::default(),
        }
    }
    /// Resets TCP callers for whom `takes` is false, before they count.
    pub fn taking(mut self, takes: impl Fn(Endpoint) -> bool + 'static) -> Doors {
        self.takes = Rc::new(takes);
        self
    }
    /// The sessions of TCP callers, and their limits.
    pub fn admission(&self) -> &Admission {
        &self.admission
    }
    /// Accepts TCP callers at `port` of all addresses, as [`listen_at`](Self::listen_at) does.
    pub fn listen<S: Future<Output = ()> + 'static>(
        &self,
        port: u16,
        session: impl Fn(Stream, Endpoint, Permit) -> S + 'static,
    ) -> Result<(), Problem> {
        self.listen_at(Endpoint::new(Ipv6Addr::UNSPECIFIED, port), &self.admission, session)
    }
    /// Accepts TCP callers at `at`. Each that `admission` admits gets a session: its stream, the outer caller, and the
    /// permit to hold. The connection of another is reset. When the host goes down, nobody is admitted any more, and the
    /// sessions are told.
    pub fn listen_at<S: Future<Output = ()> + 'static>(
        &self,
        at: Endpoint,
        admission: &Admission,
        session: impl Fn(Stream, Endpoint, Permit) -> S + 'static,
    ) -> Result<(), Problem> {
        let (host, own, log) = (self.host.clone(), admission.clone(), self.log.clone());
        self.accept(at, admission, move |stream, caller| match own.admit(caller.address, host.now()) {
            Ok(permit) => host.spawn(session(stream, caller, permit)).detach(),
            Err(refusal) => {
                log(SessionEvent::Refused { peer: caller.address, refusal });
                stream.abort();
            }
        })
    }
    /// Accepts all TCP callers at `port` of all addresses. The session asks [`admission`](Self::admission) itself, because
    /// it tells its caller why he is refused.
    pub fn listen_to_all<S: Future<Output = ()> + 'static>(
        &self,
        port: u16,
        session: impl Fn(Stream, Endpoint) -> S + 'static,
    ) -> Result<(), Problem> {
        let (at, host) = (Endpoint::new(Ipv6Addr::UNSPECIFIED, port), self.host.clone());
        self.accept(at, &self.admission, move |stream, caller| host.spawn(session(stream, caller)).detach())
    }
    fn accept(
        &self,
        at: Endpoint,
        admission: &Admission,
        take: impl Fn(Stream, Endpoint) + 'static,
    ) -> Result<(), Problem> {
        let (service, host, callers) = (self.service, self.host.clone(), self.callers.clone());
        let (admission, takes, take) = (admission.clone(), self.takes.clone(), Rc::new(take));
        self.add(move || {
            let listener = host.listen(at, ListenOptions::default()).map_err(|why| {
                Problem::operation(format!("{service}: cannot listen at port {}: {why}", at.port))
            })?;
            let (callers, admission) = (callers.clone(), admission.clone());
            let (takes, take) = (takes.clone(), take.clone());
            Ok(host.spawn(async move {
                while let Ok(stream) = listener.accept().await {
                    let caller = callers.of(Transport::Tcp, stream.remote());
                    match takes(caller) {
                        true => take(stream, caller),
                        false => stream.abort(),
                    }
                }
                admission.close();
            }))
        })
    }
    /// Takes datagrams at `at`; `serve` has the socket.
    pub fn bind<S: Future<Output = ()> + 'static>(
        &self,
        at: Endpoint,
        options: UdpOptions,
        serve: impl Fn(UdpSocket) -> S + 'static,
    ) -> Result<(), Problem> {
        let (service, host) = (self.service, self.host.clone());
        self.add(move || {
            let socket = host.udp(at, options.clone()).map_err(|why| {
                Problem::operation(format!("{service}: cannot listen at UDP port {}: {why}", at.port))
            })?;
            Ok(host.spawn(serve(socket)))
        })
    }
    /// Opens a door, and keeps `open` to open it again. The task that it starts must own its socket.
    fn add(&self, open: impl Fn() -> Result<Task<()>, Problem> + 'static) -> Result<(), Problem> {
        self.open.borrow_mut().push(open()?);
        self.all.borrow_mut().push(Box::new(open));
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
    use crate::{AdmissionLimits, Over, Refusal};
    use inhost_base::Instant;
    use inhost_stack::{Stack, StackConfig};
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::net::Ipv4Addr;

    fn here() -> Endpoint {
        Endpoint::new(Ipv4Addr::LOCALHOST, 80)
    }
    /// Doors with one session at a time, and who was refused.
    fn doors() -> (Host, Rc<Doors>, Rc<RefCell<Vec<Refusal>>>) {
        let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
        let refused = Rc::new(RefCell::new(Vec::new()));
        let (told, limits) = (refused.clone(), AdmissionLimits::per_minute(1, 1, 60));
        let log = move |event: SessionEvent<'_>| match event {
            SessionEvent::Refused { refusal, .. } => told.borrow_mut().push(refusal),
            other => panic!("{other:?}"),
        };
        let doors = Doors::new("test", &host, &Callers::default(), Admission::new(limits), log);
        (host, Rc::new(doors), refused)
    }

    #[test]
    fn a_closed_door_refuses_and_an_opened_one_takes_callers() {
        let (host, doors, _) = doors();
        doors.listen(80, async |stream, _, _permit| stream.abort()).unwrap();
        let refused = host.run_alone(async {
            assert!(host.connect(here()).await.is_ok());
            assert!(doors.are_open() && doors.open() == Ok(false));
            assert!(doors.close().await && !doors.close().await);
            let refused = host.connect(here()).await.is_err();
            assert_eq!(doors.open(), Ok(true));
            assert!(host.connect(here()).await.is_ok());
            refused
        });
        assert_eq!(refused, Some(true));
    }

    #[test]
    fn a_caller_too_many_is_reset_and_told_to_the_log_unless_the_session_decides() {
        let (host, doors, refused) = doors();
        let taken = Rc::new(Cell::new(0));
        let count = taken.clone();
        let wait = async |mut stream: Stream, _, permit: Permit| {
            let over = poll_fn(|cx| permit.poll_over(cx)).await;
            assert_eq!(over, Over::Dropped);
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"over").await;
        };
        doors.listen(80, wait).unwrap();
        doors
            .listen_to_all(81, move |_, _| {
                count.set(count.get() + 1);
                std::future::ready(())
            })
            .unwrap();
        let own = (host.clone(), doors.clone());
        let said = host.run_alone(async move {
            let (host, doors) = own;
            let mut first = host.connect(here()).await.unwrap();
            let second = host.connect(here()).await.unwrap();
            assert!(second.receive(&mut [0; 1]).await.is_err());
            let others = Endpoint::new(Ipv4Addr::LOCALHOST, 81);
            assert_eq!(host.connect(others).await.unwrap().receive(&mut [0; 1]).await.unwrap(), 0);
            assert!(doors.admission().end(1));
            let mut said = String::new();
            tokio::io::AsyncReadExt::read_to_string(&mut first, &mut said).await.unwrap();
            said
        });
        assert_eq!((said.as_deref(), taken.get()), (Some("over"), 1));
        assert_eq!(*refused.borrow(), [Refusal::PeerFull]);
    }
}
