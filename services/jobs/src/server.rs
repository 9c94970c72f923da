//! The queue over HTTP: JSON, problem details (RFC 9457), HTTP Basic (RFC 7617).
//!
//! | request | answer |
//! |---|---|
//! | `POST /jobs` with a [`Submission`] and a field `Idempotency-Key` | 201 with `{"id", "count"}`; 200 if it was there |
//! | `GET /jobs?state=&array=&before=&count=` | jobs, the latest first |
//! | `GET /jobs/ID` | a [`Job`](crate::codec::Job) |
//! | `GET /jobs/ID/stdout`, `/stderr`, with `?attempt=`, `Range: bytes=N-` | up to 64 KiB from there; 200 and 206; 416 where there is no more |
//! | `POST /jobs/ID/hold`, `/release`, `/cancel` | `{"count"}` |
//!
//! An answer with output, and a 416, has `X-Job-Attempt`, and has `X-Job-Open: true` while more may come, of this attempt or
//! another: a client that follows asks again from where it is, then for the next attempt. A client
//! that reads nothing costs one such piece. Who has given a password on a connection is not asked for it again there.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_lite::future::or;
use inhost_base::{Duration, Endpoint};
use inhost_common::users::{Authenticate, Verdict};
use inhost_common::{Clock, LocalFuture, Permit, SessionEvent, session_log};
use inhost_socket::{Host, Stream};
use inhost_web::driver::{ConnectionError, serve_connection};
use inhost_web::server::finish;
use inhost_web::{Config, HeaderName, Request, Response, Site, StatusCode, header};
use serde::Serialize;
use tokio_rustls::TlsAcceptor;

use crate::codec::Submission;
use crate::machine::State;
use crate::queue::{Output, Queue};
use crate::store::{Change, Scope, Selection, StoreError};

/// The port: netrjs-1.
pub const PORT: u16 = 71;
/// Octets of a request's body: a script, escaped, and the rest.
pub const BODY_BYTES: usize = 1 << 20;

/// The time limit of a TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(20);

/// What is logged of its sessions.
pub(crate) const LOG: fn(SessionEvent<'_>) = session_log!("jobs");

/// What the server shares among connections.
#[derive(Clone)]
pub struct Server {
    /// The queue.
    pub queue: Rc<Queue>,
    /// The users.
    pub users: Rc<dyn Authenticate>,
    /// Limits of requests. [`config`] has those of this crate.
    pub config: Config,
    /// TLS from the first octet on; `None` serves without.
    pub tls: Option<TlsAcceptor>,
}

/// Limits of requests: a body of 1 MiB, and any name of the host, for no page of a browser knows a password.
pub fn config() -> Config {
    let mut config = Config::default();
    config.body_bytes = BODY_BYTES;
    config.hosts = vec!["*".to_owned()];
    config
}

/// Serves the requests of a connection, for [`Doors::listen`](inhost_common::service::Doors::listen).
pub fn sessions(
    host: &Host,
    server: Server,
) -> impl Fn(Stream, Endpoint, Permit) -> LocalFuture<()> + 'static {
    let host = host.clone();
    move |stream, caller, permit| Box::pin(session(host.clone(), stream, caller, permit, server.clone()))
}

async fn session(host: Host, stream: Stream, caller: Endpoint, permit: Permit, server: Server) {
    stream.set_nagle(false);
    stream.set_send_buffer_limit(server.config.unread_bytes);
    let clock: Rc<dyn Clock> = Rc::new(host.clone());
    let permit = Rc::new(permit);
    let site = JobsSite {
        queue: server.queue,
        users: server.users,
        clock: clock.clone(),
        permit: permit.clone(),
        caller,
        known: RefCell::default(),
    };
    let draining = host.clone();
    let end = or(async move { draining.draining().await }, async move {
        poll_fn(|context| permit.poll_over(context)).await;
    });
    let (site, config) = (Rc::new(site), Rc::new(server.config));
    let done = match server.tls {
        None => serve_connection(&stream, caller, site, config, clock, end).await,
        Some(tls) => match host.timeout(HANDSHAKE_WITHIN, tls.accept(&stream)).await {
            Ok(Ok(secure)) => serve_connection(secure, caller, site, config, clock, end).await,
            Ok(Err(_)) => Err(ConnectionError::Protocol),
            Err(_) => Err(ConnectionError::TooSlow),
        },
    };
    finish(&host, &stream, done).await;
}

/// The queue for the requests of one connection.
struct JobsSite {
    queue: Rc<Queue>,
    users: Rc<dyn Authenticate>,
    clock: Rc<dyn Clock>,
    permit: Rc<Permit>,
    caller: Endpoint,
    /// The field that was accepted on this connection, and whose it is.
    known: RefCell<Option<(String, String, bool)>>,
}

#[derive(Serialize)]
struct Count {
    count: u32,
}

#[derive(Serialize)]
struct New {
    id: i64,
    count: u32,
}

impl JobsSite {
    /// Who asks, and whether that is an operator.
    async fn user(&self, request: &Request) -> Result<(String, bool), Response> {
        let field = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some((user, password)) = field.and_then(credentials) else {
            return Err(unauthorized("this queue asks for a user and a password"));
        };
        let field = field.unwrap_or_default().to_owned();
        if let Some((known, user, is_operator)) = &*self.known.borrow()
            && *known == field
        {
            return Ok((user.clone(), *is_operator));
        }
        let attempt = poll_fn(|context| self.permit.poll_attempt(context, self.clock.now())).await;
        let Ok(attempt) = attempt else {
            return Err(Response::problem(StatusCode::TOO_MANY_REQUESTS, "too many wrong passwords"));
        };
        match self.users.authenticate(user.clone(), password).await {
            Verdict::Granted(account) => {
                self.permit.logged_in(&account.name);
                self.known.replace(Some((field, account.name.clone(), account.is_operator)));
                Ok((account.name, account.is_operator))
            }
            Verdict::Denied => {
                attempt.denied(self.clock.now());
                LOG(SessionEvent::Denied { peer: self.caller.address, user: &user });
                Err(unauthorized("the user or the password is wrong"))
            }
            Verdict::Busy => {
                Err(Response::problem(StatusCode::SERVICE_UNAVAILABLE, "too many log in at once"))
            }
            Verdict::Unavailable(why) => {
                LOG(SessionEvent::Unavailable { reason: &why.to_string() });
                Err(Response::problem(StatusCode::SERVICE_UNAVAILABLE, "users cannot be looked up"))
            }
        }
    }
    async fn answer(&self, request: &Request) -> Result<Response, Response> {
        let (user, is_operator) = self.user(request).await?;
        let scope = if is_operator { Scope::All } else { Scope::User(user.clone()) };
        let number = |text: &str| text.parse::<i64>().map_err(|_| Response::not_found());
        match (request.method().as_str(), &*request.path()) {
            ("POST", ["jobs"]) => self.submit(&user, request).await,
            ("GET", ["jobs"]) => {
                let mut selection = Selection::default();
                if let Some(name) = request.query("state") {
                    let unknown = || Response::problem(StatusCode::BAD_REQUEST, "there is no such state");
                    selection.state = Some(State::named(name).ok_or_else(unknown)?);
                }
                selection.array = request.query_as("array")?;
                selection.before = request.query_as("before")?;
                selection.count = request.query_as("count")?.unwrap_or(selection.count);
                Ok(Response::json(&self.queue.store.list(scope, selection).await.map_err(problem)?))
            }
            ("GET", ["jobs", id]) => {
                Ok(Response::json(&self.queue.store.job(scope, number(id)?).await.map_err(problem)?))
            }
            ("GET", ["jobs", id, "stdout"]) => self.output(scope, number(id)?, Output::Stdout, request).await,
            ("GET", ["jobs", id, "stderr"]) => self.output(scope, number(id)?, Output::Stderr, request).await,
            ("POST", ["jobs", id, verb @ ("hold" | "release" | "cancel")]) => {
                let change = match *verb {
                    "hold" => Change::Hold,
                    "release" => Change::Release,
                    _ => Change::Cancel,
                };
                let count = self.queue.change(scope, number(id)?, change).await.map_err(problem)?;
                Ok(Response::json(&Count { count }))
            }
            (_, ["jobs"]) => Err(Response::method_not_allowed("GET, POST")),
            (_, ["jobs", _] | ["jobs", _, "stdout" | "stderr"]) => Err(Response::method_not_allowed("GET")),
            (_, ["jobs", _, "hold" | "release" | "cancel"]) => Err(Response::method_not_allowed("POST")),
            _ => Err(Response::not_found()),
        }
    }
    async fn submit(&self, user: &str, request: &Request) -> Result<Response, Response> {
        let wrong = |detail: &str| Response::problem(StatusCode::BAD_REQUEST, detail);
        let submission = Submission::from_json(request.body()).map_err(|error| wrong(&error.0))?;
        let key = match request.headers().get("idempotency-key") {
            Some(value) => Some(value.to_str().map_err(|_| wrong("the field Idempotency-Key is not ASCII"))?),
            None => None,
        };
        let submitted = self.queue.submit(user, key, submission).await.map_err(problem)?;
        let status = if submitted.is_new { StatusCode::CREATED } else { StatusCode::OK };
        let new = New { id: submitted.id, count: submitted.count };
        Ok(Response::json(&new)
            .with_status(status)
            .with(header::LOCATION, &format!("/jobs/{}", submitted.id)))
    }
    async fn output(
        &self,
        scope: Scope,
        id: i64,
        output: Output,
        request: &Request,
    ) -> Result<Response, Response> {
        let field = request.headers().get(header::RANGE).and_then(|value| value.to_str().ok());
        let offset = field.and_then(range);
        let attempt = request.query_as("attempt")?;
        let piece =
            self.queue.output(scope, id, output, attempt, offset.unwrap_or(0)).await.map_err(problem)?;
        let open = HeaderName::from_static("x-job-open");
        let of = HeaderName::from_static("x-job-attempt");
        let is_open = if piece.is_open { "true" } else { "false" };
        let begin = offset.unwrap_or(0);
        let end = begin.saturating_add(piece.octets.len() as u64);
        let is_whole = begin == 0 && end == piece.total_bytes;
        let span = format!("bytes {begin}-{}/{}", end.saturating_sub(1), piece.total_bytes);
        let response = if piece.octets.is_empty() && !is_whole {
            // RFC 9110 §15.5.17: the first octet that was asked for is beyond the last.
            Response::problem(StatusCode::RANGE_NOT_SATISFIABLE, "there is no output from there on")
                .with(header::CONTENT_RANGE, &format!("bytes */{}", piece.total_bytes))
        } else if is_whole {
            Response::bytes("application/octet-stream", piece.octets)
        } else {
            Response::bytes("application/octet-stream", piece.octets)
                .with_status(StatusCode::PARTIAL_CONTENT)
                .with(header::CONTENT_RANGE, &span)
        };
        Ok(response.with(open, is_open).with(of, &piece.attempt.to_string()))
    }
}

impl Site for JobsSite {
    fn respond(self: Rc<Self>, request: Request) -> LocalFuture<Response> {
        Box::pin(async move { self.answer(&request).await.unwrap_or_else(|refusal| refusal) })
    }
}

fn unauthorized(detail: &str) -> Response {
    let challenge = "Basic realm=\"jobs\", charset=\"UTF-8\"";
    Response::problem(StatusCode::UNAUTHORIZED, detail).with(header::WWW_AUTHENTICATE, challenge)
}

fn problem(error: StoreError) -> Response {
    let status = match &error {
        StoreError::Unknown(_) => StatusCode::NOT_FOUND,
        StoreError::State(_) => StatusCode::CONFLICT,
        StoreError::Quota(_) => StatusCode::TOO_MANY_REQUESTS,
        StoreError::KeyUsed => StatusCode::UNPROCESSABLE_ENTITY,
        _ => {
            tracing::error!(target: "jobs", "{error}");
            return Response::problem(StatusCode::INTERNAL_SERVER_ERROR, "the queue cannot be used");
        }
    };
    Response::problem(status, &error.to_string())
}

/// User and password of a field `Authorization` (RFC 7617 §2).
pub(crate) fn credentials(field: &str) -> Option<(String, String)> {
    let (scheme, text) = field.split_once(' ')?;
    let octets = STANDARD.decode(text.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let (user, password) = std::str::from_utf8(&octets).ok()?.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// The offset of a range that is open at its end, `bytes=N-` (RFC 9110 §14.1.2). Others are not understood, and the field
/// is ignored then.
pub(crate) fn range(field: &str) -> Option<u64> {
    let offset = field.strip_prefix("bytes=")?.strip_suffix('-')?;
    offset.parse().ok().filter(|&offset: &u64| offset <= i64::MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read() {
        assert_eq!(credentials("Basic YWRhOmE6Yg=="), Some(("ada".into(), "a:b".into())));
        assert_eq!(credentials("basic YWRh"), None);
        assert_eq!(credentials("Bearer YWRhOmE6Yg=="), None);
        assert_eq!(range("bytes=17-"), Some(17));
        for other in ["bytes=-5", "bytes=1-2", "bytes=1-,3-", "bytes=99999999999999999999-", "lines=1-"] {
            assert_eq!(range(other), None);
        }
    }

    #[test]
    fn the_fuzz_target_holds_on_what_is_right_and_cut_off() {
        let inputs: [&[u8]; 3] = [
            br#"{"script":"a","array":{"first":1,"last":3},"after":[{"need":"afterany","job":-1}],"environment":{"A":"b"}}"#,
            b"Basic YWRhOmE6Yg==",
            b"12 (a) S 1 4711 4711 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 2",
        ];
        for input in inputs {
            for end in 0..=input.len() {
                crate::fuzz::fuzz_jobs(&input[..end]);
            }
        }
    }
}
