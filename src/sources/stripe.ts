/** Stripe's events. */
import { sourceOf } from "./define-source.ts";
import type { OpenEvents, SourceDefinition, SourceOptions, Verdict } from "./definition.ts";
import {
  isoTime,
  MALFORMED,
  MALFORMED_TIME,
  MOST_SIGNATURES,
  parseObject,
  secondsAsMs,
  signatureBytes,
  signedBy,
  textOf,
} from "./signatures.ts";
import type { WebhookSource } from "./source.ts";
import type { ByTypeField } from "./standard-webhooks.ts";

/** What every event has. Pass `Stripe.Event` of the package `stripe` for all of it. */
export interface StripeEvent {
  readonly id: string;
  readonly type: string;
  /** Epoch seconds; of a thin event a text in ISO 8601. */
  readonly created: number | string;
  /** The connected account, for events of Connect. */
  readonly account?: string | null | undefined;
  /** The account, for events of an organization. */
  readonly context?: string | null | undefined;
  /** An endpoint of Connect in live mode receives events of test mode too. */
  readonly livemode?: boolean | undefined;
  /** Of a snapshot event. */
  readonly data?: { readonly object?: object };
  /** Of a thin event: what to read from Stripe. */
  readonly related_object?: { readonly id: string; readonly type?: string } | null | undefined;
}

const SIGNATURE = "stripe-signature";
const LONGEST_HEADER = 4_096;
const DAY_MS = 86_400_000;

const definition: SourceDefinition<StripeEvent> = {
  preset: "stripe",
  maxBodyBytes: 1024 * 1024,
  // In live mode, with a new time and signature each time.
  lastRetryMs: 4 * DAY_MS,
  shows: [
    ...["id", "object", "type", "created", "account", "context", "api_version", "livemode", "request.id"],
    ...["related_object.id", "related_object.type"],
    ...["id", "object", "status", "customer", "subscription", "invoice", "payment_intent", "charge"].map(
      (name) => `data.object.${name}`,
    ),
  ],
  signedBy: [[SIGNATURE]],
  verify(head, body, keys, { checkAge }): Verdict {
    const parts = partsOf(head.header(SIGNATURE) ?? "");
    if (parts === null) return MALFORMED;
    const signedAt = secondsAsMs(parts.time);
    if (signedAt === null) return MALFORMED_TIME;
    const expired = checkAge(signedAt);
    if (expired !== null) return { ok: false, code: expired };
    return signedBy(keys, parts.signatures, "sha256", [`${parts.time}.`, body], signedAt);
  },
  parse(body) {
    const parsed = parseObject<StripeEvent>(body);
    if (!parsed.ok) return parsed;
    const { id, type } = parsed.event;
    return textOf(id) === undefined || textOf(type) === undefined ? { ok: false, code: "invalid_event" } : parsed;
  },
  place(event) {
    const at = createdAt(event);
    return { type: event.type, id: event.id, lane: laneOf(event), at, reference: objectId(event), occurredAt: at };
  },
  order: "position",
  atIs: "time",
};

/** Epoch milliseconds. */
function createdAt({ created }: StripeEvent): number | null {
  return typeof created === "number" ? created * 1000 : isoTime(created);
}

/** An object's id; with its account and mode if the event names an account, because accounts choose ids of products and coupons themselves. */
function laneOf(event: StripeEvent): string | null {
  const id = objectId(event);
  if (id === undefined) return null;
  const owner = textOf(event.account) ?? textOf(event.context);
  if (owner !== undefined) return JSON.stringify([owner, event.livemode === false ? "test" : "live", id]);
  // No other object's text.
  return id.startsWith("[") ? JSON.stringify([id]) : id;
}

/** The provider's word is not checked: `data` may be anything. */
function objectId({ data, related_object: related }: StripeEvent): string | undefined {
  const object: { readonly id?: unknown } | null | undefined = data?.object ?? related;
  return textOf(object?.id);
}

/**
 * Receives Stripe's events. The time and the body are signed; `event.id` is the identity. Events of one object share a lane and are handled
 * in the order of `created`; an older one that comes later is late (`ctx.late`, `onLate()`). The object is `data.object.id`, of thin events
 * `related_object.id`, with its account and mode if the event names an account. Stripe counts most events in whole seconds: those of one second are
 * handled as they came. `secrets` are those of the endpoint (`whsec_…`), not API keys.
 *
 * @typeParam Event - `Stripe.Event` of the package `stripe`, or a union of your own by `type`
 * @throws SetupError for a wrong option or secret
 * @example
 * const receiver = createReceiver({ source: stripe<Stripe.Event>({ secrets: process.env.STRIPE_WEBHOOK_SECRET ?? "" }), store });
 * receiver.on("invoice.paid", (event, ctx) => ctx.commit((db) => markPaid(db, event.data.object.id)));
 * receiver.onLate((event, ctx) => ctx.log.info({}, `Older than what was handled: ${event.id}`));
 */
export function stripe<Event extends { readonly type: string } = StripeEvent>(
  options: SourceOptions<Event>,
): WebhookSource<OpenEvents<Event, ByTypeField<Event, Event["type"]>, Event>> {
  // The application's type describes what the definition reads.
  return sourceOf(definition, options as unknown as SourceOptions<StripeEvent>);
}

/** `t=1492774577,v1=5257a8…,v1=…`: one time, and a signature for each secret in use. Other schemes are skipped. */
function partsOf(header: string): { readonly time: string; readonly signatures: readonly Uint8Array[] } | null {
  if (header.length > LONGEST_HEADER) return null;
  const times: string[] = [];
  const signatures: Uint8Array[] = [];
  for (const item of header.split(",")) {
    const equals = item.indexOf("=");
    const [name, value] = [item.slice(0, equals), item.slice(equals + 1)];
    if (name === "t") times.push(value);
    const bytes = name === "v1" ? signatureBytes(value, "hex", 32) : null;
    if (bytes !== null) signatures.push(bytes);
  }
  const [time] = times;
  if (time === undefined || times.length > 1 || signatures.length > MOST_SIGNATURES) return null;
  return signatures.length === 0 ? null : { time, signatures };
}
