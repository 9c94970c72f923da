// Charts over time, by uPlot. Colours are variables of the style sheet, so that light and dark follow the system.
import { make } from "/assets/house.js";
import { bytes } from "/assets/format.js";
import uPlot from "/assets/uplot.js";

const shown = new Set();
const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => shown.forEach((plot) => plot.redraw(false, true)));

/** The value of a colour variable. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Puts a plot into a place, as wide as it, until the signal. */
function plot(place, options, data, signal) {
  const made = new uPlot({ width: Math.max(place.clientWidth, 80), ...options }, data, place);
  const observer = new ResizeObserver(() => made.setSize({ width: Math.max(place.clientWidth, 80), height: options.height }));
  observer.observe(place);
  shown.add(made);
  signal.addEventListener("abort", () => {
    observer.disconnect();
    shown.delete(made);
    made.destroy();
  });
  return made;
}

const axis = (more) => ({ stroke: () => colour("--muted"), grid: { stroke: () => colour("--line"), width: 1 }, ticks: { show: false },
  font: "12px system-ui, sans-serif", ...more });

const POWERS = Array.from({ length: 48 }, (_, at) => 2 ** at);
const DASHES = { 7: "dashed", 2: "dotted" };
/** -12 as "12 s". */
const secondsAgo = (value) => (value === 0 ? "now" : value > -60 ? `${-value} s` : `${Number((-value / 60).toFixed(1))} min`);

/**
 * A chart of the last seconds: `lines` are { label, colour, dash, marks, stepped }, `format` makes text of a value. Charts of one `group`
 * share the cursor. `draw` draws below the lines. `scaledBy` are the numbers of the lines that are all in sight: a line that is far above them is not.
 */
export function timeChart({ title, lines, format, height = 180, group, draw, lanes, fromZero, scaledBy }, signal) {
  const place = make("div", { className: "plot", role: "img", "aria-label": `Chart: ${title}` });
  const element = make("figure", { className: "chart", "data-live": "" }, make("figcaption", {}, title), place);
  const series = lines.map((line) => ({
    label: line.label, stroke: () => colour(line.colour), width: line.marks ? 0 : 1.75, dash: line.dash, spanGaps: false,
    paths: line.marks ? () => null : line.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
    points: line.marks ? { show: true, size: 8, fill: () => colour(line.colour) } : { show: false },
    // Without a cursor the latest.
    value: (chart, value, at) => format(value ?? (chart.cursor.idx === null ? chart.data[at].at(-1) : null)),
  }));
  const y = lanes
    ? axis({ size: 78, grid: { show: false }, splits: () => lanes.map((_, at) => at + 0.5), values: () => lanes })
    : axis({ size: 78, incrs: format === bytes ? POWERS : undefined, values: (_, values) => values.map((value) => format(value).replace(/\.0+(?= )/, "")) });
  // The greatest value in sight of the lines that count.
  const top = (chart, to) => scaledBy ? Math.max(...scaledBy.map((at) => chart.data[at + 1].reduce((most, value) => Math.max(most, value ?? 0), 0))) : to;
  const options = {
    height, series: [{ label: "Ago", value: (_, value) => (value === null ? "now" : secondsAgo(Number(value.toFixed(1)))) }, ...series],
    axes: [axis({ size: 28, values: (_, values) => values.map(secondsAgo) }), y],
    scales: { x: { time: false, range: (_, from) => [from, 0] }, y: lanes ? { range: [0, lanes.length] } : fromZero ? { range: (chart, _, to) => [0, (top(chart, to) || to || 1) * 1.1] } : {} },
    cursor: { drag: { x: false, y: false }, sync: group && { key: group } }, legend: { show: !lanes, markers: { dash: (_, at) => DASHES[lines[at - 1]?.dash?.[0]] ?? "solid" } }, hooks: draw ? { drawAxes: [draw] } : {},
  };
  let made;
  const update = (data) => {
    if (!element.isConnected || signal.aborted) return;
    made ??= plot(place, options, data, signal);
    made.setData(data);
  };
  return { element, update };
}

/** A small line of the last values, with the latest as text. */
export function spark(label, format, signal, height = 34) {
  const value = make("strong", {}, "measuring…");
  const place = make("div", { className: "plot", "aria-hidden": "true" });
  const element = make("div", { className: "spark", "data-live": "" }, make("span", {}, label, " ", value), place);
  const line = { stroke: () => colour("--accent"), fill: () => colour("--soft"), width: 1.25, points: { show: false } };
  const options = { height, series: [{}, line], axes: [{ show: false }, { show: false }], legend: { show: false }, cursor: { show: false }, padding: [2, 0, 2, 0],
    scales: { x: { time: false }, y: { range: (_, from, to) => [Math.min(0, from), Math.max(to * 1.05, 1)] } } };
  let made;
  const update = (values) => {
    if (!element.isConnected || signal.aborted || values.length === 0) return;
    value.textContent = format(values.at(-1));
    const data = [values.map((_, at) => at), values];
    made ??= plot(place, options, data, signal);
    made.setData(data);
  };
  return { element, update };
}
