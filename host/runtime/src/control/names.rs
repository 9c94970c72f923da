//! The names of sockets for other processes.

use inhost_base::Key;
use inhost_stack::SocketId;
use serde_json::Value;

use super::reply::Failure;

/// The socket that a request names.
pub(super) fn named(request: &Value) -> Result<SocketId, Failure> {
    let socket = request["socket"].as_str().and_then(|text| u64::from_str_radix(text, 16).ok());
    Ok(SocketId(Key::from_bits(socket.ok_or_else(|| Failure::new("\"socket\" is not a name"))?)))
}

/// A socket's name for other processes: its key, in hexadecimal, so that no reader makes a float of it.
pub(super) fn name(socket: SocketId) -> Value {
    format!("{:x}", socket.0.to_bits()).into()
}
