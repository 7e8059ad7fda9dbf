/** Routes for the inbox as a whole: overview, history, groups of dead letters, audit, and lookup. */
import { publicId } from "../../../inbox/lane-key.ts";
import type { EventSummary, LaneSummary } from "../../../inbox/record.ts";
import type { EventQuery } from "../../../inbox/store.ts";
import type { InboxOperator } from "../../../receiver/operator.ts";
import type { AuditList, ErrorGroups, History, Lookup, LookupMatch, Overview } from "../api.ts";
import { jsonAnswer, refused } from "../http.ts";
import { checkedQuery, type Fields, readFields, refusedQuery, rows, textField } from "../input.ts";
import { lookAt } from "../look.ts";
import type { ApiRoute } from "../route.ts";

export const overviewRoute: ApiRoute = {
  method: "GET",
  path: "overview",
  access: "read",
  async run({ inbox, clock, samples, access, by, query }) {
    const refusal = refusedQuery({ query });
    if (refusal !== null) return refusal;
    const look = await lookAt(inbox, clock);
    samples.add(look.sample);
    return jsonAnswer({ ...look, access, by } satisfies Overview);
  },
};

export const historyRoute: ApiRoute = {
  method: "GET",
  path: "history",
  access: "read",
  run: ({ samples, query }) => refusedQuery({ query }) ?? jsonAnswer({ samples: samples.list() } satisfies History),
};

/** If all error texts differ, each error makes a group of its own. */
const MOST_GROUPS = 100;

/** Reading 100,000 dead letters takes seconds, and the work goes on when a client leaves and asks again. */
const counting = new WeakMap<InboxOperator, OneAtATime<ErrorGroups>>();

export const groupsRoute: ApiRoute = {
  method: "GET",
  path: "groups",
  access: "read",
  async run({ inbox, query }) {
    const refusal = refusedQuery({ query });
    if (refusal !== null) return refusal;
    const work = counting.get(inbox) ?? new OneAtATime<ErrorGroups>(() => inbox.groupByError());
    counting.set(inbox, work);
    const groups = await work.ask();
    return jsonAnswer(groups.slice(0, MOST_GROUPS) satisfies ErrorGroups);
  },
};

/** Expensive work with many callers. Callers during a run share the next run, which sees everything from before their call. */
class OneAtATime<T> {
  readonly #work: () => Promise<T>;
  #now: Promise<T> | null = null;
  #next: Promise<T> | null = null;

  constructor(work: () => Promise<T>) {
    this.#work = work;
  }

  ask(): Promise<T> {
    if (this.#next !== null) return this.#next;
    if (this.#now === null) return this.#begin();
    const begin = () => this.#begin();
    this.#next = this.#now.then(begin, begin);
    return this.#next;
  }

  #begin(): Promise<T> {
    this.#next = null;
    const now = this.#work().finally(() => {
      if (this.#now === now) this.#now = null;
    });
    this.#now = now;
    return now;
  }
}

const DEFAULT_ROWS = 100;
const MOST_ROWS = 1_000;

const QUERY: Fields<{ readonly limit: number }> = { limit: rows(MOST_ROWS) };

export const auditRoute: ApiRoute = {
  method: "GET",
  path: "audit",
  access: "read",
  async run({ inbox, query }) {
    const asked = checkedQuery(query, QUERY);
    if (!asked.ok) return refused("invalid_request", asked.message);
    return jsonAnswer((await inbox.audit(asked.value.limit ?? DEFAULT_ROWS)) satisfies AuditList);
  },
};

const MOST_MATCHES = 20;
/** A lane of the messaging service has three or four events: enough to find more lanes than are listed. */
const EVENTS_READ = 100;
const SHORTEST_NUMBER = 7;

const BODY: Fields<{ readonly text: string }> = { text: textField };

export const lookupRoute: ApiRoute = {
  method: "POST",
  path: "lookup",
  access: "read",
  async run(call) {
    const body = await readFields(call, BODY);
    if (!body.ok) return body.answer;
    const asked = body.value.text?.trim() ?? "";
    if (asked === "")
      return refused("invalid_request", '"text" must be the name of a lane, an id, a reference or a number.');
    return jsonAnswer(await lookUp(call.inbox, asked));
  },
};

interface Found {
  readonly matches: readonly LookupMatch[];
  readonly more: boolean;
}

async function lookUp(inbox: InboxOperator, asked: string): Promise<Lookup> {
  const found = [
    await ofEvents(inbox, "lane", { lane: asked }),
    await ofEvents(inbox, "id", { id: asked }),
    await ofEvents(inbox, "reference", { externalReference: asked }),
  ];
  for (const peer of numbersIn(asked)) found.push(await ofNumber(inbox, peer));
  const byLane = new Map<number, LookupMatch>();
  for (const match of found.flatMap(({ matches }) => matches))
    if (!byLane.has(match.laneId)) byLane.set(match.laneId, match);
  const matches = [...byLane.values()];
  return {
    matches: matches.slice(0, MOST_MATCHES),
    more: matches.length > MOST_MATCHES || found.some(({ more }) => more),
  };
}

/** The service writes `+15550100002`; people write it with spaces, or without the plus sign. */
function numbersIn(asked: string): readonly string[] {
  const digits = asked.replace(/[\s().-]/g, "");
  if (!/^\+?\d+$/.test(digits) || digits.length < SHORTEST_NUMBER) return [];
  return digits.startsWith("+") ? [digits] : [digits, `+${digits}`];
}

async function ofEvents(
  inbox: InboxOperator,
  found: "lane" | "id" | "reference",
  filter: Pick<EventQuery, "lane" | "id" | "externalReference">,
): Promise<Found> {
  const { items, next } = await inbox.find({ ...filter, limit: EVENTS_READ });
  const newest = new Map<number, EventSummary>();
  // The newest event comes first.
  for (const event of items) if (!newest.has(event.laneId)) newest.set(event.laneId, event);
  return {
    matches: [...newest].map(([id, event]) => matchOf({ id, key: event.lane, newest: event }, found)),
    more: next !== null,
  };
}

async function ofNumber(inbox: InboxOperator, peer: string): Promise<Found> {
  const { items, next } = await inbox.findLanes({ peer, limit: MOST_MATCHES });
  return { matches: items.map((lane) => matchOf(lane, "number")), more: next !== null };
}

function matchOf(
  { id: laneId, key, newest }: Pick<LaneSummary, "id" | "key" | "newest">,
  found: LookupMatch["found"],
): LookupMatch {
  const { source, tenant, name } = key;
  const { id, eventType, sequence, acceptedAt, state } = newest;
  const ownId = publicId(newest.ownId);
  return { laneId, source, tenant, lane: name, found, newest: { id, ownId, eventType, sequence, acceptedAt, state } };
}
