/** What is sent to engines, what they hold of it, and what is wrong with that. */
import type { KnownEvent } from "../../../src/index.ts";
import { lifecycle, seededRandom, shuffled } from "../../../src/tools/testing/index.ts";

/** The events of `count` messages, shuffled by a seed. */
export function messages(count: number, prefix = "msg"): KnownEvent[] {
  const all = Array.from({ length: count }, (_, index) =>
    lifecycle({ messageId: `${prefix}_${index}`, occurredAt: Date.now() }),
  );
  return shuffled(all.flat(), seededRandom(count));
}

/** What an engine holds of an event. */
export interface Held {
  readonly id: string;
  readonly messageId: string;
  readonly sequence: number;
}

export interface Faults {
  readonly lost: number;
  readonly twice: number;
  /** Events below an earlier one of their message. */
  readonly disordered: number;
}

/** What is wrong with an engine's content, in its order, when it should be these events. */
export function faultsOf(held: readonly Held[], sent: readonly KnownEvent[]): Faults {
  return faultsAmong(
    held,
    sent.map((event) => nameOf(heldOf("", JSON.stringify(event)))),
  );
}

/** The same, of events that are known by their names. */
export function faultsAmong(held: readonly Held[], wanted: readonly string[]): Faults {
  const names = new Set(held.map(nameOf));
  const highest = new Map<string, number>();
  let disordered = 0;
  for (const { messageId, sequence } of held) {
    const before = highest.get(messageId) ?? 0;
    if (sequence < before) disordered += 1;
    highest.set(messageId, Math.max(sequence, before));
  }
  return { lost: wanted.filter((name) => !names.has(name)).length, twice: held.length - names.size, disordered };
}

export function nameOf({ messageId, sequence }: Omit<Held, "id">): string {
  return `${messageId} ${sequence}`;
}

export const FAULTLESS = { lost: 0, twice: 0, disordered: 0 };

/** What an engine kept of a body. */
export function heldOf(id: string, body: string): Held {
  const event: KnownEvent = JSON.parse(body);
  return event.direction === "outbound"
    ? { id, messageId: event.messageId, sequence: event.sequence }
    : { id, messageId: event.data.messageId, sequence: 0 };
}
