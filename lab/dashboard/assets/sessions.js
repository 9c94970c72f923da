// Sessions of services: who is logged in, or served.
import { make, request } from "/assets/house.js";
import { clean, count, time } from "/assets/format.js";
import { grid } from "/assets/grid.js";
import { every } from "/assets/live.js";

/** [heading, class, text of a row]. */
const COLUMNS = [
  ["Service", "service", (row) => clean(row.service)],
  ["Peer", "peer", (row) => clean(row.peer)],
  ["User", "user", (row) => clean(row.user ?? "–")],
  ["Since", "number since", (row) => time(row.age_ns)],
];
const kept = { top: 0 };

export const title = "Sessions";

const makeRow = () => make("div", { role: "row", className: "row", tabIndex: -1 }, COLUMNS.map(([, className]) => make("div", { role: "gridcell", className })));

function drawRow(row, of) {
  row.classList.toggle("pending", !of);
  COLUMNS.forEach(([, , text], at) => {
    const value = of ? text(of) : "";
    if (row.children[at].textContent !== value) row.children[at].textContent = row.children[at].title = value;
  });
}

/** Sessions are known by their places: they have no names of their own. */
async function fetch(range, signal) {
  const { total, rows } = await request(`/api/sessions?${new URLSearchParams(range)}`, { signal });
  return { matched: total, rows: rows.map((row, at) => ({ ...row, id: String(range.offset + at) })) };
}

export function show({ place, signal }) {
  const total = make("span", { className: "total" });
  const nothing = make("div", { className: "empty", hidden: true }, make("p", {}, make("strong", {}, "No session.")),
    make("p", {}, "Log in to a service of this host, for example with telnet: the session is shown here."));
  const told = ({ matched }) => {
    total.textContent = `${count(matched)} ${matched === 1 ? "session" : "sessions"}`;
    nothing.hidden = matched > 0;
  };
  const headings = COLUMNS.map(([text, className]) => make("div", { role: "columnheader", className }, text));
  const table = grid({ label: title, className: "sessions", headings, narrowHeight: 48, fetch, told, makeRow, drawRow, kept }, signal);
  place.append(make("h1", { className: "hidden-text" }, title), make("section", { className: "panel list", "aria-label": title },
    make("div", { className: "tools" }, total), table.element, nothing));
  every(1000, signal, table.load);
  return { key: table.key };
}
