// The causes of waiting: names, colours, bars. A family of colours says who limits, as in the pictures of `inhost explain`.
import { make } from "/assets/house.js";
import { perCent, time } from "/assets/format.js";

/** In the order of bars: [who limits, his colour in the legend, causes as [name, colour, name in a verdict]]. */
const FAMILIES = [
  ["losses", "#d53000", [
    ["SYN lost", "#c2452a", "syn_loss"], ["accept queue full", "#a33a22", "accept_queue"], ["fast recovery", "#f0876b", "fast_recovery"],
    ["loss recovery", "#f0876b"], ["timeout", "#d53000", "timeout"], ["time-out", "#d53000"], ["tail loss", "#e85c35", "tail_loss"],
    ["spurious timeout", "#f5b09e", "spurious_timeout"], ["broken recovery", "#8c1f00", "broken_recovery"],
    ["MTU black hole", "#5e1500", "mtu_black_hole"], ["hole in the data", "#d53000"]]],
  ["receiver", "#e69f00", [
    ["receiver's window", "#e69f00", "receiver_window"], ["receiver does not read", "#a86f00", "zero_window"], ["closed window", "#a86f00"],
    ["silly window", "#f3cd73", "silly_window"], ["data waiting for the application", "#e69f00"], ["our window closed", "#a86f00"]]],
  ["congestion window", "#6a3d9a", [
    ["congestion window", "#6a3d9a", "congestion_window"], ["slow start", "#b49bd1", "slow_start"],
    ["slow-start restart", "#9277bd", "slow_start_restart"]]],
  ["path and link", "#0072b2", [
    ["bottleneck's rate", "#0072b2", "bottleneck_rate"], ["pacing", "#56b4e9", "pacing"], ["send buffer", "#9ad0f0", "send_buffer"],
    ["waiting for the link", "#3a8fc0", "link"], ["handshake", "#c4dfee", "opening"], ["opening", "#c4dfee"]]],
  ["acknowledgment", "#4fb795", [
    ["awaiting acknowledgment", "#a5d8c4", "awaiting_acknowledgment"], ["Nagle", "#4fb795", "nagle"],
    ["gathering small data", "#4fb795"], ["Nagle and delayed ACK", "#007a58", "nagle_delayed_ack"]]],
  ["application", "#b0b0b0", [
    ["application idle", "#b0b0b0", "application_idle"], ["think time", "#808080", "think_time"], ["peer's turn", "#cdcdcd", "awaiting_peer"],
    ["waiting for data", "#cdcdcd"], ["closing", "#dddddd", "closing"], ["nothing left to send", "#eaeaea", "closed"], ["closed", "#eaeaea"],
    ["not known", "#f4f4f4", "unknown"]]],
];
const KNOWN = new Map();
const KEYS = new Map();
for (const [family, , causes] of FAMILIES) {
  for (const [name, colour, key] of causes) {
    KNOWN.set(name, { name, colour, family, order: KNOWN.size });
    if (key) KEYS.set(key, name);
  }
}

/** The name of a cause of a verdict. */
export const nameOf = (key) => KEYS.get(key) ?? key.replaceAll("_", " ");
/** A cause by its name. */
export const causeOf = (name) => KNOWN.get(name) ?? { name, colour: "#f4f4f4", family: "application", order: 99 };

/** A small field of a cause's colour. */
export function swatch(colour) {
  const element = make("i", { className: "swatch", "aria-hidden": "true" });
  element.style.backgroundColor = colour;
  return element;
}

/** Shares as a sentence, the largest first. */
export function inWords(causes) {
  const parts = [...causes].sort((a, b) => b[1] - a[1]).filter(([, share]) => share >= 1);
  return parts.map(([name, share]) => `${perCent(share)} ${causeOf(name).name}`).join(", ") || "no time yet";
}

/** Draws shares, [name, per cent], into a bar. Parts stay elements, so that they move. */
export function drawBar(bar, causes, whose = "") {
  const parts = causes.filter(([, share]) => share >= 0.05).sort((a, b) => causeOf(a[0]).order - causeOf(b[0]).order);
  parts.forEach(([name, share], at) => {
    const part = bar.children[at] ?? bar.appendChild(document.createElement("i"));
    part.style.width = `${share}%`;
    part.style.backgroundColor = causeOf(name).colour;
  });
  while (bar.children.length > parts.length) bar.lastElementChild.remove();
  const text = inWords(causes);
  if (bar.title === text) return;
  bar.title = text;
  bar.setAttribute("aria-label", whose + text);
}

export function bar(causes, whose) {
  const element = make("div", { className: "causes", role: "img" });
  drawBar(element, causes, whose);
  return element;
}

/** A cause, with its colour. */
export const cause = (name) => make("span", { className: "cause" }, swatch(causeOf(name).colour), causeOf(name).name);

/** Shares as rows: `causes` are [name, per cent, ns]; `now` is marked. */
export function shareList(causes, now) {
  const rows = causes.filter(([, share]) => share > 0).sort((a, b) => b[1] - a[1]);
  return make("ul", { className: "shares" }, rows.map(([name, share, ns]) => make("li", {},
    cause(name), name === now && make("span", { className: "badge plain" }, "now"),
    make("span", { className: "number" }, perCent(share)), make("span", { className: "number muted" }, time(ns)))));
}

export function legend() {
  return make("p", { className: "legend" }, "Limited by ", FAMILIES.map(([name, colour]) => make("span", { className: "cause" }, swatch(colour), name)));
}
