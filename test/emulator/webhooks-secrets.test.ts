/** Secrets of webhooks over the API: generated, supplied, rotated, and gone when their window has passed. */
import { describe, expect, it } from "vitest";
import type { Emulator } from "../../src/emulator/index.ts";
import type { WebhookRecord } from "../../src/emulator/state/records.ts";
import { collected } from "../client/support.ts";
import { checkedCall, verdict } from "./checked-call.ts";
import { start } from "./support.ts";

const DAY = 86_400_000;

async function patch(emulator: Emulator, fields: object = {}, kind = "delivery") {
  const body = { signingEnabled: true, ...fields };
  return checkedCall(emulator, "PATCH", `/api/core/webhooks/${kind}`, { body });
}
const shown = async (emulator: Emulator) =>
  (await checkedCall(emulator, "GET", "/api/core/webhooks")).body.defaults.delivery;
const kept = (emulator: Emulator) =>
  emulator.control.exportState().tables.webhooks?.["ac_main/delivery"] as WebhookRecord;

describe("a generated secret", () => {
  it("comes when signing has none, once, and is the current one (WHK-13, WHK-18)", async () => {
    const emulator = await start();
    const { body } = await patch(emulator);
    expect(body).toMatchObject({ hasCurrentSecret: true, hasPreviousSecret: false });
    expect(kept(emulator).currentSecret).toBe(body.generatedSecret);
    expect((await patch(emulator)).body).not.toHaveProperty("generatedSecret");
  });

  it("is another one each time and for each kind, and repeats with the seed (WHK-18)", async () => {
    const run = async (seed: string) => {
      const emulator = await start({ seed, unspecified: { secretGeneration: "everyPatch" } });
      const bodies = [await patch(emulator), await patch(emulator), await patch(emulator, {}, "inbound")];
      return bodies.map(({ body }) => body.generatedSecret);
    };
    const first = await run("a");
    expect(new Set([...first, ...(await run("b"))]).size).toBe(6);
    expect(await run("a")).toEqual(first);
  });
});

describe("a secret that no receiver takes", () => {
  it("is taken, as the specification has no rule for it, with a warning that does not show it (WHK-24)", async () => {
    const { lines, logger } = collected();
    const emulator = await start({ logger });
    expect((await patch(emulator, { secret: "elevenbytes" })).status).toBe(200);
    expect(kept(emulator).currentSecret).toBe("elevenbytes");
    const warning = expect.stringMatching(/is 11 bytes long; a secret has at least 16\. .*receivers refuse it\.$/);
    expect(emulator.control.requests().at(-1)?.warnings).toEqual([warning]);
    expect(lines).toEqual([{ level: "warn", fields: { kind: "delivery", apiClientId: "ac_main" }, message: warning }]);
    expect(JSON.stringify(lines)).not.toContain("elevenbytes");
    await patch(emulator, { secret: "sixteen bytes..." });
    expect(lines).toHaveLength(1);
  });

  it("is warned of at the start too", async () => {
    const { lines, logger } = collected();
    await start({ logger, webhookSecret: "elevenbytes" });
    expect(lines).toMatchObject([{ level: "warn", message: expect.stringContaining("is 11 bytes long") }]);
  });
});

describe("a rotation", () => {
  it("makes the current secret the previous one for 24 hours (WHK-4, WHK-19, WHK-26)", async () => {
    const emulator = await start();
    await patch(emulator, { secret: "first" });
    await emulator.clock.advance(1_000);
    const rotatedAt = emulator.clock.now();
    const { body } = await patch(emulator, { secret: "second" });
    const during = { hasPreviousSecret: true, rotatedAt, previousSecretValidUntil: rotatedAt + DAY };
    expect(body).toMatchObject(during);
    expect(kept(emulator)).toMatchObject({ currentSecret: "second", previousSecret: "first" });
    await emulator.clock.advance(DAY - 1);
    expect(await shown(emulator)).toMatchObject(during);
    await emulator.clock.advance(1);
    const after = await shown(emulator);
    expect(after).toMatchObject({ hasCurrentSecret: true, hasPreviousSecret: false, rotatedAt });
    expect(after).not.toHaveProperty("previousSecretValidUntil");
  });

  it("inside the window gets 400 by a reading, and changes nothing until it has passed (WHK-21)", async () => {
    const emulator = await start({ unspecified: { rejectRotationDuringOverlap: true } });
    await patch(emulator, { secret: "first" });
    await patch(emulator, { secret: "second" });
    const before = kept(emulator);
    const refused = await patch(emulator, { secret: "third", enabled: true });
    expect(verdict(refused)).toBe("400 INVALID_REQUEST");
    expect(refused.body.error.details).toEqual({ previousSecretValidUntil: emulator.clock.now() + DAY });
    expect(kept(emulator)).toEqual(before);
    await emulator.clock.advance(DAY);
    expect((await patch(emulator, { secret: "third" })).body.hasPreviousSecret).toBe(true);
    expect(kept(emulator).currentSecret).toBe("third");
  });
});
