// All connections: a table of which only the rows on the screen exist. The server sorts and filters.
import { make, request } from "/assets/house.js";
import { cause, causeOf, drawBar, legend } from "/assets/causes.js";
import { spark } from "/assets/chart.js";
import { bytes, clean, count, rate, shortTime, time } from "/assets/format.js";
import { every, live, on } from "/assets/live.js";

/** Rows beyond the edges of the screen that exist, too. */
const BEYOND = 12;
const PAGE = 100;
const narrow = matchMedia("(max-width: 720px)");
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
/** The address of the list as it was left. */
export function address() {
  const query = new URLSearchParams({ sort: kept.sort, order: kept.order });
  if (kept.filter) query.set("filter", kept.filter);
  return `#/?${query}`;
}

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

/** The table. `query` says how it is sorted and filtered; `told` gets each answer. */
function grid(signal, told) {
  const rows = new Map(), elements = new Map();
  const known = { matched: 0, isFirst: true };
  const body = make("div", { role: "rowgroup", className: "rows" });
  const headings = COLUMNS.map(([key, text, className, , long]) => make("div", { role: "columnheader", className, title: long },
    key ? make("button", { type: "button", onclick: () => sortBy(key) }, text) : text));
  const element = make("div", { className: "grid", role: "grid", "aria-label": "Connections", "aria-colcount": COLUMNS.length },
    make("div", { role: "rowgroup", className: "heads" }, make("div", { role: "row", "aria-rowindex": 1 }, headings)), body);
  const height = () => (narrow.matches ? 66 : 27);
  // What is read of the layout is kept, since to read it after a change costs a layout.
  const seen = { top: 0, height: 0 };
  const look = () => Object.assign(seen, { top: element.scrollTop, height: element.clientHeight });
  const inView = () => Math.ceil(seen.height / height());
  let active = 0, busy = false, again = false, stop = new AbortController();

  const range = () => {
    const first = Math.floor(seen.top / height());
    return [Math.max(0, first - BEYOND), Math.min(known.matched, first + inView() + BEYOND, first - BEYOND + PAGE)];
  };
  const rowAt = (index, other) => [...elements.values()].find((row) => row.index === index && row !== other);
  /** Gives each row of the screen an element: the one that it had, that of its place, or one that is free. */
  function render() {
    const [from, to] = range();
    const wanted = new Map();
    for (let index = from; index < to; index += 1) {
      const id = rows.get(index)?.id;
      wanted.set(id !== undefined && !wanted.has(id) ? id : `#${index}`, index);
    }
    const free = [];
    let orphan;
    for (const [key, row] of elements) {
      if (wanted.has(key)) continue;
      if (row === document.activeElement) orphan = row;
      else free.push(key);
    }
    for (const [key, index] of wanted) {
      const place = elements.has(key) ? key : elements.has(`#${index}`) ? `#${index}` : free.pop();
      const row = elements.get(place) ?? body.appendChild(makeRow());
      elements.delete(place);
      elements.set(key, row);
      put(row, index, key.startsWith("#") ? undefined : rows.get(index));
    }
    for (const [key, row] of elements) {
      if (wanted.has(key)) continue;
      // A row that has the focus stays while it is off the screen; if it is gone from the list, its place has the focus.
      if (row === orphan && (row.index < from || row.index >= to)) continue;
      if (row === orphan) rowAt(row.index, row)?.focus({ preventScroll: true });
      elements.delete(key);
      row.remove();
    }
    body.style.height = `${known.matched * height()}px`;
  }
  function put(row, index, of) {
    if (row.index !== index || row.high !== height()) {
      Object.assign(row, { index, high: height() });
      row.style.transform = `translateY(${index * height()}px)`;
      row.setAttribute("aria-rowindex", index + 2);
      row.classList.toggle("odd", index % 2 === 1);
    }
    if (row === document.activeElement) active = index;
    row.tabIndex = index === active ? 0 : -1;
    drawRow(row, of);
  }
  /** Brings the elements into the order of the rows, for readers of the document. The focus stays. */
  function arrange() {
    const focused = body.contains(document.activeElement) ? document.activeElement : null;
    const inOrder = [...elements.values()].sort((a, b) => a.index - b.index);
    inOrder.forEach((row, at) => body.children[at] !== row && body.insertBefore(row, body.children[at]));
    if (focused && document.activeElement !== focused) focused.focus({ preventScroll: true });
  }
  /** Fetches what is on the screen: one request at a time. */
  async function load() {
    if (busy) return void (again = true);
    busy = true;
    try {
      do {
        again = false;
        await fetchRange();
      } while (again && !signal.aborted);
    } finally {
      busy = false;
    }
  }
  async function fetchRange() {
    const from = known.isFirst ? Math.max(0, Math.floor(kept.top / height()) - BEYOND) : range()[0];
    const query = new URLSearchParams({ sort: kept.sort, order: kept.order, offset: from, limit: PAGE });
    if (kept.filter) query.set("filter", kept.filter);
    if (known.isRefused) return;
    const mine = stop.signal;
    const answer = await request(`/api/connections?${query}`, { signal: AbortSignal.any([signal, mine]) }).catch((error) => mine.aborted || refuse(error));
    if (mine.aborted || !answer) return;
    known.matched = answer.matched;
    for (const index of [...rows.keys()]) if (known.isOld || index >= answer.matched) rows.delete(index);
    known.isOld = false;
    answer.rows.forEach((row, at) => rows.set(from + at, row));
    element.setAttribute("aria-rowcount", answer.matched + 1);
    render();
    if (known.isFirst) element.scrollTop = kept.top;
    known.isFirst = false;
    look();
    render();
    arrange();
    told(answer);
  }
  function refuse(error) {
    if (error.status !== 400) throw error;
    // The same question would be refused each second.
    known.isRefused = true;
    told(null, error);
  }
  const isMissing = () => {
    const [from, to] = range();
    for (let index = from; index < to; index += 1) if (!rows.has(index)) return true;
    return false;
  };
  /** Shows another order or choice from its beginning. */
  function anew() {
    stop.abort();
    stop = new AbortController();
    // The old rows are shown until the answer is here.
    known.isOld = true;
    active = 0;
    element.scrollTop = known.isFirst ? kept.top : 0;
    known.isRefused = false;
    look();
    COLUMNS.forEach(([key], at) => headings[at].setAttribute("aria-sort",
      key !== kept.sort ? "none" : kept.order === "asc" ? "ascending" : "descending"));
    history.replaceState(null, "", address());
    load().catch(() => {});
  }
  function sortBy(key, order) {
    const isText = ["local", "remote", "state", "cause"].includes(key);
    kept.order = order ?? (kept.sort !== key ? (isText ? "asc" : "desc") : kept.order === "asc" ? "desc" : "asc");
    kept.sort = key;
    anew();
  }
  function focusRow(index) {
    const to = Math.min(Math.max(index, 0), known.matched - 1);
    const top = to * height(), room = element.clientHeight - body.offsetTop - height();
    element.scrollTop = Math.min(Math.max(element.scrollTop, top - room), top);
    look();
    render();
    rowAt(to)?.focus({ preventScroll: true });
    if (isMissing()) load().catch(() => {});
  }
  const open = (row) => row?.connection && (location.hash = row.link.hash);

  let isDrawing = false;
  element.addEventListener("scroll", () => {
    if (isDrawing) return;
    isDrawing = true;
    requestAnimationFrame(() => {
      isDrawing = false;
      kept.top = look().top;
      render();
      if (isMissing()) load().catch(() => {});
    });
  }, { passive: true });
  body.addEventListener("click", (event) => !event.target.closest("a") && !String(getSelection()) && open(event.target.closest(".row")));
  body.addEventListener("focusin", (event) => { active = event.target.closest(".row").index; });
  const observer = new ResizeObserver(() => {
    look();
    render();
  });
  observer.observe(element);
  signal.addEventListener("abort", () => observer.disconnect());
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: () => inView() - 2, PageUp: () => 2 - inView(), Home: -Infinity, End: Infinity };
  const key = (event) => {
    const isOnControl = event.target.closest("button, a, select");
    if (event.key === "Enter" && !isOnControl) return open(rowAt(active)), true;
    const step = steps[event.key];
    if (step === undefined || known.matched === 0 || event.target.closest("select, dialog")) return false;
    const isInside = body.contains(document.activeElement);
    focusRow(isInside ? active + (typeof step === "function" ? step() : step) : step === Infinity ? Infinity : active);
    return true;
  };
  return { element, load, anew, sortBy, key };
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
  const table = grid(signal, told);
  place.append(make("h1", { className: "hidden-text" }, "Connections"), sparks(signal),
    make("section", { className: "panel list", "aria-label": "Connections" },
      make("div", { className: "tools" }, filterField(table.anew), sortField(table.sortBy), total), problem, legend(), table.element, nothing));
  table.anew();
  every(1000, signal, table.load);
  return { key: table.key };
}
