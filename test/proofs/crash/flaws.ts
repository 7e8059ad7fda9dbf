/** Faults of an application or a front, built in on purpose: a run with them must end with breaches, or none would mean nothing. */
import type { RequestListener } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import type { Receiver } from "../../../src/index.ts";
import { incomingOf } from "../../../src/testing/deliver.ts";

/** `effect_outside_commit`: a handler writes by itself. `answer_before_commit`: the 2xx is sent before the inbox has the event. */
export type Flaw = "effect_outside_commit" | "answer_before_commit";

/** What a queue in memory does: answers 200 when a delivery is there, and stores it some milliseconds later. */
export function answeringFirst(receiver: Pick<Receiver<never>, "handle">): RequestListener {
  return async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    response.end();
    await wait(5);
    const headers = request.headers as Record<string, string>;
    await receiver.handle(incomingOf({ method: "POST", headers, body: Uint8Array.from(Buffer.concat(chunks)) }));
  };
}
