/** `ack: "handled"`: the answer follows the handlers, within bounds, and the service's retry drives what is left. */
import { describe, expect, it } from "vitest";
import { type Answer, PermanentError } from "../../src/index.ts";
import {
  type Bench,
  type BenchOptions,
  deferred,
  idleTurns,
  MINUTE,
  memoryBench,
  sqliteBench,
  until,
} from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const body = inbound();
type Made = Bench<unknown>;

describe.each([
  ["memory", (options: object = {}) => memoryBench({ ...options, ack: "handled" }) as unknown as Made],
  ["SQLite", (options: object = {}) => sqliteBench({ ...options, ack: "handled" }) as unknown as Made],
] as const)('ack: "handled" with the %s store', (name, makeBench: (options?: BenchOptions<unknown>) => Made) => {
  it("answers 200 after the handlers, without start() (RCV-3)", async () => {
    const { deliver, receiver } = makeBench();
    const work = deferred();
    let answer: Answer | null = null;
    receiver.on("message.inbound", () => work.promise);
    void deliver(body).then((given) => {
      answer = given;
    });
    await until(async () => (await receiver.inbox.stats()).counters.accepted === 1);
    await idleTurns();
    expect(answer).toBeNull();
    work.resolve();
    await until(() => answer !== null);
    expect(answer).toMatchObject({ status: 200, body: '{"outcome":"handled"}' });
    expect((await deliver(body)).body).toBe('{"outcome":"duplicate"}');
  });

  it("waits for the commit of the completion too (RCV-3)", async () => {
    const { deliver, receiver, store } = makeBench();
    const gate = deferred();
    let answered = false;
    receiver.onAny(() => {
      store.faults.gate = gate.promise;
    });
    const answer = deliver(body).finally(() => {
      answered = true;
    });
    await until(() => store.faults.turns.some((turn) => turn.settles.length > 0));
    await idleTurns();
    expect(answered).toBe(false);
    gate.resolve();
    expect((await answer).status).toBe(200);
  });

  it("answers 503 to a failure at once, and drives it on with the service's retry (RCV-4, RCV-6)", async () => {
    const { deliver, receiver, clock } = makeBench();
    let runs = 0;
    receiver.onAny(() => {
      runs++;
      if (runs === 1) throw new Error("The first attempt fails.");
    });
    expect((await deliver(body)).status).toBe(503);
    // In backoff: at once again 503, without a run.
    expect((await deliver(body)).status).toBe(503);
    expect(runs).toBe(1);
    await clock.advance(MINUTE);
    expect((await deliver(body)).body).toBe('{"outcome":"handled"}');
    expect((await deliver(body)).body).toBe('{"outcome":"duplicate"}');
    expect(runs).toBe(2);
    expect((await receiver.inbox.stats()).counters).toMatchObject({ accepted: 1, handled: 1, retried: 1 });
  });

  it("answers 503 after 8 s, and keeps the event and its one run (RCV-5, RCV-6)", async () => {
    const { deliver, receiver, clock } = makeBench();
    const work = deferred();
    let runs = 0;
    receiver.onAny(() => {
      runs++;
      return work.promise;
    });
    const answer = deliver(body);
    await until(() => runs === 1);
    await clock.advance(7_999);
    let answered = false;
    void answer.then(() => {
      answered = true;
    });
    await idleTurns();
    expect(answered).toBe(false);
    await clock.advance(1);
    expect((await answer).status).toBe(503);
    const retry = deliver(body);
    await idleTurns();
    work.resolve();
    expect((await retry).body).toBe('{"outcome":"handled"}');
    expect(runs).toBe(1);
  });

  it("lets four duplicates wait for the same result, and answers the fifth 503 (RCV-6)", async () => {
    const { deliver, receiver } = makeBench();
    const work = deferred();
    let runs = 0;
    receiver.onAny(() => {
      runs++;
      return work.promise;
    });
    const first = deliver(body);
    await until(() => runs === 1);
    const four = [deliver(body), deliver(body), deliver(body), deliver(body)];
    await idleTurns(50);
    expect((await deliver(body)).status).toBe(503);
    work.resolve();
    const answers = await Promise.all([first, ...four]);
    expect(answers.map((answer) => answer.body)).toEqual(Array.from({ length: 5 }, () => '{"outcome":"handled"}'));
    expect(runs).toBe(1);
  });

  it("answers a dead letter 503 in memory and 200 on disk, now and later (RCV-4)", async () => {
    const { deliver, receiver } = makeBench();
    let runs = 0;
    receiver.onAny(() => {
      runs++;
      throw new PermanentError("No retry mends this.");
    });
    const status = name === "memory" ? 503 : 200;
    expect((await deliver(body)).status).toBe(status);
    expect((await deliver(body)).status).toBe(status);
    expect(runs).toBe(1);
    expect((await receiver.health()).reasons).toContain("dead_letters");
  });

  it("answers late events: recorded 200, or after onLate (RCV-7)", async () => {
    for (const takesLate of [false, true]) {
      const { deliver, receiver } = makeBench({ gapWait: "eager" });
      const late: string[] = [];
      receiver.onAny(() => {});
      if (takesLate) receiver.onLate((event) => late.push(event.eventType));
      expect((await deliver(outbound("sent"))).status).toBe(200);
      const outcome = takesLate ? "handled" : "late";
      expect((await deliver(outbound("queued"))).body).toBe(`{"outcome":"${outcome}"}`);
      expect(late).toHaveLength(takesLate ? 1 : 0);
      expect((await deliver(outbound("queued"))).body).toBe('{"outcome":"duplicate"}');
    }
  });

  it("answers a conflict of an event that is not handled yet by that event's end (RCV-3)", async () => {
    const { deliver, receiver, clock } = makeBench();
    const texts: string[] = [];
    receiver.on("message.inbound", (event) => {
      texts.push(event.data.body);
      if (texts.length === 1) throw new Error("once");
    });
    expect((await deliver(body)).status).toBe(503);
    // A 2xx here would end the service's retries, and with them the only drive of the event.
    expect((await deliver(inbound({ text: "other" }))).status).toBe(503);
    await clock.advance(MINUTE);
    expect((await deliver(inbound({ text: "other" }))).body).toBe('{"outcome":"handled"}');
    expect(texts).toEqual(["Yes please", "Yes please"]);
  });

  it("completes what no handler takes as unhandled, with 200 (RCV-11)", async () => {
    const { deliver, receiver } = makeBench();
    receiver.on("message.sent", () => {});
    expect((await deliver('{"eventType":"message.new"}')).body).toBe('{"outcome":"handled"}');
    expect((await receiver.inbox.stats()).counters.unhandled).toBe(1);
  });

  it("answers 503 at once while it is paused, without turning in circles", async () => {
    const { deliver, receiver, store } = makeBench();
    let runs = 0;
    receiver.onAny(() => void runs++);
    await deliver(inbound({ messageId: "first" }));
    receiver.pause();
    const before = store.faults.turns.length;
    expect((await deliver(body)).status).toBe(503);
    await idleTurns(100);
    expect(store.faults.turns.length - before).toBeLessThan(4);
    receiver.resume();
    expect((await deliver(body)).body).toBe('{"outcome":"handled"}');
    expect(runs).toBe(2);
  });

  it("gives those who wait a 503 when it is paused", async () => {
    const { deliver, receiver } = makeBench();
    const work = deferred();
    receiver.onAny(() => work.promise);
    const running = deliver(outbound("queued"));
    await until(async () => (await receiver.inbox.stats()).counters.accepted === 1);
    await idleTurns();
    const behind = deliver(outbound("sent"));
    await until(async () => (await receiver.inbox.stats()).counters.accepted === 2);
    await idleTurns();
    receiver.pause();
    expect((await behind).status).toBe(503);
    work.resolve();
    expect((await running).status).toBe(200);
  });
});
