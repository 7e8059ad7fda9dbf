/** Who gets an answer: checks of Host and Origin, the application's authorization, and the link of a local inspector. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { type Clock, systemClock } from "../../internal/clock.ts";
import { errorPlaceOf, foreignLabels } from "../../internal/foreign-error.ts";
import { isRecord } from "../../internal/options.ts";
import { isSameSecret } from "../../internal/same-secret.ts";
import { type HeaderSource, readHeader } from "../../sources/headers.ts";
import type { Access, ApiErrorCode } from "./api.ts";
import {
  type CodeLog,
  type InspectorAnswer,
  type InspectorRequest,
  type Mountable,
  refused,
  secured,
  TEXT,
  textReply,
} from "./http.ts";
import { type Grant, hostsOf, originOf, type ResolvedInspector } from "./options.ts";
import { methodsOf, type PathTarget } from "./route.ts";

/** The page sends it with each POST. A foreign page could send it only after a preflight request, which is never allowed. */
const CSRF_HEADER = "x-oncehook-inspector";

export interface RequestHead {
  readonly method: string;
  readonly headers: HeaderSource;
}

export interface GuardRefusal {
  readonly code: ApiErrorCode;
  readonly answer: InspectorAnswer;
}

export type Guard = (head: RequestHead, place: PathTarget) => GuardRefusal | null;

/**
 * The checks before authorization. A browser sends our cookies with requests from a foreign page too. The checks of Host (an attacker's
 * name can point here), Origin, Sec-Fetch-Site, and of a header that a form cannot send refuse such requests.
 */
export function createGuard(origins: readonly string[]): Guard {
  const known = new Set(origins);
  const hosts = new Set(origins.flatMap(hostsOf));
  return (head, place) => {
    const { headers } = head;
    if (!hosts.has(readHeader(headers, "host")?.toLowerCase() ?? ""))
      return refusal(
        "host_not_allowed",
        "The inspector is not served for this Host. Its option origins lists the allowed ones.",
      );
    if (!isOwnOrigin(headers, known) || !isOwnSite(head, place))
      return refusal("origin_not_allowed", "The request came from another site's page.");
    return refusedMethod(head.method, place) ?? (head.method === "POST" ? refusedPost(headers) : null);
  };
}

/** Browsers omit the header for a GET from a page of the same origin. */
function isOwnOrigin(headers: HeaderSource, known: ReadonlySet<string>): boolean {
  const origin = readHeader(headers, "origin");
  return origin === undefined || known.has(originOf(origin) ?? "");
}

/** Another site may link to the page itself: the other site sees nothing of it, and the page loads its data in requests of its own. */
function isOwnSite({ method, headers }: RequestHead, place: PathTarget): boolean {
  const site = readHeader(headers, "sec-fetch-site");
  if (site === undefined || site === "same-origin" || site === "none") return true;
  const isLinked =
    readHeader(headers, "sec-fetch-mode") === "navigate" && readHeader(headers, "sec-fetch-dest") === "document";
  return isLinked && method === "GET" && place.kind === "page";
}

function refusedMethod(method: string, place: PathTarget): GuardRefusal | null {
  const methods = methodsOf(place);
  if (methods.includes(method)) return null;
  const allow = methods.join(", ");
  return refusal("method_not_allowed", `This path allows ${allow}.`, { allow });
}

function refusedPost(headers: HeaderSource): GuardRefusal | null {
  if (readHeader(headers, CSRF_HEADER) !== "1")
    return refusal("csrf_header_missing", `A POST needs the header "${CSRF_HEADER}: 1".`);
  const [type = ""] = (readHeader(headers, "content-type") ?? "").split(";");
  if (type.trim().toLowerCase() === "application/json") return null;
  return refusal("invalid_request", 'A POST needs the header "content-type: application/json".');
}

function refusal(code: ApiErrorCode, message: string, headers?: Readonly<Record<string, string>>): GuardRefusal {
  return { code, answer: refused(code, message, headers) };
}

export interface Granted {
  readonly access: Access;
  /** The viewer's name, for the audit. */
  readonly by: string;
}

export type Authorize<Request> = (request: Request) => Promise<Granted | false>;

const LEVELS: readonly unknown[] = ["read", "act", "reveal"] satisfies readonly Access[];
const NAMELESS = "inspector";
const LONGEST_NAME = 100;
/** Control characters, and characters that change the direction of a line: a name must not change how the audit reads. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Calls the application's `authorize`. Any invalid answer denies. */
export function authorization<Request>(
  authorize: ResolvedInspector<Request>["authorize"],
  log: CodeLog,
): Authorize<Request> {
  return async (request) => {
    const answer: unknown = await asked(authorize, request, log);
    const granted = grantedBy(answer);
    if (granted !== undefined) return granted;
    log.tell(
      "error",
      { code: "authorize_mistake" },
      'authorize() of createInspector() did not return "read", "act", "reveal", false or { access, by }: access is denied.',
    );
    return false;
  };
}

/** Returns true if the right `access` includes the right `needed`. */
export function includes(access: Access, needed: Access): boolean {
  return LEVELS.indexOf(access) >= LEVELS.indexOf(needed);
}

async function asked<Request>(
  authorize: ResolvedInspector<Request>["authorize"],
  request: Request,
  log: CodeLog,
): Promise<unknown> {
  try {
    return await authorize(request);
  } catch (error) {
    // Only the error's name and place: authorize() handles cookies and tokens, and its error may quote them.
    log.tell(
      "warn",
      { ...errorPlaceOf(error), code: "authorize_failed" },
      `authorize() of createInspector() threw${foreignLabels(error)}: access is denied.`,
    );
    return false;
  }
}

/** Undefined for an invalid answer. */
function grantedBy(answer: unknown): Granted | false | undefined {
  if (answer === false) return false;
  if (isAccess(answer)) return { access: answer, by: NAMELESS };
  if (!isRecord(answer)) return undefined;
  const { access, by } = answer;
  if (!isAccess(access) || !(by === undefined || typeof by === "string")) return undefined;
  return { access, by: boundedName(by ?? "") };
}

function isAccess(value: unknown): value is Access {
  return LEVELS.includes(value);
}

function boundedName(by: string): string {
  const visible = [
    ...by
      .slice(0, 10 * LONGEST_NAME)
      .replace(INVISIBLE, "")
      .trim(),
  ]
    .slice(0, LONGEST_NAME)
    .join("");
  return visible === "" ? NAMELESS : visible;
}

/** How long a link can be opened. */
export const LINK_MS = 60_000;

export interface LoopbackOptions {
  /** The server's port on 127.0.0.1. */
  readonly port: number;
  readonly access: Access;
  readonly by: string;
  readonly clock?: Clock;
}

export interface LoopbackSession {
  /** Options of `createInspector`. */
  readonly path: string;
  readonly origins: readonly string[];
  authorize(request: IncomingMessage): Grant;
  /** A new link, which works once within 60 s. The link before it no longer works. */
  link(): string;
  /** Wraps the inspector that was made with these options, and answers the link. */
  mount(inspector: Mountable<IncomingMessage>): Mountable<IncomingMessage>;
}

const SECRET_BYTES = 32;
const PATH_BYTES = 12;
const FRESH_LINK = 'Open a fresh link: press Enter where "oncehook inspect" runs, or start it again.\n';

/**
 * For `oncehook inspect`, which serves one person on this machine: the one who opens the printed link, once and within 60 s.
 *
 * Cookies are not bound to a port: a browser sends ours to every server on 127.0.0.1, for paths below the cookie's own. So the path
 * cannot be guessed, and the cookie works nowhere else.
 */
export function createLoopbackSession({ port, access, by, clock = systemClock }: LoopbackOptions): LoopbackSession {
  const path = `/inspector-${randomBytes(PATH_BYTES).toString("base64url")}`;
  const origins = [`http://127.0.0.1:${port}`, `http://localhost:${port}`];
  const name = `oncehook-inspector-${port}`;
  const session = secret();
  const tokens = new SingleUse(clock);
  const cookie = `${name}=${session}; HttpOnly; SameSite=Strict; Path=${path}`;
  const opening = { guard: createGuard(origins), tokens, cookie, page: `${path}/` };
  return {
    path,
    origins,
    authorize: ({ headers }) => isSameSecret(cookieOf(headers.cookie, name), session) && { access, by },
    link: () => `${origins[0]}${path}/open?token=${tokens.make()}`,
    mount: (inspector) => ({
      path: "",
      logger: inspector.logger,
      async handle(request) {
        const [pathname = ""] = request.url.split("?", 1);
        if (pathname === `${path}/open`) return secured(open(request, opening));
        if (pathname !== path && !pathname.startsWith(`${path}/`)) return secured(say(404, FRESH_LINK));
        const answer = await inspector.handle(request);
        const isPage = pathname === path || pathname === `${path}/`;
        return isPage && answer.status === 401 ? secured(say(401, FRESH_LINK)) : answer;
      },
    }),
  };
}

interface Opening {
  readonly guard: Guard;
  readonly tokens: SingleUse;
  readonly cookie: string;
  readonly page: string;
}

/** The answer to a link: the cookie for its token. */
function open({ method, url, headers }: InspectorRequest, { guard, tokens, cookie, page }: Opening): InspectorAnswer {
  // Checked as a GET: the guard knows the methods of a page, not those of a link.
  const refusal = guard({ method: "GET", headers }, { kind: "page" });
  if (refusal !== null) return refusal.answer;
  if (method !== "GET") return say(405, "A link is opened with GET.\n", { allow: "GET" });
  // A browser's prefetch must not use up the link before the person opens it.
  if (readHeader(headers, "sec-purpose")?.startsWith("prefetch")) return say(503, "Not ahead of time.\n");
  const token = new URLSearchParams(url.slice(url.indexOf("?"))).get("token") ?? "";
  if (!tokens.use(token)) return say(403, `This link was used, or is older than ${LINK_MS / 1_000} s. ${FRESH_LINK}`);
  // From a link on another site, the browser counts the redirect as that site's and omits the strict cookie. A refresh is our own request.
  const site = readHeader(headers, "sec-fetch-site");
  if (site !== undefined && site !== "none" && site !== "same-origin")
    return say(200, "Opening the inspector.\n", { "set-cookie": cookie, refresh: `0; url=${page}` });
  return say(303, "", { "set-cookie": cookie, location: page });
}

/** The newest token. It works once, until it is too old. */
class SingleUse {
  readonly #clock: Clock;
  #newest: { readonly token: string; readonly until: number } | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  make(): string {
    const token = secret();
    this.#newest = { token, until: this.#clock.monotonic() + LINK_MS };
    return token;
  }

  use(token: string): boolean {
    const newest = this.#newest;
    if (newest === null || !isSameSecret(token, newest.token)) return false;
    this.#newest = null;
    return this.#clock.monotonic() <= newest.until;
  }
}

function secret(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}

function cookieOf(header: string | undefined, name: string): string {
  const pairs = header?.split(";").map((pair) => pair.trim()) ?? [];
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";
}

function say(status: number, words: string, headers: Readonly<Record<string, string>> = {}): InspectorAnswer {
  return textReply(TEXT, words, { status, headers });
}

/** A Host in its usual form; anything else is not logged. */
const PLAIN_HOST = /^(?:[a-z\d.-]{1,100}|\[[a-f\d:.]{2,45}\])(?::\d{1,5})?$/i;

/** Logs that requests are refused for their Host or Origin: a mistake in `origins` and an attack look alike. */
export function logRefusal(log: CodeLog, code: ApiErrorCode, headers: HeaderSource): void {
  if (code === "host_not_allowed") {
    const host = readHeader(headers, "host") ?? "";
    log.tell(
      "warn",
      { code, host: PLAIN_HOST.test(host) ? host : null },
      "The inspector refused a request for its Host. If it was yours, add what the browser shows to the option origins of createInspector(), or let the proxy pass the Host on.",
    );
  }
  if (code === "origin_not_allowed")
    log.tell(
      "warn",
      { code, origin: originOf(readHeader(headers, "origin")) },
      "The inspector refused a request that another site's page sent. If it was yours, add what the browser shows to the option origins of createInspector().",
    );
}
