/** One route of the API: what the router matches, the OpenAPI document describes, and the tests go through. */
import { z } from "zod";
import type { Service } from "../service.ts";
import type { Client } from "../state/records.ts";
import type { Readings } from "../unspecified.ts";
import type { Contract, EmulatorAnswer } from "./answers.ts";
import type { RequestBody } from "./body.ts";

type Method = "GET" | "POST" | "PATCH";

/** A call of a route, with everything decided that comes before it: route, caller, and whether the body fits. */
export interface RouteCall<Fields> {
  readonly service: Service;
  /** The emulator's time when it came in, epoch ms. */
  readonly now: number;
  /** The authenticated client. */
  readonly client: Client;
  /** Path parameters, percent-decoded once. */
  readonly params: Readonly<Record<string, string>>;
  readonly headers: Headers;
  readonly body: Fields;
  /** The body's JSON before its schema, with unknown fields; undefined for a route without a body. */
  readonly json: unknown;
  /** Puts a warning into the request log. */
  warn(text: string): void;
}

interface Described {
  readonly method: Method;
  /** With parameters in braces: `/api/core/numbers/{numberId}`. */
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  /** The 2xx answer. */
  readonly success: { readonly status: number; readonly description: string; readonly schema: z.ZodType };
  /** Statuses of its error answers, besides 401 and 500 which every core route has. */
  readonly errors: readonly number[];
}

/** A route under `/api/core`. */
export interface CoreRoute<Fields = unknown> extends Described {
  readonly kind: "core";
  /** Whether these readings have the route at all (WHK-27). Absent: all have. */
  exists?(readings: Readings): boolean;
  /** Asked for with `capabilities.enforce` (AUT-10). */
  readonly capability?: string;
  /** Headers it needs, checked by `checkHeaders`. */
  readonly requiredHeaders?: readonly { readonly name: string; readonly description: string }[];
  /** What comes before the body in the order of errors (SND-27): a refusal, or null. */
  checkHeaders?(headers: Headers): EmulatorAnswer | null;
  /** Absent: the route takes no body, and ignores one. */
  readonly body?: z.ZodType<Fields>;
  /** What the body says with a field name that only looks right (UPD-7). */
  readonly lookalikes?: ReadonlyMap<string, string>;
  handle(call: RouteCall<Fields>): EmulatorAnswer | Promise<EmulatorAnswer>;
}

/** Keeps the body's type between the schema and the handler. */
export function coreRoute<Fields>(route: Omit<CoreRoute<Fields>, "kind">): CoreRoute {
  return { ...route, kind: "core" } as CoreRoute;
}

/** A call of the token route, which reads its own body: a form or JSON (TOK-2). */
export interface TokenCall {
  readonly service: Service;
  readonly now: number;
  readonly headers: Headers;
  readonly body: RequestBody;
  /** Puts a warning into the request log. */
  warn(text: string): void;
  /** Tells who calls, for the request log. */
  authenticated(client: Client): void;
}

/** The path of the token route, whose every error has the OAuth shape (GEN-3). */
export const TOKEN_PATH = "/api/auth/token";

/** The token route; its errors have the OAuth shape. */
export interface TokenRoute extends Described {
  readonly kind: "token";
  /** For the OpenAPI document. */
  readonly body: z.ZodType;
  handle(call: TokenCall): EmulatorAnswer | Promise<EmulatorAnswer>;
}

export type Route = CoreRoute | TokenRoute;

/** A route with the parameters of its path. */
export interface Found<R> {
  readonly route: R;
  readonly params: Readonly<Record<string, string>>;
}

/** Matches a path against routes; parameters are percent-decoded once (UPD-16). HEAD finds the route of GET (GEN-7). */
export class Router<R extends { readonly method: string; readonly path: string }> {
  readonly #fixed = new Map<string, R>();
  readonly #patterns: { readonly route: R; readonly pattern: RegExp; readonly names: readonly string[] }[] = [];

  constructor(routes: readonly R[]) {
    for (const route of routes) {
      if (!route.path.includes("{")) this.#fixed.set(`${route.method} ${route.path}`, route);
      else this.#patterns.push({ route, ...patternOf(route.path) });
    }
  }

  match(asked: string, path: string): Found<R> | undefined {
    const method = asked === "HEAD" ? "GET" : asked;
    const route = this.#fixed.get(`${method} ${path}`);
    if (route !== undefined) return { route, params: {} };
    for (const { route, pattern, names } of this.#patterns) {
      const values = route.method === method ? pattern.exec(path)?.slice(1).map(decoded) : undefined;
      if (values === undefined || values.includes(undefined)) continue;
      return { route, params: Object.fromEntries(names.map((name, i) => [name, values[i] ?? ""])) };
    }
    return undefined;
  }
}

function patternOf(path: string): { pattern: RegExp; names: string[] } {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? "");
  const source = path.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{\w+\}/g, "([^/]+)");
  return { pattern: new RegExp(`^${source}$`), names };
}

function decoded(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}

// What several routes say and take, as the specification writes it; answers are loose, so that a client made from them takes more.

/** GET and PATCH write `campaignRegId` with a capital R; requests do not (UPD-7). */
export const numberSchema = z.looseObject({
  numberId: z.string().describe("What a send takes as `sendFrom`"),
  e164: z.string().describe("The phone number in E.164"),
  status: z.string().describe("ACTIVE is the usable value. Unspecified: others"),
  campaignRegId: z.string().nullable().describe("A capital R, unlike in requests").optional(),
  smsEnabled: z.boolean(),
  mmsEnabled: z.boolean(),
  webhookInboundOverride: z.string().nullable().describe("URL; the number's own target of inbound events").optional(),
  webhookDeliveryOverride: z.string().nullable().describe("URL; the number's own target of outbound events").optional(),
});

export const coreErrorSchema = z.looseObject({
  error: z.looseObject({ code: z.string(), message: z.string(), details: z.looseObject({}) }),
  requestId: z.string(),
});

export const oauthErrorSchema = z.looseObject({
  error: z.enum(["invalid_request", "invalid_client", "unsupported_grant_type", "server_error"]),
  error_description: z.string(),
});

// Where a path lies, and whose error shape its answers have.

export interface ApiPlace {
  readonly contract: Contract;
  /** Behind the base path; null outside of it. */
  readonly path: string | null;
}

export type Place = ApiPlace | { readonly contract: "control"; readonly path: string };

export function placeOf(pathname: string, basePath: string): Place {
  if (pathname !== basePath && !pathname.startsWith(`${basePath}/`)) return { contract: "core", path: null };
  const path = pathname.slice(basePath.length);
  if (path === "/_emulator" || path.startsWith("/_emulator/")) return { contract: "control", path };
  return { contract: path === TOKEN_PATH ? "token" : "core", path };
}
