import { describe, expect, it } from "vitest";
import { KeyringError } from "../../src/errors.ts";
import type { CompiledKeyring } from "../../src/service/keyring.ts";
import { LookUpsCrowded } from "../../src/sources/keyring-provider.ts";
import { atHand, MINUTE, pending, settle, setUp } from "./keyring-source-setup.ts";
import { OTHER_SECRET, SECRET } from "./openssl.ts";

describe("reread()", () => {
  it("gives the rotated keyring to all who waited, by one read", async () => {
    let secret = SECRET;
    const { source, reads } = setUp(async () => secret);
    const seen = await source.read({});
    secret = OTHER_SECRET;
    const fresher = await Promise.all(Array.from({ length: 50 }, () => source.reread({}, seen)));
    expect(fresher.every((keyring) => keyring !== null && keyring.version !== seen.version)).toBe(true);
    expect(reads).toHaveLength(2);
    expect(await source.reread({}, seen)).toBe(fresher[0]);
    expect(reads).toHaveLength(2);
  });

  it("loses nothing over 50 rotations that are 10 s apart (RCV-9)", async () => {
    let rotation = 0;
    const { source, clock } = setUp(async () => `${SECRET}-${rotation}`);
    let seen = await source.read({});
    for (rotation = 1; rotation <= 50; rotation++) {
      await clock.advance(10_000);
      const fresher = await source.reread({}, seen);
      expect(fresher).not.toBeNull();
      seen = fresher ?? seen;
    }
  });

  it("reads at most once per 10 s and tenant: a flood of forgeries costs 6 reads a minute", async () => {
    const { source, clock, reads } = setUp(async () => SECRET);
    await source.read({});
    for (let elapsed = 0; elapsed < MINUTE; elapsed += 50) {
      const keyring = await source.read({});
      expect(await source.reread({}, keyring)).toBeNull();
      await clock.advance(50);
    }
    expect(reads).toHaveLength(1 + 6);
  });

  it("lets no more than 128 wait for a provider that hangs, so that others are worked on (RCV-4)", async () => {
    const { answer, waiting } = pending();
    let hold = false;
    const { source, clock } = setUp(() => (hold ? answer() : SECRET));
    const seen = await source.read({});
    hold = true;
    const ends: string[] = [];
    const ask = () =>
      source.reread({}, seen).then(
        () => ends.push("waited"),
        (error) => ends.push(error instanceof LookUpsCrowded ? "turned away" : "failed"),
      );
    // The first one reads itself.
    const asked = Array.from({ length: 200 }, ask);
    await settle();
    expect(ends).toEqual(Array.from({ length: 200 - 129 }, () => "turned away"));
    waiting[0]?.resolve(SECRET);
    await Promise.all(asked);
    expect(ends.filter((end) => end === "waited")).toHaveLength(129);
    hold = false;
    expect(await source.reread({}, atHand(source.read({})))).toBeNull();
    // Their places are free: as many may wait again, though for no more than one look-up.
    hold = true;
    await clock.advance(30_000);
    source.read({});
    ends.length = 0;
    const again = Array.from({ length: 200 }, ask);
    await settle();
    expect(ends).toEqual(Array.from({ length: 200 - 128 }, () => "turned away"));
    waiting.at(-1)?.resolve(SECRET);
    await settle();
    waiting.at(-1)?.resolve(SECRET);
    await Promise.all(again);
  });

  it("lets no more than 128 wait with their bodies in all, for whichever tenants' reads", async () => {
    const { answer, waiting } = pending();
    let hold = false;
    const { source, clock } = setUp(() => (hold ? answer() : SECRET));
    const tenants = ["a", "b"].map((tenant) => ({ tenant }));
    const [seen] = await Promise.all(tenants.map((context) => source.read(context)));
    hold = true;
    await clock.advance(30_000);
    for (const context of tenants) source.read(context);
    const asked = tenants.flatMap((context) =>
      Array.from({ length: 100 }, () =>
        source.reread(context, seen as CompiledKeyring).catch((error: unknown) => error instanceof LookUpsCrowded),
      ),
    );
    await settle();
    for (const { resolve } of waiting) resolve(OTHER_SECRET);
    const turnedAway = (await Promise.all(asked)).filter((end) => end === true);
    expect(turnedAway).toHaveLength(200 - 128);
  });

  it("has one read in flight in all; the next tenant waits for it and then takes its turn", async () => {
    const { answer, waiting } = pending();
    let hold = false;
    const { source, reads } = setUp((context) => (hold ? answer() : `${SECRET}-${context.tenant}`));
    const a = await source.read({ tenant: "a" });
    const b = await source.read({ tenant: "b" });
    const c = await source.read({ tenant: "c" });
    hold = true;
    reads.length = 0;
    const rereads = [
      source.reread({ tenant: "a" }, a),
      source.reread({ tenant: "b" }, b),
      source.reread({ tenant: "c" }, c),
    ];
    await settle();
    expect(reads).toEqual([{ tenant: "a" }]);
    waiting[0]?.resolve(OTHER_SECRET);
    await settle();
    expect(reads).toEqual([{ tenant: "a" }, { tenant: "b" }]);
    waiting[1]?.resolve(OTHER_SECRET);
    const results = await Promise.all(rereads);
    expect(results.map((keyring) => keyring !== null)).toEqual([true, true, false]);
  });

  it("reads again when a refresh that was under way brings the keyring of before the rotation", async () => {
    const { answer, waiting } = pending();
    let hold = false;
    const { source, clock } = setUp(() => (hold ? answer() : SECRET));
    const seen = await source.read({});
    hold = true;
    await clock.advance(30_000);
    source.read({});
    const reread = source.reread({}, seen);
    await settle();
    waiting[0]?.resolve(SECRET);
    await settle();
    waiting[1]?.resolve(OTHER_SECRET);
    expect(await reread).not.toBeNull();
  });

  it("rejects after 2 s when the provider hangs, keeping the last keyring (RCV-4)", async () => {
    const { answer } = pending();
    let hold = false;
    const { source, clock } = setUp(() => (hold ? answer() : SECRET));
    const seen = await source.read({});
    hold = true;
    const rejected = expect(source.reread({}, seen)).rejects.toBeInstanceOf(KeyringError);
    await clock.advance(2_000);
    await rejected;
    expect(atHand(source.read({}))).toBe(seen);
  });

  it("rejects while the provider fails, also when it may not be asked again yet (RCV-4)", async () => {
    let works = true;
    const { source, clock, reads } = setUp(() => {
      if (!works) throw new Error("down");
      return SECRET;
    });
    const seen = await source.read({});
    works = false;
    for (let second = 0; second < 5; second++) {
      await expect(source.reread({}, seen)).rejects.toBeInstanceOf(KeyringError);
      await clock.advance(1_000);
    }
    expect(reads).toHaveLength(2);
    works = true;
    await clock.advance(10_000);
    expect(await source.reread({}, seen)).toBeNull();
  });

  it("rejects once it is closed", async () => {
    const { source } = setUp(() => SECRET);
    const seen = await source.read({});
    source.close();
    await expect(source.reread({}, seen)).rejects.toBeInstanceOf(KeyringError);
  });

  it("answers null for a tenant it never read", async () => {
    const { source, reads } = setUp(() => SECRET);
    const seen = await source.read({});
    expect(await source.reread({ tenant: "x" }, seen)).toBeNull();
    expect(reads).toHaveLength(1);
  });
});
