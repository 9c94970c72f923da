// The dialogs: rules, sessions, keys.
import { ago, attempt, make, notice, request, table } from "/assets/house.js";

const API = "/api/v1";
const at = (id) => document.getElementById(id);
const EXAMPLES = [
  'recipient=*@full.example reply="452 4.2.2 Mailbox full" first=3',
  'stage=connect reply="421 4.7.0 Too many connections" over=10/1m',
  'sender=*@blocked.example reply="550 5.7.1 Not welcome"',
  'stage=message reply="451 4.3.0 Try again later" rate=0.2',
  "stage=data drop every=5",
  "stage=data speed=1K delay=2s",
];

function open(name, title, fill) {
  const dialog = at("dialog");
  dialog.dataset.name = name;
  at("dialog-title").textContent = title;
  at("dialog-body").replaceChildren();
  if (!dialog.open) dialog.showModal();
  attempt(() => fill(at("dialog-body")));
}

/** Fetches what a dialog shows anew, if it is open. */
export function refreshDialog(name) {
  const dialog = at("dialog");
  if (!dialog.open || dialog.dataset.name !== name) return;
  attempt(name === "rules" ? () => fillRules(at("rule-table")) : () => fillSessions(at("dialog-body")));
}

export async function countRules() {
  const { rules } = await request(`${API}/rules`);
  at("rule-count").textContent = rules.length;
  at("rule-count").hidden = rules.length === 0;
}

async function fillRules(place) {
  const { rules, step } = await request(`${API}/rules`);
  if (!place?.isConnected) return;
  const remove = (rule) => make("button", { type: "button", className: "quiet bad", "aria-label": `Remove rule ${rule.number}`,
    onclick: () => attempt(() => request(`${API}/rules/${rule.number}`, { method: "DELETE" })) }, "Remove");
  const rows = rules.map((rule) => [String(rule.number), make("code", {}, rule.rule), `${rule.fired} of ${rule.matched}`, remove(rule)]);
  place.replaceChildren(...[
    step !== null && make("p", { className: "muted" }, `A script runs: step ${step + 1}.`),
    rules.length > 0
      ? table([["", "number"], "Rule", ["Fired", "number"], ""], rows)
      : make("p", { className: "muted" }, "No rules: every message is accepted."),
    rules.length > 0 && make("button", { type: "button", className: "bad",
      onclick: () => attempt(() => request(`${API}/rules`, { method: "DELETE" })) }, "Remove all"),
  ].filter(Boolean));
}

export function openRules() {
  open("rules", "Rules: failures to order", async (body) => {
    const input = make("input", { type: "text", id: "rule", spellcheck: false, autocomplete: "off", placeholder: EXAMPLES[0] });
    const add = async (event) => {
      event.preventDefault();
      await attempt(async () => {
        await request(`${API}/rules`, { method: "POST", body: { rule: input.value } });
        input.value = "";
        notice("The rule is in force");
      });
    };
    const script = make("textarea", { className: "mono", spellcheck: false, "aria-label": "Script",
      placeholder: "[[step]]\nrules = ['stage=mail reply=\"451 4.7.1 Try again later\"']\nfires = 2\n[[step]]\nseconds = 30\n" });
    const play = () => attempt(async () => {
      await request(`${API}/rules`, { method: "PUT", body: { script: script.value } });
      notice("The script runs");
    });
    const place = make("div", { id: "rule-table" });
    const fill = (text) => () => { input.value = text; input.focus(); };
    body.append(
      make("form", { className: "rule-form", onsubmit: add },
        make("label", { className: "hidden-text", htmlFor: "rule" }, "Rule"), input, make("button", { className: "main" }, "Add")),
      make("div", { className: "examples" }, EXAMPLES.map((text) => make("button", { type: "button", className: "mono", onclick: fill(text) }, text))),
      place, make("hr"),
      make("details", {}, make("summary", {}, "A script: rules that change with time"),
        make("p", {}), script, make("p", {}), make("button", { type: "button", onclick: play }, "Run in the place of all rules")));
    input.focus();
    await fillRules(place);
  });
}

/** The lines of a session. */
export function dialogue(session) {
  const line = ({ at_ms, speaker, text }) => {
    const kind = speaker === "server" && /^[45]/.test(text) ? "refused" : speaker;
    return [make("span", { className: "at" }, (at_ms / 1000).toFixed(3)), make("span", { className: kind }, { client: "C:", server: "S:" }[speaker] ?? "--"),
      make("span", { className: kind }, text)];
  };
  const rules = session.rules.map((rule) => make("li", {}, make("code", {}, rule)));
  return make("div", {},
    rules.length > 0 && make("div", {}, make("strong", {}, "Rules that fired"), make("ul", {}, rules)),
    session.lines.length > 0 ? make("div", { className: "dialogue" }, session.lines.map(line)) : make("p", { className: "muted" }, "There are no lines."));
}

async function fillSessions(body) {
  const sessions = await request(`${API}/sessions`);
  const show = (session) => () => open("session", `Session ${session.number}`, async (place) => {
    place.append(make("p", {}, make("button", { type: "button", onclick: openSessions }, "All sessions")),
      dialogue(await request(`${API}/sessions/${session.number}`)));
  });
  const row = (session) => [
    make("button", { type: "button", className: "quiet", onclick: show(session) }, String(session.number)),
    `${session.client}${session.hello ? ` (${session.hello})` : ""}`,
    session.ended_ms === null ? make("span", { className: "badge good" }, "open") : ago(session.began_ms),
    String(session.messages.length),
    session.rules.length > 0 ? make("span", { className: "badge warn" }, `${session.rules.length} fired`) : "",
  ];
  body.replaceChildren(sessions.length > 0
    ? table([["", "number"], "Client", "When", ["Messages", "number"], "Rules"], sessions.map(row))
    : make("p", { className: "muted" }, "No session yet."));
}

export function openSessions() {
  open("sessions", "Sessions", fillSessions);
}

export function openHelp() {
  const list = [
    ["j, k", "the next and the previous message"],
    ["Enter", "opens the message, then goes to its tabs; arrows move between them"],
    ["/", "search"],
    ["d", "deletes the message"],
    ["r, s", "rules, sessions"],
    ["Esc", "back"],
  ];
  const names = (text) => text.split(", ").flatMap((name) => [make("kbd", {}, name), " "]);
  open("help", "Keys", (body) => body.append(make("dl", { className: "keys" },
    list.map(([name, what]) => [make("dt", {}, names(name)), make("dd", {}, what)]))));
}
