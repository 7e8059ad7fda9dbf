/** One act on one row; and `POST api/bulk`: one act on all rows that match, answered line by line, until the client goes away. */

import { explained, failureCode, placeFields } from "../../../inbox/masking.ts";
import type { ActResult } from "../../../inbox/store.ts";
import { type Clock, sleep } from "../../../internal/clock.ts";
import type { Logger } from "../../../internal/logger.ts";
import { isRecord } from "../../../internal/options.ts";
import { DISCARDABLE, REPLAYABLE } from "../../../receiver/bulk.ts";
import {
  actAnswer,
  type BulkCounts,
  type BulkOrder,
  boundedOrder,
  DONE,
  runBulk,
} from "../../../receiver/bulk-order.ts";
import type { InboxOperator } from "../../../receiver/operator.ts";
import { includes } from "../access.ts";
import type { Access, BulkLine } from "../api.ts";
import { jsonAnswer, refused, streamed, unreadableBody } from "../http.ts";
import {
  type Checked,
  checked,
  eventFilter,
  type Field,
  flag,
  numberBetween,
  oneOf,
  refusedBody,
  rowId,
  textField,
} from "../input.ts";
import type { ApiCall, ApiRoute } from "../route.ts";

const PROGRESS_EVERY_MS = 250;
/** Some proxies close a connection that is silent for half a minute. */
const HEARTBEAT_MS = 15_000;
/** How often the right to act is checked again. */
const ASK_AGAIN_MS = 60_000;
/** After a client disconnected, its work may still finish an act when the client asks again. */
const PATIENCE_MS = 1_000;
const WITHOUT_RIGHT = "unauthorized";

/** A checked request. */
type BulkJob = BulkOrder & { readonly dryRun: boolean; readonly ratePerSecond?: number };

/** At most one work on an inbox in this process. */
const running = new WeakMap<InboxOperator, Promise<void>>();

export const bulkRoute: ApiRoute = {
  method: "POST",
  path: "bulk",
  access: "act",
  async run(call) {
    const reading = await call.readJson();
    if (!reading.ok) return unreadableBody(reading);
    const job = bulkJob(reading.value);
    if (!job.ok) return refused("invalid_request", job.message);
    await otherEnded(call);
    if (running.has(call.inbox)) return refused("busy", "Other bulk work is running: wait for its end, or stop it.");
    return streamed("application/x-ndjson", begin(job.value, call));
  },
};

async function otherEnded({ inbox, clock }: ApiCall): Promise<void> {
  const other = running.get(inbox);
  if (other === undefined) return;
  const over = new AbortController();
  await Promise.race([other, sleep(clock, PATIENCE_MS, over.signal)]);
  over.abort();
}

/** Starts the work at once; it ends by itself even if nobody reads the answer. */
function begin(job: BulkJob, call: ApiCall): BulkLines {
  const stop = new AbortController();
  const over = new AbortController();
  const lines = new BulkLines(call.clock, () => stop.abort());
  const signal = AbortSignal.any([call.signal, stop.signal]);
  void stopWithoutRight(call, over.signal, stop);
  running.set(
    call.inbox,
    work(job, call, lines, signal).finally(() => over.abort()),
  );
  return lines;
}

/** Work at a low rate takes hours: the right to act is checked again and again. */
async function stopWithoutRight(call: ApiCall, over: AbortSignal, stop: AbortController): Promise<void> {
  for (;;) {
    await sleep(call.clock, ASK_AGAIN_MS, over);
    if (over.aborted) return;
    const access = await accessNow(call, over);
    if (access === false || !includes(access, bulkRoute.access)) return stop.abort(WITHOUT_RIGHT);
  }
}

/** False if there is no answer before the next check is due. */
async function accessNow({ clock, reauthorize }: ApiCall, over: AbortSignal): Promise<Access | false> {
  const answered = new AbortController();
  const late = sleep(clock, ASK_AGAIN_MS, AbortSignal.any([over, answered.signal])).then(() => false as const);
  const access = await Promise.race([reauthorize(), late]);
  answered.abort();
  return access;
}

async function work(job: BulkJob, call: ApiCall, lines: BulkLines, signal: AbortSignal): Promise<void> {
  const { inbox, clock, logger, by } = call;
  const { act, dryRun, ratePerSecond } = job;
  let counts: BulkCounts = {};
  let toldAt = clock.monotonic();
  const end = (code: string | null, upTo?: number) => {
    // Before the last line: a client that has read it may start other work at once.
    running.delete(inbox);
    logger.info({ act, by, dryRun, counts, end: code ?? "done" }, "Bulk work of the inspector ended.");
    lines.end(
      code === null ? { kind: "done", counts: { ...counts }, dryRun, ...(upTo && { upTo }) } : { kind: "failed", code },
    );
  };
  try {
    const order = dryRun ? await boundedOrder(inbox, job) : job;
    counts = await runBulk(inbox, order, {
      ...{ clock, by, signal, dryRun, ...(ratePerSecond !== undefined && { ratePerSecond }) },
      onProgress(progress) {
        counts = progress.counts;
        if (!dryRun) logAct(call, act, progress);
        if (clock.monotonic() - toldAt < PROGRESS_EVERY_MS) return;
        toldAt = clock.monotonic();
        lines.progress({ done: progress.done, total: progress.total });
      },
    });
    end(null, dryRun && "upTo" in order ? order.upTo : undefined);
  } catch (error) {
    if (signal.aborted) end(signal.reason === WITHOUT_RIGHT ? WITHOUT_RIGHT : "aborted");
    else end(failureCode(error));
  }
}

type Said = string | number | boolean | object;

const queryField: Field<object> = { rule: "must be a JSON object", holds: isRecord };
const rateField = numberBetween(0.01, 100_000);
const actField = oneOf("replay", "discard", "unblock", "replay_quarantined", "discard_quarantined");
const commonFields = { act: actField, dryRun: flag, ratePerSecond: rateField };
const FIELDS: Readonly<Record<BulkOrder["act"], Readonly<Record<string, Field<Said>>>>> = {
  replay: { ...commonFields, query: queryField, upTo: rowId, skipSuperseded: flag },
  discard: { ...commonFields, query: queryField, upTo: rowId },
  unblock: commonFields,
  replay_quarantined: { ...commonFields, reason: textField, upTo: rowId },
  discard_quarantined: { ...commonFields, reason: textField, upTo: rowId },
};

function bulkJob(value: unknown): Checked<BulkJob> {
  const said = isRecord(value) ? value.act : undefined;
  if (!actField.holds(said)) return { ok: false, message: `"act" ${actField.rule}.` };
  const body = checked<Readonly<Record<string, Said>>>(value, FIELDS[said]);
  if (!body.ok) return body;
  // Required: a request without it must not change rows.
  if (body.value.dryRun === undefined) return { ok: false, message: `"dryRun" ${flag.rule}.` };
  if (said === "replay" || said === "discard") {
    if (body.value.query === undefined) return { ok: false, message: `"query" ${queryField.rule}.` };
    const filter = checked(body.value.query, eventFilter(said === "replay" ? REPLAYABLE : DISCARDABLE));
    if (!filter.ok) return { ok: false, message: `In "query": ${filter.message}` };
  }
  // Each of its fields was checked.
  return { ok: true, value: body.value as unknown as BulkJob };
}

type Progress = Extract<BulkLine, { kind: "progress" }>;
type End = Exclude<BulkLine, Progress>;

/** The body of the answer: the newest progress whenever the client is ready to read, then the end. */
class BulkLines implements AsyncIterableIterator<string> {
  readonly #clock: Clock;
  readonly #left: () => void;
  #progress: Progress | null = null;
  #end: End | null = null;
  #isOver = false;
  #wake: () => void = () => {};

  /** @param left - called when the client disconnects */
  constructor(clock: Clock, left: () => void) {
    this.#clock = clock;
    this.#left = left;
  }

  /** Replaces a progress that was not read yet. */
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

/** The names of the act and of the subject in a row's log line. */
const ROW_ACTS: Readonly<Record<BulkOrder["act"], { readonly act: string; readonly subject: ActSubject }>> = {
  replay: { act: "replay", subject: "event" },
  discard: { act: "discard", subject: "event" },
  unblock: { act: "unblock", subject: "laneId" },
  replay_quarantined: { act: "replay", subject: "quarantine" },
  discard_quarantined: { act: "discard", subject: "quarantine" },
};

/** Logs one act of bulk work in the same way as a single act. */
function logAct(
  { logger, by }: ApiCall,
  bulk: BulkOrder["act"],
  { id, end }: { readonly id: number; readonly end: string },
): void {
  // Skipped without an act.
  if (end === "superseded") return;
  const { act, subject } = ROW_ACTS[bulk];
  tellAct(logger, { act, by, [subject]: id }, end === DONE[bulk] ? { ok: true } : { ok: false, reason: end });
}

export const actRoutes: readonly ApiRoute[] = [
  act("events/:id/replay", "event", ({ inbox, id, by }) => inbox.replay(id, { by })),
  act("events/:id/discard", "event", ({ inbox, id, by }) => inbox.discard(id, { by })),
  act("lanes/:id/unblock", "laneId", ({ inbox, id, by }) => inbox.unblock(id, { by })),
  act("lanes/:id/release", "laneId", ({ inbox, id, by }) => inbox.releaseGap(id, { by })),
  act("quarantine/:id/replay", "quarantine", ({ inbox, id, by }) => inbox.replayQuarantined(id, { by })),
  act("quarantine/:id/discard", "quarantine", ({ inbox, id, by }) => inbox.discardQuarantined(id, { by })),
];

/** `subject` says what `:id` of the path names. */
function act(path: string, subject: ActSubject, run: (call: ApiCall) => Promise<ActResult>): ApiRoute {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return {
    method: "POST",
    path,
    access: "act",
    async run(call) {
      const refusal = await refusedBody(call);
      if (refusal !== null) return refusal;
      const { logger, by, id } = call;
      const told = { act: name, by, [subject]: id };
      const answer = await actAnswer(() => run(call)).catch((error: unknown) => {
        const said = "An act failed in the inspector; the inbox's audit says whether it was done.";
        logger.warn({ ...told, ...placeFields(error) }, explained(said, error));
        throw error;
      });
      tellAct(logger, told, answer);
      return jsonAnswer(answer, answer.ok ? 200 : answer.reason === "not_found" ? 404 : 409);
    },
  };
}

/** The name of the log field for what was acted on. */
export type ActSubject = "event" | "laneId" | "quarantine";

interface ToldAct extends Readonly<Partial<Record<ActSubject, number>>> {
  readonly act: string;
  readonly by: string;
}

type CameTo = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Logs one act: who, what, which, and the result. */
function tellAct(logger: Logger, told: ToldAct, cameTo: CameTo): void {
  const { ok } = cameTo;
  if (ok) logger.info({ ...told, ok }, "An act was done in the inspector.");
  else logger.info({ ...told, ok, reason: cameTo.reason }, "An act was refused in the inspector.");
}
