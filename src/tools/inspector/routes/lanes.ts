/** Lanes and quarantined bodies: lists, single ones, and single ones with numbers and texts. */
import type { ActResult, QuarantineQuery } from "../../../inbox/store.ts";
import { summaryShape } from "../../../receiver/shown.ts";
import type { LanePage, QuarantinePage } from "../api.ts";
import { listedQuarantined, shownLane, shownQuarantined } from "../drawing.ts";
import { type InspectorAnswer, jsonAnswer, refused } from "../http.ts";
import {
  checkedQuery,
  DEFAULT_PAGE,
  type Fields,
  LANE_QUERY,
  LONGEST_PAGE,
  listOf,
  oneOf,
  readFields,
  refusedBody,
  refusedQuery,
  rowId,
  rows,
} from "../input.ts";
import type { ApiCall, ApiRoute } from "../route.ts";

interface Revealed {
  readonly path: string;
  /** The name of the log field for `:id`. */
  readonly subject: "laneId" | "quarantine";
  readonly message: string;
  /** The message for an id that is not in the inbox. */
  readonly absent: string;
  /** Writes the audit row. */
  reveal(call: ApiCall): Promise<ActResult>;
  show(call: ApiCall): Promise<InspectorAnswer>;
}

/** A route that shows numbers and texts. The audit row is written before anything is shown. */
function revealRoute({ path, subject, message, absent, reveal, show }: Revealed): ApiRoute {
  return {
    method: "POST",
    path,
    access: "reveal",
    async run(call) {
      const refusal = await refusedBody(call);
      if (refusal !== null) return refusal;
      // Before reading: whatever a viewer saw must be in the audit.
      const revealed = await reveal(call);
      if (!revealed.ok) return refused("not_found", absent);
      call.logger.info({ by: call.by, [subject]: call.id }, message);
      return show(call);
    },
  };
}

const NO_LANE = "This lane is not in the inbox, or no longer.";

export const laneRoutes: readonly ApiRoute[] = [
  {
    method: "POST",
    path: "lanes",
    access: "read",
    async run(call) {
      const body = await readFields(call, LANE_QUERY);
      if (!body.ok) return body.answer;
      const { items, next } = await call.inbox.findLanes({ limit: DEFAULT_PAGE, ...body.value });
      return jsonAnswer({ items: items.map(summaryShape), next } satisfies LanePage);
    },
  },
  {
    method: "GET",
    path: "lanes/:id",
    access: "read",
    run: (call) => refusedQuery(call) ?? showLane(call, false),
  },
  revealRoute({
    path: "lanes/:id/reveal",
    subject: "laneId",
    message: "A lane was revealed in the inspector.",
    absent: NO_LANE,
    reveal: ({ inbox, id, by }) => inbox.reveal(id, { by }),
    show: (call) => showLane(call, true),
  }),
];

async function showLane({ inbox, clock, id }: ApiCall, reveal: boolean): Promise<InspectorAnswer> {
  const lane = await inbox.lane(id);
  if (lane === null) return refused("not_found", NO_LANE);
  const shows = await inbox.shows(lane.key.source);
  const bodies = await inbox.bodies(lane.events.map((event) => event.id).reverse());
  return jsonAnswer(shownLane(lane, bodies, clock.now(), { reveal, shows }));
}

interface Asked extends Omit<QuarantineQuery, "states"> {
  readonly state: NonNullable<QuarantineQuery["states"]>;
}

const QUERY: Fields<Asked> = {
  state: listOf(oneOf("held", "replayed", "discarded")),
  after: rowId,
  limit: rows(LONGEST_PAGE),
};

const NO_BODY = "This quarantined body is not in the inbox, or no longer.";

export const quarantineRoutes: readonly ApiRoute[] = [
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
      return jsonAnswer({ items: items.map(listedQuarantined), next } satisfies QuarantinePage);
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

async function showBody({ inbox, id }: ApiCall, reveal: boolean): Promise<InspectorAnswer> {
  const found = await inbox.quarantined(id);
  if (found === null) return refused("not_found", NO_BODY);
  const { row } = found;
  const shows = await inbox.shows(row.source);
  return jsonAnswer(shownQuarantined(row, { reveal, shows }));
}
