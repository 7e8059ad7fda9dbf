/** `POST /api/auth/token`: a bearer token for client credentials, in OAuth's own shapes (TOK). */
import { z } from "zod";
import { isSameSecret } from "../../../internal/same-secret.ts";
import { seededHex } from "../clock.ts";
import { type EmulatorAnswer, type EmulatorRefusal, reply } from "../http/answers.ts";
import { isActive } from "../http/api.ts";
import {
  formDecoded,
  parseForm,
  type RequestBody,
  TOKEN_PATH,
  type TokenCall,
  type TokenRoute,
} from "../http/route.ts";
import type { Service } from "../service.ts";
import type { Client } from "../state/records.ts";

const LIFETIME_SECONDS = 3600;
/** Live tokens kept. While the clock stands still none expires; then the oldest one goes. */
const MOST_TOKENS = 10_000;

const tokenRequestSchema = z.looseObject({
  grant_type: z.literal("client_credentials"),
  client_id: z.string().min(1).optional().describe("Required unless HTTP Basic is used"),
  client_secret: z.string().min(1).optional().describe("Required unless HTTP Basic is used"),
});

const tokenSchema = z.looseObject({
  access_token: z.string(),
  token_type: z.literal("bearer"),
  expires_in: z.int().describe("Seconds of validity: 3600"),
});

/** Its errors go before each other so: body, credentials present, grant, credentials right (TOK-15). */
export const token: TokenRoute = {
  kind: "token",
  method: "POST",
  path: TOKEN_PATH,
  operationId: "issueToken",
  summary: "Exchange client credentials for a bearer token",
  body: tokenRequestSchema,
  success: { status: 200, description: "A bearer token", schema: tokenSchema },
  errors: [400, 401, 500],
  handle(call) {
    const request = readTokenRequest(call.headers, call.body);
    if (!request.ok) return refused(400, "invalid_request", request.problem);
    const presented = presentedCredentials(call.headers, request.fields);
    if (!presented.ok) return refused(400, "invalid_request", presented.problem);
    const refusal = grantRefusal(request.fields);
    if (refusal !== null) return refusal;
    warnOfUnknownFields(call, request.fields);
    const client = provenClient(call.service, presented.readings);
    if (client === undefined || !isActive(call.service, client)) return invalidClient(call.service);
    call.authenticated(client);
    return issued(call.service, client, call.now);
  },
};

function grantRefusal(fields: ReadonlyMap<string, string>): EmulatorRefusal | null {
  const grant = fields.get("grant_type");
  if (grant === undefined) return refused(400, "invalid_request", "grant_type is required.");
  if (grant === "client_credentials") return null;
  return refused(400, "unsupported_grant_type", "grant_type must be client_credentials.");
}

/** Never a refusal, whatever `unknownFields` says: OAuth has servers ignore parameters that they do not know (RFC 6749, 3.2). */
function warnOfUnknownFields({ warn }: TokenCall, fields: ReadonlyMap<string, string>): void {
  const count = unknownFieldCount(fields);
  if (count > 0) warn(`${count} unknown field${count === 1 ? " was" : "s were"} ignored`);
}

/** The same for a wrong secret and an inactive client or account: what is inactive is nobody's business (TOK-8 to TOK-10). */
function invalidClient({ settings }: Service): EmulatorAnswer {
  const refusal = refused(
    401,
    "invalid_client",
    "The credentials are wrong, or the client or its account is inactive.",
  );
  if (!settings.readings["token.wwwAuthenticate"]) return refusal;
  return { ...refusal, headers: { "www-authenticate": 'Basic realm="token", charset="UTF-8"' } };
}

function refused(status: number, code: string, message: string): EmulatorRefusal {
  return { kind: "refusal", status, code, message, details: {} };
}

/** Earlier tokens of the client stay valid (TOK-14). */
function issued({ settings, state }: Service, { apiClientId, clientSecret }: Client, now: number): EmulatorAnswer {
  // Oldest first is also the order of expiry: all live equally long.
  for (let oldest = state.tokens.oldest(); oldest !== undefined; oldest = state.tokens.oldest()) {
    const [id, { expiresAt }] = oldest;
    if (now < expiresAt && state.tokens.size < MOST_TOKENS) break;
    state.tokens.remove(id);
  }
  // A caller who knows the seed, which may be the default one, must not know the token.
  const accessToken = seededHex(settings.seed, `access token ${state.nextNumber("tok")} of ${clientSecret}`, 32);
  state.tokens.put(accessToken, { accessToken, apiClientId, expiresAt: now + LIFETIME_SECONDS * 1000 });
  return reply(200, { access_token: accessToken, token_type: "bearer", expires_in: LIFETIME_SECONDS });
}

// The credentials of a token request, by HTTP Basic or in its body, and the client that they prove (TOK-3, TOK-17, TOK-18, TOK-22).

interface Pair {
  readonly clientId: string;
  readonly clientSecret: string;
}

/** What was presented: the readings it has, or why it cannot be used at all. */
type Presented =
  | { readonly ok: true; readonly readings: readonly Pair[] }
  | { readonly ok: false; readonly problem: string };

const MISSING: Presented = {
  ok: false,
  problem: "client_id and client_secret are required, both in the body or by HTTP Basic.",
};

function presentedCredentials(headers: Headers, fields: ReadonlyMap<string, string>): Presented {
  const clientId = fields.get("client_id");
  const clientSecret = fields.get("client_secret");
  const basic = basicReadings(headers);
  if (basic === null) {
    if (clientId === undefined || clientSecret === undefined) return MISSING;
    return { ok: true, readings: [{ clientId, clientSecret }] };
  }
  // What cannot be decoded proves nothing, whatever the body says: 401 in the end (TOK-18).
  if (basic.length === 0) return { ok: true, readings: [] };
  if (basic.some((pair) => pair.clientId === "" || pair.clientSecret === "")) return MISSING;
  const readings = basic.filter(
    (pair) =>
      (clientId ?? pair.clientId) === pair.clientId && (clientSecret ?? pair.clientSecret) === pair.clientSecret,
  );
  if (readings.length > 0) return { ok: true, readings };
  return { ok: false, problem: "HTTP Basic and the body hold different credentials." };
}

/** As sent (curl), then form-decoded (OAuth's rule); none when it cannot be decoded, null without a Basic header. */
function basicReadings(headers: Headers): readonly Pair[] | null {
  const header = headers.get("authorization") ?? "";
  if (!/^basic(?: |$)/i.test(header)) return null;
  const text = base64Text(header.slice("basic".length).trim());
  const colon = text?.indexOf(":") ?? -1;
  if (text === null || colon === -1) return [];
  const raw = { clientId: text.slice(0, colon), clientSecret: text.slice(colon + 1) };
  const clientId = formDecoded(raw.clientId);
  const clientSecret = formDecoded(raw.clientSecret);
  return clientId === null || clientSecret === null ? [raw] : [raw, { clientId, clientSecret }];
}

function base64Text(encoded: string): string | null {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(encoded, "base64"));
  } catch {
    return null;
  }
}

/** The client of the first pair that is right. */
function provenClient({ state }: Pick<Service, "state">, readings: readonly Pair[]): Client | undefined {
  const clients = [...state.clients.values()];
  for (const { clientId, clientSecret } of readings) {
    const client = clients.find((one) => one.clientId === clientId);
    // Compared for an unknown client too, so that the time an answer takes does not tell which ids exist (TOK-22).
    const right = isSameSecret(clientSecret, client?.clientSecret ?? "");
    if (right && client !== undefined) return client;
  }
  return undefined;
}

// What a token request says, read from a form or from JSON (TOK-2).

/** Its fields by name; an empty one counts as absent, as OAuth has it. */
type TokenRequest =
  | { readonly ok: true; readonly fields: ReadonlyMap<string, string> }
  | { readonly ok: false; readonly problem: string };

function readTokenRequest(headers: Headers, body: RequestBody): TokenRequest {
  if (body.bytes === null) return { ok: false, problem: "The body is longer than 1 MiB." };
  // Parameters such as a charset change nothing: a form is ASCII, JSON is UTF-8.
  const [mediaType = ""] = (headers.get("content-type") ?? "").split(";");
  switch (mediaType.trim().toLowerCase()) {
    case "application/x-www-form-urlencoded":
      return withoutEmpty(parseForm(new TextDecoder().decode(body.bytes)));
    case "application/json":
    case "": // As on the other routes, JSON needs no content type (GEN-8).
      return fromJson(body);
    default:
      return { ok: false, problem: "The body must be a form or JSON, and its content type must say so." };
  }
}

const KNOWN_FIELDS: ReadonlySet<string> = new Set(["grant_type", "client_id", "client_secret"]);

function fromJson(body: RequestBody): TokenRequest {
  if (body.bytes?.byteLength === 0) return { ok: true, fields: new Map() };
  const parsed = body.json();
  if (!parsed.ok) return { ok: false, problem: "The body is not a JSON object in UTF-8." };
  const fields = new Map<string, string>();
  for (const [name, value] of Object.entries(parsed.value)) {
    if (!KNOWN_FIELDS.has(name)) fields.set(name, "of no interest");
    else if (typeof value === "string") fields.set(name, value);
    else return { ok: false, problem: `${name} must be a string.` };
  }
  return withoutEmpty({ ok: true, fields });
}

function withoutEmpty(request: TokenRequest): TokenRequest {
  if (!request.ok) return request;
  return { ok: true, fields: new Map([...request.fields].filter(([, value]) => value !== "")) };
}

/** How many fields the specification does not know (GEN-9). Their names are not told: a malformed form has its secret there. */
function unknownFieldCount(fields: ReadonlyMap<string, string>): number {
  return [...fields.keys()].filter((name) => !KNOWN_FIELDS.has(name)).length;
}
