/** Signed bodies that are no events: kept once, bounded, and accepted after all when a later version can read them. */
import { describe, expect, it } from "vitest";
import type { DeliveryReport, Keyring } from "../../src/index.ts";
import { sha256 } from "../../src/internal/json.ts";
import { type Bench, DAY, memoryBench, SECRET, sqliteBench, until } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const junk = "not json";
const OTHERS = "the-signing-secret-of-the-others";

describe.each([
  ["memory", () => memoryBench() as unknown as Bench<unknown>],
  ["SQLite", () => sqliteBench() as unknown as Bench<unknown>],
] as const)("quarantine with the %s store", (_, makeBench) => {
  it("keeps a body once per digest, whatever its timestamp (RCV-4)", async () => {
    const { deliver, receiver, clock, codes } = makeBench();
    for (let index = 0; index < 5; index++) {
      await clock.advance(1_000);
      expect((await deliver(junk)).body).toBe('{"outcome":"quarantined"}');
    }
    const { items } = await receiver.inbox.findQuarantined();
    expect(items).toMatchObject([
      { reason: "invalid_json", slot: "current", source: "service", tenant: null, kinds: [], state: "held" },
    ]);
    expect(Buffer.from((await receiver.inbox.quarantined(items[0]?.id ?? 0))?.row.raw ?? []).toString()).toBe(junk);
    expect(codes()).toContain("quarantined");
  });

  it("answers 503 when it is full, is alone in that, and is full until nothing is held (RCV-4)", async () => {
    const { deliver, receiver, log } = makeBench();
    const reports: DeliveryReport[] = [];
    receiver.instrument({ delivery: () => ({ ended: (report) => void reports.push(report) }) });
    const isFull = async () => (await receiver.health()).reasons.includes("quarantine_full");
    for (let row = 0; row < 1_000; row += 100) {
      const answers = Array.from({ length: 100 }, (__, index) => deliver(`junk ${row + index}`));
      for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200);
    }
    expect(await isFull()).toBe(false);
    expect((await deliver("one more")).status).toBe(503);
    expect(reports.at(-1)).toMatchObject({ outcome: "failed", status: 503, reason: "quarantine_full" });
    expect(log.filter(({ fields }) => fields.code === "quarantine_full")).toMatchObject([
      { level: "error", message: expect.stringMatching(/^The quarantine is full: .* Discard or replay quarantined/) },
    ]);
    expect(await isFull()).toBe(true);
    expect((await deliver("junk 0")).status).toBe(200);
    expect((await deliver(outbound("queued"))).status).not.toBe(401);
    for (const { id } of (await receiver.inbox.findQuarantined({ limit: 1_000 })).items)
      expect(await receiver.inbox.discardQuarantined(id)).toMatchObject({ ok: true });
    expect(await isFull()).toBe(false);
    expect((await deliver("one more")).status).toBe(200);
  });

  it.each([
    ["__proto__", (n: number) => `{"n":${n},"__proto__":{}}`],
    ["65 levels", (n: number) => `${n}${"[".repeat(65)}${"]".repeat(65)}`],
    ["a key twice", (n: number) => `{"n":${n},"n":${n}}`],
  ])("lets the oldest give way, where a provider's user can cause them: %s", async (_name, body) => {
    const { deliver, receiver, clock, codes, log } = makeBench();
    const flood = async (from: number, count: number) => {
      for (let at = from; at < from + count; at += 100) {
        const answers = Array.from({ length: Math.min(100, from + count - at) }, (__, index) =>
          deliver(body(at + index)),
        );
        for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
      }
    };
    const isFull = async () => (await receiver.health()).reasons.includes("quarantine_full");
    // First what an upgrade or a correction can still read.
    expect((await deliver(junk)).status).toBe(200);
    await flood(0, 999);
    expect([await isFull(), receiver.counters.quarantine_dropped]).toEqual([false, undefined]);
    await flood(999, 250);
    expect([await isFull(), receiver.counters.quarantine_dropped]).toEqual([true, 250]);
    expect(codes().filter((code) => code === "quarantine_dropped")).toHaveLength(1);
    expect(log.find(({ fields }) => fields.code === "quarantine_dropped")).toMatchObject({ level: "error" });
    const { gauges } = await receiver.inbox.stats();
    expect(gauges.quarantined).toBe(1_000);
    const oldest = (await receiver.inbox.findQuarantined({ states: ["held"], limit: 1_000 })).items.slice(-2);
    const rows = await Promise.all(oldest.map(({ id }) => receiver.inbox.quarantined(id)));
    expect(rows.map((one) => Buffer.from(one?.row.raw ?? []).toString())).toEqual([body(250), junk]);
    // They are seen all the same.
    const gone = (await receiver.inbox.findQuarantined({ states: ["discarded"], limit: 1_000 })).items;
    expect(gone.map(({ bytes }) => bytes)).toEqual(Array(250).fill(null));
    // It counts for an hour, and is over once nothing is held.
    await clock.advance(3_600_000);
    expect(await isFull()).toBe(false);
    await flood(2_000, 1);
    expect([await isFull(), codes().filter((code) => code === "quarantine_dropped").length]).toEqual([true, 2]);
  });
});

describe("quarantine", () => {
  it.each<readonly [string, Keyring]>([
    ["for another kind", { inbound: OTHERS, delivery: SECRET }],
    ["for another client", { current: [OTHERS, SECRET].map((secret, n) => ({ secret, tenant: `apc_${n}` })) }],
  ])("keeps a body that one secret signed %s apart from the same body under its own", async (_what, secrets) => {
    const { deliver, receiver } = sqliteBench({ secrets });
    for (const secret of [OTHERS, SECRET, OTHERS, SECRET])
      expect((await deliver(junk, { secret })).body).toBe('{"outcome":"quarantined"}');
    const { items } = await receiver.inbox.findQuarantined();
    expect(new Set(items.map(({ tenant, kinds }) => `${tenant} ${kinds}`)).size).toBe(2);
    expect(items).toHaveLength(2);
  });

  it.each([
    ["513 characters", "x".repeat(513)],
    ["1,301 bytes", `xx${"€".repeat(433)}`],
  ])("keeps an event whose id has %s", async (_, messageId) => {
    const { deliver, receiver } = sqliteBench();
    for (const body of [inbound({ messageId }), outbound("queued", { messageId })])
      expect((await deliver(body)).body).toBe('{"outcome":"quarantined"}');
    const { items } = await receiver.inbox.findQuarantined();
    expect(items.map(({ reason, source, tenant }) => [reason, source, tenant])).toEqual(
      Array(2).fill(["invalid_event", "service", null]),
    );
  });

  it('answers 400 and keeps nothing with quarantine: "reject"', async () => {
    const { deliver, receiver, log } = sqliteBench({ quarantine: "reject" });
    for (let index = 0; index < 15; index++) {
      expect(await deliver(junk)).toMatchObject({ status: 400, body: '{"error":"invalid_event"}' });
    }
    expect((await receiver.inbox.stats()).gauges.quarantined).toBe(0);
    expect(receiver.counters).toEqual({ "slot:service:current": 15, "refused:invalid_event": 15 });
    const fields = { code: "invalid_event", status: 400, reason: "invalid_json" };
    expect(log.filter((line) => line.fields.code === "invalid_event")).toHaveLength(10);
    expect(log[0]).toMatchObject({ level: "warn", fields });
  });

  it("counts its quota per secret: a leaked previous secret does not use up the current one's", async () => {
    const previous = { secret: "the-previous-secret-of-32-bytes-", validUntil: 1_760_000_000_000 + DAY };
    const { deliver } = sqliteBench({ secrets: { current: "the-current-secret-of-32-bytes-x", previous } });
    const flood = Array.from({ length: 1_001 }, (_, index) => `junk ${index}`);
    let full = 0;
    for (let start = 0; start < flood.length; start += 200) {
      const some = flood.slice(start, start + 200).map((body) => deliver(body, { secret: previous.secret }));
      full += (await Promise.all(some)).filter(({ status }) => status === 503).length;
    }
    expect(full).toBe(1);
    expect((await deliver("one more", { secret: "the-current-secret-of-32-bytes-x" })).status).toBe(200);
  });
});

describe("inbox.replayQuarantined()", () => {
  /** As an older version would have left it: a body that this one can read. */
  async function holdReadable<Tx>(
    { store, clock, receiver }: Bench<Tx>,
    body: string,
    kinds: readonly string[] = [],
  ): Promise<number> {
    await receiver.inbox.stats();
    const raw = Buffer.from(body);
    await store.step({
      ...{ settles: [], accepts: [] },
      quarantines: [
        {
          ...{ reason: "invalid_event", slot: "current", signer: "s", kinds, signedAt: clock.now(), trace: null },
          ...{ source: "service", tenant: null, digest: sha256(raw), raw },
        },
      ],
      quarantineQuota: { maxRows: 10, maxBytes: 10_000 },
      claim: { limit: 0, leaseMs: 30_000, maxAttempts: 12, onDead: "continue", takes: () => true, mode: "ordinary" },
    });
    return (await receiver.inbox.findQuarantined()).items[0]?.id ?? 0;
  }

  it("accepts the body under its real identity, and hands it out (RCV-6)", async () => {
    const bench = sqliteBench();
    const texts: string[] = [];
    await bench.receiver.on("message.inbound", (event) => texts.push(event.data.body)).start();
    const id = await holdReadable(bench, inbound());
    expect(await bench.receiver.inbox.replayQuarantined(id, { by: "tester" })).toMatchObject({ ok: true });
    await until(() => texts.length === 1);
    expect((await bench.receiver.inbox.findQuarantined()).items).toMatchObject([{ state: "replayed", replayedAs: 1 }]);
    expect((await bench.receiver.inbox.audit()).at(0)).toMatchObject({ act: "replay_quarantined", by: "tester" });
    expect((await bench.deliver(inbound())).body).toBe('{"outcome":"duplicate"}');
    expect(texts).toEqual(["Yes please"]);
    expect(await bench.receiver.inbox.replayQuarantined(id)).toEqual({ ok: false, reason: "wrong_state" });
  });

  it.each(["client", "", "everything", "any:junk"])("makes nothing of a body of the kind %j", async (kind) => {
    const bench = sqliteBench();
    const id = await holdReadable(bench, inbound(), [kind]);
    await expect(bench.receiver.inbox.replayQuarantined(id)).rejects.toThrow("does not cover the event");
  });

  it("refuses what is still no event, what is not there, and what is erased", async () => {
    const { deliver, receiver } = sqliteBench();
    await deliver('junk of +15550100009"');
    const [row] = (await receiver.inbox.findQuarantined()).items;
    const id = row?.id ?? 0;
    await expect(receiver.inbox.replayQuarantined(id)).rejects.toMatchObject({
      code: "invalid_event",
      message: expect.stringContaining('still not an event for the source "service" (invalid_json)'),
    });
    await expect(receiver.inbox.replayQuarantined(id)).rejects.not.toThrow(/5550100009/);
    expect(await receiver.inbox.replayQuarantined(id + 1)).toEqual({ ok: false, reason: "not_found" });
    expect(await receiver.inbox.replayQuarantined(Number.MAX_SAFE_INTEGER)).toEqual({ ok: false, reason: "not_found" });
    await receiver.inbox.erase({ peer: "+15550100009" });
    expect(await receiver.inbox.replayQuarantined(id)).toEqual({ ok: false, reason: "body_pruned" });
    expect(await receiver.inbox.discardQuarantined(99)).toEqual({ ok: false, reason: "not_found" });
  });

  it.each([
    ["recorded without onLate", false, { state: "late", outcome: null }],
    ["passed to onLate", true, { state: "done", outcome: "handled" }],
  ])("makes a late event of one whose message went on meanwhile: %s (RCV-7)", async (_, takesLate, end) => {
    const bench = sqliteBench({ gapWait: "eager" });
    const { receiver, deliver } = bench;
    receiver.onAny(() => {});
    if (takesLate) receiver.onLate(() => {});
    const id = await holdReadable(bench, outbound("queued"));
    await deliver(outbound("sent"));
    await receiver.drain();
    expect(await receiver.inbox.replayQuarantined(id)).toMatchObject({ ok: true });
    await receiver.drain();
    expect((await receiver.inbox.find()).items[0]).toMatchObject({ eventType: "message.queued", late: true, ...end });
  });
});
