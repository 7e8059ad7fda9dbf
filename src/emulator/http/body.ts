/** Reads a request's body within the limit (GEN-10), and a JSON body into what a schema takes. */
import { z } from "zod";
import { isRecord } from "../../internal/options.ts";
import { type EmulatorAnswer, refuse } from "./answers.ts";

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
