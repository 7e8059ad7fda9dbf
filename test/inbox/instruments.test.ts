/** Who is asked, and what becomes of what they throw; what they receive is in test/tools/telemetry/measuring.test.ts. */
import { describe, expect, it } from "vitest";
import { attemptOf, type Instrumentation } from "../../src/inbox/instrumentation.ts";
import type { Lease } from "../../src/inbox/store.ts";
import { openBench, rounds } from "./bench.ts";

const DELIVERY = {
  outcome: "accepted",
  status: 200,
  reason: null,
  slot: "current",
  late: false,
  durationMs: 1,
  source: "service",
} as const;

const newLease = () => ({ event: 3, sequence: 2, eventType: "message.sent", attempt: 1 }) as Lease;

async function scene(...all: Instrumentation[]) {
  const { instruments, lines } = await openBench();
  for (const one of all) instruments.add(one);
  return { instruments, lines };
}

describe("Instruments", () => {
  it("logs with its code and place, and no message, what an instrumentation throws, and what it rejects with", async () => {
    const broken = (code: string) => Object.assign(new Error("with a text"), { code });
    const { instruments, lines } = await scene(
      {
        delivery() {
          throw broken("ETHROWN");
        },
      },
      { delivery: () => ({ ended: () => Promise.reject(broken("EREJECTED")) as never }) },
    );
    instruments.delivery()?.ended(DELIVERY);
    await rounds(1);
    const at = expect.arrayContaining([expect.stringMatching(/^broken \(test\/inbox\/instruments\.test\.ts:\d+\)$/)]);
    const message = "An instrumentation threw. The work it observes continued.";
    expect(lines).toEqual([
      { level: "error", fields: { code: "ETHROWN", error: "Error", at }, message },
      { level: "error", fields: { code: "EREJECTED", error: "Error", at }, message },
    ]);
  });

  it("watches nothing where nobody who listens wants to", async () => {
    const { instruments } = await scene({ delivery: () => undefined, attempt: () => undefined });
    const lease = newLease();
    expect([instruments.delivery(), instruments.attempt(lease)]).toEqual([null, null]);
    expect(attemptOf(lease)).toBeUndefined();
  });

  it("asks nobody whether it listens where nobody could be told", async () => {
    let asked = 0;
    const isListening = () => asked++ >= 0;
    const { instruments } = await scene({ isListening, commit: () => {} });
    expect([instruments.delivery(), instruments.attempt(newLease())]).toEqual([null, null]);
    expect(asked).toBe(0);
  });
});
