/** The logger interface and the default logger (standard error), a rate limit for repeated lines, and the masking of phone numbers. */
import { styleText } from "node:util";
import { type Clock, systemClock } from "./clock.ts";
import { errorPlaceOf } from "./foreign-error.ts";
import { invalidOption } from "./options.ts";
import { isDevelopment } from "./process.ts";

/** Ids, types, sizes and reason codes; never a secret, signature, phone number or body text. */
export type LogFields = Readonly<Record<string, unknown>>;

/** What oncehook needs of a logger; pino and Fastify's `log` fit as they are. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** Optional: a logger that adds `fields` to each line. */
  child?(fields: LogFields): Logger;
}

const nothing = () => {};

/** A logger that drops everything. */
export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/**
 * Writes warnings and errors to standard error: the default, so that no warning is lost. One JSON object per line, or lines to read
 * in development.
 */
export const stderrLogger: Logger = stderrLoggerWith({}, nothing);

/** As `stderrLogger`, but also writes lines at level info. */
export const stderrInfoLogger: Logger = stderrLoggerWith({}, (fields, message) => write("info", fields, message));

/** Checks the option `logger` and wraps it so that it never throws. */
export function loggerOption(value: Logger | undefined, fallback: Logger = stderrLogger): Logger {
  if (value === undefined) return guardedLogger(fallback);
  const complete = (["debug", "info", "warn", "error"] as const).every((level) => typeof value?.[level] === "function");
  if (complete) return guardedLogger(value);
  throw invalidOption("logger", "must have debug, info, warn and error methods", value);
}

/**
 * Catches the logger's exceptions and rejections: a full log must not turn a stored event into a failed one. Standard
 * error reports it once.
 */
export function guardedLogger(logger: Logger): Logger {
  return guardedWith(logger, reportOnce());
}

function guardedWith(logger: Logger, failed: (error: unknown) => void): Logger {
  const guarded = (level: "debug" | "info" | "warn" | "error") => (fields: LogFields, message: string) => {
    try {
      // A logger may be async although its type says otherwise.
      const result: unknown = logger[level](fields, message);
      if (result instanceof Promise) result.catch(failed);
    } catch (error) {
      failed(error);
    }
  };
  return {
    debug: guarded("debug"),
    info: guarded("info"),
    warn: guarded("warn"),
    error: guarded("error"),
    child(fields) {
      try {
        return guardedWith(logger.child?.(fields) ?? withFields(logger, fields), failed);
      } catch (error) {
        failed(error);
        return this;
      }
    },
  };
}

/** Leaves out the error's message, which may quote the log line. */
function reportOnce(): (error: unknown) => void {
  let isReported = false;
  return (error) => {
    if (isReported) return;
    isReported = true;
    try {
      write("error", errorPlaceOf(error), "The logger given to oncehook threw: the line is lost, and others may be.");
    } catch {
      // Standard error is closed too.
    }
  };
}

function withFields(logger: Logger, bound: LogFields): Logger {
  return {
    debug: (fields, message) => logger.debug({ ...bound, ...fields }, message),
    info: (fields, message) => logger.info({ ...bound, ...fields }, message),
    warn: (fields, message) => logger.warn({ ...bound, ...fields }, message),
    error: (fields, message) => logger.error({ ...bound, ...fields }, message),
  };
}

function stderrLoggerWith(bound: LogFields, info: Logger["info"]): Logger {
  return {
    debug: nothing,
    info: (fields, message) => info({ ...bound, ...fields }, message),
    warn: (fields, message) => write("warn", { ...bound, ...fields }, message),
    error: (fields, message) => write("error", { ...bound, ...fields }, message),
    child: (fields) => stderrLoggerWith({ ...bound, ...fields }, info),
  };
}

/** JSON does not escape these, and some terminals obey them. */
const CONTROLS = /[\u007f-\u009f\u2028\u2029]/g;

function write(level: string, fields: LogFields, message: string): void {
  if (isDevelopment()) {
    process.stderr.write(readableLine(level, fields, message));
    return;
  }
  const line = JSON.stringify({ level, name: "oncehook", message, ...fields });
  process.stderr.write(
    `${line.replace(CONTROLS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)}\n`,
  );
}

const LINES_PER_SECOND = 10;

/** Logs at most ten lines a second and reports how many it dropped: a flood of bad requests must not become a flood of logs. */
export class SampledLog {
  readonly #logger: Logger;
  readonly #clock: Clock;
  #windowStart = Number.NEGATIVE_INFINITY;
  #lines = 0;
  #leftOut = 0;

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  warn(fields: LogFields, message: string): void {
    this.#write("warn", fields, message);
  }

  error(fields: LogFields, message: string): void {
    this.#write("error", fields, message);
  }

  #write(level: "warn" | "error", fields: LogFields, message: string): void {
    const now = this.#clock.monotonic();
    if (now - this.#windowStart >= 1000) {
      this.#windowStart = now;
      this.#lines = 0;
    }
    if (this.#lines >= LINES_PER_SECOND) {
      this.#leftOut += 1;
      return;
    }
    this.#lines += 1;
    this.#logger[level](this.#leftOut > 0 ? { ...fields, leftOut: this.#leftOut } : fields, message);
    this.#leftOut = 0;
  }
}

type Colour = Parameters<typeof styleText>[0];

const COLOURS: Readonly<Record<string, Colour>> = { warn: "yellow", error: "red" };

/** Characters that would move the cursor or change the direction of a line. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * A log line for people, during development: `12:30:05 oncehook message.delivery msg_1 #3 Event handled in 4 ms. event=17`, with an
 * error and its frames below. Coloured on a terminal, unless `NO_COLOR` is set.
 */
export function readableLine(level: string, fields: Readonly<Record<string, unknown>>, message: string): string {
  const { eventType, lane, id, sequence, eventId, error, causes, at, more, ...rest } = fields;
  const colour = COLOURS[level];
  const numbered = typeof sequence === "number" && sequence > 0 ? `#${sequence}` : undefined;
  const details = Object.entries({ ...rest, ...(eventId !== undefined && { event: eventId }) });
  const head = [
    styled("dim", `${new Date(systemClock.now()).toTimeString().slice(0, 8)} oncehook`),
    ...(colour === undefined ? [] : [styled(colour, level.toUpperCase())]),
    ...[eventType, lane, numbered, id].flatMap((part) => (part === undefined ? [] : [visible(part)])),
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
  // Without this, Node.js checks standard output instead.
  return process.stderr.isTTY && !process.env.NO_COLOR ? styleText(style, text, { validateStream: false }) : text;
}

/** Seven or more digits, also with spaces, dots, dashes or brackets between them. */
export const PHONE_NUMBER = /\+?\d(?:[\s().-]{0,3}\d){6,}/g;

/** Masks phone numbers in a text for people or logs: each keeps its last two digits. */
export function maskNumbers(message: string): string {
  return message.replace(PHONE_NUMBER, (number) => `…${number.slice(-2)}`);
}
