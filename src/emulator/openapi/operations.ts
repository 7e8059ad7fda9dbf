/** A route as an OpenAPI operation. */
import type { CoreRoute, Route } from "../http/route.ts";
import type { Json } from "./json.ts";
import { type ErrorWords, noteOf } from "./notes.ts";
import { errorResponse } from "./responses.ts";
import { refTo } from "./schemas.ts";

export const TAGS = [
  { name: "auth", description: "Tokens. Errors have the OAuth shape." },
  { name: "whoami", description: "The calling client." },
  { name: "webhooks", description: "Default webhook targets of the client; a number's own override goes before them." },
  { name: "numbers", description: "Assigned numbers, and the inventory." },
  { name: "messages", description: "Outbound SMS and MMS." },
  { name: "events", description: "What the service sends to the client's endpoints." },
];

/** Every core route can answer with these (AUT-1, GEN-2). */
const ON_EVERY_CORE_ROUTE = [401, 500];

export function operationOf(route: Route): Json {
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
