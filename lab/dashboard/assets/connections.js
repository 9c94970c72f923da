// All connections, sorted and filtered by the server.
import { make, request } from "/assets/house.js";
import { cause, causeOf, drawBar, legend } from "/assets/causes.js";
import { spark } from "/assets/chart.js";
import { bytes, clean, count, rate, shortTime, time } from "/assets/format.js";
import { grid } from "/assets/grid.js";
import { every, live, on } from "/assets/live.js";

/** [what the server sorts by, heading, class, text of a row, the heading's long form]. */
const COLUMNS = [
  ["local", "Local", "end", (row) => clean(row.local)],
  ["remote", "Remote", "end remote", (row) => clean(row.remote)],
  ["state", "State", "state", (row) => row.state],
  ["age", "Age", "number age", (row) => shortTime(row.age_ns)],
  ["sent", "Sent", "number sent", (row) => bytes(row.sent_bytes)],
  ["received", "Received", "number received", (row) => bytes(row.received_bytes)],
  ["send_rate", "Out", "number out", (row) => rate(row.send_rate), "Rate of sending"],
  ["receive_rate", "In", "number in", (row) => rate(row.receive_rate), "Rate of receiving"],
  ["rtt", "Round trip", "number rtt", (row) => time(row.rtt_ns)],
  ["retransmitted", "Resent", "number resent", (row) => count(row.retransmitted_segments), "Retransmitted segments"],
  ["cause", "Limits now", "limit", (row) => row.limit, "What limits sending now"],
  [null, "Since it opened", "bars", null, "What sending waited for since the connection was opened"],
];
/** What is kept while another view is shown. */
const kept = { sort: "sent", order: "desc", filter: "", top: 0, id: null };

export const title = "Connections";
/** How the list is sorted and filtered, as a query. */
function choice(more = {}) {
  const query = new URLSearchParams({ sort: kept.sort, order: kept.order, ...more });
  if (kept.filter) query.set("filter", kept.filter);
  return query;
}
/** The address of the list as it was left. */
export const address = () => `#/?${choice()}`;

function sparks(signal) {
  const lines = [["Connections", count, "connections"], ["Out", rate, "sent_bytes_per_s"], ["In", rate, "received_bytes_per_s"],
    ["Retransmissions/s", (value) => value.toFixed(1), "retransmissions_per_s"], ["Memory", bytes, "memory_bytes"]];
  const made = lines.map(([label, format, name]) => [spark(label, format, signal), name]);
  const draw = () => made.forEach(([line, name]) => line.update(live.summaries.map((summary) => summary[name] ?? 0)));
  on("summary", signal, draw);
  requestAnimationFrame(draw);
  return make("section", { className: "sparks", "aria-label": "The last five minutes" }, made.map(([line]) => line.element));
}

function makeRow() {
  const cells = COLUMNS.map(([, , className]) => make("div", { role: "gridcell", className }));
  const link = make("a", { tabIndex: -1 });
  cells[1].append(link);
  const bar = make("div", { className: "causes", role: "img" });
  cells.at(-1).append(bar);
  const row = make("div", { role: "row", className: "row", tabIndex: -1 }, cells);
  return Object.assign(row, { cells, link, bar, texts: [] });
}

function drawRow(row, of) {
  if (row.of === of && of) return;
  row.classList.toggle("pending", !of);
  // The bar of another connection does not move to its place: it is there.
  row.classList.toggle("still", row.connection !== of?.id);
  row.of = of;
  row.connection = of?.id;
  row.link.href = of ? `#/connection/${encodeURIComponent(of.id)}` : "#/";
  COLUMNS.forEach(([key, , , text], at) => {
    if (!text) return;
    const value = of ? text(of) : "";
    if (row.texts[at] === value) return;
    row.texts[at] = value;
    if (key === "cause") row.cells[at].replaceChildren(of ? cause(value) : "");
    else (key === "remote" ? row.link : row.cells[at]).textContent = value;
    if (key === "remote" || key === "local" || key === "cause") row.cells[at].title = key === "cause" ? `limited by: ${causeOf(value).family}` : value;
  });
  drawBar(row.bar, of?.causes ?? [], "Causes: ");
}

const open = (row) => row?.connection && (location.hash = row.link.hash);

/** The table, and what shows it in another order or with another filter. */
function list(signal, told) {
  const headings = COLUMNS.map(([key, text, className, , long]) => make("div", { role: "columnheader", className, title: long },
    key ? make("button", { type: "button", onclick: () => sortBy(key) }, text) : text));
  const fetch = (range, until) => request(`/api/connections?${choice(range)}`, { signal: until });
  const rows = grid({ label: "Connections", headings, narrowHeight: 66, fetch, told, makeRow, drawRow, open, kept }, signal);
  function anew() {
    COLUMNS.forEach(([key], at) => headings[at].setAttribute("aria-sort",
      key !== kept.sort ? "none" : kept.order === "asc" ? "ascending" : "descending"));
    history.replaceState(null, "", address());
    rows.anew();
  }
  function sortBy(key, order) {
    const isText = ["local", "remote", "state", "cause"].includes(key);
    kept.order = order ?? (kept.sort !== key ? (isText ? "asc" : "desc") : kept.order === "asc" ? "desc" : "asc");
    kept.sort = key;
    anew();
  }
  return { ...rows, anew, sortBy };
}

function empty(answer) {
  if (answer.matched > 0) return "";
  if (answer.total > 0) return make("p", {}, "No connection fits the filter.");
  return make("div", {}, make("p", {}, make("strong", {}, "No connections.")),
    make("p", {}, "Connect to one of this host's services, or let a program of yours connect: it shows up here within a second."));
}

function filterField(anew) {
  const field = make("input", { type: "search", id: "filter", maxLength: 1000, autocomplete: "off", spellcheck: false, value: kept.filter,
    placeholder: 'Filter: state established, port 80, peer 10.0.0.0/8, cause "receiver\'s window"' });
  let waiting;
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      kept.filter = field.value.trim();
      anew();
    }, 200);
  });
  return make("form", { role: "search", className: "grow", onsubmit: (event) => event.preventDefault() },
    make("label", { className: "hidden-text", htmlFor: "filter" }, "Filter of connections"), field);
}

/** For narrow screens, which have no headings. */
function sortField(sortBy) {
  const field = make("select", { onchange: () => sortBy(field.value, kept.order) },
    COLUMNS.filter(([key]) => key).map(([key, text]) => make("option", { value: key, selected: key === kept.sort }, text)));
  return make("label", { className: "sort" }, "Sort by ", field);
}

export function show({ place, query, signal }) {
  for (const name of ["sort", "order", "filter"]) if (query.has(name)) kept[name] = query.get(name);
  const total = make("span", { className: "total" });
  const problem = make("p", { className: "problem", role: "alert", hidden: true });
  const nothing = make("div", { className: "empty", hidden: true });
  const told = (answer, error) => {
    problem.hidden = !error;
    if (error) return void (problem.textContent = clean(error.message));
    nothing.hidden = answer.matched > 0;
    nothing.replaceChildren(empty(answer));
    const text = answer.matched === answer.total ? count(answer.total) : `${count(answer.matched)} of ${count(answer.total)}`;
    total.textContent = `${text} ${answer.total === 1 ? "connection" : "connections"}`;
  };
  const table = list(signal, told);
  place.append(make("h1", { className: "hidden-text" }, "Connections"), sparks(signal),
    make("section", { className: "panel list", "aria-label": "Connections" },
      make("div", { className: "tools" }, filterField(table.anew), sortField(table.sortBy), total), problem, legend(), table.element, nothing));
  table.anew();
  every(1000, signal, table.load);
  return { key: table.key };
}
