/**
 * Outages in short: few messages, both frameworks, every profile. `npm run prove -- outages --full` sends 1,000.
 *
 * @module-tag full
 */
import { describe, expect, it, onTestFinished } from "vitest";
import { PROFILE_NAMES } from "../../../src/emulator/index.ts";
import { ExampleProcess } from "./processes.ts";
import { surviveOutages } from "./survive.ts";

const MESSAGES = 24;

describe.each(["express", "fastify"] as const)("examples/servers/%s over outages of 1, 10 and 70 minutes", (name) => {
  it.each(PROFILE_NAMES)(
    "loses nothing, handles nothing twice and keeps the order: %s (DLV-6, DLV-8, RCV-3, RCV-6, RCV-7)",
    async (profile) => {
      const receiver = await ExampleProcess.create(name);
      onTestFinished(() => receiver.dispose());
      const survival = await surviveOutages(receiver, profile, MESSAGES);
      expect(survival).toMatchObject({
        messages: MESSAGES,
        lost: [],
        twice: [],
        outOfOrder: [],
        unverified: [],
        late: 0,
      });
      expect(survival.events).toBeGreaterThan(MESSAGES * 2);
      // Without failed attempts there was no outage.
      expect(survival.failedAttempts).toBeGreaterThan(MESSAGES);
    },
    120_000,
  );
});
