/** Waits until an event is handled, by whatever process: asks the store again and again. */
import { DeadLettered, OncehookError } from "../errors.ts";
import { parseEvent } from "../events/parse.ts";
import type { KnownEventType, WebhookEvent } from "../events/types.ts";
import type { EventRecord, LaneTag } from "../inbox/record.ts";
import { sleep } from "../internal/clock.ts";
import { numberOption, refuseUnknownOptions } from "../internal/options.ts";
import type { Engine } from "./engine.ts";

/** Which message: as `client.messages.send` named it, or an inbound one by its `data.messageId`. */
export interface MessageRef {
  readonly apiClientId: string;
  readonly messageId: string;
}

export interface WaitOptions {
  readonly signal?: AbortSignal;
  /** Milliseconds, 0 to 86,400,000. Default 30,000. */
  readonly timeoutMs?: number;
}

export type Wanted = KnownEventType | (string & Record<never, never>) | ((event: WebhookEvent) => boolean);

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
 * @throws OncehookError `wait_timeout`
 * @throws the signal's reason when it aborts
 */
export async function waitForEvent<Tx>(
  engine: Engine<Tx>,
  ref: MessageRef,
  wanted: Wanted,
  options: WaitOptions,
): Promise<WebhookEvent> {
  const { clock } = engine.options;
  refuseUnknownOptions("waitFor", options, ["signal", "timeoutMs"]);
  const timeoutMs = numberOption("timeoutMs", options.timeoutMs, 30_000, { min: 0, max: 86_400_000, unit: "ms" });
  const begunAt = clock.monotonic();
  await engine.open();
  for (;;) {
    options.signal?.throwIfAborted();
    const event = await settledEvent(engine, ref, wanted);
    if (event !== null) return event;
    const waitedMs = clock.monotonic() - begunAt;
    if (waitedMs >= timeoutMs)
      throw new OncehookError("wait_timeout", `The event was not handled within ${timeoutMs} ms.`, {
        fields: { messageId: ref.messageId },
      });
    await sleep(clock, Math.min(pauseAfter(waitedMs), timeoutMs - waitedMs), options.signal);
  }
}

function pauseAfter(waitedMs: number): number {
  return Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, waitedMs / 20));
}

async function settledEvent<Tx>(engine: Engine<Tx>, ref: MessageRef, wanted: Wanted): Promise<WebhookEvent | null> {
  for (const tag of TAGS) {
    const lane = await engine.options.store.lane({ ...ref, tag });
    for (const record of lane?.events ?? []) {
      const event = matching(record, wanted);
      if (event === null || record.state === "pending") continue;
      if (record.outcome === "handled") return event;
      const state = record.outcome ?? record.state;
      throw new DeadLettered(`The event waited for ended as "${state}" (${record.errorCode ?? "no error"}).`, {
        fields: { eventId: record.id, state, code: record.errorCode },
      });
    }
  }
  return null;
}

/** An event whose body is pruned was settled long ago; it can no longer be given. */
function matching(record: EventRecord, wanted: Wanted): WebhookEvent | null {
  if (record.raw === null) return null;
  if (typeof wanted === "string" && record.eventType !== wanted) return null;
  const parsed = parseEvent(record.raw);
  if (!parsed.ok) return null;
  return typeof wanted === "string" || wanted(parsed.event) ? parsed.event : null;
}
