/** What a source of keyrings says of its state: whether reading fails, in its log, its errors and its version. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/internal/clock.ts";
import { compileKeyring } from "../../src/service/keyring.ts";
import { createKeyringSource } from "../../src/service/keyring-source.ts";
import type { SecretStore } from "../../src/service/secret-store.ts";
import { keyringContext } from "../../src/sources/keyring-provider.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { memorySecrets } from "../../src/testing/memory-secrets.ts";
import { atHand, pending, settle, setUp } from "./keyring-source-setup.ts";
import { NOW, SECRET } from "./openssl.ts";

/** A provider that fails while it is told to. */
function switched(answer: () => string | undefined = () => SECRET) {
  const down = new Error("down");
  const state = { works: true };
  return { state, down, ...setUp(() => (state.works ? answer() : Promise.reject(down))) };
}

describe("a source of keyrings", () => {
  it("says whether the last read failed", async () => {
    const { source, state, clock } = switched();
    expect(source.isFailing).toBe(false);
    await source.read({});
    expect(source.isFailing).toBe(false);
    state.works = false;
    await clock.advance(30_000);
    source.read({});
    await settle();
    expect(source.isFailing).toBe(true);
    state.works = true;
    await clock.advance(5_000);
    source.read({});
    await settle();
    expect(source.isFailing).toBe(false);
  });

  it("passes on whether a secret store's reads fail, and reads no more once it is closed", async () => {
    const { clock, logger } = setUp(() => undefined);
    let reads = 0;
    const failing: SecretStore = { ...memorySecrets(), read: () => Promise.reject(new Error(`no ${++reads}`)) };
    const source = createKeyringSource(failing, { clock, logger });
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
          `^error {"code":"keyring_unavailable","servesLast":${servesLast},"error":"Error","at":\\[.*keyring-source-state\\.test\\.ts:.*\\]} ` +
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
      now: () => fake.now(),
      monotonic: () => fake.monotonic(),
      setTimeout(callback, ms) {
        const timer = fake.setTimeout(callback, ms);
        running.add(timer);
        return { keepAlive: () => timer.keepAlive(), cancel: () => void (running.delete(timer) && timer.cancel()) };
      },
    };
    const { answer, waiting } = pending();
    const source = createKeyringSource(answer, { clock, logger: setUp(() => undefined).logger });
    const read = source.read({});
    await settle();
    expect(running.size).toBe(1);
    waiting[0]?.resolve(SECRET);
    await read;
    await settle();
    expect(running.size).toBe(0);
  });

  it("names the secrets of several tenants by a digest of all their versions", async () => {
    const keyringOf = (tenant = "") => ({ current: { secret: `${SECRET}-${tenant}`, apiClientId: tenant } });
    const { source } = setUp(({ tenant }) => keyringOf(tenant));
    for (const tenant of ["a", "b", "c"]) await source.read({ tenant });
    const versions = ["a", "b", "c"].map((tenant) => compileKeyring(keyringOf(tenant), NOW).version).sort();
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
