// A list that grows at its end: packets, and the log.
import { make } from "/assets/house.js";

/** Lines that are kept on the page. */
const KEPT = 1000;

/** A list that follows its end while its switch is on; to scroll up turns the switch off. */
export function tail(label) {
  const box = make("input", { type: "checkbox", checked: true });
  const lines = make("ol", { className: "tail", tabIndex: 0, "aria-label": label });
  let top = 0;
  const toEnd = () => {
    if (box.checked) lines.scrollTop = lines.scrollHeight;
    top = lines.scrollTop;
  };
  lines.addEventListener("scroll", () => {
    // A window that changes its size moves the end away, too; but it does not scroll up.
    const isUp = lines.scrollTop < top;
    top = lines.scrollTop;
    const isAtEnd = lines.scrollHeight - top - lines.clientHeight < 40;
    if (isUp && !isAtEnd) box.checked = false;
  }, { passive: true });
  box.addEventListener("change", toEnd);
  return {
    lines, toggle: make("label", { className: "follow" }, box, " Follow"),
    isFollowing: () => box.checked,
    clear: () => { lines.replaceChildren(); box.checked = true; },
    add(fresh) {
      lines.append(...fresh);
      while (lines.childElementCount > KEPT) lines.firstElementChild.remove();
      toEnd();
    },
  };
}
