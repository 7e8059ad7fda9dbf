/** A logger that keeps its lines, so that the demo can look at what emulator, client and receiver have logged. */
import type { LogFields, Logger } from "../../internal/logger.ts";

export interface KeptLog extends Logger {
  readonly lines: readonly string[];
}

export function createLog(): KeptLog {
  const lines: string[] = [];
  const keep = (level: string) => (fields: LogFields, message: string) => {
    lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  };
  return { lines, debug: keep("debug"), info: keep("info"), warn: keep("warn"), error: keep("error") };
}
