/** The service of a run, and the application's sending side. */

import { silentLogger } from "../../../src/internal/logger.ts";
import { createEmulator, type Emulator, type FaultRule } from "../../../src/messaging/emulator/index.ts";
import type { FakeClock } from "../../../src/tools/testing/index.ts";
import { type Application, connect, DELIVERY_FAULTS } from "../application.ts";
import { nameOf, type Reading } from "./readings.ts";

/** So long two secrets are valid after a rotation. */
export const OVERLAP_MS = 30 * 60_000;

const FAULTS: readonly FaultRule[] = [
  ...DELIVERY_FAULTS,
  { match: { eventType: "message.queued" }, action: { type: "eventBeforeResponse" }, probability: 0.1 },
  { match: { route: "POST /api/core/messages/send" }, action: { type: "status", status: 500 }, probability: 0.03 },
  { match: { route: "POST /api/core/messages/send" }, action: { type: "reset", when: "after" }, probability: 0.03 },
];

export interface Service extends Application {
  readonly emulator: Emulator;
}

/** Both on `clock`. */
export async function createService(reading: Reading, clock: FakeClock): Promise<Service> {
  const emulator = await createEmulator({
    ...{ port: null, clock: "real", systemClock: clock, seed: nameOf(reading), faults: FAULTS, logger: silentLogger },
    unspecified: { ...reading, overlapMs: OVERLAP_MS },
    attemptTimeoutMs: 600_000, // Of the same clock, which goes on while a request is under way.
  });
  return { emulator, ...connect(emulator, { clock, maxRetries: 5, validateResponses: "throw" }) };
}
