/** The control API under `/_emulator`: the controls over HTTP, for this machine only. */
import { z } from "zod";
import { OncehookError } from "../../../errors.ts";
import { isSameSecret } from "../../../internal/same-secret.ts";
import { type ControlRefusal, json, logFailure, OWN_FAILURE, refusalResponse } from "../http/answers.ts";
import { bodyBytes, type Found, MAX_BODY_BYTES, Router } from "../http/route.ts";
import { FOREIGN_HOST, isOwnHost, type Settings } from "../options.ts";
import { problemOf } from "./control.ts";
import { CONTROL_ROUTES, type ControlCall, type ControlContext, type ControlRoute } from "./routes.ts";

const PREFIX = "/_emulator";
const METHODS = ["GET", "HEAD", "POST", "PATCH", "DELETE"];

/** Answers a call; `path` is the path behind the base path, beginning with `/_emulator`. */
type ControlApi = (request: Request, path: string) => Promise<Response>;

export function createControlApi(context: ControlContext): ControlApi {
  const router = new Router(CONTROL_ROUTES);
  const { settings } = context.service;
  return async (request, path) => {
    const refusal = guard(request, settings);
    if (refusal !== null) return refusalResponse(refusal);
    const found = router.match(request.method, path.slice(PREFIX.length));
    if (found === undefined) return refusalResponse(unmatched(router, path.slice(PREFIX.length)));
    const input = await inputOf(request, found.route);
    if ("refusal" in input) return refusalResponse(input.refusal);
    const baseUrl = new URL(request.url).origin + settings.basePath;
    return answered(found, { ...context, ...input, params: found.params, baseUrl });
  };
}

function unmatched(router: Router<ControlRoute>, path: string): ControlRefusal {
  const allowed = METHODS.filter((method) => router.match(method, path) !== undefined);
  if (allowed.length === 0) return { code: "NOT_FOUND", message: "The control API has no such route." };
  const headers = { allow: allowed.join(", ") };
  return { code: "METHOD_NOT_ALLOWED", message: `This route takes ${headers.allow}.`, headers };
}

async function answered({ route }: Found<ControlRoute>, call: ControlCall<unknown, unknown>): Promise<Response> {
  try {
    const answer = await route.handle(call);
    return answer instanceof Response ? answer : json(200, JSON.stringify(answer));
  } catch (error) {
    return refusalResponse(refusalOf(error, call));
  }
}

/** What a control throws; its messages hold no values. Anything else is a failure of the emulator's own, never a stack. */
function refusalOf(error: unknown, { service }: ControlContext): ControlRefusal {
  if (error instanceof OncehookError) {
    const { code, message } = error;
    if (code === "unknown_id") return { code: "NOT_FOUND", message };
    if (code === "message_ended" || code === "cut_off") return { code: "CONFLICT", message };
    if (code === "invalid_option") return { code: "INVALID_REQUEST", message };
  }
  logFailure(service.settings, error, { message: "The emulator failed to answer a control call." });
  return { code: "SERVER_ERROR", message: OWN_FAILURE };
}

// Who may use the control API: programs of this machine, and nothing that a web page makes a browser send.

/** Why a call is refused, or null. */
function guard({ headers, url }: Request, settings: Settings): ControlRefusal | null {
  const host = headers.get("host") ?? new URL(url).host;
  if (!isOwnHost(host, settings)) return { code: "FORBIDDEN", message: FOREIGN_HOST };
  if (isForeign(headers, host)) return { code: "FORBIDDEN", message: "Web pages may not use the control API." };
  if (settings.controlToken !== undefined && !isToken(headers.get("authorization"), settings.controlToken)) {
    return { code: "UNAUTHORIZED", message: "The control token is required: Authorization: Bearer …" };
  }
  return null;
}

/** A page sends its origin with whatever could change something; what it can send without one, browsers mark. */
function isForeign(headers: Headers, host: string): boolean {
  const origin = headers.get("origin");
  if (origin !== null && origin.toLowerCase() !== `http://${host.toLowerCase()}`) return true;
  const site = headers.get("sec-fetch-site");
  return site !== null && site !== "same-origin" && site !== "none";
}

function isToken(authorization: string | null, token: string): boolean {
  return isSameSecret(/^bearer (.*)$/i.exec(authorization ?? "")?.[1] ?? "", token);
}

// A control call's query parameters and body, as its route's schemas say; or why they are refused.

interface Input {
  readonly query: unknown;
  readonly body: unknown;
}

interface Refused {
  readonly refusal: ControlRefusal;
}

async function inputOf(request: Request, route: ControlRoute): Promise<Input | Refused> {
  const query = queryOf(new URL(request.url).searchParams, route);
  if ("refusal" in query) return query;
  const body = await bodyOf(request, route);
  return "refusal" in body ? body : { query: query.value, body: body.value };
}

type Fitted = { readonly value: unknown } | Refused;

function queryOf(parameters: URLSearchParams, { query }: ControlRoute): Fitted {
  const entries = [...parameters];
  const twice = entries.find(([name]) => parameters.getAll(name).length > 1);
  if (twice !== undefined) return refused(`The query parameter "${twice[0]}" comes twice.`);
  if (query !== undefined) return fitted(query, valuesOf(entries, query), "The query does not fit");
  return entries.length === 0 ? { value: undefined } : refused("This route takes no query parameters.");
}

/** Query parameters are texts; those that stand for numbers become numbers. */
function valuesOf(entries: readonly [string, string][], schema: z.ZodType): object {
  const shape: Readonly<Record<string, z.ZodType>> = schema instanceof z.ZodObject ? schema.shape : {};
  const isNumeric = (name: string) => {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    return field instanceof z.ZodOptional && field.unwrap() instanceof z.ZodNumber;
  };
  const values = entries.map(([name, text]) => [
    name,
    isNumeric(name) && /^\d{1,16}$/.test(text) ? Number(text) : text,
  ]);
  return Object.fromEntries(values);
}

async function bodyOf(request: Request, route: ControlRoute): Promise<Fitted> {
  const { maxBodyBytes = MAX_BODY_BYTES } = route;
  const contentType = request.headers.get("content-type");
  const bytes = await bodyBytes(request, maxBodyBytes);
  if (bytes === null) {
    return { refusal: { code: "PAYLOAD_TOO_LARGE", message: `The body is longer than ${maxBodyBytes} bytes.` } };
  }
  const isEmpty = bytes.byteLength === 0;
  // What a form of a web page can send is none of these.
  if (contentType === null ? !isEmpty : !/^application\/json *(?:;|$)/i.test(contentType)) {
    return { refusal: { code: "UNSUPPORTED_MEDIA_TYPE", message: "The content type must be application/json." } };
  }
  if (route.body === undefined) return isEmpty ? { value: undefined } : refused("This route takes no body.");
  return isEmpty ? fitted(route.body, undefined, "The body is missing") : parsed(route.body, bytes);
}

function parsed(schema: z.ZodType, bytes: Uint8Array): Fitted {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return fitted(schema, value, "The body does not fit");
  } catch (error) {
    // Too deep for what walks through it.
    return refused(error instanceof RangeError ? "The body is nested too deeply." : "The body is not JSON in UTF-8.");
  }
}

function fitted(schema: z.ZodType, value: unknown, otherwise: string): Fitted {
  const result = schema.safeParse(value);
  return result.success ? { value: result.data } : refused(`${otherwise}: ${problemOf(result.error)}.`);
}

function refused(message: string): Refused {
  return { refusal: { code: "INVALID_REQUEST", message } };
}
