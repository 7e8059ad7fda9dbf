/** What the service says of the API client, its webhooks and its numbers. */
import { createClient } from "../../client/client.ts";
import {
  ApiError,
  ForbiddenError,
  NotFoundError,
  OAuthError,
  ResponseValidationError,
  ServiceError,
  UnauthorizedError,
} from "../../client/errors.ts";
import type { PhoneNumber, WebhookDefaults, Whoami } from "../../client/types.ts";
import { SetupError } from "../../errors.ts";
import type { Clock } from "../../internal/clock.ts";
import { silentLogger } from "../../internal/logger.ts";
import { isPrivateHost } from "../../internal/network.ts";
import { inFlags } from "../service-flags.ts";
import { ServiceClock } from "./clocks.ts";
import { type Finding, named, ok, problem, warning } from "./finding.ts";
import { numberFindings } from "./numbers.ts";
import { webhookFindings } from "./webhooks.ts";

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
    // What cannot be judged is told, not guessed: an application's client would only log it.
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

/** Why none of the calls can be made; null for what is no answer of the service, or of the network. */
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
