import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import {
  type AttemptInfo,
  type AttemptReport,
  type CommitReport,
  type DeliveryReport,
  type Instrumentation,
  Instruments,
} from "../../../src/inbox/instrumentation.ts";
import { createReceiver, PermanentError, RetryAfter } from "../../../src/index.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import { type Bench, incoming, MINUTE, memoryBench, SECRET, sqliteBench, until } from "../../receiver/bench.ts";
import { inbound, outbound } from "../../receiver/events.ts";

/** Keeps what it is told. */
class Heard implements Instrumentation {
  readonly deliveries: DeliveryReport[] = [];
  readonly attempts: (AttemptInfo & Partial<AttemptReport>)[] = [];
  readonly commits: CommitReport[] = [];

  delivery() {
    return { ended: (report: DeliveryReport) => void this.deliveries.push(report) };
  }

  attempt(info: AttemptInfo) {
    return { ended: (report: AttemptReport) => void this.attempts.push({ ...info, ...report }) };
  }

  commit(report: CommitReport) {
    this.commits.push(report);
  }
}

/** Listens to `bench`, on which nothing has happened yet. */
function listenTo<Tx>({ receiver }: Bench<Tx>): Heard {
  const heard = new Heard();
  receiver.instrument(heard);
  return heard;
}

const told = ({ outcome, status, reason, slot }: DeliveryReport) => [outcome, status, reason, slot];

describe("what is told of a delivery", () => {
  it("is its outcome, and the slot of the secret that vouches for it", async () => {
    const previous = { secret: "another-signing-secret-of-32-byt", validUntil: 1_760_000_000_000 + 60 * MINUTE };
    const bench = sqliteBench({ secrets: { current: SECRET, previous }, gapWait: "eager" });
    const heard = listenTo(bench);
    bench.receiver.onAny(() => {});
    await bench.deliver(inbound());
    await bench.deliver(inbound(), { secret: previous.secret });
    await bench.deliver(inbound({ text: "Something else." }));
    await bench.deliver("no event");
    await bench.deliver(outbound("delivery", { messageId: "m" }));
    await bench.receiver.drain();
    await bench.deliver(outbound("queued", { messageId: "m" }));
    expect(heard.deliveries.map(told)).toEqual([
      ["accepted", 200, null, "current"],
      ["duplicate", 200, null, "previous"],
      ["conflict", 200, null, "current"],
      ["quarantined", 200, "invalid_json", "current"],
      ["accepted", 200, null, "current"],
      ["late", 200, null, "current"],
    ]);
  });

  it("is why it was refused or failed, with the status of the answer", async () => {
    const bench = sqliteBench({ quarantine: "reject" });
    const heard = listenTo(bench);
    await bench.deliver(inbound(), { secret: "not-the-signing-secret-of-the-se" });
    await bench.deliver(inbound(), { unsigned: true });
    await bench.deliver(inbound(), { method: "GET" });
    await bench.deliver(inbound(), { at: 1 });
    await bench.deliver("no event");
    for (const reason of ["too_large", "truncated", "cut", "already_parsed"] as const) {
      await bench.deliver(inbound(), { readBody: () => ({ ok: false, reason }) });
    }
    bench.store.faults.step = Object.assign(new Error("no space"), { code: "SQLITE_FULL" });
    await bench.deliver(inbound());
    const statuses = heard.deliveries.map(told);
    expect(statuses).toEqual([
      ["refused", 401, "signature_mismatch", null],
      ["refused", 401, expect.stringMatching(/missing/), null],
      ["refused", 405, "method", null],
      ["refused", 401, expect.stringMatching(/timestamp/), null],
      ["refused", 400, "invalid_event", "current"],
      ["refused", 413, "too_large", null],
      ["refused", 400, "truncated", null],
      ["failed", 503, "cut", null],
      ["failed", 500, "already_parsed", null],
      ["failed", 503, "SQLITE_FULL", "current"],
    ]);
  });

  it('is how it was handled, with ack: "handled"', async () => {
    const bench = memoryBench();
    const heard = listenTo(bench);
    bench.receiver.on("message.inbound", ({ data }) => {
      if (data.body === "fail") throw new RetryAfter(60_000, "Later.");
    });
    await bench.deliver(inbound({ messageId: "one", text: "well" }));
    await bench.deliver(inbound({ messageId: "two", text: "fail" }));
    // Other content under its identity, and it is not handled either.
    await bench.deliver(inbound({ messageId: "two", text: "other" }));
    expect(heard.deliveries.map(told)).toEqual([
      ["handled", 200, null, "current"],
      ["failed", 503, "not_handled", "current"],
      ["failed", 503, "not_handled", "current"],
    ]);
  });
});

describe("what is told of an attempt", () => {
  it("is how it ended, with the code of what was thrown", async () => {
    const bench = sqliteBench({ maxAttempts: 2 });
    const heard = listenTo(bench);
    bench.receiver.on("message.inbound", (event, ctx) => {
      const { body } = event.data;
      if (body === "retry" && ctx.attempt === 1) throw Object.assign(new Error("x"), { code: "ECONNREFUSED" });
      if (body === "dead") throw new PermanentError("no");
      if (body === "effect")
        ctx.commit((_db) => {
          throw new TypeError("no such table");
        });
    });
    await bench.receiver.start();
    for (const text of ["well", "retry", "dead", "effect"]) await bench.deliver(inbound({ messageId: text, text }));
    await bench.deliver(outbound("queued"));
    await until(() => heard.attempts.length >= 5);
    await bench.clock.advance(MINUTE);
    await until(() => heard.attempts.length >= 7);
    const ends = heard.attempts.map(({ lane, id, attempt, ending, errorCode }) => [
      lane.name === null ? id : "outbound",
      ...[attempt, ending, errorCode],
    ]);
    expect(ends).toEqual(
      expect.arrayContaining([
        ["well", 1, "handled", null],
        ["retry", 1, "retry", "ECONNREFUSED"],
        ["retry", 2, "handled", null],
        ["dead", 1, "dead", "permanent_failure"],
        ["effect", 1, "retry", "TypeError"],
        ["effect", 2, "dead", "TypeError"],
        ["outbound", 0, "unhandled", null],
      ]),
    );
    expect(ends).toHaveLength(7);
  });

  it("tells a late event, a replay, what was missing, and the delivery's trace", async () => {
    const bench = sqliteBench({ gapWait: "eager" });
    const heard = listenTo(bench);
    bench.receiver.onAny(() => {}).onLate(() => {});
    await bench.receiver.start();
    const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    await bench.deliver(outbound("delivery", { messageId: "m" }), { headers: { traceparent } });
    await until(() => heard.attempts.length === 1);
    await bench.deliver(outbound("queued", { messageId: "m" }));
    await until(() => heard.attempts.length === 2);
    await bench.receiver.inbox.replay(heard.attempts[0]?.eventId ?? 0);
    await until(() => heard.attempts.length === 3);
    expect(heard.attempts).toMatchObject([
      { late: false, replay: false, missing: { from: 1, to: 2 }, traceparent, eventType: "message.delivery" },
      { late: true, replay: false, traceparent: null },
      { late: false, replay: true, attempt: 1 },
    ]);
  });

  it("makes a context current in the handlers and in what they await, and nowhere else", async () => {
    const bench = sqliteBench({ concurrency: 1 });
    const current = new AsyncLocalStorage<number>();
    const seen: (readonly [string, ...unknown[]])[] = [];
    bench.receiver.instrument({ attempt: ({ eventId }) => ({ run: (work) => current.run(eventId, work) }) });
    bench.receiver.instrument({ attempt: () => ({ ended: () => void seen.push(["ended", current.getStore()]) }) });
    bench.receiver.onAny((_, ctx) => void seen.push(["sync", ctx.meta.eventId, current.getStore()]));
    bench.receiver.onAny(async (_, ctx) => {
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(["async", ctx.meta.eventId, current.getStore()]);
    });
    bench.receiver.onAny((_, ctx) => void seen.push(["after", ctx.meta.eventId, current.getStore()]));
    for (const id of ["one", "two"]) await bench.deliver(inbound({ messageId: id }));
    await bench.receiver.drain();
    const of = (id: number) => ["sync", "async", "after"].map((name) => [name, id, id]);
    expect(seen.filter(([name]) => name !== "ended")).toEqual([...of(1), ...of(2)]);
    expect(seen.filter(([name]) => name === "ended")).toEqual([
      ["ended", undefined],
      ["ended", undefined],
    ]);
  });
});

describe("what is told of write transactions", () => {
  it("is what each wrote and claimed, and whether it went through", async () => {
    const bench = sqliteBench();
    const heard = listenTo(bench);
    bench.receiver.onAny(() => {});
    await bench.deliver(inbound());
    bench.store.faults.step = new Error("no");
    await bench.deliver(inbound({ messageId: "lost" }));
    bench.store.faults.step = null;
    await bench.receiver.drain();
    const wrote = heard.commits.filter(({ accepts, settles, leases }) => accepts + settles + leases > 0);
    expect(wrote).toMatchObject([
      { ok: true, accepts: 1, quarantines: 0, settles: 0, leases: 0, retired: 0 },
      { ok: false, accepts: 1 },
      { ok: true, accepts: 0, leases: 1 },
      { ok: true, settles: 1 },
    ]);
  });
});

describe("an instrumentation", () => {
  it("that throws is logged by its code, and changes nothing", async () => {
    const bench = sqliteBench();
    const fail = (): never => {
      throw Object.assign(new Error("with a text"), { code: "EBROKEN" });
    };
    const observer = { run: fail, ended: () => Promise.reject(new Error("later")) as never };
    bench.receiver.instrument({ delivery: fail, attempt: fail, commit: fail });
    bench.receiver.instrument({ delivery: () => observer, attempt: () => observer });
    bench.receiver.instrument({
      delivery: () => ({ run: () => {} }),
      attempt: () => ({ run: (work) => [work(), work()] }),
    });
    let handled = 0;
    bench.receiver.onAny(() => void handled++);
    expect((await bench.deliver(inbound())).status).toBe(200);
    expect(await bench.receiver.drain()).toMatchObject({ claimed: 1 });
    expect(handled).toBe(1);
    expect(bench.codes()).toContain("EBROKEN");
    expect(JSON.stringify(bench.log)).not.toContain("with a text");
  });

  it.each<[string, (work: () => void) => void]>([
    ["never", () => {}],
    ["twice", (work) => [work(), work()]],
  ])("that calls the work %s has the handlers run once", async (_, run) => {
    const bench = sqliteBench();
    bench.receiver.instrument({ attempt: () => ({ run }) });
    let handled = 0;
    bench.receiver.onAny(() => void handled++);
    await bench.deliver(inbound());
    await bench.receiver.drain();
    expect(handled).toBe(1);
  });

  it("is not asked for anything while it does not listen", async () => {
    const bench = sqliteBench();
    let listens = false;
    let asked = 0;
    const ask = () => void asked++ as undefined;
    bench.receiver.instrument({ isListening: () => listens, delivery: ask, attempt: ask, commit: ask });
    const another = listenTo(bench);
    bench.receiver.onAny(() => {});
    await bench.deliver(inbound());
    await bench.receiver.drain();
    expect(asked).toBe(0);
    expect([another.deliveries.length, another.attempts.length]).toEqual([1, 1]);
    listens = true;
    await bench.deliver(inbound({ messageId: "another" }));
    expect(asked).toBeGreaterThan(0);
  });

  it("that can not say whether it listens is logged, and does not listen", async () => {
    const bench = sqliteBench();
    let asked = 0;
    bench.receiver.instrument({
      isListening() {
        throw Object.assign(new Error("with a text"), { code: "EDEAF" });
      },
      delivery: () => void asked++ as undefined,
    });
    expect((await bench.deliver(inbound())).status).toBe(200);
    expect(asked).toBe(0);
    expect(bench.codes()).toContain("EDEAF");
  });

  it("that does not listen is as good as none", () => {
    const { logger, clock } = sqliteBench();
    const instruments = new Instruments(logger, clock);
    let listens = false;
    instruments.add({ isListening: () => listens, commit: () => {} });
    expect(instruments.hears("commit")).toBe(false);
    listens = true;
    expect((["delivery", "attempt", "commit"] as const).filter((what) => instruments.hears(what))).toEqual(["commit"]);
  });

  it("of the new receiver is used after a reload", async () => {
    const bench = sqliteBench();
    const before = listenTo(bench);
    bench.receiver.onAny(() => {});
    await bench.deliver(inbound());
    const { clock, logger } = bench;
    const next = createReceiver({ secrets: SECRET, store: memoryStore({ volatile: true }), clock, logger });
    const after = new Heard();
    next.onAny(() => {}).instrument(after);
    next.takeOver(bench.receiver as never);
    await next.handle(incoming(inbound({ messageId: "two" }), clock.now()));
    await next.drain();
    expect([before.deliveries.length, before.attempts.length]).toEqual([1, 0]);
    expect([after.deliveries.length, after.attempts.length]).toEqual([1, 2]);
  });

  it.each<[unknown, RegExp]>([
    [null, /takes an object with/],
    [() => {}, /takes an object with/],
    ["delivery", /takes an object with/],
    [{ isListening: true }, /instrument\.isListening/],
    [{ delivery: 1 }, /instrument\.delivery/],
    [{ attempt: "a" }, /instrument\.attempt/],
    [{ commit: true }, /instrument\.commit/],
  ])("is refused when it is %o", (wrong, message) => {
    const add = () => sqliteBench().receiver.instrument(wrong as never);
    expect(add).toThrow(expect.objectContaining({ code: "invalid_option", message: expect.stringMatching(message) }));
  });
});
