/** What oncehook asks of a logger; pino and Fastify's `log` fit as they are. */
import { isDevelopment, readableLine } from "./development.ts";
import { placeOf } from "./foreign-error.ts";
import { invalidOption } from "./options.ts";

/** Ids, types, sizes and reason codes; never a secret, signature, phone number or body text. */
export type LogFields = Readonly<Record<string, unknown>>;

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

/** As `stderrLogger`, with lines at level info too. */
export const stderrInfoLogger: Logger = stderrLoggerWith({}, (fields, message) => write("info", fields, message));

/** The option `logger`, guarded, so that it never throws. */
export function loggerOption(value: Logger | undefined, unless: Logger = stderrLogger): Logger {
  if (value === undefined) return guardedLogger(unless);
  const complete = (["debug", "info", "warn", "error"] as const).every((level) => typeof value?.[level] === "function");
  if (complete) return guardedLogger(value);
  throw invalidOption("logger", "must have debug, info, warn and error methods", value);
}

/**
 * The logger, with its exceptions and rejections caught: a log that is full must not turn a stored event into a failed one. Standard
 * error says so once.
 */
export function guardedLogger(logger: Logger): Logger {
  return guardedWith(logger, tellOnce());
}

function guardedWith(logger: Logger, failed: (error: unknown) => void): Logger {
  const guarded = (level: "debug" | "info" | "warn" | "error") => (fields: LogFields, message: string) => {
    try {
      // A logger may be async though its type says nothing of it.
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

/** Without the error's message, which may hold what was to be logged. */
function tellOnce(): (error: unknown) => void {
  let isTold = false;
  return (error) => {
    if (isTold) return;
    isTold = true;
    try {
      write("error", placeOf(error), "The logger given to oncehook threw: the line is lost, and others may be.");
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

/** JSON leaves these as they are, though some terminals obey them. */
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
