/** A sender in the place of the service: signs each attempt, and repeats what was not answered with a 2xx or a refusal. */
import { createHmac } from "node:crypto";
import type { Delivery } from "./load.ts";

export interface Secrets {
  readonly current: string;
  readonly previous: string;
  readonly wrong: string;
}

export interface Sent {
  readonly delivery: Delivery;
  readonly status: number;
  /** What the receiver says became of it: `accepted`, `duplicate`, `quarantined`; empty for a refusal. */
  readonly outcome: string;
  /** Attempts that got no answer, or a 5xx. */
  readonly failed: number;
}

export interface SendOptions {
  readonly secrets: Secrets;
  /** Deliveries under way at once. */
  readonly parallel: number;
  /** Resolves with the receiver's address once it listens. */
  readonly url: () => Promise<string>;
  readonly onAnswer: (sent: Sent) => void;
}

/** Sends all, and resolves when each has its answer. */
export async function sendAll(deliveries: readonly Delivery[], options: SendOptions): Promise<Sent[]> {
  const results: Sent[] = [];
  const queue = deliveries.values();
  const lane = async () => {
    for (const delivery of queue) {
      const sent = await send(delivery, options);
      results.push(sent);
      options.onAnswer(sent);
    }
  };
  await Promise.all(Array.from({ length: options.parallel }, lane));
  return results;
}

/** The service waits a minute before it tries again (DLV-6); the demo only until the receiver listens. */
async function send(delivery: Delivery, { secrets, url }: SendOptions): Promise<Sent> {
  for (let failed = 0; ; failed++) {
    const address = await url();
    try {
      const { body } = delivery;
      const response = await fetch(`${address}/webhooks`, { method: "POST", headers: sign(delivery, secrets), body });
      const answer = (await response.json()) as { outcome?: string };
      if (response.status < 500) return { delivery, status: response.status, outcome: answer.outcome ?? "", failed };
    } catch {
      // The receiver was killed before its answer: whether it stored the event is unknown, so the service sends it again.
    }
  }
}

function sign({ body, secret, ageMs, signature }: Delivery, secrets: Secrets): Record<string, string> {
  const timestamp = String(Date.now() - ageMs);
  const computed = createHmac("sha256", secrets[secret]).update(`${timestamp}.${body}`).digest("hex");
  return {
    "content-type": "application/json",
    "x-service-timestamp": timestamp,
    "x-service-signature": signature ?? computed,
  };
}
