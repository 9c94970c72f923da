// One connection: its verdict, causes, figures, and what happens now.
import { make, request } from "/assets/house.js";
import { bar, causeOf, shareList } from "/assets/causes.js";
import { timeChart } from "/assets/chart.js";
import { address } from "/assets/connections.js";
import { bytes, clean, count, rate, time } from "/assets/format.js";
import { every } from "/assets/live.js";
import { show as into } from "/assets/morph.js";
import { showVerdict } from "/assets/verdict.js";

/** Samples that are kept: ten minutes. */
const KEPT = 6000;
const yesNo = (value) => (value ? "yes" : "no");
/** [group, [name, path in the figures, format, path of a limit]]. */
const FACTS = [
  ["Path", [["Round trip, smoothed", "smoothed_round_trip_ns", time], ["Its variation", "round_trip_variation_ns", time], ["Least round trip", "min_round_trip_ns", time],
    ["Retransmission time-out", "retransmission_timeout_ns", time], ["Delivery rate", "rates.delivery_bytes_per_second", rate],
    ["Pacing rate", "rates.pacing_bytes_per_second", rate], ["Segment size of the path", "send.path_segment_bytes", bytes]]],
  ["Sending", [["Sent", "send.bytes", bytes], ["In flight", "send.in_flight_bytes", bytes], ["Peer's window", "send.window_bytes", bytes],
    ["Congestion window", "congestion_window_bytes", bytes], ["Slow-start threshold", "slow_start_threshold_bytes", bytes], ["Congestion control", "congestion_control", clean],
    ["Send buffer", "send.queue_bytes", bytes, "send.queue_capacity_bytes"], ["Of it not sent", "send.not_sent_bytes", bytes], ["Segment size", "send.segment_bytes", bytes]]],
  ["Receiving", [["Received", "receive.bytes", bytes], ["Window", "receive.window_bytes", bytes], ["Receive buffer", "receive.queue_bytes", bytes, "receive.queue_capacity_bytes"],
    ["Waiting behind a hole", "receive.reassembly_bytes", bytes], ["Since the last data", "receive.since_data_ns", time], ["Segment size", "receive.segment_bytes", bytes]]],
  ["Losses", [["Recovery", "recovery.state", clean], ["Segments sent again", "retransmitted_segments", count], ["Bytes sent again", "retransmitted_bytes", bytes],
    ["Time-outs", "timeouts", count], ["Lost, to be repaired", "recovery.lost_bytes", bytes], ["Reorderings", "recovery.reorderings", count],
    ["Needless (D-SACK)", "recovery.duplicate_sacks", count], ["Congestion marks (ECN)", "recovery.congestion_marks", count]]],
  ["Agreed", [["Timestamps", "agreed.timestamps", yesNo], ["Window scaling", "agreed.window_scaling", yesNo], ["Shifts, peer's and ours", "send.window_scale", String, "receive.window_scale"],
    ["SACK", "agreed.sack", yesNo], ["ECN", "agreed.ecn", yesNo], ["Fast Open", "agreed.fast_open", clean], ["Error", "error", clean], ["Soft error", "soft_error", clean]]],
];
const CHARTS = [
  { title: "Bytes of the stream over time", format: bytes, height: 210, names: ["sent", "acknowledged", "edge", "again"], lines: [
    { label: "Sent", colour: "--sent" }, { label: "Acknowledged", colour: "--acknowledged", dash: [7, 3] },
    { label: "Edge of the window", colour: "--window", dash: [2, 3] }, { label: "● Sent again", colour: "--again", marks: true }] },
  { title: "In flight and what allows it", format: bytes, fromZero: true, scaledBy: [0, 2], names: ["in_flight", "congestion_window", "peer_window"], lines: [
    { label: "In flight", colour: "--sent" }, { label: "Congestion window", colour: "--congestion", dash: [7, 3], stepped: true },
    { label: "Peer's window", colour: "--window", dash: [2, 3], stepped: true }] },
  { title: "Round trip", format: time, fromZero: true, height: 130, names: ["rtt_ns"], lines: [{ label: "Smoothed round trip", colour: "--acknowledged" }] },
];
const SPANS = [["10 s", 10], ["1 min", 60], ["10 min", 600]];

export const title = "Connection";

function facts(tcp) {
  const at = (path) => path.split(".").reduce((of, name) => of?.[name], tcp);
  const value = (path, format, limit) => format(at(path)) + (limit ? ` of ${format(at(limit))}` : "");
  const rows = (list) => list.filter(([, path]) => at(path) !== null && at(path) !== undefined)
    .map(([name, path, format, limit]) => [make("dt", {}, name), make("dd", { className: "number" }, value(path, format, limit))]);
  return FACTS.map(([name, list]) => make("section", {}, make("h3", {}, name), make("dl", { className: "facts" }, rows(list))));
}

function causesOf(connection) {
  const side = (heading, causes, now) => make("section", {}, make("h3", {}, heading), bar(causes, `${heading}: `), shareList(causes, now));
  return [side("Sending", connection.causes.send, connection.tcp.send?.cause), side("Receiving", connection.causes.receive, connection.tcp.receive?.cause)];
}

/** Paints the causes of two lanes below the axes of a chart. */
function paintStrip(plot, samples, nowNs) {
  const { ctx, bbox } = plot;
  const x = (sample) => plot.valToPos((sample.at_ns - nowNs) / 1e9, "x", true);
  const lane = (name, top) => {
    let left = samples.length > 0 ? Math.max(bbox.left, x(samples[0])) : 0;
    samples.forEach((sample, at) => {
      // Neighbours of one cause are painted as one. A sample tells of the time before it.
      if (samples[at + 1]?.[name] === sample[name]) return;
      const right = x(sample);
      ctx.fillStyle = causeOf(sample[name]).colour;
      ctx.fillRect(left, top, right - left, bbox.height / 2 - 4);
      left = right;
    });
  };
  lane("cause", bbox.top + 1);
  lane("receive_cause", bbox.top + bbox.height / 2 + 3);
}

/** Charts of the samples; `spanOf` gives how many seconds are shown. */
function charts(id, signal) {
  const samples = [];
  let nowNs = 0, shown = [], span = 60;
  const strip = timeChart({ title: "What was waited for", lanes: ["Receiving", "Sending"], height: 92, group: "connection", lines: [{ label: "", colour: "--muted" }],
    format: String, draw: (plot) => paintStrip(plot, shown, nowNs) }, signal);
  const made = CHARTS.map((chart) => [timeChart({ ...chart, group: "connection" }, signal), chart.names]);
  const draw = () => {
    // No longer than there are samples.
    const seconds = Math.min(span, Math.max(10, samples.length > 0 ? (nowNs - samples[0].at_ns) / 1e9 : 0));
    shown = samples.filter((sample) => sample.at_ns >= nowNs - seconds * 1e9);
    // The line begins at the edge, and has a mark where segments were sent again.
    const times = [-seconds, ...shown.map((sample) => (sample.at_ns - nowNs) / 1e9)];
    for (const [chart, names] of made) chart.update([times, ...names.map((name) => [null, ...shown.map((sample) => sample[name] ?? null)])]);
    strip.update([times, times.map(() => null)]);
  };
  const load = async () => {
    const answer = await request(`/api/connections/${id}/samples?after=${samples.at(-1)?.at_ns ?? 0}`, { signal });
    nowNs = answer.now_ns;
    for (const sample of answer.samples) {
      const before = samples.at(-1);
      sample.again = before && sample.retransmitted > before.retransmitted ? sample.acknowledged : null;
      samples.push(sample);
    }
    samples.splice(0, samples.length - KEPT);
    draw();
  };
  const buttons = SPANS.map(([text, seconds]) => make("button", { type: "button", "aria-pressed": seconds === span, onclick: (event) => {
    span = seconds;
    for (const button of buttons) button.setAttribute("aria-pressed", button === event.currentTarget);
    draw();
  } }, text));
  const element = make("section", { className: "panel charts", "aria-label": "Charts" },
    make("header", {}, make("h2", {}, "Over time"), make("div", { role: "group", "aria-label": "Time shown", className: "choice" }, buttons)),
    strip.element, made.map(([chart]) => chart.element));
  return { element, load };
}

export function show({ place, id, signal }) {
  const path = encodeURIComponent(id);
  const head = make("header", { className: "head" }), verdict = make("section", { className: "panel inside", "aria-label": "Verdict" });
  const causes = make("div", { className: "columns" }), figures = make("div", { className: "columns facts-list" });
  const over = make("p", { className: "problem", role: "alert", hidden: true }, "This connection is over: the figures are its last ones.");
  const { element, load } = charts(path, signal);
  const panel = (name, content) => make("section", { className: "panel inside", "aria-label": name }, make("h2", {}, name), content);
  place.append(head, over, verdict, panel("Where its time went", causes), element, panel("Figures", figures));
  into(head, make("h1", {}, "Connection"));
  into(verdict, make("h2", {}, "Verdict"), make("p", { className: "muted" }, "Its frames are being read."));
  const ended = new AbortController();
  const until = AbortSignal.any([signal, ended.signal]);
  const guarded = (work) => () => work().catch((error) => {
    if (error.status !== 404) throw error;
    ended.abort();
    if (signal.aborted) return;
    over.hidden = false;
    if (causes.childElementCount === 0) place.replaceChildren(make("div", { className: "empty" }, make("h1", {}, "There is no such connection"),
      make("p", {}, "It may be over. ", make("a", { href: address() }, "All connections"))));
  });
  every(1000, until, guarded(async () => {
    const connection = await request(`/api/connections/${path}`, { signal: until });
    into(head,
      make("div", {}, make("h1", {}, make("bdi", {}, clean(connection.local)), " ↔ ", make("bdi", {}, clean(connection.remote))),
        make("p", { className: "muted" }, `${connection.state}, ${time(connection.age_ns)} old`)),
      make("div", { className: "actions" }, make("a", { className: "button", href: address() }, "All connections"),
        make("a", { className: "button", href: `/api/connections/${path}/frames`, download: `connection-${id}.pcapng` }, "Download its frames")));
    into(causes, causesOf(connection));
    into(figures, facts(connection.tcp));
  }));
  every(2000, until, guarded(async () => {
    const found = await request(`/api/connections/${path}/verdict`, { signal: until });
    into(verdict, make("h2", {}, "Verdict"), showVerdict(found, false));
  }));
  every(500, until, guarded(load));
  return { back: address };
}
