/** Secrets kept by functions of the application's own. */
import { inspect } from "node:util";
import { describe, expect, it, test } from "vitest";
import { SetupError, StoreError } from "../../../src/errors.ts";
import {
  type CallbackSecretsOptions,
  callbackSecrets,
  type SavedSecrets,
} from "../../../src/messaging/rotation/callback-secrets.ts";
import { secretStoreContract } from "../../contracts/secret-store.ts";
import { failureOf } from "../../support/failure-of.ts";

const SECRET = "a-webhook-signing-secret-of-32-b";
const SLOTS = { current: SECRET, previous: [], next: null, rotatedAt: null };

/** A secret manager that answers a turn later. */
function createVault(kept = new Map<string, SavedSecrets>()) {
  const later = () => new Promise<void>((resolve) => setImmediate(resolve));
  const functions = {
    async load(kind: string) {
      await later();
      return kept.get(kind) ?? null;
    },
    async save(kind: string, text: string, revision: number) {
      await later();
      if ((kept.get(kind)?.revision ?? 0) !== revision) return false;
      kept.set(kind, { text, revision: revision + 1 });
      return true;
    },
  };
  return { kept, functions };
}

/** A store over functions of which some are spoilt. */
const over = (spoilt: Record<string, unknown>) =>
  callbackSecrets({ ...createVault().functions, ...spoilt } as CallbackSecretsOptions);

describe("callbackSecrets()", () => {
  secretStoreContract({
    test,
    expect,
    async makeStore() {
      const { functions } = createVault();
      const make = () => callbackSecrets(functions);
      return { store: make(), reopen: async () => make(), dispose: async () => {} };
    },
  });

  it("gives `save` a text that names its format", async () => {
    const { kept, functions } = createVault();
    await callbackSecrets(functions).write("delivery", SLOTS, 0);
    expect(JSON.parse(kept.get("delivery")?.text ?? "")).toEqual({ oncehook: 1, ...SLOTS });
  });

  it("answers `secret_unreadable` for a text that is not its own, and shows nothing of it", async () => {
    const refused = await failureOf(over({ load: () => ({ text: SECRET, revision: 1 }) }).read("delivery"));
    expect(refused).toBeInstanceOf(StoreError);
    expect(refused).toMatchObject({ code: "secret_unreadable", message: expect.stringContaining('load("delivery")') });
    expect(inspect(refused, { depth: 9 })).not.toContain(SECRET);
  });

  it.each([
    ["undefined", undefined],
    ["a text", SECRET],
    ["no revision", { text: "{}" }],
    ["revision 0", { text: "{}", revision: 0 }],
    ["a fraction", { text: "{}", revision: 1.5 }],
    ["bytes", { text: Buffer.from("{}"), revision: 1 }],
  ])("refuses %s from `load`", async (_, saved) => {
    const refused = await failureOf(over({ load: () => saved }).read("inbound"));
    expect(refused).toBeInstanceOf(SetupError);
    expect(inspect(refused)).not.toContain(SECRET);
  });

  it.each([undefined, 1, "true"])("refuses %j from `save`: whether it is kept must be certain", async (answer) => {
    expect(await failureOf(over({ save: () => answer }).write("inbound", SLOTS, 0))).toBeInstanceOf(SetupError);
  });

  it.each([
    ["undefined", undefined],
    ["a list of texts", ["a"]],
    ["a sighting without counters", [{ id: "a", host: "h", pid: 1, seenAt: 2, keyringVersion: "v" }]],
    [
      "a counter that is a text",
      [{ id: "a", host: "h", pid: 1, seenAt: 2, keyringVersion: "v", counters: { a: "1" } }],
    ],
  ])("refuses %s from `receivers`", async (_, answer) => {
    expect(await failureOf(over({ receivers: () => answer }).receivers())).toBeInstanceOf(SetupError);
  });

  it("passes sightings on, and does not know any without the function", async () => {
    const sighting = {
      id: "a",
      host: "h",
      pid: 1,
      seenAt: 2,
      keyringVersion: "v",
      counters: { "slot:service:previous": 1 },
    };
    expect(await over({ receivers: () => [sighting] }).receivers()).toEqual([sighting]);
    expect(await over({ receivers: async () => null }).receivers()).toBeNull();
    expect(await over({}).receivers()).toBeNull();
  });

  it.each(["load", "save", "receivers"])("wraps what `%s` throws: its name, code and place only", async (name) => {
    const thrown = Object.assign(new TypeError(`permission denied: ${SECRET}`, { cause: SECRET }), {
      code: "ECONNRESET",
      text: SECRET,
    });
    const store = over({ [name]: () => Promise.reject(thrown) });
    const calls = {
      load: () => store.read("inbound"),
      save: () => store.write("inbound", SLOTS, 0),
      receivers: () => store.receivers(),
    };
    const failure = await failureOf(calls[name as keyof typeof calls]());
    expect(failure).toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(
        new RegExp(
          `^The function ${name}\\(\\) of callbackSecrets\\(\\) failed \\(TypeError, ECONNRESET\\) at test/messaging/rotation/callback-secrets\\.test\\.ts:\\d+\\.$`,
        ),
      ),
    });
    expect(inspect(failure, { depth: 9, showHidden: true })).not.toContain(SECRET);
  });

  it("takes the encoding that makes keys of the texts, and refuses a text that is none (DLV-14)", async () => {
    const store = over({ encoding: "hex" });
    expect(store.encoding).toBe("hex");
    expect(await store.write("inbound", { ...SLOTS, current: "ab".repeat(16) }, 0)).toBe(true);
    expect(String(await failureOf(store.write("inbound", SLOTS, 1)))).toMatch(/"slots.current" is not valid hex/);
  });

  it.each([
    ["no load", { load: undefined }, /"load"/],
    ["a save that is no function", { save: {} }, /"save"/],
    ["a misspelled option", { refreshMS: 1_000 }, /Did you mean "refreshMs"/],
    ["an unknown encoding", { encoding: "ascii" }, /"encoding" must be one of "utf8", "base64", "hex"/],
    ["a pause of an hour", { refreshMs: 3_600_000 }, /"refreshMs"/],
  ])("refuses %s", (_, spoilt, message) => {
    expect(() => over(spoilt)).toThrow(message);
  });
});
