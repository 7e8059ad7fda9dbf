/** Option import: a new emulator goes on where the exported one stood. */
import { describe, expect, it } from "vitest";
import { createEmulator, type Emulator } from "../../src/emulator/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { call, send, start, startAgain, startCatcher, tokenOf } from "./support.ts";

describe("option import", () => {
  it("goes on where the exported state stood: with its records, their order, tokens and clock", async () => {
    const first = await start();
    const token = await tokenOf(first);
    first.control.updateClient("ac_other", { status: "INACTIVE" });
    for (let i = 0; i < 3; i++) await send(first, token);
    first.control.failMessage("msg_a8244c_000001");
    await first.clock.advance(1_000_000);

    const second = await startAgain(first);
    expect(second.clock.now()).toBe(first.clock.now());
    expect(textOf(second)).toBe(textOf(first));
    expect((await call(second, "GET", "/api/core/whoami", { token })).body.assignedNumbers.total).toBe(5);
  });

  it("answers a send that was answered before with the same bytes, and sends nothing again (SND-17)", async () => {
    const first = await start();
    const token = await tokenOf(first);
    const before = await send(first, token, {}, { "idempotency-key": "k-1" });

    const second = await startAgain(first);
    const after = await send(second, token, {}, { "idempotency-key": "k-1" });
    expect([after.status, after.text]).toEqual([202, before.text]);
    expect(second.control.messages()).toHaveLength(1);
    const fresh = await send(second, token);
    expect(fresh.body.results[0].messageId).toBe("msg_a8244c_000002");
  });

  it("makes the retries that were pending, at their time and with the secret of before (DLV-6)", async () => {
    const catcher = await startCatcher();
    catcher.answer = 500;
    const first = await start({ lifecycle: "instant", deliveryUrl: catcher.url, webhookSecret: "kept-secret" });
    await send(first, await tokenOf(first));
    await first.clock.idle();
    const tried = catcher.caught.length;

    catcher.answer = 200;
    const second = await startAgain(first);
    expect(second.webhookSecret).toBe("kept-secret");
    await second.clock.advance(59_999);
    expect(catcher.caught).toHaveLength(tried);
    await second.clock.advance(1);
    expect(catcher.caught).toHaveLength(2 * tried);
    expect(tried).toBe(3);
    expect(second.control.deliveries({ state: "delivered" })).toHaveLength(3);
  });

  it("goes before options that fill a new state, tells the credentials that work, and warns of no others", async () => {
    const warnings: string[] = [];
    const logger = { ...silentLogger, warn: (_: object, message: string) => void warnings.push(message) };
    const first = await start({ clientSecret: "first-secret" });
    const unused = {
      clientSecret: "second-secret",
      seed: "another",
      deliveryUrl: "http://192.0.2.1/",
      webhookSecret: "x",
    };
    const second = await startAgain(first, { ...unused, logger });
    expect(second.clientSecret).toBe("first-secret");
    expect(second.fixtures).toEqual(first.fixtures);
    expect(await tokenOf(second, second.fixtures.clients.other)).toMatch(/^[0-9a-f]{64}$/);
    expect(warnings).toEqual([]);
  });

  it("refuses what no emulator exported, and leaves no port open", async () => {
    const probe = await createEmulator({ logger: silentLogger });
    const port = Number(new URL(probe.url).port);
    await probe.close();
    for (const value of [null, "state.json", {}, { version: 2, tables: {} }]) {
      await expect(createEmulator({ import: value as never, port, logger: silentLogger })).rejects.toMatchObject({
        code: "invalid_option",
        message: expect.stringMatching(/^The emulator did not export this state: /),
      });
    }
    await (await createEmulator({ port, logger: silentLogger })).close();
  });

  it("sends nothing when the emulator cannot listen, neither deliveries that are due nor later ones", async () => {
    const catcher = await startCatcher();
    catcher.answer = 500;
    const systemClock = createFakeClock();
    const options = { systemClock, clock: "real", lifecycle: "instant", logger: silentLogger } as const;
    const first = await start({ ...options, deliveryUrl: catcher.url });
    await send(first, await tokenOf(first));
    await first.clock.idle();
    const tried = catcher.caught.length;
    const port = Number(new URL(catcher.url).port);
    await first.close();

    await systemClock.advance(60_000);
    const exported = first.control.exportState();
    await expect(createEmulator({ ...options, import: exported, port })).rejects.toThrow(/cannot listen/);
    for (let minute = 0; minute < 10; minute++) {
      await systemClock.advance(60_000);
      await fetch(catcher.url, { method: "HEAD" });
    }
    expect(catcher.caught.filter(({ method }) => method === "POST")).toHaveLength(tried);
    expect(tried).toBe(3);

    catcher.answer = 200;
    const second = await startAgain(first, options);
    await second.clock.idle();
    expect(second.control.deliveries({ state: "delivered" })).toHaveLength(3);
  });
});

function textOf({ control }: Emulator): string {
  return JSON.stringify(control.exportState());
}
