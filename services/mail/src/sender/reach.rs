//! A connection to a server of a destination: exchangers in their order, both families raced, TLS as it is wanted.

use futures_lite::future::or;
use inhost_base::Endpoint;
use inhost_names::{ConnectByNameError, LookUpError};
use inhost_socket::Stream;
use tracing::{debug, warn};

use super::config::SenderConfig;
use super::handle::Sender;
use super::route::{Route, exchangers};
use crate::client::{ClientConfig, Failure, Step, TlsWish};
use crate::driver::{Connection, ConnectionError};
use crate::queue::{Attempted, Reason};

/// Why no connection came about.
pub(super) struct Trouble {
    pub reason: Reason,
    pub is_final: bool,
    pub dialogue: Option<String>,
}

impl Trouble {
    pub fn new(reason: Reason, is_final: bool) -> Trouble {
        Trouble { reason, is_final, dialogue: None }
    }
}

/// A connection to a server of a destination.
pub(super) struct Reached {
    pub connection: Connection<Stream>,
    pub server: String,
}

impl Sender {
    /// Finds a server of a destination and begins a dialogue with it.
    pub(super) async fn reach(
        &self,
        domain: &str,
        route: Option<&Route>,
        turn: usize,
        config: &SenderConfig,
    ) -> Result<Reached, Trouble> {
        let mut client = ClientConfig::new(&config.host_name);
        client.tls = config.tls(domain);
        [client.greeting, client.reply, client.end] = config.replies;
        let names = self.names.borrow().clone();
        let (servers, port, is_implicit) = match route {
            Some(Route::Server { host, port, is_lmtp, is_implicit }) => {
                client.is_lmtp = *is_lmtp;
                if let Some((user, password)) =
                    config.login.as_ref().filter(|_| !config.routes.contains_key(domain))
                {
                    client.log_in(user, password);
                }
                (vec![host.clone()], *port, *is_implicit)
            }
            _ => {
                let found = exchangers(&names, domain, &config.host_name, turn).await;
                let found = found.map_err(|(reason, is_final)| Trouble::new(reason, is_final))?;
                (found.into_iter().map(|one| one.host).collect(), config.port, false)
            }
        };
        let (mut tried, mut last) = (Vec::new(), None);
        for server in servers {
            let is_only_name = server == domain;
            match self.open(&server, port, is_implicit, client.clone(), config).await {
                Ok(connection) => return Ok(Reached { connection, server }),
                Err(Opening::Tcp(error)) => {
                    let is_final = is_only_name && is_nowhere(&error);
                    if is_final {
                        let what = format!("{domain} has neither a mail exchanger nor an address: {error}");
                        return Err(Trouble::new(Reason::NoDomain { what }, true));
                    }
                    tried.push(Attempted::new(&server, port, error));
                }
                Err(Opening::Late) => tried.push(Attempted::new(&server, port, "no connection in time")),
                Err(Opening::Dialogue(trouble)) => {
                    tried.push(Attempted::new(&server, port, &trouble.reason));
                    last = Some(trouble);
                }
            }
        }
        match (last, tried.len()) {
            (Some(trouble), 1) => Err(*trouble),
            (last, _) => {
                let dialogue = last.and_then(|trouble| trouble.dialogue);
                Err(Trouble { dialogue, ..Trouble::new(Reason::Unreachable { tried }, false) })
            }
        }
    }

    async fn open(
        &self,
        server: &str,
        port: u16,
        is_implicit: bool,
        client: ClientConfig,
        config: &SenderConfig,
    ) -> Result<Connection<Stream>, Opening> {
        let mut client = client;
        loop {
            let names = self.names.borrow().clone();
            let connect = async { Some(names.connect(server, port).await) };
            let late = async {
                self.host.sleep(config.connect).await;
                None
            };
            let stream = match or(connect, late).await {
                Some(connected) => connected.map_err(Opening::Tcp)?,
                None => return Err(Opening::Late),
            };
            stream.set_nagle(false);
            let peer: Endpoint = stream.remote();
            let wish = client.tls;
            let opened =
                Connection::open(stream, server, is_implicit, client.clone(), &self.tls, &self.host).await;
            let (failure, trace) = match opened {
                Ok(connection) => return Ok(connection),
                Err(failed) => failed,
            };
            if matches!(failure, ConnectionError::Tls(_)) && wish == TlsWish::IfOffered && !is_implicit {
                // RFC 7435 §3: mail that may go in clear text does so rather than not at all.
                warn!(target: "mail", server, %peer, "TLS was offered and failed, sending without it: {failure}");
                client.tls = TlsWish::Never;
                continue;
            }
            debug!(target: "mail", server, %peer, "no dialogue: {failure}");
            let what = failure.to_string();
            let address = peer.address.to_string();
            let server = if server == address { address } else { format!("{server} ({address})") };
            let reason = match failure {
                ConnectionError::Tls(_) | ConnectionError::Dialogue(Failure::NoTls) => {
                    Reason::Tls { server, what }
                }
                ConnectionError::Dialogue(
                    Failure::Refused(Step::Auth, _) | Failure::NoMechanism | Failure::ClearPassword,
                ) => Reason::Login { server, what },
                ConnectionError::Dialogue(Failure::Refused(step, reply)) => {
                    Reason::Refused { server, step, reply }
                }
                _ => Reason::Dialogue { server, what },
            };
            let dialogue = Some(trace.to_string());
            return Err(Opening::Dialogue(Box::new(Trouble { reason, is_final: false, dialogue })));
        }
    }
}

/// Why a server could not be used.
enum Opening {
    Tcp(ConnectByNameError),
    Late,
    Dialogue(Box<Trouble>),
}

fn is_nowhere(error: &ConnectByNameError) -> bool {
    use LookUpError::{NoAddress, NoSuchName, NotAName};
    matches!(error, ConnectByNameError::LookUp(NoSuchName { .. } | NoAddress { .. } | NotAName { .. }))
}
