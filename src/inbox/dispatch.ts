/** The typed registry of handlers: which of them an event goes to, in order of registration. */
import { SetupError } from "../errors.ts";
import {
  type EventByType,
  isKnownEventType,
  KNOWN_EVENT_TYPES,
  type KnownEventType,
  type LateEvent,
  type UnknownEvent,
  type WebhookEvent,
} from "../events/types.ts";
import { suggestion } from "../internal/options.ts";
import type { HandlerContext } from "./context.ts";
import type { EventId, LaneKey } from "./record.ts";

/** A handler; what it returns is awaited and otherwise ignored. Throwing makes the event be retried. */
export type Handler<E, Tx> = (event: E, ctx: HandlerContext<Tx>) => unknown;

/** Names an event to a hook: ids and types only. */
export interface EventNotice {
  readonly eventId: EventId;
  readonly lane: LaneKey;
  readonly sequence: number;
  readonly eventType: string;
}

/** A delivery with a known identity carried other content. It was kept, and not handled. */
export interface ConflictNotice extends EventNotice {}

export interface FailureNotice extends EventNotice {
  readonly attempt: number;
  readonly error: unknown;
}

export interface DeadLetterNotice extends EventNotice {
  readonly attempts: number;
  /** The failure's code, such as `attempts_exhausted`. */
  readonly code: string;
}

export interface Hooks {
  conflict: ((notice: ConflictNotice) => unknown)[];
  error: ((notice: FailureNotice) => unknown)[];
  deadLetter: ((notice: DeadLetterNotice) => unknown)[];
}

type AnyHandler<Tx> = Handler<WebhookEvent, Tx>;

interface Registration<Tx> {
  readonly takes: (event: { readonly eventType: string }) => boolean;
  readonly handler: AnyHandler<Tx>;
}

export class HandlerRegistry<Tx> {
  readonly hooks: Hooks = { conflict: [], error: [], deadLetter: [] };
  readonly #handlers: Registration<Tx>[] = [];
  readonly #late: AnyHandler<Tx>[] = [];
  readonly #outbound = new Set<KnownEventType | "any" | "unknown">();
  readonly #byType = new Map<string, readonly AnyHandler<Tx>[]>();
  #frozen = false;

  on<T extends KnownEventType>(types: T | readonly T[], handler: Handler<EventByType[T], Tx>): void {
    const wanted: readonly unknown[] = Array.isArray(types) ? types : [types];
    if (wanted.length === 0) throw noType();
    for (const type of wanted) {
      if (typeof type !== "string") throw noType();
      if (!isKnownEventType(type)) throw unknownType(type);
      if (type !== "message.inbound") this.#outbound.add(type);
    }
    this.#add((event) => wanted.includes(event.eventType), handler as AnyHandler<Tx>);
  }

  onAny(handler: AnyHandler<Tx>): void {
    this.#add(() => true, handler);
    this.#outbound.add("any");
  }

  onUnknown(handler: Handler<UnknownEvent, Tx>): void {
    this.#add((event) => !isKnownEventType(event.eventType), handler as AnyHandler<Tx>);
    this.#outbound.add("unknown");
  }

  onLate(handler: Handler<LateEvent, Tx>): void {
    this.#refuseIfFrozen();
    // Only events of a lane with a sequence are late.
    this.#late.push(checked(handler as AnyHandler<Tx>));
  }

  addHook<H extends keyof Hooks>(hook: H, listener: Hooks[H][number]): void {
    this.#refuseIfFrozen();
    (this.hooks[hook] as unknown[]).push(checked(listener));
  }

  /** From here on nothing can be registered. */
  freeze(): void {
    this.#frozen = true;
  }

  get isEmpty(): boolean {
    return this.#handlers.length === 0 && this.#late.length === 0;
  }

  /** @throws SetupError without any handler: nobody would be given the events, and each would end as unhandled */
  requireHandlers(): void {
    if (!this.isEmpty) return;
    throw new SetupError(
      "no_handlers",
      'Register a handler first: receiver.on("message.inbound", (event, ctx) => { … }).',
    );
  }

  get takesLate(): boolean {
    return this.#late.length > 0;
  }

  /** Outbound types with a handler, for the warning when there is no `onLate`; `any` and `unknown` are onAny's and onUnknown's. */
  get outboundTypes(): readonly string[] {
    return [...this.#outbound];
  }

  /** A late event goes to `onLate` only, unless an operator replays it. */
  handlersFor(eventType: string, late: boolean): readonly AnyHandler<Tx>[] {
    if (late) return this.#late;
    // Unknown types come from outside without bound: only known ones are remembered.
    if (!isKnownEventType(eventType)) return this.#select(eventType);
    let handlers = this.#byType.get(eventType);
    if (handlers === undefined) {
      handlers = this.#select(eventType);
      if (this.#frozen) this.#byType.set(eventType, handlers);
    }
    return handlers;
  }

  #select(eventType: string): readonly AnyHandler<Tx>[] {
    return this.#handlers
      .filter((registration) => registration.takes({ eventType }))
      .map((registration) => registration.handler);
  }

  #add(takes: Registration<Tx>["takes"], handler: AnyHandler<Tx>): void {
    this.#refuseIfFrozen();
    this.#handlers.push({ takes, handler: checked(handler) });
  }

  #refuseIfFrozen(): void {
    if (!this.#frozen) return;
    throw new SetupError(
      "already_started",
      "Handlers must be registered before start(), drain() or the first event: an event that came earlier would miss this one.",
    );
  }
}

function noType(): SetupError {
  return new SetupError(
    "invalid_option",
    'on() takes an event type, such as "message.inbound", or a list of them; onAny() is for every event.',
  );
}

function unknownType(type: string): SetupError {
  const hint = suggestion(type, KNOWN_EVENT_TYPES);
  return new SetupError(
    "invalid_option",
    `on() knows no event type "${type}". ${hint} Types that the service adds later reach onUnknown().`,
  );
}

function checked<F>(handler: F): F {
  if (typeof handler === "function") return handler;
  throw new SetupError(
    "invalid_option",
    `A handler must be a function, not ${handler === null ? "null" : typeof handler}.`,
  );
}
