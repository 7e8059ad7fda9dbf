/** The messaging service as a source of deliveries: how its requests are verified, read, and placed in the inbox. */
import { hash } from "node:crypto";
import { SetupError } from "../../errors.ts";
import type { EventTypes, Released, StoredBody, StoredReader } from "../../inbox/handlers.ts";
import type { NewEvent, NewQuarantine, QuarantineRecord } from "../../inbox/record.ts";
import { sha256 } from "../../internal/json.ts";
import { refuseUnknownOptions } from "../../internal/options.ts";
import { filtered, refusalOf } from "../filter.ts";
import { type HeaderSource, NOTHING_KEPT } from "../headers.ts";
import type { KeyringSource, KeyringSourceDeps } from "../keyring-provider.ts";
import type { Claim, ConnectedSource, Reading, Refusal, SourceEvents, WebhookSource } from "../source.ts";
import { type CompiledKeyring, fixedKeyring } from "./keyring.ts";
import { createKeyringSource, isSecretStore } from "./keyring-source.ts";
import {
  checkSecretsGiven,
  type ResolvedServiceOptions,
  resolveServiceOptions,
  SERVICE_OPTIONS,
  type ServiceOptions,
  type ServiceRules,
} from "./options.ts";
import { isKnownEvent, KNOWN_EVENT_TYPES, parseEvent, placeOf, SERVICE } from "./parse.ts";
import type { EventByType, LateEvent, UnknownEvent, WebhookEvent } from "./types.ts";
import {
  type CheckedHeaders,
  carriesNeitherHeader,
  checkHeaders,
  type Match,
  matchSignature,
  matchUnsigned,
  scopeCovers,
  scopeOf,
  vouchingMatch,
} from "./verify.ts";

/** A request without a signature, which may be of an unsigned kind. */
interface Unsigned extends Claim {
  readonly timestamp: null;
  /** What a request without a signature is refused for, unless its kind is unsigned. */
  readonly code: string;
  readonly headers: HeaderSource;
}

type Claimed = CheckedHeaders | Unsigned;

export type ServiceSource = ConnectedSource<CompiledKeyring, Claimed, Match>;

/** The events of the messaging service. */
export interface ServiceEvents extends SourceEvents {
  readonly byType: EventByType;
  readonly any: WebhookEvent;
  readonly unknown: UnknownEvent;
  readonly late: LateEvent;
  readonly ref: { readonly apiClientId: string; readonly messageId: string };
}

/**
 * The messaging service as one of several sources. Alone it needs no source: `createReceiver({ secrets, store })`.
 *
 * @throws SetupError for a wrong option
 * @example
 * const sources = { messages: service({ secrets: a }), billing: stripe({ secrets: b }) };
 */
export function service(options: ServiceOptions): WebhookSource<ServiceEvents> {
  refuseUnknownOptions("service()", options, SERVICE_OPTIONS);
  checkSecretsGiven(options);
  return serviceSource(resolveServiceOptions(options));
}

export function serviceSource(rules: ResolvedServiceOptions): WebhookSource<ServiceEvents> {
  const { pastMs, futureMs } = rules.policy.tolerance;
  return {
    preset: SERVICE,
    firstSequence: rules.firstSequence,
    // From the oldest to the newest valid timestamp: a replayed delivery passes verification for this long.
    replayMs: pastMs + futureMs,
    connect: (entry, deps) => connectService(rules, deps, entry),
  };
}

/** @throws SetupError for wrong secrets */
export function connectService(
  { secrets, policy, maxBodyBytes, gapWaitMs, mayBeUnsigned, filter }: ServiceRules,
  deps: KeyringSourceDeps,
  entry: string = SERVICE,
): ServiceSource {
  const refuses = refusalOf(filter, entry, deps);
  return {
    ...serviceReader(gapWaitMs),
    types: SERVICE_TYPES,
    maxBodyBytes,
    answerMs: ANSWER_MS,
    keyrings: mayBeUnsigned ? createKeyringSource(secrets, deps) : signedKeyrings(secrets, deps),
    accepted: null,
    check({ headers }, now): Claimed | Refusal {
      const checked = checkHeaders(headers, policy, now);
      if (checked.ok || !mayBeUnsigned || !carriesNeitherHeader(headers)) return checked;
      return { ok: true, timestamp: null, code: checked.code, headers };
    },
    refuse: (claimed, keyring) =>
      claimed.timestamp !== null || keyring.unsigned.size > 0 ? null : { ok: false, code: claimed.code },
    match: (claimed, body, keyring, now) =>
      claimed.timestamp === null
        ? matchUnsigned(claimed.headers, keyring)
        : matchSignature(claimed, body, keyring, now),
    read(claimed, match, body, circumstances): Reading | null {
      const parsed = parseEvent(body);
      const vouching = vouchingMatch(match, parsed.ok ? parsed.event : {});
      if (vouching === null) return null;
      const signedAt = claimed.timestamp ?? circumstances.now;
      if (!parsed.ok) {
        const quarantine = newQuarantine(parsed.code, body, vouching, { ...circumstances, signedAt, source: entry });
        return { kind: "no_event", quarantine };
      }
      const { event } = parsed;
      const { trace } = circumstances;
      const toStore = () => {
        const stored = newEvent(event, body, { signedAt, trace, source: entry }, gapWaitMs);
        return refuses?.(event, NOTHING_KEPT) ? filtered(stored) : stored;
      };
      return { kind: "event", slot: vouching.slot, event, toStore };
    },
  };
}

/** Reads stored bodies of the service, without secrets. */
export function serviceReader(gapWaitMs: (event: WebhookEvent) => number): StoredReader {
  return {
    preset: SERVICE,
    shows: SERVICE_SHOWS,
    isService: true,
    reread: rereadService,
    release(row: QuarantineRecord): Released {
      const { raw, scope } = row;
      if (raw === null) return { ok: false, reason: "body_pruned" };
      const parsed = parseEvent(raw);
      if (!parsed.ok)
        return invalid(`The body is still not a valid event for this version of oncehook (${parsed.code}).`);
      if (scopeCovers(scope, parsed.event)) return { ok: true, event: newEvent(parsed.event, raw, row, gapWaitMs) };
      return invalid(
        "The secret that signed this body does not cover the event in it: it is for another direction or API client.",
      );
    },
  };
}

/** The service waits so long for an answer (DLV-19). */
const ANSWER_MS = 10_000;

/** Ids, words and times, the application's own reference, by which people search, and numbers, which keep two digits. */
export const SERVICE_SHOWS: readonly string[] = [
  ...["eventType", "direction", "apiClientId", "messageId", "sequence", "occurredAt"],
  ...["messageId", "conversationId", "numberId", "providerMessageRef", "externalReference", "status", "error.code"].map(
    (name) => `data.${name}`,
  ),
  ...["data.timestamp", "data.from", "data.to", "data.sendFrom"],
];

export const SERVICE_TYPES: EventTypes = {
  known: KNOWN_EVENT_TYPES,
  order: "sequence",
  holdBackMs: 0,
};

function rereadService({ raw }: StoredBody): WebhookEvent | null {
  const result = parseEvent(raw);
  return result.ok ? result.event : null;
}

interface Delivered {
  readonly signedAt: number;
  readonly trace: string | null;
  /** The name of its entry. */
  readonly source: string;
}

function newEvent(
  event: WebhookEvent,
  raw: Uint8Array,
  { signedAt, trace, source }: Delivered,
  gapWaitMs: (event: WebhookEvent) => number,
): NewEvent {
  const place = placeOf(event, () => hash("sha256", raw, "hex"), source);
  return {
    ...place,
    eventType: event.eventType,
    occurredAt: Number.isSafeInteger(event.occurredAt) ? (event.occurredAt as number) : signedAt,
    signedAt,
    gapWaitMs: place.lane.order === "sequence" ? gapWaitMs(event) : 0,
    digest: sha256(raw),
    raw,
    trace,
    peer: peerOf(event),
    externalReference: isKnownEvent(event) && event.direction === "outbound" ? event.data.externalReference : null,
  };
}

function newQuarantine(
  reason: string,
  raw: Uint8Array,
  { slot, key }: Match,
  { signedAt, trace, source }: Delivered,
): NewQuarantine {
  const scope = scopeOf(key);
  // A body that another secret signed before must not take the place of one that this secret may vouch for.
  const digest = sha256(Buffer.concat([Buffer.from(JSON.stringify([source, scope])), raw]));
  return { reason, slot, signer: key.signer, source, tenant: null, scope, signedAt, digest, raw, trace };
}

/** The other party's number. */
function peerOf(event: WebhookEvent): string | null {
  if (!isKnownEvent(event)) return null;
  return event.direction === "outbound" ? event.data.to : event.data.from;
}

function invalid(message: string): Released {
  return { ok: false, reason: "invalid_event", message };
}

/** @throws SetupError if a kind is accepted unsigned, now or when the keyring is read */
function signedKeyrings(secrets: ServiceRules["secrets"], deps: KeyringSourceDeps): KeyringSource<CompiledKeyring> {
  if (typeof secrets !== "function" && !isSecretStore(secrets)) signed(fixedKeyring(secrets, deps.clock.now()).keyring);
  const source = createKeyringSource(secrets, deps);
  return {
    ...source,
    read: async (context) => signed(await source.read(context)),
    reread(context, seen, cameAt) {
      const fresher = source.reread(context, seen, cameAt);
      const checked = (keyring: CompiledKeyring | null) => keyring && signed(keyring);
      return fresher instanceof Promise ? fresher.then(checked) : checked(fresher);
    },
  };
}

function signed(keyring: CompiledKeyring): CompiledKeyring {
  if (keyring.unsigned.size === 0) return keyring;
  const message =
    'Option "secrets" holds "dangerouslyUnsigned": an unsigned kind has nothing to verify. Use a secret here; only a receiver takes unsigned kinds.';
  throw new SetupError("invalid_secret", message, { fields: { option: "secrets" } });
}
