/** Standard Webhooks, as Svix, Clerk, Resend, OpenAI and many others send them. */
import { Buffer } from "node:buffer";
import { SetupError } from "../errors.ts";
import { sourceOf } from "./define-source.ts";
import type { OpenEvents, SourceDefinition, SourceOptions, Verdict, VerifyCircumstances } from "./definition.ts";
import type { Key } from "./keys.ts";
import {
  isoTime,
  MALFORMED,
  MALFORMED_TIME,
  MISMATCH,
  MISSING,
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

/** The event of each type, if the type of `Event` tells them apart. */
export type ByTypeField<Event extends object, Type extends string> = {
  readonly [T in Type]: Extract<Event, { readonly type: T }> extends never
    ? Event
    : Extract<Event, { readonly type: T }>;
};

const PREFIX = "whsec_";
/** What the three headers of a delivery begin with. */
const FAMILIES = ["webhook", "svix"].map((name) => [`${name}-id`, `${name}-timestamp`, `${name}-signature`] as const);

/**
 * Receives Standard Webhooks, with headers that begin with `webhook-` or `svix-`. The id, the time and the body are signed; the id is the event's
 * identity: `ctx.header(":proven")`.
 *
 * @typeParam Event - the sender's events, a union by `type`
 * @throws SetupError for a wrong option or secret
 * @example
 * const receiver = createReceiver({ source: standardWebhooks<ResendEvent>({ secrets: "whsec_…" }), store });
 * receiver.on("email.bounced", (event) => suppress(event.data.to));
 */
export function standardWebhooks<Event extends { readonly type?: string } = StandardWebhooksEvent>(
  options: SourceOptions<Event>,
): WebhookSource<OpenEvents<Event, ByTypeField<Event, Event["type"] & string>>> {
  // The application's type describes what the definition reads.
  return sourceOf(definition, options as unknown as SourceOptions<StandardWebhooksEvent>);
}

const definition: SourceDefinition<StandardWebhooksEvent> = {
  preset: "standard-webhooks",
  // Svix sends for the last time after 28 hours; the specification suggests several days.
  lastRetryMs: 5 * 86_400_000,
  shows: ["type", "timestamp", "data.id"],
  signedBy: FAMILIES,
  key: decodeSecret,
  /** A delivery that is passed on with headers of the other family next to its own is verified by its own, and known by that id. */
  verify(head, body, keys, circumstances): Verdict {
    let refused: Verdict = MISSING;
    for (const names of FAMILIES) {
      const [id = "", time = "", signatures = ""] = names.map((name) => head.header(name));
      if (id === "" || time === "" || signatures === "") continue;
      const verdict = verifyFamily({ id, time, signatures }, body, keys, circumstances);
      if (verdict.ok) return verdict;
      // Another key may have made a signature that none of these did.
      if (refused !== MISMATCH) refused = verdict;
    }
    return refused;
  },
  parse: parseObject,
  place: ({ type, timestamp }, _part, kept) => ({
    type: textOf(type) ?? "unknown",
    id: kept.header(":proven") ?? "",
    occurredAt: isoTime(timestamp),
  }),
};

interface SignedBy {
  readonly id: string;
  readonly time: string;
  readonly signatures: string;
}

function verifyFamily(
  { id, time, signatures }: SignedBy,
  body: Uint8Array,
  keys: readonly Key[],
  { checkAge }: VerifyCircumstances,
): Verdict {
  const signedAt = secondsAsMs(time);
  if (signedAt === null) return MALFORMED_TIME;
  const candidates = signaturesOf(signatures);
  if (candidates === null) return MALFORMED;
  const expired = checkAge(signedAt);
  if (expired !== null) return { ok: false, code: expired };
  return signedBy(keys, candidates, "sha256", [`${id}.${time}.`, body], signedAt, id);
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
