/** `POST api/bulk`: one act on all that match, told line by line. It ends with whoever asked for it. */
import { failureCode } from "../../inbox/failure.ts";
import { sleep } from "../../internal/clock.ts";
import { refused, streamed, unreadable } from "../answers.ts";
import type { Access } from "../api.ts";
import { includes } from "../authorization.ts";
import { BulkLines } from "../bulk/lines.ts";
import { type BulkOrder, bulkOrder } from "../bulk/order.ts";
import { singleActs } from "../bulk/single-acts.ts";
import { bounded, boundOf, type Counts, doBulk } from "../bulk/work.ts";
import type { Call, Route } from "../route.ts";
import { ASK_AGAIN_MS } from "../stream.ts";
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
