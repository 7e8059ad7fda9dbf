/** Does what a bulk order asks for. What matches is found first; what comes to match meanwhile is left alone. */
import type { Page } from "../../inbox/operations.ts";
import type { Clock } from "../../internal/clock.ts";
import { type BulkProgress, onAll, type Pace, planOf, REFUSALS } from "../../receiver/bulk/each.ts";
import { newestEvent } from "../../receiver/bulk/matching.ts";
import { findQuarantined } from "../../receiver/find-quarantined.ts";
import type { InboxOperator } from "../../receiver/operator.ts";
import { quarantinedEvent } from "../../receiver/quarantined-event.ts";
import { answerOf } from "../act-answer.ts";
import type { ActAnswer, ActRefusal } from "../api.ts";
import type { BulkOrder } from "./order.ts";

export type Counts = Readonly<Record<string, number>>;

export interface BulkContext {
  readonly inbox: InboxOperator;
  readonly clock: Clock;
  readonly by: string;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: BulkProgress<object>) => void;
}

const LANES_PER_PAGE = 1_000;
/** Bodies are read with them. */
const QUARANTINED_PER_PAGE = 100;

/** A dry run of events or quarantined bodies takes those that are there as it begins, and tells up to which. */
export async function bounded(order: BulkOrder, inbox: InboxOperator): Promise<BulkOrder> {
  if (!order.dryRun || order.act === "unblock" || order.upTo !== undefined) return order;
  const upTo = "query" in order ? await newestEvent(inbox) : await newestQuarantined(inbox);
  return upTo === 0 ? order : { ...order, upTo };
}

export function boundOf(order: BulkOrder): { readonly upTo?: number } {
  return "upTo" in order && order.upTo !== undefined ? { upTo: order.upTo } : {};
}

/** @throws the reason of the signal when it aborts, between two acts */
export async function doBulk(order: BulkOrder, context: BulkContext): Promise<Counts> {
  const { inbox, by, signal, onProgress } = context;
  const { dryRun, ratePerSecond } = order;
  const options = {
    dryRun,
    by,
    signal,
    onProgress,
    ...boundOf(order),
    ...(ratePerSecond !== undefined && { ratePerSecond }),
  };
  switch (order.act) {
    case "replay":
      return { ...(await inbox.replayAll(order.query, { ...options, skipSuperseded: order.skipSuperseded ?? false })) };
    case "discard":
      return { ...(await inbox.discardAll(order.query, options)) };
    case "unblock":
      return forEach(order, context, { targets: await blockedLanes(context), ...unblocking(context) });
    case "replay_quarantined":
      return forEach(order, context, { targets: await heldBodies(context, order), ...replaying(context) });
    case "discard_quarantined":
      return forEach(order, context, { targets: await heldBodies(context, order), ...discarding(context) });
    default:
      return order satisfies never;
  }
}

interface Acts<Done extends string> {
  /** The name of its count. */
  readonly done: Done;
  act(id: number): Promise<ActAnswer>;
  /** What `act` would come to now. */
  foresee(id: number): Promise<ActAnswer>;
}

async function forEach<Done extends string>(
  { dryRun, ratePerSecond }: BulkOrder,
  { clock, by, signal, onProgress }: BulkContext,
  { targets, done, act, foresee }: Acts<Done> & { readonly targets: readonly number[] },
): Promise<Counts> {
  const rate = ratePerSecond === undefined ? {} : { ratePerSecond };
  const plan = planOf<Record<string, number>>({ dryRun, by, signal, onProgress, ...rate });
  const rows = targets.map((id) => ({ id }));
  return onAll<{ readonly id: number }, Done | ActRefusal>(clock, rows, plan, {
    counts: { [done]: 0, ...REFUSALS, invalid_event: 0 } as Record<Done | ActRefusal, number>,
    async handle({ id }, pace: Pace) {
      if (dryRun) return endOf(await foresee(id), done);
      await pace.turn();
      pace.acts();
      return endOf(await act(id), done);
    },
  });
}

function endOf<Done extends string>(answer: ActAnswer, done: Done): Done | ActRefusal {
  return answer.ok ? done : answer.reason;
}

const WOULD: ActAnswer = { ok: true, event: null };

function unblocking({ inbox, by }: BulkContext): Acts<"unblocked"> {
  return {
    done: "unblocked",
    act: (lane) => answerOf(() => inbox.unblock(lane, { by })),
    async foresee(id) {
      const lane = await inbox.lane(id);
      if (lane === null) return { ok: false, reason: "not_found" };
      return lane.status === "blocked" ? WOULD : { ok: false, reason: "wrong_state" };
    },
  };
}

function replaying({ inbox, by }: BulkContext): Acts<"replayed"> {
  return {
    done: "replayed",
    act: (id) => answerOf(() => inbox.replayQuarantined(id, { by })),
    async foresee(id) {
      const row = await findQuarantined(inbox, id);
      if (row === null) return { ok: false, reason: "not_found" };
      const read = await quarantinedEvent(row);
      if (!read.ok) return { ok: false, reason: read.reason };
      return row.state === "held" ? WOULD : { ok: false, reason: "wrong_state" };
    },
  };
}

function discarding({ inbox, by }: BulkContext): Acts<"discarded"> {
  return {
    done: "discarded",
    act: (id) => answerOf(() => inbox.discardQuarantined(id, { by })),
    async foresee(id) {
      const row = await findQuarantined(inbox, id);
      if (row === null) return { ok: false, reason: "not_found" };
      return row.state === "held" ? WOULD : { ok: false, reason: "wrong_state" };
    },
  };
}

function blockedLanes({ inbox, signal }: BulkContext): Promise<readonly number[]> {
  const query = { statuses: ["blocked"], limit: LANES_PER_PAGE } as const;
  return idsOf((after) => inbox.findLanes({ ...query, ...after }), signal);
}

async function newestQuarantined(inbox: InboxOperator): Promise<number> {
  const [newest] = (await inbox.findQuarantined({ limit: 1 })).items;
  return newest?.id ?? 0;
}

interface Held {
  readonly reason?: string;
  readonly upTo?: number;
}

function heldBodies({ inbox, signal }: BulkContext, held: Held): Promise<readonly number[]> {
  const { reason, upTo = Number.MAX_SAFE_INTEGER } = held;
  const query = { states: ["held"], limit: QUARANTINED_PER_PAGE } as const;
  return idsOf(async (after) => {
    const { items, next } = await inbox.findQuarantined({ ...query, ...after });
    return { items: items.filter((row) => row.id <= upTo && (reason === undefined || row.reason === reason)), next };
  }, signal);
}

/** Ascending. The event loop gets its turn between two pages. */
async function idsOf(
  read: (after: { readonly after?: number }) => Promise<Page<{ readonly id: number }>>,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const ids: number[] = [];
  for (let after: number | null | undefined; after !== null; ) {
    const page: Page<{ readonly id: number }> = await read(after === undefined ? {} : { after });
    for (const { id } of page.items) ids.push(id);
    after = page.next;
    await new Promise<void>((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
  }
  return ids.sort((a, b) => a - b);
}
