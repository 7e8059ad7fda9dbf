/** Who gets an answer: checks of Host and Origin, the application's authorization, and the link of a local inspector. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { type Clock, systemClock } from "../internal/clock.ts";
import { errorPlaceOf, foreignLabels } from "../internal/foreign-error.ts";
import type { Logger } from "../internal/logger.ts";
import { isRecord } from "../internal/type-guards.ts";
import { isSameSecret } from "../signature/secret.ts";
import { type HeaderSource, readHeader } from "../signature/verify.ts";
import type { Access, ApiErrorCode } from "./api.ts";
import { type InspectorAnswer, type InspectorRequest, type Mountable, refused, secured, TEXT, text } from "./http.ts";
import { type Grant, hostsOf, originOf, type ResolvedInspector } from "./options.ts";
import { methodsOf, type Place } from "./route.ts";

// What a request is refused for before anybody is asked who sent it. A browser on a foreign page sends the cookies of ours along:
// the checks of Host (a name that was made to point here), Origin, Sec-Fetch-Site and a header that no form can send keep it out.

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

// Asks the application what somebody may do. Whatever is not one of the answers it can give is a no.

export interface Granted {
  readonly access: Access;
  /** Who it is, for the audit. */
  readonly by: string;
}

export type Authorize<Request> = (request: Request) => Promise<Granted | false>;

const LEVELS: readonly unknown[] = ["read", "act", "reveal"] satisfies readonly Access[];
const NAMELESS = "inspector";
const LONGEST_NAME = 100;
/** Controls, and what turns the direction of a line: a name must not make an audit read otherwise than it is. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

export function authorization<Request>({
  authorize,
  logger,
}: Pick<ResolvedInspector<Request>, "authorize" | "logger">): Authorize<Request> {
  let isMistakeTold = false;
  return async (request) => {
    const answer: unknown = await asked(authorize, request, logger);
    const granted = grantedBy(answer);
    if (granted !== undefined) return granted;
    if (!isMistakeTold)
      logger.error(
        { code: "authorize_mistake" },
        'authorize() of createInspector() gave something else than "read", "act", "reveal", false or { access, by } of these: it denies.',
      );
    isMistakeTold = true;
    return false;
  };
}

/** Whether who has `access` may do what needs `needed`. */
export function includes(access: Access, needed: Access): boolean {
  return LEVELS.indexOf(access) >= LEVELS.indexOf(needed);
}

async function asked<Request>(
  authorize: ResolvedInspector<Request>["authorize"],
  request: Request,
  logger: Logger,
): Promise<unknown> {
  try {
    return await authorize(request);
  } catch (error) {
    // Cookies and tokens went through it, and it may quote them.
    logger.warn(
      { code: "authorize_failed", ...errorPlaceOf(error) },
      `authorize() of createInspector() threw${foreignLabels(error)}: it denies.`,
    );
    return false;
  }
}

/** Undefined for what is no answer. */
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

// Who may open an inspector that serves one person on this machine: whoever has the link that was printed, once and soon.

/** How long a link can be opened. */
export const LINK_MS = 60_000;

export interface LoopbackOptions {
  /** Where the server listens on 127.0.0.1. */
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
  /** A link that can be opened once within 60 s. The one before it can not be any more. */
  link(): string;
  /** What a server mounts: the inspector that was made with these options, and the link. */
  mount(inspector: Mountable<IncomingMessage>): Mountable<IncomingMessage>;
}

const SECRET_BYTES = 32;
const PATH_BYTES = 12;
const FRESH_LINK = 'Open a fresh link: press Enter where "oncehook inspect" runs, or start it again.\n';

/**
 * Cookies know no ports: a browser sends ours to every server of 127.0.0.1 that is asked for a path below its own. So the
 * path cannot be guessed, and the cookie is worth nothing anywhere else.
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
  // As what it may be: the methods of a page are not those of a link.
  const refusal = guard({ method: "GET", headers }, { kind: "page" });
  if (refusal !== null) return refusal.answer;
  if (method !== "GET") return say(405, "A link is opened with GET.\n", { allow: "GET" });
  // A browser that looks ahead shall not use the link up, before anybody sees what came of it.
  if (readHeader(headers, "sec-purpose")?.startsWith("prefetch")) return say(503, "Not ahead of time.\n");
  const token = new URLSearchParams(url.slice(url.indexOf("?"))).get("token") ?? "";
  if (!tokens.use(token)) return say(403, `This link was used, or is older than ${LINK_MS / 1_000} s. ${FRESH_LINK}`);
  // After a link on another site's page the redirection would count as that site's, and not get the cookie.
  const site = readHeader(headers, "sec-fetch-site");
  if (site !== undefined && site !== "none" && site !== "same-origin")
    return say(200, "Opening the inspector.\n", { "set-cookie": cookie, refresh: `0; url=${page}` });
  return say(303, "", { "set-cookie": cookie, location: page });
}

/** The newest token, until it is used or too old. */
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
  return text(TEXT, words, { status, headers });
}

// Tells once a minute that requests are refused for their Host or Origin: a mistake in `origins` looks like an attack, and the reverse.

const TELL_EVERY_MS = 60_000;
/** As a Host is written; anything else that was sent is not told. */
const PLAIN_HOST = /^(?:[a-z\d.-]{1,100}|\[[a-f\d:.]{2,45}\])(?::\d{1,5})?$/i;

export class RefusalLog {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #toldAt = new Map<ApiErrorCode, number>();

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  tell(code: ApiErrorCode, headers: HeaderSource): void {
    if (code !== "host_not_allowed" && code !== "origin_not_allowed") return;
    const now = this.#clock.monotonic();
    if (now - (this.#toldAt.get(code) ?? Number.NEGATIVE_INFINITY) < TELL_EVERY_MS) return;
    this.#toldAt.set(code, now);
    if (code === "host_not_allowed") {
      const host = readHeader(headers, "host") ?? "";
      this.#logger.warn(
        { code, host: PLAIN_HOST.test(host) ? host : null },
        "The inspector refused a request for its Host. If it was yours, add what the browser shows to the option origins of createInspector(), or let the proxy pass the Host on.",
      );
    } else {
      this.#logger.warn(
        { code, origin: originOf(readHeader(headers, "origin")) },
        "The inspector refused a request that another site's page sent. If it was yours, add what the browser shows to the option origins of createInspector().",
      );
    }
  }
}
