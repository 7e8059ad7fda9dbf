/**
 * What a request is refused for before anybody is asked who sent it. A browser on a foreign page sends the cookies of ours along:
 * the checks of Host (a name that was made to point here), Origin, Sec-Fetch-Site and a header that no form can send keep it out.
 */
import { type HeaderSource, readHeader } from "../signature/headers.ts";
import { refused } from "./answers.ts";
import type { ApiErrorCode } from "./api.ts";
import type { InspectorAnswer } from "./http.ts";
import { methodsOf, type Place } from "./match.ts";
import { hostsOf, originOf } from "./origin.ts";

/** Sent with each POST of the page: a foreign page may send it only after a preflight, which is never answered. */
const CSRF_HEADER = "x-oncehook-inspector";

export interface Head {
  readonly method: string;
  readonly headers: HeaderSource;
}

export interface Refusal {
  readonly code: ApiErrorCode;
  readonly answer: InspectorAnswer;
}

export type Guard = (head: Head, place: Place) => Refusal | null;

export function createGuard(origins: readonly string[]): Guard {
  const known = new Set(origins);
  const hosts = new Set(origins.flatMap(hostsOf));
  return (head, place) => {
    const { headers } = head;
    if (!hosts.has(readHeader(headers, "host")?.toLowerCase() ?? ""))
      return refusal(
        "host_not_allowed",
        "The inspector is not served for this Host: its option origins says for which.",
      );
    if (!isOwnOrigin(headers, known) || !isOwnSite(head, place))
      return refusal("origin_not_allowed", "The request came from another site's page.");
    return refusedMethod(head.method, place) ?? (head.method === "POST" ? refusedPost(headers) : null);
  };
}

/** Browsers leave it out when they get something for a page of the same origin. */
function isOwnOrigin(headers: HeaderSource, known: ReadonlySet<string>): boolean {
  const origin = readHeader(headers, "origin");
  return origin === undefined || known.has(originOf(origin) ?? "");
}

/** A link on another page may lead to the page itself: that shows nothing to the other page, and its data is asked for by ours. */
function isOwnSite({ method, headers }: Head, place: Place): boolean {
  const site = readHeader(headers, "sec-fetch-site");
  if (site === undefined || site === "same-origin" || site === "none") return true;
  const isLinked =
    readHeader(headers, "sec-fetch-mode") === "navigate" && readHeader(headers, "sec-fetch-dest") === "document";
  return isLinked && method === "GET" && place.kind === "page";
}

function refusedMethod(method: string, place: Place): Refusal | null {
  const methods = methodsOf(place);
  if (methods.includes(method)) return null;
  const allow = methods.join(", ");
  return refusal("method_not_allowed", `This path knows ${allow}.`, { allow });
}

function refusedPost(headers: HeaderSource): Refusal | null {
  if (readHeader(headers, CSRF_HEADER) !== "1")
    return refusal("csrf_header_missing", `A POST needs the header "${CSRF_HEADER}: 1".`);
  const [type = ""] = (readHeader(headers, "content-type") ?? "").split(";");
  if (type.trim().toLowerCase() === "application/json") return null;
  return refusal("invalid_request", 'A POST needs the header "content-type: application/json".');
}

function refusal(code: ApiErrorCode, message: string, headers?: Readonly<Record<string, string>>): Refusal {
  return { code, answer: refused(code, message, headers) };
}
