/** `openApiDocument()`: the API in OpenAPI 3.1, made from the route table and the event schemas, so that it cannot say anything else. */
import type { Route } from "../http/route.ts";
import { ROUTES } from "../routes/table.ts";
import type { Json } from "./json.ts";
import { operationOf, TAGS } from "./operations.ts";
import { sharedResponses } from "./responses.ts";
import { componentSchemas } from "./schemas.ts";
import { webhookSection } from "./webhooks.ts";

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
