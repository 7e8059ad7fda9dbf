/** `receiver.waitFor()`: waits until an event is handled, by any process. It polls the store. */
import { DeadLettered, OncehookError, SetupError } from "../errors.ts";
import type { EventBody, EventSummary, LaneRecord } from "../inbox/record.ts";
import { MOST_BYTES } from "../inbox/store-rules.ts";
import { sleep } from "../internal/clock.ts";
import { editDistance, invalidOption, numberOption, refuseUnknownOptions } from "../internal/options.ts";
import type { ConnectedSource, Wanted } from "../sources/source.ts";
import type { Engine } from "./engine.ts";

export interface WaitOptions {
  /** Ends the wait: it rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
  /** Milliseconds, 0 to 86,400,000. Default 30,000. */
  readonly timeoutMs?: number;
}

/** What one read of the inbox found. An event that ended without being handled throws instead. */
type Found = { readonly outcome: "handled"; readonly event: object } | Unhandled;

/**
 * The store is read again after a twentieth of the time waited so far, within these bounds. Events that this process handles are
 * found in the same way. A read takes about 0.1 ms, so a thousand long waits take a tenth of a core.
 */
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;

/**
 * @throws DeadLettered if the event ended without being handled. `fields.state` is `dead`, `discarded` by an operator, `late` (recorded
 * without an `onLate` handler), `unhandled` (no handler for its type), or `filtered` (awaited by its type, in a lane with an order)
 * @throws SetupError `invalid_option` for a missing argument or a misspelt event type
 * @throws OncehookError `wait_timeout`; `fields.state` is `pending` or `missing`
 * @throws the signal's reason when it aborts
 */
export async function waitForEvent<Tx>(
  engine: Engine<Tx>,
  source: WaitSource,
  ref: object,
  wanted: WantedEvent<never>,
  options: WaitOptions,
): Promise<object> {
  const { clock } = engine.options;
  const places = source.lookUp?.(ref) ?? [];
  checkWanted(wanted, source.types.known ?? []);
  refuseUnknownOptions("waitFor", options, ["signal", "timeoutMs"]);
  const timeoutMs = numberOption("timeoutMs", options.timeoutMs, 30_000, { min: 0, max: 86_400_000, unit: "ms" });
  const begunAt = clock.monotonic();
  await engine.open();
  for (;;) {
    options.signal?.throwIfAborted();
    const found = await readInbox(engine, source, places, wanted);
    if (found.outcome === "handled") return found.event;
    const waitedMs = clock.monotonic() - begunAt;
    if (waitedMs >= timeoutMs) throw timedOut(found, places, timeoutMs, clock.now());
    await sleep(clock, Math.min(pauseAfter(waitedMs), timeoutMs - waitedMs), options.signal);
  }
}

function pauseAfter(waitedMs: number): number {
  return Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, waitedMs / 20));
}

async function readInbox<Tx>(
  engine: Engine<Tx>,
  source: WaitSource,
  places: readonly Wanted[],
  wanted: WantedEvent<never>,
): Promise<Found> {
  const { store } = engine.options;
  const lanes: LaneRecord[] = [];
  let waiting: LaneRecord | null = null;
  for (const place of places) {
    const lane = await store.lane(place);
    if (lane === null) continue;
    lanes.push(lane);
    const wantedIds = lane.events.filter((record) => isOfType(record, wanted)).map(({ id }) => id);
    const bodies = await store.bodies(wantedIds, MOST_BYTES);
    for (const record of lane.events) {
      if (record.outcome === "filtered" && record.eventType === wanted) throw ended(record);
      if (!isOfType(record, wanted)) continue;
      const body = bodies.get(record.id) ?? (await store.bodies([record.id], 1)).get(record.id);
      const event = body === undefined ? null : matching(source, body, wanted);
      if (event === null) continue;
      if (record.outcome === "handled") return { outcome: "handled", event };
      if (record.state === "pending") {
        waiting ??= lane;
        continue;
      }
      throw ended(record);
    }
  }
  return waiting === null ? { outcome: "missing", lanes } : { outcome: "pending", lane: waiting };
}

function ended({ id, outcome, state: lastState, errorCode }: EventSummary): DeadLettered {
  const state = outcome ?? lastState;
  return new DeadLettered(`The awaited event ended as "${state}" (${errorCode ?? "no error"}).`, {
    fields: { eventId: id, state, code: errorCode },
  });
}

/** What the last read found: the event in its lane, or the message's lanes without the event. */
type Unhandled =
  | { readonly outcome: "pending"; readonly lane: LaneRecord }
  | { readonly outcome: "missing"; readonly lanes: readonly LaneRecord[] };

/** Event types in one error message. They are texts from outside, so only those that look like a name are shown. */
const MOST_SHOWN = 10;
const NAME = /^[\w.:-]{1,64}$/;

/** The error `wait_timeout`: what the inbox holds of the message, and what to do. Ids, types and states only. */
function timedOut(found: Unhandled, [place]: readonly Wanted[], timeoutMs: number, now: number): OncehookError {
  const eventTypes = typesOf(found.outcome === "pending" ? [found.lane] : found.lanes);
  const why = found.outcome === "pending" ? whyPending(found.lane, now) : whyMissing(eventTypes);
  return new OncehookError("wait_timeout", `The event was not handled within ${timeoutMs} ms: ${why}`, {
    fields: {
      awaited: place === undefined ? null : "id" in place ? place.id : place.name,
      state: found.outcome,
      laneStatus: found.outcome === "pending" ? found.lane.status : null,
      eventTypes,
    },
  });
}

function whyMissing(eventTypes: string): string {
  if (eventTypes !== "") return `only ${eventTypes} of this message arrived. The service may still send the rest.`;
  return "nothing of this message has arrived. Check that the ids are right, and that the service's deliveries reach a receiver with this inbox.";
}

/** The lane's status is that of its head, which may be an earlier event than the awaited one. */
function whyPending({ status, readyAt, events }: LaneRecord, now: number): string {
  if (status === "blocked")
    return "it is stored behind a dead letter. Replay that one, or call receiver.inbox.unblock().";
  const isDue = (readyAt ?? now) <= now;
  if (isDue || status === "ready" || status === "idle") {
    return "it is stored, and no receiver of this inbox handles it. Call start() or drain().";
  }
  switch (status) {
    case "gap":
      return "it is stored, and waits for a missing event before it, for as long as gapWait allows.";
    case "backoff":
      return events.some(({ state, attempts }) => state === "pending" && attempts > 0)
        ? "it is stored. A handler failed and will be retried; the log has the error."
        : "it is stored, and waits for its turn: a rate, or a limit of handlers at once, puts it off.";
    case "leased":
      return "it is stored, and a handler runs for it or for an event before it.";
    default:
      return status satisfies never;
  }
}

function typesOf(lanes: readonly LaneRecord[]): string {
  const types = lanes.flatMap(({ events }) => events.map(({ eventType }) => eventType));
  const shown = new Set(types.map((type) => (NAME.test(type) ? type : "(unnamed)")));
  return [...shown].slice(0, MOST_SHOWN).join(", ");
}

/** The awaited event: its type, or a function that returns true for it. */
export type WantedEvent<Event> = (string & Record<never, never>) | ((event: Event) => boolean);

/** The source of the awaited event. */
type WaitSource = Pick<ConnectedSource, "reread" | "types" | "lookUp">;

/** A longer text is not a misspelt type, and the comparison would take long. */
const LONGEST_COMPARED = 32;

/** @throws SetupError `invalid_option` for a missing argument or a misspelt event type */
function checkWanted(wanted: WantedEvent<never>, known: readonly string[]): void {
  if (typeof wanted === "function") return;
  if (!isText(wanted)) throw invalidOption("wanted", "must be an event type or a function", wanted);
  const meant = misspelt(wanted, known);
  if (meant === undefined) return;
  const message = `waitFor() knows no event type "${wanted}". Did you mean "${meant}"? If the service has such a type, pass a function.`;
  throw new SetupError("invalid_option", message, { fields: { option: "wanted" } });
}

/** One whose body is pruned ended long ago, and can no longer be returned. */
function isOfType({ eventType, hasBody }: EventSummary, wanted: WantedEvent<never>): boolean {
  return hasBody && (typeof wanted !== "string" || eventType === wanted);
}

/** The event, if it is the awaited one. */
function matching(source: WaitSource, body: EventBody, wanted: WantedEvent<never>): object | null {
  const event = source.reread(body);
  if (event === null) return null;
  // The source's own event: what the function takes is decided by the receiver's type.
  return typeof wanted !== "function" || wanted(event as never) ? event : null;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/**
 * The known type that was probably meant. Stricter than in `on()`, because a type that the service adds later may be awaited:
 * `message.read` is not a misspelt `message.sent`. At most a third of the letters of the type's last word may differ.
 */
function misspelt(type: string, known: readonly string[]): string | undefined {
  if (known.includes(type) || type.length > LONGEST_COMPARED) return undefined;
  const given = type.toLowerCase();
  return known.find((each) => {
    const word = each.slice(each.indexOf(".") + 1);
    return Math.min(editDistance(given, each), editDistance(given, word)) <= Math.floor(word.length / 3);
  });
}
