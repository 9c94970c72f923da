// Distributions of times and sizes, on logarithmic scales.
import { make, request } from "/assets/house.js";
import { bytes, clean, count, time } from "/assets/format.js";
import { every } from "/assets/live.js";
import { show as into } from "/assets/morph.js";

const [WIDTH, HEIGHT, FOOT, HEAD] = [400, 140, 18, 16];
/** The bar of zeros. */
const ZEROS = 24;
const MARKS = { 50: "50 %", 90: "90 %", 99: "99 %", 99.9: "99.9 %" };
const formats = { ns: time, bytes };

export const title = "Histograms";

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.flat(9).filter(Boolean));
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
  const [zeros, rest] = [filled.filter(([, up]) => up <= 1), filled.filter(([, up]) => up > 1)];
  const left = zeros.length > 0 ? ZEROS : 0;
  const [from, to] = rest.length > 0 ? [rest[0][0] * 0.9, rest.at(-1)[1] * 1.1] : [1, 2];
  const x = (value) => (value === 0 ? 0 : left + ((WIDTH - left) * Math.log(Math.max(value, from) / from)) / Math.log(to / from));
  const most = Math.max(...filled.map(([, , times]) => times));
  // One is seen, too.
  const high = (times) => ((HEIGHT - FOOT - HEAD) * Math.log(1 + times)) / Math.log(1 + most);
  const box = (start, end, times) => svg("rect", { x: start, width: Math.max(1, end - start - 1), y: HEIGHT - FOOT - high(times), height: high(times) });
  const bars = [...zeros.map(([, , times]) => box(0, ZEROS - 6, times)), ...rest.map(([low, up, times]) => box(x(low), x(up), times))];
  let free = left - 1;
  const label = (at, y, text, name) => svg("text", { x: at, y, class: name, "text-anchor": at < 24 ? "start" : at > WIDTH - 24 ? "end" : "middle" }, text);
  const scale = ticks(from, to, unit).filter((value) => rest.length > 0 && x(value) > free && (free = x(value) + 56)).map((value) => [
    svg("line", { x1: x(value), x2: x(value), y1: HEAD, y2: HEIGHT - FOOT, class: "grid-line" }),
    label(x(value), HEIGHT - 4, format(value).replace(/\.0+(?= )/, ""))]);
  let shown = -99;
  const marks = percentiles.map(([share, value]) => [
    svg("line", { x1: x(value), x2: x(value), y1: HEAD, y2: HEIGHT - FOOT, class: "percentile" }),
    x(value) - shown > 36 && (shown = x(value), label(x(value), HEAD - 4, MARKS[share] ?? `${share} %`))]);
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Histogram of ${name}` }, scale, bars, marks.flat().filter(Boolean),
    zeros.length > 0 && label(0, HEIGHT - 4, "0"));
}

function showHistogram(of) {
  const format = formats[of.unit] ?? count;
  const name = clean(of.name);
  const values = [...of.percentiles.map(([share, value]) => [MARKS[share] ?? `${share} %`, value]), ["Max", of.max]];
  return make("section", { className: "panel inside histogram", "aria-label": name, "data-key": name },
    make("h2", {}, name, make("span", { className: "muted" }, `${count(of.count)} measured`)),
    make("p", { className: "muted" }, clean(of.about)),
    of.count === 0 ? make("p", { className: "muted" }, "Nothing is measured yet.") : picture(of),
    of.count > 0 && make("dl", { className: "values" }, values.map(([mark, value]) => make("div", {}, make("dt", {}, mark), make("dd", {}, format(value))))));
}

export function show({ place, signal }) {
  every(2000, signal, async () => {
    const { histograms } = await request("/api/histograms", { signal });
    into(place, make("h1", { className: "hidden-text" }, title),
      make("p", { className: "muted" }, "Both scales are logarithmic. Dashed lines are percentiles: so many of all values are not above them. Those that there are too few values for are left out."),
      histograms.length > 0 ? make("div", { className: "columns wide" }, histograms.map(showHistogram)) : make("div", { className: "empty" }, "Nothing is measured yet."));
  });
}
