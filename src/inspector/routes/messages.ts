/** Messages and quarantined bodies: lists, one of each, and one with its numbers and texts. */
import type { ActResult, QuarantineQuery } from "../../inbox/store.ts";
import { summaryShape } from "../../receiver/shown.ts";
import { findQuarantined } from "../../receiver/to-inbox-event.ts";
import type { MessagePage, QuarantinePage } from "../api.ts";
import { listedQuarantined, shownMessage, shownQuarantined } from "../drawing.ts";
import { type InspectorAnswer, json, refused } from "../http.ts";
import {
  checkedQuery,
  DEFAULT_PAGE,
  type Fields,
  LANE_QUERY,
  LONGEST_PAGE,
  listOf,
  oneOf,
  readBody,
  refusedBody,
  refusedQuery,
  rowId,
  rows,
} from "../input.ts";
import type { Call, Route } from "../route.ts";

// What the routes that show numbers and texts have in common: the audit knows it before anybody sees them.

interface Revealed {
  readonly path: string;
  /** What `:id` names, in the log's words. */
  readonly subject: "lane" | "quarantine";
  readonly message: string;
  /** For an id that the inbox does not hold. */
  readonly absent: string;
  /** Writes the audit row. */
  reveal(call: Call): Promise<ActResult>;
  show(call: Call): Promise<InspectorAnswer>;
}

function revealRoute({ path, subject, message, absent, reveal, show }: Revealed): Route {
  return {
    method: "POST",
    path,
    access: "reveal",
    async run(call) {
      const refusal = await refusedBody(call);
      if (refusal !== null) return refusal;
      // First: what somebody saw must be in the audit, also when they saw it in vain.
      const revealed = await reveal(call);
      if (!revealed.ok) return refused("not_found", absent);
      call.logger.info({ by: call.by, [subject]: call.id }, message);
      return show(call);
    },
  };
}

// Messages: a list of them, one with its drawing, and one with its numbers and texts.

const NO_MESSAGE = "The inbox holds no such message, or no longer.";

export const messageRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "messages",
    access: "read",
    async run(call) {
      const body = await readBody(call, LANE_QUERY);
      if (!body.ok) return body.answer;
      const { items, next } = await call.inbox.findLanes({ limit: DEFAULT_PAGE, ...body.value });
      return json({ items: items.map(summaryShape), next } satisfies MessagePage);
    },
  },
  {
    method: "GET",
    path: "messages/:id",
    access: "read",
    run: (call) => refusedQuery(call) ?? showMessage(call, false),
  },
  revealRoute({
    path: "messages/:id/reveal",
    subject: "lane",
    message: "A message was revealed in the inspector.",
    absent: NO_MESSAGE,
    reveal: ({ inbox, id, by }) => inbox.reveal(id, { by }),
    show: (call) => showMessage(call, true),
  }),
];

async function showMessage({ inbox, clock, id }: Call, reveal: boolean): Promise<InspectorAnswer> {
  const lane = await inbox.lane(id);
  return lane === null ? refused("not_found", NO_MESSAGE) : json(shownMessage(lane, clock.now(), reveal));
}

// Quarantined bodies: a list of them, one, and one with its numbers and texts.

interface Asked extends Omit<QuarantineQuery, "states"> {
  readonly state: NonNullable<QuarantineQuery["states"]>;
}

const QUERY: Fields<Asked> = {
  state: listOf(oneOf("held", "replayed", "discarded")),
  after: rowId,
  limit: rows(LONGEST_PAGE),
};

const NO_BODY = "The inbox holds no such quarantined body, or no longer.";

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
  { method: "GET", path: "quarantine/:id", access: "read", run: (call) => refusedQuery(call) ?? showBody(call, false) },
  revealRoute({
    path: "quarantine/:id/reveal",
    subject: "quarantine",
    message: "A quarantined body was revealed in the inspector.",
    absent: NO_BODY,
    reveal: ({ inbox, id, by }) => inbox.revealQuarantined(id, { by }),
    show: (call) => showBody(call, true),
  }),
];

async function showBody({ inbox, id }: Call, reveal: boolean): Promise<InspectorAnswer> {
  const row = await findQuarantined(inbox, id);
  return row === null ? refused("not_found", NO_BODY) : json(shownQuarantined(row, reveal));
}
