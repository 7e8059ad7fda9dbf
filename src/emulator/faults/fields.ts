/** Fields of fault rules, each with the words that say what it must be, and what is said of a value that is not. */
import { z } from "zod";
import { suggestion } from "../../internal/options.ts";

export function whole(min: number, max: number) {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

export function text(max: number) {
  const error = `must be a text of 1 to ${max} characters`;
  return z.string({ error }).min(1, { error }).max(max, { error });
}

export function either<const One extends string, const Other extends string>(one: One, other: Other) {
  return z.enum([one, other], { error: `must be "${one}" or "${other}"` });
}

/** What of a value a schema of these fields refuses: `"action.ms" must be a whole number from 1 to 60000; it is missing`. */
export function misfit({ issues: [issue] }: z.ZodError, value: unknown): string {
  if (issue === undefined) return "";
  const rule = `"${issue.path.join(".")}" ${issue.message}`;
  if (issue.code === "custom") return rule;
  const wrong = issue.path.reduce<unknown>((whole, key) => (whole as Record<PropertyKey, unknown>)[key], value);
  if (typeof wrong !== "string") return `${rule}; it is ${kindOf(wrong)}`;
  if (wrong === "") return `${rule}; it is empty`;
  if (issue.code === "too_big") return `${rule}; it has ${wrong.length}`;
  return `${rule}; it is ${issue.code === "invalid_type" ? "a text" : "another text"}`;
}

/** A value in words; of texts, which can be anybody's, nothing is shown. */
function kindOf(value: unknown): string {
  if (value === undefined) return "missing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "an object";
  return typeof value === "function" ? "a function" : String(value);
}

/** What is said of the first field that is none of the known ones: `has no field "time". Did you mean "times"?` */
export function unknownField(fields: object, known: readonly string[]): string | undefined {
  const name = Object.keys(fields).find((key) => !known.includes(key));
  if (name === undefined) return undefined;
  return `has no field ${quoted(name)}${known.length === 0 ? "; it takes none." : `. ${likely(name, known)}`}`;
}

/** The suggestion for a name of any length: measuring a long one would take long. */
export function likely(name: string, known: readonly string[]): string {
  return suggestion(shortened(name), known);
}

/** A name in quotes, on one line. */
export function quoted(name: string): string {
  return JSON.stringify(shortened(name));
}

const LONGEST_NAME = 64;

function shortened(name: string): string {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
}
