//! Connections: the guest's outward, and the system's inward through forwarded ports.

use crate::config::RouteDecision;
use crate::driver::relay::{Ending, keep_alive, relay, reset};
use crate::state::State;
use inhost_base::{Duration, Endpoint, IpAddr};
use inhost_common::{Forwarded, Transport};
use inhost_runtime::AsyncFd;
use inhost_socket::{ConnectError, Held, Listener, Stream};
use inhost_stack::{ConnectOptions, Local, Refusal};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;

/// Delay of a listener after EMFILE.
const REST: Duration = Duration::from_millis(100);
/// Timeout of a guest's accept on a forwarded port.
const GUEST_LIMIT: Duration = Duration::from_secs(10);
/// Connect timeout of a name server if there is another.
const RESOLVER_LIMIT: Duration = Duration::from_secs(5);

/// Local ports that are tried for one forwarded connection.
const PORTS_TRIED: usize = 256;

/// Reply to a guest's SYN.
enum Answer {
    Proceed(AsyncFd<TcpStream>),
    Refuse,
    /// Nobody answered the system either.
    GiveUp,
    /// The system has no way there.
    Unreachable,
}

/// Takes every connection that the guest opens, to whomever.
pub(crate) async fn accept_outward(state: Rc<State>, listener: Listener) {
    while let Ok(held) = listener.accept_held().await {
        let Some(place) = state.place() else {
            state.count(|c| c.connections_refused += 1);
            held.refuse();
            continue;
        };
        let flow_state = state.clone();
        state
            .host
            .spawn(async move {
                let _place = place;
                outward(&flow_state, held).await;
            })
            .detach();
    }
}

/// The SYN is answered only when the system has an answer itself.
async fn outward(state: &State, held: Held) {
    match open(state, held.local()).await {
        Answer::Proceed(system) => {
            state.count(|c| c.connections_outward += 1);
            let guest = held.proceed();
            carry_on(state, guest, system).await;
        }
        Answer::Refuse => {
            state.count(|c| c.connections_refused += 1);
            held.refuse();
        }
        // It gets as little of an answer as the system got, and decides itself how long to try.
        Answer::GiveUp => {
            state.count(|c| c.connections_unanswered += 1);
            held.refuse_with(Refusal::Silence);
        }
        Answer::Unreachable => {
            state.count(|c| c.connections_unreachable += 1);
            held.refuse_with(Refusal::Unreachable);
        }
    }
}

async fn open(state: &State, destination: Endpoint) -> Answer {
    let connected = match state.config.route(destination) {
        RouteDecision::Closed(_) => return Answer::Refuse,
        RouteDecision::Outside(to) => connect(state, to, state.config.connect_limit).await,
        RouteDecision::Names => connect_to_names(state).await,
    };
    match connected {
        Ok(system) => Answer::Proceed(system),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Answer::GiveUp,
        // That is our want, and no answer of anybody's: the guest tries again.
        Err(error) if state.is_exhausted(&error) => Answer::GiveUp,
        Err(error) if is_unreachable(&error) => Answer::Unreachable,
        Err(_) => Answer::Refuse,
    }
}

/// Whether the system, or a router that it asked, says that there is no way.
fn is_unreachable(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkDown, NetworkUnreachable};
    matches!(error.kind(), HostUnreachable | NetworkUnreachable | NetworkDown)
}

async fn connect(state: &State, to: SocketAddr, limit: Duration) -> io::Result<AsyncFd<TcpStream>> {
    let connected = state.host.timeout(limit, AsyncFd::connect(&state.reactor, to)).await;
    connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The first name server that accepts.
async fn connect_to_names(state: &State) -> io::Result<AsyncFd<TcpStream>> {
    let mut last: io::Error = io::ErrorKind::ConnectionRefused.into();
    for _ in 0..state.config.resolvers.len() {
        let Some((number, resolver)) = state.resolver() else { break };
        match connect(state, resolver.into(), RESOLVER_LIMIT).await {
            Ok(system) => return Ok(system),
            Err(error) => last = error,
        }
        state.resolver_failed(number);
    }
    Err(last)
}

async fn carry_on(state: &State, guest: Stream, system: AsyncFd<TcpStream>) {
    let limit = state.config.half_closed_limit;
    // A system without such probes carries the connection all the same.
    let _ = keep_alive(system.inner(), state.config.keep_alive);
    let ending = relay(&state.host, guest, system, &state.scratch, limit).await;
    if ending != Ending::Closed {
        state.count(|c| c.connections_reset += 1);
    }
}

/// Takes the connections that come in at one forwarded port.
pub(crate) async fn accept_inward(state: Rc<State>, listener: AsyncFd<TcpListener>, guest_port: u16) {
    loop {
        let (system, caller) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Else the caller was gone already, and the next may be waiting.
                if state.is_exhausted(&error) {
                    state.host.sleep(REST).await;
                } else {
                    futures_lite::future::yield_now().await;
                }
                continue;
            }
        };
        let Some(place) = state.place_of(caller.ip()) else {
            state.count(|c| c.connections_refused += 1);
            reset(&system);
            continue;
        };
        let flow_state = state.clone();
        state
            .host
            .spawn(async move {
                let _place = place;
                inward(&flow_state, system, caller, guest_port).await;
            })
            .detach();
    }
}

async fn inward(state: &State, system: AsyncFd<TcpStream>, caller: SocketAddr, guest_port: u16) {
    let network = &state.config.network;
    let ends = network.ends_for(caller);
    let mut connected = connect_inward(state, ends, guest_port, caller).await;
    if connected.is_none() && ends != network.ends_v4() {
        // The service at the guest may listen on IPv4 only.
        connected = connect_inward(state, network.ends_v4(), guest_port, caller).await;
    }
    match connected {
        Some((guest, _forwarded)) => {
            state.count(|c| c.connections_inward += 1);
            carry_on(state, guest, system).await;
        }
        None => {
            state.count(|c| c.connections_refused += 1);
            reset(&system);
        }
    }
}

/// Connects to the guest, with the caller entered before the guest sees the connection.
async fn connect_inward(
    state: &State,
    (gateway, guest): (IpAddr, IpAddr),
    guest_port: u16,
    caller: SocketAddr,
) -> Option<(Stream, Forwarded)> {
    let guest = Endpoint { address: guest, port: guest_port };
    for _ in 0..PORTS_TRIED {
        let local = Endpoint { address: gateway, port: state.port() };
        // An entry that exists belongs to a connection that is still carried.
        if state.config.callers.forwarded(Transport::Tcp, local).is_some() {
            continue;
        }
        let outer = Endpoint::new(caller.ip().to_canonical(), caller.port());
        let entry = state.config.callers.enter(Transport::Tcp, local, outer);
        let mut options = ConnectOptions::default();
        options.local = Local { address: Some(gateway), port: local.port };
        match state.host.timeout(GUEST_LIMIT, state.host.connect_with(guest, options)).await {
            Ok(Ok(stream)) => return Some((stream, entry)),
            // The last connection from this port is not forgotten yet.
            Ok(Err(ConnectError::Begin(inhost_stack::ConnectError::InUse))) => {}
            Ok(Err(_)) | Err(_) => return None,
        }
    }
    None
}
