/** `createReceiver()`, `createVerifier()` and `openInbox()`: the messaging service is their source. */
import { SetupError } from "./errors.ts";
import { systemClock } from "./internal/clock.ts";
import { type Logger, loggerOption } from "./internal/logger.ts";
import { invalidOption, isRecord, refuseUnknownOptions } from "./internal/options.ts";
import { type Inbox, openPlainInbox, type PlainInboxOptions } from "./receiver/open-inbox.ts";
import {
  COMMON_OPTIONS,
  type CommonOptions,
  checkStore,
  type ResolvedReceiverOptions,
  resolveReceiverOptions,
} from "./receiver/options.ts";
import { alertRoute } from "./receiver/post-alert.ts";
import {
  Receiver as AnyReceiver,
  SourcesReceiver as AnySourcesReceiver,
  type NamedSource,
  type ReceiverBase,
  type SourcesEvents,
} from "./receiver/receiver.ts";
import { type UnverifiedWebhook, type VerifiedRequestOf, verifierOf } from "./receiver/verifier.ts";
import { checkEntryName } from "./sources/definition.ts";
import type { Keyring, KeyringProvider } from "./sources/keys.ts";
import type { GapWait } from "./sources/messaging/gap-wait.ts";
import { SERVICE_OPTIONS, type ServiceOptions } from "./sources/messaging/options.ts";
import { SERVICE } from "./sources/messaging/parse.ts";
import type { SecretStore } from "./sources/messaging/secret-store.ts";
import { type ServiceEvents, serviceDefinition, serviceReader, serviceSource } from "./sources/messaging/source.ts";
import type { KnownEventType, WebhookEvent } from "./sources/messaging/types.ts";
import { resolvePolicy, type VerifyOptions } from "./sources/messaging/verify-signature.ts";
import type { SourceEvents, WebhookSource } from "./sources/source.ts";

export type { ServiceEvents };

/** The options of a receiver of the messaging service. */
export interface ReceiverOptions<Tx = unknown> extends CommonOptions<Tx>, ServiceOptions {}

/** The options of a receiver of one other source. Its entry has the name of its preset, such as `stripe`. */
export interface SourceReceiverOptions<Tx, E extends SourceEvents> extends CommonOptions<Tx> {
  /** A preset of oncehook/sources, or what `defineSource()` returns, with its secrets. */
  readonly source: WebhookSource<E>;
}

/** The options of a receiver of several sources. */
export interface SourcesReceiverOptions<Tx, S extends Sources> extends CommonOptions<Tx> {
  /**
   * Sources by the name of their entry: `[a-z][a-z0-9-]{0,31}`. The inbox records the names, so a name keeps its source. At most one is
   * `service()`.
   */
  readonly sources: S;
}

/** Sources by the name of their entry. */
export type Sources = Readonly<Record<string, WebhookSource<SourceEvents>>>;

/** The events of each source. */
export type EventsOf<S extends Sources> = {
  readonly [N in keyof S]: S[N] extends WebhookSource<infer E extends SourceEvents> ? E : never;
};

/** The event that `waitFor()` awaits: its type, or a function that returns true for it. */
export type Wanted = KnownEventType | (string & Record<never, never>) | ((event: WebhookEvent) => boolean);

/** Made by `createReceiver({ sources })`. */
export type SourcesReceiver<Tx = unknown, S extends SourcesEvents = SourcesEvents> = AnySourcesReceiver<Tx, S>;

/** Made by `createReceiver()`. */
export type Receiver<Tx = unknown, E extends SourceEvents = ServiceEvents> = AnyReceiver<Tx, E>;

/** In the order in which an error lists them: what everybody gives comes first. */
const RECEIVER_OPTIONS = [...new Set(["secrets", ...COMMON_OPTIONS, ...SERVICE_OPTIONS])];

/**
 * Receives webhooks: verifies the raw bytes and stores each event before the 2xx. Your handler's effect happens once, and a message's
 * events run in order.
 *
 * @throws SetupError for every mistake in the options, naming the option and the fix
 * @example
 * const receiver = createReceiver({ secrets: process.env.WEBHOOK_SECRET ?? "", store: sqliteStore("inbox.db") });
 * receiver.on("message.delivery", (event, ctx) => ctx.commit((db) => markDelivered(db, event.messageId)));
 * await receiver.start();
 */
export function createReceiver<Tx, E extends SourceEvents>(options: SourceReceiverOptions<Tx, E>): Receiver<Tx, E>;
export function createReceiver<Tx, const S extends Sources>(
  options: SourcesReceiverOptions<Tx, S>,
): SourcesReceiver<Tx, EventsOf<S>>;
export function createReceiver<Tx>(options: ReceiverOptions<Tx>): Receiver<Tx>;
export function createReceiver<Tx>(
  options: ReceiverOptions<Tx> | SourceReceiverOptions<Tx, SourceEvents> | SourcesReceiverOptions<Tx, Sources>,
): ReceiverBase<Tx> {
  const given = asObject(options);
  if ("sources" in given) return receiverOfSeveral(given);
  if ("source" in given) return receiverOfOne(given);
  refuseUnknownOptions("createReceiver", options, RECEIVER_OPTIONS);
  const source = serviceSource(pick(given, SERVICE_OPTIONS));
  checkStore(given.store);
  return connected(given, [[SERVICE, source]], AnyReceiver<Tx, ServiceEvents>);
}

function pick<T extends object, K extends keyof T>(options: T, names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, options[name]])) as Pick<T, K>;
}

/** Lets `in` look at options that are null or a text by mistake; `refuseUnknownOptions()` reports those. */
function asObject<Options extends object>(options: Options): Options {
  return Object(options);
}

function receiverOfOne<Tx>(options: SourceReceiverOptions<Tx, SourceEvents>): ReceiverBase<Tx> {
  refuseUnknownOptions("createReceiver", options, ["source", ...COMMON_OPTIONS]);
  checkStore(options.store);
  const { source } = options;
  checkSource("source", source);
  return connected(options, [[source.preset, source]], AnyReceiver<Tx>);
}

function receiverOfSeveral<Tx>(options: SourcesReceiverOptions<Tx, Sources>): ReceiverBase<Tx> {
  refuseUnknownOptions("createReceiver", options, ["sources", ...COMMON_OPTIONS]);
  checkStore(options.store);
  const sources: unknown = options.sources;
  if (!isRecord(sources) || Object.keys(sources).length === 0)
    throw invalidOption("sources", "must hold at least one source: { billing: stripe({ secrets }) }", sources);
  const entries = Object.entries(options.sources);
  for (const [name, source] of entries) {
    checkEntryName("sources", name);
    checkSource(`sources.${name}`, source);
  }
  const services = entries.filter(([, { preset }]) => preset === SERVICE);
  if (services.length > 1) {
    const names = services.map(([name]) => `"${name}"`).join(" and ");
    const message = `Option "sources" has the messaging service twice, as ${names}: a receiver has it once. Give one both secrets.`;
    throw new SetupError("invalid_option", message, { fields: { option: "sources" } });
  }
  return connected(options, entries, AnySourcesReceiver<Tx>);
}

function checkSource(option: string, source: unknown): void {
  if (typeof (source as Partial<WebhookSource<never>> | undefined)?.connect === "function") return;
  throw invalidOption(
    option,
    "must be a source with its secrets, such as stripe({ secrets }) of oncehook/sources",
    source,
  );
}

function connected<Tx, R>(
  options: CommonOptions<Tx>,
  sources: readonly (readonly [name: string, source: WebhookSource<SourceEvents>])[],
  Made: new (resolved: ResolvedReceiverOptions<Tx>, sources: readonly NamedSource[]) => R,
): R {
  const resolved = resolveReceiverOptions(options, {
    toleranceMs: Math.max(...sources.map(([, { replayMs }]) => replayMs)),
    alerts: alertRoute(options.alerts, options.clock ?? systemClock),
  });
  const named = sources.map(([name, source]) => ({ name, source: source.connect(name, resolved) }));
  checkHoldBack(resolved, named);
  refuseSharedSecret(options.alerts, named);
  warnOfEqualSecrets(resolved.logger, named);
  return new Made(resolved, named);
}

/** @throws SetupError if an answer would wait for an event that is held back: a serverless function would end with nothing done */
function checkHoldBack({ ack }: Pick<ResolvedReceiverOptions<unknown>, "ack">, sources: readonly NamedSource[]): void {
  const holding = sources.find(({ source }) => source.types.holdBackMs > 0);
  if (ack === "stored" || holding === undefined) return;
  const message = `Source ${holding.name} has holdBackMs, and ack is "handled": the answer would wait for events that are held back. Use a durable store with ack: "stored", or holdBackMs: 0.`;
  throw new SetupError("invalid_option", message, { fields: { option: "holdBackMs" } });
}

/** @throws SetupError if the destination of alerts has a secret with which it could sign events, as far as the secrets are known yet */
function refuseSharedSecret(alerts: CommonOptions<unknown>["alerts"], sources: readonly NamedSource[]): void {
  const secret = alerts?.secret;
  if (secret === undefined || !sources.some(({ source }) => source.keyrings.holds(secret))) return;
  const message =
    'Option "alerts.secret" is also a secret of the webhooks that are received, so the receiver of alerts could sign events: give alerts a secret of their own.';
  throw new SetupError("invalid_secret", message, { fields: { option: "alerts.secret" } });
}

/** As far as the secrets are given as values: a secret that was pasted twice lets one provider sign for the other. */
function warnOfEqualSecrets(logger: Logger, sources: readonly NamedSource[]): void {
  const owners = new Map<string, string>();
  for (const { name, source } of sources) {
    for (const { signer, isUnsigned } of source.keyrings.given?.keys ?? []) {
      const other = owners.get(signer);
      if (isUnsigned) continue;
      owners.set(signer, name);
      if (other === undefined) continue;
      const message = `Sources "${other}" and "${name}" have an equal secret: who can sign for one can sign for the other. Give each its own.`;
      logger.warn({ code: "keyring_warning", source: name }, message);
    }
  }
}

export interface VerifierOptions extends Pick<VerifyOptions, "toleranceMs" | "timestampFormat" | "encoding"> {
  /**
   * A keyring, a function that reads one, or a secret store, which is read again when a delivery arrives `refreshMs` later. Each kind
   * needs a secret: with `"dangerouslyUnsigned"` there is nothing to verify.
   */
  readonly secrets: Keyring | KeyringProvider | SecretStore;
  /** Bytes of a body at most. 1,024 to 33,554,432 (32 MiB). Default 262,144 (256 KiB). */
  readonly maxBodyBytes?: number;
  /** Receives mistakes in the set-up, 10 lines a second at most. Default: standard error, one JSON object per line. */
  readonly logger?: Logger;
}

/** Verifies deliveries of a source besides the messaging service. */
export interface SourceVerifierOptions<E extends SourceEvents> {
  /** A preset of oncehook/sources, or what `defineSource()` returns, with its secrets. */
  readonly source: WebhookSource<E>;
  /** Receives mistakes in the set-up, 10 lines a second at most. Default: standard error, one JSON object per line. */
  readonly logger?: Logger;
}

function verifierOfSource(options: SourceVerifierOptions<SourceEvents>) {
  refuseUnknownOptions("createVerifier", options, ["source", "logger"]);
  const { source } = options;
  checkSource("source", source);
  const logger = loggerOption(options.logger);
  const connected = source.connect(source.preset, { clock: systemClock, logger, onlySigned: true });
  return verifierOf<object>(connected, logger);
}

/** A delivery whose signature matches, or the answer to a refused one. */
export type VerifiedWebhook = VerifiedRequestOf<WebhookEvent>;

const VERIFIER_OPTIONS = [
  "secrets",
  "maxBodyBytes",
  "logger",
  "toleranceMs",
  "timestampFormat",
  "encoding",
] as const satisfies readonly (keyof VerifierOptions)[];

/**
 * Makes a function that verifies and parses one request, and stores nothing: retries and replays within the tolerance (5 minutes by
 * default) pass again, and nothing is ordered. The function never rejects: every failure has an answer.
 *
 * @throws SetupError for a wrong option or secret, when it is made
 */
export function createVerifier<E extends SourceEvents>(
  options: SourceVerifierOptions<E>,
): (incoming: UnverifiedWebhook) => Promise<VerifiedRequestOf<E["any"]>>;
export function createVerifier(options: VerifierOptions): (incoming: UnverifiedWebhook) => Promise<VerifiedWebhook>;
export function createVerifier(
  options: VerifierOptions | SourceVerifierOptions<SourceEvents>,
): (incoming: UnverifiedWebhook) => Promise<VerifiedRequestOf<object>> {
  const given = asObject(options);
  if ("source" in given) return verifierOfSource(given);
  refuseUnknownOptions("createVerifier", options, VERIFIER_OPTIONS);
  const { tolerance, ...policy } = resolvePolicy(given);
  const toleranceMs = { past: tolerance.pastMs, future: tolerance.futureMs };
  const source = serviceSource(pick(given, ["secrets", "maxBodyBytes"]), { ...serviceDefinition(policy), toleranceMs });
  return verifierOfSource({ source, ...(given.logger !== undefined && { logger: given.logger }) });
}

export interface OpenInboxOptions extends PlainInboxOptions {
  /** How long a replayed quarantined body waits for a missing sequence, as the receiver's option. Default `"balanced"`. */
  readonly gapWait?: GapWait;
}

const INBOX_OPTIONS = [
  "store",
  "migrate",
  "gapWait",
  "logger",
  "clock",
] as const satisfies readonly (keyof OpenInboxOptions)[];

/**
 * Opens an inbox that a receiver made, to look after it: next to receivers that work on it, or while none does. It handles nothing
 * itself, does not count as a receiver, and does not keep the process alive. Events that an act makes ready are handled by a receiver.
 *
 * @throws SetupError `invalid_option`; `no_inbox` if no receiver has made one; `migration_needed`, `inbox_too_new`, and any other error
 *   of the store's `open`
 *
 * @example
 * import { createReceiver, openInbox } from "oncehook";
 * import { memoryStore } from "oncehook/memory";
 *
 * const store = memoryStore({ volatile: true });
 * const receiver = createReceiver({ secrets: "whsec_example_0123456789abcdef", store }).onAny(() => {});
 * await receiver.start();
 * await receiver.stop();
 * const inbox = await openInbox({ store });
 * console.log((await inbox.stats()).gauges.dead); // 0
 * await inbox.close();
 */
export async function openInbox(options: OpenInboxOptions): Promise<Inbox> {
  refuseUnknownOptions("openInbox()", options, INBOX_OPTIONS);
  const { gapWait, ...plain } = options;
  return openPlainInbox(plain, serviceReader({ gapWait }));
}
