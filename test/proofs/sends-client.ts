/** The sender that is put to the test: our own client, in a hurry. */
import { createClient } from "../../src/client/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import type { Sender, Target } from "./sends-run.ts";

/** Gives up an attempt after `timeoutMs`, so that silent ones take little time; everything else as any user has it. */
export function clientSender(timeoutMs: number): (target: Target) => Sender {
  return (target) => {
    const client = createClient({ ...target, timeoutMs, backoff: { baseMs: 1, maxMs: 20 }, logger: silentLogger });
    return (request, options) => client.messages.send(request, options);
  };
}
