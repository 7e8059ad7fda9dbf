/** `hmacSource()`: a source from data, for providers that sign with an HMAC and need no code. */
import { Buffer } from "node:buffer";
import { SetupError } from "../errors.ts";
import { choiceOption, invalidOption, isRecord, refuseUnknownOptions } from "../internal/options.ts";
import { sourceOf } from "./define-source.ts";
import {
  checkDefinition,
  type OpenEvents,
  type SourceDefinition,
  type SourceOptions,
  type Verdict,
} from "./definition.ts";
import type { Kept, RequestHead } from "./headers.ts";
import {
  MALFORMED,
  MALFORMED_TIME,
  MISSING,
  MOST_SIGNATURES,
  parseObject,
  secondsAsMs,
  signatureBytes,
  signedBy,
} from "./signatures.ts";
import type { WebhookSource } from "./source.ts";

/** Where a text is: in a field of the JSON body, named by its path (`data.id`), or in a header. */
export type From = { readonly body: string } | { readonly header: string };

/** How a provider signs, as data. */
export interface HmacScheme<Event extends object = Readonly<Record<string, unknown>>>
  extends Pick<SourceDefinition<Event>, "accepted" | "handshake" | "challenge" | "shows"> {
  /** The name of this kind of source, recorded in the inbox: `[a-z][a-z0-9-]{0,31}`. */
  readonly preset: string;
  /** The header with the signature, in lower case. */
  readonly header: string;
  /** Default `"hex"`. */
  readonly encoding?: "hex" | "base64";
  /** Default `"sha256"`. */
  readonly hash?: "sha256" | "sha1";
  /** What stands before the signature, such as `sha256=`. Default: nothing. Unused with `items`. */
  readonly prefix?: string;
  /**
   * For a header of several items, such as `t=1700000000,v1=5257a8`: what separates them, and the names of the signatures and of the time.
   * Several items may have the signature's name.
   */
  readonly items?: { readonly separator: string; readonly signature: string; readonly timestamp?: string };
  /** The header with the time that is signed, in lower case. Default: that of `items`, or none. */
  readonly timestamp?: string;
  /** Whether the time is in seconds (default) or milliseconds. */
  readonly timestampUnit?: "s" | "ms";
  /** What is signed: `{body}`, `{timestamp}` and `{header:NAME}` among other characters, each once at most. Default `{body}`. */
  readonly signed?: string;
  /** How the text of a secret becomes the bytes of a key. Default `"utf8"`. */
  readonly key?: "utf8" | "base64" | "hex";
  /**
   * What makes two deliveries the same event: a field of the body, a header that is part of `signed`, or `"digest"`, the body's digest. A header
   * that is not signed is refused: who changes it could suppress an event. With `"digest"` a second event with an equal body is a duplicate, and
   * is not handled. So it does not fit pings, whose bodies are all alike.
   */
  readonly identity: From | "digest";
  /** Where the type of an event is. Default: every event has the type `unknown`. */
  readonly type?: From;
  /** A header or field to search by, such as a delivery's id. Default: none. */
  readonly reference?: From;
  /** Other headers that are stored next to the body, in lower case, for `ctx.header()`. */
  readonly keep?: readonly string[];
  /** Bytes. Default 1 MiB. */
  readonly maxBodyBytes?: number;
  /** How long the provider waits for an answer, milliseconds. Default 10,000. */
  readonly answerMs?: number;
  /** How long after an event it may come again, milliseconds. */
  readonly lastRetryMs: number;
}

const SCHEME = [
  "preset",
  "header",
  "encoding",
  "hash",
  "prefix",
  "items",
  "timestamp",
  "timestampUnit",
  "signed",
  "key",
  "identity",
  "type",
  "reference",
  "keep",
  "maxBodyBytes",
  "answerMs",
  "lastRetryMs",
  "accepted",
  "handshake",
  "challenge",
  "shows",
] as const satisfies readonly (keyof HmacScheme)[];

const LENGTHS = { sha256: 32, sha1: 20 } as const;
const LONGEST_HEADER = 4_096;
const MILLISECONDS = /^[1-9]\d{11,13}$/;
const HEADER_NAME = /^[a-z0-9-]{1,64}$/;
const PIECE = /\{(body|timestamp|header:[a-z0-9-]{1,64})\}/;

/** A part of what is signed: a text, or where it comes from. */
type Piece = { readonly text: string } | { readonly from: "body" | "timestamp" } | { readonly header: string };

/**
 * Makes a source from data: a function that takes the secrets.
 *
 * @typeParam Event - what handlers receive
 * @typeParam ByType - the event of each type, for `on()`. Default: any type, with `Event`
 * @throws SetupError for a wrong scheme; the function throws it for a wrong option
 * @example
 * const acme = hmacSource<AcmeEvent>({ preset: "acme", header: "acme-signature", identity: { body: "id" }, lastRetryMs: 6 * 3_600_000 });
 * const receiver = createReceiver({ source: acme({ secrets: process.env.ACME_SECRET ?? "" }), store });
 */
export function hmacSource<
  Event extends object = Readonly<Record<string, unknown>>,
  ByType extends object = Readonly<Record<string, Event>>,
>(scheme: HmacScheme<Event>): (options: SourceOptions<Event>) => WebhookSource<OpenEvents<Event, ByType>> {
  const definition = hmacDefinition<Event>(scheme);
  checkDefinition(definition);
  return (options) => sourceOf<Event, OpenEvents<Event, ByType>>(definition, options);
}

/** @throws SetupError for a wrong scheme */
export function hmacDefinition<Event extends object>(scheme: HmacScheme<Event>): SourceDefinition<Event> {
  refuseUnknownOptions("hmacSource()", scheme, SCHEME);
  const {
    preset,
    header,
    items,
    prefix = "",
    identity,
    type,
    reference,
    maxBodyBytes,
    answerMs,
    lastRetryMs,
    accepted,
    handshake,
    challenge,
    shows = [],
  } = scheme;
  const encoding = choiceOption("encoding", scheme.encoding, "hex", ["hex", "base64"]);
  const hash = choiceOption("hash", scheme.hash, "sha256", ["sha256", "sha1"]);
  const unit = choiceOption("timestampUnit", scheme.timestampUnit, "s", ["s", "ms"]);
  const keyEncoding = choiceOption("key", scheme.key, "utf8", ["utf8", "base64", "hex"]);
  for (const name of [header, scheme.timestamp])
    if (name !== undefined && !HEADER_NAME.test(name)) throw notHeader(name);
  const pieces = piecesOf(scheme.signed ?? "{body}");
  const hasTime = scheme.timestamp !== undefined || items?.timestamp !== undefined;
  if (pieces.some((piece) => "from" in piece && piece.from === "timestamp") !== hasTime) throw timeUnsigned();
  checkPlace("type", type);
  checkPlace("reference", reference);
  checkIdentity(identity, pieces);
  const places = [identity, type, reference].filter((place) => typeof place === "object");
  const kept = places.flatMap((place) => ("header" in place ? [place.header] : []));
  // Lists show them already.
  const shown = places.flatMap((place) => ("body" in place ? [place.body] : []));
  return {
    preset,
    lastRetryMs,
    ...(maxBodyBytes !== undefined && { maxBodyBytes }),
    ...(answerMs !== undefined && { answerMs }),
    ...(accepted !== undefined && { accepted }),
    ...(handshake !== undefined && { handshake }),
    ...(challenge !== undefined && { challenge }),
    keep: [...new Set([...kept, ...(scheme.keep ?? [])])],
    shows: Array.isArray(shows) ? [...new Set([...shown, ...shows])] : shows,
    key: (text) => decodeKey(text, keyEncoding),
    signedBy: [[header, ...(scheme.timestamp === undefined ? [] : [scheme.timestamp]), ...headersIn(pieces)]],
    verify(head, body, keys, { checkAge }): Verdict {
      const value = head.header(header) ?? "";
      const found = items === undefined ? { signatures: [value], time: null } : itemsOf(value, items);
      const time = scheme.timestamp === undefined ? (found?.time ?? null) : (head.header(scheme.timestamp) ?? null);
      if (found === null || (hasTime && time === null)) return found === null ? MALFORMED : MISSING;
      const signatures = found.signatures.flatMap((text) => {
        if (!text.startsWith(prefix)) return [];
        return signatureBytes(text.slice(prefix.length), encoding, LENGTHS[hash]) ?? [];
      });
      if (signatures.length === 0) return MALFORMED;
      const signedAt = time === null ? null : unit === "s" ? secondsAsMs(time) : millisecondsOf(time);
      if (time !== null && signedAt === null) return MALFORMED_TIME;
      const expired = signedAt === null ? null : checkAge(signedAt);
      if (expired !== null) return { ok: false, code: expired };
      return signedBy(keys, signatures, hash, partsOf(pieces, head, time, body), signedAt);
    },
    parse: parseObject,
    place(event, { digest }, keptHead) {
      const textOf = (from: From | undefined) => (from === undefined ? undefined : textAt(from, event, keptHead));
      return {
        type: textOf(type) ?? "unknown",
        id: identity === "digest" ? digest() : (textOf(identity) ?? ""),
        reference: textOf(reference),
      };
    },
  };
}

function itemsOf(
  header: string,
  { separator, signature, timestamp }: NonNullable<HmacScheme["items"]>,
): { readonly signatures: readonly string[]; readonly time: string | null } | null {
  if (header.length > LONGEST_HEADER) return null;
  const signatures: string[] = [];
  const times: string[] = [];
  for (const item of header.split(separator)) {
    const equals = item.indexOf("=");
    const [name, value] = [item.slice(0, equals).trim(), item.slice(equals + 1).trim()];
    if (name === signature) signatures.push(value);
    else if (name === timestamp) times.push(value);
  }
  const isWrong = signatures.length === 0 || signatures.length > MOST_SIGNATURES || times.length > 1;
  return isWrong ? null : { signatures, time: times[0] ?? null };
}

function piecesOf(template: string): readonly Piece[] {
  const texts = template.split(PIECE);
  const pieces = texts.flatMap((text, index): Piece[] => {
    if (index % 2 === 0) return text === "" ? [] : [{ text }];
    if (text === "body" || text === "timestamp") return [{ from: text }];
    return [{ header: text.slice("header:".length) }];
  });
  const names = texts.filter((_text, index) => index % 2 === 1);
  const isWrong = template.replaceAll(new RegExp(PIECE, "g"), "").match(/[{}]/) !== null;
  if (isWrong || !names.includes("body") || new Set(names).size !== names.length) {
    const rule = "must contain {body}, and may contain {timestamp} and {header:NAME} with a lower-case name, each once";
    throw invalidOption("signed", rule, template);
  }
  return pieces;
}

function headersIn(pieces: readonly Piece[]): readonly string[] {
  return pieces.flatMap((piece) => ("header" in piece ? [piece.header] : []));
}

function partsOf(
  pieces: readonly Piece[],
  head: RequestHead,
  time: string | null,
  body: Uint8Array,
): readonly (string | Uint8Array)[] {
  return pieces.map((piece) => {
    if ("text" in piece) return piece.text;
    if ("from" in piece) return piece.from === "body" ? body : (time ?? "");
    return head.header(piece.header) ?? "";
  });
}

function checkPlace(option: string, place: From | undefined): void {
  if (place === undefined) return;
  const entries: readonly [string, unknown][] = isRecord(place) ? Object.entries(place) : [];
  const [name, value] = entries[0] ?? ["", undefined];
  const isHeader = name === "header" && typeof value === "string" && HEADER_NAME.test(value);
  const isField = name === "body" && typeof value === "string" && value !== "";
  if (entries.length === 1 && (isHeader || isField)) return;
  throw invalidOption(option, 'must be { body: "a.path" } or { header: "a-lower-case-name" }', place);
}

function checkIdentity(identity: From | "digest" | undefined, pieces: readonly Piece[]): void {
  if (identity === undefined) throw invalidOption("identity", SAY_IDENTITY, identity);
  if (identity === "digest") return;
  checkPlace("identity", identity);
  if ("body" in identity) return;
  const at = pieces.findIndex((piece) => "header" in piece && piece.header === identity.header);
  if (at >= 0) {
    const isApart = [pieces[at - 1], pieces[at + 1]].every((beside) => beside === undefined || "text" in beside);
    if (isApart) return;
    const rule = `is the header ${identity.header}, whose end is not signed: in "signed" it stands next to another part without a text between them, so characters could move from one to the other. Use a field of the body, or "digest"`;
    throw invalidOption("identity", rule, identity);
  }
  const rule = `is the header ${identity.header}, which is not part of "signed": anyone could change it. Use a field of the body, or "digest"`;
  throw invalidOption("identity", rule, identity);
}

const SAY_IDENTITY =
  'must be { body: "id" } for a field that is the same in each retry, { header: "x-id" } for a signed header, or "digest" if no two events have equal bodies';

/** A text or a number in a header or a field of the body. */
function textAt(place: From, event: object, kept: Kept): string | undefined {
  if ("header" in place) return kept.header(place.header);
  let value: unknown = event;
  for (const name of place.body.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  // Larger numbers lose digits when they are parsed, so two ids would be one.
  if (typeof value === "number") return Number.isSafeInteger(value) ? `${value}` : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}

function millisecondsOf(text: string): number | null {
  return MILLISECONDS.test(text) ? Number(text) : null;
}

function decodeKey(text: string, encoding: "utf8" | "base64" | "hex"): Uint8Array {
  const bytes = Buffer.from(text, encoding);
  if (encoding !== "utf8" && bytes.toString(encoding) !== (encoding === "hex" ? text.toLowerCase() : text))
    throw new SetupError("invalid_secret", `must be ${encoding}`);
  return bytes;
}

function notHeader(name: string): SetupError {
  return new SetupError("invalid_option", `hmacSource() takes lower-case names of headers, and "${name}" is not one.`);
}

function timeUnsigned(): SetupError {
  const message =
    'Option "signed" must contain {timestamp} if the scheme has a timestamp, and only then: a time that is not signed proves nothing.';
  return new SetupError("invalid_option", message, { fields: { option: "signed" } });
}
