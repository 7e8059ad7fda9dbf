/** The store contract on an operator's acts, and on their audit. */
import { type Bench, type ContractCase, hex, it, sequences } from "./store-bench.ts";

// Replays: a stored event is passed to the handler again, whatever its sequence.

async function replay(bench: Bench, sequence: number) {
  const { id } = await bench.at(sequence);
  return bench.act({ kind: "replay", event: id });
}

/** Leaves event 2 in a long backoff behind event 1, which ended in the state `first`. */
async function backOffBehind(bench: Bench, first: "done" | "dead"): Promise<void> {
  await bench.accept(bench.event(1), bench.event(2));
  const lease = await bench.claimOne();
  await bench.settle(first === "done" ? bench.complete(lease) : bench.dead(lease));
  await bench.settle(bench.retry(await bench.claimOne(), 600_000));
}

/** Claims and completes the replayed event, and checks that event `next` follows without its old wait. */
async function replayedThen(bench: Bench, replayed: number, next: number): Promise<void> {
  const lease = await bench.claimOne();
  const flags = { sequence: replayed, attempt: 1, forced: true, late: false, outOfOrder: true };
  bench.expect(lease).toMatchObject(flags);
  await bench.settle(bench.complete(lease));
  bench.expect(await bench.at(replayed)).toMatchObject({ state: "done", outcome: "handled" });
  bench.expect(await bench.claimOne()).toMatchObject({ sequence: next, forced: false, outOfOrder: false });
}

export const replayCases: readonly ContractCase[] = [
  it("does not miss a sequence that was replayed: the next event follows at once (I4, I6)", async (bench) => {
    await bench.accept(bench.event(1), bench.event(2), bench.event(3));
    await bench.settle(bench.dead(await bench.claimOne(), "block"));
    await replay(bench, 2);
    await bench.settle(bench.complete(await bench.claimOne()));
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 3, forced: false, missing: null });
    bench.expect((await bench.lane()).gaps).toEqual([]);
  }),
  it("does not call a replay out of order before any event of the lane was leased (I4)", async (bench) => {
    await bench.accept(bench.event(-1));
    await bench.act({ kind: "discard", event: (await bench.at(-1)).id });
    bench.expect((await bench.lane()).cursor).toBe(null);
    await replay(bench, -1);
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: -1, forced: true, outOfOrder: false });
  }),
  it("replays a done event as forced, with new attempts, and leaves the cursor (I4, I8)", async (bench) => {
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
  }),
  it("replays a done event while a later one backs off (I4)", async (bench) => {
    await backOffBehind(bench, "done");
    await replay(bench, 1);
    await replayedThen(bench, 1, 2);
  }),
  it("replays a dead letter while a later one backs off (I4)", async (bench) => {
    await backOffBehind(bench, "dead");
    await replay(bench, 1);
    await replayedThen(bench, 1, 2);
  }),
  it("replays a late event, no longer late, while a later one backs off (I4)", async (bench) => {
    await bench.handle(bench.event(2, { gapWaitMs: 0 }));
    await bench.record(bench.event(1));
    await bench.accept(bench.event(3));
    await bench.settle(bench.retry(await bench.claimOne(), 600_000));
    await replay(bench, 1);
    await replayedThen(bench, 1, 3);
  }),
  it("replays behind a head that backs off without shortening its wait", async (bench) => {
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
  }),
  it("replays a dead letter on a blocked lane, which goes on (I9)", async (bench) => {
    await bench.accept(bench.event(1), bench.event(2));
    await bench.settle(bench.dead(await bench.claimOne(), "block"));
    await replay(bench, 1);
    const lease = await bench.claimOne();
    bench.expect(lease).toMatchObject({ sequence: 1, attempt: 1, forced: true, outOfOrder: false });
    await bench.settle(bench.complete(lease));
    bench.expect(sequences(await bench.claim())).toEqual([2]);
    bench.expect((await bench.store.stats()).gauges).toMatchObject({ dead: 0, blockedLanes: 0 });
  }),
  it("replays an event out of its backoff at once, and no other pending one", async (bench) => {
    await bench.accept(bench.event(1));
    bench.expect(await replay(bench, 1)).toEqual({ ok: false, reason: "wrong_state" });
    await bench.settle(bench.retry(await bench.claimOne(), 600_000));
    bench.expect(await replay(bench, 1)).toMatchObject({ ok: true });
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 1, attempt: 1, forced: true, outOfOrder: false });
  }),
  it("replays a discarded event", async (bench) => {
    await bench.accept(bench.event(2));
    await bench.act({ kind: "discard", event: (await bench.at(2)).id });
    bench.expect(await replay(bench, 2)).toMatchObject({ ok: true });
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 2, forced: true, missing: null });
    bench.expect((await bench.lane()).cursor).toBe(null);
  }),
  it("keeps a gap's wait going while a replay is handled (I6)", async (bench) => {
    await bench.handle(bench.event(1));
    await bench.accept(bench.event(4));
    const { gapSince, readyAt } = await bench.lane();
    await bench.clock.advance(30_000);
    await replay(bench, 1);
    const lease = await bench.claimOne();
    await bench.clock.advance(30_000);
    await bench.settle(bench.complete(lease));
    bench.expect(await bench.lane()).toMatchObject({ status: "gap", gapSince, readyAt });
  }),
  it("retries a replay only after an earlier event that arrived meanwhile, and after its gap (I4, I6)", async (bench) => {
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
  }),
  it("replays an event while another of its lane is being handled, and leases it afterwards (I3)", async (bench) => {
    await bench.handle(bench.event(1));
    await bench.accept(bench.event(2));
    const lease = await bench.claimOne();
    bench.expect(await replay(bench, 2)).toEqual({ ok: false, reason: "in_progress" });
    bench.expect(await replay(bench, 1)).toMatchObject({ ok: true });
    bench.expect(await bench.claim()).toEqual([]);
    await bench.settle(bench.complete(lease));
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 1, forced: true });
  }),
  it("refuses to replay an event that does not exist or has no body any more", async (bench) => {
    bench.expect(await bench.act({ kind: "replay", event: 1e9 })).toEqual({ ok: false, reason: "not_found" });
    await bench.handle(bench.event(1));
    await bench.act({ kind: "erase", subject: { id: "m" } });
    bench.expect(await replay(bench, 1)).toEqual({ ok: false, reason: "body_pruned" });
    bench.expect((await bench.at(1)).state).toBe("done");
  }),
];

// The other acts of an operator.

async function discard(bench: Bench, sequence: number) {
  const { id } = await bench.at(sequence);
  return bench.act({ kind: "discard", event: id });
}

async function onLane(bench: Bench, kind: "unblock" | "release_gap" | "reveal") {
  return bench.act({ kind, lane: (await bench.lane()).id });
}

async function quarantined(bench: Bench, text = "{broken"): Promise<number> {
  await bench.step({ quarantines: [bench.quarantine(text)] });
  return bench.only((await bench.store.findQuarantined({ limit: 1 })).items).id;
}

export const operatorCases: readonly ContractCase[] = [
  it("discards the expected event: the cursor moves past it, and the next is on time (I8, I10)", async (bench) => {
    await bench.handle(bench.event(1));
    await bench.accept(bench.event(2), bench.event(3));
    const { id } = await bench.at(2);
    bench.expect(await discard(bench, 2)).toEqual({ ok: true, event: id, count: 1 });
    bench.expect(await bench.at(2)).toMatchObject({ state: "discarded", finishedAt: bench.clock.now(), outcome: null });
    bench.expect((await bench.lane()).cursor).toBe(2);
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 3, missing: null });
    bench.expect((await bench.store.stats()).counters.discarded).toBe(1);
  }),
  it("discards another event without moving the cursor", async (bench) => {
    await bench.accept(bench.event(4), bench.event(6));
    const { gapSince } = await bench.lane();
    await bench.clock.advance(1_000);
    await discard(bench, 4);
    bench.expect(await bench.lane()).toMatchObject({ status: "gap", cursor: null, gapSince });
    await discard(bench, 6);
    bench.expect(await bench.lane()).toMatchObject({ status: "idle", readyAt: null, gapSince: null });
  }),
  it("does not wait for a sequence that was discarded early: it cannot arrive any more (I6)", async (bench) => {
    await bench.handle(bench.event(1));
    await bench.accept(bench.event(3));
    await discard(bench, 3);
    await bench.accept(bench.event(2), bench.event(4));
    await bench.settle(bench.complete(await bench.claimOne()));
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 4, missing: null });
    bench.expect((await bench.lane()).gaps).toEqual([]);
  }),
  it("refuses to discard a leased, a finished and an unknown event (I8)", async (bench) => {
    await bench.accept(bench.event(1));
    const lease = await bench.claimOne();
    bench.expect(await discard(bench, 1)).toEqual({ ok: false, reason: "in_progress" });
    bench.expect(await bench.settle(bench.complete(lease))).toEqual(["settled"]);
    bench.expect(await discard(bench, 1)).toEqual({ ok: false, reason: "wrong_state" });
    bench.expect(await bench.act({ kind: "discard", event: 1e9 })).toEqual({ ok: false, reason: "not_found" });
  }),
  it("discards behind an event that is being handled, whose lease stays (I3, I4)", async (bench) => {
    await bench.accept(bench.event(1), bench.event(2), bench.event(3));
    const lease = await bench.claimOne();
    await discard(bench, 2);
    bench.expect((await bench.lane()).status).toBe("leased");
    bench.expect(await bench.claim()).toEqual([]);
    bench.expect(await bench.settle(bench.complete(lease))).toEqual(["settled"]);
    bench.expect(sequences(await bench.claim())).toEqual([3]);
  }),
  it("discards the head of a lane in backoff: the next is due at once", async (bench) => {
    await bench.accept(bench.event(1), bench.event(2));
    await bench.settle(bench.retry(await bench.claimOne(), 600_000));
    await discard(bench, 1);
    bench.expect(sequences(await bench.claim())).toEqual([2]);
  }),
  it("discards behind a lane's backoff without shortening it", async (bench) => {
    await bench.accept(bench.event(1), bench.event(2));
    await bench.settle(bench.retry(await bench.claimOne(), 600_000));
    const { readyAt } = await bench.lane();
    await discard(bench, 2);
    bench.expect(await bench.lane()).toMatchObject({ status: "backoff", readyAt, cursor: 2 });
  }),
  it("ends a gap's wait when the waiting event is discarded: the next one waits for its full gap wait (I6)", async (bench) => {
    await bench.accept(bench.event(1), bench.event(3));
    await bench.settle(bench.complete(await bench.claimOne()));
    await replay(bench, 1);
    const lease = await bench.claimOne();
    await discard(bench, 3);
    bench.expect(await bench.lane()).toMatchObject({ status: "leased", gapSince: null });
    await bench.clock.advance(60_000);
    await bench.accept(bench.event(5));
    await bench.settle(bench.complete(lease));
    const since = bench.clock.now();
    bench.expect(await bench.lane()).toMatchObject({ status: "gap", gapSince: since, readyAt: since + 90_000 });
    await replay(bench, 1);
    await discard(bench, 5);
    bench.expect(await bench.lane()).toMatchObject({ status: "ready", gapSince: null });
  }),
  it("ends a gap's wait when the first waiting event is discarded: a later one waits for its own time (I6)", async (bench) => {
    await bench.handle(bench.event(1));
    await bench.accept(bench.event(3));
    await bench.clock.advance(89_000);
    await bench.accept(bench.event(9), bench.event(12));
    await discard(bench, 3);
    const since = bench.clock.now();
    bench.expect(await bench.lane()).toMatchObject({ status: "gap", gapSince: since, readyAt: since + 90_000 });
    await bench.clock.advance(60_000);
    await discard(bench, 12);
    bench.expect(await bench.lane()).toMatchObject({ status: "gap", gapSince: since, readyAt: since + 90_000 });
  }),
  it("ends a gap's wait when the waiting event is replayed early (I6)", async (bench) => {
    await bench.accept(bench.event(1), bench.event(3));
    await bench.settle(bench.complete(await bench.claimOne()));
    await replay(bench, 1);
    await bench.settle(bench.retry(await bench.claimOne(), 600_000));
    await replay(bench, 3);
    bench.expect(await bench.lane()).toMatchObject({ status: "backoff", gapSince: null });
  }),
  it("discards the dead letter of a blocked lane, which goes on (I9)", async (bench) => {
    await bench.accept(bench.event(1), bench.event(2));
    await bench.settle(bench.dead(await bench.claimOne(), "block"));
    await discard(bench, 1);
    bench.expect(await bench.at(1)).toMatchObject({ state: "discarded", errorCode: "handler_failed" });
    bench.expect(sequences(await bench.claim())).toEqual([2]);
  }),
  it("unblocks a blocked lane and no other (I9)", async (bench) => {
    await bench.accept(bench.event(1), bench.event(2));
    bench.expect(await onLane(bench, "unblock")).toEqual({ ok: false, reason: "wrong_state" });
    const lease = await bench.claimOne();
    bench.expect(await onLane(bench, "unblock")).toEqual({ ok: false, reason: "in_progress" });
    await bench.settle(bench.dead(lease, "block"));
    bench.expect(await onLane(bench, "unblock")).toMatchObject({ ok: true, count: 1 });
    bench.expect(sequences(await bench.claim())).toEqual([2]);
    bench.expect(await bench.act({ kind: "unblock", lane: 1e9 })).toEqual({ ok: false, reason: "not_found" });
  }),
  it("releases a gap: its head is due now, on time and not forced (I6)", async (bench) => {
    await bench.accept(bench.event(3));
    bench.expect(await onLane(bench, "release_gap")).toMatchObject({ ok: true, count: 1 });
    const lease = await bench.claimOne();
    bench.expect(lease).toMatchObject({ sequence: 3, forced: false, missing: { from: 1, to: 2 } });
    bench.expect(await onLane(bench, "release_gap")).toEqual({ ok: false, reason: "in_progress" });
    await bench.settle(bench.complete(lease));
    bench.expect(await onLane(bench, "release_gap")).toEqual({ ok: false, reason: "wrong_state" });
    bench.expect(await bench.lane()).toMatchObject({ cursor: 3, gaps: [{ from: 1, to: 2 }] });
    bench.expect(await bench.act({ kind: "release_gap", lane: 1e9 })).toEqual({ ok: false, reason: "not_found" });
  }),
  it("replays a quarantined body as an event (I10)", async (bench) => {
    const quarantine = await quarantined(bench);
    const event = bench.event(1);
    const request = { kind: "replay_quarantined", quarantine, event } as const;
    const result = await bench.act(request);
    const { id } = await bench.at(1);
    bench.expect(result).toEqual({ ok: true, event: id, count: 1 });
    const row = bench.only((await bench.store.findQuarantined({ states: ["replayed"], limit: 10 })).items);
    bench.expect(row).toMatchObject({ id: quarantine, replayedAs: id });
    bench.expect(await bench.act(request)).toEqual({ ok: false, reason: "wrong_state" });
    bench.expect(hex((await bench.claimOne()).raw)).toBe(hex(event.raw));
    bench.expect((await bench.store.stats()).gauges.quarantined).toBe(0);
  }),
  it("replays a quarantined body by the ordinary rules: as a duplicate, as a late event", async (bench) => {
    await bench.handle(bench.event(2, { gapWaitMs: 0 }));
    const { id } = await bench.at(2);
    const duplicate = { kind: "replay_quarantined", event: bench.event(2) } as const;
    const result = await bench.act({ ...duplicate, quarantine: await quarantined(bench) });
    bench.expect(result).toMatchObject({ ok: true, event: id });
    bench.expect((await bench.at(2)).duplicates).toBe(1);
    const late = { ...duplicate, event: bench.event(1) };
    await bench.act({ ...late, quarantine: await quarantined(bench, "{also broken") });
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 1, late: true });
  }),
  it("replays and discards only from the requested state, if the request names one", async (bench) => {
    await bench.accept(bench.event(1));
    await bench.settle(bench.dead(await bench.claimOne()));
    const { id } = await bench.at(1);
    const wrong = { ok: false, reason: "wrong_state" };
    for (const kind of ["replay", "discard"] as const)
      bench.expect(await bench.act({ kind, event: id, from: "late" })).toEqual(wrong);
    bench.expect(await bench.act({ kind: "replay", event: id, from: "dead" })).toMatchObject({ ok: true });
    await bench.settle(bench.complete(await bench.claimOne()));
    bench.expect(await bench.act({ kind: "replay", event: id, from: "dead" })).toEqual(wrong);
    bench.expect(await bench.at(1)).toMatchObject({ state: "done", outcome: "handled" });
  }),
  it("replays and discards only an event that ended at the requested time, if the request names one", async (bench) => {
    await bench.accept(bench.event(1));
    await bench.settle(bench.dead(await bench.claimOne()));
    const { id, finishedAt } = await bench.at(1);
    await bench.clock.advance(1);
    const first = await bench.act({ kind: "replay", event: id, from: "dead", finishedAt });
    bench.expect(first).toMatchObject({ ok: true });
    await bench.settle(bench.dead(await bench.claimOne()));
    const wrong = { ok: false, reason: "wrong_state" };
    for (const kind of ["replay", "discard"] as const)
      bench.expect(await bench.act({ kind, event: id, from: "dead", finishedAt })).toEqual(wrong);
    const again = (await bench.at(1)).finishedAt;
    bench.expect(await bench.act({ kind: "discard", event: id, finishedAt: again })).toMatchObject({ ok: true });
  }),
  it("discards a quarantined body", async (bench) => {
    const quarantine = await quarantined(bench);
    bench.expect(await bench.act({ kind: "discard_quarantined", quarantine })).toMatchObject({ ok: true, count: 1 });
    bench
      .expect(await bench.act({ kind: "discard_quarantined", quarantine }))
      .toEqual({ ok: false, reason: "wrong_state" });
    const gone = await bench.act({ kind: "discard_quarantined", quarantine: 1e9 });
    bench.expect(gone).toEqual({ ok: false, reason: "not_found" });
    const { items } = await bench.store.findQuarantined({ limit: 10 });
    bench.expect(items).toMatchObject([{ state: "discarded" }]);
  }),
  it("records who was shown a message or a quarantined body, and changes nothing else", async (bench) => {
    await bench.accept(bench.event(1));
    const quarantine = await quarantined(bench);
    const before = await bench.lane();
    bench.expect(await onLane(bench, "reveal")).toMatchObject({ ok: true, count: 1 });
    bench.expect(await bench.act({ kind: "reveal_quarantined", quarantine })).toMatchObject({ ok: true, count: 1 });
    bench.expect(await bench.lane()).toEqual(before);
    const rows = (await bench.store.audit(10)).map(({ act, by }) => ({ act, by }));
    bench.expect(rows).toEqual([
      { act: "reveal_quarantined", by: "operator" },
      { act: "reveal", by: "operator" },
    ]);
    const missing = { ok: false, reason: "not_found" };
    bench.expect(await bench.act({ kind: "reveal", lane: 1e9 })).toEqual(missing);
    bench.expect(await bench.act({ kind: "reveal_quarantined", quarantine: 1e9 })).toEqual(missing);
  }),
  it("records who did what and when, newest first, without numbers or texts", async (bench) => {
    await bench.accept(bench.event(2, { peer: "+15550001" }));
    await onLane(bench, "release_gap");
    await bench.clock.advance(1_000);
    await bench.store.act({ kind: "erase", subject: { peer: "+15550001" } }, "someone else");
    const rows = await bench.store.audit(10);
    bench.expect(rows).toMatchObject([
      { act: "erase", by: "someone else", at: bench.clock.now() },
      { act: "release_gap", by: "operator", at: bench.clock.now() - 1_000 },
    ]);
    bench.expect(rows.some((row) => row.detail.includes("5550001"))).toBe(false);
    bench.expect((await bench.store.audit(1)).map((row) => row.act)).toEqual(["erase"]);
  }),
];
