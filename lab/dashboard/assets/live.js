// What all views live from: the events, whether the host answers, and work that is done again and again.
import { listen, notice } from "/assets/house.js";

/** Seconds of summaries that are kept for sparklines. */
const KEPT = 300;
/** The host promises a summary each second. One that hangs closes no connection: it is noticed by its silence. */
const SILENCE_MS = 5000;
/** `heard` is when the host gave its last sign of life. */
export const live = { isConnected: null, isHeld: false, heard: Date.now(), summaries: [] };
/** Says "summary" with each summary, "state" when the host goes or comes back. */
export const bus = new EventTarget();

function connected(isConnected) {
  if (live.isConnected === isConnected) return;
  live.isConnected = isConnected;
  bus.dispatchEvent(new Event("state"));
}

function keep(summary) {
  if (live.isHeld) return;
  // A host that was started anew counts from 0.
  if (live.summaries.at(-1)?.now_ns > summary.now_ns) live.summaries.length = 0;
  live.summaries.push(summary);
  if (live.summaries.length > KEPT) live.summaries.shift();
  bus.dispatchEvent(new Event("summary"));
}

export function start() {
  let alarm;
  /** Asks for the events anew, unless something is heard before. */
  const expect = (ms) => {
    clearTimeout(alarm);
    alarm = setTimeout(() => {
      source.close();
      connected(false);
      start();
    }, ms);
  };
  const hear = () => {
    live.heard = Date.now();
    connected(true);
    expect(SILENCE_MS);
  };
  const summary = (value) => {
    hear();
    keep(value);
  };
  const source = listen("/api/events", { summary }, (isConnected) => {
    if (isConnected) return void hear();
    connected(false);
    // A browser gives up when the answer is an error, such as that of a proxy.
    if (source.readyState === EventSource.CLOSED) expect(2000);
  });
  expect(SILENCE_MS);
}

/** Shows a failure, but not that the host is away, which the page says by itself. */
export function fail(error) {
  if (error.name !== "AbortError" && !(error instanceof TypeError)) notice(error);
}

/** Does `work` now and every `ms` milliseconds until the signal, but for hidden or held pages, more slowly while the host is away. */
export function every(ms, signal, work) {
  let timer;
  const turn = async (isFirst) => {
    if (isFirst || !(document.hidden || live.isHeld)) await work().catch(fail);
    if (!signal.aborted) timer = setTimeout(turn, live.isConnected !== false ? ms : Math.max(ms, 2000), false);
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  turn(true);
}

/** Listens on the bus until the signal. */
export function on(name, signal, handle) {
  bus.addEventListener(name, handle, { signal });
}
