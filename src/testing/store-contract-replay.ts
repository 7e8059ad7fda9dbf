/** The store contract on replays: an operator hands a stored event out again, whatever its sequence. */
import { type Bench, type ContractCase, hex, sequences } from "./store-contract-bench.ts";

async function replay(bench: Bench, sequence: number) {
  const { id } = await bench.at(sequence);
  return bench.act({ kind: "replay", event: id });
}

/** Leaves event 2 in a long backoff behind event 1, which ended as `first` says. */
async function backOffBehind(bench: Bench, first: "done" | "dead"): Promise<void> {
  await bench.accept(bench.event(1), bench.event(2));
  const lease = await bench.claimOne();
  await bench.settle(first === "done" ? bench.complete(lease) : bench.dead(lease));
  await bench.settle(bench.retry(await bench.claimOne(), 600_000));
}

/** Claims the replayed event, completes it, and sees event `next` follow without its old wait. */
async function replayedThen(bench: Bench, replayed: number, next: number): Promise<void> {
  const lease = await bench.claimOne();
  const flags = { sequence: replayed, attempt: 1, forced: true, late: false, outOfOrder: true };
  bench.expect(lease).toMatchObject(flags);
  await bench.settle(bench.complete(lease));
  bench.expect(await bench.at(replayed)).toMatchObject({ state: "done", outcome: "handled" });
  bench.expect(await bench.claimOne()).toMatchObject({ sequence: next, forced: false, outOfOrder: false });
}

export const replayCases: readonly ContractCase[] = [
  {
    name: "misses no sequence that a replay handed out: the next follows at once (I4, I6)",
    async run(bench) {
      await bench.accept(bench.event(1), bench.event(2), bench.event(3));
      await bench.settle(bench.dead(await bench.claimOne(), "block"));
      await replay(bench, 2);
      await bench.settle(bench.complete(await bench.claimOne()));
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: 3, forced: false, missing: null });
      bench.expect((await bench.lane()).gaps).toEqual([]);
    },
  },
  {
    name: "tells of no order in a replay before anything was handed out (I4)",
    async run(bench) {
      await bench.accept(bench.event(-1));
      await bench.act({ kind: "discard", event: (await bench.at(-1)).id });
      bench.expect((await bench.lane()).cursor).toBe(null);
      await replay(bench, -1);
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: -1, forced: true, outOfOrder: false });
    },
  },
  {
    name: "replays a done event: flagged, attempts anew, the cursor left (I4, I8)",
    async run(bench) {
      const event = bench.event(1);
      await bench.handle(event);
      await bench.handle(bench.event(2));
      const { id } = await bench.at(1);
      bench.expect(await replay(bench, 1)).toEqual({ ok: true, event: id, count: 1 });
      const pending = { state: "pending", outcome: null, finishedAt: null, forced: true, attempts: 0 };
      bench.expect(await bench.at(1)).toMatchObject(pending);
      const lease = await bench.claimOne();
      bench.expect(lease).toMatchObject({ event: id, attempt: 1, forced: true, outOfOrder: true });
      bench.expect(hex(lease.raw)).toBe(hex(event.raw));
      bench.expect((await bench.lane()).cursor).toBe(2);
    },
  },
  {
    name: "replays a done event while a later one backs off (I4)",
    async run(bench) {
      await backOffBehind(bench, "done");
      await replay(bench, 1);
      await replayedThen(bench, 1, 2);
    },
  },
  {
    name: "replays a dead letter while a later one backs off (I4)",
    async run(bench) {
      await backOffBehind(bench, "dead");
      await replay(bench, 1);
      await replayedThen(bench, 1, 2);
    },
  },
  {
    name: "replays a late event, no longer late, while a later one backs off (I4)",
    async run(bench) {
      await bench.handle(bench.event(2, { gapWaitMs: 0 }));
      await bench.step({ accepts: [bench.event(1)], lateEvents: "record" });
      await bench.accept(bench.event(3));
      await bench.settle(bench.retry(await bench.claimOne(), 600_000));
      await replay(bench, 1);
      await replayedThen(bench, 1, 3);
    },
  },
  {
    name: "replays behind a head that backs off without cutting its wait short",
    async run(bench) {
      await bench.handle(bench.event(1));
      await bench.handle(bench.event(2));
      await replay(bench, 1);
      await bench.settle(bench.retry(await bench.claimOne(), 60_000));
      const { readyAt } = await bench.lane();
      bench.expect(await replay(bench, 2)).toMatchObject({ ok: true });
      bench.expect(await bench.lane()).toMatchObject({ status: "backoff", readyAt });
      await bench.clock.advance(60_000);
      const first = await bench.claimOne();
      bench.expect(first).toMatchObject({ sequence: 1, attempt: 2, forced: true });
      await bench.settle(bench.complete(first));
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: 2, attempt: 1, forced: true });
    },
  },
  {
    name: "replays a dead letter on a blocked lane, which goes on (I9)",
    async run(bench) {
      await bench.accept(bench.event(1), bench.event(2));
      await bench.settle(bench.dead(await bench.claimOne(), "block"));
      await replay(bench, 1);
      const lease = await bench.claimOne();
      bench.expect(lease).toMatchObject({ sequence: 1, attempt: 1, forced: true, outOfOrder: false });
      await bench.settle(bench.complete(lease));
      bench.expect(sequences(await bench.claim())).toEqual([2]);
      bench.expect((await bench.store.stats()).gauges).toMatchObject({ dead: 0, blockedLanes: 0 });
    },
  },
  {
    name: "replays an event out of its backoff at once, and no other pending one",
    async run(bench) {
      await bench.accept(bench.event(1));
      bench.expect(await replay(bench, 1)).toEqual({ ok: false, reason: "wrong_state" });
      await bench.settle(bench.retry(await bench.claimOne(), 600_000));
      bench.expect(await replay(bench, 1)).toMatchObject({ ok: true });
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: 1, attempt: 1, forced: true, outOfOrder: false });
    },
  },
  {
    name: "replays a discarded event",
    async run(bench) {
      await bench.accept(bench.event(2));
      await bench.act({ kind: "discard", event: (await bench.at(2)).id });
      bench.expect(await replay(bench, 2)).toMatchObject({ ok: true });
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: 2, forced: true, missing: null });
      bench.expect((await bench.lane()).cursor).toBe(null);
    },
  },
  {
    name: "keeps a gap's wait going while a replay is handled (I6)",
    async run(bench) {
      await bench.handle(bench.event(1));
      await bench.accept(bench.event(4));
      const { gapSince, readyAt } = await bench.lane();
      await bench.clock.advance(30_000);
      await replay(bench, 1);
      const lease = await bench.claimOne();
      await bench.clock.advance(30_000);
      await bench.settle(bench.complete(lease));
      bench.expect(await bench.lane()).toMatchObject({ status: "gap", gapSince, readyAt });
    },
  },
  {
    name: "tries a replay again only after an earlier event that came meanwhile, and after its gap (I4, I6)",
    async run(bench) {
      await bench.accept(bench.event(3));
      await bench.act({ kind: "discard", event: (await bench.at(3)).id });
      await replay(bench, 3);
      const lease = await bench.claimOne();
      await bench.accept(bench.event(2, { gapWaitMs: 60_000 }));
      await bench.settle(bench.retry(lease, 10_000));
      await bench.clock.advance(10_000);
      bench.expect(await bench.claim()).toEqual([]);
      bench.expect(await bench.lane()).toMatchObject({ status: "gap", readyAt: bench.clock.now() + 60_000 });
      await bench.clock.advance(60_000);
      const earlier = await bench.claimOne();
      bench.expect(earlier).toMatchObject({ sequence: 2, missing: { from: 1, to: 1 } });
      await bench.settle(bench.complete(earlier));
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: 3, attempt: 2, forced: true });
    },
  },
  {
    name: "replays one event while another of its lane is being handled, after it (I3)",
    async run(bench) {
      await bench.handle(bench.event(1));
      await bench.accept(bench.event(2));
      const lease = await bench.claimOne();
      bench.expect(await replay(bench, 2)).toEqual({ ok: false, reason: "in_progress" });
      bench.expect(await replay(bench, 1)).toMatchObject({ ok: true });
      bench.expect(await bench.claim()).toEqual([]);
      await bench.settle(bench.complete(lease));
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: 1, forced: true });
    },
  },
  {
    name: "refuses to replay what is not there or has no body any more",
    async run(bench) {
      bench.expect(await bench.act({ kind: "replay", event: 1e9 })).toEqual({ ok: false, reason: "not_found" });
      await bench.handle(bench.event(1));
      await bench.act({ kind: "erase", subject: { messageId: "m" } });
      bench.expect(await replay(bench, 1)).toEqual({ ok: false, reason: "body_pruned" });
      bench.expect((await bench.at(1)).state).toBe("done");
    },
  },
];
