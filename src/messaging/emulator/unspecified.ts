/** What the specification does not show: one row per reading that changes what a receiver or a client must survive. */
import { invalidOption, numberOption, refuseUnknownOptions } from "../../internal/options.ts";
import type { WrittenEncoding } from "../../sources/messaging/sign.ts";

/** A row of the table: the rule of docs/spec/conformance.md, the values it can have (the first is the default), and what it decides. */
export interface Reading {
  readonly rule: string;
  readonly values: readonly (string | number | boolean)[] | NumberReading | TextReading;
  readonly decides: string;
}

/** Any number of a unit. */
export interface NumberReading {
  readonly unit: "ms";
  readonly default: number;
  readonly max: number;
}

/** Any text of a pattern. */
export interface TextReading {
  readonly pattern: RegExp;
  readonly default: string;
}

const ENCODINGS = ["hex", "HEX", "base64", "base64url", "sha256=hex", "v1=hex"] as const;
const TEN_YEARS_MS = 315_576_000_000;

/** The table. Its keys are the option's names as docs/spec/conformance.md writes them. */
export const READINGS = {
  unknownFields: {
    rule: "GEN-9",
    values: ["warn", "reject"],
    decides: "what unknown fields of a core request lead to",
  },
  "token.wwwAuthenticate": {
    rule: "TOK-21",
    values: [false, true],
    decides: "whether a 401 of the token route carries WWW-Authenticate",
  },
  "capabilities.enforce": { rule: "AUT-10", values: [false, true], decides: "whether a missing capability gives 403" },
  "webhooks.exposeEndpointUrl": {
    rule: "WHK-14",
    values: [false, true],
    decides: "whether a webhook configuration shows its endpointUrl",
  },
  absentTimestamps: {
    rule: "WHK-16",
    values: ["omit", "null", "zero"],
    decides: "how a timestamp without a value is written",
  },
  secretGeneration: {
    rule: "WHK-18",
    values: ["whenMissing", "everyPatch", "always", "never"],
    decides: "when an update generates a secret",
  },
  overlapMs: {
    rule: "WHK-19",
    values: { unit: "ms", default: 86_400_000, max: TEN_YEARS_MS },
    decides: "how long the previous secret stays valid",
  },
  rejectRotationDuringOverlap: {
    rule: "WHK-21",
    values: [false, true],
    decides: "whether a second rotation inside the window gets 400",
  },
  "webhooks.routes": { rule: "WHK-27", values: ["enabled", "404"], decides: "whether the webhook routes exist" },
  absentNullables: { rule: "NUM-6", values: ["null", "omit"], decides: "how a number's absent fields are written" },
  updateReturnsNull: { rule: "UPD-11", values: [false, true], decides: "whether an update answers with number: null" },
  rejectionCode: {
    rule: "SND-7",
    values: { pattern: /^[A-Z][A-Z0-9_]{0,63}$/, default: "INVALID_RECIPIENT" },
    decides: "the code with which a well-formed recipient is rejected: +15005550009",
  },
  replay: {
    rule: "SND-17",
    values: ["stored", "current"],
    decides: "whether a repeated send answers as the first time or with today's states",
  },
  allRejected: { rule: "SND-24", values: [202, 400], decides: "the status when every recipient is rejected" },
  sameSequence: {
    rule: "EVT-12",
    values: [false, true],
    decides: "whether one sequence can carry two message.delivery events",
  },
  deliveryStatus: {
    rule: "EVT-13",
    values: { pattern: /^[\x20-\x7e]{1,64}$/, default: "delivered" },
    decides: "data.status of message.delivery",
  },
  retryFrom: {
    rule: "DLV-6",
    values: ["previous", "first"],
    decides: "whether a retry is counted from the attempt before it or from the first",
  },
  retryBody: {
    rule: "DLV-8",
    values: ["same", "reserialised"],
    decides: "whether a retry repeats the bytes or only the content",
  },
  "webhooks.method": { rule: "DLV-11", values: ["POST", "PUT"], decides: "the HTTP method of a webhook" },
  "webhooks.contentType": {
    rule: "DLV-11",
    values: { pattern: /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:; ?[\w-]+=[\w."-]+)*$/, default: "application/json" },
    decides: "the content type of a webhook",
  },
  signatureEncoding: { rule: "DLV-12", values: ENCODINGS, decides: "how a signature is written" },
  timestampUnit: { rule: "DLV-13", values: ["ms", "s"], decides: "the unit of X-Service-Timestamp" },
  secretEncoding: {
    rule: "DLV-14",
    values: ["utf8", "base64", "hex"],
    decides: "how a secret's text becomes the key",
  },
  overrideSigning: {
    rule: "DLV-15",
    values: ["inherit", "unsigned"],
    decides: "whether a number's own target is signed as its kind",
  },
  overlapSigning: {
    rule: "DLV-16",
    values: ["current", "previous", "both", "alternate"],
    decides: "which secret signs while two are valid",
  },
  retrySignature: {
    rule: "DLV-17",
    values: ["fresh", "frozen"],
    decides: "whether a retry is signed anew or keeps its first timestamp and secret",
  },
  resolveTarget: {
    rule: "DLV-18",
    values: ["attempt", "event"],
    decides: "when target and secret are looked up",
  },
} as const satisfies Record<string, Reading>;

/** The name of a reading: `"webhooks.routes"`. */
export type ReadingName = keyof typeof READINGS;

type ValueOf<Values> = Values extends readonly (infer Value)[]
  ? Value
  : Values extends { unit: "ms" }
    ? number
    : string;

/** A value for each reading; the type of the option `unspecified`, where all are optional. */
export type Readings = { readonly [Name in ReadingName]: ValueOf<(typeof READINGS)[Name]["values"]> };

const NAMES = Object.keys(READINGS) as ReadingName[];

/**
 * The readings in force: `chosen` over `base` (a profile's) over the defaults.
 *
 * @throws SetupError for an unknown name or value
 */
export function readingsFrom(chosen: Partial<Readings> = {}, base: Partial<Readings> = {}): Readings {
  refuseUnknownOptions("unspecified", chosen, NAMES);
  const entries = NAMES.map((name) => [name, checked(name, chosen[name] ?? base[name])]);
  return Object.fromEntries(entries) as Readings;
}

function checked(name: ReadingName, value: unknown): string | number | boolean {
  const { values }: Reading = READINGS[name];
  const option = `unspecified["${name}"]`;
  if ("unit" in values) return numberOption(option, value, values.default, { min: 0, max: values.max, unit: "ms" });
  if ("pattern" in values) {
    if (value === undefined) return values.default;
    if (typeof value === "string" && values.pattern.test(value)) return value;
    throw invalidOption(option, `must match ${values.pattern.source}`, value);
  }
  const [first] = values;
  const chosen = value === undefined ? first : values.find((known) => known === value);
  if (chosen !== undefined) return chosen;
  throw invalidOption(option, `must be one of ${values.map((known) => JSON.stringify(known)).join(", ")}`, value);
}

/** A reading's value from a text, as a command line gives it: `"true"` becomes `true`, `"400"` and digits of a duration a number. */
export function readingFromText(name: string, text: string): Partial<Readings> {
  refuseUnknownOptions("unspecified", { [name]: text }, NAMES);
  const { values }: Reading = READINGS[name as ReadingName];
  if ("unit" in values) return { [name]: /^\d+$/.test(text) ? Number(text) : text };
  if ("pattern" in values) return { [name]: text };
  return { [name]: values.find((known) => String(known) === text) ?? text };
}

// The signing function's own list must hold every encoding of the table, and the other way round.
ENCODINGS satisfies readonly WrittenEncoding[];
