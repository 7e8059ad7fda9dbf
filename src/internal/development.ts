/** What differs while somebody develops: whether that is so, and log lines for people instead of machines. */
import { styleText } from "node:util";
import { systemClock } from "./clock.ts";

type Colour = Parameters<typeof styleText>[0];

const COLOURS: Readonly<Record<string, Colour>> = { warn: "yellow", error: "red" };

/** They would move the cursor or turn the direction of a line. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * `NODE_ENV` is `development`, or it is not set and standard error is a terminal. Not in a test, whatever its runner: vitest and Jest set
 * `NODE_ENV` to `test`, and `node --test` says so in a variable of its own.
 */
export function isDevelopment(): boolean {
  const { NODE_ENV, NODE_TEST_CONTEXT } = process.env;
  if (NODE_ENV === "development") return true;
  return !NODE_ENV && NODE_TEST_CONTEXT === undefined && process.stderr.isTTY === true;
}

/**
 * `12:30:05 oncehook message.delivery msg_1 #3 Event handled in 4 ms. event=17`, and an error with its frames below. Coloured on a
 * terminal, unless `NO_COLOR` is set.
 */
export function readableLine(level: string, fields: Readonly<Record<string, unknown>>, message: string): string {
  const { eventType, messageId, sequence, eventId, error, causes, at, more, ...rest } = fields;
  const colour = COLOURS[level];
  const numbered = typeof sequence === "number" && sequence > 0 ? `#${sequence}` : undefined;
  const details = Object.entries({ ...rest, ...(eventId !== undefined && { event: eventId }) });
  const head = [
    styled("dim", `${new Date(systemClock.now()).toTimeString().slice(0, 8)} oncehook`),
    ...(colour === undefined ? [] : [styled(colour, level.toUpperCase())]),
    ...[eventType, messageId, numbered].flatMap((part) => (part === undefined ? [] : [visible(part)])),
    visible(message),
    ...details.map(([name, value]) => styled("dim", `${name}=${visible(value)}`)),
  ];
  const below = [
    ...(error === undefined ? [] : [`  ${visible(error)}`]),
    ...listed(causes).map((cause) => `  caused by ${visible(cause)}`),
    ...listed(at).map((frame) => `    at ${visible(frame)}`),
    ...(more === undefined ? [] : [styled("dim", `  more: ${visible(more)}`)]),
  ];
  return `${[head.join(" "), ...below].join("\n")}\n`;
}

function listed(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function visible(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "undefined");
  return text.replace(INVISIBLE, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`);
}

function styled(style: Colour, text: string): string {
  // Node.js would look at standard output.
  return process.stderr.isTTY && !process.env.NO_COLOR ? styleText(style, text, { validateStream: false }) : text;
}
