/** What is wrong with a request before it is sent, and with the answer to one: "path: rule" texts that never hold a value. */
import { z } from "zod";
import { type Bounds, isAbortSignal, isRecord, suggestion } from "../../internal/options.ts";
import { ruleOf } from "../../sources/messaging/parse.ts";
import { isWebhookKind, WEBHOOK_KIND_RULE } from "../../sources/messaging/webhook-kind.ts";
import { secretTextIssue } from "../../sources/secret.ts";
import { recordOf } from "./answers.ts";
import { type CallFacts, RecipientsRejectedError, ResponseValidationError } from "./errors.ts";
import { type CallOptions, RETRY_BOUNDS, TIMEOUT_BOUNDS } from "./options.ts";
import type { PhoneNumber, SendResult, UpdatedWebhookConfig } from "./types.ts";

// What the service would refuse for certain is refused before a request: "path: rule" texts that say what to do, never a value.

/** What a value must be, to stand after its path; undefined when it is that. */
type Rule = (value: unknown) => string | undefined;

/** The fields that a request knows. A field that is undefined is absent, as it is in JSON. */
interface Shape {
  readonly rules: Readonly<Record<string, Rule>>;
  readonly required: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

/** A send can have thousands of wrong recipients; at most so many problems are listed. */
const MOST_ISSUES = 20;

/** As the service reads it: nothing is trimmed (SND-25). */
const E164 = /^\+[1-9]\d{1,14}$/;

/** Only what looks like a field's name is shown: a key could be a phone number. */
const FIELD_NAME = /^[A-Za-z]\w{0,39}$/;

const text: Rule = (value) => (typeof value === "string" ? undefined : "must be a text");
const filledText: Rule = (value) =>
  typeof value === "string" && value !== "" ? undefined : "must be a text that is not empty";
const flag: Rule = (value) => (typeof value === "boolean" ? undefined : "must be true or false");
const textOrNull: Rule = (value) =>
  value === null || typeof value === "string" ? undefined : "must be a text, or null to clear it";
const urlOrNull: Rule = (value) =>
  value === null || isHttpUrl(value) ? undefined : "must be an http or https URL, or null to remove it";
const channel: Rule = (value) => (value === "SMS" || value === "MMS" ? undefined : 'must be "SMS" or "MMS"');
const byteCount: Rule = (value) => (Number.isSafeInteger(value) ? undefined : "must be a whole number of bytes");
const sender: Rule = (value) =>
  typeof value === "string" && value !== "" && !E164.test(value)
    ? undefined
    : "must be a numberId as numbers.list() shows it, not the phone number";
/** The service has no such rule (WHK-24), but no receiver would take its deliveries. */
const signingSecret: Rule = (value) => {
  if (typeof value !== "string" || value === "") return filledText(value);
  const issue = secretTextIssue(value);
  return issue === null
    ? undefined
    : `${issue}. Receivers refuse it, so it is not sent; validateRequests: false sends it`;
};
/** Looked at next to the shape, element by element. */
const elsewhere: Rule = () => undefined;

const SEND: Shape = {
  rules: {
    sendFrom: sender,
    to: elsewhere,
    messageType: channel,
    text,
    media: elsewhere,
    externalReference: filledText,
  },
  required: ["sendFrom", "messageType", "externalReference"],
};

const MEDIA: Shape = {
  rules: { storageKey: text, mimeType: text, byteLength: byteCount, sourceUrl: text, fileName: text },
  required: ["storageKey", "mimeType", "byteLength"],
};

const NUMBER_UPDATE: Shape = {
  rules: {
    campaignregId: textOrNull,
    smsEnabled: flag,
    mmsEnabled: flag,
    webhookInboundOverride: urlOrNull,
    webhookDeliveryOverride: urlOrNull,
  },
  required: [],
};

const SEARCH: Shape = {
  rules: { npa: text, nxx: text, city: text, state: text, zipCode: text, rateCenter: text },
  required: [],
};

const WEBHOOK_UPDATE: Shape = {
  rules: { endpointUrl: urlOrNull, enabled: flag, signingEnabled: flag, secret: signingSecret },
  required: ["signingEnabled"],
};

/** Of a send (SND-3, SND-6, SND-10 to SND-14, SND-26). One wrong recipient is the service's to reject, as data (CLI-9). */
export function sendIssues(request: unknown): string[] {
  if (!isRecord(request)) return ["request: must be an object"];
  const issues = [
    ...shapeIssues(SEND, request),
    ...recipientIssues(request.to),
    ...mediaIssues(request.messageType, request.media),
  ];
  return issues.slice(0, MOST_ISSUES);
}

/** Of a number's update (UPD-4, UPD-5, UPD-7 to UPD-9, UPD-15). */
export function numberUpdateIssues(update: unknown): string[] {
  if (!isRecord(update)) return ["update: must be an object"];
  const { campaignRegId, ...fields } = update;
  const issues = shapeIssues(NUMBER_UPDATE, fields);
  // The service ignores it: without this the call would succeed and change nothing.
  if (campaignRegId !== undefined) issues.push('campaignRegId: requests write "campaignregId", with a small r');
  return issues.slice(0, MOST_ISSUES);
}

/** Of a search; nothing searches everything. The service's own rules (SEA-1 to SEA-5), as they are currently (SEA-15). */
export function searchIssues(search: unknown): string[] {
  if (search === undefined) return [];
  if (!isRecord(search)) return ["search: must be an object"];
  const issues = shapeIssues(SEARCH, search);
  const { npa, nxx, city, state, rateCenter } = search;
  if (nxx !== undefined && npa === undefined) issues.push("nxx: needs npa");
  if (city !== undefined && state === undefined) issues.push("city: needs state");
  if (rateCenter !== undefined && state === undefined) issues.push("rateCenter: needs state");
  if (rateCenter !== undefined) {
    issues.push("rateCenter: is currently refused by the service; validateRequests: false sends it all the same");
  }
  return issues.slice(0, MOST_ISSUES);
}

/** Of an update of a webhook kind's default (WHK-8 to WHK-11, WHK-24, WHK-25). */
export function webhookUpdateIssues(update: unknown): string[] {
  return isRecord(update) ? shapeIssues(WEBHOOK_UPDATE, update) : ["update: must be an object"];
}

function shapeIssues({ rules, required }: Shape, fields: Fields, path = ""): string[] {
  const issues: string[] = [];
  for (const name of required) {
    if (fields[name] === undefined) issues.push(`${path}${name}: is missing; it ${rules[name]?.(undefined)}`);
  }
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    if (value === undefined) continue;
    const problem = Object.hasOwn(rules, name) ? rules[name]?.(value) : undefined;
    if (problem !== undefined) issues.push(`${path}${name}: ${problem}`);
    if (!Object.hasOwn(rules, name)) issues.push(unknownFieldIssue(path, name, Object.keys(rules)));
    if (issues.length >= MOST_ISSUES) break;
  }
  return issues;
}

/** Most likely misspelled: the service would ignore it, or refuse it (GEN-9). */
function unknownFieldIssue(path: string, name: string, known: readonly string[]): string {
  return FIELD_NAME.test(name)
    ? `${path}${name}: is not known here. ${suggestion(name, known)}`
    : `${path}(a key): is not known here. Known: ${known.join(", ")}.`;
}

/** The call is refused only when no recipient can be accepted; among others, a wrong one comes back in `errors` (SND-7). */
function recipientIssues(to: unknown): string[] {
  if (!Array.isArray(to) || to.length === 0) return ["to: must be a list of at least one phone number"];
  const issues: string[] = [];
  let possible = 0;
  // By index, for holes are null in JSON.
  for (let i = 0; i < to.length; i++) {
    const recipient: unknown = to[i];
    if (typeof recipient !== "string") issues.push(`to.${i}: must be a text`);
    else if (E164.test(recipient)) possible += 1;
    if (issues.length >= MOST_ISSUES) return issues;
  }
  if (issues.length > 0 || possible > 0) return issues;
  return ["to: holds no phone number in E.164 form, a plus sign and 2 to 15 digits without spaces"];
}

function mediaIssues(messageType: unknown, media: unknown): string[] {
  if (messageType === "SMS") return media === undefined ? [] : ["media: must be left out for SMS"];
  if (media === undefined && messageType !== "MMS") return [];
  if (!Array.isArray(media) || media.length === 0) return ["media: must be a list of at least one medium for MMS"];
  const issues: string[] = [];
  for (let i = 0; i < media.length && issues.length < MOST_ISSUES; i++) {
    const medium: unknown = media[i];
    if (isRecord(medium)) issues.push(...shapeIssues(MEDIA, medium, `media.${i}.`));
    else issues.push(`media.${i}: must be an object`);
  }
  return issues;
}

function isHttpUrl(value: unknown): boolean {
  return typeof value === "string" && /^https?:\/\//i.test(value) && URL.canParse(value);
}

// What every call refuses whatever `validateRequests` says: it could not be sent, or not be told apart from another call.

/** Visible ASCII: what every HTTP implementation carries in a header unchanged. */
const KEY = /^[\x21-\x7e]{1,255}$/;
/** A token of RFC 9110, 5.6.2. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]{1,100}$/;
const HEADER_VALUE = /^(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?$/;
/** What the client sets itself, and what belongs to the connection (RFC 9110, 7.6.1). */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  ...["accept", "authorization", "content-encoding", "content-length", "content-type", "idempotency-key"],
  ...["connection", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection"],
  ...["te", "trailer", "transfer-encoding", "upgrade"],
]);
const MOST_HEADERS = 50;
const METHODS: readonly unknown[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** Of the last argument of a call. */
export function optionIssues(options: unknown, known: readonly string[]): string[] {
  if (options === undefined) return [];
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    return ["options: must be an object, such as { signal }"];
  }
  const issues = Object.keys(options)
    .filter((name) => !known.includes(name))
    .map((name) => unknownFieldIssue("options.", name, known));
  const { signal, timeoutMs, maxRetries, headers }: { [Name in keyof CallOptions]?: unknown } = options;
  if (signal !== undefined && !isAbortSignal(signal)) issues.push("options.signal: must be an AbortSignal");
  issues.push(...numberIssues("timeoutMs", timeoutMs, TIMEOUT_BOUNDS));
  issues.push(...numberIssues("maxRetries", maxRetries, RETRY_BOUNDS), ...headerIssues(headers));
  return issues;
}

function numberIssues(name: string, value: unknown, { min, max, unit }: Bounds): string[] {
  if (value === undefined) return [];
  const fits = typeof value === "number" && Number.isInteger(value) && value >= min && value <= max;
  return fits ? [] : [`options.${name}: must be a whole number from ${min} to ${max} ${unit}`];
}

/** Names are shown only where they are plain; values never. */
function headerIssues(headers: unknown): string[] {
  if (headers === undefined) return [];
  const isPlain = isRecord(headers) && !(headers instanceof Headers);
  if (!isPlain) return ['options.headers: must be an object of names and values, such as { "x-trace": "1" }'];
  const entries = Object.entries(headers);
  if (entries.length > MOST_HEADERS) return [`options.headers: must hold at most ${MOST_HEADERS} headers`];
  return entries.flatMap(([name, value]) => headerIssue(name, value) ?? []);
}

function headerIssue(name: string, value: unknown): string | null {
  if (!HEADER_NAME.test(name)) return "options.headers: a name is not the name of a header";
  const shown = /^[a-z-]{1,40}$/i.test(name) ? `options.headers.${name}` : "options.headers: a header";
  if (OWN_HEADERS.has(name.toLowerCase())) return `${shown}: is set by the client itself; leave it out`;
  if (typeof value === "string" && value.length <= 8_192 && HEADER_VALUE.test(value)) return null;
  return `${shown}: must be a text of at most 8192 visible ASCII characters, with spaces only in between`;
}

export function keyIssues(key: unknown): string[] {
  return typeof key === "string" && KEY.test(key)
    ? []
    : ["options.idempotencyKey: must be 1 to 255 visible ASCII characters"];
}

/** `.` and `..` would be taken out of the path, so that another route would get the call. */
export function numberIdIssues(numberId: unknown): string[] {
  const isSegment = typeof numberId === "string" && numberId.isWellFormed() && !["", ".", ".."].includes(numberId);
  return isSegment ? [] : ["numberId: must be a numberId as numbers.list() shows it"];
}

export function methodIssues(method: unknown): string[] {
  return METHODS.includes(method) ? [] : [`method: must be ${METHODS.join(", ")}, in capitals`];
}

/** A path that leads to another place than it says, or to another host, would take the token there. */
export function pathIssues(path: unknown): string[] {
  const isPath = typeof path === "string" && /^\/(?!\/)[\x21\x24-\x5b\x5d-\x7e]*$/.test(path);
  if (!isPath) return ['path: must begin with one slash, and be encoded: visible ASCII without # " and backslash'];
  const segments = (path.split("?")[0] ?? "").split("/");
  return segments.some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment)) ? ["path: must have no . or .. in it"] : [];
}

export function kindIssues(kind: unknown): string[] {
  return isWebhookKind(kind) ? [] : [`kind: ${WEBHOOK_KIND_RULE}`];
}

/** The JSON of a request; undefined for what has none. */
export function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** Of the argument that `body` was made of. */
export function bodyIssues(name: string, value: unknown, body: string | undefined): string[] {
  if (body !== undefined) return [];
  return [`${name}: ${value === undefined ? "is missing; it must be an object" : "cannot be written as JSON"}`];
}

// What successes look like, as zod schemas: loose, so that fields and values that the specification does not show pass.

/** At most so many problems of an answer are listed. */
const MOST_ANSWER_ISSUES = 20;

/**
 * A list whose items are looked at one by one, until there are enough problems: zod's own tells a problem of each item first, and an
 * answer that may be read holds millions of items.
 */
function listOf<Item extends z.ZodType>(item: Item) {
  return z.custom<z.infer<Item>[]>().check(({ value, issues }) => {
    if (!Array.isArray(value)) {
      issues.push({ code: "invalid_type", expected: "array", input: value });
      return;
    }
    for (let index = 0; index < value.length && issues.length < MOST_ANSWER_ISSUES; index++) {
      const { error } = item.safeParse(value[index]);
      for (const issue of error?.issues ?? [])
        issues.push({ ...issue, path: [index, ...issue.path], input: undefined });
    }
  });
}

/** Absent, null or 0 without a value (WHK-16). */
const timestamp = z.int().nullish();

const webhookConfig = z.looseObject({
  eventClass: z.string(),
  scope: z.string(),
  enabled: z.boolean(),
  signingEnabled: z.boolean(),
  hasCurrentSecret: z.boolean(),
  hasPreviousSecret: z.boolean(),
  previousSecretValidUntil: timestamp,
  rotatedAt: timestamp,
  // In no table of the specification (WHK-14).
  endpointUrl: z.string().nullish(),
});

const phoneNumber = z.looseObject({
  numberId: z.string(),
  e164: z.string(),
  status: z.string(),
  // A capital R, unlike in requests (NUM-3).
  campaignRegId: z.string().nullish(),
  smsEnabled: z.boolean(),
  mmsEnabled: z.boolean(),
  webhookInboundOverride: z.string().nullish(),
  webhookDeliveryOverride: z.string().nullish(),
});

const availableNumber = z.looseObject({
  e164: z.string(),
  nationalDisplay: z.string().nullish(),
  city: z.string().nullish(),
  state: z.string().nullish(),
  rateCenter: z.string().nullish(),
});

const rejectedRecipient = z.looseObject({
  // What was sent, whatever it is (SND-8).
  to: z.string(),
  error: z.looseObject({ code: z.string(), message: z.string(), details: z.looseObject({}) }),
});

/** The body of each operation's success. */
export const RESPONSES = {
  whoami: z.looseObject({
    apiClientId: z.string(),
    apiClientName: z.string(),
    apiClientStatus: z.string(),
    capabilities: listOf(z.string()),
    assignedNumbers: z.looseObject({ total: z.int(), smsEnabledCount: z.int(), mmsEnabledCount: z.int() }),
    inboundWebhookConfigured: z.boolean(),
    deliveryWebhookConfigured: z.boolean(),
  }),
  "webhooks.get": z.looseObject({
    defaults: z.looseObject({ inbound: webhookConfig, delivery: webhookConfig }),
    overridesSummary: z.looseObject({ inboundOverrideCount: z.int(), deliveryOverrideCount: z.int() }),
  }),
  "webhooks.update": webhookConfig.extend({ generatedSecret: z.string().nullish() }),
  "numbers.list": z.looseObject({ numbers: listOf(phoneNumber) }),
  "numbers.search": z.looseObject({
    groups: listOf(
      z.looseObject({
        rateCenter: z.string(),
        // Not necessarily the length of the list (SEA-14).
        count: z.int(),
        numbers: listOf(availableNumber),
      }),
    ),
    providerResultCount: z.int().nullish(),
    requestedQuantity: z.int(),
  }),
  "numbers.update": z.looseObject({ number: phoneNumber.nullable() }),
  "messages.send": z.looseObject({
    results: listOf(z.looseObject({ to: z.string(), messageId: z.string(), status: z.string() })),
    errors: listOf(rejectedRecipient),
  }),
} as const satisfies Record<string, z.ZodType>;

/** An operation that has a body of its own. */
export type Operation = keyof typeof RESPONSES;

/** Where a body differs from its schema: `results.0.messageId: expected string`. Names are the schema's, so no value is among them. */
export function issuesOf(schema: z.ZodType, body: unknown): string[] {
  const result = schema.safeParse(body);
  if (result.success) return [];
  return result.error.issues
    .slice(0, MOST_ANSWER_ISSUES)
    .map((issue) => `${issue.path.join(".") || "body"}: ${ruleOf(issue)}`);
}

// What the methods make of a success: the service's own object, and what the client adds to it.

export type Body = Readonly<Record<string, unknown>>;

/** The numbers of a list; what follows needs an array, whatever `validateResponses` says. */
export function numbersOf(body: Body, facts: CallFacts): readonly PhoneNumber[] {
  const { numbers } = body;
  if (!Array.isArray(numbers)) throw new ResponseValidationError(["numbers: expected array"], facts, body);
  return numbers;
}

/** The updated number; null when the service shows none (UPD-11). */
export function updatedNumberOf(body: Body, facts: CallFacts): PhoneNumber | null {
  const { number } = body;
  if (number === null || number === undefined) return null;
  if (!isRecord(number)) throw new ResponseValidationError(["number: expected object"], facts, body);
  return number as unknown as PhoneNumber;
}

/** A generated secret stays readable by its name, and out of logs and JSON. */
export function updatedConfigOf(body: Body): UpdatedWebhookConfig {
  const { generatedSecret: value, ...shown } = body;
  if (value !== undefined) Object.defineProperty(shown, "generatedSecret", { value, enumerable: false });
  return shown as unknown as UpdatedWebhookConfig;
}

/** Rejected recipients are data (CLI-9), until the caller asks for an error. */
export function sendResultOf(body: Body, facts: CallFacts & { readonly idempotencyKey: string }): SendResult {
  const { results, errors } = body;
  if (!Array.isArray(results)) throw new ResponseValidationError(["results: expected array"], facts, body);
  if (!Array.isArray(errors)) throw new ResponseValidationError(["errors: expected array"], facts, body);
  const result: SendResult = {
    ...body,
    results,
    errors,
    idempotencyKey: facts.idempotencyKey,
    allRejected: results.length === 0,
    throwIfRejected() {
      if (errors.length === 0) return result;
      const codes = errors.map((rejected) => String(recordOf(recordOf(rejected).error).code));
      throw new RecipientsRejectedError({ accepted: results.length, rejected: errors.length, codes }, facts);
    },
  };
  // Logged and compared as the data that it is.
  return Object.defineProperty(result, "throwIfRejected", { enumerable: false });
}
