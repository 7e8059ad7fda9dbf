/** What oncehook asks of a logger; pino and Fastify's `log` fit as they are. */

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

/** Writes warnings and errors to standard error, one JSON object per line: the default, so that no warning is lost. */
export const stderrLogger: Logger = {
  debug: nothing,
  info: nothing,
  warn: (fields, message) => write("warn", fields, message),
  error: (fields, message) => write("error", fields, message),
};

function write(level: string, fields: LogFields, message: string): void {
  process.stderr.write(`${JSON.stringify({ level, name: "oncehook", message, ...fields })}\n`);
}
