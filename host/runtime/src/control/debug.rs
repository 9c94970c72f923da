//! One connection's whole state, and what its host waits for, for a debugger in another process. It changes nothing.

use inhost_socket::Host;
use serde_json::{Value, json};

use super::names::{name, named};
use super::reply::{Failure, Reply};

/// Answers `debug`.
pub(super) fn answer(host: &Host, request: &Value) -> Result<Reply, Failure> {
    let socket = named(request)?;
    let found = host.with_stack(|stack, now| {
        let instruments = stack.instruments();
        let detail = instruments.connection(socket)?.detail(now);
        let ends = stack.endpoints(socket)?;
        Some((detail, ends, instruments.queues()))
    });
    let (detail, (local, remote), mut host_state) =
        found.ok_or_else(|| Failure::new("there is no such connection; it may have ended"))?;
    host_state["tasks"] = tasks(host);
    Ok(json!({
        "local": local.to_string(),
        "remote": remote.map(|remote| remote.to_string()),
        "connection": detail,
        "host": host_state,
    })
    .into())
}

fn tasks(host: &Host) -> Value {
    let waits = host.task_waits();
    let sockets = waits.sockets.iter().map(|of| {
        json!({"socket": name(of.socket), "reading": of.reading, "writing": of.writing, "urgent": of.urgent})
    });
    json!({
        "is_runnable": waits.is_runnable,
        "timers": waits.timers,
        "timer_ns": waits.timer_ns,
        "sockets": sockets.collect::<Vec<_>>(),
    })
}
