// The documentation of the interface, made from its OpenAPI document.
import { attempt, make, request, table } from "/assets/house.js";

const KINDS = { get: "good", post: "warn", put: "warn", delete: "bad" };

function operation(path, method, { summary, description, parameters = [], requestBody }) {
  const row = ({ name, in: where, schema = {}, description: text }) =>
    [make("code", {}, name), where, make("code", {}, schema.type ?? ""), text ?? ""];
  const example = requestBody?.content?.["application/json"]?.example;
  const own = path.replace(/\{id\}/, "latest").replace(/\{\w+\}/, "1");
  const query = parameters.find((parameter) => parameter.in === "query" && parameter.example);
  const parts = ["curl -s", method !== "get" && `-X ${method.toUpperCase()}`, example && `-d '${JSON.stringify(example)}'`,
    `'${location.origin}/api/v1${own}${query ? `?${query.name}=${encodeURIComponent(query.example)}` : ""}'`];
  return make("section", { className: "operation panel" },
    make("h3", {}, make("span", { className: `badge ${KINDS[method]}` }, method.toUpperCase()), path),
    make("p", {}, summary, ". ", description ?? ""),
    parameters.length > 0 && table(["Parameter", "In", "Type", "Meaning"], parameters.map(row)),
    make("pre", {}, parts.filter(Boolean).join(" ")));
}

await attempt(async () => {
  const api = await request("/api/v1/openapi.json");
  document.getElementById("intro").textContent = api.info.description;
  const main = document.getElementById("main");
  for (const tag of api.tags) {
    main.append(make("h2", {}, tag.description));
    for (const [path, item] of Object.entries(api.paths)) {
      for (const [method, described] of Object.entries(item)) {
        if (described.tags?.includes(tag.name)) main.append(operation(path, method, described));
      }
    }
  }
});
