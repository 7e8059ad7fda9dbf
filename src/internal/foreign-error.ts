/** What may be logged of an error thrown by foreign code: its name, code and place, never its message, which may quote anything. */
import { isAbsolute, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { OncehookError } from "../errors.ts";
import { ownFile } from "./package.ts";

const LONGEST_LABEL = 40;
/** The form of an error's name or code: `AccessDenied`, `ERR_HTTP2_ERROR`. No part of a code is as long as a secret. */
const LABEL = /^(?:[A-Z][A-Za-z]*|[A-Z][A-Z0-9]{0,14}(?:_[A-Z0-9]{1,15})*)$/;

const MOST_FRAMES = 5;
/** Whether a line is quoted takes a search of the event. */
const MOST_ASKED = 20;
const LONGEST_STACK = 20_000;
/** `    at name (file:1:2)` or `    at file:1:2`. */
const FRAME = /^\s+at (?:(?:async )?(.+) \((.+):(\d+):\d+\)|(?:async )?(.+):(\d+):\d+)$/;
const FUNCTION = /^[\p{L}\p{N}_$#.<>[\] ]{1,80}$/u;
/** Node itself, packages, and code without a file. */
const NOT_OF_THE_APPLICATION = /^(?:node:|native)|<anonymous>|[\\/]node_modules[\\/]/;

/**
 * The folder of oncehook's own code, unless it is bundled with the application: a linked package is not in `node_modules`. The second name
 * is that of the package's own bundle (scripts/bundle.mjs).
 */
const OWN_FOLDER =
  /^(.+[\\/])(?:internal[\\/]foreign-error\.[jt]s|oncehook-internal-[\w-]+\.js)$/.exec(ownFile())?.[1] ?? null;

/** The error's name and code if they look like names, to append to a message: ` (TypeError, ECONNRESET)`, or nothing. */
export function foreignLabels(thrown: unknown): string {
  const labels = (["name", "code"] as const).map((property) => propertyOf(thrown, property)).filter(isLabel);
  return labels.length === 0 ? "" : ` (${[...new Set(labels)].join(", ")})`;
}

/** Log fields of an error whose message must not be logged: `error`, its name, and `at`, the application's frames. */
export function errorPlaceOf(thrown: unknown): { readonly error?: string; readonly at?: readonly string[] } {
  // Our own messages are logged in full.
  if (thrown instanceof OncehookError) return {};
  const error = errorName(thrown);
  const at = applicationFrames(thrown);
  return { ...(error !== null && { error }), ...(at.length > 0 && { at }) };
}

/** As `foreignLabels`, followed by where it was thrown: ` (TypeError) at save (src/vault.ts:12)`. */
export function foreignPlace(thrown: unknown): string {
  const [innermost] = applicationFrames(thrown);
  return foreignLabels(thrown) + (innermost === undefined ? "" : ` at ${innermost}`);
}

/** The error's name, if it looks like one. */
export function errorName(thrown: unknown): string | null {
  const name = propertyOf(thrown, "name");
  return isLabel(name) ? name : null;
}

/**
 * The application's own frames of the error's stack, innermost first, at most 5: `charge (src/billing.ts:12)`. Files are relative
 * to the working directory if they are in it. Frames of Node.js, packages and oncehook are left out.
 *
 * @param isQuoted - whether a line of the stack comes from the error's message, which is part of its stack
 */
export function applicationFrames(thrown: unknown, isQuoted: (line: string) => boolean = () => false): string[] {
  const frames: string[] = [];
  let asked = 0;
  for (const line of stackBehindMessage(thrown).split("\n")) {
    const frame = frameOf(line);
    if (frame === null) continue;
    if (!isQuoted(line.trim())) frames.push(frame);
    if (frames.length === MOST_FRAMES || ++asked === MOST_ASKED) break;
  }
  return frames;
}

/** Reads a property without throwing: a thrown value may have getters that throw. */
export function propertyOf(thrown: unknown, property: "name" | "code" | "message" | "stack" | "cause"): unknown {
  try {
    return (thrown as Readonly<Record<string, unknown>> | null | undefined)?.[property];
  } catch {
    return undefined;
  }
}

/** Whether it has the form of an error's name or code. */
export function isLabel(value: unknown): value is string {
  return typeof value === "string" && value.length <= LONGEST_LABEL && LABEL.test(value);
}

/** The stack without the message, because a message of several lines could look like frames. */
function stackBehindMessage(thrown: unknown): string {
  const stack = propertyOf(thrown, "stack");
  if (typeof stack !== "string") return "";
  const message = propertyOf(thrown, "message");
  const at = typeof message === "string" ? stack.indexOf(message) : -1;
  const from = at < 0 ? 0 : at + (message as string).length;
  return stack.slice(from, from + LONGEST_STACK);
}

function frameOf(line: string): string | null {
  const [, name, file = "", row, bareFile = file, bareRow = row] = FRAME.exec(line) ?? [];
  if (!/[\\/]/.test(bareFile) || NOT_OF_THE_APPLICATION.test(bareFile)) return null;
  const path = pathOf(bareFile);
  if (OWN_FOLDER !== null && path.startsWith(OWN_FOLDER)) return null;
  const place = `${fromWorkingDirectory(path)}:${bareRow}`;
  return name !== undefined && FUNCTION.test(name) ? `${name} (${place})` : place;
}

function pathOf(file: string): string {
  if (!file.startsWith("file://")) return file;
  try {
    return fileURLToPath(file);
  } catch {
    return file;
  }
}

function fromWorkingDirectory(path: string): string {
  if (!isAbsolute(path)) return path;
  try {
    const inside = relative(process.cwd(), path);
    return inside.startsWith("..") || isAbsolute(inside) ? path : inside;
  } catch {
    // The working directory was removed.
    return path;
  }
}
