/** Receivers and signed requests for the adapter tests. */
import type { RequestListener } from "node:http";
import { onTestFinished } from "vitest";
import { createReceiver, type Receiver, type ReceiverOptions } from "../../src/index.ts";
import type { LogFields, Logger } from "../../src/internal/logger.ts";
import { signPayload } from "../../src/sources/messaging/sign.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { eventBody } from "../contracts/adapter-bench.ts";
import { serve } from "./serving.ts";

export const SECRET = "whsec_adapter_tests_0123456789";

export interface LogLine {
  readonly level: keyof Omit<Logger, "child">;
  readonly fields: LogFields;
  readonly message: string;
}

/** A logger that keeps its lines. */
export function recordingLogger(): { logger: Logger; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const keep = (level: LogLine["level"]) => (fields: LogFields, message: string) =>
    void lines.push({ level, fields, message });
  return { lines, logger: { debug: keep("debug"), info: keep("info"), warn: keep("warn"), error: keep("error") } };
}

/** A receiver in memory whose handled event types are in `handled`. */
export function memoryReceiver(options: Partial<ReceiverOptions<never>> = {}): {
  receiver: Receiver<never>;
  handled: string[];
  lines: LogLine[];
} {
  const handled: string[] = [];
  const { logger, lines } = recordingLogger();
  const receiver = createReceiver({ secrets: SECRET, store: memoryStore({ volatile: true }), logger, ...options });
  receiver.onAny((event) => void handled.push(event.eventType));
  return { receiver, handled, lines };
}

/** A signed event, ready for `fetch`, supertest or Fastify's `inject`. */
export function signedEvent(text = "hello"): { body: Buffer; headers: Record<string, string> } {
  const body = eventBody(text);
  return { body, headers: { ...signPayload({ body, secret: SECRET }), "content-type": "application/json" } };
}

/** The answer of a server with this listener to a signed event. */
export async function answerOf(listener: RequestListener): Promise<Response> {
  const { port, close } = await serve(listener);
  onTestFinished(close);
  return fetch(`http://127.0.0.1:${port}/`, { method: "POST", ...signedEvent() });
}
