/** `POST /api/core/messages/send`: takes messages up, once per idempotency key. */
import { createHash } from "node:crypto";
import { z } from "zod";
import { type EmulatorAnswer, type EmulatorRefusal, type Reply, refuse } from "../http/answers.ts";
import { coreRoute, type RouteCall } from "../http/route.ts";
import { type Behaviour, behaviourOf } from "../messages/plan.ts";
import { E164 } from "../options.ts";
import type { Service } from "../service.ts";
import { type IdempotencyRecord, idempotencyId, type PhoneNumber } from "../state/records.ts";

const mediaSchema = z.object({
  storageKey: z.string(),
  mimeType: z.string(),
  byteLength: z.int(),
  sourceUrl: z.string().optional(),
  fileName: z.string().optional(),
});

/** The part that a schema can say; `withMediaRule` adds the rest. */
const sendFieldsSchema = z.object({
  sendFrom: z.string().describe("A numberId, never an E.164 number"),
  to: z
    .array(z.string())
    .min(1)
    .describe(
      "E.164 numbers; what is none comes back in `errors`. Unspecified: there is no upper limit, spaces are not trimmed, and a " +
        "number that stands there twice gets two messages",
    ),
  messageType: z.enum(["SMS", "MMS"]),
  text: z.string().optional().describe("Unspecified: optional for SMS as well, without a limit"),
  media: z
    .array(mediaSchema)
    .optional()
    .describe("Required for MMS, to be left out for SMS. Unspecified: an empty list is refused for both"),
  externalReference: z
    .string()
    .min(1)
    .describe("The caller's own; events carry it. Unspecified: an empty text is refused"),
});

/** SND-11, SND-12. */
const sendSchema = sendFieldsSchema.superRefine(({ messageType, media }, context) => {
  const problem = (message: string) => context.addIssue({ code: "custom", path: ["media"], message });
  if (messageType === "SMS" && media !== undefined) problem("must be left out for SMS");
  if (messageType === "MMS" && (media ?? []).length === 0) problem("must have at least one item for MMS");
});

const sentSchema = z.looseObject({
  results: z.array(z.looseObject({ to: z.string(), messageId: z.string(), status: z.string().describe("QUEUED") })),
  errors: z.array(
    z.looseObject({
      to: z.string().describe("What the request said, whatever it is"),
      error: z.looseObject({ code: z.string(), message: z.string(), details: z.looseObject({}) }),
    }),
  ),
});

type SendCall = RouteCall<z.output<typeof sendSchema>>;

interface Sent {
  readonly results: readonly { readonly to: string; readonly messageId: string; readonly status: string }[];
  readonly errors: readonly object[];
}

const SLOW_MS = 30_000;
const MOST_ISSUES = 20;

export const sendMessages = coreRoute({
  method: "POST",
  path: "/api/core/messages/send",
  operationId: "sendMessages",
  summary: "Queues an SMS or MMS to each recipient",
  success: { status: 202, description: "Who was accepted and who was not", schema: sentSchema },
  errors: [400, 403, 404, 409],
  requiredHeaders: [
    {
      name: "Idempotency-Key",
      description:
        "Repeating a key with the same payload sends nothing again. Unspecified: its length, and that it is kept for 24 hours",
    },
  ],
  checkHeaders: (headers) =>
    keyOf(headers) === "" ? refuse("INVALID_REQUEST", "The header Idempotency-Key is required.") : null,
  body: sendSchema,
  handle: handleSend,
});

/** Behind headers and body comes the look-up of the key: a repeat is answered even after the number was disabled (SND-27). */
function handleSend(call: SendCall): EmulatorAnswer | Promise<EmulatorAnswer> {
  const { service, now, client, headers, json } = call;
  const key = { apiClientId: client.apiClientId, key: keyOf(headers) };
  const fingerprint = fingerprintOf(json);
  const earlier = recall(service, key, now);
  if (earlier?.status === 202) return repeat(service, earlier, fingerprint);
  const number = sendingNumber(call);
  if ("kind" in number) return number;
  if (hasRecipient(call, "errorOnce") && earlier === undefined) {
    remember(service, key, { fingerprint, status: 500, body: "", createdAt: now });
    return refuse("SERVER_ERROR", "A magic recipient fails the first call of each idempotency key.");
  }
  return accept(call, number, { key, fingerprint });
}

function keyOf(headers: Headers): string {
  return headers.get("idempotency-key")?.trim() ?? "";
}

/**
 * The first answer once more, byte for byte, or with today's states (SND-17). Nothing is awaited between looking a key up and
 * keeping its answer; so of two calls at once one is the first, and the other waits here until that one may be answered (SND-31).
 */
async function repeat(
  service: Service,
  { body, ...earlier }: IdempotencyRecord,
  fingerprint: string,
): Promise<EmulatorAnswer> {
  if (earlier.fingerprint !== fingerprint) {
    return refuse("CONFLICT", "This Idempotency-Key was used with another payload; a changed payload needs a new key.");
  }
  const sent: Sent = JSON.parse(body);
  await allAnswerable(service, sent);
  if (service.settings.readings.replay === "stored") return { kind: "reply", status: earlier.status, text: body };
  const results = sent.results.map((result) => ({
    ...result,
    status: service.state.messages.get(result.messageId)?.status ?? result.status,
  }));
  return { kind: "reply", status: earlier.status, text: JSON.stringify({ ...sent, results }) };
}

/** The number to send from, or why it cannot be: 404, 403, campaign, then channel and status (SND-27). */
function sendingNumber({ service, client, body }: SendCall): PhoneNumber | EmulatorRefusal {
  const details = { field: "sendFrom" };
  const number = service.state.numbers.get(body.sendFrom);
  if (number === undefined) {
    return refuse(
      "NOT_FOUND",
      "sendFrom is not a known number identifier. An E.164 number is not an identifier.",
      details,
    );
  }
  if (number.apiClientId !== client.apiClientId) {
    return refuse("FORBIDDEN", "The number of sendFrom belongs to another client.", details);
  }
  const unusable = (problem: string) => refuse("INVALID_REQUEST", `The number of sendFrom ${problem}.`, details);
  if (number.campaignRegId === null) return unusable("has no campaignregId");
  if (body.messageType === "SMS" && !number.smsEnabled) return unusable("is not enabled for SMS");
  if (body.messageType === "MMS" && !number.mmsEnabled) return unusable("is not enabled for MMS");
  return number.status === "ACTIVE" ? number : unusable("is not active");
}

async function accept(
  call: SendCall,
  number: PhoneNumber,
  { key, fingerprint }: { key: IdempotencyKey; fingerprint: string },
): Promise<EmulatorAnswer> {
  const { service, now, body } = call;
  const reasons = body.to.map((to) => rejectionOf(service, to));
  if (service.settings.readings.allRejected === 400 && !reasons.includes(null)) return allRejected(reasons);
  const sent: Sent = {
    results: body.to.filter((_, i) => reasons[i] === null).map((to) => queued(call, number, to)),
    // What was asked for comes back as it came (SND-8).
    errors: body.to.flatMap((to, i) => (reasons[i] ? [{ to, error: { ...reasons[i], details: {} } }] : [])),
  };
  const text = JSON.stringify(sent);
  remember(service, key, { fingerprint, status: 202, body: text, createdAt: now });
  await allAnswerable(service, sent);
  return withMagic(call, { kind: "reply", status: 202, text });
}

/** A message of its own per recipient, also for one that stands there twice (SND-19, SND-25). */
function queued({ service, client, body }: SendCall, number: PhoneNumber, to: string): Sent["results"][number] {
  const { messageType, text = null, externalReference } = body;
  const { messageId } = service.messages.accept({ client, number, to, messageType, text, externalReference });
  return { to, messageId, status: "QUEUED" };
}

interface Rejection {
  readonly code: string;
  readonly message: string;
}

/** Why a recipient is rejected by itself; null for one that is accepted (SND-7). */
function rejectionOf({ settings }: Service, to: string): Rejection | null {
  if (!E164.test(to)) return { code: "INVALID_RECIPIENT", message: "This is not an E.164 number." };
  if (behaviourOf(to, settings) !== "rejected") return null;
  return { code: settings.readings.rejectionCode, message: "A magic recipient is rejected." };
}

function allRejected(reasons: readonly (Rejection | null)[]): EmulatorRefusal {
  const issues = reasons
    .slice(0, MOST_ISSUES)
    .map((reason, i) => ({ path: `to.${i}`, problem: reason?.message ?? "" }));
  return refuse("INVALID_REQUEST", "Every recipient is rejected.", { issues });
}

async function allAnswerable({ messages }: Service, { results }: Sent): Promise<void> {
  await Promise.all(results.map(({ messageId }) => messages.answerable(messageId)));
}

/** What magic recipients do to the answer of the call that was accepted; its repeats are answered as usual. */
function withMagic(call: SendCall, answer: Reply): Reply {
  if (hasRecipient(call, "resetOnce")) return { ...answer, play: [{ type: "reset", when: "after" }] };
  return hasRecipient(call, "slow") ? { ...answer, play: [{ type: "delay", ms: SLOW_MS }] } : answer;
}

function hasRecipient({ service, body }: SendCall, behaviour: Behaviour): boolean {
  return body.to.some((to) => behaviourOf(to, service.settings) === behaviour);
}

// Sends that are repeated with their idempotency key: what was answered, and whether it is the same send (SND-17, 18, 28 to 31).

/** 24 h of the emulator's time (SND-30). */
const RETENTION_MS = 86_400_000;

/** A key of a client; the route is always the same one (SND-30). */
interface IdempotencyKey {
  readonly apiClientId: string;
  readonly key: string;
}

/** The record of a key: a 202, or the mark that it got its magic 500. Undefined when there is none, or none any more. */
function recall({ state }: Service, { apiClientId, key }: IdempotencyKey, now: number) {
  const record = state.idempotency.get(idempotencyId(apiClientId, key));
  return record === undefined || isOver(record, now) ? undefined : record;
}

/** Keeps an answer for a key, and forgets those whose time is over. */
function remember(
  { state }: Service,
  { apiClientId, key }: IdempotencyKey,
  answer: Omit<IdempotencyRecord, "id">,
): void {
  const { idempotency } = state;
  const id = idempotencyId(apiClientId, key);
  // Taken out first, so that the table stays in the order of time.
  idempotency.remove(id);
  idempotency.put(id, { id, ...answer });
  for (let oldest = idempotency.oldest(); oldest !== undefined; oldest = idempotency.oldest()) {
    if (!isOver(oldest[1], answer.createdAt)) return;
    idempotency.remove(oldest[0]);
  }
}

function isOver({ createdAt }: IdempotencyRecord, now: number): boolean {
  return now >= createdAt + RETENTION_MS;
}

/** A digest that payloads have in common when their JSON is equal except for the order of keys (SND-28). */
function fingerprintOf(payload: unknown): string {
  return createHash("sha256").update(canonicalJson(payload)).digest("hex");
}

/** JSON with the keys of each object in order. Its depth is bounded where bodies are parsed. */
function canonicalJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field)}`).join()}}`;
}
