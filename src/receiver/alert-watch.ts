/** Looks at the inbox for the conditions of `alerts`, and sends what is to be said: one process of all sends each message. */
import { randomUUID } from "node:crypto";
import { explained, failureCode } from "../inbox/masking.ts";
import type { InboxStore, Note } from "../inbox/store.ts";
import { atMost, type Clock } from "../internal/clock.ts";
import { errorPlaceOf } from "../internal/foreign-error.ts";
import type { Logger } from "../internal/logger.ts";
import { type AlertNote, advanced, failed, NOTHING_NOTED, sent, type Taken, taken } from "./alert-note.ts";
import {
  ALERT_CONDITIONS,
  type Alert,
  type AlertCondition,
  type AlertFacts,
  type AlertMemory,
  type AlertRoute,
  alertValue,
  remembered,
} from "./alerts.ts";

/** Of one send, milliseconds. Much shorter than the lease of a message. */
const SEND_MS = 10_000;
/** What a send still has when the receiver stops, or when the budget of a drain is used up. */
const LAST_MS = 2_000;
/** What was read longer ago says nothing about now: the process may have stood still. */
const STALE_MS = 10_000;

const MEMORY = "alerts:memory";
const nameOf = (condition: AlertCondition) => `alerts:${condition}`;
const NAMES = [MEMORY, ...ALERT_CONDITIONS.map(nameOf)];
/** Notes about a condition stay as long as it holds. */
const KEEP_MS = 3_650 * 86_400_000;

export interface AlertWatchOptions {
  readonly store: Pick<InboxStore, "stats" | "changeNotes">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The receiver's. */
  readonly name: string;
  readonly route: AlertRoute;
  readonly workerIdleMs: () => number | null;
}

type Notes = ReadonlyMap<string, string>;

/** A message that this process sends. */
interface Sending extends Taken {
  readonly name: string;
}

export class AlertWatch {
  readonly #options: AlertWatchOptions;
  readonly #stop = new AbortController();
  #looking: Promise<void> | null = null;

  constructor(options: AlertWatchOptions) {
    this.#options = options;
  }

  /**
   * Looks once, and sends the messages that are due. A look in progress is awaited instead of another one.
   *
   * @param leftMs - how long a send may take, at least 2 s and at most 10 s
   */
  look(leftMs = SEND_MS): Promise<void> {
    const sendMs = Math.min(SEND_MS, Math.max(LAST_MS, leftMs));
    this.#looking ??= this.#look(sendMs).finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  /** Gives a send in progress 2 s. After that it is aborted, and another process sends the message again. */
  async stop(): Promise<void> {
    const looking = this.#looking?.catch(() => {});
    if (looking === undefined) return;
    await atMost(this.#options.clock, LAST_MS, looking);
    this.#stop.abort();
    await looking;
  }

  async #look(sendMs: number): Promise<void> {
    const { store, clock } = this.#options;
    const readAt = clock.monotonic();
    const stats = await store.stats();
    let due: readonly Sending[] = [];
    await store.changeNotes(NAMES, (notes, now) => {
      due = [];
      if (clock.monotonic() - readAt > STALE_MS) return new Map();
      const looked = this.#judged(notes, { stats, now, workerIdleMs: this.#options.workerIdleMs() });
      due = looked.due;
      return looked.written;
    });
    await Promise.all(due.map((sending) => this.#sendAll(sending, sendMs)));
  }

  #judged(notes: Notes, facts: AlertFacts): { written: Map<string, Note>; due: Sending[] } {
    const { limits } = this.#options.route;
    const known = memoryIn(notes);
    const memory = remembered(known, limits, facts);
    const written = new Map<string, Note>();
    if (memory !== known) written.set(MEMORY, noteOf(memory));
    const due: Sending[] = [];
    for (const condition of ALERT_CONDITIONS) {
      const name = nameOf(condition);
      const before = noteIn(notes, name);
      const value = alertValue(condition, facts, memory);
      const look = { condition, value, limit: limits[condition] ?? null, receiver: this.#options.name };
      const after = advanced(before, { ...look, now: facts.now, newId: randomUUID });
      const taking = taken(after, facts.now);
      if (taking !== null) due.push({ name, ...taking });
      const next = taking?.note ?? after;
      if (next !== before) written.set(name, noteOf(next));
    }
    return { written, due };
  }

  /** Sends a message and those behind it. */
  async #sendAll(first: Sending, sendMs: number): Promise<void> {
    for (let sending: Sending | null = first; sending !== null; ) {
      const error = await this.#send(sending.alert, sendMs);
      if (error === null) sending = await this.#ended(sending);
      else {
        await this.#change(sending.name, (note, now) => failed(note, sending as Sending, now));
        this.#log(sending.alert, error.thrown);
        return;
      }
    }
  }

  /** Null once the alert was taken. */
  async #send(alert: Alert, sendMs: number): Promise<{ readonly thrown: unknown } | null> {
    const { clock, route } = this.#options;
    const over = new AbortController();
    const timer = clock.setTimeout(() => over.abort(new NotTaken("timeout")), sendMs);
    timer.keepAlive();
    const signal = AbortSignal.any([over.signal, this.#stop.signal]);
    try {
      await Promise.race([route.send(alert, signal), rejection(signal)]);
      return null;
    } catch (thrown) {
      return { thrown: signal.aborted ? signal.reason : thrown };
    } finally {
      timer.cancel();
    }
  }

  /** Notes that a message was sent, and takes the next one. */
  async #ended(sending: Sending): Promise<Sending | null> {
    let next: Taken | null = null;
    await this.#change(sending.name, (note, now) => {
      const after = sent(note, sending);
      next = after === note ? null : taken(after, now);
      return next?.note ?? after;
    });
    return next === null ? null : { name: sending.name, ...(next as Taken) };
  }

  #change(name: string, change: (note: AlertNote, now: number) => AlertNote): Promise<void> {
    return this.#options.store.changeNotes([name], (notes, now) => {
      const before = noteIn(notes, name);
      const after = change(before, now);
      return after === before ? new Map() : new Map([[name, noteOf(after)]]);
    });
  }

  #log({ id, condition }: Alert, error: unknown): void {
    const { logger, route } = this.#options;
    logger.warn(
      {
        code: "alert_not_sent",
        condition,
        alert: id,
        to: route.to,
        reason: failureCode(error),
        ...errorPlaceOf(error),
      },
      explained("An alert was not sent. It is tried again, at least every 10 minutes.", error),
    );
  }
}

/** The destination did not take an alert. Its code says why: `timeout`, `http_500`, or the code of the network's error. */
export class NotTaken extends Error {
  readonly code: string;

  constructor(code: string) {
    super("The destination did not take the alert.");
    this.name = "NotTaken";
    this.code = code;
  }
}

function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = () => reject(signal.reason);
    if (signal.aborted) fail();
    signal.addEventListener("abort", fail, { once: true });
  });
}

/** Only this file writes these notes. */
function noteIn(notes: Notes, name: string): AlertNote {
  const text = notes.get(name);
  return text === undefined ? NOTHING_NOTED : (JSON.parse(text) as AlertNote);
}

function memoryIn(notes: Notes): AlertMemory {
  const text = notes.get(MEMORY);
  return text === undefined ? {} : (JSON.parse(text) as AlertMemory);
}

function noteOf(value: AlertNote | AlertMemory): Note {
  return { value: JSON.stringify(value), keepMs: KEEP_MS };
}
