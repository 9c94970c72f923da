// Distributions of times and sizes, on logarithmic scales.
import { make, request } from "/assets/house.js";
import { bytes, clean, count, time } from "/assets/format.js";
import { every } from "/assets/live.js";
import { show as into } from "/assets/morph.js";

const [WIDTH, HEIGHT, FOOT] = [400, 130, 18];
const MARKS = { 50: "50 %", 90: "90 %", 99: "99 %", 99.9: "99.9 %" };
const formats = { ns: time, bytes };

export const title = "Histograms";

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.flat(9));
  return element;
}

/** Powers of ten (of two for bytes) between two values. */
function ticks(from, to, unit) {
  const base = unit === "bytes" ? 2 : 10;
  const [first, last] = [from, to].map((value) => Math.log(value) / Math.log(base));
  return Array.from({ length: Math.floor(last) - Math.ceil(first) + 1 }, (_, at) => base ** (Math.ceil(first) + at));
}

function picture({ name, unit, buckets, percentiles }) {
  const format = formats[unit] ?? count;
  const filled = buckets.filter(([, , times]) => times > 0);
  const [from, to] = [Math.max(1, filled[0][0]) * 0.9, filled.at(-1)[1] * 1.1];
  const x = (value) => (WIDTH * Math.log(Math.max(value, from) / from)) / Math.log(to / from);
  const most = Math.max(...filled.map(([, , times]) => times));
  // One is seen, too.
  const high = (times) => ((HEIGHT - FOOT - 12) * Math.log(1 + times)) / Math.log(1 + most);
  const bars = filled.map(([low, up, times]) => svg("rect", { x: x(low), width: Math.max(1, x(up) - x(low) - 1), y: HEIGHT - FOOT - high(times), height: high(times) }));
  let free = -99;
  const scale = ticks(from, to, unit).filter((value) => x(value) - free > 56 && (free = x(value), true)).map((value) => [
    svg("line", { x1: x(value), x2: x(value), y1: 0, y2: HEIGHT - FOOT, class: "grid-line" }),
    svg("text", { x: x(value), y: HEIGHT - 4, "text-anchor": x(value) < 24 ? "start" : x(value) > WIDTH - 24 ? "end" : "middle" }, format(value).replace(/\.0+(?= )/, ""))]);
  const marks = percentiles.map(([, value]) => svg("line", { x1: x(value), x2: x(value), y1: 8, y2: HEIGHT - FOOT, class: "percentile" }));
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Histogram of ${name}` }, scale, bars, marks);
}

function showHistogram(of) {
  const format = formats[of.unit] ?? count;
  const name = clean(of.name);
  const values = [...of.percentiles.map(([share, value]) => [MARKS[share] ?? `${share} %`, value]), ["Max", of.max]];
  return make("section", { className: "panel inside histogram", "aria-label": name, "data-key": name },
    make("h2", {}, name, make("span", { className: "muted" }, `${count(of.count)} measured`)),
    of.count === 0 ? make("p", { className: "muted" }, "Nothing is measured yet.") : picture(of),
    of.count > 0 && make("dl", { className: "values" }, values.map(([mark, value]) => make("div", {}, make("dt", {}, mark), make("dd", {}, format(value))))));
}

export function show({ place, signal }) {
  every(2000, signal, async () => {
    const { histograms } = await request("/api/histograms", { signal });
    into(place, make("h1", { className: "hidden-text" }, title),
      make("p", { className: "muted" }, "Both scales are logarithmic. Dashed lines are percentiles: so many of all are not above them."),
      histograms.length > 0 ? make("div", { className: "columns wide" }, histograms.map(showHistogram)) : make("div", { className: "empty" }, "Nothing is measured yet."));
  });
}
