/** What the demo makes of a run: one story per message, and the checks that decide about its exit code. */
import type { HandledRow } from "../shared/handled.ts";
import type { Check } from "../shared/terminal.ts";
import { type Load, nameOf } from "./load.ts";
import type { DemoState, StoredEvent } from "./receiver.ts";
import type { Sent } from "./sender.ts";

export interface Run {
  readonly load: Load;
  readonly sent: readonly Sent[];
  readonly state: DemoState;
  /** In the order of handling. */
  readonly handled: readonly HandledRow[];
  /** How many acknowledged events the killed process had not handled. */
  readonly waitingAtKill: number;
  readonly exitCode: number | null;
}

export interface Story {
  readonly messageId: string;
  readonly arrived: readonly number[];
  readonly handled: readonly number[];
  readonly attempts: readonly number[];
  /** Deliveries that the receiver knew already: repeats, and those sent again after the kill. */
  readonly duplicates: number;
  readonly note: string;
}

export function storiesOf({ load, sent, state, handled }: Run): Story[] {
  const ids = [...new Set(load.events.flatMap(({ sequence, messageId }) => (sequence > 0 && messageId) || []))].sort();
  return ids.map((messageId) => {
    const arrived = state.events.filter((event) => event.messageId === messageId);
    const bySequence = [...arrived].sort((a, b) => a.sequence - b.sequence);
    const known = sent.filter((one) => one.delivery.event?.messageId === messageId && one.outcome === "duplicate");
    return {
      messageId,
      arrived: arrived.map(({ sequence }) => sequence),
      handled: handled.filter((row) => row.message_id === messageId).map(({ sequence }) => sequence),
      attempts: bySequence.map(({ attempts }) => attempts),
      duplicates: known.length,
      note: noteOf(load, messageId, bySequence),
    };
  });
}

function noteOf(load: Load, messageId: string, events: readonly StoredEvent[]): string {
  const usual = load.failsTwice.includes(messageId) ? 3 : 1;
  const notes = [
    load.failsTwice.includes(messageId) && "handler fails twice",
    load.endsFailed.has(messageId) && "ends with message.failed",
    events.some(({ attempts }) => attempts > usual) && "killed while it was handled",
  ];
  return notes.filter(Boolean).join(", ");
}

export function checksOf(run: Run, stories: readonly Story[]): Check[] {
  const { load, sent, state, handled, exitCode, waitingAtKill } = run;
  const acknowledged = new Set(
    sent.flatMap(({ delivery, status }) => (status === 200 && delivery.event && nameOf(delivery.event)) || []),
  );
  const times = countBy(
    handled.map((row) => nameOf({ messageId: row.message_id, sequence: row.sequence, eventType: row.event_type })),
  );
  const once = [...acknowledged].filter((name) => times.get(name) === 1).length;
  const ascending = stories.filter(({ handled: order }) => order.join() === [...order].sort((a, b) => a - b).join());
  const shuffled = stories.filter(({ arrived, handled: order }) => arrived.join() !== order.join());
  return [
    check(acknowledged.size === load.events.length, `every event was acknowledged: ${acknowledged.size}`),
    check(
      once === acknowledged.size && handled.length === once && once > 0,
      `every acknowledged event was handled exactly once in the table: ${once} of ${acknowledged.size}`,
    ),
    check(
      ascending.length === stories.length && shuffled.length > 0,
      `every message was handled in ascending sequence: ${ascending.length} of ${stories.length}, ${shuffled.length} of them arrived out of order`,
    ),
    thirdAttempt(stories.filter(({ messageId }) => load.failsTwice.includes(messageId))),
    ...(["current", "previous"] as const).map((slot) => acceptedBy(run, slot)),
    ...(["forged", "stale", "malformed"] as const).map((kind) => refusedWith401(run, kind)),
    quarantined(run, state),
    check(waitingAtKill > 0, `acknowledged events that the kill found unhandled: ${waitingAtKill}`),
    check(exitCode === 0, "SIGTERM ended the receiver with exit code 0"),
  ];
}

function acceptedBy({ sent }: Run, slot: "current" | "previous"): Check {
  const signed = sent.filter(({ delivery }) => delivery.event !== undefined && delivery.secret === slot);
  const accepted = signed.filter(({ status }) => status === 200);
  const ok = signed.length > 0 && accepted.length === signed.length;
  return check(ok, `deliveries signed with the ${slot} secret were accepted: ${accepted.length} of ${signed.length}`);
}

function refusedWith401({ sent }: Run, kind: "forged" | "stale" | "malformed"): Check {
  const own = sent.filter(({ delivery }) => delivery.kind === kind);
  const refused = own.filter(({ status }) => status === 401);
  return check(
    own.length > 0 && refused.length === own.length,
    `${kind} deliveries got 401: ${refused.length} of ${own.length}`,
  );
}

/** An attempt that the kill cut short counts as one, so there can be a fourth. */
function thirdAttempt(stories: readonly Story[]): Check {
  const attempts = stories.flatMap((story) => story.attempts);
  const more = attempts.filter((count) => count === 4).length;
  const ok = attempts.length > 0 && attempts.every((count) => count === 3 || count === 4) && more <= stories.length;
  const killed = more === 0 ? "" : `, ${more} of them on the fourth, because of the kill`;
  return check(ok, `events whose handler failed twice were handled on the third attempt: ${attempts.length}${killed}`);
}

function quarantined({ sent }: Run, state: DemoState): Check {
  const own = sent.filter(({ delivery }) => delivery.kind === "no event");
  const ok = own.length > 0 && own.every(({ status }) => status === 200) && state.quarantined === own.length;
  return check(ok, `signed bodies that are no event were quarantined: ${state.quarantined} of ${own.length}`);
}

function check(ok: boolean, text: string): Check {
  return { ok, text };
}

function countBy(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
