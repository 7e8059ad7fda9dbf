/** What the service would refuse for certain is refused before a request: "path: rule" texts that say what to do, never a value. */
import { suggestion } from "../internal/options.ts";
import { isRecord } from "../internal/type-guards.ts";
import { secretTextIssue } from "../signature/secret.ts";

/** What a value must be, to stand after its path; undefined when it is that. */
type Rule = (value: unknown) => string | undefined;

/** The fields that a request knows. A field that is undefined is absent, as it is in JSON. */
interface Shape {
  readonly rules: Readonly<Record<string, Rule>>;
  readonly required: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

/** A send can have thousands of wrong recipients; so many problems are told. */
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
/** Looked at beside the shape, element by element. */
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
export function unknownFieldIssue(path: string, name: string, known: readonly string[]): string {
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
