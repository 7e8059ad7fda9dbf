/** Keyrings of a secret store, as a receiver uses them. */
import { describe, expect, it } from "vitest";
import { KeyringError, SetupError, StoreError } from "../../src/errors.ts";
import type { Keyring } from "../../src/service/keyring.ts";
import { createKeyringSource } from "../../src/service/keyring-source.ts";
import type { SecretStore, StoredSecrets } from "../../src/service/secret-store.ts";
import { memorySecrets } from "../../src/testing/memory-secrets.ts";
import { atHand, MINUTE, settle, setUp } from "./keyring-source-setup.ts";
import { OTHER_SECRET, SECRET } from "./openssl.ts";

const stored = (current: string) => ({ current, previous: [], next: null, rotatedAt: null });

/** A source over a store in memory that holds one secret, and a switch that makes the store's reads fail. */
async function setUpStore(refreshMs = 1_000) {
  const store = memorySecrets({ refreshMs });
  await store.write("delivery", stored(SECRET), 0);
  let failure: Error | null = null;
  let reads = 0;
  const secrets: SecretStore = {
    ...store,
    read: (kind) => {
      reads++;
      return failure === null ? store.read(kind) : Promise.reject(failure);
    },
  };
  const { clock, log, logger } = setUp(() => undefined);
  const source = createKeyringSource(secrets, { clock, logger });
  const fail = (error: Error | null) => {
    failure = error;
  };
  return { store, source, clock, log, fail, reads: () => reads };
}

describe("createKeyringSource() of a secret store", () => {
  it("reads one keyring for all routes and tenants", async () => {
    const { source, reads } = await setUpStore();
    const keyring = await source.read({ tenant: "a" });
    expect(atHand(source.read({ route: "/b" }))).toBe(keyring);
    expect(reads()).toBe(2);
    expect(source.version()).toBe(keyring.version);
  });

  it("refreshes by the store's refreshMs instead of 30 s when requests come (RCV-9)", async () => {
    const { source, store, clock } = await setUpStore(200);
    const before = await source.read({});
    await store.write("delivery", stored(OTHER_SECRET), 1);
    await clock.advance(199);
    source.read({});
    await settle();
    expect(atHand(source.read({}))).toBe(before);
    await clock.advance(1);
    source.read({});
    await settle();
    expect(atHand(source.read({})).version).not.toBe(before.version);
  });

  it("warns once, at the first read, of the kind that has no secret and is refused", async () => {
    const { source, store, clock, log } = await setUpStore(200);
    const warnings = () => log.filter((line) => line.includes("keyring_warning"));
    expect(warnings()).toEqual([]);
    await source.read({});
    const said = expect.stringMatching(/warn.*No secret for inbound webhooks is stored: they are refused.*adoptSecret/);
    expect(warnings()).toEqual([said]);
    await store.write("delivery", stored(OTHER_SECRET), 1);
    await clock.advance(200);
    await source.background?.refresh();
    expect(warnings()).toEqual([said]);
  });

  it.each([
    { ...stored(OTHER_SECRET) },
    {
      ...stored(OTHER_SECRET),
      current: null,
      next: { secret: OTHER_SECRET, since: 1, rotatedAtBefore: null, hadSecret: false },
    },
  ])("warns of no kind that has a secret, current or next (%#)", async (slots) => {
    const { source, store, log } = await setUpStore();
    await store.write("inbound", slots, 0);
    await source.read({});
    expect(log).toEqual([]);
  });

  it("lets a request that waits to read again go on by the next background refresh", async () => {
    const { source, store, clock, reads } = await setUpStore();
    const seen = await source.read({});
    await clock.advance(1);
    const waiting = source.reread({}, seen, clock.monotonic());
    await store.write("delivery", stored(OTHER_SECRET), 1);
    await source.background?.refresh();
    expect((await waiting)?.version).not.toBe(seen.version);
    const before = reads();
    await clock.advance(2_000);
    expect(reads()).toBe(before);
  });

  it("rejects while nothing is stored, and works a refresh after the first write", async () => {
    const secrets = memorySecrets({ refreshMs: 100 });
    const { clock, logger } = setUp(() => undefined);
    const source = createKeyringSource(secrets, { clock, logger });
    await expect((async () => source.read({}))()).rejects.toThrow(KeyringError);
    await secrets.write("inbound", stored(SECRET), 0);
    await clock.advance(100);
    expect((await source.read({})).keys).toHaveLength(1);
  });

  it.each([
    ["lacks a method", { ...memorySecrets(), close: undefined }, /close\(\)/],
    ["has no refreshMs", { ...memorySecrets(), refreshMs: undefined }, /"secrets.refreshMs" must be a whole number/],
    ["has an unknown encoding", { ...memorySecrets(), encoding: "ascii" }, /"secrets.encoding" must be one of/],
    ["is read without a pause", { ...memorySecrets(), refreshMs: 0 }, /"secrets.refreshMs" must be/],
  ])("refuses a store that %s", (_, secrets, message) => {
    const { clock, logger } = setUp(() => undefined);
    const make = () => createKeyringSource(secrets as unknown as SecretStore, { clock, logger });
    expect(make).toThrow(SetupError);
    expect(make).toThrow(message);
  });
});

describe("createKeyringSource() of a store that reads an older revision after a newer one", () => {
  /** A source over a store of delivery secrets whose answers the test gives. */
  function setUpAnswers() {
    const { clock, log, logger } = setUp(() => undefined);
    let answer: StoredSecrets | null = null;
    const read: SecretStore["read"] = async (kind) => (kind === "delivery" ? answer : null);
    const source = createKeyringSource({ ...memorySecrets(), read }, { clock, logger });
    const give = async (current: string | null, revision: number) => {
      answer = current === null ? null : { ...stored(current), revision };
      await source.background?.refresh();
      return source.version();
    };
    return { clock, log, source, give };
  }

  it("goes on with the newer one, and answers 503 to what it does not fit (RCV-4, RCV-9)", async () => {
    const { source, clock, log, give } = setUpAnswers();
    const newer = await give(SECRET, 2);
    await clock.advance(1);
    expect(await give(OTHER_SECRET, 1)).toBe(newer);
    expect(log.join()).toContain("an older revision of the delivery secrets");
    await expect(source.reread({}, await source.read({}), clock.monotonic())).rejects.toThrow(KeyringError);
    expect(await give(OTHER_SECRET, 3)).not.toBe(newer);
  });

  it("takes the older one a minute after the newer one was last read: the store was restored", async () => {
    const { clock, give } = setUpAnswers();
    const newer = await give(SECRET, 2);
    await clock.advance(MINUTE);
    await give(SECRET, 2);
    await clock.advance(MINUTE - 1);
    expect(await give(OTHER_SECRET, 1)).toBe(newer);
    await clock.advance(1);
    expect(await give(OTHER_SECRET, 1)).not.toBe(newer);
    expect(await give(SECRET, 2)).toBe(newer);
  });
});

describe("version()", () => {
  it("of several tenants with equal secrets is that of the one keyring", async () => {
    const answers: Record<string, Keyring> = { a: SECRET, b: SECRET, c: OTHER_SECRET };
    const { source } = setUp(({ tenant }) => answers[tenant ?? ""]);
    const { version } = await source.read({ tenant: "a" });
    await source.read({ tenant: "b" });
    expect(source.version()).toBe(version);
    await source.read({ tenant: "c" });
    expect(source.version()).not.toBe(version);
  });
});
