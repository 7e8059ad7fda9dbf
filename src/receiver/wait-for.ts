/** Waits until an event is handled, by whatever process: asks the store again and again. */
import { DeadLettered } from "../errors.ts";
import type { WebhookEvent } from "../events/types.ts";
import type { LaneRecord, LaneTag } from "../inbox/record.ts";
import { sleep } from "../internal/clock.ts";
import { numberOption, refuseUnknownOptions } from "../internal/options.ts";
import type { Engine } from "./engine.ts";
import { timedOut, type Unhandled } from "./wait-timeout.ts";
import { checkWanted, type MessageRef, matching, type Wanted } from "./wanted.ts";

export interface WaitOptions {
  readonly signal?: AbortSignal;
  /** Milliseconds, 0 to 86,400,000. Default 30,000. */
  readonly timeoutMs?: number;
}

/** What a look into the inbox found. An event that ended otherwise throws. */
type Look = { readonly outcome: "handled"; readonly event: WebhookEvent } | Unhandled;

/**
 * The store is asked again after a twentieth of the time waited so far, within these bounds; also for what this process
 * handles, so that there is one way to know. A look takes about 0.1 ms, so a thousand that have waited for long take a tenth
 * of a core.
 */
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
const TAGS: readonly LaneTag[] = ["outbound", "inbound"];

/**
 * @throws DeadLettered when the event ended without having been handled; `fields.state` says how: `dead`, `discarded` by an
 * operator, recorded as `late` because no `onLate` took it, or `unhandled` because no handler did
 * @throws SetupError `invalid_option` for an argument that is missing, or an event type that is a misspelt one
 * @throws OncehookError `wait_timeout`; `fields.state` says whether the event is `pending` or `missing`
 * @throws the signal's reason when it aborts
 */
export async function waitForEvent<Tx>(
  engine: Engine<Tx>,
  ref: MessageRef,
  wanted: Wanted,
  options: WaitOptions,
): Promise<WebhookEvent> {
  const { clock } = engine.options;
  checkWanted(ref, wanted);
  refuseUnknownOptions("waitFor", options, ["signal", "timeoutMs"]);
  const timeoutMs = numberOption("timeoutMs", options.timeoutMs, 30_000, { min: 0, max: 86_400_000, unit: "ms" });
  const begunAt = clock.monotonic();
  await engine.open();
  for (;;) {
    options.signal?.throwIfAborted();
    const look = await lookFor(engine, ref, wanted);
    if (look.outcome === "handled") return look.event;
    const waitedMs = clock.monotonic() - begunAt;
    if (waitedMs >= timeoutMs) throw timedOut(look, { ref, timeoutMs, now: clock.now() });
    await sleep(clock, Math.min(pauseAfter(waitedMs), timeoutMs - waitedMs), options.signal);
  }
}

function pauseAfter(waitedMs: number): number {
  return Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, waitedMs / 20));
}

async function lookFor<Tx>(engine: Engine<Tx>, ref: MessageRef, wanted: Wanted): Promise<Look> {
  const lanes: LaneRecord[] = [];
  let waiting: LaneRecord | null = null;
  for (const tag of TAGS) {
    const lane = await engine.options.store.lane({ apiClientId: ref.apiClientId, messageId: ref.messageId, tag });
    if (lane === null) continue;
    lanes.push(lane);
    for (const record of lane.events) {
      const event = matching(record, wanted);
      if (event === null) continue;
      if (record.outcome === "handled") return { outcome: "handled", event };
      if (record.state === "pending") {
        waiting ??= lane;
        continue;
      }
      const state = record.outcome ?? record.state;
      throw new DeadLettered(`The event waited for ended as "${state}" (${record.errorCode ?? "no error"}).`, {
        fields: { eventId: record.id, state, code: record.errorCode },
      });
    }
  }
  return waiting === null ? { outcome: "missing", lanes } : { outcome: "pending", lane: waiting };
}
