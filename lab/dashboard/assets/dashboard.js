// The page: which view is shown, keys, and whether the host answers.
import { keys, make, request } from "/assets/house.js";
import * as connection from "/assets/connection.js";
import * as connections from "/assets/connections.js";
import * as explain from "/assets/explain.js";
import { clean } from "/assets/format.js";
import * as histograms from "/assets/histograms.js";
import * as links from "/assets/links.js";
import { every, live, on, start } from "/assets/live.js";
import * as log from "/assets/log.js";
import * as packets from "/assets/packets.js";
import * as sessions from "/assets/sessions.js";

const at = (id) => document.getElementById(id);
const VIEWS = { "": connections, connection, links, histograms, sessions, packets, log, explain };
const NAMES = [["", "Connections"], ["links", "Host"], ["histograms", "Histograms"], ["sessions", "Sessions"], ["packets", "Packets"], ["log", "Log"], ["explain", "Explain a capture"]];
const KEYS = [
  ["↑ ↓", "move between connections; also Page up, Page down, Home, End"], ["Enter", "opens the connection; on a heading it sorts"],
  ["/", "to the filter"], ["Esc", "back"], ["1 – 7", "the views, from left to right"], ["p", "holds all that moves, and lets it go on"], ["?", "these keys"],
];
const FILTERS = [["state established", "connections of a state"], ["port 80", "a port of either end"], ["peer 10.0.0.0/8", "the remote address, or its network"],
  ["cause \"receiver's window\"", "what limits now"], ["any other words", "looked for in both ends"]];
const nobody = new AbortController().signal;
let current = { stop: new AbortController(), name: null };

function dialog(title, content) {
  at("dialog-title").textContent = title;
  at("dialog-body").replaceChildren(...[content].flat());
  if (!at("dialog").open) at("dialog").showModal();
}

function help() {
  const list = (rows, tag) => make("dl", { className: "keys" }, rows.map(([name, what]) => [make("dt", {}, make(tag, {}, name)), make("dd", {}, what)]));
  dialog("Help", [make("h3", {}, "Keys"), list(KEYS, "kbd"), make("h3", {}, "Filter of connections"), list(FILTERS, "code")]);
}

function hold() {
  live.isHeld = !live.isHeld;
  at("hold").setAttribute("aria-pressed", live.isHeld);
  document.body.classList.toggle("held", live.isHeld);
  state();
}

/** Says whether what is shown is fresh. */
function state() {
  const [className, text] = live.isHeld ? ["badge warn", "held"] : live.isConnected ? ["badge good", "live"] : ["badge bad", "not connected"];
  at("live").className = className;
  at("live").lastElementChild.textContent = text;
  at("away").hidden = live.isConnected !== false;
  at("away").textContent = live.isConnected !== false ? ""
    : `The host has not answered since ${new Date(live.heard).toLocaleTimeString("en-GB")}. The figures are the last that it gave; the page goes on by itself when the host is back.`;
}

/** Shows the view that the address names. */
function follow() {
  const [path, query] = location.hash.slice(1).split("?");
  const [name = "", id = ""] = path.split("/").slice(1);
  const view = VIEWS[name] ?? connections;
  current.stop.abort();
  const isFirst = current.name === null;
  current = { stop: new AbortController(), name };
  const place = at("main");
  place.replaceChildren();
  place.dataset.view = name || "connections";
  place.scrollTop = 0;
  document.title = `${view.title}: ${at("host").textContent}`;
  for (const link of at("views").children) {
    const isHere = link.dataset.name === (name === "connection" ? "" : name);
    if (!isHere) link.removeAttribute("aria-current");
    else {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "center" });
    }
  }
  if (!isFirst) place.focus({ preventScroll: true });
  let unescaped = id;
  try { unescaped = decodeURIComponent(id); } catch { /* it is shown as not found */ }
  Object.assign(current, view.show({ place, id: unescaped, query: new URLSearchParams(query), signal: current.stop.signal, dialog }));
}

function back() {
  if (at("dialog").open) return false;
  const { activeElement } = document;
  if (activeElement.matches("input, select")) activeElement.blur();
  else if (current.name) location.hash = connections.address();
  return true;
}

const go = (name) => () => { location.hash = name ? `#/${name}` : connections.address(); };
const move = (event) => !at("dialog").open && (current.key?.(event) ?? false);
at("views").append(...NAMES.map(([name, text]) => make("a", { href: `#/${name}`, "data-name": name }, text)));
at("hold").addEventListener("click", hold);
at("help").addEventListener("click", help);
at("dialog-close").addEventListener("click", () => at("dialog").close());
at("skip").addEventListener("click", (event) => {
  event.preventDefault();
  at("main").focus();
});
keys({
  ...Object.fromEntries(["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End", "Enter"].map((name) => [name, move])),
  ...Object.fromEntries(NAMES.map(([name], index) => [String(index + 1), go(name)])),
  "/": () => at("filter")?.focus() ?? true,
  "?": help,
  p: hold,
  Escape: back,
});
window.addEventListener("hashchange", follow);
on("state", nobody, state);
explain.takeDrops(at("drop"));
start();
follow();
every(30000, nobody, async () => {
  at("host").textContent = clean((await request("/api/host")).name, 60);
  document.title = `${VIEWS[current.name]?.title ?? "inhost"}: ${at("host").textContent}`;
});
