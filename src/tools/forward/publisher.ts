/** What a distributed engine looks like from here, and the care with which it is used: checked first, awaited, given up in time. */
import { hash } from "node:crypto";
import { SetupError } from "../../errors.ts";
import type { HandlerContext, HandlerMeta } from "../../inbox/handlers.ts";
import { identityOf } from "../../inbox/lane-key.ts";
import { sha256 } from "../../internal/json.ts";
import type { Logger } from "../../internal/logger.ts";
import { invalidOption, isPromise } from "../../internal/options.ts";
import { placeOf } from "../../sources/messaging/parse.ts";
import type { WebhookEvent } from "../../sources/messaging/types.ts";

/**
 * Hands one message to an engine. Its promise resolves when the engine has acknowledged the message, and rejects when it has
 * not: nothing else makes the event be tried again. When `message.signal` aborts, nobody waits any more: what can be given up
 * should be, as `passthrough` takes nothing new while 256 of these promises are open.
 */
export type Publish = (message: ForwardedMessage) => PromiseLike<unknown>;

/** An engine, and what is known about it. */
export interface Publisher {
  readonly publish: Publish;
  /**
   * Looks at the engine before the first message, and again after a failure. Resolves with what is weak but works, a sentence
   * each, which is logged as a warning. Rejects with a `SetupError` for a set-up that loses or doubles events, and with any
   * other error while the engine does not answer.
   */
  readonly check?: () => PromiseLike<readonly string[]>;
  /** How long the engine knows an id again, milliseconds. Default 0: it does not deduplicate. */
  readonly remembersIdsMs?: number;
}

/** A day: what the inbox's twelve attempts take with their waits, so that the last one still meets the first one's id. */
export const ALL_ATTEMPTS_MS = 86_400_000;

/** The publisher that a user gave, as an object. @throws SetupError for anything else */
export function publisherOption(owner: string, value: Publish | Publisher): Publisher {
  if (typeof value === "function") return { publish: value };
  if (typeof value?.publish === "function") return value;
  throw invalidOption("publisher", `of ${owner} must be a function, or an object with the method publish`, value);
}

/** One publisher in use. */
export class CheckedPublisher {
  readonly #publisher: Publisher;
  #checked: Promise<void> | null = null;
  readonly #warned = new Set<string>();
  #open = 0;

  constructor(publisher: Publisher) {
    this.#publisher = publisher;
  }

  /** Publications that the engine has neither acknowledged nor refused, also those that nobody waits for any more. */
  get open(): number {
    return this.#open;
  }

  /** Resolves once the set-up is known to be good. */
  async check(logger: Logger): Promise<void> {
    const warnings = (await this.#publisher.check?.()) ?? [];
    for (const warning of warnings) {
      if (this.#warned.has(warning)) continue;
      this.#warned.add(warning);
      logger.warn({ code: "engine_setup" }, warning);
    }
  }

  /** Resolves when the engine has acknowledged; rejects with its error, or with the signal's reason when that comes first. */
  async publish(message: ForwardedMessage, logger: Logger): Promise<void> {
    const { signal } = message;
    this.#checked ??= this.check(logger);
    const checked = this.#checked;
    try {
      await unlessAborted(checked, signal);
      await unlessAborted(this.#begin(message), signal);
    } catch (error) {
      // The next attempt looks again: it may say what is wrong, and a check that never ends must not hold up all others.
      if (this.#checked === checked) this.#checked = null;
      throw error;
    }
  }

  #begin(message: ForwardedMessage): Promise<unknown> {
    // Asked once: what a query builder returns runs its query each time that somebody waits for it.
    const publication = Promise.resolve(promised(this.#publisher.publish(message)));
    this.#open += 1;
    const settle = () => {
      this.#open -= 1;
    };
    publication.then(settle, settle);
    return publication;
  }
}

/** A function that starts a publication and returns nothing to wait for would count as acknowledged at once. */
function promised(returned: unknown): PromiseLike<unknown> {
  if (isPromise(returned)) return returned;
  throw new SetupError(
    "invalid_option",
    "publish must return a promise that resolves when the engine has acknowledged the message; it returned " +
      `${returned === null ? "null" : typeof returned}. The event is tried again.`,
  );
}

function unlessAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason);
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
    const settle = (how: () => void) => {
      signal.removeEventListener("abort", giveUp);
      how();
    };
    promise.then(
      () => settle(resolve),
      (error: unknown) => settle(() => reject(error)),
    );
  });
}

// What an engine is given of an event: its exact bytes, and the names by which engines order and deduplicate.

/** One event on its way to an engine. */
export interface ForwardedMessage {
  /**
   * 64 hex digits that name the event, the same on every attempt and after every crash: the engine's deduplication id
   * (`Nats-Msg-Id`, `MessageDeduplicationId`, a job's id).
   */
  readonly id: string;
  /**
   * 64 hex digits, the same for all events of a lane, and of the event's own for one without a lane: the partition key or group id, so that
   * an engine that keeps order by key keeps the lane's.
   */
  readonly key: string;
  /** The body exactly as it was received and signed: UTF-8 JSON, unless another source writes something else. */
  readonly body: Uint8Array;
  /**
   * Printable ASCII. `oncehook-event-type`, `oncehook-source`, `oncehook-sequence`, and where they apply `oncehook-tenant`,
   * `oncehook-lane`, `oncehook-own-id`, `oncehook-attempt`, `oncehook-replay`, `oncehook-late`, `oncehook-missing` (`2-3`) and
   * `traceparent`. Texts of the event are percent-encoded where they are not printable ASCII.
   * A replayed event is late too when a later event of its lane was handled before: it must not turn a state back.
   */
  readonly headers: Readonly<Record<string, string>>;
  /** The body, parsed. Of another source than the messaging service: that source's event. */
  readonly event: WebhookEvent;
  /** The name of the entry that it came through. */
  readonly source: string;
  /** Whose it is, where one source has the events of several. The messaging service's is the `apiClientId`. */
  readonly tenant: string | null;
  /** The name of its lane, such as the id of an outbound message. Null if the event is by itself. */
  readonly lane: string | null;
  /** The id that its source gives it, such as that of an inbound message. Null by sequence. */
  readonly ownId: string | null;
  /** The place in its lane: a later event of the lane has a higher number. 0 for an event by itself. */
  readonly sequence: number;
  /** 1 on the first hand-out of an event; null where nobody counts, as in `passthrough`. */
  readonly attempt: number | null;
  /** Aborts when nobody waits for the engine's answer any more. */
  readonly signal: AbortSignal;
}

/** What is known of one attempt to hand an event over, next to the event. */
export interface Circumstances {
  readonly signal: AbortSignal;
  readonly traceparent: string | null;
  /** 1 or more; null where nobody counts. */
  readonly attempt: number | null;
  readonly replay: boolean;
  /** A later event of its lane was handled before: it came late, or is a replay. */
  readonly late: boolean;
  readonly missing: { readonly from: number; readonly to: number } | null;
}

/** What the inbox knows of an event. */
export type Known = Pick<HandlerMeta, "source" | "tenant" | "lane" | "id" | "sequence" | "eventType"> &
  Pick<HandlerContext, "identity">;

/** @param known - default: what follows from the messaging service's event */
export function messageOf(
  event: WebhookEvent,
  body: Uint8Array,
  circumstances: Circumstances,
  known: Known = knownOf(event, body),
): ForwardedMessage {
  const { source, tenant, lane, id: ownId, sequence, identity } = known;
  return {
    id: identity,
    key: hash("sha256", JSON.stringify(lane === null ? [source, tenant, null, ownId] : [source, tenant, lane])),
    body,
    headers: headersOf(known, circumstances),
    event,
    ...{ source, tenant, lane, ownId, sequence },
    attempt: circumstances.attempt,
    signal: circumstances.signal,
  };
}

function knownOf(event: WebhookEvent, body: Uint8Array): Known {
  const { eventType } = event;
  const { lane, ownId, sequence } = placeOf(event, () => sha256(body).toString("hex"));
  const { source, tenant, name } = lane;
  const identity = identityOf({ lane, ownId, sequence, eventType });
  return { source, tenant, lane: name, id: ownId ?? null, sequence, eventType, identity };
}

function headersOf(
  { source, tenant, lane, id, sequence, eventType }: Known,
  { attempt, replay, late, missing, traceparent }: Circumstances,
): Record<string, string> {
  return {
    "oncehook-event-type": printable(eventType),
    "oncehook-source": source,
    ...(tenant === null ? {} : { "oncehook-tenant": printable(tenant) }),
    ...(lane === null ? {} : { "oncehook-lane": printable(lane) }),
    ...(id === null ? {} : { "oncehook-own-id": printable(id) }),
    "oncehook-sequence": `${sequence}`,
    ...(attempt === null ? {} : { "oncehook-attempt": `${attempt}` }),
    ...(replay ? { "oncehook-replay": "true" } : {}),
    ...(late ? { "oncehook-late": "true" } : {}),
    ...(missing === null ? {} : { "oncehook-missing": `${missing.from}-${missing.to}` }),
    ...(traceparent === null ? {} : { traceparent }),
  };
}

/** A text of an event comes from outside: a line break in a header would begin another one. */
function printable(text: string): string {
  return text.replace(/[^!-$&-~]+/gu, (other) => encodeURIComponent(other));
}
