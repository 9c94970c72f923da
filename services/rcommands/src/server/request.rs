//! What a client of rsh asks for: the port for errors, both users, and the command.

use super::fields::{Fields, is_name};

/// The longest name of a user.
const USER_BYTES: usize = 255;
/// The longest command.
const COMMAND_BYTES: usize = 64 * 1024;
/// Digits of a port.
const PORT_BYTES: usize = 5;

/// A request that is being read.
#[derive(Clone, Debug, Default)]
pub struct Request {
    fields: Fields,
    /// The port for errors and signals; `Some(None)` where the client wants no such connection.
    port: Option<Option<u16>>,
    client_user: Option<String>,
    server_user: Option<String>,
    command: Option<String>,
}

/// Why a request cannot be one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RequestError {
    /// A name or the command is too long or not UTF-8, or a name has control characters.
    Text,
    /// The port is not a number, or not one from which clients come.
    Port,
    /// A name or the command is empty.
    Empty,
}

impl core::fmt::Display for RequestError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            RequestError::Text => "a name or the command is too long, or is not text",
            RequestError::Port => "the port for errors is not a reserved one",
            RequestError::Empty => "a name or the command is empty",
        })
    }
}
impl core::error::Error for RequestError {}

impl Request {
    /// Takes octets from the front of `input`. True when the next thing is there: first the [port](Request::port), then, once
    /// [the connection](super::CallBack) is made, all else. What follows stays in `input`.
    pub fn take(&mut self, input: &mut &[u8]) -> Result<bool, RequestError> {
        if self.port.is_none() {
            let Some(text) = self.fields.take(input, PORT_BYTES).map_err(|_| RequestError::Port)? else {
                return Ok(false);
            };
            self.port = Some(match &*text {
                "" | "0" => None,
                text => {
                    let port = text.parse().map_err(|_| RequestError::Port)?;
                    Some(port).filter(|&port| super::is_reserved(port)).ok_or(RequestError::Port).map(Some)?
                }
            });
            return Ok(true);
        }
        let places = [
            (&mut self.client_user, USER_BYTES, true),
            (&mut self.server_user, USER_BYTES, true),
            (&mut self.command, COMMAND_BYTES, false),
        ];
        for (place, limit_bytes, is_user) in places {
            if place.is_none() {
                let Some(text) = self.fields.take(input, limit_bytes).map_err(|_| RequestError::Text)? else {
                    return Ok(false);
                };
                if text.is_empty() {
                    return Err(RequestError::Empty);
                }
                if is_user && !is_name(&text) {
                    return Err(RequestError::Text);
                }
                *place = Some(text);
            }
        }
        Ok(true)
    }
    /// The port at which the client waits for the connection for errors.
    pub fn port(&self) -> Option<u16> {
        self.port.flatten()
    }
    /// The user at the client's host, the user here, and the command.
    pub fn who_and_what(&self) -> Option<(&str, &str, &str)> {
        Some((self.client_user.as_deref()?, self.server_user.as_deref()?, self.command.as_deref()?))
    }
}
