/** `POST api/lookup`: the messages that one text leads to, be it an id, a reference or a number. */
import type { EventRecord, LaneSummary } from "../../inbox/record.ts";
import type { InboxOperator } from "../../receiver/operator.ts";
import { keyShape } from "../../receiver/shown.ts";
import { json, refused } from "../answers.ts";
import type { Lookup, LookupMatch } from "../api.ts";
import { type Fields, readBody, text } from "../input.ts";
import type { Route } from "../route.ts";

const MOST_MATCHES = 20;
/** A message has three or four events; those of more messages than are listed need not be told apart. */
const EVENTS_READ = 100;
const SHORTEST_NUMBER = 7;

const BODY: Fields<{ readonly text: string }> = { text };

export const lookupRoute: Route = {
  method: "POST",
  path: "lookup",
  access: "read",
  async run(call) {
    const body = await readBody(call, BODY);
    if (!body.ok) return body.answer;
    const asked = body.value.text?.trim() ?? "";
    if (asked === "") return refused("invalid_request", '"text" must be a message id, a reference or a number.');
    return json(await lookUp(call.inbox, asked));
  },
};

interface Found {
  readonly matches: readonly LookupMatch[];
  readonly more: boolean;
}

async function lookUp(inbox: InboxOperator, asked: string): Promise<Lookup> {
  const found = [
    await ofEvents(inbox, "message", { messageId: asked }),
    await ofEvents(inbox, "reference", { externalReference: asked }),
  ];
  for (const peer of numbersIn(asked)) found.push(await ofNumber(inbox, peer));
  const byLane = new Map<number, LookupMatch>();
  for (const match of found.flatMap(({ matches }) => matches))
    if (!byLane.has(match.lane)) byLane.set(match.lane, match);
  const matches = [...byLane.values()];
  return {
    matches: matches.slice(0, MOST_MATCHES),
    more: matches.length > MOST_MATCHES || found.some(({ more }) => more),
  };
}

/** The service writes `+15550100002`; people write it with spaces, or leave the plus sign out. */
function numbersIn(asked: string): readonly string[] {
  const digits = asked.replace(/[\s().-]/g, "");
  if (!/^\+?\d+$/.test(digits) || digits.length < SHORTEST_NUMBER) return [];
  return digits.startsWith("+") ? [digits] : [digits, `+${digits}`];
}

async function ofEvents(
  inbox: InboxOperator,
  found: "message" | "reference",
  filter: { readonly messageId: string } | { readonly externalReference: string },
): Promise<Found> {
  const { items, next } = await inbox.find({ ...filter, limit: EVENTS_READ });
  const newest = new Map<number, EventRecord>();
  // The newest comes first.
  for (const event of items) if (!newest.has(event.laneId)) newest.set(event.laneId, event);
  return {
    matches: [...newest].map(([lane, event]) => matchOf({ id: lane, key: event.lane, newest: event }, found)),
    more: next !== null,
  };
}

async function ofNumber(inbox: InboxOperator, peer: string): Promise<Found> {
  const { items, next } = await inbox.findLanes({ peer, limit: MOST_MATCHES });
  return { matches: items.map((lane) => matchOf(lane, "number")), more: next !== null };
}

function matchOf({ id: lane, key, newest }: Pick<LaneSummary, "id" | "key" | "newest">, found: LookupMatch["found"]) {
  const { id, eventType, sequence, acceptedAt, state } = newest;
  const { messageId, apiClientId } = keyShape(key, false);
  return { lane, messageId, apiClientId, found, newest: { id, eventType, sequence, acceptedAt, state } };
}
