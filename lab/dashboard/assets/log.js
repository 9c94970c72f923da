// The latest lines of the log.
import { make, request } from "/assets/house.js";
import { clean, clock } from "/assets/format.js";
import { every } from "/assets/live.js";
import { tail } from "/assets/tail.js";

const LEVELS = ["error", "warn", "info", "debug", "trace"];
const BADGES = { error: "badge bad", warn: "badge warn" };
let least = "info";

export const title = "Log";

const line = (of) => make("li", { className: `log ${of.level}` },
  make("span", { className: "muted" }, clock(of.at_unix_ms)), make("span", { className: BADGES[of.level] ?? "badge plain" }, clean(of.level)),
  make("span", { className: "muted" }, clean(of.target)), make("span", { className: "what" }, clean(of.text, 1000)));

export function show({ place, signal }) {
  const list = tail("Lines of the log, the newest last");
  const nothing = make("p", { className: "empty" }, "No line yet. What the host logs is shown here as it happens.");
  const choose = (level) => {
    least = level;
    // A class for each level that is left out.
    LEVELS.forEach((name, at) => list.lines.classList.toggle(`no-${name}`, at > LEVELS.indexOf(least)));
    list.lines.scrollTop = list.isFollowing() ? list.lines.scrollHeight : list.lines.scrollTop;
  };
  const field = make("select", { onchange: () => choose(field.value) }, LEVELS.map((name) => make("option", { value: name, selected: name === least }, name)));
  place.append(make("h1", { className: "hidden-text" }, title), make("section", { className: "panel list", "aria-label": title },
    make("div", { className: "tools" }, make("label", {}, "From level ", field), list.toggle), list.lines, nothing));
  choose(least);
  let next = 0;
  every(1000, signal, async () => {
    if (!list.isFollowing()) return;
    const answer = await request(`/api/log?after=${next}`, { signal });
    next = answer.next;
    list.add(answer.lines.map(line));
    nothing.hidden = list.lines.childElementCount > 0;
  });
}
