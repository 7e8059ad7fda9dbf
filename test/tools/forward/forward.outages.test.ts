/**
 * The short form of `npm run prove -- forward`.
 *
 * @module-tag full
 */
import { beforeEach, describe, expect, it } from "vitest";
import { problemsOf } from "../../proofs/forward.ts";
import { forwardThroughOutages } from "../../proofs/forward-outages.ts";
import { needs } from "./needs.ts";
import { NATS, REDIS } from "./services.ts";

describe("forwarding to JetStream and BullMQ through outages", () => {
  const needed = [needs(NATS), needs(REDIS)];
  beforeEach(async (context) => {
    for (const each of needed) await each(context);
  });

  it("brings every event into both engines once, and in order into JetStream (RCV-6, RCV-7)", async () => {
    const arrival = await forwardThroughOutages({ messages: 50, rate: 20, say: () => {} });
    expect(problemsOf(arrival)).toEqual([]);
    expect(arrival.events).toBeGreaterThan(150);
    expect(arrival.published).toBeGreaterThan(2 * arrival.events);
  });
});
