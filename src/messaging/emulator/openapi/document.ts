/** `openApiDocument()`: the API in OpenAPI 3.1, made from the route table and the event schemas, so that it cannot say anything else. */
import { z } from "zod";
import { KNOWN_EVENT_TYPES } from "../../../sources/messaging/parse.ts";
import type { KnownEventType } from "../../../sources/messaging/types.ts";
import { CORE_ERRORS } from "../http/answers.ts";
import { type CoreRoute, coreErrorSchema, numberSchema, oauthErrorSchema, type Route } from "../http/route.ts";
import { ROUTES } from "../routes/table.ts";
import { documentedEvents, type ErrorWords, eventExamples, type Json, noteOf } from "./notes.ts";

const DESCRIPTION = [
  "OAuth token, client identity, webhook defaults, numbers, outbound messages, and the webhooks that the service sends.",
  "Acceptance of a message is synchronous and means queued only; what becomes of it comes by webhook.",
  "`x-unspecified: true` marks what the service's specification does not show: there the document says what the emulator does.",
].join("\n\n");

/** Where the command listens if nothing else is said. */
const USUAL_URL = "http://127.0.0.1:4010";

/** The API and its webhooks, version 0.2.0 (GEN-5), at a base address. Serialises to JSON as it is. */
export function openApiDocument(baseUrl: string = USUAL_URL): Json {
  return marked({
    openapi: "3.1.1",
    info: {
      title: "Messaging Service",
      version: "0.2.0",
      description: DESCRIPTION,
      // Of this description, which is a part of the package; the service's own terms are not shown.
      license: { name: "MIT (this description, a part of oncehook)", identifier: "MIT" },
    },
    servers: [{ url: baseUrl, description: "The emulator" }],
    tags: TAGS,
    security: [{ clientCredentials: [] }, { bearer: [] }],
    paths: pathsOf(ROUTES),
    webhooks: webhookSection(),
    components: {
      securitySchemes: securitySchemes(baseUrl),
      responses: sharedResponses(),
      schemas: componentSchemas(),
    },
  });
}

function securitySchemes(baseUrl: string): Json {
  return {
    clientCredentials: {
      type: "oauth2",
      description: "A token is valid for 3600 seconds, while its client and the parent account are active.",
      flows: { clientCredentials: { tokenUrl: `${baseUrl}/api/auth/token`, scopes: {} } },
    },
    bearer: { type: "http", scheme: "bearer", description: "The same token, for tools without the OAuth flow." },
    basic: { type: "http", scheme: "basic", description: "client_id and client_secret, on the token route only." },
  };
}

/** Puts `x-unspecified` wherever a description says that something is unspecified. */
function marked<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(marked) as Value;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, part]) => [name, marked(part)]);
  const { description } = value as { description?: unknown };
  if (typeof description === "string" && description.includes("Unspecified:")) entries.push(["x-unspecified", true]);
  return Object.fromEntries(entries);
}

/** Methods of one path stand together. */
function pathsOf(routes: readonly Route[]): Json {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const methods = paths[route.path] ?? {};
    methods[route.method.toLowerCase()] = operationOf(route);
    paths[route.path] = methods;
  }
  return paths;
}

// A route as an OpenAPI operation.

const TAGS = [
  { name: "auth", description: "Tokens. Errors have the OAuth shape." },
  { name: "whoami", description: "The calling client." },
  { name: "webhooks", description: "Default webhook targets of the client; a number's own override goes before them." },
  { name: "numbers", description: "Assigned numbers, and the inventory." },
  { name: "messages", description: "Outbound SMS and MMS." },
  { name: "events", description: "What the service sends to the client's endpoints." },
];

/** Every core route can answer with these (AUT-1, GEN-2). */
const ON_EVERY_CORE_ROUTE = [401, 500];

function operationOf(route: Route): Json {
  const note = noteOf(route);
  const parameters = [...pathParameters(route), ...(route.kind === "core" ? headerParameters(route) : [])];
  return {
    operationId: route.operationId,
    tags: [tagOf(route.path)],
    summary: route.summary,
    ...(note.text === undefined ? {} : { description: note.text.join("\n\n") }),
    // Client credentials go into the header or the body (TOK-3).
    ...(route.kind === "token" ? { security: [{ basic: [] }, {}] } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(route.body === undefined ? {} : { requestBody: requestBodyOf(route) }),
    responses: responsesOf(route),
  };
}

/** `/api/core/numbers/{numberId}` is about numbers. */
function tagOf(path: string): string {
  return path.startsWith("/api/core/") ? (path.split("/")[3] ?? "") : "auth";
}

function pathParameters(route: Route): Json[] {
  return [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    description: noteOf(route).parameters?.[name] ?? name,
    schema: { type: "string" },
  }));
}

function headerParameters({ requiredHeaders = [] }: CoreRoute): Json[] {
  return requiredHeaders.map(({ name, description }) => ({
    name,
    in: "header",
    required: true,
    description,
    schema: { type: "string", minLength: 1 },
  }));
}

/** The token route takes a form as well, and recommends it (TOK-2). */
function requestBodyOf(route: Route): Json {
  const { body } = route;
  if (body === undefined) return {};
  const { requestExamples: examples } = noteOf(route);
  const json = { schema: refTo(body), ...(examples === undefined ? {} : { examples }) };
  const content = { "application/json": json };
  if (route.kind === "core") return { required: true, content };
  return { required: true, content: { "application/x-www-form-urlencoded": json, ...content } };
}

function responsesOf(route: Route): Json {
  const { success, errors } = route;
  const { responseExample, errorWords } = noteOf(route);
  const example = responseExample === undefined ? {} : { example: responseExample };
  const common = route.kind === "core" ? ON_EVERY_CORE_ROUTE : [];
  const words = { ...lacksCapability(route), ...errorWords };
  const statuses = [...new Set([...errors, ...common, ...Object.keys(words).map(Number)])].sort((a, b) => a - b);
  return {
    [success.status]: {
      description: success.description,
      content: { "application/json": { schema: refTo(success.schema), ...example } },
    },
    ...Object.fromEntries(statuses.map((status) => [status, errorResponse(route.kind, status, words[status])])),
  };
}

/** Where nothing but a missing capability gives 403 (AUT-10). */
function lacksCapability(route: Route): Readonly<Record<number, ErrorWords>> {
  if (route.kind !== "core" || route.capability === undefined || route.errors.includes(403)) return {};
  const message = `This client lacks the capability ${route.capability}.`;
  return { 403: { description: "Unspecified: whether capabilities restrict routes; here only by option.", message } };
}

// The error answers of both contracts: the core error wrapper (GEN-2) and OAuth's shape on the token route (GEN-3).

interface ErrorAnswer {
  readonly code: string;
  readonly message: string;
  readonly description: string;
  readonly details?: Json;
}

/** By status; the names of the components are those of the codes. */
const CORE: Readonly<Record<number, ErrorAnswer>> = {
  [CORE_ERRORS.INVALID_REQUEST]: {
    code: "INVALID_REQUEST",
    message: "The body must be a JSON object.",
    description: "The request breaks a rule of its route; nothing was done. Do not repeat it unchanged.",
  },
  [CORE_ERRORS.UNAUTHORIZED]: {
    code: "UNAUTHORIZED",
    message: "A valid bearer token is required.",
    description:
      "The bearer token is missing, malformed, unknown or expired, or its client or the parent account is inactive. " +
      "Get a new token and repeat the call once.",
  },
  [CORE_ERRORS.FORBIDDEN]: {
    code: "FORBIDDEN",
    message: "The number belongs to another client.",
    description: "The number belongs to another client.",
  },
  [CORE_ERRORS.NOT_FOUND]: {
    code: "NOT_FOUND",
    message: "There is no such number.",
    description: "There is no such number.",
  },
  [CORE_ERRORS.CONFLICT]: {
    code: "CONFLICT",
    message: "The idempotency key was used with another payload.",
    description: "The idempotency key was used with another payload. A changed payload needs a new key.",
  },
  [CORE_ERRORS.SERVER_ERROR]: {
    code: "SERVER_ERROR",
    message: "The service failed.",
    description: "An unexpected failure. It may be temporary.",
  },
  [CORE_ERRORS.UPSTREAM_ERROR]: {
    code: "UPSTREAM_ERROR",
    message: "The inventory search failed.",
    description: "The upstream inventory search failed; `details.providerStatus` has its status. It may be temporary.",
    details: { providerStatus: 503 },
  },
};

const OAUTH: Readonly<Record<number, ErrorAnswer>> = {
  400: {
    code: "invalid_request",
    message: "Client credentials are missing.",
    description:
      "`invalid_request`: credentials are missing. `unsupported_grant_type`: another grant than client_credentials.",
  },
  401: {
    code: "invalid_client",
    message: "The client is unknown, inactive, or its secret is wrong.",
    description:
      "`invalid_client`: wrong credentials, or the client or its parent account is inactive. Do not repeat it.",
  },
  500: {
    code: "server_error",
    message: "No token could be issued.",
    description: "`server_error`: no token could be issued. Repeat it after a while.",
  },
};

/** All of them, for `components.responses`. */
function sharedResponses(): Json {
  const core = Object.values(CORE).map((answer) => [componentName(answer), coreResponse(answer)]);
  const oauth = Object.values(OAUTH).map((answer) => [componentName(answer), oauthResponse(answer)]);
  return Object.fromEntries([...core, ...oauth]);
}

/** The answer with a status on a route of that contract; the words of the route if it has some, otherwise the shared ones. */
function errorResponse(contract: "core" | "token", status: number, words?: ErrorWords): Json {
  const answer = (contract === "core" ? CORE : OAUTH)[status];
  if (answer === undefined) throw new Error(`no ${contract} error has the status ${status}`);
  if (words === undefined) return { $ref: `#/components/responses/${componentName(answer)}` };
  const own = { ...answer, ...words };
  return contract === "core" ? coreResponse(own) : oauthResponse(own);
}

/** `NOT_FOUND` gives `NotFound`, `invalid_client` gives `OAuthInvalidClient`. */
function componentName({ code }: ErrorAnswer): string {
  const words = code.split("_").map((word) => word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase());
  return (code === code.toLowerCase() ? "OAuth" : "") + words.join("");
}

function coreResponse({ code, message, description, details = {} }: ErrorAnswer): Json {
  const schema = refTo(code === "UPSTREAM_ERROR" ? upstreamErrorSchema : coreErrorSchema);
  const example = { error: { code, message, details }, requestId: "req_a8244c_000001" };
  return { description, content: { "application/json": { schema, example } } };
}

function oauthResponse({ code, message, description }: ErrorAnswer): Json {
  const example = { error: code, error_description: message };
  return { description, content: { "application/json": { schema: refTo(oauthErrorSchema), example } } };
}

// The document's section of what the service sends: five events, and the two headers of a signed one (DLV-4).

const WHEN: Readonly<Record<KnownEventType, string>> = {
  "message.queued": "A message was queued after a send request",
  "message.sent": "A message has been sent",
  "message.delivery": "A message was delivered",
  "message.failed": "A send failed; ends the message's events",
  "message.inbound": "A customer's message arrived",
};

const ABOUT_OUTBOUND =
  "Goes to the number's delivery override, otherwise to the client's default delivery target when that is enabled.";
const ABOUT_INBOUND =
  "Goes to the number's inbound override, otherwise to the client's default inbound target when that is enabled. " +
  "It has neither a sequence nor a top-level messageId.";
const ABOUT_ALL =
  "A failed attempt is repeated after 1, 5, 15 and 60 minutes, so an event can come more than once.\n\n" +
  "Unspecified: method and content type of the request, and which answers besides non-2xx count as failed.";

/** Both or neither: they are there when signing is enabled for the target. */
const SIGNATURE_HEADERS = [
  {
    name: "X-Service-Timestamp",
    in: "header",
    required: false,
    description:
      "Part of what is signed, as the text it is. Unspecified: its unit (epoch milliseconds here) and the accepted skew.",
    schema: { type: "string" },
    example: "1767225600000",
  },
  {
    name: "X-Service-Signature",
    in: "header",
    required: false,
    description:
      "HMAC-SHA256, keyed with the webhook signing secret, over `<X-Service-Timestamp>.<raw body>`. " +
      "Unspecified: its encoding (lower-case hexadecimal here).",
    schema: { type: "string" },
  },
];

function webhookSection(): Json {
  return Object.fromEntries(KNOWN_EVENT_TYPES.map((eventType) => [eventType, { post: webhookOf(eventType) }]));
}

function webhookOf(eventType: KnownEventType): Json {
  const about = eventType === "message.inbound" ? ABOUT_INBOUND : ABOUT_OUTBOUND;
  return {
    operationId: `on${capitalised(eventType)}`,
    tags: ["events"],
    summary: WHEN[eventType],
    description: `${about}\n\n${ABOUT_ALL}`,
    // The signature stands in for credentials.
    security: [],
    parameters: SIGNATURE_HEADERS,
    requestBody: {
      required: true,
      content: {
        "application/json": { schema: refTo(documentedEvents[eventType]), example: eventExamples[eventType] },
      },
    },
    responses: {
      "2XX": { description: "The receiver has durably accepted the event." },
      "4XX": { description: "Not accepted, such as for a bad signature; the attempt counts as failed." },
      "5XX": { description: "Not accepted; the attempt counts as failed." },
    },
  };
}

// The zod schemas of routes and events as the document's components; one that several share is there once.

const PLACE = "#/components/schemas/";

/** The wrapper as it is for a failed search. */
const upstreamErrorSchema = coreErrorSchema.extend({
  error: coreErrorSchema.shape.error.extend({ details: z.looseObject({ providerStatus: z.int() }) }),
});

/** Names for schemas that several routes share; every other schema is called after its route: `SendMessageRequest`. */
const SHARED: readonly (readonly [z.ZodType, string])[] = [
  [numberSchema, "Number"],
  [coreErrorSchema, "CoreError"],
  [upstreamErrorSchema, "UpstreamError"],
  [oauthErrorSchema, "OAuthError"],
];

/** Routes that say and take the same. */
const FAMILIES: Readonly<Record<string, string>> = {
  updateInboundWebhook: "UpdateWebhook",
  updateDeliveryWebhook: "UpdateWebhook",
};

const names = new Map<z.ZodType, string>(SHARED);
for (const [eventType, schema] of Object.entries(documentedEvents)) names.set(schema, `${capitalised(eventType)}Event`);
for (const route of ROUTES) {
  const family = FAMILIES[route.operationId] ?? capitalised(route.operationId);
  if (route.body !== undefined) name(route.body, `${family}Request`);
  name(route.success.schema, `${family}Response`);
}

function name(schema: z.ZodType, own: string): void {
  if (!names.has(schema)) names.set(schema, own);
}

/** `message.queued` and `messageQueued` give `MessageQueued`. */
function capitalised(text: string): string {
  return text.replace(/(?:^|[._-])([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** A reference to the component of a schema. */
function refTo(schema: z.ZodType): Json {
  const component = names.get(schema);
  if (component === undefined) throw new Error("a schema without a name cannot be referred to");
  return { $ref: PLACE + component };
}

function componentSchemas(): Json {
  const registry = z.registry<{ id: string }>();
  for (const [schema, id] of names) registry.add(schema, { id });
  const options = { uri: (id: string) => PLACE + id, io: "input", override: refine } as const;
  const { schemas } = z.toJSONSchema(registry, options);
  const components = Object.entries(schemas).map(([id, { $schema: _, $id: __, ...schema }]) => [id, schema]);
  return { ...Object.fromEntries(components), ...withRules(Object.fromEntries(components)) };
}

/** zod loses refinements without a word, so rules across fields are in the notes of their route. */
function withRules(components: Readonly<Record<string, Json>>): Json {
  const rules = ROUTES.flatMap((route) => {
    const own = route.body === undefined ? undefined : names.get(route.body);
    const rule = noteOf(route).bodyRules;
    return own === undefined || rule === undefined ? [] : [[own, { ...components[own], ...rule }]];
  });
  return Object.fromEntries(rules);
}

interface Overridden {
  readonly jsonSchema: Record<string, unknown>;
}

function refine({ jsonSchema }: Overridden): void {
  const { minimum, maximum, additionalProperties } = jsonSchema;
  if (isEmpty(additionalProperties)) jsonSchema.additionalProperties = true;
  // The range of safe integers is JavaScript's; other languages want to know that 32 bits are not enough.
  if (minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.type === "integer") jsonSchema.format = "int64";
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
