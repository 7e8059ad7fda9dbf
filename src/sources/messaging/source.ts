/** The messaging service as a source of deliveries: how its requests are verified, read, and placed in the inbox. */
import type { StoredReader } from "../../inbox/handlers.ts";
import { invalidOption } from "../../internal/options.ts";
import { sourceOf, storedReader } from "../define-source.ts";
import {
  checkOrder,
  type SourceDefinition,
  type SourceOptions,
  type Verdict,
  type VerifyCircumstances,
} from "../definition.ts";
import type { RequestHead } from "../headers.ts";
import { keyringsFrom } from "../keyring-provider.ts";
import { STRICT_RULES } from "../secret.ts";
import { MISMATCH } from "../signatures.ts";
import type { Refusal, SourceEvents, Wanted, WebhookSource } from "../source.ts";
import { type GapWait, gapWaitPolicy, LAST_RETRY_MS } from "./gap-wait.ts";
import { isSecretStore, storedKeyrings } from "./keyring-source.ts";
import { SERVICE_OPTIONS, type ServiceOptions } from "./options.ts";
import { KNOWN_EVENT_TYPES, messagePlace, parseEvent, SERVICE } from "./parse.ts";
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "./sign.ts";
import type { EventByType, LateEvent, UnknownEvent, WebhookEvent } from "./types.ts";
import {
  type HeaderPolicy,
  readSigned,
  type SignedHeaders,
  signatureEncodingOption,
  timestampFormatOption,
} from "./verify.ts";

/** The events of the messaging service. */
export interface ServiceEvents extends SourceEvents {
  readonly byType: EventByType;
  readonly any: WebhookEvent;
  readonly unknown: UnknownEvent;
  readonly late: LateEvent;
  readonly ref: MessageRef;
}

/** A message: with the ids of `client.messages.send`, or an inbound one with its `data.messageId`. */
export interface MessageRef {
  readonly apiClientId: string;
  readonly messageId: string;
}

/**
 * The messaging service as one of several sources. Alone it needs no source: `createReceiver({ secrets, store })`.
 *
 * @throws SetupError for a wrong option
 * @example
 * const sources = { messages: service({ secrets: a }), billing: stripe({ secrets: b }) };
 */
export function service(options: ServiceOptions): WebhookSource<ServiceEvents> {
  return serviceSource(options);
}

const MINUTE_MS = 60_000;

interface DefinitionOptions extends HeaderPolicy {
  readonly gapWait?: GapWait | undefined;
  readonly firstSequence?: number | "any" | undefined;
}

/**
 * The service's definition, with what an application chooses of it.
 *
 * @throws SetupError for a wrong option
 */
export function serviceDefinition({
  gapWait,
  firstSequence = 1,
  ...policy
}: DefinitionOptions = {}): SourceDefinition<WebhookEvent> {
  timestampFormatOption(policy.timestampFormat);
  signatureEncodingOption("signatureEncoding", policy.encoding);
  const definition: SourceDefinition<WebhookEvent> = {
    preset: SERVICE,
    kinds: STRICT_RULES.kinds,
    leastKeyBytes: STRICT_RULES.leastBytes,
    signedBy: [[TIMESTAMP_HEADER, SIGNATURE_HEADER]],
    maxBodyBytes: 256 * 1024,
    // It waits so long for an answer (DLV-19).
    answerMs: 10_000,
    lastRetryMs: LAST_RETRY_MS,
    toleranceMs: { past: 90 * MINUTE_MS, future: 5 * MINUTE_MS },
    order: "sequence",
    firstSequence,
    gapWait: gapWaitPolicy(gapWait),
    types: KNOWN_EVENT_TYPES,
    shows: SERVICE_SHOWS,
    verify(head, body, keys, { checkAge }): Verdict {
      const unsigned = isBare(head) ? keys.find(({ slot }) => slot === "unsigned") : undefined;
      if (unsigned !== undefined) return { ok: true, key: unsigned, signedAt: null };
      const signed = readInTime(head, policy, checkAge);
      if (!signed.ok) return signed;
      const { timestampText, timestamp, candidates } = signed;
      const key = keys.find((each) => each.signed(candidates, "sha256", `${timestampText}.`, body));
      return key === undefined ? MISMATCH : { ok: true, key, signedAt: timestamp };
    },
    parse: parseEvent,
    place: (event, { digest }) => messagePlace(event, digest),
  };
  checkOrder(definition);
  return definition;
}

/** Only a delivery without both headers can be of an unsigned kind: one of the two means a broken signature. */
function isBare(head: RequestHead): boolean {
  return head.header(TIMESTAMP_HEADER) === undefined && head.header(SIGNATURE_HEADER) === undefined;
}

function readInTime(
  head: RequestHead,
  policy: HeaderPolicy,
  checkAge: VerifyCircumstances["checkAge"],
): SignedHeaders | Refusal {
  const signed = readSigned(head, policy);
  const code = signed.ok ? checkAge(signed.timestamp) : null;
  return code === null ? signed : { ok: false, code };
}

/** @throws SetupError for a wrong option */
export function serviceSource(
  options: ServiceOptions,
  definition: SourceDefinition<WebhookEvent> = definitionFrom(options),
): WebhookSource<ServiceEvents> {
  const { secrets } = options;
  const { timestampFormat, signatureEncoding, gapWait, firstSequence, ...common } = options;
  return sourceOf(definition, common as SourceOptions<WebhookEvent>, {
    options: SERVICE_OPTIONS,
    keyrings: (rules, deps) =>
      isSecretStore(secrets) ? storedKeyrings(secrets, rules, deps) : keyringsFrom(secrets, rules, deps),
    lookUp,
    refuse(head, { checkAge }) {
      const signed = isBare(head) ? null : readInTime(head, { timestampFormat, encoding: signatureEncoding }, checkAge);
      return signed === null || signed.ok ? null : signed;
    },
  });
}

function definitionFrom(options: ServiceOptions): SourceDefinition<WebhookEvent> {
  const { timestampFormat, signatureEncoding: encoding, gapWait, firstSequence } = options;
  return serviceDefinition({ timestampFormat, encoding, gapWait, firstSequence });
}

/** Reads stored bodies of the service, without secrets. @throws SetupError for a wrong option */
export function serviceReader(options: { readonly gapWait?: GapWait | undefined } = {}): StoredReader {
  return storedReader({ ...serviceDefinition(options), order: "sequence" }, SERVICE, 0);
}

/** Ids, words and times, the application's own reference, by which people search, and numbers, which keep two digits. */
export const SERVICE_SHOWS: readonly string[] = [
  ...["eventType", "direction", "apiClientId", "messageId", "sequence", "occurredAt"],
  ...["messageId", "conversationId", "numberId", "providerMessageRef", "externalReference", "status", "error.code"].map(
    (name) => `data.${name}`,
  ),
  ...["data.timestamp", "data.from", "data.to", "data.sendFrom"],
];

/** An outbound message is a lane, an inbound one an event by itself. */
function lookUp(ref: unknown, source: string): readonly Wanted[] {
  if (typeof ref !== "object" || ref === null) throw invalidOption("ref", "must be { apiClientId, messageId }", ref);
  const { apiClientId: tenant, messageId: id } = ref as Readonly<Record<keyof MessageRef, unknown>>;
  if (!isText(tenant)) throw invalidOption("ref.apiClientId", "must be a string that is not empty", tenant);
  if (!isText(id)) throw invalidOption("ref.messageId", "must be a string that is not empty", id);
  return [
    { source, tenant, name: id, order: "sequence" },
    { source, tenant, id },
  ];
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
