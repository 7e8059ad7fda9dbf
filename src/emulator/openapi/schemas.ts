/** The zod schemas of routes and events as the document's components; one that several share is there once. */
import { z } from "zod";
import { coreErrorSchema, numberSchema, oauthErrorSchema } from "../routes/schemas.ts";
import { ROUTES } from "../routes/table.ts";
import { documentedEvents } from "./event-schemas.ts";
import type { Json } from "./json.ts";
import { noteOf } from "./notes.ts";

const PLACE = "#/components/schemas/";

/** The wrapper as it is for a failed search. */
export const upstreamErrorSchema = coreErrorSchema.extend({
  error: coreErrorSchema.shape.error.extend({ details: z.looseObject({ providerStatus: z.int() }) }),
});

/** Names for what is no route's own; every other schema is called after its route: `SendMessageRequest`. */
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
export function capitalised(text: string): string {
  return text.replace(/(?:^|[._-])([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** A reference to the component of a schema. */
export function refTo(schema: z.ZodType): Json {
  const component = names.get(schema);
  if (component === undefined) throw new Error("a schema without a name cannot be referred to");
  return { $ref: PLACE + component };
}

export function componentSchemas(): Json {
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
