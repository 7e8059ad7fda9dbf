/** What a `waitFor` whose time is over says: what the inbox holds of the message, and what to do. */
import { OncehookError } from "../errors.ts";
import type { LaneRecord } from "../inbox/record.ts";
import type { MessageRef } from "./wanted.ts";

/** What the last look found: the event in its lane, or the message's lanes without it. */
export type Unhandled =
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
export function timedOut(look: Unhandled, { ref, timeoutMs, now }: Waited): OncehookError {
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
