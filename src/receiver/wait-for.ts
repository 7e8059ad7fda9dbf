/** Waits until an event is handled, by whatever process: asks the store again and again. */
import { DeadLettered, OncehookError, SetupError } from "../errors.ts";
import { parseEvent } from "../events/parse.ts";
import { isKnownEventType, KNOWN_EVENT_TYPES, type KnownEventType, type WebhookEvent } from "../events/types.ts";
import type { EventRecord, LaneRecord, LaneTag } from "../inbox/record.ts";
import { sleep } from "../internal/clock.ts";
import { editDistance, invalidOption, numberOption, refuseUnknownOptions } from "../internal/options.ts";
import type { Engine } from "./engine.ts";

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

// What a `waitFor` whose time is over says: what the inbox holds of the message, and what to do.

/** What the last look found: the event in its lane, or the message's lanes without it. */
type Unhandled =
  | { readonly outcome: "pending"; readonly lane: LaneRecord }
  | { readonly outcome: "missing"; readonly lanes: readonly LaneRecord[] };

interface Waited {
  readonly ref: MessageRef;
  readonly timeoutMs: number;
  readonly now: number;
}

/** Of a lane's event types, in a message. Types of the service's own are texts: only what looks like a name is shown. */
const MOST_SHOWN = 10;
const NAME = /^[\w.:-]{1,64}$/;

/** The `wait_timeout`, with what to do about it. Ids, types and states only. */
function timedOut(look: Unhandled, { ref, timeoutMs, now }: Waited): OncehookError {
  const eventTypes = typesOf(look.outcome === "pending" ? [look.lane] : look.lanes);
  const why = look.outcome === "pending" ? whyPending(look.lane, now) : whyMissing(eventTypes);
  return new OncehookError("wait_timeout", `The event was not handled within ${timeoutMs} ms: ${why}`, {
    fields: {
      messageId: ref.messageId,
      state: look.outcome,
      laneStatus: look.outcome === "pending" ? look.lane.status : null,
      eventTypes,
    },
  });
}

function whyMissing(eventTypes: string): string {
  if (eventTypes !== "") return `of this message only ${eventTypes} arrived. The service may send the rest yet.`;
  return "nothing of this message has arrived. Look whether the ids are right, and whether the service's deliveries reach a receiver with this inbox.";
}

/** The lane's status is that of its head, which may be an event before the one waited for. */
function whyPending({ status, readyAt }: LaneRecord, now: number): string {
  if (status === "blocked") return "it is stored behind a dead letter: replay that one, or receiver.inbox.unblock().";
  const isDue = (readyAt ?? now) <= now;
  if (isDue || status === "ready" || status === "idle") {
    return "it is stored, and no receiver of this inbox takes it: start() one, or drain().";
  }
  switch (status) {
    case "gap":
      return "it is stored, and waits for a missing event before it, as long as gapWait says.";
    case "backoff":
      return "it is stored; a handler failed, and is called again. The log says why.";
    case "leased":
      return "it is stored, and a handler is at work on it or on one before it.";
    default:
      return status satisfies never;
  }
}

function typesOf(lanes: readonly LaneRecord[]): string {
  const types = lanes.flatMap(({ events }) => events.map(({ eventType }) => eventType));
  const shown = new Set(types.map((type) => (NAME.test(type) ? type : "(unnamed)")));
  return [...shown].slice(0, MOST_SHOWN).join(", ");
}

// What `waitFor` is asked for: a message and one of its events, checked, and whether a stored event is that one.

/** Which message: as `client.messages.send` named it, or an inbound one by its `data.messageId`. */
export interface MessageRef {
  readonly apiClientId: string;
  readonly messageId: string;
}

export type Wanted = KnownEventType | (string & Record<never, never>) | ((event: WebhookEvent) => boolean);

/** Measuring a long text would take long, and it is no misspelt type. */
const LONGEST_COMPARED = 32;

/** @throws SetupError `invalid_option` where something is missing, or a type is a misspelt one */
function checkWanted(ref: MessageRef, wanted: Wanted): void {
  if (typeof ref !== "object" || ref === null) throw invalidOption("ref", "must be { apiClientId, messageId }", ref);
  for (const name of ["apiClientId", "messageId"] as const) {
    if (!isText(ref[name])) throw invalidOption(`ref.${name}`, "must be a text that is not empty", ref[name]);
  }
  if (typeof wanted === "function") return;
  if (!isText(wanted)) throw invalidOption("wanted", "must be an event type or a function", wanted);
  const meant = misspelt(wanted);
  if (meant === undefined) return;
  const message = `waitFor() knows no event type "${wanted}". Did you mean "${meant}"? If the service has such a type, give a function.`;
  throw new SetupError("invalid_option", message, { fields: { option: "wanted" } });
}

/** The event, if it is the wanted one. One whose body is pruned parses to none: settled long ago, it can no longer be given. */
function matching(record: EventRecord, wanted: Wanted): WebhookEvent | null {
  if (typeof wanted === "string" && record.eventType !== wanted) return null;
  const parsed = parseEvent(record.raw);
  if (!parsed.ok) return null;
  return typeof wanted === "string" || wanted(parsed.event) ? parsed.event : null;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/**
 * The known type that was meant. Narrower than in `on()`, for a type that the service adds later may be waited for:
 * `message.read` is no misspelt `message.sent`. So no more letters may differ than a third of the type's last word.
 */
function misspelt(type: string): KnownEventType | undefined {
  if (isKnownEventType(type) || type.length > LONGEST_COMPARED) return undefined;
  const given = type.toLowerCase();
  return KNOWN_EVENT_TYPES.find((known) => {
    const word = known.slice(known.indexOf(".") + 1);
    return Math.min(editDistance(given, known), editDistance(given, word)) <= Math.floor(word.length / 3);
  });
}
