// Links, queues of listeners, memory, counters.
import { make, request, table } from "/assets/house.js";
import { spark } from "/assets/chart.js";
import { bytes, clean, count, rate, time } from "/assets/format.js";
import { every } from "/assets/live.js";
import { show as into } from "/assets/morph.js";

const KEPT = 120;
let isAllShown = false;

export const title = "Host: links, queues, memory";

/** A table that the keyboard can scroll where the screen is narrow. */
const reachable = (label, element) => Object.assign(element, { tabIndex: 0, role: "region", ariaLabel: label });

/** A bar of a value against its limit. */
export function level(value, limit, label) {
  const part = make("i");
  const share = limit > 0 ? Math.min(100, (value * 100) / limit) : 0;
  part.style.width = `${share}%`;
  return make("div", { className: share >= 90 ? "level full" : "level", role: "meter", "aria-label": label, "aria-valuenow": value, "aria-valuemin": 0, "aria-valuemax": limit }, part);
}

/** A link's rates: from the differences of its counts. */
class Rates {
  constructor(signal) {
    this.lines = { received: spark("In", rate, signal, 30), sent: spark("Out", rate, signal, 30) };
    this.values = { received: [], sent: [] };
  }
  add(link, ns) {
    for (const [name, values] of Object.entries(this.values)) {
      const now = link[`${name}_bytes`];
      if (this.last && ns > this.last.ns) values.push(Math.max(0, now - this.last[name]) * 1e9 / (ns - this.last.ns));
      if (values.length > KEPT) values.shift();
    }
    this.last = { ns, received: link.received_bytes, sent: link.sent_bytes };
  }
  draw() {
    for (const [name, line] of Object.entries(this.lines)) line.update(this.values[name]);
  }
}

function showLink(link, rates) {
  const drops = Object.entries(link.dropped);
  const facts = [["Addresses", link.addresses.map((text) => make("div", {}, clean(text)))], ["Hardware", clean(link.hardware ?? "none")], ["MTU", `${count(link.mtu_bytes)} bytes`],
    ["Device", clean(link.description)], ["Received", `${count(link.received_frames)} frames, ${bytes(link.received_bytes)}`],
    ["Sent", `${count(link.sent_frames)} frames, ${bytes(link.sent_bytes)}`], ["Device was full", `${count(link.full)} times`]];
  return make("section", { className: "panel inside link", "data-key": String(link.link), "aria-label": `Link ${clean(link.name)}` },
    make("h2", {}, make("bdi", {}, clean(link.name)), " ", make("span", { className: link.state === "up" ? "badge good" : "badge bad" }, clean(link.state)),
      make("span", { className: "badge plain" }, clean(link.medium))),
    rates.lines.received.element, rates.lines.sent.element,
    make("dl", { className: "facts" }, facts.map(([name, value]) => [make("dt", {}, name), make("dd", { className: "number" }, value)])),
    make("h3", {}, "Dropped"),
    drops.length > 0
      ? make("dl", { className: "facts" }, drops.map(([why, times]) => [make("dt", {}, clean(why)), make("dd", { className: "number" }, count(times))]))
      : make("p", { className: "muted" }, "Nothing."));
}

function listeners(list) {
  if (list.length === 0) return make("p", { className: "muted" }, "Nothing listens. Name a service in host.toml, or let a program listen.");
  const queue = (value, limit, label) => make("div", { className: "queue" }, limit ? level(value, limit, label) : "",
    make("span", { className: "number" }, limit ? `${count(value)} of ${count(limit)}` : count(value)));
  return reachable("Table of listeners", table(["Address", "Accept queue", "Handshakes under way"], list.map((of) => [
    make("span", { className: "mono" }, clean(of.local)),
    queue(of.accept_queue, of.accept_limit, `Accept queue of ${clean(of.local)}`),
    queue(of.handshakes, of.handshake_limit, `Handshakes of ${clean(of.local)}`)])));
}

function memory({ used_bytes: used, limit_bytes: limit, refused }) {
  return [make("p", {}, `${bytes(used)} of ${bytes(limit)} `, refused > 0 && make("span", { className: "badge bad" }, `refused ${count(refused)} times`)),
    level(used, limit, "Memory")];
}

function counters(values, again) {
  const rows = Object.entries(values).filter(([, value]) => isAllShown || value !== 0);
  const box = make("input", { type: "checkbox", checked: isAllShown, onclick: (event) => { isAllShown = event.currentTarget.checked; again(); } });
  return [make("label", {}, box, " Those that are 0, too"),
    rows.length > 0 ? make("dl", { className: "facts counters" }, rows.map(([name, value]) =>
      [make("dt", {}, clean(name).replaceAll("_", " ")), make("dd", { className: "number" }, count(value))])) : make("p", { className: "muted" }, "All are 0.")];
}

export function show({ place, signal }) {
  const rates = new Map();
  let host;
  const draw = () => {
    const panel = (name, content) => make("section", { className: "panel inside", "aria-label": name }, make("h2", {}, name), content);
    into(place,
      make("h1", { className: "hidden-text" }, title),
      make("p", { className: "muted" }, `${clean(host.program)}, up for ${time(host.uptime_ns)}; ${count(host.sockets.connections)} connections, `
        + `${count(host.sockets.listeners)} listeners, ${count(host.sockets.udp)} UDP sockets`),
      make("div", { className: "columns" }, host.links.length > 0 ? host.links.map((link) => showLink(link, rates.get(link.link)))
        : make("p", { className: "empty" }, "No link. Add one to host.toml.")),
      make("div", { className: "columns" }, panel("Listeners", listeners(host.listeners)), panel("Memory of sockets", memory(host.memory))),
      panel("Protocol counters", counters(host.counters, draw)));
    for (const of of rates.values()) of.draw();
  };
  every(1000, signal, async () => {
    host = await request("/api/host", { signal });
    for (const link of host.links) {
      if (!rates.has(link.link)) rates.set(link.link, new Rates(signal));
      rates.get(link.link).add(link, host.uptime_ns);
    }
    draw();
  });
}
