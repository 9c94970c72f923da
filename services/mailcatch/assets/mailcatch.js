// The mail catcher's page: the list of messages, live; the message that is open is in view.js.
import { ago, attempt, keys, listen, make, notice, request, size } from "/assets/house.js";
import { showMessage, showNothing } from "/assets/view.js";
import { countRules, openHelp, openRules, openSessions, refreshDialog } from "/assets/rules.js";

const at = (id) => document.getElementById(id);
const API = "/api/v1";
const PAGE = 50;
/** What is shown: messages, the newest first; `next` is where older ones begin. */
const shown = { messages: [], next: null, query: "", open: null, fetch: 0 };

function person(list, fallback) {
  const first = list?.[0];
  return first?.name || first?.address || fallback || "(nobody)";
}

function item(message, isNew) {
  const to = message.envelope.to;
  const marks = [
    message.attachments > 0 && make("span", { className: "badge plain", title: "attachments" }, `${message.attachments} att.`),
    message.envelope.rules.length > 0 && make("span", { className: "badge warn", title: "rules that fired in the session" }, "rule"),
  ];
  const link = make("a", { href: `#${message.id}`, "aria-current": message.id === shown.open ? "true" : null },
    make("span", { className: "from" },
      `${person(message.from, message.envelope.from)} → ${person(message.to, to[0])}${to.length > 1 ? ` +${to.length - 1}` : ""}`,
      message.unread && make("span", { className: "hidden-text" }, " (unread)")),
    ago(message.received),
    make("span", { className: "subject" }, message.subject || "(no subject)"),
    make("span", { className: "snippet" }, message.snippet || size(message.size)),
    make("span", { className: "marks" }, marks));
  return make("li", { id: `m-${message.id}`, className: `${message.unread ? "unread" : ""}${isNew ? " new" : ""}` }, link);
}

function counts(total, unread) {
  at("total").textContent = total;
  at("total-label").textContent = total === 1 ? "message" : "messages";
  at("unread").textContent = unread;
  at("delete-all").textContent = shown.query ? "Delete found" : "Delete all";
  at("delete-all").disabled = shown.messages.length === 0;
  document.title = unread > 0 ? `(${unread}) Mail catcher` : "Mail catcher";
  const nothing = at("nothing");
  nothing.hidden = shown.messages.length > 0;
  nothing.replaceChildren(shown.query
    ? make("p", {}, "No message is found.")
    : make("div", {}, make("p", {}, make("strong", {}, "No messages yet.")),
        make("p", {}, "Send one to the SMTP port that the program printed: it shows up here at once.")));
}

/** Fetches the list anew. */
async function refresh() {
  const number = (shown.fetch += 1);
  const parameters = new URLSearchParams({ limit: PAGE, query: shown.query });
  try {
    const list = await request(`${API}/messages?${parameters}`);
    // A later search may have been answered first.
    if (number !== shown.fetch) return;
    at("search-problem").hidden = true;
    [shown.messages, shown.next] = [list.messages, list.next];
    at("list").replaceChildren(...list.messages.map((message) => item(message, false)));
    at("more").hidden = !list.next;
    counts(list.total, list.unread);
  } catch (error) {
    at("search-problem").textContent = error.message;
    at("search-problem").hidden = false;
  }
}

async function older() {
  const parameters = new URLSearchParams({ limit: PAGE, query: shown.query, before: shown.next });
  const list = await request(`${API}/messages?${parameters}`);
  shown.messages.push(...list.messages);
  shown.next = list.next;
  at("list").append(...list.messages.map((message) => item(message, false)));
  at("more").hidden = !list.next;
}

async function totals() {
  const info = await request(`${API}/info`);
  counts(info.messages, info.unread);
}

let waiting = null;
/** Fetches a little later, once for all that happens until then. */
function soon(work) {
  clearTimeout(waiting);
  waiting = setTimeout(() => attempt(work), 150);
}

function arrived(message) {
  if (shown.query) return soon(refresh);
  if (shown.messages.some((known) => known.id === message.id)) return;
  shown.messages.unshift(message);
  at("list").prepend(item(message, true));
  at("nothing").hidden = true;
  soon(totals);
}

function removed(ids) {
  const gone = new Set(ids);
  shown.messages = shown.messages.filter((message) => !gone.has(message.id));
  for (const id of ids) at(`m-${id}`)?.remove();
  if (gone.has(shown.open)) location.hash = "";
  soon(totals);
}

function markRead(id) {
  at(`m-${id}`)?.classList.remove("unread");
  at(`m-${id}`)?.querySelector(".hidden-text")?.remove();
  const known = shown.messages.find((message) => message.id === id);
  if (known) known.unread = false;
}

/** Opens the message that the address names, or none. */
async function follow() {
  const id = location.hash.slice(1);
  shown.open = /^[0-9a-f]+$/.test(id) ? id : null;
  document.body.classList.toggle("reading", shown.open !== null);
  for (const link of at("list").querySelectorAll("a")) {
    if (link.hash === `#${shown.open}`) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  if (!shown.open) return showNothing();
  at(`m-${id}`)?.scrollIntoView({ block: "nearest" });
  const isUnread = shown.messages.find((message) => message.id === id)?.unread ?? true;
  try {
    const message = await request(`${API}/messages/${id}`);
    if (shown.open !== id) return;
    showMessage(message, { remove: () => removeOne(id) });
    if (isUnread) {
      await request(`${API}/messages/${id}/read`, { method: "POST" });
      markRead(id);
      soon(totals);
    }
  } catch (error) {
    notice(error);
    if (error.status === 404) location.hash = "";
  }
}

/** Moves by `step` in the list. */
function move(step) {
  const links = [...at("list").querySelectorAll("a")];
  if (links.length === 0) return;
  const current = links.findIndex((link) => link.hash === `#${shown.open}`);
  const next = current < 0 ? 0 : Math.min(Math.max(current + step, 0), links.length - 1);
  location.hash = links[next].hash;
  links[next].focus({ preventScroll: false });
}

async function removeOne(id) {
  const place = shown.messages.findIndex((message) => message.id === id);
  const next = shown.messages[place + 1] ?? shown.messages[place - 1];
  await attempt(async () => {
    await request(`${API}/messages/${id}`, { method: "DELETE" });
    location.hash = next ? next.id : "";
  });
}

async function removeAll() {
  const what = shown.query ? "all messages that the search finds" : "all messages";
  if (!confirm(`Delete ${what}?`)) return;
  await attempt(async () => {
    const { removed: count } = await request(`${API}/messages?${new URLSearchParams({ query: shown.query })}`, { method: "DELETE" });
    notice(count === 1 ? "1 message deleted" : `${count} messages deleted`);
    await refresh();
  });
}

function live(isConnected) {
  at("live").className = isConnected ? "badge good" : "badge bad";
  at("live").lastElementChild.textContent = isConnected ? "live" : "not connected";
}

at("search").addEventListener("submit", (event) => event.preventDefault());
at("query").addEventListener("input", () => {
  shown.query = at("query").value.trim();
  soon(refresh);
});
at("more").addEventListener("click", () => attempt(older));
at("delete-all").addEventListener("click", removeAll);
at("open-rules").addEventListener("click", openRules);
at("open-sessions").addEventListener("click", openSessions);
at("dialog-close").addEventListener("click", () => at("dialog").close());
at("skip").addEventListener("click", (event) => {
  event.preventDefault();
  at("list").querySelector("a")?.focus();
});
window.addEventListener("hashchange", follow);
keys({
  j: () => move(1),
  k: () => move(-1),
  Enter: (event) => {
    if (event.target.closest("a, button, summary")) {
      if (event.target.closest("#list a")?.hash !== location.hash) return false;
    }
    if (!shown.open) move(0);
    else at("view").querySelector("[role=tab][aria-selected=true]")?.focus();
    return true;
  },
  "/": () => at("query").focus(),
  d: () => shown.open && removeOne(shown.open),
  r: openRules,
  s: openSessions,
  "?": openHelp,
  Escape: (event) => {
    if (at("dialog").open) return false;
    if (event.target === at("query")) at("query").blur();
    else location.hash = "";
    return true;
  },
});

await attempt(refresh);
await attempt(countRules);
await follow();
listen(`${API}/events`, {
  message: arrived,
  removed,
  read: (id) => (markRead(id), soon(totals)),
  rules: () => (attempt(countRules), refreshDialog("rules")),
  fired: () => (refreshDialog("rules"), refreshDialog("sessions")),
  session: () => refreshDialog("sessions"),
  missed: refresh,
}, live);
