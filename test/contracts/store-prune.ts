/** The store contract on retention: what is removed when, and what a wrong clock must not remove. */
import { type Bench, type ContractCase, DAY, hex, it, POLICY } from "./store-bench.ts";

const NOTHING = { bodies: 0, events: 0, lanes: 0, quarantined: 0 };

/** Lets days pass while the service goes on sending: its timestamps move with the clock. */
async function days(bench: Bench, count: number): Promise<void> {
  await bench.clock.advance(count * DAY + 1);
  await bench.accept(bench.of("witness", 1));
}

/** Leases an event that is never recovered. Its repeats bring the newest timestamps, and no claim returns it. */
async function witness(bench: Bench): Promise<void> {
  await bench.accept(bench.of("witness", 1));
  await bench.claimOne();
}

export const pruneCases: readonly ContractCase[] = [
  it("prunes bodies of handled events first, then others, and identities last (I1)", async (bench) => {
    await witness(bench);
    await bench.handle(bench.of("handled", 1));
    await bench.accept(bench.of("unhandled", 1));
    await bench.settle(bench.complete(await bench.claimOne(), "unhandled"));
    await days(bench, 6);
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 0, events: 0, lanes: 0, more: false });
    await days(bench, 1);
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 1, events: 0 });
    const { raw, digest } = await bench.at(1, "handled");
    bench.expect([raw, digest.byteLength, (await bench.at(1, "unhandled")).raw === null]).toEqual([null, 32, false]);
    const { accepted } = await bench.accept(bench.of("handled", 1, { note: "differs" }));
    bench.expect(accepted).toMatchObject([{ outcome: "duplicate", state: "done", conflict: false }]);
    const { id } = await bench.at(1, "handled");
    bench.expect(await bench.act({ kind: "replay", event: id })).toEqual({ ok: false, reason: "body_pruned" });
    await days(bench, 23);
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 2, lanes: 2, more: false });
    bench.expect((await bench.find()).map((event) => event.lane.name)).toEqual(["witness"]);
    bench.expect((await bench.accept(bench.of("handled", 1))).accepted).toMatchObject([{ outcome: "accepted" }]);
  }),
  it("never prunes pending events, and prunes dead letters last (I10)", async (bench) => {
    await witness(bench);
    await bench.accept(bench.of("dead", 1), bench.of("pending", 2));
    await bench.settle(bench.dead(await bench.claimOne()));
    await bench.step({ quarantines: [bench.quarantine("{broken")] });
    await days(bench, 89);
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 0, events: 0, quarantined: 0 });
    bench.expect(hex((await bench.at(1, "dead")).raw) === null).toBe(false);
    await days(bench, 1);
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 1, lanes: 1, quarantined: 1 });
    bench.expect((await bench.find()).map((event) => event.lane.name)).toEqual(["witness", "pending"]);
    bench.expect((await bench.step({ quarantines: [bench.quarantine("{broken")] })).quarantined).toEqual(["held"]);
  }),
  it("counts an identity's retention from its end, however long ago it was accepted (I1)", async (bench) => {
    await witness(bench);
    await bench.accept(bench.event(2));
    await days(bench, 40);
    await bench.settle(bench.complete(await bench.claimOne()));
    await days(bench, 29);
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 1, events: 0 });
    await days(bench, 1);
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 1, lanes: 1 });
  }),
  it("prunes the body of a discarded event with the other bodies, before its identity", async (bench) => {
    await witness(bench);
    await bench.accept(bench.of("set aside", 1));
    await bench.act({ kind: "discard", event: (await bench.at(1, "set aside")).id });
    const policy = { ...POLICY, otherBodiesMs: DAY };
    await days(bench, 2);
    bench.expect(await bench.store.prune(policy)).toMatchObject({ bodies: 1, events: 0 });
    bench.expect(await bench.at(1, "set aside")).toMatchObject({ state: "discarded", raw: null });
  }),
  it("prunes the body of a late event with the other bodies", async (bench) => {
    await witness(bench);
    await bench.handle(bench.event(3, { gapWaitMs: 0 }));
    await bench.record(bench.event(2));
    const policy = { ...POLICY, identitiesMs: 60 * DAY };
    await days(bench, 29);
    bench.expect(await bench.store.prune(policy)).toMatchObject({ bodies: 1, events: 0 });
    bench.expect([(await bench.at(2)).raw === null, (await bench.at(3)).raw]).toEqual([false, null]);
    await days(bench, 1);
    bench.expect(await bench.store.prune(policy)).toMatchObject({ bodies: 1, events: 0 });
  }),
  it("keeps a lane and its gaps until its last event is pruned, but no attempts of pruned events", async (bench) => {
    await witness(bench);
    await bench.accept(bench.event(3, { gapWaitMs: 0 }));
    await bench.settle(bench.retry(await bench.claimOne(), 0));
    await bench.settle(bench.complete(await bench.claimOne()));
    await days(bench, 20);
    await bench.record(bench.event(2));
    await days(bench, 11);
    bench.expect((await bench.lane()).attempts.length).toBe(1);
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 1, lanes: 0 });
    const lane = await bench.lane();
    bench.expect(lane).toMatchObject({ cursor: 3, events: [{ sequence: 2 }], gaps: [{ from: 1, to: 2 }] });
    bench.expect(lane.attempts).toEqual([]);
    await days(bench, 20);
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 1, lanes: 1 });
  }),
  it("prunes nothing by a clock that ran ahead of the service's timestamps (I1)", async (bench) => {
    await bench.handle(bench.event(1));
    await bench.clock.advance(400 * DAY);
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 0, events: 0, lanes: 0, quarantined: 0 });
    await bench.accept(bench.of("new", 1));
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 1, lanes: 1 });
  }),
  it("counts retention from the acceptance of an event that ended while the clock was set back (I1, I10)", async (bench) => {
    await witness(bench);
    await bench.accept(bench.of("dead", 1), bench.of("unhandled", 1));
    const rightTime = bench.clock.now();
    bench.clock.set(rightTime - 3_650 * DAY);
    const [dead, unhandled] = await bench.claimTwo();
    await bench.settle(bench.dead(dead), bench.complete(unhandled, "unhandled"));
    bench.clock.set(rightTime);
    await days(bench, 29);
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 0, events: 0, lanes: 0 });
    await days(bench, 61);
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 2, lanes: 2 });
  }),
  it("counts retention from the verified timestamp of an event that was accepted while the clock was set back (I1, I10)", async (bench) => {
    await witness(bench);
    const signedAt = bench.clock.now();
    bench.clock.set(signedAt - 3_650 * DAY);
    await bench.handle(bench.of("handled", 1, { signedAt }));
    await bench.step({ quarantines: [bench.quarantine("{broken", { signedAt })] });
    await bench.act({ kind: "discard_quarantined", quarantine: 1 });
    bench.clock.set(signedAt);
    const policy = { ...POLICY, handledBodiesMs: 29 * DAY };
    await days(bench, 29);
    bench.expect(await bench.store.prune({ ...policy, handledBodiesMs: 30 * DAY })).toMatchObject(NOTHING);
    bench.expect(await bench.store.prune(policy)).toMatchObject({ bodies: 1, events: 0, quarantined: 0 });
    await days(bench, 1);
    bench.expect(await bench.store.prune(policy)).toMatchObject({ events: 1, lanes: 1, quarantined: 1 });
    // Nothing of a discarded body is left by which it could be known.
    bench.expect((await bench.step({ quarantines: [bench.quarantine("{broken")] })).quarantined).toEqual(["held"]);
  }),
  it("prunes in batches", async (bench) => {
    await bench.accept(...[1, 2, 3].map((n) => bench.of(`m${n}`, 1)));
    await bench.settle(...(await bench.claim()).map((lease) => bench.complete(lease)));
    await bench.clock.advance(31 * DAY);
    await bench.accept(bench.of("new", 1));
    const policy = { ...POLICY, batch: 2 };
    bench.expect(await bench.store.prune(policy)).toMatchObject({ events: 2, lanes: 2, more: true });
    bench.expect(await bench.store.prune(policy)).toMatchObject({ events: 1, lanes: 1, more: false });
  }),
];
