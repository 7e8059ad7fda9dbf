import { describe, expect, it, onTestFinished } from "vitest";
import { KeyringError } from "../../src/errors.ts";
import { type KeyringSource, LookUpsCrowded } from "../../src/sources/keyring-provider.ts";
import type { KeyringContext, SourceKeys } from "../../src/sources/keys.ts";
import type { FakeClock } from "../../src/tools/testing/fake-clock.ts";
import { MINUTE, pending, settle, setUp } from "./keyring-provider-setup.ts";
import { OTHER_SECRET, SECRET } from "./messaging/openssl.ts";

/** What a request that comes now is told. */
async function asked(
  { source, clock }: { readonly source: KeyringSource; readonly clock: FakeClock },
  context: KeyringContext,
  seen: SourceKeys,
): Promise<SourceKeys | null> {
  return source.reread(context, seen, clock.monotonic());
}

const ended = (answer: Promise<SourceKeys | null>) =>
  answer.then(
    () => "waited",
    (error: unknown) => (error instanceof LookUpsCrowded ? "turned away" : "failed"),
  );

const count = (ends: readonly string[], end: string) => ends.filter((each) => each === end).length;

describe("reread()", () => {
  it("gives the rotated keyring to all who waited, by one read", async () => {
    let secret = SECRET;
    const bench = setUp(async () => secret);
    const seen = await bench.source.read({});
    secret = OTHER_SECRET;
    await bench.clock.advance(2_000);
    const fresher = await Promise.all(Array.from({ length: 50 }, () => asked(bench, {}, seen)));
    expect(fresher.every((keyring) => keyring !== null && keyring.version !== seen.version)).toBe(true);
    expect(bench.reads).toHaveLength(2);
    expect(await asked(bench, {}, seen)).toBe(fresher[0]);
    expect(bench.reads).toHaveLength(2);
  });

  it("says no without a read, and at once, where the keyring was read after the request came", async () => {
    const { source, clock, reads } = setUp(async () => SECRET);
    const cameAt = clock.monotonic();
    await clock.advance(1);
    const seen = await source.read({});
    expect(source.reread({}, seen, cameAt)).toBeNull();
    expect(reads).toHaveLength(1);
  });

  it("never says no by what was read before the request came: it waits until it may read again", async () => {
    let secret = SECRET;
    const bench = setUp(async () => secret);
    const seen = await bench.source.read({});
    await bench.clock.advance(5_000);
    // A forgery, whose read brings nothing new.
    expect(await asked(bench, {}, seen)).toBeNull();
    secret = OTHER_SECRET;
    await bench.clock.advance(1);
    const answers: unknown[] = [];
    void asked(bench, {}, seen).then((fresher) => answers.push(fresher));
    await bench.clock.advance(1_998);
    expect(answers).toEqual([]);
    await bench.clock.advance(1);
    expect(answers).toEqual([await bench.source.read({})]);
    expect(bench.reads).toHaveLength(3);
  });

  it("reads at most once per 2 s and tenant: a flood of forgeries costs 30 reads a minute", async () => {
    const bench = setUp(async () => SECRET);
    const seen = await bench.source.read({});
    const answers = [];
    for (let elapsed = 0; elapsed < MINUTE; elapsed += 50) {
      await bench.clock.advance(50);
      answers.push(asked(bench, {}, await bench.source.read({})));
    }
    await bench.clock.advance(2_000);
    expect(new Set(await Promise.all(answers))).toEqual(new Set([null]));
    expect(await bench.source.read({})).toBe(seen);
    expect(bench.reads).toHaveLength(1 + 30);
  });

  it("lets no more than 128 wait for a provider that hangs, so that others are worked on (RCV-4)", async () => {
    const { answer, waiting } = pending();
    let hold = false;
    const bench = setUp(() => (hold ? answer() : SECRET));
    const seen = await bench.source.read({});
    hold = true;
    await bench.clock.advance(2_000);
    const first = Array.from({ length: 200 }, () => ended(asked(bench, {}, seen)));
    await settle();
    waiting[0]?.resolve(SECRET);
    expect(count(await Promise.all(first), "waited")).toBe(128);
    // Their places are free: as many may wait again, though for no more than one look-up.
    await bench.clock.advance(30_000);
    bench.source.read({});
    const second = Array.from({ length: 200 }, () => ended(asked(bench, {}, seen)));
    await settle();
    waiting[1]?.resolve(SECRET);
    expect(count(await Promise.all(second), "turned away")).toBe(200 - 128);
  });

  it("lets no more than 128 wait with their bodies, but always a few of each tenant", async () => {
    const { answer, waiting } = pending();
    let hold = false;
    const bench = setUp(() => (hold ? answer() : SECRET));
    const seen = await bench.source.read({ tenant: "a" });
    for (const tenant of ["b", "c"]) await bench.source.read({ tenant });
    hold = true;
    await bench.clock.advance(2_000);
    const all = ["a", "b", "c"].map((tenant) =>
      Array.from({ length: 100 }, () => ended(asked(bench, { tenant }, seen))),
    );
    await settle();
    for (const { resolve } of waiting) resolve(OTHER_SECRET);
    const ends = await Promise.all(all.map((each) => Promise.all(each)));
    expect(ends.map((each) => count(each, "waited"))).toEqual([100, 28, 4]);
  });

  it("reads for a request that cannot wait too: its repeat meets the new keyring", async () => {
    const { answer, waiting } = pending();
    let hold = false;
    const bench = setUp(() => (hold ? answer() : SECRET));
    const contexts = ["a", "b"].map((tenant) => ({ tenant }));
    const [seen] = await Promise.all(contexts.map((context) => bench.source.read(context)));
    hold = true;
    await bench.clock.advance(2_000);
    const flood = Array.from({ length: 200 }, () => ended(asked(bench, { tenant: "a" }, seen as SourceKeys)));
    const others = Array.from({ length: 10 }, () => ended(asked(bench, { tenant: "b" }, seen as SourceKeys)));
    await settle();
    expect(bench.reads.slice(2)).toEqual(contexts);
    for (const { resolve } of waiting) resolve(OTHER_SECRET);
    await Promise.all([...flood, ...others]);
    expect((await bench.source.read({ tenant: "b" })).version).not.toBe(seen?.version);
  });

  it("is not used up by forgeries for other tenants: each has its own turn, and Node suspects no leak", async () => {
    const warnings: string[] = [];
    const hear = ({ name }: Error) => void warnings.push(name);
    process.on("warning", hear);
    onTestFinished(() => void process.off("warning", hear));
    const bench = setUp(async ({ tenant }) => (tenant === "t0" ? secret : SECRET));
    let secret = SECRET;
    const contexts = Array.from({ length: 200 }, (_, index) => ({ tenant: `t${index}` }));
    const seen: SourceKeys[] = [];
    for (const context of contexts) seen.push(await bench.source.read(context));
    const forgeries = async () => {
      for (const [index, context] of contexts.entries())
        if (index > 0) void ended(asked(bench, context, seen[index] as SourceKeys));
      await bench.clock.advance(100);
    };
    await bench.clock.advance(2_000);
    await forgeries();
    secret = OTHER_SECRET;
    const answer = asked(bench, { tenant: "t0" }, seen[0] as SourceKeys);
    await forgeries();
    expect((await answer)?.version).not.toBe(seen[0]?.version);
    for (let second = 0; second < 3; second++) await forgeries();
    await settle();
    expect(warnings).toEqual([]);
  });

  it("lets nobody wait for longer than 5 s, however many tenants come first", async () => {
    const { answer } = pending();
    let hold = false;
    const bench = setUp(() => (hold ? answer() : SECRET));
    const contexts = Array.from({ length: 40 }, (_, index) => ({ tenant: `t${index}` }));
    const seen: SourceKeys[] = [];
    for (const context of contexts) seen.push(await bench.source.read(context));
    hold = true;
    await bench.clock.advance(2_000);
    const answers = contexts.map((context, index) => ended(asked(bench, context, seen[index] as SourceKeys)));
    // Each read of 8 ends after 2 s, because the provider hangs.
    await bench.clock.advance(5_000);
    const ends = await Promise.all(answers);
    expect([count(ends, "failed"), count(ends, "turned away")]).toEqual([16, 24]);
  });

  it("gives invented names no place of a tenant's", async () => {
    const { answer, waiting } = pending();
    let hold = false;
    const bench = setUp(({ tenant }) => (hold && tenant !== "t" ? answer() : tenant === "t" ? SECRET : undefined));
    const seen = await bench.source.read({ tenant: "t" });
    const names = Array.from({ length: 300 }, (_, index) => ({ tenant: `x${index}` }));
    const unknown: SourceKeys[] = [];
    for (const name of names) unknown.push(await bench.source.read(name));
    hold = true;
    await bench.clock.advance(2_000);
    const invented = names.map((name, index) => ended(asked(bench, name, unknown[index] as SourceKeys)));
    expect(await asked(bench, { tenant: "t" }, seen)).toBeNull();
    for (let turn = 0; turn < 128; turn++) {
      await settle();
      for (const { resolve } of waiting.splice(0)) resolve(undefined);
    }
    expect(count(await Promise.all(invented), "turned away")).toBe(300 - 128);
  });

  it("reads again when a refresh that was under way brings the keyring of before the rotation", async () => {
    const { answer, waiting } = pending();
    let hold = false;
    const bench = setUp(() => (hold ? answer() : SECRET));
    const seen = await bench.source.read({});
    hold = true;
    await bench.clock.advance(30_000);
    bench.source.read({});
    await bench.clock.advance(1);
    const reread = asked(bench, {}, seen);
    await settle();
    waiting[0]?.resolve(SECRET);
    await bench.clock.advance(1_999);
    waiting[1]?.resolve(OTHER_SECRET);
    expect(await reread).not.toBeNull();
  });

  it("rejects while the provider fails, also when it may not be asked again yet (RCV-4)", async () => {
    let works = true;
    const bench = setUp(() => {
      if (!works) throw new Error("down");
      return SECRET;
    });
    const seen = await bench.source.read({});
    works = false;
    await bench.clock.advance(2_000);
    for (let second = 0; second < 5; second++) {
      await expect(asked(bench, {}, seen)).rejects.toBeInstanceOf(KeyringError);
      await bench.clock.advance(1_000);
    }
    expect(bench.reads).toHaveLength(2);
    works = true;
    await bench.clock.advance(10_000);
    expect(await asked(bench, {}, seen)).toBeNull();
  });

  it("rejects once it is closed, also those that wait for their turn", async () => {
    const bench = setUp(() => SECRET);
    const seen = await bench.source.read({});
    await bench.clock.advance(1);
    const waiting = asked(bench, {}, seen);
    bench.source.close();
    await expect(waiting).rejects.toBeInstanceOf(KeyringError);
    await expect(asked(bench, {}, seen)).rejects.toBeInstanceOf(KeyringError);
    await bench.clock.advance(2_000);
    expect(bench.reads).toHaveLength(1);
  });

  it("reads a tenant whose keyring is not kept any more", async () => {
    const bench = setUp(() => SECRET);
    const seen = await bench.source.read({});
    expect((await asked(bench, { tenant: "x" }, seen))?.keys).toHaveLength(1);
    expect(bench.reads).toEqual([{}, { tenant: "x" }]);
  });

  it("does not take a new tenant for unknown because it was unknown before the request came", async () => {
    let isKnown = false;
    const bench = setUp(() => (isKnown ? SECRET : undefined));
    const unknown = await bench.source.read({ tenant: "x" });
    isKnown = true;
    await bench.clock.advance(1);
    const answer = asked(bench, { tenant: "x" }, unknown);
    await bench.clock.advance(1_999);
    expect((await answer)?.keys).toHaveLength(1);
  });
});
