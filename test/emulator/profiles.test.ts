import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type EmulatorOptions, READINGS } from "../../src/emulator/index.ts";
import { PROFILE_NAMES, settingsFrom } from "../../src/emulator/options.ts";
import { type Caught, call, send, start, startCatcher, tokenOf } from "./support.ts";

const readingsOf = (options: EmulatorOptions): Record<string, unknown> => settingsFrom(options).readings;
const rulesOf = (options: EmulatorOptions) => settingsFrom(options).faults;

/** The readings of a profile that are not the defaults. */
function differences(options: EmulatorOptions): Record<string, unknown> {
  const defaults = readingsOf({});
  return Object.fromEntries(Object.entries(readingsOf(options)).filter(([name, value]) => value !== defaults[name]));
}

describe("the profiles", () => {
  it("are default, strict and hostile, and no other", () => {
    expect(PROFILE_NAMES).toEqual(["default", "strict", "hostile"]);
    expect(() => settingsFrom({ profile: "hostil" as "hostile" })).toThrow(/"profile" must be one of "default"/);
  });

  it("set nothing by default: every reading is the first of its row, and there is no fault", () => {
    const values: readonly [string, { readonly values: unknown }][] = Object.entries(READINGS);
    for (const [name, row] of values) {
      const first = Array.isArray(row.values) ? row.values[0] : (row.values as { default: unknown }).default;
      expect([name, readingsOf({ profile: "default" })[name]]).toEqual([name, first]);
    }
    expect(rulesOf({ profile: "default" })).toEqual([]);
    expect(settingsFrom({ profile: "default" }).readings).toEqual(settingsFrom({}).readings);
  });

  it("set with strict that unknown fields are rejected, and nothing else", () => {
    expect(differences({ profile: "strict" })).toEqual({ unknownFields: "reject" });
    expect(rulesOf({ profile: "strict" })).toEqual([]);
  });

  it("set with hostile what a receiver must survive at its worst", () => {
    expect(differences({ profile: "hostile" })).toEqual({
      retrySignature: "frozen",
      overlapSigning: "alternate",
      signatureEncoding: "base64",
      timestampUnit: "s",
      retryBody: "reserialised",
    });
    expect(rulesOf({ profile: "hostile" }).map(({ action }) => action.type)).toEqual(["duplicate", "reorder"]);
  });

  it("come after the readings that a user chooses, one by one", () => {
    const unspecified = { signatureEncoding: "hex", timestampUnit: "ms", replay: "current" } as const;
    expect(differences({ profile: "hostile", unspecified })).toEqual({
      retrySignature: "frozen",
      overlapSigning: "alternate",
      retryBody: "reserialised",
      replay: "current",
    });
    expect(differences({ profile: "strict", unspecified: { unknownFields: "warn" } })).toEqual({});
  });

  it("keep their faults beside those that a user adds, which come after them", async () => {
    const rule = { match: { webhook: true }, action: { type: "unsigned" }, times: 1 } as const;
    const emulator = await start({ profile: "hostile", faults: [rule] });
    expect(emulator.control.faults.list().map(({ id, rule }) => [id, rule.action.type])).toEqual([
      ["fault_000001", "duplicate"],
      ["fault_000002", "reorder"],
      ["fault_000003", "unsigned"],
    ]);
  });
});

describe("profile strict", () => {
  it("refuses an unknown request field that default only warns of (GEN-9)", async () => {
    const statuses = [];
    for (const profile of ["default", "strict"] as const) {
      const emulator = await start({ profile });
      const { status, body } = await send(emulator, await tokenOf(emulator), { priority: 1 });
      statuses.push([status, body.error?.code]);
    }
    expect(statuses).toEqual([
      [202, undefined],
      [400, "INVALID_REQUEST"],
    ]);
  });
});

describe("profile hostile", () => {
  const signatureOf = ({ headers, raw }: Caught, secret: string) =>
    createHmac("sha256", secret).update(`${headers["x-service-timestamp"]}.`).update(raw).digest("base64");

  it("signs in base64 over seconds, with either secret while both are valid (DLV-12, DLV-13, DLV-16)", async () => {
    const catcher = await startCatcher();
    const emulator = await start({ profile: "hostile", deliveryUrl: catcher.url, webhookSecret: "old secret" });
    const token = await tokenOf(emulator);
    const body = { signingEnabled: true, secret: "new secret" };
    expect((await call(emulator, "PATCH", "/api/core/webhooks/delivery", { token, body })).status).toBe(200);
    for (let i = 0; i < 10; i++) await send(emulator, token);
    await emulator.clock.advance(60_000);
    const signedWith = catcher.caught.map((one) => {
      expect(one.headers["x-service-timestamp"]).toMatch(/^\d{10}$/);
      const secret = ["old secret", "new secret"].find(
        (text) => signatureOf(one, text) === one.headers["x-service-signature"],
      );
      return secret ?? "neither";
    });
    expect(new Set(signedWith)).toEqual(new Set(["old secret", "new secret"]));
  });

  it("repeats about a fifth of the events, and brings others out of order, the same in each run (DLV-8, DLV-10)", async () => {
    const run = async () => {
      const catcher = await startCatcher();
      const emulator = await start({ profile: "hostile", deliveryUrl: catcher.url });
      const token = await tokenOf(emulator);
      for (let i = 0; i < 40; i++) await send(emulator, token);
      await emulator.clock.advance(60_000);
      return catcher.caught.map(({ event }) => `${event.messageId}/${event.sequence}`);
    };
    const arrived = await run();
    const distinct = new Set(arrived);
    expect(distinct.size).toBe(120);
    expect(arrived.length - distinct.size).toBeGreaterThan(10);
    expect(arrived.length - distinct.size).toBeLessThan(40);
    const sequences = new Map<string, string>();
    for (const one of distinct) {
      const [messageId = "", sequence = ""] = one.split("/");
      sequences.set(messageId, (sequences.get(messageId) ?? "") + sequence);
    }
    const disordered = [...sequences.values()].filter((arrivals) => arrivals !== "123");
    expect(disordered.length).toBeGreaterThan(5);
    expect([...(await run())].sort()).toEqual([...arrived].sort());
  });

  it("retries with the first signature over other bytes of the same content (DLV-8, DLV-17)", async () => {
    const catcher = await startCatcher();
    catcher.answer = 500;
    const options = { lifecycle: "manual", timestampClock: "emulator" } as const;
    const emulator = await start({ profile: "hostile", deliveryUrl: catcher.url, ...options });
    emulator.control.faults.clear();
    await send(emulator, await tokenOf(emulator));
    await emulator.clock.advance(81 * 60_000);
    expect(catcher.caught).toHaveLength(5);
    expect(new Set(catcher.caught.map(({ headers }) => headers["x-service-timestamp"])).size).toBe(1);
    for (const one of catcher.caught) {
      expect(one.headers["x-service-signature"]).toBe(signatureOf(one, emulator.webhookSecret));
    }
    expect(new Set(catcher.caught.map(({ text }) => text)).size).toBeGreaterThan(1);
    for (const { event } of catcher.caught) expect(event).toEqual(catcher.caught[0]?.event);
  });
});
