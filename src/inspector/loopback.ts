/** Who may open an inspector that serves one person on this machine: whoever has the link that was printed, once and soon. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { type Clock, systemClock } from "../internal/clock.ts";
import { readHeader } from "../signature/headers.ts";
import { isSameSecret } from "../signature/secret.ts";
import { TEXT, text } from "./answers.ts";
import type { Access } from "./api.ts";
import { createGuard, type Guard } from "./guard.ts";
import { secured } from "./headers.ts";
import type { InspectorAnswer, InspectorRequest, Mountable } from "./http.ts";
import type { Grant } from "./options.ts";

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
