import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { LeaseLost, SetupError } from "../../src/errors.ts";
import { LeaseContext } from "../../src/inbox/runner.ts";
import type { Lease } from "../../src/inbox/store.ts";
import { type Logger, silentLogger } from "../../src/internal/logger.ts";

const lease: Lease = {
  ...{ lane: 7, token: 3, event: 11, ownId: null, sequence: 4, eventType: "message.failed", attempt: 2 },
  key: { source: "service", tenant: "client", name: "msg_1", order: "sequence" },
  ...{ acceptedAt: 1_000, signedAt: 900, late: false, forced: true, outOfOrder: true, cursorBefore: null },
  missing: { from: 2, to: 3 },
  ...{ trace: "00-trace", raw: Buffer.from("{}"), head: null, acceptIndex: null },
};

const TRANSACTIONAL = { capabilities: { transactional: true } };

describe("LeaseContext", () => {
  it("shows what the lease says", () => {
    const context = new LeaseContext<never>(lease, silentLogger, TRANSACTIONAL);
    expect(context).toMatchObject({
      ...{
        attempt: 2,
        receivedAt: 1_000,
        timestamp: 900,
        missing: { from: 2, to: 3 },
        replay: true,
        late: false,
        outOfOrder: true,
      },
      meta: {
        ...{ eventId: 11, laneId: 7, source: "service", tenant: "client", lane: "msg_1", id: null, sequence: 4 },
        ...{ eventType: "message.failed", traceparent: "00-trace" },
      },
    });
    expect(context.rawBody).toBe(lease.raw);
  });

  it("names the event by the hash of its identity, the same for each attempt (EVT-12)", () => {
    const context = new LeaseContext<never>(lease, silentLogger, TRANSACTIONAL);
    const identity = hash("sha256", '["service","client","msg_1",4,"message.failed"]');
    expect([context.identity, context.identity]).toEqual([identity, identity]);
    expect(new LeaseContext<never>({ ...lease, attempt: 9, token: 9 }, silentLogger, TRANSACTIONAL).identity).toBe(
      identity,
    );
  });

  it("names an event that has an id of its own by it, and shows the id (EVT-12)", () => {
    const key = { source: "billing", tenant: null, name: "sub_1", order: "position" } as const;
    const context = new LeaseContext<never>({ ...lease, key, ownId: "evt_1" }, silentLogger, TRANSACTIONAL);
    expect(context.identity).toBe(hash("sha256", '["billing",null,"evt_1"]'));
    expect(context.meta).toMatchObject({ source: "billing", tenant: null, lane: "sub_1", id: "evt_1" });
  });

  it("makes a logger, a signal and an identity only when they are asked for", () => {
    const children: object[] = [];
    const logger: Logger = {
      ...silentLogger,
      child(fields) {
        children.push(fields);
        return silentLogger;
      },
    };
    const context = new LeaseContext<never>(lease, logger, TRANSACTIONAL);
    expect(context.aborted).toBe(false);
    context.commit(() => {});
    expect(children).toEqual([]);
    expect(context.log).toBe(silentLogger);
    expect(children[0]).toMatchObject({
      eventId: 11,
      eventType: "message.failed",
      sequence: 4,
      source: "service",
      lane: "msg_1",
    });
    expect(context.signal).toBe(context.signal);
  });

  it("logs through a logger that makes no children as it is", () => {
    const { child: _, ...logger } = silentLogger;
    expect(new LeaseContext<never>(lease, logger, TRANSACTIONAL).log).toBe(logger);
  });

  it("aborts a signal that was asked for, or is asked for later", () => {
    const early = new LeaseContext<never>(lease, silentLogger, TRANSACTIONAL);
    const { signal } = early;
    const late = new LeaseContext<never>(lease, silentLogger, TRANSACTIONAL);
    const reason = new LeaseLost();
    for (const context of [early, late]) context.abort(reason);
    expect([signal.aborted, signal.reason]).toEqual([true, reason]);
    expect([late.signal.aborted, late.signal.reason, late.aborted]).toEqual([true, reason, true]);
  });

  it("collects effects in order, and refuses them once the event is settled or aborted", () => {
    const context = new LeaseContext<string>(lease, silentLogger, TRANSACTIONAL);
    const [first, second] = [() => 1, () => 2];
    context.commit(first);
    context.commit(second);
    context.close();
    expect(() => context.commit(first)).toThrow(LeaseLost);
    expect(context.effects).toEqual([first, second]);
    const aborted = new LeaseContext<string>(lease, silentLogger, TRANSACTIONAL);
    aborted.abort(new Error("time"));
    expect(() => aborted.commit(first)).toThrow(LeaseLost);
  });

  it("asks the store before it takes an effect", () => {
    const refusal = new SetupError("async_effect", "no");
    const refuse = () => {
      throw refusal;
    };
    const context = new LeaseContext<string>(lease, silentLogger, { ...TRANSACTIONAL, checkEffect: refuse });
    expect(() => context.commit(async (_tx) => {})).toThrow(refusal);
    expect(context.effects).toEqual([]);
  });

  it("names sqliteStore where the store has no transactions", () => {
    const context = new LeaseContext<never>(lease, silentLogger, { capabilities: { transactional: false } });
    expect(() => context.commit(() => {})).toThrow(SetupError);
    expect(() => context.commit(() => {})).toThrow(/sqliteStore from oncehook\/sqlite/);
  });
});
