/** Sends messages to an example through the emulator while the example goes down for 1, 10 and 70 minutes of the service's time. */

import { silentLogger } from "../../src/internal/logger.ts";
import { createEmulator, type Emulator, type ProfileName } from "../../src/messaging/emulator/index.ts";
import { connect, WITHOUT_GAPS } from "./application.ts";
import { type HandledRow, type Verdict, verdictOn } from "./ledger.ts";

export type { HandledRow };

/** A receiving application that can be ended and started again on the same port and inbox. */
export interface Restartable {
  readonly url: string;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** What its handlers committed, in that order. */
  handled(): readonly HandledRow[];
  /** Lines it printed for late events. */
  lateLines(): number;
}

export interface Survival extends Verdict {
  readonly messages: number;
  readonly events: number;
  /** HTTP attempts, with how many of them failed. */
  readonly attempts: number;
  readonly failedAttempts: number;
  readonly late: number;
}

export const SECRET = "the-current-secret-of-32-bytes-x";
export const PREVIOUS_SECRET = "the-secret-before-it-of-32-bytes";

const MINUTE_MS = 60_000;
const OUTAGES_MINUTES = [0, 1, 10, 70];
/** All of a delivery's attempts, and a message that comes 90 minutes late. */
const ALL_ATTEMPTS_MS = 180 * MINUTE_MS;
const SETTLE_LIMIT_MS = 20_000;

/** `count` messages, a quarter for each outage, half of them sent while the receiver is down. */
export async function surviveOutages(receiver: Restartable, profile: ProfileName, count: number): Promise<Survival> {
  await receiver.start();
  const emulator = await createEmulator({
    port: null,
    profile,
    seed: `outages of ${profile}`,
    inboundUrl: receiver.url,
    deliveryUrl: receiver.url,
    webhookSecret: PREVIOUS_SECRET,
    logger: silentLogger,
  });
  try {
    const service = connect(emulator, {}, WITHOUT_GAPS);
    await service.rotate(SECRET);
    for (const [index, minutes] of OUTAGES_MINUTES.entries()) {
      const batch = messageNumbers(count, index);
      const half = Math.ceil(batch.length / 2);
      for (const number of batch.slice(0, half)) await service.send(number);
      await emulator.clock.advance(1_000);
      if (minutes > 0) await receiver.stop();
      for (const number of batch.slice(half)) await service.send(number);
      await emulator.clock.advance(minutes * MINUTE_MS);
      if (minutes > 0) await receiver.start();
      // Outages that follow each other can outlast a delivery's five attempts, which no receiver survives.
      await emulator.clock.advance(ALL_ATTEMPTS_MS);
    }
    return await verdictOf(emulator, receiver, count);
  } finally {
    await receiver.stop();
    await emulator.close();
  }
}

function messageNumbers(count: number, part: number): number[] {
  const parts = OUTAGES_MINUTES.length;
  return Array.from({ length: count }, (_, number) => number).filter((number) => number % parts === part);
}

async function verdictOf(emulator: Emulator, receiver: Restartable, messages: number): Promise<Survival> {
  const events = emulator.control.events({ limit: 10_000 });
  const deliveries = emulator.control.deliveries({ limit: 10_000 });
  const attempts = deliveries.flatMap((delivery) => delivery.attempts);
  return {
    ...verdictOn({ events, deliveries }, await settled(receiver, events.length)),
    messages,
    events: events.length,
    attempts: attempts.length,
    failedAttempts: attempts.filter(({ status }) => status === null || status < 200 || status > 299).length,
    late: receiver.lateLines(),
  };
}

/** The rows, once there are as many as expected, or when no more came for too long. */
async function settled(receiver: Restartable, expected: number): Promise<readonly HandledRow[]> {
  const deadline = performance.now() + SETTLE_LIMIT_MS;
  for (;;) {
    const rows = receiver.handled();
    if (rows.length >= expected || performance.now() > deadline) return rows;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
