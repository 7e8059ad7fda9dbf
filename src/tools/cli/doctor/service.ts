/** The service: the API client, its webhooks and numbers, and what the webhook's public address answers. */

import { SetupError } from "../../../errors.ts";
import type { Clock } from "../../../internal/clock.ts";
import { silentLogger } from "../../../internal/logger.ts";
import { BAD_PORT, hasCredentials, isBadPort, isPrivateHost } from "../../../internal/network.ts";
import { createClient } from "../../../messaging/client/client.ts";
import {
  ApiError,
  ForbiddenError,
  NotFoundError,
  OAuthError,
  ResponseValidationError,
  ServiceError,
  UnauthorizedError,
} from "../../../messaging/client/errors.ts";
import type { PhoneNumber, WebhookConfig, WebhookDefaults, Whoami } from "../../../messaging/client/types.ts";
import type { WebhookKind } from "../../../sources/messaging/webhook-kind.ts";
import { inFlags } from "../flags.ts";
import { counted } from "../terminal.ts";
import { type Finding, named, ok, problem, ServiceClock, warning } from "./finding.ts";

// What the service reports about the API client, its webhooks and its numbers.

const HIDDEN = warning(
  "webhooks_hidden",
  "The service does not show its default webhooks (403 or 404).",
  "Set the targets per number, with client.numbers.update.",
);

export interface ServiceInput {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly allowHttpToPrivateHosts: true | undefined;
  /** Where the webhooks should go; null when it was not said. */
  readonly url: string | null;
  readonly clock: Clock;
  readonly fetch: typeof globalThis.fetch;
}

/** Whether the service runs on this machine, as the emulator does. */
export function isLocalService(baseUrl: string | undefined): boolean {
  return baseUrl !== undefined && URL.canParse(baseUrl) && isPrivateHost(new URL(baseUrl).hostname);
}

export async function serviceFindings(input: ServiceInput): Promise<Finding[]> {
  const { baseUrl, clientId, clientSecret, allowHttpToPrivateHosts, clock } = input;
  const serviceClock = new ServiceClock(clock, input.fetch);
  const options = {
    allowHttpToPrivateHosts,
    timeoutMs: 10_000,
    maxRetries: 1,
    logger: silentLogger,
    fetch: serviceClock.fetch,
    clock,
  };
  try {
    // What cannot be checked is reported, not guessed: the client of an application would only log it.
    const client = createClient({ baseUrl, clientId, clientSecret, ...options, validateResponses: "throw" });
    const whoami = await answered(client.whoami());
    const numbers = await answered(client.numbers.list());
    const defaults = await answered(client.webhooks.get().catch(hiddenDefaults));
    return [
      ...judged(whoami, clientFindings),
      ...serviceClock.findings(),
      ...webhooksAndNumbers(defaults, numbers, input),
    ];
  } catch (error) {
    const finding = refusedBy(error);
    if (finding === null) throw error;
    return [finding, ...serviceClock.findings()];
  }
}

/** An answer of the service; or what is to be said instead, which says nothing against the others. */
type Answered<T> = { readonly answer: T } | { readonly instead: Finding };

const CHECK_SERVICE = "Check that --base-url is the service's own address; if it is, ";

async function answered<T>(call: Promise<T>): Promise<Answered<T>> {
  try {
    return { answer: await call };
  } catch (error) {
    if (error instanceof ResponseValidationError) {
      const what = `The answer to ${error.operation} is not as specified: ${named(error.issues)}.`;
      return {
        instead: problem("api_invalid_response", what, `${CHECK_SERVICE}upgrade oncehook, or tell its operators.`),
      };
    }
    // A token that was just issued and is not taken concerns all calls.
    if (error instanceof ApiError && !(error instanceof UnauthorizedError))
      return { instead: problem("api_refused", error.message, `${CHECK_SERVICE}ask its operators.`) };
    throw error;
  }
}

function judged<T>(answered: Answered<T>, judge: (answer: T) => Finding[]): Finding[] {
  return "answer" in answered ? judge(answered.answer) : [answered.instead];
}

function clientFindings({ apiClientStatus, apiClientId }: Whoami): Finding[] {
  if (apiClientStatus === "ACTIVE") return [ok("api", `${apiClientId} is ACTIVE.`)];
  return [problem("client_inactive", `${apiClientId} is not ACTIVE.`, "Ask the service's operators to activate it.")];
}

function webhooksAndNumbers(
  webhooks: Answered<WebhookDefaults | null>,
  numbers: Answered<readonly PhoneNumber[]>,
  { url, baseUrl }: ServiceInput,
): Finding[] {
  const expected = { url, isLocal: isLocalService(baseUrl) };
  const defaults = "answer" in webhooks ? webhooks.answer : null;
  return [
    ...judged(webhooks, (shown) => (shown === null ? [HIDDEN] : webhookFindings(shown, expected))),
    ...judged(numbers, (listed) => numberFindings(listed, { ...expected, defaults })),
  ];
}

/** A service may not expose the defaults (WHK-27), or not to this client. */
function hiddenDefaults(error: unknown): null {
  if (error instanceof NotFoundError || error instanceof ForbiddenError) return null;
  throw error;
}

/** Why none of the calls can be made; null if neither the service nor the network says why. */
function refusedBy(error: unknown): Finding | null {
  if (error instanceof SetupError)
    return problem("api_setup", inFlags(error.message), "Correct --base-url, --client-id or the client's secret.");
  if (error instanceof OAuthError && error.error === "invalid_client") {
    const fix =
      "Check --client-id and --client-secret-file; if they are right, ask whether client and account are active.";
    return problem("api_credentials", "The service does not take the client's id and secret.", fix);
  }
  if (error instanceof UnauthorizedError)
    return problem("client_inactive", error.message, "Client or account may be inactive: ask the service's operators.");
  if (error instanceof ServiceError)
    return problem("api_unreachable", error.message, "Check --base-url, and whether this machine reaches it.");
  return null;
}

// The default webhooks of the API client, as the service has them.

/** Where webhooks should go. */
interface Expected {
  /** Null when it was not said. */
  readonly url: string | null;
  /** The service runs on this machine. */
  readonly isLocal: boolean;
}

function webhookFindings({ defaults, overridesSummary }: WebhookDefaults, expected: Expected): Finding[] {
  const { inboundOverrideCount, deliveryOverrideCount } = overridesSummary;
  return [
    ...kindFindings("inbound", defaults.inbound, { ...expected, overrides: inboundOverrideCount }),
    ...kindFindings("delivery", defaults.delivery, { ...expected, overrides: deliveryOverrideCount }),
  ];
}

function kindFindings(
  kind: WebhookKind,
  config: WebhookConfig,
  { url, isLocal, overrides }: Expected & { readonly overrides: number },
): Finding[] {
  const { enabled, signingEnabled, hasCurrentSecret, endpointUrl } = config;
  const update = `client.webhooks.update("${kind}", …)`;
  const findings: Finding[] = [];
  const found = (code: string, what: string, fix: string) =>
    findings.push(problem(code, `The ${kind} webhook ${what}.`, fix));
  if (!enabled) {
    // Numbers with a target of their own may be all that is wanted.
    const make = overrides > 0 ? warning : problem;
    findings.push(make("webhook_disabled", `The ${kind} webhook is not enabled.`, `${update} with enabled: true.`));
  }
  if (!signingEnabled)
    found("webhook_unsigned", "is not signed: receivers refuse it", `${update} with signingEnabled: true.`);
  else if (!hasCurrentSecret)
    found("webhook_without_secret", "is signed, but has no secret", `${update} with a secret, or rotateSecret().`);
  // No table of the specification shows the target, so a service may keep it to itself (WHK-14).
  if (endpointUrl === null && overrides === 0)
    found("webhook_without_target", "has no target", `${update} with endpointUrl.`);
  if (typeof endpointUrl === "string") findings.push(...targetFindings(kind, endpointUrl, { url, isLocal }));
  return findings.length > 0 ? findings : [ok(`webhook_${kind}`, `The ${kind} webhook is enabled and signed.`)];
}

function targetFindings(kind: WebhookKind, target: string, { url, isLocal }: Expected): Finding[] {
  const what = `The ${kind} webhook's target, ${shownUrl(target)},`;
  const fault = faultOf(target, isLocal);
  if (fault !== null) return [problem(fault, `${what} ${FAULTS[fault][0]}.`, FAULTS[fault][1])];
  if (url === null || isSameUrl(target, url)) return [];
  const fix = `client.webhooks.update("${kind}", …) with endpointUrl, or give --url what is right.`;
  return [problem("webhook_elsewhere", `${what} is not the address of --url.`, fix)];
}

// The numbers of the API client: whether they can send, and whether their webhooks come here.

interface NumbersExpected extends Expected {
  /** Null where the service does not show them. */
  readonly defaults: WebhookDefaults | null;
}

/** What keeps a number from sending, each with its fix. */
const LACKS: readonly (readonly [code: string, lacks: (number: PhoneNumber) => boolean, what: string, fix: string])[] =
  [
    ["number_inactive", ({ status }) => status !== "ACTIVE", "not ACTIVE", "Ask the service's operators."],
    [
      "number_without_sms",
      ({ smsEnabled }) => !smsEnabled,
      "without SMS",
      "client.numbers.update(id, { smsEnabled: true })",
    ],
    [
      "number_without_campaign",
      ({ campaignRegId }) => !campaignRegId,
      "without a campaign",
      "client.numbers.update(id, { campaignregId: … }), with a small r.",
    ],
  ];

function numberFindings(numbers: readonly PhoneNumber[], expected: NumbersExpected): Finding[] {
  if (numbers.length === 0)
    return [problem("no_numbers", "The client has no number.", "Ask the service's operators to assign one.")];
  const isUsable = (number: PhoneNumber) => LACKS.every(([, lacks]) => !lacks(number));
  const usable = numbers.filter(isUsable).length;
  // One that rests may be meant so, as long as another can send.
  const make = usable > 0 ? warning : problem;
  const lacking = LACKS.flatMap(([code, lacks, what, fix]) => {
    const ids = numbers.filter(lacks).map(({ numberId }) => numberId);
    return ids.length === 0 ? [] : [make(code, `${counted(ids.length, "number")} ${what}: ${named(ids)}.`, fix)];
  });
  return [
    ok("numbers", `${usable} of ${counted(numbers.length, "number")} can send SMS.`),
    ...lacking,
    ...overrideFindings(numbers, expected),
  ].filter(({ code }) => usable > 0 || code !== "numbers");
}

/** An override goes before the default, so deliveries of such a number never come to where the default leads. */
function overrideFindings(numbers: readonly PhoneNumber[], { url, defaults }: NumbersExpected): Finding[] {
  const inbound = url ?? defaults?.defaults.inbound.endpointUrl;
  const delivery = url ?? defaults?.defaults.delivery.endpointUrl;
  const isElsewhere = (target: string | null | undefined, wanted: string | null | undefined) =>
    typeof target === "string" && !(typeof wanted === "string" && isSameUrl(target, wanted));
  const ids = numbers
    .filter(
      ({ webhookInboundOverride, webhookDeliveryOverride }) =>
        isElsewhere(webhookInboundOverride, inbound) || isElsewhere(webhookDeliveryOverride, delivery),
    )
    .map(({ numberId }) => numberId);
  if (ids.length === 0) return [];
  const what = `${counted(ids.length, "number")} with a webhook target of its own that leads elsewhere: ${named(ids)}.`;
  const fix = "client.numbers.update(id, { webhookInboundOverride: null, webhookDeliveryOverride: null })";
  return [url === null ? warning("number_overridden", what, fix) : problem("number_overridden", what, fix)];
}

// Whether an address can be reached by the service, and in secret.

/** What is wrong with an address, by code; null when nothing is. */
type Fault = "url_invalid" | "url_private" | "url_insecure";

const FAULTS: Readonly<Record<Fault, readonly [what: string, fix: string]>> = {
  url_invalid: ["is not an http or https URL", "Write it in full: https://hooks.example.com/webhooks."],
  url_private: ["names this machine or a private network, which the service cannot reach", "Give a public name."],
  url_insecure: ["is not https: texts and numbers can be read on the way", "Give an https address."],
};

/** @param isLocal - the service runs on this machine, as the emulator does, so that everything here is in its reach */
export function faultOf(address: string, isLocal: boolean): Fault | null {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) return "url_invalid";
  if (isLocal) return null;
  if (isPrivateHost(url.hostname)) return "url_private";
  return url.protocol === "https:" ? null : "url_insecure";
}

/** Without path and query, in which some keep a secret. */
export function shownUrl(address: string): string {
  const { origin } = URL.canParse(address) ? new URL(address) : { origin: "null" };
  // So it is also of `localhost:3000`, whose scheme would be "localhost".
  return origin === "null" ? "the address" : origin;
}

function isSameUrl(a: string, b: string): boolean {
  return URL.canParse(a) && URL.canParse(b) && new URL(a).href === new URL(b).href;
}

// Asks the webhook's public address for what it answers a request that nobody signed.

const PATIENCE_MS = 10_000;
/** The receiver's own answer is shorter. */
const MOST_READ = 1_024;

const CHECK_ROUTE = "Check the path, and that what stands before the application hands it on.";

/** @param isLocal - the service runs on this machine, as the emulator does */
export async function urlFindings(
  url: string,
  {
    clock,
    fetch,
    isLocal,
  }: { readonly clock: Clock; readonly fetch: typeof globalThis.fetch; readonly isLocal: boolean },
): Promise<Finding[]> {
  if (URL.canParse(url) && hasCredentials(new URL(url))) {
    const what = `${shownUrl(url)} has a user name or password in its address, with which it cannot be asked.`;
    return [problem("url_invalid", what, "Leave them out: a webhook is known by its signature.")];
  }
  const fault = faultOf(url, isLocal);
  const faults = fault === null ? [] : [problem(fault, `${shownUrl(url)} ${FAULTS[fault][0]}.`, FAULTS[fault][1])];
  if (fault === "url_invalid") return faults;
  return [...faults, await asked(url, clock, fetch)];
}

async function asked(url: string, clock: Clock, fetch: typeof globalThis.fetch): Promise<Finding> {
  const controller = new AbortController();
  const timer = clock.setTimeout(() => controller.abort(), PATIENCE_MS);
  timer.keepAlive();
  try {
    const headers = { "content-type": "application/json" };
    const { signal } = controller;
    const response = await fetch(url, { method: "POST", headers, body: "{}", redirect: "manual", signal });
    return verdict(shownUrl(url), response.status, await beginning(response));
  } catch (error) {
    const reason = controller.signal.aborted ? "no answer within 10 seconds" : reasonOf(error);
    const fix = "Check the name, the port, the certificate and the firewall; then the application.";
    return problem("url_unreachable", `${shownUrl(url)} cannot be reached: ${reason}.`, fix);
  } finally {
    timer.cancel();
  }
}

function verdict(where: string, status: number, body: string): Finding {
  if (status === 401 && body === '{"error":"unauthorized"}')
    return ok("url", `${where} refuses an unsigned request with 401, as a receiver does.`);
  if (status === 401 || status === 403) {
    const what = `${where} answers ${status}, but not in the receiver's words: something before it refuses.`;
    return warning("url_not_receiver", what, "Let the webhook's path through without a login of its own.");
  }
  if (status < 300) {
    const fix = "Verify signatures: mount the receiver there, without dangerouslyUnsigned.";
    return problem(
      "url_accepts_unsigned",
      `${where} answers an unsigned request with ${status}: anybody can send events.`,
      fix,
    );
  }
  if (status < 400)
    return problem(
      "url_redirects",
      `${where} redirects (${status}), and the service does not follow.`,
      "Register the last address.",
    );
  if (status >= 500) {
    const fix = "Look into the receiver's log; the service retries meanwhile, for 81 minutes.";
    return problem("url_failing", `${where} answers ${status}.`, fix);
  }
  return problem("url_not_receiver", `${where} answers ${status}: no receiver is mounted there.`, CHECK_ROUTE);
}

/** No more than a receiver's answer: what answers may be anything. */
async function beginning(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  while (reader !== undefined && length < MOST_READ) {
    const { done, value } = await reader.read();
    if (done) break;
    chunks.push(value);
    length += value.length;
  }
  await reader?.cancel();
  return Buffer.concat(chunks).toString();
}

/** The system's or TLS's code: `ENOTFOUND`, `ECONNREFUSED`, `CERT_HAS_EXPIRED`. */
function reasonOf(error: unknown): string {
  const { cause } = error instanceof Error ? error : {};
  const isCoded = cause instanceof Error && "code" in cause && typeof cause.code === "string";
  if (isCoded) return String(cause.code);
  return isBadPort(error) ? BAD_PORT : "the connection failed";
}
