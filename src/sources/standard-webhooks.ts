/** Standard Webhooks, as Svix, Clerk, Resend, OpenAI and many others send them. */
import { Buffer } from "node:buffer";
import { SetupError } from "../errors.ts";
import { invalidOption } from "../internal/options.ts";
import { type OpenEvents, type SourceDefinition, type SourceOptions, sourceOf, type Verdict } from "./define-source.ts";
import {
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

/** The fields that Standard Webhooks recommends. Senders may leave them out, and add others. */
export interface StandardWebhooksEvent {
  readonly type?: string;
  /** ISO 8601. */
  readonly timestamp?: string;
  readonly data?: unknown;
  readonly [field: string]: unknown;
}

export interface StandardWebhooksOptions<Event extends object = StandardWebhooksEvent> extends SourceOptions<Event> {
  /** What the three headers begin with: `webhook` (default) for `webhook-id`, `svix` for `svix-id`. */
  readonly headerPrefix?: string;
}

/** The event of each type, if the type of `Event` tells them apart. */
export type ByTypeField<Event extends object, Type extends string> = {
  readonly [T in Type]: Extract<Event, { readonly type: T }> extends never
    ? Event
    : Extract<Event, { readonly type: T }>;
};

const PREFIX = "whsec_";
const HEADER_PREFIX = /^[a-z][a-z0-9-]{0,31}$/;

/**
 * Receives Standard Webhooks. The id, the time and the body are signed; the id is the event's identity.
 *
 * @typeParam Event - the sender's events, a union by `type`
 * @throws SetupError for a wrong option or secret
 * @example
 * const receiver = createReceiver({ source: standardWebhooks<ResendEvent>({ secrets: "whsec_…" }), store });
 * receiver.on("email.bounced", (event) => suppress(event.data.to));
 */
export function standardWebhooks<Event extends { readonly type?: string } = StandardWebhooksEvent>(
  options: StandardWebhooksOptions<Event>,
): WebhookSource<OpenEvents<Event, ByTypeField<Event, Event["type"] & string>>> {
  const { headerPrefix = "webhook", ...rest } = options;
  if (!HEADER_PREFIX.test(headerPrefix))
    throw invalidOption(
      "headerPrefix",
      "must be lower-case letters, digits and hyphens, such as webhook or svix",
      headerPrefix,
    );
  return sourceOf(definitionFor<Event>(headerPrefix), rest, ["headerPrefix"]);
}

function definitionFor<Event extends object>(prefix: string): SourceDefinition<Event> {
  const [id, timestamp, signature] = [`${prefix}-id`, `${prefix}-timestamp`, `${prefix}-signature`] as const;
  return {
    preset: "standard-webhooks",
    // Svix sends for the last time after 28 hours; the specification suggests several days.
    lastRetryMs: 5 * 86_400_000,
    keep: [id],
    shows: ["type", "timestamp", "data.id"],
    signedBy: [[id, timestamp, signature]],
    key: decodeSecret,
    verify(head, body, keys, { checkAge }): Verdict {
      const [messageId = "", time = "", signed = ""] = [id, timestamp, signature].map((name) => head.header(name));
      const signedAt = secondsAsMs(time);
      if (signedAt === null) return MALFORMED_TIME;
      const candidates = signaturesOf(signed);
      if (candidates === null) return MALFORMED;
      const expired = checkAge(signedAt);
      if (expired !== null) return { ok: false, code: expired };
      return signedBy(keys, candidates, "sha256", [`${messageId}.${time}.`, body], signedAt);
    },
    parse: parseObject,
    identify: (_event, kept) => kept.header(id) ?? "",
    describe(event) {
      const { type, timestamp: at } = event as StandardWebhooksEvent;
      const occurredAt = typeof at === "string" ? Date.parse(at) : Number.NaN;
      return { type: textOf(type) ?? "unknown", ...(Number.isFinite(occurredAt) && { occurredAt }) };
    },
  };
}

/** `v1,<base64>` for HMAC, apart by spaces. Other versions are left to other verifiers. */
function signaturesOf(header: string): readonly Uint8Array[] | null {
  const items = header.split(" ");
  if (items.length > MOST_SIGNATURES) return null;
  const found: Uint8Array[] = [];
  for (const item of items) {
    if (!item.startsWith("v1,")) continue;
    const bytes = signatureBytes(item.slice(3), "base64", 32);
    if (bytes !== null) found.push(bytes);
  }
  return found;
}

function decodeSecret(text: string): Uint8Array {
  const encoded = text.startsWith(PREFIX) ? text.slice(PREFIX.length) : text;
  const bytes = Buffer.from(encoded, "base64");
  if (bytes.toString("base64") === encoded) return bytes;
  throw new SetupError("invalid_secret", "must be base64, with or without whsec_ in front, as the sender shows it");
}
