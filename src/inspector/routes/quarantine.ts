/** Quarantined bodies: a list of them, one, and one with its numbers and texts. */
import type { QuarantineQuery } from "../../inbox/store.ts";
import { findQuarantined } from "../../receiver/to-inbox-event.ts";
import { json, refused } from "../answers.ts";
import type { QuarantinePage } from "../api.ts";
import type { InspectorAnswer } from "../http.ts";
import { checkedQuery, type Fields, listOf, oneOf, refusedQuery, rowId, rows } from "../input.ts";
import { listedQuarantined, shownQuarantined } from "../message.ts";
import { DEFAULT_PAGE, LONGEST_PAGE } from "../queries.ts";
import type { Call, Route } from "../route.ts";
import { revealRoute } from "./reveal.ts";

interface Asked extends Omit<QuarantineQuery, "states"> {
  readonly state: NonNullable<QuarantineQuery["states"]>;
}

const QUERY: Fields<Asked> = {
  state: listOf(oneOf("held", "replayed", "discarded")),
  after: rowId,
  limit: rows(LONGEST_PAGE),
};

const ABSENT = "The inbox holds no such quarantined body, or no longer.";

export const quarantineRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "quarantine",
    access: "read",
    async run({ inbox, query }) {
      const asked = checkedQuery(query, QUERY, ["state"]);
      if (!asked.ok) return refused("invalid_request", asked.message);
      const { state, ...page } = asked.value;
      const { items, next } = await inbox.findQuarantined({
        limit: DEFAULT_PAGE,
        ...page,
        ...(state !== undefined && { states: state }),
      });
      return json({ items: items.map(listedQuarantined), next } satisfies QuarantinePage);
    },
  },
  { method: "GET", path: "quarantine/:id", access: "read", run: (call) => refusedQuery(call) ?? show(call, false) },
  revealRoute({
    path: "quarantine/:id/reveal",
    subject: "quarantine",
    message: "A quarantined body was revealed in the inspector.",
    absent: ABSENT,
    reveal: ({ inbox, id, by }) => inbox.revealQuarantined(id, { by }),
    show: (call) => show(call, true),
  }),
];

async function show({ inbox, id }: Call, reveal: boolean): Promise<InspectorAnswer> {
  const row = await findQuarantined(inbox, id);
  return row === null ? refused("not_found", ABSENT) : json(shownQuarantined(row, reveal));
}
