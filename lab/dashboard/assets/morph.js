// Makes a tree that is shown like a new one, in place: focus, selection and scroll stay, and nothing flickers.

function attributes(old, fresh) {
  for (const { name } of [...old.attributes]) if (name !== "style" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  // The security policy forbids the attribute, not the property.
  if (old.style.cssText !== fresh.style.cssText) old.style.cssText = fresh.style.cssText;
  old.onclick = fresh.onclick;
}

function node(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || old.dataset?.key !== fresh.dataset?.key) return old.replaceWith(fresh);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return undefined;
  }
  // A live part (a chart, details that the reader opened) keeps what it is.
  if (old.dataset?.live !== undefined) return undefined;
  if (old instanceof Element) attributes(old, fresh);
  return children(old, [...fresh.childNodes]);
}

function children(place, fresh) {
  const old = [...place.childNodes];
  fresh.forEach((child, at) => (at < old.length ? node(old[at], child) : place.append(child)));
  old.slice(fresh.length).forEach((child) => child.remove());
}

/** Shows elements (false ones are left out) in a place. */
export function show(place, ...fresh) {
  children(place, fresh.flat(9).filter(Boolean));
}
