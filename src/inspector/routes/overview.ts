/** `GET api/overview`: the inbox at a glance. */
import { json } from "../answers.ts";
import type { Overview } from "../api.ts";
import { refusedQuery } from "../input.ts";
import type { Route } from "../route.ts";

export const overviewRoute: Route = {
  method: "GET",
  path: "overview",
  access: "read",
  async run({ watch, access, by, query }) {
    const refusal = refusedQuery({ query });
    if (refusal !== null) return refusal;
    const { overview } = await watch.look();
    return json({ ...overview, access, by } satisfies Overview);
  },
};
