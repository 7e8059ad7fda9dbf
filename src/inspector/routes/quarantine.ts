/** Quarantined bodies: a list of them, one, and one with its numbers and texts. */
import type { QuarantineQuery } from "../../inbox/operations.ts";
import { json, refused } from "../answers.ts";
import type { QuarantinePage } from "../api.ts";
import { findQuarantined } from "../find-quarantined.ts";
import type { InspectorAnswer } from "../http.ts";
import { checkedQuery, type Fields, listOf, oneOf, rowId, rows } from "../input.ts";
import { listedQuarantined, shownQuarantined } from "../message.ts";
import { DEFAULT_PAGE, LONGEST_PAGE } from "../queries.ts";
import type { Call, Route } from "../route.ts";

interface Asked extends Omit<QuarantineQuery, "states"> {
  readonly state: NonNullable<QuarantineQuery["states"]>;
}

const QUERY: Fields<Asked> = {
  state: listOf(oneOf("held", "replayed", "discarded")),
  after: rowId,
  limit: rows(LONGEST_PAGE),
};

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
  { method: "GET", path: "quarantine/:id", access: "read", run: (call) => show(call, false) },
  {
    method: "POST",
    path: "quarantine/:id/reveal",
    access: "reveal",
    async run(call) {
      const { inbox, logger, by, id } = call;
      // First: what somebody saw must be in the audit, also when they saw it in vain.
      const revealed = await inbox.revealQuarantined(id, { by });
      if (!revealed.ok) return nothing();
      logger.info({ by, quarantine: id }, "A quarantined body was revealed in the inspector.");
      return show(call, true);
    },
  },
];

async function show({ inbox, id }: Call, reveal: boolean): Promise<InspectorAnswer> {
  const row = await findQuarantined(inbox, id);
  return row === null ? nothing() : json(shownQuarantined(row, reveal));
}

function nothing(): InspectorAnswer {
  return refused("not_found", "The inbox holds no such quarantined body, or no longer.");
}
