/** Messages: a list of them, one with its drawing, and one with its numbers and texts. */
import { summaryShape } from "../../receiver/shown.ts";
import { json, refused } from "../answers.ts";
import type { MessagePage } from "../api.ts";
import type { InspectorAnswer } from "../http.ts";
import { readBody, refusedQuery } from "../input.ts";
import { shownMessage } from "../message.ts";
import { DEFAULT_PAGE, LANE_QUERY } from "../queries.ts";
import type { Call, Route } from "../route.ts";
import { revealRoute } from "./reveal.ts";

const ABSENT = "The inbox holds no such message, or no longer.";

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
  { method: "GET", path: "messages/:id", access: "read", run: (call) => refusedQuery(call) ?? show(call, false) },
  revealRoute({
    path: "messages/:id/reveal",
    subject: "lane",
    message: "A message was revealed in the inspector.",
    absent: ABSENT,
    reveal: ({ inbox, id, by }) => inbox.reveal(id, { by }),
    show: (call) => show(call, true),
  }),
];

async function show({ inbox, clock, id }: Call, reveal: boolean): Promise<InspectorAnswer> {
  const lane = await inbox.lane(id);
  return lane === null ? refused("not_found", ABSENT) : json(shownMessage(lane, clock.now(), reveal));
}
