/** Asks the webhook's public address for what it answers a request that nobody signed. */

import type { Clock } from "../../internal/clock.ts";
import { BAD_PORT, hasCredentials, isBadPort } from "../../internal/network.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";
import { FAULTS, faultOf, shownUrl } from "./target.ts";

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
