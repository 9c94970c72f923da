//! Tools for a language model's program, by the Model Context Protocol on standard input and output.
//!
//! A model asks which connections lost time, why one did, and for the frames that the answer cites, so that it reports
//! evidence instead of guesses. Nothing is changed, and of files nothing but captures is read.

use super::live;
use crate::args::Explain;
use crate::explain::Choice;
use crate::failure::Failure;
use inhost_explain::capture::{Frame, Reader, dissect};
use inhost_explain::{Options, Report, Verdict};
use inhost_runtime::control;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::schemars::JsonSchema;
use rmcp::service::ServerInitializeError;
use rmcp::{Json, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The source that is the running host.
const LIVE: &str = "live";
/// Connections that are listed where nobody says how many, and at most.
const LISTED: usize = 20;
const MOST_LISTED: usize = 200;
/// Frames that one request may fetch, and bytes of each that are shown.
const MOST_FRAMES: usize = 200;
const SHOWN_BYTES: usize = 128;

/// Serves until standard input ends.
pub fn run(arguments: &Explain) -> Result<(), Failure> {
    let path = arguments.via.clone().unwrap_or_else(control::default_path);
    let tools = Tools { control: path, recorded: Arc::default() };
    let failed = |why: String| Failure::operation(format!("the Model Context Protocol: {why}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| failed(why.to_string()))?;
    runtime.block_on(async {
        let ended =
            "standard input has ended before a client began; a language model's program starts this command";
        let service = tools.serve(rmcp::transport::stdio()).await.map_err(|why| match why {
            ServerInitializeError::ConnectionClosed(_) => failed(ended.to_owned()),
            other => failed(other.to_string()),
        })?;
        service.waiting().await.map(drop).map_err(|why| failed(why.to_string()))
    })
}

/// What the tools know.
#[derive(Clone, Debug)]
struct Tools {
    /// The running host's control socket.
    control: PathBuf,
    /// What its flight recorder held when it was asked last: the frames that the last verdict cites.
    recorded: Arc<Mutex<Vec<u8>>>,
}

#[derive(Deserialize, JsonSchema)]
struct ListRequest {
    /// Path of a pcap or pcapng file, or "live" for the host that runs on this machine.
    source: String,
    /// Only connections with this end (10.9.0.2:80), address, or port (:80).
    #[serde(default)]
    only: Option<String>,
    /// How many connections to list; 20 when left out, 200 at most.
    #[serde(default)]
    top: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
struct ExplainRequest {
    /// Path of a pcap or pcapng file, or "live" for the host that runs on this machine.
    source: String,
    /// One end of the connection, as it was listed: 10.9.0.1:40000.
    client: String,
    /// The other end.
    server: String,
}

#[derive(Deserialize, JsonSchema)]
struct FramesRequest {
    /// The source of the verdict that cites them.
    source: String,
    /// Their numbers, from 1, as a verdict cites them; 200 at most.
    frames: Vec<u64>,
}

/// The connections of a source.
#[derive(Serialize, JsonSchema)]
struct Listed {
    /// How many there are.
    connections: usize,
    /// Those that lost the most time to other things than an idle application, the worst first.
    listed: Vec<Row>,
    /// What limits the analysis as a whole.
    notes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Row {
    client: String,
    server: String,
    /// Bytes from client to server, and back.
    bytes: [u64; 2],
    duration_ns: u64,
    /// Time lost to other things than an idle application.
    lost_ns: u64,
    /// The main cause, in words, and its share of the time in per cent.
    cause: String,
    per_cent: f64,
    /// From 0 (a guess) to 1 (proved).
    confidence: f64,
}

/// Frames in words and bytes.
#[derive(Serialize, JsonSchema)]
struct Frames {
    frames: Vec<Cited>,
    /// Numbers that the source does not have.
    missing: Vec<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Cited {
    /// Its number in the source.
    number: u64,
    /// Nanoseconds since 1970.
    at_ns: u64,
    /// Bytes of the frame on the wire.
    bytes: u32,
    /// The TCP segment in it, in words.
    segment: Option<String>,
    /// The first bytes that were captured, in hexadecimal.
    hex: String,
}

#[tool_router]
impl Tools {
    /// Lists the connections of a packet capture, or of the running host, those that lost the most time first.
    #[tool]
    async fn list_connections(
        &self,
        Parameters(asked): Parameters<ListRequest>,
    ) -> Result<Json<Listed>, String> {
        let only = asked.only.as_deref().map(Choice::parse).transpose().map_err(|why| why.text())?;
        let only = only.unwrap_or_default();
        let top = asked.top.unwrap_or(LISTED).min(MOST_LISTED);
        let (verdicts, notes) = self.judge(&asked.source, &only)?;
        let listed = verdicts.iter().take(top).map(row).collect();
        Ok(Json(Listed { connections: verdicts.len(), listed, notes }))
    }
    /// Says why one connection was slow: the causes of waiting with their share of time, a diagnosis, a remedy with the
    /// figure to set, findings, and the numbers of the frames that prove each. Causes that are not in the answer were not
    /// seen; what cannot be known from this capture is listed under "unknown".
    #[tool]
    async fn explain_connection(
        &self,
        Parameters(asked): Parameters<ExplainRequest>,
    ) -> Result<Json<Verdict>, String> {
        let (verdicts, _) = self.judge(&asked.source, &Choice::All)?;
        let ends = [&asked.client, &asked.server];
        let found = verdicts
            .into_iter()
            .find(|of| ends == [&of.client, &of.server] || ends == [&of.server, &of.client]);
        found.map(Json).ok_or_else(|| {
            format!(
                "there is no connection between {} and {}; list_connections has those that there are",
                asked.client, asked.server
            )
        })
    }
    /// Fetches frames that a verdict cites: each segment in words, and its first bytes.
    #[tool]
    async fn fetch_frames(
        &self,
        Parameters(asked): Parameters<FramesRequest>,
    ) -> Result<Json<Frames>, String> {
        if asked.frames.len() > MOST_FRAMES {
            return Err(format!("ask for {MOST_FRAMES} frames at most"));
        }
        let mut frames = Vec::new();
        let fail = |why| format!("{}: {why}", asked.source);
        let mut reader = Reader::new(self.open(&asked.source)?).map_err(fail)?;
        // Damage behind what is asked for does not matter; a frame that is not reached is missing.
        while let Ok(Some(frame)) = reader.next_frame() {
            if asked.frames.contains(&frame.number) {
                frames.push(cited(&frame));
            }
        }
        let has = |number: &u64| frames.iter().any(|frame| frame.number == *number);
        let missing = asked.frames.iter().copied().filter(|number| !has(number)).collect();
        Ok(Json(Frames { frames, missing }))
    }
}

#[tool_handler(
    name = "inhost-explain",
    instructions = "Why TCP connections are slow, from packet captures or from a running inhost. First list_connections, \
                    then explain_connection for one, then fetch_frames for the frames that it cites. Report the diagnosis \
                    with its confidence and frame numbers, and do not add causes that are not in the answer."
)]
impl ServerHandler for Tools {}

impl Tools {
    /// The verdicts on a source, and what limits them.
    fn judge(&self, source: &str, only: &Choice) -> Result<(Vec<Verdict>, Vec<String>), String> {
        if source == LIVE {
            let mut client = crate::through::open_host(&self.control).map_err(|why| why.text())?;
            let (report, frames) = live::judge(&mut client, only, MOST_LISTED).map_err(|why| why.text())?;
            *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = frames;
            return Ok((report.conversations, Vec::new()));
        }
        let report: Report = inhost_explain::explain(self.open(source)?, &Options::default())
            .map_err(|why| format!("{source}: {why}"))?;
        let notes = report.warnings.iter().map(|of| format!("{} ({})", of.text, of.count)).collect();
        let mut verdicts = report.conversations;
        verdicts.retain(|of| only.has(&of.client, &of.server));
        Ok((verdicts, notes))
    }
    /// The bytes of a source: of the running host, those of the last verdict.
    fn open(&self, source: &str) -> Result<Box<dyn Read>, String> {
        if source == LIVE {
            let recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner).clone();
            return match recorded.is_empty() {
                true => Err("nothing was explained live yet; ask explain_connection first".to_owned()),
                false => Ok(Box::new(Cursor::new(recorded))),
            };
        }
        let file = File::open(source).map_err(|why| format!("{source}: {why}"))?;
        Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
    }
}

fn row(of: &Verdict) -> Row {
    let [there, back] = &of.directions;
    Row {
        client: of.client.clone(),
        server: of.server.clone(),
        bytes: [there.bytes, back.bytes],
        duration_ns: of.duration_ns,
        lost_ns: of.lost_ns,
        cause: of.cause.text().to_owned(),
        per_cent: of.per_cent(of.direction, of.cause),
        confidence: of.confidence,
    }
}

fn cited(frame: &Frame<'_>) -> Cited {
    let segment = dissect(frame).ok().map(|(flow, of)| {
        let flags = [
            (of.flags.syn(), "SYN"),
            (of.flags.fin(), "FIN"),
            (of.flags.rst(), "RST"),
            (of.flags.ack(), "ACK"),
        ];
        let flags: Vec<&str> = flags.iter().filter(|(is_set, _)| *is_set).map(|&(_, name)| name).collect();
        let mut words = format!(
            "{} to {}: {}, sequence {}, acknowledgment {}, window field {}, {} bytes",
            flow.source,
            flow.destination,
            flags.join(" "),
            of.sequence,
            of.acknowledgment,
            of.window,
            of.payload_bytes
        );
        for (start, end) in of.options.sack.iter() {
            words.push_str(&format!(", SACK {} to {}", start.0, end.0));
        }
        words
    });
    let hex = frame.bytes.iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect();
    Cited { number: frame.number, at_ns: frame.at_ns, bytes: frame.original_bytes, segment, hex }
}
