// A table of which only the rows on the screen exist. Who has it fetches and draws the rows.
import { make } from "/assets/house.js";

/** Rows beyond the edges of the screen that exist, too. */
const BEYOND = 12;
const PAGE = 100;
const WIDE_HEIGHT = 27;
const narrow = matchMedia("(max-width: 720px)");

/**
 * The table, until the signal. `headings` are its elements; a row is `narrowHeight` high where the screen is narrow.
 * `fetch(query, signal)` gives `{ matched, rows }` from `query.offset` on, each row with an `id`; `told` gets each answer, or null and
 * why it was refused. `makeRow()` makes an element, `drawRow(element, row)` draws a row into it, or none while there is none.
 * `open(element)` opens a row. `kept.top` is where it was scrolled to.
 */
export function grid({ label, className = "", headings, narrowHeight, fetch, told, makeRow, drawRow, open = () => {}, kept }, signal) {
  const rows = new Map(), elements = new Map();
  const known = { matched: 0, isFirst: true };
  const body = make("div", { role: "rowgroup", className: "rows" });
  const element = make("div", { className: `grid ${className}`, role: "grid", "aria-label": label, "aria-colcount": headings.length },
    make("div", { role: "rowgroup", className: "heads" }, make("div", { role: "row", "aria-rowindex": 1 }, headings)), body);
  const height = () => (narrow.matches ? narrowHeight : WIDE_HEIGHT);
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
    if (known.isRefused) return;
    const mine = stop.signal;
    const answer = await fetch({ offset: from, limit: PAGE }, AbortSignal.any([signal, mine])).catch((error) => mine.aborted || refuse(error));
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
    load().catch(() => {});
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
  return { element, load, anew, key };
}
