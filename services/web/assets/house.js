// What all pages share: requests, events, elements, tables, times. Text of strangers only ever becomes text.

/** An error of the server: the problem details of its answer. */
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** Asks the server; gives what its JSON says. `body` is sent as JSON. */
export async function request(path, { method = "GET", body, signal } = {}) {
  const options = { method, signal, headers: { accept: "application/json" } };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["content-type"] = "application/json";
  }
  const response = await fetch(path, options);
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  const value = isJson ? await response.json() : await response.text();
  if (!response.ok) throw new Problem(response.status, value?.detail ?? response.statusText);
  return value;
}

/**
 * Listens to events: `handlers` has a function for each name, which gets the event's value. `missed` is called when
 * events may have been lost: what is shown is to be fetched anew. `state` gets true while connected.
 */
export function listen(path, handlers, state = () => {}) {
  const source = new EventSource(path);
  let isFirst = true;
  source.onopen = () => {
    state(true);
    if (!isFirst) handlers.missed?.();
    isFirst = false;
  };
  source.onerror = () => state(false);
  for (const [name, handle] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  }
  return source;
}

/** Makes an element: properties, `on...` functions, `aria-...` and other attributes, and children. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name in element && !name.includes("-")) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat(9).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

/** A table: `columns` are headings, or [heading, class]; `rows` are rows of cells, each a text or an element. */
export function table(columns, rows) {
  const of = (column) => (Array.isArray(column) ? column : [column, ""]);
  const cell = (content, index) => make("td", { className: of(columns[index])[1] }, content ?? "");
  const head = columns.map((column) => make("th", { scope: "col", className: of(column)[1] }, of(column)[0]));
  return make("div", { className: "scroll" }, make("table", {},
    make("thead", {}, make("tr", {}, head)),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map(cell))))));
}

const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];

function relative(date) {
  const seconds = Math.round((date - Date.now()) / 1000);
  const unit = UNITS.find(([, length]) => -seconds >= length);
  return unit ? RELATIVE.format(Math.trunc(seconds / unit[1]), unit[0]) : "now";
}

/** A time as "5 min. ago", which goes on; the whole time is its title. */
export function ago(time) {
  const date = new Date(time);
  return make("time", { dateTime: date.toISOString(), title: date.toLocaleString(), "data-ago": "" }, relative(date));
}
setInterval(() => {
  for (const element of document.querySelectorAll("time[data-ago]")) element.textContent = relative(new Date(element.dateTime));
}, 20000);

/** A size such as "1.2 KB", in units of 1024. */
export function size(bytes) {
  const units = ["B", "KB", "MB", "GB"];
  let index = 0;
  while (bytes >= 1024 && index < units.length - 1) (bytes /= 1024), (index += 1);
  return `${index === 0 ? bytes : bytes.toFixed(1)} ${units[index]}`;
}

/** Shows a word for some seconds; an error is shown as one. */
export function notice(what) {
  document.querySelector(".notice")?.remove();
  const isError = what instanceof Error;
  const element = make("div", { className: isError ? "notice bad" : "notice", role: isError ? "alert" : "status" }, isError ? what.message : what);
  (document.querySelector("dialog[open]") ?? document.body).append(element);
  setTimeout(() => element.remove(), isError ? 8000 : 3000);
}

/** Does something, and shows the error if it fails. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (error.name !== "AbortError") notice(error);
    return undefined;
  }
}

/** Keys of the page: a function for each. They are left alone in fields and with Ctrl, Alt and Meta. */
export function keys(handlers) {
  document.addEventListener("keydown", (event) => {
    const isField = event.target.closest?.("input, textarea, select, [contenteditable]");
    const handle = handlers[event.key];
    if (!handle || event.ctrlKey || event.altKey || event.metaKey || (isField && event.key !== "Escape")) return;
    if (handle(event) !== false) event.preventDefault();
  });
}

/** Tabs: `tabs` are [name, label, function that fills a panel]. Gives the element; arrow keys move between them. */
export function tabs(label, list, chosen, remember = () => {}) {
  const panel = make("div", { role: "tabpanel", className: "tab-panel", id: "tab-panel", tabIndex: 0 });
  const buttons = list.map(([name, text]) =>
    make("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "tab-panel", onclick: () => choose(name) }, text));
  const choose = (name, isFocused) => {
    const index = Math.max(0, list.findIndex(([known]) => known === name));
    buttons.forEach((button, at) => {
      button.setAttribute("aria-selected", at === index);
      button.tabIndex = at === index ? 0 : -1;
    });
    if (isFocused) buttons[index].focus();
    panel.setAttribute("aria-labelledby", buttons[index].id);
    panel.dataset.tab = list[index][0];
    panel.replaceChildren();
    remember(list[index][0]);
    attempt(() => list[index][2](panel));
  };
  const row = make("div", { role: "tablist", className: "tabs", "aria-label": label }, buttons);
  row.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = buttons.indexOf(document.activeElement);
    choose(list[(at + step + list.length) % list.length][0], true);
  });
  choose(chosen);
  return [row, panel];
}
