/** A control call's query parameters and body, as its route's schemas say; or why they are refused. */
import { z } from "zod";
import { bytesOf, MAX_BODY_BYTES } from "../http/body.ts";
import type { ControlRoute } from "./control-route.ts";
import { problemOf } from "./inputs.ts";
import type { ControlRefusal } from "./refusal.ts";

export interface Input {
  readonly query: unknown;
  readonly body: unknown;
}

interface Refused {
  readonly refusal: ControlRefusal;
}

export async function inputOf(request: Request, route: ControlRoute): Promise<Input | Refused> {
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
  const bytes = await bytesOf(request, maxBodyBytes);
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
