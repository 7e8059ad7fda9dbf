/** Twilio's webhooks: status callbacks, incoming messages, calls, and JSON such as that of Event Streams. */
import { hash } from "node:crypto";
import { type ParsedUrlQuery, parse as parseQuery, stringify as stringifyQuery } from "node:querystring";
import { readJson } from "../internal/json.ts";
import { invalidOption } from "../internal/options.ts";
import { sourceOf } from "./define-source.ts";
import type { OpenEvents, Parsed, SourceDefinition, SourceOptions, Verdict } from "./definition.ts";
import { type Kept, LONGEST_QUERY, QUERY, queryIn } from "./headers.ts";
import { formFields, MALFORMED, MISMATCH, signatureBytes, signedBy, textOf } from "./signatures.ts";
import type { WebhookSource } from "./source.ts";

/** The fields of a form, each a text, or a list of texts if it is repeated; or a JSON body. Event Streams send an array. */
export interface TwilioEvent {
  readonly AccountSid?: string;
  readonly MessageSid?: string;
  /** Of an outgoing message, such as `delivered`. */
  readonly MessageStatus?: string;
  /** `received` for an incoming message. */
  readonly SmsStatus?: string;
  readonly CallSid?: string;
  readonly CallStatus?: string;
  readonly [field: string]: unknown;
}

export interface TwilioOptions<Event extends object = TwilioEvent> extends SourceOptions<Event> {
  /**
   * The URL that you gave Twilio, without its query, such as `https://example.com/webhooks/twilio`. Twilio signs it, and a server behind a proxy
   * does not see it. The query comes from the request. For several URLs, `{ origin: "https://example.com" }`: the path then comes from the
   * request too, so a proxy must pass it on unchanged.
   */
  readonly url: string | { readonly origin: string };
}

const SIGNATURE = "x-twilio-signature";
const IDEMPOTENCY_TOKEN = "i-twilio-idempotency-token";
const MESSAGE_SID = /^[SM]M[0-9a-f]{32}$/;
const STATUS = /^[a-z][a-z_-]{0,31}$/;
/** The last parameter of the query: Twilio appends it. */
const BODY_DIGEST = /(?:^|&)bodySHA256=([0-9a-f]{64})$/;
/** Twilio sends some dozens. More would cost time before anything is verified. */
const MOST_FIELDS = 1_000;
/** Bytes. Twilio's forms are some kilobytes. */
const LONGEST_FORM = 128 * 1024;
const AMPERSAND = 0x26;

/** A status never follows one of a higher rank. */
const RANKS: ReadonlyMap<string, number> = new Map([
  ["accepted", 0],
  ["scheduled", 1],
  ["queued", 2],
  ["sending", 3],
  ["sent", 4],
  ["delivered", 5],
  ["undelivered", 5],
  ["failed", 5],
  ["canceled", 5],
  ["read", 6],
]);

const definitionFor = (url: TwilioOptions["url"]): SourceDefinition<TwilioEvent> => ({
  preset: "twilio",
  answerMs: 15_000,
  // Webhooks are sent again within 15 s or not at all, and Event Streams for hours.
  lastRetryMs: 86_400_000,
  keep: [QUERY, IDEMPOTENCY_TOKEN],
  // Of Event Streams: `id`, `type` and `time`.
  shows: [
    "AccountSid",
    "MessageSid",
    "MessageStatus",
    "SmsStatus",
    "CallSid",
    "CallStatus",
    "ErrorCode",
    "EventType",
    "id",
    "type",
    "time",
  ],
  signedBy: [[SIGNATURE]],
  verify(head, body, keys): Verdict {
    const { query, path } = head;
    const base = typeof url === "string" ? url : url.origin + path;
    const header = head.header(SIGNATURE) ?? "";
    const signature = signatureBytes(header, "base64", 20);
    if (signature === null || query.length > LONGEST_QUERY) return MALFORMED;
    const digest = bodyDigestIn(query);
    if (digest !== null && digest !== hash("sha256", body)) return MISMATCH;
    const form = digest === null ? formOf(body) : NO_FORM;
    if (form === null) return MALFORMED;
    const { pairs } = form;
    for (const spelling of new Set(spellingsOf(query === "" ? base : `${base}?${query}`))) {
      // Otherwise a body could come in as JSON whose digest was signed as something else, or the other way round.
      if (bodyDigestIn(queryIn(spelling)) !== digest) continue;
      // Under one signature a form can be cut into other fields, and the query written in other ways: it is one event at most.
      const verdict = signedBy(keys, signature, "sha1", [spelling, pairs], null, hash("sha256", header));
      if (verdict.ok) return verdict;
    }
    return MISMATCH;
  },
  parse: (body, kept) => (isJson(kept) ? parseJson(body) : { ok: true, event: { ...formOf(body)?.fields } }),
  place(event, { digest }, kept) {
    const message = messageOf(event);
    return {
      type: typeOf(event),
      id: isJson(kept) ? digest() : (kept.header(":proven") ?? ""),
      lane: message?.sid,
      at: RANKS.get(message?.status ?? ""),
      reference: message?.sid ?? textOf(event.CallSid) ?? kept.header(IDEMPOTENCY_TOKEN),
    };
  },
  order: "position",
  // In TwiML: the sender of an incoming message gets no reply.
  accepted: { body: "<Response/>", contentType: "text/xml" },
});

/**
 * Receives Twilio's webhooks: forms, whose URL and fields are signed, and JSON with `bodySHA256` in the query. Types are `message.delivered` and
 * others by the status of a message, `message.received`, `call.completed` and others by the status of a call, then the field `EventType` or
 * `type`. The statuses of a message share a lane and are handled in their order (queued, sending, sent, delivered, read); an earlier one that
 * comes later is late (`ctx.late`, `onLate()`). With the option `lane` the order is that of arrival. All other events are by themselves. The identity of a
 * form is a digest of its signature, because one signature fits many forms; that of JSON is its digest. `ctx.header(":query")` returns
 * the query of the URL. `secrets` is the auth token.
 *
 * @typeParam Event - what handlers receive
 * @throws SetupError for a wrong option or secret
 * @example
 * const url = "https://example.com/webhooks/twilio";
 * const receiver = createReceiver({ source: twilio({ secrets: process.env.TWILIO_AUTH_TOKEN ?? "", url }), store });
 * receiver.on("message.delivered", (event, ctx) => ctx.commit((db) => markDelivered(db, event.MessageSid)));
 * receiver.onLate(() => {});
 */
export function twilio<Event extends object = TwilioEvent>(
  options: TwilioOptions<Event>,
): WebhookSource<OpenEvents<Event, Readonly<Record<string, Event>>, Event>> {
  const { url } = options;
  if (!isTwilioUrl(typeof url === "string" ? url : url?.origin) || (typeof url !== "string" && !isOrigin(url.origin)))
    throw invalidOption(
      "url",
      'must be the URL that you gave Twilio, without its query and fragment, or { origin: "https://example.com" }',
      url,
    );
  // The application's type describes what the definition reads.
  return sourceOf(definitionFor(url), options as unknown as SourceOptions<TwilioEvent>, { options: ["url"] });
}

export function isTwilioUrl(url: unknown): url is string {
  return typeof url === "string" && /^https?:\/\/[^?#]+$/.test(url) && URL.canParse(url);
}

function isOrigin(origin: string): boolean {
  return new URL(origin).origin === origin;
}

/** The hex SHA-256 of a JSON body; null for a form. */
export function bodyDigestIn(query: string): string | null {
  return BODY_DIGEST.exec(query)?.[1] ?? null;
}

function isJson(kept: Kept): boolean {
  return bodyDigestIn(kept.header(QUERY) ?? "") !== null;
}

interface Form {
  readonly fields: ParsedUrlQuery;
  /** What is signed of them. */
  readonly pairs: Uint8Array;
}

const NO_FORM: Form = { fields: {}, pairs: new Uint8Array() };

/** By their bytes, so that a form is parsed once, however often it is verified and read. */
const forms = new WeakMap<Uint8Array, Form | null>();

function formOf(body: Uint8Array): Form | null {
  const known = forms.get(body);
  if (known !== undefined) return known;
  const fields = fieldsOf(body);
  const form = fields === null ? null : { fields, pairs: Buffer.from(pairsOf(fields)) };
  forms.set(body, form);
  return form;
}

/**
 * A repeated name has each of its values once, in their order, because no more than that is signed. Null for more than Twilio sends, and as
 * `formFields`.
 */
function fieldsOf(body: Uint8Array): ParsedUrlQuery | null {
  if (body.length > LONGEST_FORM) return null;
  let count = 1;
  for (let at = body.indexOf(AMPERSAND); at >= 0; at = body.indexOf(AMPERSAND, at + 1))
    if (++count > MOST_FIELDS) return null;
  const fields = formFields(body);
  for (const name in fields) {
    const value = fields[name];
    if (!Array.isArray(value)) continue;
    const [first, ...others] = [...new Set(value)].sort();
    fields[name] = others.length === 0 ? first : [first ?? "", ...others];
  }
  return fields;
}

/** Names and values without anything between them, by name. */
function pairsOf(fields: ParsedUrlQuery): string {
  const names = Object.keys(fields).sort();
  return names.flatMap((name) => [fields[name] ?? ""].flat().map((value) => name + value)).join("");
}

/** How Twilio may have signed a URL: with or without its port, and some of its servers with other escapes. */
function* spellingsOf(url: string): Generator<string> {
  yield* portsOf(url);
  const { href } = new URL(url);
  if (href !== url) yield* portsOf(href);
  const mark = href.indexOf("?") + 1;
  if (mark > 0) yield* portsOf(href.slice(0, mark) + stringifyQuery(parseQuery(href.slice(mark))));
}

/** The same URL without a port, and with its own or the standard one. */
function portsOf(url: string): readonly string[] {
  const [, scheme = "", host = "", port = "", rest = ""] = URL_PARTS.exec(url) ?? [];
  const standard = scheme.toLowerCase() === "https://" ? ":443" : ":80";
  return [scheme + host + rest, scheme + host + (port || standard) + rest];
}

/** Scheme, user and host, port with its colon, and the rest. */
const URL_PARTS = /^([a-z]+:\/\/)((?:[^/?@]*@)?(?:\[[^\]]*\]|[^/?:]*))(:\d*)?(.*)$/is;

function parseJson(body: Uint8Array): Parsed<TwilioEvent> {
  const read = readJson(body);
  if (!read.ok) return read;
  const { value } = read;
  // What its fields are is Twilio's word.
  return typeof value === "object" && value !== null
    ? { ok: true, event: value as TwilioEvent }
    : { ok: false, code: "not_an_object" };
}

function messageOf(event: TwilioEvent): { readonly sid: string; readonly status: string } | null {
  const sid = textOf(event.MessageSid) ?? "";
  const status = textOf(event.MessageStatus) ?? textOf(event.SmsStatus) ?? "";
  return MESSAGE_SID.test(sid) && STATUS.test(status) ? { sid, status } : null;
}

function typeOf(event: TwilioEvent): string {
  const message = messageOf(event);
  if (message !== null) return `message.${message.status}`;
  const callStatus = textOf(event.CallStatus) ?? "";
  return STATUS.test(callStatus) ? `call.${callStatus}` : (textOf(event.EventType) ?? textOf(event.type) ?? "unknown");
}
