// Sessions of services: who is logged in, or served.
import { make, request, table } from "/assets/house.js";
import { clean, time } from "/assets/format.js";
import { reachable } from "/assets/links.js";
import { every } from "/assets/live.js";
import { show as into } from "/assets/morph.js";

export const title = "Sessions";

export function show({ place, signal }) {
  every(1000, signal, async () => {
    const { sessions } = await request("/api/host", { signal });
    const rows = sessions.map((of) => [clean(of.service), make("bdi", { className: "mono" }, clean(of.peer)),
      make("bdi", { className: "user", title: clean(of.user, 4096) }, clean(of.user ?? "–")), time(of.age_ns)]);
    into(place, make("h1", { className: "hidden-text" }, title), make("section", { className: "panel", "aria-label": title },
      rows.length > 0 ? reachable("Table of sessions", table(["Service", "Peer", "User", ["Since", "number"]], rows))
        : make("div", { className: "empty" }, make("p", {}, make("strong", {}, "No session.")),
          make("p", {}, "Log in to a service of this host, for example with telnet: the session is shown here."))));
  });
}
