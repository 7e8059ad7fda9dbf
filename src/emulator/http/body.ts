/** Reads a request's body within the limit (GEN-10), and a JSON body into what a schema takes. */
import { z } from "zod";
import { type Answer, refuse } from "./answers.ts";

/** 1 MiB. */
export const MAX_BODY_BYTES = 1_048_576;

/** The bytes of a body; null when there are more than the limit. */
export async function readBody(request: Request): Promise<Uint8Array | null> {
  if (request.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body) {
    length += chunk.byteLength;
    if (length > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, length);
}

export type Parsed = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly refusal: Answer };

/** A JSON object, or a refusal (GEN-8). A missing content type does not matter. */
export function parseJsonObject(bytes: Uint8Array): Parsed {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ok: true, value };
    return { ok: false, refusal: refuse("INVALID_REQUEST", "The body must be a JSON object.") };
  } catch {
    return { ok: false, refusal: refuse("INVALID_REQUEST", "The body is not valid JSON in UTF-8.") };
  }
}

/** Where a body does not fit its schema; field names and types, none of its values. */
export function schemaRefusal(error: z.ZodError): Answer {
  const issues = error.issues.slice(0, 20).map((issue) => ({ path: issue.path.join("."), problem: issue.message }));
  const [first] = issues;
  const where = first === undefined || first.path === "" ? "The body" : `"${first.path}"`;
  return refuse("INVALID_REQUEST", `${where} does not fit: ${first?.problem ?? "unknown"}.`, { issues });
}

/** Names of fields that a schema does not know, with their path: `media.0.width` (GEN-9). */
export function unknownFields(schema: z.ZodType, value: unknown, path = ""): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    return unknownFields(schema.unwrap() as z.ZodType, value, path);
  }
  if (schema instanceof z.ZodArray && Array.isArray(value)) {
    return value.flatMap((item, i) => unknownFields(schema.element as z.ZodType, item, `${path}${i}.`));
  }
  if (!(schema instanceof z.ZodObject) || typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const known = Object.hasOwn(schema.shape, name) ? schema.shape[name] : undefined;
    return known === undefined ? [`${path}${name}`] : unknownFields(known as z.ZodType, field, `${path}${name}.`);
  });
}
