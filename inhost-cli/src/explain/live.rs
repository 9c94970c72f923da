//! The running host's connections, from their ledgers and what the flight recorder holds.

use super::Choice;
use crate::failure::Failure;
use crate::time::unix_time;
use inhost_event::SendCause;
use inhost_explain::{Agreed, Known, Options, Report};
use inhost_runtime::control::{Client, ClientError};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;

/// What the recorder may hand over, in bytes: more than it ever holds.
const MOST_RECORDED_BYTES: u64 = 256 << 20;

/// The report on the connections that are meant, those first whose application waited most for other things than
/// itself; and the recorded frames, as pcapng.
pub fn judge(client: &mut Client, only: &Choice, top: usize) -> Result<(Report, Vec<u8>), Failure> {
    let asked = |why: ClientError| Failure::operation(format!("the host does not tell: {why}"));
    let state = client.netstat().map_err(asked)?;
    let sockets = state["sockets"].as_array().map_or(&[][..], Vec::as_slice);
    let mut known: Vec<Known> = sockets.iter().filter_map(known).collect();
    known.retain(|of| only.has(&of.local.to_string(), &of.remote.to_string()));
    known.sort_by_key(|of| std::cmp::Reverse(lost_ns(of)));
    let left_out = known.len().saturating_sub(top);
    known.truncate(top);
    let (_, file) = client.request(&json!({"op": "record"})).map_err(asked)?;
    let mut frames = Vec::new();
    if let Some(file) = file {
        let read = File::from(file).take(MOST_RECORDED_BYTES).read_to_end(&mut frames);
        read.map_err(|e| Failure::operation(format!("the recorder's file cannot be read: {e}")))?;
    }
    let judge = |of: &Known| {
        inhost_explain::live(of, &frames[..], &Options::default())
            .map_err(|why| Failure::operation(format!("the recorder's file is not understood: {why}")))
    };
    // What the recorder holds of frames is counted as in any capture; connections are those of the host.
    let mut report = inhost_explain::explain(&frames[..], &Options::default()).unwrap_or_default();
    report.conversations_left_out = left_out as u64;
    report.conversations = known.iter().map(judge).collect::<Result<_, _>>()?;
    Ok((report, frames))
}

/// What the instruments say of a connection.
fn known(socket: &Value) -> Option<Known> {
    let end = |member: &str| socket[member].as_str()?.parse().ok();
    let ledger = socket["tcp"]["send"]["ledger_ns"].as_object()?;
    let mut send_ns = [0; SendCause::COUNT];
    for cause in SendCause::ALL {
        send_ns[*cause as usize] = ledger.get(cause.text()).and_then(Value::as_u64).unwrap_or(0);
    }
    let number = |value: &Value| value.as_u64();
    let tcp = &socket["tcp"];
    let bytes = [&tcp["send"]["bytes"], &tcp["receive"]["bytes"]].map(|of| number(of).unwrap_or(0));
    let round_trip_ns = number(&tcp["min_round_trip_ns"]);
    Some(Known {
        local: end("local")?,
        remote: end("remote")?,
        send_ns,
        bytes,
        round_trip_ns,
        now_ns: u64::try_from(unix_time().as_nanos()).ok(),
        agreed: agreed(tcp),
    })
}

/// What the handshake agreed on; none where the host does not tell.
fn agreed(tcp: &Value) -> Option<Agreed> {
    let small = |value: &Value| value.as_u64().and_then(|number| u8::try_from(number).ok());
    let size = |value: &Value| value.as_u64().and_then(|number| u16::try_from(number).ok());
    let scales = [small(&tcp["receive"]["window_scale"])?, small(&tcp["send"]["window_scale"])?];
    let (send, receive) = (&tcp["send"], &tcp["receive"]);
    Some(Agreed {
        mss_bytes: [size(&receive["offered_segment_bytes"])?, size(&send["peer_segment_bytes"])?],
        window_scales: tcp["agreed"]["window_scaling"].as_bool()?.then_some(scales),
        has_timestamps: tcp["agreed"]["timestamps"].as_bool()?,
        has_sack: tcp["agreed"]["sack"].as_bool()?,
    })
}

fn lost_ns(known: &Known) -> u64 {
    let idle = [SendCause::ApplicationIdle, SendCause::Closed];
    let lost = SendCause::ALL.iter().filter(|cause| !idle.contains(cause));
    lost.map(|&cause| known.send_ns[cause as usize]).sum()
}
