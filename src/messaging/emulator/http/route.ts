/** One route of the API (what the router matches and the OpenAPI document describes), and reading the body of its requests. */

import { z } from "zod";
import { isRecord } from "../../../internal/options.ts";
import type { Service } from "../service.ts";
import type { Client } from "../state/records.ts";
import type { Readings } from "../unspecified.ts";
import { type Contract, type EmulatorAnswer, refuse } from "./answers.ts";

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

/** 1 MiB. */
export const MAX_BODY_BYTES = 1_048_576;
/** Deeper JSON is refused: what walks through a value must not run out of stack. */
export const MOST_LEVELS = 64;
/** Fields and problems named in one answer or log line; a body can have tens of thousands. */
const MOST_NAMED = 20;
const LONGEST_NAME = 100;

/** A body as it came, and what it says; read as JSON once, for the route and for the log. */
export interface RequestBody {
  /** Null when there were more than the limit. */
  readonly bytes: Uint8Array | null;
  /** A JSON object, or a refusal (GEN-8). A missing content type does not matter. */
  json(): Parsed;
}

type Parsed =
  | { readonly ok: true; readonly value: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly refusal: EmulatorAnswer };

export async function readBody(request: Request): Promise<RequestBody> {
  const bytes = await bodyBytes(request);
  let parsed: Parsed | undefined;
  return {
    bytes,
    json() {
      parsed ??= bytes === null ? refused("The body is longer than 1 MiB.") : parseObject(bytes);
      return parsed;
    },
  };
}

/** The bytes of a body; null when there are more than the limit. */
export async function bodyBytes(request: Request, limit = MAX_BODY_BYTES): Promise<Uint8Array | null> {
  if (request.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body) {
    length += chunk.byteLength;
    if (length > limit) return null;
    chunks.push(chunk);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, length);
}

function parseObject(bytes: Uint8Array): Parsed {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (isDeeper(value, MOST_LEVELS)) return refused(`The body is nested deeper than ${MOST_LEVELS} levels.`);
    return isRecord(value) ? { ok: true, value } : refused("The body must be a JSON object.");
  } catch {
    return refused("The body is not valid JSON in UTF-8.");
  }
}

function refused(message: string): Parsed {
  return { ok: false, refusal: refuse("INVALID_REQUEST", message) };
}

/** Whether lists and objects lie in each other on more than `levels` levels. */
export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  for (const field of Object.values(value)) if (isDeeper(field, levels - 1)) return true;
  return false;
}

/** Where a body does not fit its schema; field names and types, none of its values. */
export function schemaRefusal(error: z.ZodError): EmulatorAnswer {
  const issues = error.issues
    .slice(0, MOST_NAMED)
    .map((issue) => ({ path: issue.path.join("."), problem: issue.message }));
  const [first] = issues;
  const where = first === undefined || first.path === "" ? "The body" : `"${first.path}"`;
  return refuse("INVALID_REQUEST", `${where} does not fit: ${first?.problem ?? "unknown"}.`, { issues });
}

/** Names of fields that a schema does not know, with their path: `media.0.width` (GEN-9). The first few of them. */
export function unknownFields(schema: z.ZodType, value: unknown): readonly string[] {
  const names: string[] = [];
  collectUnknown(schema, value, (name) => {
    names.push(name.slice(0, LONGEST_NAME));
    return names.length < MOST_NAMED;
  });
  return names;
}

/** Tells `found` of each unknown field until that says no more; false when it did. */
function collectUnknown(schema: z.ZodType, value: unknown, found: (name: string) => boolean, path = ""): boolean {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    return collectUnknown(schema.unwrap() as z.ZodType, value, found, path);
  }
  if (schema instanceof z.ZodArray && Array.isArray(value)) {
    return value.every((item, i) => collectUnknown(schema.element as z.ZodType, item, found, `${path}${i}.`));
  }
  if (!(schema instanceof z.ZodObject) || !isRecord(value)) return true;
  return Object.entries(value).every(([name, field]) => {
    if (!Object.hasOwn(schema.shape, name)) return found(`${path}${name}`);
    return collectUnknown(schema.shape[name] as z.ZodType, field, found, `${path}${name}.`);
  });
}

// Reads an `application/x-www-form-urlencoded` text strictly: what a lenient reader would guess at is refused.

type Form =
  | { readonly ok: true; readonly fields: ReadonlyMap<string, string> }
  | { readonly ok: false; readonly problem: string };

/** The fields of a form. A name that comes twice is refused (TOK-19), as is a percent sign that begins no UTF-8. */
export function parseForm(text: string): Form {
  const fields = new Map<string, string>();
  for (const part of text.split("&")) {
    if (part === "") continue;
    const equals = part.indexOf("=");
    const name = formDecoded(equals === -1 ? part : part.slice(0, equals));
    const value = formDecoded(equals === -1 ? "" : part.slice(equals + 1));
    if (name === null || value === null) return { ok: false, problem: "The form is not percent-encoded UTF-8." };
    if (fields.has(name)) return { ok: false, problem: "The form has a parameter more than once." };
    fields.set(name, value);
  }
  return { ok: true, fields };
}

/** Undoes form encoding; null for a text that cannot be encoded so. */
export function formDecoded(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return null;
  }
}
