import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { KeyringError, SetupError } from "../../src/errors.ts";
import type { Clock } from "../../src/internal/clock.ts";
import type { Logger } from "../../src/internal/logger.ts";
import { keyringContext, keyringsFrom, LookUpsCrowded } from "../../src/sources/keyring-provider.ts";
import { compileKeys, type Keyring, type KeyringProvider } from "../../src/sources/keys.ts";
import { storedKeyrings } from "../../src/sources/messaging/keyring-source.ts";
import type { SecretStore } from "../../src/sources/messaging/secret-store.ts";
import { STRICT_RULES } from "../../src/sources/secret.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { memorySecrets } from "../../src/tools/testing/memory-secrets.ts";
import { atHand, MINUTE, pending, settle, setUp } from "./keyring-provider-setup.ts";
import { NOW, OTHER_SECRET, SECRET } from "./messaging/openssl.ts";

const times = (count: number, text: string) => Array.from({ length: count }, () => text);
const crowded = (error: unknown) => {
  if (!(error instanceof LookUpsCrowded)) return "failed";
  expect(error.message).toContain("make the keyring provider faster");
  return "crowded";
};
const ended = (read: unknown) => Promise.resolve(read).then(() => "read", crowded);

describe("keyringsFrom() of a value", () => {
  it("is synchronous, never re-read, and compiled at once", async () => {
    const clock = createFakeClock();
    const { log } = setUp(() => SECRET);
    const warnings: string[] = [];
    const logger: Logger = { debug() {}, info() {}, error() {}, warn: (_, message) => void warnings.push(message) };
    const source = keyringsFrom({ inbound: "dangerouslyUnsigned", delivery: SECRET }, STRICT_RULES, { clock, logger });
    const keyring = atHand(source.read({}));
    expect(atHand(source.read({ tenant: "a" }))).toBe(keyring);
    expect(source.version()).toBe(keyring.version);
    await clock.advance(1);
    expect(source.reread({}, keyring, clock.monotonic())).toBeNull();
    expect(source.isFailing).toBe(false);
    expect(warnings).toHaveLength(1);
    expect(log).toEqual([]);
    expect(() => keyringsFrom("", STRICT_RULES, { clock, logger })).toThrow(SetupError);
  });
});

describe("keyringsFrom() of a provider", () => {
  it("reads of 64 unknown names at once at most, whatever is invented, and of tenants always", async () => {
    const { answer, waiting } = pending();
    let hold = false;
    const { source, clock, reads } = setUp((context) =>
      hold ? answer() : context.tenant?.startsWith("t") ? SECRET : undefined,
    );
    const read = (tenant: string) => ended(source.read({ tenant }));
    for (let index = 0; index < 70; index++) await Promise.all([read(`t${index}`), read(`junk${index}`)]);
    hold = true;
    await clock.advance(MINUTE);
    reads.length = 0;
    const ends = [];
    for (let index = 0; index < 70; index++) ends.push(read(`junk${index}`));
    // Whoever asks for one of the 64 waits for the same read.
    ends.push(read("junk0"));
    for (let index = 0; index < 70; index++) ends.push(read(`t${index}`));
    await settle();
    expect(reads).toHaveLength(64 + 70);
    for (const { resolve } of waiting) resolve(SECRET);
    const crowd = Array.from({ length: 6 }, () => "crowded");
    expect((await Promise.all(ends)).filter((end) => end === "crowded")).toEqual(crowd);
    hold = false;
    expect(await read("junk69")).toBe("read");
  });

  it("lets 128 requests wait for one look-up, and as many again for the next", async () => {
    const { answer, waiting } = pending();
    const { source } = setUp(answer);
    for (const tenant of ["a", "b"]) {
      const asked = Array.from({ length: 130 }, () => ended(source.read({ tenant })));
      await settle();
      waiting.at(-1)?.resolve(undefined);
      expect(await Promise.all(asked)).toEqual([...times(128, "read"), ...times(2, "crowded")]);
    }
  });

  it("lets 512 requests wait for look-ups of strangers, and as many for those of tenants", async () => {
    const { answer, waiting } = pending();
    let hold = false;
    const { source, clock } = setUp(() => (hold ? answer() : SECRET));
    const tenants = ["a", "b", "c", "d", "e"];
    for (const tenant of tenants) await source.read({ tenant });
    hold = true;
    await clock.advance(MINUTE);
    for (const round of ["first", "second"]) {
      const strangers = tenants.flatMap((name) =>
        times(128, `${round} ${name}`).map((tenant) => ended(source.read({ tenant }))),
      );
      const known = tenants.flatMap((name) => times(128, name).map((tenant) => ended(source.read({ tenant }))));
      await settle();
      for (const { resolve } of waiting) resolve(SECRET);
      for (const asked of [strangers, known]) {
        expect(await Promise.all(asked)).toEqual([...times(512, "read"), ...times(128, "crowded")]);
      }
      await clock.advance(MINUTE);
    }
  });

  it.each<[string, Keyring, RegExp]>([
    ["a plain secret", SECRET, /Option "(secrets)" was read for a tenant, and does not say whose it is/],
    [
      "a secret of a kind",
      { inbound: SECRET, delivery: SECRET },
      /Option "(secrets.inbound)" was read for a tenant, and does not say whose it is/,
    ],
    [
      "a previous secret",
      {
        current: { secret: SECRET, tenant: "a" },
        previous: { secret: OTHER_SECRET, validUntil: 1_760_000_100_000 },
      },
      /Option "(secrets.previous)" was read for a tenant, and does not say whose it is/,
    ],
    [
      "an unsigned kind",
      { inbound: "dangerouslyUnsigned", delivery: { secret: SECRET, tenant: "a" } },
      /A tenant's inbound events are unsigned/,
    ],
  ])("refuses %s that does not name its tenant", async (_, keyring, says) => {
    const { log, logger, clock } = setUp(() => undefined);
    const nameless = keyringsFrom(() => keyring, STRICT_RULES, { clock, logger });
    const failed = await Promise.resolve(nameless.read({ tenant: "a" })).catch((error: Error) => error);
    expect(failed).toMatchObject({ name: "KeyringError", cause: { name: "SetupError", code: "invalid_secret" } });
    const cause = "cause" in failed ? (failed.cause as SetupError) : null;
    const [, option = "secrets.inbound"] = says.exec(cause?.message ?? "") ?? [];
    expect(cause).toMatchObject({ message: expect.stringMatching(says), fields: { option } });
    expect(await nameless.read({ route: "/hooks" })).toMatchObject({ version: expect.any(String) });
    expect(log[0]).toMatch(says);
    expect(log.join()).not.toContain(SECRET);
  });

  it("takes a tenant's secret that says that it is for all", async () => {
    const { logger, clock } = setUp(() => undefined);
    const source = keyringsFrom(() => ({ secret: SECRET, tenant: null }), STRICT_RULES, { clock, logger });
    expect((await source.read({ tenant: "a" })).keys).toHaveLength(1);
  });

  it("refreshes in the background after 30 s, serving the old keyring meanwhile", async () => {
    let secret = SECRET;
    const { source, clock, reads } = setUp(async () => secret);
    const first = await source.read({});
    secret = OTHER_SECRET;
    await clock.advance(29_999);
    expect(atHand(source.read({}))).toBe(first);
    expect(reads).toHaveLength(1);
    await clock.advance(1);
    expect(atHand(source.read({}))).toBe(first);
    await settle();
    expect(reads).toHaveLength(2);
    expect(atHand(source.read({})).version).not.toBe(first.version);
    expect(source.version()).toBe(atHand(source.read({})).version);
  });

  it("reads before it uses a keyring that nothing refreshed for a minute: it may hold a revoked secret", async () => {
    let secret = SECRET;
    const { source, clock } = setUp(async () => secret);
    const first = await source.read({});
    secret = OTHER_SECRET;
    await clock.advance(MINUTE);
    expect((await source.read({})).version).not.toBe(first.version);
  });

  it("remembers an unknown tenant for 10 s, with a keyring that matches nothing", async () => {
    let known = false;
    const { source, clock, reads } = setUp(async () => (known ? SECRET : undefined));
    const keyring = await source.read({ tenant: "x" });
    expect(keyring.keys).toEqual([]);
    known = true;
    await clock.advance(9_999);
    expect(atHand(source.read({ tenant: "x" })).keys).toEqual([]);
    expect(reads).toHaveLength(1);
    await clock.advance(1);
    expect((await source.read({ tenant: "x" })).keys).toHaveLength(1);
    expect(keyring.keys).toEqual([]);
  });

  it("keeps at most 1,000 tenants, and invented names evict none of them", async () => {
    const { source, reads } = setUp(async ({ tenant }) => (tenant?.startsWith("t") ? SECRET : undefined));
    for (let index = 0; index < 1000; index++) await source.read({ tenant: `t${index}` });
    for (let index = 0; index < 3000; index++) await source.read({ tenant: `junk${index}` });
    reads.length = 0;
    for (let index = 0; index < 1000; index++) atHand(source.read({ tenant: `t${index}` }));
    expect(reads).toHaveLength(0);
    await source.read({ tenant: "t1000" });
    expect(source.read({ tenant: "t0" })).toBeInstanceOf(Promise);
    await settle();
    expect(reads).toEqual([{ tenant: "t1000" }, { tenant: "t0" }]);
    reads.length = 0;
    await source.read({ tenant: "junk0" });
    expect(reads).toHaveLength(1);
  });

  it.each<[string, KeyringProvider]>([
    ["rejects", () => Promise.reject(new Error(`no: ${SECRET}`))],
    [
      "throws",
      () => {
        throw new Error(`no: ${SECRET}`);
      },
    ],
    ["gives a keyring that is wrong", () => "short"],
    ["gives null", () => null as unknown as undefined],
  ])(
    "serves the last keyring for 10 minutes when the provider %s, then KeyringError, never an empty one",
    async (_, fail) => {
      let broken = false;
      const { source, clock, log } = setUp((context) => (broken ? fail(context) : SECRET));
      const first = await source.read({});
      broken = true;
      await clock.advance(30_000);
      for (let elapsed = 30_000; elapsed < 10 * MINUTE; elapsed += 10_000) {
        expect(atHand(source.read({}))).toBe(first);
        await clock.advance(10_000);
      }
      await expect(source.read({})).rejects.toThrow(KeyringError);
      await expect(source.read({})).rejects.toMatchObject({ code: "keyring_unavailable", cause: expect.any(Error) });
      expect(log.filter((line) => line.startsWith("error"))).toHaveLength(1);
      expect(log.join()).not.toContain(SECRET);
      broken = false;
      await clock.advance(5_000);
      expect(await source.read({})).toBe(first);
      expect(log.at(-1)).toMatch(/works again/);
    },
  );

  it("asks a failing provider at most every 5 s", async () => {
    const { source, clock, reads } = setUp(() => Promise.reject(new Error("no")));
    for (let elapsed = 0; elapsed < MINUTE; elapsed += 100) {
      await expect(source.read({})).rejects.toThrow(KeyringError);
      await clock.advance(100);
    }
    expect(reads).toHaveLength(12);
  });

  it("gives the provider 2 s, and drops an answer that comes later", async () => {
    const { answer, waiting } = pending();
    const { source, clock, log } = setUp(answer);
    const read = Promise.resolve(source.read({})).catch((error: unknown) => error);
    await clock.advance(1_999);
    expect(log).toEqual([]);
    await clock.advance(1);
    expect(await read).toBeInstanceOf(KeyringError);
    expect(log.join()).toMatch(/within 2000 ms/);
    waiting[0]?.resolve(SECRET);
    await settle();
    await expect(source.read({})).rejects.toThrow(KeyringError);
  });

  it("keeps nothing of a read that ends after close()", async () => {
    const { answer, waiting } = pending();
    const { source } = setUp(answer);
    const read = source.read({});
    source.close();
    await settle();
    waiting[0]?.resolve(SECRET);
    expect((await read).keys).toHaveLength(1);
    expect(source.version()).toBe("none");
  });

  it("logs the warnings of a keyring once per change", async () => {
    let secret = `${SECRET}\n`;
    const { source, clock, log } = setUp(async () => secret);
    await source.read({});
    await clock.advance(MINUTE);
    await source.read({});
    expect(log).toEqual([
      'warn {"code":"keyring_warning"} Option "secrets" starts or ends with white space, which is part of the secret.',
    ]);
    secret = `${OTHER_SECRET}\n`;
    await clock.advance(MINUTE);
    await source.read({});
    expect(log).toHaveLength(2);
    expect(log.join()).not.toContain(SECRET);
  });
});

/** A provider that fails while it is told to. */
function switched(answer: () => string | undefined = () => SECRET) {
  const down = new Error("down");
  const state = { works: true };
  return { state, down, ...setUp(() => (state.works ? answer() : Promise.reject(down))) };
}

describe("a source of keyrings", () => {
  it("passes on whether a secret store's reads fail, and reads no more once it is closed", async () => {
    const { clock, logger } = setUp(() => undefined);
    let reads = 0;
    const failing: SecretStore = { ...memorySecrets(), read: () => Promise.reject(new Error(`no ${++reads}`)) };
    const source = storedKeyrings(failing, STRICT_RULES, { clock, logger });
    expect(source.isFailing).toBe(false);
    await source.background?.refresh();
    expect(source.isFailing).toBe(true);
    source.close();
    const before = reads;
    await source.background?.refresh();
    expect(reads).toBe(before);
  });

  it("logs a failure once, saying whether something serves meanwhile, and its end", async () => {
    const { source, state, log, clock } = switched();
    state.works = false;
    await Promise.resolve(source.read({})).catch(() => {});
    const failed = (servesLast: boolean) =>
      expect.stringMatching(
        new RegExp(
          `^error {"code":"keyring_unavailable","servesLast":${servesLast},"error":"Error","at":\\[.*keyring-provider\\.test\\.ts:.*\\]} ` +
            "The keyring provider failed\\. It threw an error\\.$",
        ),
      );
    expect(log).toEqual([failed(false)]);
    state.works = true;
    await clock.advance(5_000);
    await source.read({});
    expect(log).toEqual([failed(false), "info {} The keyring provider works again."]);
    state.works = false;
    await clock.advance(30_000);
    source.read({});
    await settle();
    expect(log.at(-1)).toEqual(failed(true));
  });

  it("says in its errors what is the matter, with the provider's own as the cause", async () => {
    const { source, state, down, clock } = switched();
    const seen = await source.read({});
    state.works = false;
    await clock.advance(2_000);
    await expect(source.reread({}, seen, clock.monotonic())).rejects.toMatchObject({
      cause: down,
      message:
        "A signature matches none of the cached secrets, and the keyring provider, which may know a newer one, fails: such deliveries get 503 until it works again.",
    });
    await clock.advance(600_000);
    await expect(source.read({})).rejects.toMatchObject({
      cause: down,
      message:
        "The keyring provider returns no secrets now, and none of the last 10 minutes are cached: deliveries get 503 until it works again.",
    });
    source.close();
    const message = "The receiver is closed, and so are its keyrings.";
    await expect(source.read({})).rejects.toMatchObject({ message });
    await expect(source.reread({}, seen, clock.monotonic())).rejects.toMatchObject({ message });
  });

  it("waits for the read of a tenant that was unknown before the provider failed", async () => {
    let isKnown = false;
    const { source, state, clock } = switched(() => (isKnown ? SECRET : undefined));
    expect((await source.read({})).keys).toEqual([]);
    state.works = false;
    await clock.advance(10_000);
    await expect(source.read({})).rejects.toMatchObject({ code: "keyring_unavailable" });
    state.works = true;
    isKnown = true;
    await clock.advance(5_000);
    expect((await source.read({})).keys).toHaveLength(1);
  });

  it("keeps tenants it knows when the provider fails for invented ones", async () => {
    const { source } = setUp(({ tenant }) => (tenant?.startsWith("t") ? SECRET : Promise.reject(new Error("down"))));
    for (let index = 0; index < 1000; index++) await source.read({ tenant: `t${index}` });
    await Promise.resolve(source.read({ tenant: "invented" })).catch(() => {});
    expect(atHand(source.read({ tenant: "t0" })).keys).toHaveLength(1);
  });

  it("leaves no timer behind an answer", async () => {
    const running = new Set<unknown>();
    const fake = createFakeClock();
    const clock: Clock = {
      ...fake,
      setTimeout(callback, ms) {
        const timer = fake.setTimeout(callback, ms);
        running.add(timer);
        return { ...timer, cancel: () => void (running.delete(timer) && timer.cancel()) };
      },
    };
    const { answer, waiting } = pending();
    const source = keyringsFrom(answer, STRICT_RULES, { clock, logger: setUp(() => undefined).logger });
    const read = source.read({});
    await settle();
    expect(running.size).toBe(1);
    waiting[0]?.resolve(SECRET);
    await read;
    await settle();
    expect(running.size).toBe(0);
  });

  it("names the secrets of several tenants by a digest of all their versions", async () => {
    const keyringOf = (tenant = "") => ({ current: { secret: `${SECRET}-${tenant}`, tenant } });
    const { source } = setUp(({ tenant }) => keyringOf(tenant));
    for (const tenant of ["a", "b", "c"]) await source.read({ tenant });
    const versions = ["a", "b", "c"].map((tenant) => compileKeys(keyringOf(tenant), STRICT_RULES, NOW).version).sort();
    const expected = createHash("sha256").update(versions.join("\n")).digest("hex").slice(0, 16);
    expect(source.version()).toBe(expected);
  });
});

describe("keyringContext()", () => {
  it("holds nothing but what was given", () => {
    expect(Object.keys(keyringContext({}))).toEqual([]);
    expect(Object.keys(keyringContext({ route: undefined, tenant: "a" }))).toEqual(["tenant"]);
    expect(Object.keys(keyringContext({ route: "a", tenant: undefined }))).toEqual(["route"]);
    expect(keyringContext({ route: "r", tenant: "t" })).toEqual({ route: "r", tenant: "t" });
  });
});
