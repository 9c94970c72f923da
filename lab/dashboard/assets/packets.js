// Packets as they pass, in words.
import { attempt, make, request } from "/assets/house.js";
import { clean, clock, count } from "/assets/format.js";
import { every } from "/assets/live.js";
import { tail } from "/assets/tail.js";

const LIMIT = 200;
let filter = "";

export const title = "Packets";
/** The address of the list with its filter. */
const address = () => (filter ? `#/packets?${new URLSearchParams({ filter })}` : "#/packets");

async function open(number, dialog) {
  dialog(`Packet ${count(number)}`, "");
  await attempt(async () => {
    const packet = await request(`/api/packets/${number}`);
    dialog(`Packet ${count(number)}`, [make("ul", { className: "decode" }, packet.lines.map((line) => make("li", {}, clean(line, 2000)))),
      make("pre", { className: "hex" }, inRows(packet.hex))]);
  });
}

/** Octets in rows of sixteen, with what can be printed of them. */
function inRows(hex) {
  const octets = hex.trim().split(/\s+/);
  const rows = Array.from({ length: Math.ceil(octets.length / 16) }, (_, at) => octets.slice(at * 16, at * 16 + 16));
  const printed = (octet) => (/^[2-6].|^7[0-9a-e]/i.test(octet) ? String.fromCharCode(parseInt(octet, 16)) : ".");
  return rows.map((row, at) => `${(at * 16).toString(16).padStart(4, "0")}  ${row.join(" ").padEnd(47)}  ${row.map(printed).join("")}`).join("\n");
}

function line(packet, dialog) {
  const ms = Number(BigInt(packet.at_unix_ns) / 1000n) / 1000;
  return make("li", {}, make("button", { type: "button", className: "line", onclick: () => open(packet.number, dialog) },
    make("span", { className: "muted" }, clock(ms)), make("span", { className: packet.sent ? "sent" : "received" }, packet.sent ? "→ out" : "← in"),
    make("span", { className: "muted" }, clean(packet.link)), make("span", { className: "what" }, clean(packet.text))));
}

export function show({ place, query, signal, dialog }) {
  filter = query.get("filter") ?? filter;
  history.replaceState(null, "", address());
  const list = tail("Packets, the newest last");
  const problem = make("p", { className: "problem", role: "alert", hidden: true });
  const lost = make("span", { className: "muted" });
  const nothing = make("p", { className: "empty" }, "No packet yet. Packets show up as they pass; loosen the filter if they do not.");
  const field = make("input", { type: "search", id: "filter", autocomplete: "off", spellcheck: false, maxLength: 1000, value: filter,
    placeholder: "Filter in tcpdump's words: tcp port 80 and not net 10.9.0.0/16" });
  let next, missed = 0, epoch = 0;
  const load = async () => {
    if (!list.isFollowing()) return;
    const query = new URLSearchParams({ limit: LIMIT });
    if (next !== undefined) query.set("after", next);
    if (filter) query.set("filter", filter);
    const mine = epoch;
    try {
      const answer = await request(`/api/packets?${query}`, { signal });
      if (mine !== epoch) return;
      missed += next === undefined ? 0 : answer.lost;
      next = answer.next;
      problem.hidden = true;
      lost.textContent = missed > 0 ? `${count(missed)} passed unseen` : "";
      list.add(answer.packets.map((packet) => line(packet, dialog)));
      nothing.hidden = list.lines.childElementCount > 0;
    } catch (error) {
      if (error.status !== 400) throw error;
      problem.textContent = clean(error.message);
      problem.hidden = false;
    }
  };
  let waiting;
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      filter = field.value.trim();
      history.replaceState(null, "", address());
      [next, missed, epoch] = [undefined, 0, epoch + 1];
      list.clear();
      attempt(load);
    }, 300);
  });
  place.append(make("h1", { className: "hidden-text" }, title), make("section", { className: "panel list", "aria-label": title },
    make("div", { className: "tools" }, make("form", { role: "search", className: "grow", onsubmit: (event) => event.preventDefault() },
      make("label", { className: "hidden-text", htmlFor: "filter" }, "Filter of packets"), field), list.toggle, lost), problem, list.lines, nothing));
  every(500, signal, load);
}
