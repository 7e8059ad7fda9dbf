/** `GET api/audit`: what operators did, and who. */
import { json, refused } from "../answers.ts";
import type { AuditList } from "../api.ts";
import { checkedQuery, type Fields, rows } from "../input.ts";
import type { Route } from "../route.ts";

const DEFAULT_ROWS = 100;
const MOST_ROWS = 1_000;

const QUERY: Fields<{ readonly limit: number }> = { limit: rows(MOST_ROWS) };

export const auditRoute: Route = {
  method: "GET",
  path: "audit",
  access: "read",
  async run({ inbox, query }) {
    const asked = checkedQuery(query, QUERY);
    if (!asked.ok) return refused("invalid_request", asked.message);
    return json((await inbox.audit(asked.value.limit ?? DEFAULT_ROWS)) satisfies AuditList);
  },
};
