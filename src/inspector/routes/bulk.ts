/** `POST api/bulk`: one act on all that match, told line by line. It ends with whoever asked for it. */
import { failureCode } from "../../inbox/masking.ts";
import type { Page } from "../../inbox/store.ts";
import { type Clock, sleep } from "../../internal/clock.ts";
import type { Logger } from "../../internal/logger.ts";
import { isRecord } from "../../internal/type-guards.ts";
import {
  type BulkProgress,
  type BulkQuery,
  DISCARDABLE,
  newestEvent,
  onAll,
  type Pace,
  planOf,
  REFUSALS,
  REPLAYABLE,
} from "../../receiver/bulk.ts";
import type { InboxOperator } from "../../receiver/operator.ts";
import { findQuarantined, quarantinedEvent } from "../../receiver/to-inbox-event.ts";
import { answerOf } from "../act-answer.ts";
import { refused, streamed, unreadable } from "../answers.ts";
import type { Access, ActAnswer, ActRefusal, BulkLine } from "../api.ts";
import { includes } from "../authorization.ts";
import { type Checked, checked, type Field, flag, numberBetween, oneOf, rowId, text } from "../input.ts";
import { eventFilter } from "../queries.ts";
import type { Call, Route } from "../route.ts";
import { ASK_AGAIN_MS, HEARTBEAT_MS } from "../stream.ts";
import { type Subject, tellAct } from "../tell-act.ts";
import type { Watch } from "../watch.ts";

const PROGRESS_EVERY_MS = 250;
/** What somebody stopped by going away may still be at its last act when they ask again. */
const PATIENCE_MS = 1_000;
const WITHOUT_RIGHT = "unauthorized";

/** The work of each inspector, which its watch stands for. */
const running = new WeakMap<Watch, Promise<void>>();

export const bulkRoute: Route = {
  method: "POST",
  path: "bulk",
  access: "act",
  async run(call) {
    const reading = await call.readJson();
    if (!reading.ok) return unreadable(reading);
    const order = bulkOrder(reading.value);
    if (!order.ok) return refused("invalid_request", order.message);
    await otherEnded(call);
    if (running.has(call.watch))
      return { ...refused("busy", "Other bulk work is under way: wait for its end, or stop it."), status: 409 };
    return streamed("application/x-ndjson", begin(order.value, call));
  },
};

async function otherEnded({ watch, clock }: Call): Promise<void> {
  const other = running.get(watch);
  if (other === undefined) return;
  const over = new AbortController();
  await Promise.race([other, sleep(clock, PATIENCE_MS, over.signal)]);
  over.abort();
}

/** The work begins at once, and whether its answer is read or not it ends as it must. */
function begin(order: BulkOrder, call: Call): BulkLines {
  const stop = new AbortController();
  const over = new AbortController();
  const lines = new BulkLines(call.clock, () => stop.abort());
  const signal = AbortSignal.any([call.signal, stop.signal]);
  void stopWithoutRight(call, over.signal, stop);
  running.set(
    call.watch,
    work(order, call, { lines, signal }).finally(() => over.abort()),
  );
  return lines;
}

/** At a low rate the work takes hours. */
async function stopWithoutRight(call: Call, over: AbortSignal, stop: AbortController): Promise<void> {
  for (;;) {
    await sleep(call.clock, ASK_AGAIN_MS, over);
    if (over.aborted) return;
    const access = await accessNow(call, over);
    if (access === false || !includes(access, bulkRoute.access)) return stop.abort(WITHOUT_RIGHT);
  }
}

/** False when no answer comes before it would be asked for again. */
async function accessNow({ clock, reauthorize }: Call, over: AbortSignal): Promise<Access | false> {
  const answered = new AbortController();
  const late = sleep(clock, ASK_AGAIN_MS, AbortSignal.any([over, answered.signal])).then(() => false as const);
  const access = await Promise.race([reauthorize(), late]);
  answered.abort();
  return access;
}

interface Telling {
  readonly lines: BulkLines;
  readonly signal: AbortSignal;
}

async function work(order: BulkOrder, call: Call, { lines, signal }: Telling): Promise<void> {
  const { inbox, clock, logger, by, watch } = call;
  const { act, dryRun } = order;
  const tell = singleActs(order, call);
  let counts: Counts = {};
  let toldAt = clock.monotonic();
  const end = (code: string | null, upTo: { readonly upTo?: number } = {}) => {
    // First: whoever reads the end may ask for more at once.
    running.delete(watch);
    logger.info({ act, by, dryRun, counts, end: code ?? "done" }, "Bulk work of the inspector ended.");
    lines.end(code === null ? { kind: "done", counts, dryRun, ...upTo } : { kind: "failed", code });
  };
  try {
    const asked = await bounded(order, inbox);
    counts = await doBulk(asked, {
      ...{ inbox, clock, by, signal },
      onProgress({ done, total, counts: sofar, id, end: cameTo }) {
        counts = { ...sofar };
        tell(id, cameTo);
        if (clock.monotonic() - toldAt < PROGRESS_EVERY_MS) return;
        toldAt = clock.monotonic();
        lines.progress({ done, total });
      },
    });
    end(null, dryRun ? boundOf(asked) : {});
  } catch (error) {
    if (signal.aborted) end(signal.reason === WITHOUT_RIGHT ? WITHOUT_RIGHT : "aborted");
    else end(failureCode(error));
  }
}

// What `POST api/bulk` asks for, checked.

interface Common {
  readonly dryRun: boolean;
  readonly ratePerSecond?: number;
}

/** A `BulkRequest` whose query was looked at, too. */
export type BulkOrder = Common &
  (
    | { readonly act: "replay"; readonly query: BulkQuery; readonly upTo?: number; readonly skipSuperseded?: boolean }
    | { readonly act: "discard"; readonly query: BulkQuery; readonly upTo?: number }
    | { readonly act: "unblock" }
    | { readonly act: "replay_quarantined" | "discard_quarantined"; readonly reason?: string; readonly upTo?: number }
  );

type BulkAct = BulkOrder["act"];

type Said = string | number | boolean | object;

const queryField: Field<object> = { rule: "must be a JSON object", holds: isRecord };
const rateField = numberBetween(0.01, 100_000);
const actField = oneOf("replay", "discard", "unblock", "replay_quarantined", "discard_quarantined");
const commonFields = { act: actField, dryRun: flag, ratePerSecond: rateField };
const FIELDS: Readonly<Record<BulkAct, Readonly<Record<string, Field<Said>>>>> = {
  replay: { ...commonFields, query: queryField, upTo: rowId, skipSuperseded: flag },
  discard: { ...commonFields, query: queryField, upTo: rowId },
  unblock: commonFields,
  replay_quarantined: { ...commonFields, reason: text, upTo: rowId },
  discard_quarantined: { ...commonFields, reason: text, upTo: rowId },
};

function bulkOrder(value: unknown): Checked<BulkOrder> {
  const said = isRecord(value) ? value.act : undefined;
  if (!actField.holds(said)) return { ok: false, message: `"act" ${actField.rule}.` };
  const body = checked<Readonly<Record<string, Said>>>(value, FIELDS[said]);
  if (!body.ok) return body;
  // What changes much must not be begun by what was left out.
  if (body.value.dryRun === undefined) return { ok: false, message: `"dryRun" ${flag.rule}.` };
  if (said === "replay" || said === "discard") {
    if (body.value.query === undefined) return { ok: false, message: `"query" ${queryField.rule}.` };
    const filter = checked(body.value.query, eventFilter(said === "replay" ? REPLAYABLE : DISCARDABLE));
    if (!filter.ok) return { ok: false, message: `In "query": ${filter.message}` };
  }
  // Each of its fields was looked at.
  return { ok: true, value: body.value as unknown as BulkOrder };
}

// The answer to a bulk order as it is sent: the newest progress when the reader is ready for it, then the end.

type Progress = Extract<BulkLine, { kind: "progress" }>;
type End = Exclude<BulkLine, Progress>;

class BulkLines implements AsyncIterableIterator<string> {
  readonly #clock: Clock;
  readonly #left: () => void;
  #progress: Progress | null = null;
  #end: End | null = null;
  #isOver = false;
  #wake: () => void = () => {};

  /** @param left - called when the reader is gone */
  constructor(clock: Clock, left: () => void) {
    this.#clock = clock;
    this.#left = left;
  }

  /** Takes the place of a progress that nobody has read yet. */
  progress(progress: Omit<Progress, "kind">): void {
    this.#progress = { kind: "progress", ...progress };
    this.#wake();
  }

  end(end: End): void {
    this.#end = end;
    this.#wake();
  }

  async next(): Promise<IteratorResult<string, undefined>> {
    while (!this.#isOver) {
      const line = this.#take();
      if (line !== null) return { done: false, value: `${JSON.stringify(line)}\n` };
      if (!(await this.#wakesInTime())) return { done: false, value: "\n" };
    }
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<string, undefined>> {
    this.#isOver = true;
    this.#left();
    this.#wake();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #wakesInTime(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = this.#clock.setTimeout(() => resolve(false), HEARTBEAT_MS);
      this.#wake = () => {
        timer.cancel();
        resolve(true);
      };
    });
  }

  #take(): BulkLine | null {
    const line = this.#progress ?? this.#end;
    if (this.#progress === null && this.#end !== null) this.#isOver = true;
    this.#progress = null;
    return line;
  }
}

// Tells the log each act of bulk work, as it tells one that is done alone.

const SINGLE: Readonly<Record<BulkOrder["act"], { readonly act: string; readonly subject: Subject }>> = {
  replay: { act: "replay", subject: "event" },
  discard: { act: "discard", subject: "event" },
  unblock: { act: "unblock", subject: "lane" },
  replay_quarantined: { act: "replay", subject: "quarantine" },
  discard_quarantined: { act: "discard", subject: "quarantine" },
};
const DONE = ["replayed", "discarded", "unblocked"];
/** Nothing was tried. */
const LEFT_OUT = "superseded";

interface Teller {
  readonly logger: Logger;
  readonly by: string;
}

/** Gives what is to be called with the id of each row, and with the count that it went to. A dry run acts on none. */
function singleActs({ act: bulk, dryRun }: BulkOrder, { logger, by }: Teller) {
  const { act, subject } = SINGLE[bulk];
  return (id: number, end: string): void => {
    if (dryRun || end === LEFT_OUT) return;
    tellAct(logger, { act, by, [subject]: id }, DONE.includes(end) ? { ok: true } : { ok: false, reason: end });
  };
}

// Does what a bulk order asks for. What matches is found first; what comes to match meanwhile is left alone.

type Counts = Readonly<Record<string, number>>;

interface BulkContext {
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
async function bounded(order: BulkOrder, inbox: InboxOperator): Promise<BulkOrder> {
  if (!order.dryRun || order.act === "unblock" || order.upTo !== undefined) return order;
  const upTo = "query" in order ? await newestEvent(inbox) : await newestQuarantined(inbox);
  return upTo === 0 ? order : { ...order, upTo };
}

function boundOf(order: BulkOrder): { readonly upTo?: number } {
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
