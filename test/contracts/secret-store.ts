/** The published contract suite for secret stores: what every store of webhook secrets must do. */

import type { SecretSlots, SecretStore } from "../../src/sources/messaging/secret-store.ts";
import type { WebhookKind } from "../../src/sources/messaging/webhook-kind.ts";
import { type ContractExpect, it } from "./store-bench.ts";

/** A secret store made for one test. */
export interface SecretStoreUnderTest {
  readonly store: SecretStore;
  /** Another store on the same place, as another process would make it. The contract closes it. */
  reopen(): Promise<SecretStore>;
  /** Removes the place. Every store made on it has been closed. */
  dispose(): Promise<void>;
}

export interface SecretStoreContractOptions {
  /** Registers a test: `test` of Vitest or Jest, or of `node:test` with a wrapper. */
  readonly test: (name: string, body: () => Promise<void>) => unknown;
  /** The `expect` of Vitest or Jest. */
  readonly expect: ContractExpect;
  /** Makes a store of the default encoding, on a place of its own that holds nothing yet. Called once a test. */
  readonly makeStore: () => Promise<SecretStoreUnderTest>;
}

interface Bench extends SecretStoreUnderTest {
  readonly expect: ContractExpect;
}

interface SecretCase {
  readonly name: string;
  run(bench: Bench): Promise<void>;
}

const NOW = 1_760_000_000_000;
const SECRET = "a-webhook-signing-secret-of-32-b";
const OTHER = "another-signing-secret-of-32-byt";
const RACERS = 8;

/**
 * Registers the tests that every secret store must pass: revisions, compare-and-set in races of two handles, separate kinds,
 * secrets of all kinds of text, durability after a close, and refused values.
 *
 * @example
 * import { expect, test } from "vitest";
 * const makeStore = async () => {
 *   const store = memorySecrets();
 *   return { store, reopen: async () => store, dispose: async () => {} };
 * };
 * secretStoreContract({ test, expect, makeStore });
 */
export function secretStoreContract({ test, expect, makeStore }: SecretStoreContractOptions): void {
  for (const { name, run } of CASES) {
    test(name, async () => {
      const place = await makeStore();
      const opened: SecretStore[] = [place.store];
      const reopen = async () => {
        const store = await place.reopen();
        opened.push(store);
        return store;
      };
      try {
        await run({ ...place, reopen, expect });
      } finally {
        for (const store of opened) await store.close();
        await place.dispose();
      }
    });
  }
}

const slots = (overrides: Partial<SecretSlots> = {}): SecretSlots => ({
  current: SECRET,
  previous: [],
  next: null,
  rotatedAt: null,
  ...overrides,
});

const FULL = slots({
  previous: [
    { secret: OTHER, validUntil: NOW + 2 },
    { secret: `${OTHER}-older`, validUntil: NOW + 1 },
  ],
  next: { secret: `${SECRET}-next`, since: NOW, rotatedAtBefore: NOW - 1, hadSecret: true },
  rotatedAt: NOW - 1,
});

const CASES: readonly SecretCase[] = [
  it("holds nothing at first, of either kind", async ({ store, expect }) => {
    expect(await store.read("inbound")).toBe(null);
    expect(await store.read("delivery")).toBe(null);
  }),
  it("returns all slots as written, with revisions that grow by one (RCV-9)", async ({ store, expect }) => {
    expect(await store.write("delivery", FULL, 0)).toBe(true);
    expect(await store.read("delivery")).toEqual({ ...FULL, revision: 1 });
    expect(await store.write("delivery", slots(), 1)).toBe(true);
    expect(await store.read("delivery")).toEqual({ ...slots(), revision: 2 });
  }),
  it("holds empty slots, and a next secret alone", async ({ store, expect }) => {
    const first = slots({
      current: null,
      next: { secret: SECRET, since: NOW, rotatedAtBefore: null, hadSecret: false },
    });
    expect(await store.write("inbound", first, 0)).toBe(true);
    expect(await store.read("inbound")).toEqual({ ...first, revision: 1 });
    expect(await store.write("inbound", slots({ current: null }), 1)).toBe(true);
    expect(await store.read("inbound")).toEqual({ ...slots({ current: null }), revision: 2 });
  }),
  it("keeps the kinds apart", async ({ store, expect }) => {
    await store.write("inbound", slots(), 0);
    expect(await store.read("delivery")).toBe(null);
    expect(await store.write("delivery", slots({ current: OTHER }), 0)).toBe(true);
    expect(await store.write("delivery", FULL, 1)).toBe(true);
    expect(await store.read("inbound")).toEqual({ ...slots(), revision: 1 });
  }),
  it("refuses to write over a revision that is not the latest", async ({ store, expect }) => {
    expect(await store.write("delivery", slots(), 1)).toBe(false);
    expect(await store.read("delivery")).toBe(null);
    await store.write("delivery", slots(), 0);
    await store.write("delivery", slots({ current: OTHER }), 1);
    for (const revision of [0, 1, 3]) expect(await store.write("delivery", FULL, revision)).toBe(false);
    expect(await store.read("delivery")).toEqual({ ...slots({ current: OTHER }), revision: 2 });
  }),
  it("lets exactly one of many concurrent writes over the same revision win, on two handles", async ({
    store,
    reopen,
    expect,
  }) => {
    const handles = [store, await reopen()];
    for (let revision = 0; revision < 4; revision++) {
      const texts = Array.from({ length: RACERS }, (_, racer) => `${SECRET} ${revision} ${racer}`);
      const won = await Promise.all(
        texts.map((current, racer) => handles[racer % 2]?.write("delivery", slots({ current }), revision)),
      );
      const winners = texts.filter((_, racer) => won[racer] === true);
      expect(winners.length).toBe(1);
      const left = { ...slots({ current: winners[0] ?? null }), revision: revision + 1 };
      for (const handle of handles) expect(await handle.read("delivery")).toEqual(left);
    }
  }),
  it("shows another handle's write without being opened again", async ({ store, reopen, expect }) => {
    const other = await reopen();
    await store.write("inbound", slots(), 0);
    expect(await other.read("inbound")).toEqual({ ...slots(), revision: 1 });
    expect(await other.write("inbound", slots({ current: OTHER }), 1)).toBe(true);
    expect(await store.read("inbound")).toEqual({ ...slots({ current: OTHER }), revision: 2 });
  }),
  it("keeps acknowledged writes after a close, and can be closed twice", async ({ store, reopen, expect }) => {
    await store.write("delivery", FULL, 0);
    await Promise.all([store.close(), store.close()]);
    await store.close();
    expect(await (await reopen()).read("delivery")).toEqual({ ...FULL, revision: 1 });
  }),
  it("keeps every character of secrets: other scripts, emoji, NUL, line breaks, quotes, 16 bytes, 32 bytes and 4 KiB (DLV-14)", async ({
    store,
    expect,
  }) => {
    const texts = [
      "geheim-ß-秘密-🔑-ключ",
      "a\0b\r\nc\t\"d'\\e\u2028f  ",
      "16 bytes exactly",
      SECRET,
      "k".repeat(4_096),
      "\u00e9 is not e\u0301, and stays so",
    ];
    for (const [revision, current] of texts.entries()) {
      expect(await store.write("delivery", slots({ current }), revision)).toBe(true);
      expect((await store.read("delivery"))?.current).toBe(current);
    }
  }),
  it("returns a separate copy to each reader", async ({ store, expect }) => {
    const given = { ...FULL, previous: [...FULL.previous] };
    await store.write("delivery", given, 0);
    given.previous.pop();
    const previous = (await store.read("delivery"))?.previous as unknown[] | undefined;
    if (!Object.isFrozen(previous)) previous?.pop();
    expect(await store.read("delivery")).toEqual({ ...FULL, revision: 1 });
  }),
  it("refuses invalid slots, kinds and revisions, and writes nothing", async ({ store, expect }) => {
    const junk: unknown[] = [
      slots({ current: "too short" }),
      { ...slots(), curent: SECRET },
      { current: SECRET, previous: [] },
      slots({ previous: [{ secret: OTHER, validUntil: Number.NaN }] }),
      null,
    ];
    for (const value of junk) expect(await rejects(store.write("delivery", value as SecretSlots, 0))).toBe(true);
    expect(await rejects(store.write("outbound" as WebhookKind, slots(), 0))).toBe(true);
    expect(await rejects(store.write("delivery", slots(), -1))).toBe(true);
    expect(await rejects(store.read("outbound" as WebhookKind))).toBe(true);
    expect(await store.read("delivery")).toBe(null);
  }),
  it("reports how often to read it, how texts become keys, and which receivers share it, if known (DLV-14)", async ({
    store,
    expect,
  }) => {
    expect(store.refreshMs >= 100 && store.refreshMs <= 30_000).toBe(true);
    expect(["utf8", "base64", "hex"].includes(store.encoding)).toBe(true);
    const receivers = await store.receivers();
    expect(receivers === null || Array.isArray(receivers)).toBe(true);
  }),
];

async function rejects(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => false,
    () => true,
  );
}
