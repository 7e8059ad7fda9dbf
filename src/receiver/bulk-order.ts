/** One act on all matching rows of an inbox, of any kind: for the inspector and the command, which only show it. */

import { OncehookError } from "../errors.ts";
import { allPages } from "../inbox/copy.ts";
import type { LaneId } from "../inbox/record.ts";
import type { ActResult } from "../inbox/store.ts";
import type { Clock } from "../internal/clock.ts";
import { type BulkOptions, type BulkQuery, type BulkRefusal, newestEvent, onAll, planOf, REFUSALS } from "./bulk.ts";
import type { InboxOperator } from "./operator.ts";

/** `upTo` leaves out rows with a higher id, which came later. */
export type BulkOrder =
  | { readonly act: "replay"; readonly query: BulkQuery; readonly upTo?: number; readonly skipSuperseded?: boolean }
  | { readonly act: "discard"; readonly query: BulkQuery; readonly upTo?: number }
  /** All messages that are blocked. */
  | { readonly act: "unblock" }
  /** All quarantined bodies that are held, or those of one reason. */
  | { readonly act: "replay_quarantined" | "discard_quarantined"; readonly reason?: string; readonly upTo?: number };

/**
 * Why a row was left unchanged. `invalid_event`: a quarantined body is still not an event. `source_needed`: this process does not have the
 * source that it came through.
 */
export type RowRefusal = BulkRefusal | "invalid_event" | "source_needed";
type Done = "replayed" | "discarded" | "unblocked";

/** The number of rows by outcome. */
export type BulkCounts = Readonly<Partial<Record<Done | "superseded" | RowRefusal, number>>>;

export interface BulkRun extends Omit<BulkOptions<BulkCounts>, "upTo"> {
  readonly clock: Clock;
}

/** The name of an act's count. */
export const DONE: Readonly<Record<BulkOrder["act"], Done>> = {
  replay: "replayed",
  discard: "discarded",
  unblock: "unblocked",
  replay_quarantined: "replayed",
  discard_quarantined: "discarded",
};

const LANES_PER_PAGE = 1_000;
/** Small, because bodies are read too. */
const QUARANTINED_PER_PAGE = 100;

/** The order up to the newest row that there is now: a dry run of it counts the rows that the act will be done on later. */
export async function boundedOrder(inbox: InboxOperator, order: BulkOrder): Promise<BulkOrder> {
  if (order.act === "unblock" || order.upTo !== undefined) return order;
  const upTo = "query" in order ? await newestEvent(inbox) : await newestQuarantined(inbox);
  return { ...order, upTo };
}

/** Rows that match are found first; those that match later are left alone. @throws the reason of the signal when it aborts, between two acts */
export async function runBulk(inbox: InboxOperator, order: BulkOrder, run: BulkRun): Promise<BulkCounts> {
  const { clock: _clock, ...options } = run;
  switch (order.act) {
    case "replay": {
      const { query, skipSuperseded = false, upTo } = order;
      return inbox.replayAll(query, { ...options, skipSuperseded, ...(upTo !== undefined && { upTo }) });
    }
    case "discard": {
      const { query, upTo } = order;
      return inbox.discardAll(query, { ...options, ...(upTo !== undefined && { upTo }) });
    }
    case "unblock":
      return onEach(await blockedLanes(inbox, run.signal), rowActs(inbox, order.act, run), run);
    case "replay_quarantined":
    case "discard_quarantined":
      return onEach(await heldBodies(inbox, order, run.signal), rowActs(inbox, order.act, run), run);
    default:
      return order satisfies never;
  }
}

/** The result of an act, also if the inbox throws because a quarantined body is still not an event. */
export async function actAnswer(
  act: () => Promise<ActResult>,
): Promise<{ readonly ok: true; readonly event: number | null } | { readonly ok: false; readonly reason: RowRefusal }> {
  try {
    const result = await act();
    return result.ok ? { ok: true, event: result.event ?? null } : result;
  } catch (error) {
    const code = error instanceof OncehookError ? error.code : null;
    if (code === "invalid_event") return { ok: false, reason: "invalid_event" };
    if (code === "source_needed") return { ok: false, reason: "source_needed" };
    throw error;
  }
}

async function newestQuarantined(inbox: InboxOperator): Promise<number> {
  const [newest] = (await inbox.findQuarantined({ limit: 1 })).items;
  return newest?.id ?? 0;
}

function blockedLanes(inbox: InboxOperator, signal: AbortSignal | undefined): Promise<readonly LaneId[]> {
  const query = { statuses: ["blocked"], limit: LANES_PER_PAGE } as const;
  const lanes = allPages((page) => inbox.findLanes({ ...query, ...page }));
  return idsOf(lanes, signal);
}

function heldBodies(
  inbox: InboxOperator,
  { reason, upTo = Number.MAX_SAFE_INTEGER }: { readonly reason?: string; readonly upTo?: number },
  signal: AbortSignal | undefined,
): Promise<readonly number[]> {
  const query = { states: ["held"], limit: QUARANTINED_PER_PAGE } as const;
  const rows = allPages((page) => inbox.findQuarantined({ ...query, ...page }));
  return idsOf(rows, signal, (row) => row.id <= upTo && (reason === undefined || row.reason === reason));
}

async function idsOf<Row extends { readonly id: number }>(
  rows: AsyncIterable<Row>,
  signal: AbortSignal | undefined,
  takes: (row: Row) => boolean = () => true,
): Promise<readonly number[]> {
  const ids: number[] = [];
  for await (const row of rows) {
    signal?.throwIfAborted();
    if (takes(row)) ids.push(row.id);
  }
  return ids.sort((a, b) => a - b);
}

interface RowActs {
  readonly done: Done;
  act(id: number): Promise<ActResult>;
  /** Null if `act` would be done now. */
  refusal(id: number): Promise<RowRefusal | null>;
}

function rowActs(
  inbox: InboxOperator,
  act: "unblock" | "replay_quarantined" | "discard_quarantined",
  { by }: BulkRun,
): RowActs {
  const who = by === undefined ? {} : { by };
  const done = DONE[act];
  if (act === "unblock") {
    return {
      done,
      act: (lane) => inbox.unblock(lane, who),
      async refusal(id) {
        const lane = await inbox.lane(id);
        if (lane === null) return "not_found";
        return lane.status === "blocked" ? null : "wrong_state";
      },
    };
  }
  const isReplay = act === "replay_quarantined";
  return {
    done,
    act: (id) => (isReplay ? inbox.replayQuarantined(id, who) : inbox.discardQuarantined(id, who)),
    async refusal(id) {
      const found = await inbox.quarantined(id);
      if (found === null) return "not_found";
      if (isReplay && !found.released.ok) return found.released.reason;
      return found.row.state === "held" ? null : "wrong_state";
    },
  };
}

/** A dry run looks at each row again: someone else may have acted on it since it was found. */
function onEach(ids: readonly number[], { done, act, refusal }: RowActs, run: BulkRun): Promise<BulkCounts> {
  const { clock, ...options } = run;
  const plan = planOf<Record<string, number>>(options);
  const rows = ids.map((id) => ({ id }));
  return onAll<{ readonly id: number }, Done | RowRefusal>(clock, rows, plan, {
    counts: { [done]: 0, ...REFUSALS, invalid_event: 0, source_needed: 0 } as Record<Done | RowRefusal, number>,
    async handle({ id }, pace) {
      if (plan.dryRun) return (await refusal(id)) ?? done;
      await pace.turn();
      pace.acts();
      const answer = await actAnswer(() => act(id));
      return answer.ok ? done : answer.reason;
    },
  });
}
