// The message that is open: its head and its tabs.
import { attempt, make, request, size, table, tabs } from "/assets/house.js";
import { dialogue } from "/assets/rules.js";

const API = "/api/v1";
const view = document.getElementById("view");
const nothing = [...view.childNodes];
/** Characters of a source that are shown. */
const SOURCE_LENGTH = 500000;
let remembered = "html";

export function showNothing() {
  view.replaceChildren(...nothing);
}

function people(list) {
  return list.map((person) => (person.name && person.address ? `${person.name} <${person.address}>` : person.name || person.address)).join(", ");
}

function fields(pairs) {
  const filled = pairs.filter(([, value]) => value);
  return make("dl", {}, filled.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

/** Whether the HTML seems to load something from elsewhere. */
function isRemote(html) {
  return /(src|background|srcset)\s*=\s*["']?\s*(https?:)?\/\/|url\(\s*["']?\s*(https?:)?\/\//i.test(html);
}

function htmlTab(message) {
  return (panel) => {
    const frame = make("iframe", {
      title: "The HTML of the message", sandbox: "allow-popups allow-popups-to-escape-sandbox", referrerPolicy: "no-referrer",
      src: `${API}/messages/${message.id}/html`,
    });
    const load = make("button", { type: "button", onclick: () => {
      frame.src = `${API}/messages/${message.id}/html?images=1`;
      load.remove();
      word.textContent = "Remote images are loaded.";
    } }, "Load them");
    const word = make("span", {}, isRemote(message.html) ? "Remote images are blocked." : "Scripts do not run, and nothing is loaded.");
    const narrow = make("button", { type: "button", className: "width", "aria-pressed": "false", onclick: () => {
      const isNarrow = frame.classList.toggle("narrow");
      narrow.setAttribute("aria-pressed", isNarrow);
      narrow.textContent = isNarrow ? "Full width" : "Phone width";
    } }, "Phone width");
    panel.append(make("div", { className: "strip" }, make("span", {}, word, " ", isRemote(message.html) && load), narrow), frame);
  };
}

async function source(message, panel) {
  const text = await request(`${API}/messages/${message.id}/source`);
  const cut = text.length > SOURCE_LENGTH;
  panel.append(
    make("div", { className: "strip" },
      make("span", {}, cut ? "The beginning is shown." : size(message.size)),
      make("a", { href: `${API}/messages/${message.id}/source?download=1`, download: `${message.id}.eml` }, "Download")),
    make("pre", { className: "source" }, cut ? text.slice(0, SOURCE_LENGTH) : text));
}

function parts(message) {
  const row = (part) => {
    const url = `${API}/messages/${message.id}/parts/${part.number}`;
    const name = part.name || (part.content_id ? `<${part.content_id}>` : `part ${part.number}`);
    return [make("a", { href: url, download: part.name || `part-${part.number}` }, name), make("code", {}, part.media_type), size(part.size)];
  };
  return table(["Name", "Type", ["Size", "number"]], message.parts.map(row));
}

async function showDialogue(message, panel) {
  const session = await request(`${API}/sessions/${message.envelope.session}`).catch(() => null);
  const word = (text) => make("p", { className: "inside muted" }, text);
  if (!session) return panel.append(word("The dialogue is no longer kept."));
  if (session.ended_ms === null) return panel.append(word("The session is still open: its dialogue is shown when it has ended."));
  return panel.append(make("div", { className: "inside" }, dialogue(session)));
}

/** Shows a message. */
export function showMessage(message, { remove }) {
  const { envelope } = message;
  const attachments = message.parts.filter((part) => part.is_attachment).length;
  const list = [
    message.html && ["html", "HTML", htmlTab(message)],
    ["text", "Text", (panel) => panel.append(make("pre", {}, message.text || "(no text)"))],
    ["headers", "Headers", (panel) => panel.append(make("div", { className: "inside" },
      table(["Field", "Value"], message.headers.map(([name, value]) => [make("strong", {}, name), make("span", { className: "mono" }, value)]))))],
    ["source", "Source", (panel) => source(message, panel)],
    ["parts", attachments > 0 ? `Attachments (${attachments})` : "Parts", (panel) => panel.append(make("div", { className: "inside" }, parts(message)))],
    ["dialogue", "Dialogue", (panel) => showDialogue(message, panel)],
  ].filter(Boolean);
  const head = make("header", { className: "head" },
    make("div", { className: "title" },
      make("h1", {}, message.subject || "(no subject)"),
      make("div", {},
        make("button", { type: "button", className: "back", onclick: () => { location.hash = ""; } }, "Back"),
        make("button", { type: "button", className: "bad", onclick: () => attempt(remove) }, "Delete"))),
    fields([
      ["From", people(message.from)],
      ["To", people(message.to)],
      ["Cc", people(message.cc)],
      ["Reply to", people(message.reply_to)],
      ["Date", message.date && new Date(message.date).toLocaleString()],
    ]),
    make("details", { open: envelope.rules.length > 0 },
      make("summary", {}, `Envelope: ${envelope.from ?? "<>"} → ${envelope.to.length === 1 ? envelope.to[0] : `${envelope.to.length} recipients`}`),
      fields([
        ["Sender", envelope.from ?? "<>"],
        ["Recipients", envelope.to.join(", ")],
        ["Received", `${new Date(message.received).toLocaleString()}, ${size(message.size)}`],
        ["Client", `${envelope.client}${envelope.hello ? `, ${envelope.hello}` : ""}`],
        ["TLS", envelope.tls],
        ["User", envelope.user],
        ["Rules", envelope.rules.length > 0 && make("ul", {}, envelope.rules.map((rule) => make("li", {}, make("code", {}, rule))))],
      ])));
  view.replaceChildren(head, ...tabs("Views of the message", list, list.some(([name]) => name === remembered) ? remembered : list[0][0],
    (name) => { remembered = name; }));
}
