/** Keyrings made of what a secret store holds, and how a receiver reads them. */
import { describe, expect, it } from "vitest";
import { KeyringError, SetupError } from "../../../src/errors.ts";
import { HmacKey } from "../../../src/sources/hmac-key.ts";
import { compileKeys, type Keyring, type SourceKeys } from "../../../src/sources/keys.ts";
import {
  isSecretStore,
  latestReads,
  storedKeyring,
  storedKeyrings,
} from "../../../src/sources/messaging/keyring-source.ts";
import type { SecretSlots, SecretStore, StoredSecrets } from "../../../src/sources/messaging/secret-store.ts";
import { STRICT_RULES } from "../../../src/sources/secret.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { memorySecrets } from "../../../src/tools/testing/memory-secrets.ts";
import { atHand, MINUTE, settle, setUp } from "../keyring-provider-setup.ts";
import { NOW, OTHER_SECRET, SECRET } from "./openssl.ts";

const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const NEXT = { secret: `${SECRET}-next`, since: NOW, rotatedAtBefore: null, hadSecret: true };

const slots = (overrides: Partial<SecretSlots> = {}): SecretSlots => ({
  current: null,
  previous: [],
  next: null,
  rotatedAt: null,
  ...overrides,
});

async function compiled(kinds: { inbound?: Partial<SecretSlots>; delivery?: Partial<SecretSlots> }, now = NOW) {
  const secrets = memorySecrets();
  if (kinds.inbound !== undefined) await secrets.write("inbound", slots(kinds.inbound), 0);
  if (kinds.delivery !== undefined) await secrets.write("delivery", slots(kinds.delivery), 0);
  return compileKeys(await storedKeyring(secrets, now), STRICT_RULES, now);
}

const grants = (keyring: SourceKeys) =>
  keyring.keys.flatMap((key) => key.grants.map(({ slot, kind }) => `${slot} ${kind}`));

describe("storedKeyring()", () => {
  it("lets each kind's secrets vouch for that kind alone, in all slots (RCV-8, RCV-9)", async () => {
    const keyring = await compiled({
      inbound: { current: SECRET },
      delivery: { current: OTHER_SECRET, previous: [{ secret: `${SECRET}-old`, validUntil: NOW + HOUR }], next: NEXT },
    });
    expect(grants(keyring)).toEqual(["current inbound", "current delivery", "previous delivery", "next delivery"]);
  });

  it("leaves previous secrets out from their end on, without a warning (RCV-9)", async () => {
    const delivery = { current: SECRET, previous: [{ secret: OTHER_SECRET, validUntil: NOW + HOUR }] };
    expect(grants(await compiled({ delivery }, NOW + HOUR - 1))).toHaveLength(2);
    const ended = await compiled({ delivery }, NOW + HOUR);
    expect(grants(ended)).toEqual(["current delivery"]);
    expect(ended.warnings).toEqual([]);
  });

  it("works with a next secret alone, as next: a first rotation is under way (RCV-9)", async () => {
    expect(grants(await compiled({ delivery: { next: NEXT } }))).toEqual(["next delivery"]);
  });

  it.each([
    ["nothing is stored", {}],
    ["both kinds are empty", { inbound: {}, delivery: {} }],
  ])("refuses to guess when %s, naming what stores a secret", async (_, kinds) => {
    const failure = await compiled(kinds).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(KeyringError);
    expect(String(failure)).toMatch(/adoptSecret\(\).*rotateSecret\(\)/);
  });

  it("takes the same secret for both kinds as one key", async () => {
    const keyring = await compiled({ inbound: { current: SECRET }, delivery: { current: SECRET } });
    expect(keyring.keys).toHaveLength(1);
    expect(grants(keyring)).toEqual(["current inbound", "current delivery"]);
  });

  it("gives every reader of the same secrets the same version, and another one after a change", async () => {
    const delivery = { current: SECRET };
    const { version } = await compiled({ delivery });
    expect((await compiled({ delivery }, NOW + HOUR)).version).toBe(version);
    expect((await compiled({ delivery: { ...delivery, next: NEXT } })).version).not.toBe(version);
  });

  it("makes keys of the texts by the store's encoding (DLV-14)", async () => {
    const secrets = memorySecrets({ encoding: "hex" });
    const text = "00ff".repeat(8);
    const given = { current: text, previous: [{ secret: `${text}01`, validUntil: NOW + HOUR }] };
    await secrets.write("delivery", slots({ ...given, next: { ...NEXT, secret: `${text}02` } }), 0);
    const { keys } = compileKeys(await storedKeyring(secrets, NOW), STRICT_RULES, NOW);
    const body = Buffer.from("{}");
    const expected = ["", "01", "02"].map((end) => new HmacKey(Buffer.from(text + end, "hex")).digest("1.", body));
    expect(keys.map((key) => key.hmac("sha256", "1.", body))).toEqual(expected);
  });

  it("leaves out the previous secrets that end soonest, of both kinds, where there would be more than 8", async () => {
    const replaced = (name: string, hours: readonly number[]) =>
      hours.map((each) => ({ secret: `${SECRET}-${name}-${each}`, validUntil: NOW + each * HOUR }));
    const keyring = await compiled({
      inbound: { current: SECRET, previous: replaced("i", [5, 3, 1]) },
      delivery: { current: OTHER_SECRET, previous: replaced("d", [6, 4, 2]), next: NEXT },
    });
    const ends = keyring.keys.map(({ validUntil }) => (validUntil - NOW) / HOUR).filter(Number.isFinite);
    expect(keyring.keys).toHaveLength(8);
    expect(ends).toEqual([5, 3, 6, 4, 2]);
  });

  it("takes a secret that both kinds replaced as one of the 8", async () => {
    const shared = { secret: `${SECRET}-shared`, validUntil: NOW + HOUR };
    const others = [2, 3, 4, 5].map((each) => ({ secret: `${SECRET}-${each}`, validUntil: NOW + each * HOUR }));
    const keyring = await compiled({
      inbound: { current: SECRET, previous: [shared] },
      delivery: { current: OTHER_SECRET, previous: [...others, shared], next: NEXT },
    });
    expect(keyring.keys).toHaveLength(8);
    expect(grants(keyring).filter((grant) => grant.startsWith("previous"))).toHaveLength(6);
  });

  it("takes a previous secret that seems to end too late, as to a clock that is behind, for a week (RCV-9)", async () => {
    const delivery = { current: SECRET, previous: [{ secret: OTHER_SECRET, validUntil: NOW + 8 * DAY + 1 }] };
    const { keys, version } = await compiled({ delivery });
    expect(keys[1]?.validUntil).toBeGreaterThan(NOW + 7 * DAY);
    expect(keys[1]?.validUntil).toBeLessThanOrEqual(NOW + 8 * DAY);
    expect((await compiled({ delivery }, NOW - 5 * MINUTE)).version).toBe(version);
    // The latest end that is plausible.
    const latest = { current: SECRET, previous: [{ secret: OTHER_SECRET, validUntil: NOW + 8 * DAY }] };
    expect((await compiled({ delivery: latest })).keys[1]?.validUntil).toBe(NOW + 8 * DAY);
  });
});

const at = (revision: number): StoredSecrets => ({ ...slots({ current: SECRET }), revision });

describe("latestReads()", () => {
  it("takes nothing for null, also from a store that gives undefined, and remembers what each kind had before it", async () => {
    let answer: StoredSecrets | null | undefined = at(2);
    const read = async () => answer as StoredSecrets | null;
    const reads = latestReads({ ...memorySecrets({ encoding: "hex" }), read }, createFakeClock());
    expect(reads.encoding).toBe("hex");
    expect(await reads.read("inbound")).toEqual(at(2));
    for (const none of [null, undefined]) {
      answer = none;
      expect(await reads.read("inbound")).toBeNull();
    }
    answer = at(1);
    expect(await reads.read("delivery")).toEqual(at(1));
    await expect(reads.read("inbound")).rejects.toMatchObject({
      code: "keyring_unavailable",
      message:
        "It returned an older revision of the inbound secrets (1) than before (2): the store must read what was written last. If it was restored, the older one counts after a minute.",
    });
  });
});

const stored = (current: string) => slots({ current });

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
  const source = storedKeyrings(secrets, STRICT_RULES, { clock, logger });
  const fail = (error: Error | null) => {
    failure = error;
  };
  return { store, source, clock, log, fail, reads: () => reads };
}

describe("isSecretStore()", () => {
  it("tells a store from a keyring", () => {
    expect(isSecretStore(memorySecrets())).toBe(true);
    for (const keyring of [SECRET, { current: SECRET }, { inbound: SECRET, delivery: SECRET }, () => SECRET])
      expect(isSecretStore(keyring)).toBe(false);
  });
});

describe("storedKeyrings()", () => {
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

  it.each([stored(OTHER_SECRET), slots({ next: { ...NEXT, secret: OTHER_SECRET, hadSecret: false } })])(
    "warns of no kind that has a secret, current or next (%#)",
    async (slots) => {
      const { source, store, log } = await setUpStore();
      await store.write("inbound", slots, 0);
      await source.read({});
      expect(log).toEqual([]);
    },
  );

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
    const source = storedKeyrings(secrets, STRICT_RULES, { clock, logger });
    await expect((async () => source.read({}))()).rejects.toThrow(KeyringError);
    await secrets.write("inbound", stored(SECRET), 0);
    await clock.advance(100);
    expect((await source.read({})).keys).toHaveLength(1);
  });

  it("refuses a store that is read without a pause", () => {
    const { clock, logger } = setUp(() => undefined);
    const make = () => storedKeyrings({ ...memorySecrets(), refreshMs: 0 }, STRICT_RULES, { clock, logger });
    expect(make).toThrow(SetupError);
    expect(make).toThrow(/"secrets.refreshMs" must be/);
  });
});

describe("storedKeyrings() of a store that reads an older revision after a newer one", () => {
  /** A source over a store of delivery secrets whose answers the test gives. */
  function setUpAnswers() {
    const { clock, log, logger } = setUp(() => undefined);
    let answer: StoredSecrets | null = null;
    const read: SecretStore["read"] = async (kind) => (kind === "delivery" ? answer : null);
    const source = storedKeyrings({ ...memorySecrets(), read }, STRICT_RULES, { clock, logger });
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
