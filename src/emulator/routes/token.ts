/** `POST /api/auth/token`: a bearer token for client credentials, in OAuth's own shapes (TOK). */
import { z } from "zod";
import { type Answer, type Refusal, reply } from "../http/answers.ts";
import { isActive } from "../http/bearer.ts";
import { TOKEN_PATH, type TokenCall, type TokenRoute } from "../http/route.ts";
import { seededHex } from "../random.ts";
import type { Service } from "../service.ts";
import type { Client } from "../state/records.ts";
import { presentedCredentials, provenClient } from "./client-credentials.ts";
import { readTokenRequest, unknownFieldCount } from "./token-request.ts";

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

function grantRefusal(fields: ReadonlyMap<string, string>): Refusal | null {
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
function invalidClient({ settings }: Service): Answer {
  const refusal = refused(
    401,
    "invalid_client",
    "The credentials are wrong, or the client or its account is inactive.",
  );
  if (!settings.readings["token.wwwAuthenticate"]) return refusal;
  return { ...refusal, headers: { "www-authenticate": 'Basic realm="token", charset="UTF-8"' } };
}

function refused(status: number, code: string, message: string): Refusal {
  return { kind: "refusal", status, code, message, details: {} };
}

/** Earlier tokens of the client stay valid (TOK-14). */
function issued({ settings, state }: Service, { apiClientId, clientSecret }: Client, now: number): Answer {
  // Oldest first is also the order of expiry: all live equally long.
  for (let oldest = state.tokens.oldest(); oldest !== undefined; oldest = state.tokens.oldest()) {
    const [id, { expiresAt }] = oldest;
    if (now < expiresAt && state.tokens.size < MOST_TOKENS) break;
    state.tokens.remove(id);
  }
  // Whoever knows the seed, which may be the default one, must not know the token.
  const accessToken = seededHex(settings.seed, `access token ${state.nextNumber("tok")} of ${clientSecret}`, 32);
  state.tokens.put(accessToken, { accessToken, apiClientId, expiresAt: now + LIFETIME_SECONDS * 1000 });
  return reply(200, { access_token: accessToken, token_type: "bearer", expires_in: LIFETIME_SECONDS });
}
