// Values as text.
import { size } from "/assets/house.js";

const NONE = "–";
/** Characters that could hide or reorder what stands beside them: controls, and marks of direction. */
const UNSEEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** The text of a stranger, with what is invisible made visible, at most `limit` characters of it. */
export function clean(text, limit = 300) {
  const seen = String(text ?? "").slice(0, limit).replace(UNSEEN, (mark) => `\\u{${mark.codePointAt(0).toString(16)}}`);
  return String(text ?? "").length > limit ? `${seen} …` : seen;
}

/** A number with three digits that count. */
function short(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** A time in nanoseconds, such as "40.1 ms" or "3 h 12 min". */
export function time(ns) {
  if (ns === null || ns === undefined) return NONE;
  const unit = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]].find(([length]) => ns >= length);
  if (ns === 0) return "0";
  if (!unit) return `${Math.round(ns)} ns`;
  if (ns < 120e9) return `${short(ns / unit[0])} ${unit[1]}`;
  const seconds = Math.floor(ns / 1e9);
  const parts = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]].find(([length]) => seconds >= length);
  return `${Math.floor(seconds / parts[0])} ${parts[1]} ${Math.floor((seconds % parts[0]) / parts[2])} ${parts[3]}`;
}

/** A time in one unit, for narrow columns. */
export function shortTime(ns) {
  const unit = [[864e11, "d"], [36e11, "h"], [6e10, "min"]].find(([length]) => ns >= 2 * length);
  return unit ? `${(ns / unit[0]).toFixed(ns >= 1e2 * unit[0] ? 0 : 1)} ${unit[1]}` : time(ns);
}

/** A size such as "1.2 KiB": the units are powers of 1024, as windows and buffers are. */
export const bytes = (value) => (value === null || value === undefined ? NONE
  : size(Math.round(value)).replace(/(\d{3})\.\d/, "$1").replace(/(?<=[KMG])B/, "iB"));
export const rate = (value) => (value ? `${bytes(value)}/s` : value === 0 ? "0" : NONE);
export const count = (value) => (value === null || value === undefined ? NONE : value.toLocaleString("en"));
export const perCent = (value) => `${value < 1 && value > 0 ? "<1" : Math.round(value)} %`;
export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB", { hour12: false }) + `.${String(Math.floor(ms % 1000)).padStart(3, "0")}`;
