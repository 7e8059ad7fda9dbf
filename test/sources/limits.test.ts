/** Limits of handlers by source: two sources with two tenants each. A source has its own limit, and its tenants share it. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { createReceiver } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import type { CommonOptions } from "../../src/receiver/options.ts";
import { github, stripe } from "../../src/sources/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock, fixtures, incomingOf, signedRequest, TEST_SECRETS } from "../../src/tools/testing/index.ts";
import { deferred } from "../inbox/bench.ts";
import { newFolder } from "../stores/sqlite-under-test.ts";

const EVENTS = 8;
const PLACES = ["one", "two"].flatMap((entry) => ["a", "b"].map((tenant) => ({ entry, tenant })));
const customerOf = (event: object) => String((event as { after: string }).after).slice(0, 1);

type Limits = Pick<CommonOptions, "concurrency" | "rate">;
type Start = readonly [entry: string, customer: string];
const BY = { entry: ([entry]: Start) => entry, customer: ([, customer]: Start) => customer, all: () => "all" };

async function newStore() {
  const folder = await newFolder();
  onTestFinished(() => rm(folder, { recursive: true }));
  return sqliteStore(join(folder, "inbox.db"), { minFreeBytes: 0 });
}

/** How many of each key run at once, or start in three seconds. */
it.each<readonly [string, Limits, keyof typeof BY, readonly number[]]>([
  ["no limit", {}, "entry", [4, 4]],
  ["a concurrency of each source", { concurrency: { each: 2, per: "source" } }, "entry", [2, 2]],
  ["a concurrency of each customer", { concurrency: { each: 3, per: customerOf } }, "customer", [3, 3]],
  ["a rate of the inbox", { rate: { perSecond: 2 } }, "all", [6]],
  ["a rate of each source", { rate: { perSecond: 2, per: "source" } }, "entry", [6, 6]],
  ["a rate of each customer", { rate: { perSecond: 1, per: customerOf } }, "customer", [3, 3]],
])("%s holds for each of its keys, and no other", async (_, limits, by, expected) => {
  const [clock, store] = [createFakeClock(), await newStore()];
  const source = () =>
    github({ secrets: ({ tenant = "" }) => ({ secret: `${TEST_SECRETS.github} ${tenant}`, tenant }) });
  const common = { store, clock, logger: silentLogger, handlerTimeoutMs: 600_000, ...limits };
  const receiver = createReceiver({ ...common, sources: { one: source(), two: source() } });
  const gate = deferred();
  onTestFinished(async () => {
    gate.resolve();
    const stopped = receiver.stop();
    await clock.advance(60_000);
    await stopped;
  });
  const started: Start[] = [];
  for (const entry of ["one", "two"] as const)
    receiver.source(entry).onAny((event) => {
      started.push([entry, customerOf(event)]);
      return limits.rate === undefined ? gate.promise : undefined;
    });
  for (let number = 0; number < EVENTS; number++)
    for (const { entry, tenant } of PLACES) {
      const secret = `${TEST_SECRETS.github} ${tenant}`;
      const event = fixtures.github({ id: `${"xy"[number % 2]}${number}` });
      const request = signedRequest(event, { source: "github", secret });
      await receiver.source(entry as "one").handle({ ...incomingOf(request), tenant });
    }
  await receiver.start();
  await clock.advance(2_900);
  const counts = new Map<string, number>();
  for (const one of started) counts.set(BY[by](one), (counts.get(BY[by](one)) ?? 0) + 1);
  expect([...counts.values()]).toEqual(expected);
  gate.resolve();
  await clock.advance(60_000);
  expect(started).toHaveLength(EVENTS * PLACES.length);
  expect((await receiver.inbox.stats()).counters.handled).toBe(EVENTS * PLACES.length);
});

it("a rate makes no event late: the later one of its lane waits, and was not handled yet", async () => {
  const [clock, store] = [createFakeClock(), await newStore()];
  const source = () =>
    stripe({ secrets: ({ tenant = "" }) => ({ secret: `${TEST_SECRETS.stripe} ${tenant}`, tenant }) });
  const common = { store, clock, logger: silentLogger };
  const rate = { perSecond: 1, per: "source" } as const;
  const receiver = createReceiver({ ...common, rate, sources: { one: source(), two: source() } });
  onTestFinished(() => receiver.stop());
  const seen: string[] = [];
  for (const entry of ["one", "two"] as const)
    receiver
      .source(entry)
      .onAny((event, ctx) => void seen.push(`${ctx.meta.source}:${ctx.meta.tenant} ${event.id}`))
      .onLate((event, ctx) => void seen.push(`${ctx.meta.source}:${ctx.meta.tenant} late ${event.id}`));
  const send = async (id: string, second: number, object: string) => {
    for (const { entry, tenant } of PLACES) {
      const event = { ...fixtures.stripe({ id }), created: 1_760_000_000 + second, data: { object: { id: object } } };
      const secret = `${TEST_SECRETS.stripe} ${tenant}`;
      const request = signedRequest(event, { source: "stripe", secret, timestamp: clock.now() });
      await receiver.source(entry as "one").handle({ ...incomingOf(request), tenant });
    }
  };
  for (const number of [1, 2, 3]) await send(`before_${number}`, 0, `in_${number}`);
  await send("later", 2, "in_4");
  await receiver.start();
  await clock.advance(500);
  await send("earlier", 1, "in_4");
  await clock.advance(60_000);
  for (const { entry, tenant } of PLACES) {
    const own = seen.filter((one) => one.startsWith(`${entry}:${tenant} `) && !one.includes("before"));
    expect(own).toEqual(["earlier", "later"].map((id) => `${entry}:${tenant} ${id}`));
  }
});
