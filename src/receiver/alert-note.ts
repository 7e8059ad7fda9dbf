/** The note about one condition that all processes share: what was said of it, and what is still to be sent. */
import { type Alert, type AlertCondition, alertText } from "./alerts.ts";

export interface AlertNote {
  /** From the begin to the end of the condition. Null while it does not hold. */
  readonly episode: Episode | null;
  /** Messages in their order, as they are sent. At most three, see `advanced()`. */
  readonly unsent: readonly Alert[];
  /** Sends of the first one that were begun. A send whose number is lower has been replaced. */
  readonly attempts: number;
  /** The first one is not sent before: a process has it, or the last send has failed. Epoch milliseconds. */
  readonly notBefore: number;
}

interface Episode {
  readonly id: string;
  readonly since: number;
  readonly limit: number;
  /** Since when the condition has not held any more. Null while it holds. */
  readonly clearSince: number | null;
}

export const NOTHING_NOTED: AlertNote = { episode: null, unsent: [], attempts: 0, notBefore: 0 };

/** A condition that holds again within this time has not ended. */
const CLEAR_MS = 60_000;
/** Longer than a send takes. After it, the process that has the message is taken for dead. */
const LEASE_MS = 30_000;
const FIRST_RETRY_MS = 10_000;
const LONGEST_RETRY_MS = 600_000;

/** What a look found about one condition. */
export interface Look {
  readonly condition: AlertCondition;
  readonly value: number;
  /** Null if the receiver does not watch this condition any more. Then it ends. */
  readonly limit: number | null;
  readonly receiver: string;
  readonly now: number;
  readonly newId: () => string;
}

/**
 * The note after a look. Returns `note` itself if nothing changed. If a condition begins again before its end was tried to be sent, the
 * end is dropped: so the messages do not pile up while their destination is down.
 */
export function advanced(note: AlertNote, look: Look): AlertNote {
  const { value, limit, now } = look;
  const { episode } = note;
  if (limit !== null && value >= limit) {
    if (episode === null) return begun(note, look, limit);
    return episode.clearSince === null ? note : { ...note, episode: { ...episode, clearSince: null } };
  }
  if (episode === null) return note;
  const { clearSince } = episode;
  if (clearSince === null) return { ...note, episode: { ...episode, clearSince: now } };
  if (now - clearSince < CLEAR_MS) return note;
  return { ...note, episode: null, unsent: [...note.unsent, message("ended", episode, look)] };
}

function begun(note: AlertNote, look: Look, limit: number): AlertNote {
  const last = note.unsent.at(-1);
  const wasTried = note.unsent.length === 1 && note.attempts > 0;
  if (last?.status === "ended" && !wasTried) {
    const episode = { id: last.episode, since: last.since, limit: last.limit, clearSince: null };
    return { ...note, episode, unsent: note.unsent.slice(0, -1) };
  }
  const episode = { id: look.newId(), since: look.now, limit, clearSince: null };
  return { ...note, episode, unsent: [...note.unsent, message("began", episode, look)] };
}

function message(status: Alert["status"], { id, since, limit }: Episode, look: Look): Alert {
  const { condition, value, receiver, now } = look;
  const facts = { id: `${id}:${status}`, episode: id, condition, status, receiver, value, limit, at: now, since };
  return { ...facts, text: alertText(facts) };
}

/** A message that this process may send now. */
export interface Taken {
  readonly note: AlertNote;
  readonly alert: Alert;
  readonly attempt: number;
}

/** Takes the first unsent message for the length of a lease. Null if there is none, or not now. */
export function taken(note: AlertNote, now: number): Taken | null {
  const [alert] = note.unsent;
  if (alert === undefined) return null;
  const waitMs = note.notBefore - now;
  // A longer wait than any is of a clock that was set back.
  if (waitMs > 0 && waitMs <= LONGEST_RETRY_MS) return null;
  const attempt = note.attempts + 1;
  return { note: { ...note, attempts: attempt, notBefore: now + LEASE_MS }, alert, attempt };
}

/** The note after a message was sent, also if another process has taken it meanwhile. */
export function sent(note: AlertNote, { alert }: Pick<Taken, "alert">): AlertNote {
  if (note.unsent[0]?.id !== alert.id) return note;
  return { ...note, unsent: note.unsent.slice(1), attempts: 0, notBefore: 0 };
}

/** The note after a send failed, unless another process has the message meanwhile. */
export function failed(note: AlertNote, { alert, attempt }: Pick<Taken, "alert" | "attempt">, now: number): AlertNote {
  if (note.unsent[0]?.id !== alert.id || note.attempts !== attempt) return note;
  return { ...note, notBefore: now + Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 10)) };
}
