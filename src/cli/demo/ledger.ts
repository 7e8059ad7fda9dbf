/** What became of each message: the order in which its events arrived, and the order in which they were handled. */
import { readHandled } from "./handled.ts";
import type { Stage } from "./stage.ts";

export interface Life {
  readonly messageId: string;
  /** The sequences of its events; an inbound message has one event, 0. */
  readonly told: readonly number[];
  /** In the order of arrival. */
  readonly arrived: readonly Arrival[];
  /** In the order of handling, from the application's own table. */
  readonly handled: readonly number[];
}

interface Arrival {
  readonly sequence: number;
  /** The application's answer; null when none came. */
  readonly status: number | null;
}

/** Everything that the service tells of, against everything that the application handled; by message. */
export async function readLedger({ emulator, inboxPath }: Stage): Promise<Life[]> {
  const filter = { limit: 10_000 };
  const events = emulator.control.events(filter);
  const attempts = emulator.control.attempts(filter);
  const rows = await readHandled(inboxPath);
  const sequences = new Map(events.map(({ eventId, sequence }) => [eventId, sequence ?? 0]));
  return [...new Set(events.map(({ messageId }) => messageId))].map((messageId) => {
    const own = events.filter((event) => event.messageId === messageId);
    const ids = new Set(own.map(({ eventId }) => eventId));
    return {
      messageId,
      told: own.map(({ sequence }) => sequence ?? 0),
      arrived: attempts
        .filter(({ eventId }) => ids.has(eventId))
        .map(({ eventId, status }) => ({ sequence: sequences.get(eventId) ?? 0, status })),
      handled: rows.filter((row) => row.message_id === messageId).map(({ sequence }) => sequence),
    };
  });
}

/** `1 2✗ 3 2`: a mark behind an attempt that was not taken. */
export function arrivalsOf({ arrived }: Life): string {
  return arrived.map(({ sequence, status }) => `${sequence}${status === 200 ? "" : "✗"}`).join(" ");
}

/** Events that were never handled. */
export function lostOf({ told, handled }: Life): number {
  return told.filter((sequence) => !handled.includes(sequence)).length;
}

/** Rows beyond one for each event. */
export function handledTwiceOf({ handled }: Life): number {
  return handled.length - new Set(handled).size;
}

export function isInOrder({ handled }: Life): boolean {
  return handled.every((sequence, index) => index === 0 || sequence > (handled[index - 1] ?? 0));
}
