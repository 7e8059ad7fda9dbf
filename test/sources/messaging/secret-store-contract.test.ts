/** The contract of secret stores, on those of this package and on spoilt ones. */
import { describe, expect, it, test } from "vitest";
import type { SecretStore } from "../../../src/sources/messaging/secret-store.ts";
import { memorySecrets } from "../../../src/tools/testing/memory-secrets.ts";
import { secretStoreContract } from "../../contracts/secret-store.ts";

const inMemory = (spoil: (store: SecretStore) => Partial<SecretStore> = () => ({})) => {
  const kept = memorySecrets();
  const store = { ...kept, ...spoil(kept) };
  return { store, reopen: async () => store, dispose: async () => {} };
};

describe("memorySecrets()", () => {
  secretStoreContract({ test, expect, makeStore: async () => inMemory() });

  it("returns the receivers of the given function", async () => {
    const sighting = { id: "a", host: "h", pid: 1, seenAt: 2, keyringVersion: "v", counters: {} };
    expect(await memorySecrets({ receivers: async () => [sighting] }).receivers()).toEqual([sighting]);
    expect(await memorySecrets().receivers()).toBeNull();
  });

  it.each([
    ["a misspelled option", { recievers: async () => [] }, /Did you mean "receivers"/],
    ["receivers that are not a function", { receivers: [] }, /"receivers" must be a function/],
    ["an unknown encoding", { encoding: "latin1" }, /"encoding" must be one of/],
    ["no pause between reads", { refreshMs: 0 }, /"refreshMs" must be/],
  ])("refuses %s", (_, options, message) => {
    expect(() => memorySecrets(options as never)).toThrow(message);
  });
});

describe("secretStoreContract()", () => {
  async function failuresOf(spoil: (store: SecretStore) => Partial<SecretStore>): Promise<string[]> {
    const cases: [string, () => Promise<void>][] = [];
    const register = (name: string, body: () => Promise<void>) => void cases.push([name, body]);
    secretStoreContract({ test: register, expect, makeStore: async () => inMemory(spoil) });
    const failed: string[] = [];
    for (const [name, body] of cases) await body().catch(() => failed.push(name));
    return failed;
  }

  it.each<[string, (store: SecretStore) => Partial<SecretStore>, RegExp]>([
    [
      "does not compare before it sets",
      ({ read, write }) => ({ write: async (kind, slots) => write(kind, slots, (await read(kind))?.revision ?? 0) }),
      /refuses to write over a revision/,
    ],
    ["mixes up the kinds", ({ read }) => ({ read: () => read("delivery") }), /keeps the kinds apart/],
    [
      "trims secrets",
      ({ write }) => ({ write: (kind, s, r) => write(kind, { ...s, current: s.current?.trim() ?? null }, r) }),
      /keeps every character/,
    ],
    [
      "drops previous secrets",
      ({ write }) => ({ write: (kind, s, r) => write(kind, { ...s, previous: s.previous.slice(0, 1) }, r) }),
      /returns all slots as written/,
    ],
    [
      "forgets when the last rotation ended",
      ({ write }) => ({ write: (kind, s, r) => write(kind, { ...s, rotatedAt: null }, r) }),
      /returns all slots as written/,
    ],
    ["does not say how texts become keys", () => ({ encoding: "" as "utf8" }), /how texts become keys/],
    [
      "takes anything",
      ({ write }) => ({ write: (kind, s, r) => write(kind, s, r).catch(() => true) }),
      /refuses invalid slots/,
    ],
    [
      "breaks when closed",
      () => ({ close: () => Promise.reject(new Error("closed")) }),
      /keeps acknowledged writes after a close/,
    ],
    ["has no pause", () => ({ refreshMs: 0 }), /how often to read it/],
  ])("detects a store that %s", async (_, spoil, name) => {
    expect((await failuresOf(spoil)).join("\n")).toMatch(name);
  });
});
