/** What is an event, written down a second time, by hand and from the specification's tables; and what makes two of them one. */
import { createHash } from "node:crypto";

type Fields = Readonly<Record<string, unknown>>;
type Rule = (value: unknown) => boolean;

const isText: Rule = (value) => typeof value === "string";
const isWhole: Rule = (value) => Number.isSafeInteger(value);
const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isId = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= 512 && value.isWellFormed();
const isFailure: Rule = (value) =>
  isObject(value) && isText(value.code) && isText(value.message) && isObject(value.details);
const isPlace: Rule = (value) => isWhole(value) && (value as number) >= 0 && (value as number) <= 10_000;

const OUTBOUND: Readonly<Record<string, Rule>> = {
  ...{ messageId: isId, externalReference: isText, sendFrom: isText, to: isText, status: isText },
  error: (value) => value === null || isFailure(value),
};
const DATA: Readonly<Record<string, Readonly<Record<string, Rule>>>> = {
  "message.queued": OUTBOUND,
  "message.sent": OUTBOUND,
  "message.delivery": {
    ...OUTBOUND,
    providerMessageRef: (value) => value === undefined || value === null || isText(value),
  },
  "message.failed": { ...OUTBOUND, error: isFailure },
  "message.inbound": {
    ...{ messageId: isId, conversationId: isText, numberId: isText, from: isText, to: isText, body: isText },
    ...{ media: Array.isArray, timestamp: isWhole },
  },
};

/** Of JSON that was read without a complaint. */
export function isEvent(value: unknown): boolean {
  if (!isObject(value) || !isId(value.eventType)) return false;
  const rules = Object.hasOwn(DATA, value.eventType) ? DATA[value.eventType] : undefined;
  return rules === undefined ? isUnknown(value) : isKnown(value, rules);
}

function isKnown(
  { eventType, occurredAt, apiClientId, direction, messageId, sequence, data }: Fields,
  rules: object,
): boolean {
  if (!isWhole(occurredAt) || !isId(apiClientId) || !isObject(data)) return false;
  const isInbound = eventType === "message.inbound";
  if (direction !== (isInbound ? "inbound" : "outbound")) return false;
  if (!isInbound && !isPlace(sequence)) return false;
  if (!(isInbound && messageId === undefined) && messageId !== data.messageId) return false;
  return Object.entries(rules).every(([field, rule]: [string, Rule]) => rule(data[field]));
}

function isUnknown({ direction, messageId, sequence, data }: Fields): boolean {
  if (Number.isInteger(sequence) && !((sequence as number) >= 0 && (sequence as number) <= 10_000)) return false;
  const inner = isObject(data) ? data.messageId : undefined;
  return !(direction === "outbound" && isText(messageId) && isText(inner) && messageId !== inner);
}

/** A text per event: the same for deliveries of one event, different for different ones (EVT-12). */
export function nameOfEvent(event: Fields, body: Buffer): string {
  const { eventType, direction, apiClientId, messageId, sequence, data } = event;
  const isKnownType = Object.hasOwn(DATA, String(eventType));
  if (isKnownType && direction === "inbound") return JSON.stringify(["in", apiClientId, (data as Fields).messageId]);
  if (direction === "outbound" && isId(apiClientId) && isId(messageId) && isWhole(sequence)) {
    return JSON.stringify(["out", apiClientId, messageId, (sequence as number) + 0, eventType]);
  }
  const client = isId(apiClientId) ? apiClientId : null;
  return JSON.stringify(["other", client, createHash("sha256").update(body).digest("base64")]);
}
