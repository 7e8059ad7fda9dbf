/** When attempts happen while time is moved, and what they see. */
import { describe, expect, it } from "vitest";
import { call, send, start, startCatcher, tokenOf } from "./support.ts";

const MINUTE_MS = 60_000;

describe("clock.advance()", () => {
  it("shows a call from a webhook the time of that webhook (DLV-20)", async () => {
    const catcher = await startCatcher();
    const emulator = await start({ deliveryUrl: catcher.url });
    const token = await tokenOf(emulator);
    const calledAt = new Map<string, number>();
    catcher.answer = ({ event }, response) => {
      // As long as a busy receiver takes, longer for earlier messages.
      setTimeout(
        () => {
          calledAt.set(`${event.messageId} ${event.sequence}`, emulator.clock.now());
          response.end();
        },
        20 - (Number(event.data.externalReference) % 20),
      );
    };
    for (let i = 0; i < 10; i++) await send(emulator, token, { externalReference: String(i) });
    await emulator.clock.advance(2 * MINUTE_MS);
    const events = emulator.control.events();
    expect(events).toHaveLength(30);
    for (const { messageId, sequence, occurredAt } of events) {
      expect(calledAt.get(`${messageId} ${sequence}`)).toBe(occurredAt);
    }
  });

  it.each(["virtual", "real"] as const)(
    "keeps every attempt of many deliveries to the plan (%s clock, DLV-6)",
    async (clock) => {
      const catcher = await startCatcher();
      catcher.answer = 500;
      const emulator = await start({ deliveryUrl: catcher.url, clock });
      const token = await tokenOf(emulator);
      for (let i = 0; i < 5; i++) await send(emulator, token);
      await emulator.clock.advance(120 * MINUTE_MS);
      const deliveries = emulator.control.deliveries();
      expect(deliveries).toHaveLength(15);
      for (const { attempts } of deliveries) {
        const gaps = attempts.slice(1).map(({ at }, i) => (at - (attempts[i]?.at ?? 0)) / MINUTE_MS);
        // A real clock runs on while the receiver answers.
        expect(gaps.map((gap) => Math.floor(gap + 1e-9))).toEqual([1, 5, 15, 60]);
        for (const gap of gaps) expect(gap % 1).toBeLessThan(clock === "virtual" ? 1e-9 : 0.1);
      }
    },
  );

  it("does not let how long an attempt takes decide where the next one of its message goes (DLV-18)", async () => {
    const catcher = await startCatcher();
    const held: (() => void)[] = [];
    catcher.answer = (_caught, response) => void held.push(() => response.end());
    const emulator = await start({ deliveryUrl: catcher.url, lifecycle: "instant" });
    const token = await tokenOf(emulator);
    await send(emulator, token);
    const body = { endpointUrl: `${catcher.url}/other`, signingEnabled: true };
    await call(emulator, "PATCH", "/api/core/webhooks/delivery", { token, body });
    await expect.poll(() => held.length).toBe(1);
    catcher.answer = 200;
    held[0]?.();
    await emulator.clock.idle();
    expect(catcher.caught.map(({ path }) => path)).toEqual(["/webhooks", "/webhooks", "/webhooks"]);
  });
});
