import { describe, expect, it } from "vitest";
import { type EmulatorOptions, READINGS } from "../../../src/messaging/emulator/index.ts";
import { PROFILE_NAMES, settingsFrom } from "../../../src/messaging/emulator/options.ts";
import { BEGIN, mac } from "./delivery-support.ts";
import { send, start, startCatcher, tokenOf } from "./support.ts";

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
    const match = { webhook: true };
    expect(rulesOf({ profile: "hostile" })).toEqual([
      { match, action: { type: "duplicate" }, probability: 0.2 },
      { match, action: { type: "reorder" }, probability: 0.2 },
    ]);
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

describe("profile hostile", () => {
  it("retries with the first timestamp, in seconds, over other bytes, signed in base64 (DLV-8, DLV-12, DLV-17)", async () => {
    const catcher = await startCatcher();
    catcher.answer = 500;
    const options = { lifecycle: "manual", timestampClock: "emulator" } as const;
    const emulator = await start({ profile: "hostile", deliveryUrl: catcher.url, ...options });
    emulator.control.faults.clear();
    await send(emulator, await tokenOf(emulator));
    await emulator.clock.advance(81 * 60_000);
    expect(catcher.caught).toHaveLength(5);
    for (const caught of catcher.caught) {
      expect(caught.timestamp).toBe(String(BEGIN / 1_000));
      expect(caught.signature).toBe(mac(emulator.webhookSecret, caught).toString("base64"));
    }
    expect(new Set(catcher.caught.map(({ text }) => text)).size).toBeGreaterThan(1);
    for (const { event } of catcher.caught) expect(event).toEqual(catcher.caught[0]?.event);
  });
});
