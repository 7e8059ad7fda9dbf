/** The parts of a running emulator that its rooms share, and what each room offers the others. */

import type { EmulatorTime } from "./clock.ts";
import type { Faults } from "./faults.ts";
import type { Settings } from "./options.ts";
import type { Scheduler } from "./scheduler.ts";
import type {
  Client,
  Delivery,
  EventRecord,
  InboundMessage,
  Kind,
  Message,
  PhoneNumber,
  RequestRecord,
} from "./state/records.ts";
import type { State } from "./state/state.ts";

/** What every room stands on. */
export interface EmulatorParts {
  readonly settings: Settings;
  readonly state: State;
  readonly time: EmulatorTime;
  readonly scheduler: Scheduler;
  readonly journal: Journal;
  /** Aborts when the emulator closes. */
  readonly closing: AbortSignal;
  /** A number in [0, 1) for a purpose; the same seed and purpose give the same number, whatever the tag of ids in the purpose. */
  chance(purpose: string): number;
}

/** The whole service, assembled. */
export interface Service extends EmulatorParts {
  readonly faults: Faults;
  readonly deliveries: Deliveries;
  readonly messages: Messages;
}

/**
 * The delivery after a redelivery; `unknown` when there was none, and `cut_off` when the attempt's outcome is not known: the state was
 * reset or replaced meanwhile, the delivery went out of the bounds, or the emulator closed.
 */
type Redelivered = Delivery | "unknown" | "cut_off";

/** Handing over events (delivery/). */
export interface Deliveries {
  /**
   * Queues an event for its target: one delivery per copy, each with its attempts (DLV-6). The first is due `delayMs` after
   * `at`. Without a target when an attempt is due, the delivery ends as `no_target` (DLV-2); with no copies, it is `dropped`.
   * Who queues them tells the journal of them, behind their event.
   */
  queue(event: EventRecord, options: { at: number; delayMs: number; copies: number }): readonly Delivery[];
  /** One extra attempt now; no retry follows. Resolves when it ended. */
  redeliver(deliveryId: string): Promise<Redelivered>;
  /** Resolves when the next attempt of a delivery ended; at once when none is planned. */
  nextAttempt(deliveryId: string): Promise<void>;
  /**
   * One extra attempt for each delivery since `since` (epoch ms) that is not delivered when its turn comes. Resolves when they
   * ended, with those that were made.
   */
  recover(since: number): Promise<readonly Delivery[]>;
  /**
   * Before another state takes this one's place, whose ids may be the same: releases all that waits for attempts of this one, and
   * starts no further one.
   */
  forget(): void;
  /** Takes up what a loaded state left pending. */
  resume(): void;
  /** Ends its connections. What that cuts off counts as not made. */
  close(): void;
}

export interface SendInput {
  readonly client: Client;
  readonly number: PhoneNumber;
  readonly to: string;
  readonly messageType: "SMS" | "MMS";
  readonly text: string | null;
  readonly externalReference: string;
}

export interface InboundInput {
  readonly number: PhoneNumber;
  readonly from: string;
  readonly body: string;
  readonly media: readonly unknown[];
}

/** Messages and their lifecycles (messages/). */
export interface Messages {
  /** Takes an outbound message up: its queued event happens at once, the rest as its lifecycle says. */
  accept(input: SendInput): Message;
  /** Resolves when the answer to the send may go out: at once, but after the first attempt with the fault `eventBeforeResponse` (DLV-20). */
  answerable(messageId: string): Promise<void>;
  /** A customer's message arrives. */
  receive(input: InboundInput): InboundMessage;
  /** The next step of a message happens now; undefined when there is none. For the manual lifecycle. */
  advance(messageId: string): Message | undefined;
  /** The message fails now, whatever was planned; undefined when it has ended or does not exist. */
  fail(messageId: string, error?: { code: string; message: string }): Message | undefined;
  /** Any event of a message, as the control API asks for it. */
  trigger(event: TriggerInput): EventRecord;
  /** Takes up what a loaded state left planned. */
  resume(): void;
}

export interface TriggerInput {
  readonly kind: Kind;
  readonly eventType: string;
  readonly apiClientId: string;
  readonly numberId: string;
  readonly messageId: string;
  readonly sequence: number | null;
  readonly data: Readonly<Record<string, unknown>>;
}

// Reports what happens to watchers: the event stream of the control API, and tests.

/** One thing that happened, in the order it happened. */
export type JournalEntry =
  | { readonly type: "request"; readonly request: RequestRecord }
  | { readonly type: "event"; readonly event: EventRecord }
  | { readonly type: "delivery"; readonly delivery: Delivery }
  | { readonly type: "reset" };

interface Journal {
  /** If a listener causes another report, that comes after all listeners got the first one: all see the same order. */
  tell(entry: JournalEntry): void;
  /** Calls `listener` for each entry from now on; the returned function ends that. */
  watch(listener: (entry: JournalEntry) => void): () => void;
}

export function createJournal(): Journal {
  const listeners = new Set<(entry: JournalEntry) => void>();
  const untold: JournalEntry[] = [];
  let isTelling = false;
  const tellAll = (entry: JournalEntry) => {
    for (const listener of listeners) {
      try {
        listener(entry);
      } catch (error) {
        // A watcher's mistake is its own, as with an EventTarget: it must not break what is being told.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  };
  return {
    tell(entry) {
      untold.push(entry);
      if (isTelling) return;
      isTelling = true;
      for (let next = untold.shift(); next !== undefined; next = untold.shift()) tellAll(next);
      isTelling = false;
    },
    watch(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
