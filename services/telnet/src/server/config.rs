//! Configuration of the server.

use std::rc::Rc;

use inhost_base::Duration;

use super::applications::Applications;

/// Configuration of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Host name in greeting and prompt. Default "inhost".
    pub host_name: String,
    /// Lines that a visitor sees first, after the host's name. Default none.
    pub greeting: String,
    /// Failed passwords before the connection is closed. Default 3 (RFC 1123 leaves it open; more only helps
    /// who guesses).
    pub attempts: u8,
    /// Delay of the reply to a wrong password, doubled for each further one. Default 1 s.
    pub denial: Duration,
    /// Longest time before login. Default 2 minutes.
    pub login_time: Duration,
    /// Idle timeout of a logged-in user; `None` for none. Default 1 hour.
    pub idle_time: Option<Duration>,
    /// Longest time to flush output after the end of a session. Default 5 s.
    pub closing_time: Duration,
    /// The terminal of a user whose client names none. Default "vt100".
    pub default_terminal: String,
    /// What LOGON leads to by name. Default none.
    pub applications: Rc<Applications>,
    /// The application to which the caller's port leads, in place of the commands. Default none.
    pub contact: Option<String>,
    /// Whether clients are asked to edit lines (LINEMODE). One that offers it is taken at its word in any case. Default
    /// false.
    pub line_mode: bool,
    /// Whether clients are asked for a charset (CHARSET). One that asks for one of ours gets it in any case. Default false.
    pub charset: bool,
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            host_name: "inhost".into(),
            greeting: String::new(),
            attempts: 3,
            denial: Duration::from_secs(1),
            login_time: Duration::from_secs(120),
            idle_time: Some(Duration::from_secs(3600)),
            closing_time: Duration::from_secs(5),
            default_terminal: "vt100".into(),
            applications: Rc::default(),
            contact: None,
            line_mode: false,
            charset: false,
        }
    }
}
