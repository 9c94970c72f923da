// A verdict: why a connection is slow, what to do, and what shows it.
import { make } from "/assets/house.js";
import { bar, cause, inWords, nameOf } from "/assets/causes.js";
import { bytes, clean, count, perCent, time } from "/assets/format.js";

/** Findings whose names are not their keys in words. */
const SIGNS = {
  fast_retransmission: "fast retransmissions", timeout_retransmission: "retransmissions after a timeout", tail_probe: "tail probes",
  needless_retransmission: "retransmissions of acknowledged data", spurious_retransmission: "spurious retransmissions",
  reordering_mistaken: "reordering mistaken for loss", keep_alive: "keep-alives", window_probe: "window probes", zero_window: "zero windows",
  option_missing: "TCP option missing", clamped_mss: "small MSS", mtu_black_hole: "MTU black hole", duplicate_ack_storm: "duplicate-ACK storm",
  stretch_acks: "stretch ACKs", syn_retransmission: "SYN retransmissions", foreign_segment: "segment of another origin",
  checksum_offload: "offloaded checksums", wrong_checksum: "wrong checksums", duplicate_frame: "frames captured twice",
  capture_gap: "frames missing in the capture",
};
const PLACES = { client: "captured at the client", server: "captured at the server", middle: "captured in the middle", unknown: "place of the capture unknown" };

const frames = (numbers) => numbers.length > 0 && make("span", { className: "muted" },
  ` (${numbers.length === 1 ? "frame" : "frames"} ${numbers.join(", ")})`);

/** The shares of a direction: [name, per cent, ns]. */
export const sharesOf = (verdict, direction = verdict.direction) =>
  verdict.directions[direction].shares.map((share) => [nameOf(share.cause), share.per_cent, share.ns]);

/** Bytes, time, rate and round trip in a line. */
export function summary(verdict) {
  const { bytes: moved } = verdict.directions[verdict.direction];
  const perSecond = verdict.duration_ns > 0 ? (moved * 1e9) / verdict.duration_ns : 0;
  const trip = verdict.round_trip?.largest_ns > 0 && `round trip ${time(verdict.round_trip.least_ns)} to ${time(verdict.round_trip.largest_ns)}`;
  return [`${bytes(moved)} in ${time(verdict.duration_ns)}, ${bytes(perSecond)}/s`, trip, PLACES[verdict.vantage], `${count(verdict.frames)} frames`]
    .filter(Boolean).join("; ");
}

const namesOf = ({ client, server }) => [`${client} → ${server}`, `${server} → ${client}`].map((name) => clean(name));

function directions(verdict) {
  const names = namesOf(verdict);
  return verdict.directions.map((of, at) => make("div", { className: "direction" },
    make("span", {}, names[at], at === verdict.direction && make("span", { className: "badge plain" }, "the verdict is about this direction")),
    bar(sharesOf(verdict, at), `Causes, ${names[at]}: `), make("span", { className: "muted" }, inWords(sharesOf(verdict, at)),
      of.retransmissions.total > 0 && `; ${count(of.retransmissions.total)} sent again`)));
}

const list = (items) => items.length > 0 && make("ul", {}, items.map((item) => make("li", {}, item)));

/** What a verdict says, as rows of a list. The words are those of `inhost explain`. */
export function showVerdict(verdict, hasBars = true) {
  const { evidence, findings, confidence } = verdict;
  const rows = [
    ["Why", make("strong", {}, cause(nameOf(verdict.cause)), ": ", clean(verdict.diagnosis, 600))],
    ["Do", clean(verdict.remedy, 600)],
    ["See", list([...evidence.map((claim) => [clean(claim.claim), frames(claim.frames)]),
      ...findings.map((found) => [`${count(found.count)} × ${SIGNS[found.sign] ?? found.sign.replaceAll("_", " ")}`, frames(found.frames)])])],
    ["Sure", [`${perCent(confidence * 100)}${verdict.confidence_reasons.length > 0 ? ", because: " : ""}`, verdict.confidence_reasons.map((text) => clean(text)).join("; ")]],
    ["Not known from here", list(verdict.unknown.map((text) => clean(text)))],
  ].filter(([, content]) => content);
  return [
    make("p", { className: "muted" }, summary(verdict), !hasBars && make("br"), !hasBars && `${namesOf(verdict)[verdict.direction]}: ${inWords(sharesOf(verdict))}`),
    make("dl", { className: "verdict" }, rows.map(([name, content]) => [make("dt", {}, name), make("dd", { "aria-live": name === "Why" && "polite" }, content)])),
    hasBars && directions(verdict)];
}
