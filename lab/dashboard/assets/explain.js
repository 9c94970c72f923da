// Why the connections of a capture are slow: it is posted, and the verdicts are shown.
import { Problem, make, notice } from "/assets/house.js";
import { bar, inWords } from "/assets/causes.js";
import { bytes, clean, count, time } from "/assets/format.js";
import { bus } from "/assets/live.js";
import { sharesOf, showVerdict } from "/assets/verdict.js";

const FIRST = 50;
/** The capture that was explained last. */
const last = { name: "", state: "none", report: null, error: "" };

export const title = "Explain a capture";

async function post(file) {
  const response = await fetch("/api/explain", { method: "POST", body: file, headers: { accept: "application/json", "content-type": "application/octet-stream" } });
  const value = await response.json().catch(() => null);
  if (response.ok) return value;
  const tooLarge = response.status === 413 ? `The file of ${bytes(file.size)} is too large. Cut its frames: tcpdump -s 128, or editcap -s 128.` : null;
  throw new Problem(response.status, tooLarge ?? value?.detail ?? response.statusText);
}

/** Explains a file; the view shows how it goes. */
export async function explain(file) {
  Object.assign(last, { name: file.name, state: "reading", report: null });
  location.hash = "#/explain";
  bus.dispatchEvent(new Event("explained"));
  try {
    Object.assign(last, { report: await post(file), state: "done" });
  } catch (error) {
    Object.assign(last, { state: "failed", error: error.message });
    if (!(error instanceof Problem)) notice(error);
  }
  bus.dispatchEvent(new Event("explained"));
}

function conversation(verdict, at) {
  const shares = sharesOf(verdict);
  const image = verdict.picture && make("img", { loading: "lazy", src: verdict.picture, className: "picture",
    alt: `Time-sequence chart of ${clean(verdict.client)} and ${clean(verdict.server)}` });
  return make("li", {}, make("details", { className: "panel conversation", open: at < 2 },
    make("summary", {}, make("span", { className: "who" }, make("bdi", {}, clean(verdict.client)), " → ", make("bdi", {}, clean(verdict.server))),
      make("span", { className: "number" }, `${time(verdict.lost_ns)} lost`), bar(shares, "Causes: "), make("span", { className: "muted" }, inWords(shares))),
    make("div", { className: "inside" }, showVerdict(verdict), image)));
}

function chooser() {
  const field = make("input", { type: "file", id: "capture", accept: ".pcap,.pcapng,.cap", onchange: () => field.files[0] && explain(field.files[0]) });
  return make("div", { className: "panel chooser" }, make("p", {}, make("strong", {}, "Drop a capture (pcap or pcapng) anywhere on this page"), ", or choose it:"),
    make("label", { className: "button main" }, "Choose a capture", field),
    make("p", { className: "muted" }, "128 bytes of each frame are enough: ", make("code", {}, "tcpdump -i eth0 -s 128 -w transfer.pcap tcp"), ". It is read by this host and goes nowhere else."));
}

function results() {
  if (last.state === "none") return [];
  if (last.state === "reading") return [make("p", { className: "muted" }, `${clean(last.name)} is being read.`)];
  if (last.state === "failed") return [make("p", { className: "problem" }, `${clean(last.name)}: ${clean(last.error)}`)];
  const { frames, warnings, conversations } = last.report;
  const items = (from, to) => conversations.slice(from, to).map((verdict, at) => conversation(verdict, from + at));
  const list = make("ol", { className: "conversations" }, items(0, FIRST));
  const rest = conversations.length - FIRST;
  const more = rest > 0 && make("button", { type: "button", onclick: () => { list.append(...items(FIRST)); more.remove(); } }, `The other ${count(rest)}`);
  return [make("h2", {}, clean(last.name), make("span", { className: "muted" }, `${count(frames)} frames, ${count(conversations.length)} connections, the most time lost first`)),
    warnings.length > 0 && make("ul", { className: "problem" }, warnings.map((of) => make("li", {}, `${count(of.count)} ${clean(of.text)}`))),
    conversations.length > 0 ? list : make("p", { className: "muted" }, "It has no TCP connection."), more].filter(Boolean);
}

export function show({ place, signal }) {
  const found = make("section", { "aria-label": "Verdicts" });
  const word = make("p", { role: "status", className: "hidden-text" });
  const draw = () => {
    found.replaceChildren(...results());
    word.textContent = found.firstElementChild?.textContent ?? "";
  };
  place.append(make("h1", { className: "hidden-text" }, title), chooser(), word, found);
  draw();
  bus.addEventListener("explained", draw, { signal });
}

/** Takes files that are dropped anywhere. */
export function takeDrops(overlay) {
  const isFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const over = (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    overlay.hidden = false;
  };
  document.addEventListener("dragenter", over);
  document.addEventListener("dragover", over);
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) overlay.hidden = true; });
  document.addEventListener("drop", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    overlay.hidden = true;
    if (event.dataTransfer.files[0]) explain(event.dataTransfer.files[0]);
  });
}
