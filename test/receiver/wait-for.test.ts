/** `receiver.waitFor()`: by any process, before or after, and every way in which it ends otherwise. */
import { describe, expect, it } from "vitest";
import { PermanentError, StoreError, type WebhookEvent } from "../../src/index.ts";
import { type BenchOptions, deferred, idleTurns, memoryBench, newInboxFile, sqliteBench } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const message = { apiClientId: "apc_1", messageId: "msg_1" };

describe("waitFor()", () => {
  it("resolves with an event that was handled already", async () => {
    const { deliver, receiver } = memoryBench();
    receiver.onAny(() => {});
    await deliver(outbound("queued"));
    await deliver(inbound());
    expect(await receiver.waitFor(message, "message.queued")).toMatchObject({ sequence: 1 });
    const wanted = (event: WebhookEvent) => event.eventType === "message.inbound";
    const found = await receiver.waitFor({ apiClientId: "apc_1", messageId: "msg_in_1" }, wanted);
    expect(found).toMatchObject({ data: { body: "Yes please" } });
  });

  it("gives the event in its own type, by name and by a function that narrows", async () => {
    const { deliver, receiver } = memoryBench();
    receiver.onAny(() => {});
    await deliver(outbound("queued"));
    const queued = await receiver.waitFor(message, "message.queued");
    expect(queued.data.status).toBe("QUEUED");
    const either = await receiver.waitFor(
      message,
      (event) => event.eventType === "message.queued" || event.eventType === "message.failed",
    );
    expect(either.sequence.toFixed()).toBe("1");
    const named: WebhookEvent = await receiver.waitFor(message, queued.eventType.toString());
    // @ts-expect-error nothing is known of an event of any type
    expect(named.data.status).toBe("QUEUED");
  });

  it("waits for what is handled later, not merely accepted", async () => {
    const { deliver, receiver, clock } = memoryBench();
    const work = deferred();
    receiver.on("message.queued", () => work.promise);
    await receiver.start();
    let found: WebhookEvent | null = null;
    void receiver.waitFor(message, "message.queued").then((event) => {
      found = event;
    });
    const answer = deliver(outbound("queued"));
    await clock.advance(5_000);
    expect(found).toBeNull();
    work.resolve();
    await answer;
    await clock.advance(250);
    expect(found).toMatchObject({ eventType: "message.queued" });
  });

  it("asks ten times a second at first, and once a second when it has waited for long", async () => {
    const { receiver, clock, store } = memoryBench();
    let looks = 0;
    const lane = store.lane.bind(store);
    store.lane = (ref) => {
      looks += 1;
      return lane(ref);
    };
    const waiting = receiver.waitFor(message, "message.queued", { timeoutMs: 3_600_000 });
    waiting.catch(() => {});
    const looksIn = async (ms: number) => {
      looks = 0;
      await clock.advance(ms);
      return looks / 2; // Each asks for the message as an outbound and as an inbound one.
    };
    await idleTurns();
    expect(await looksIn(1_000)).toBe(10);
    await clock.advance(29_000);
    expect(await looksIn(60_000)).toBe(60);
  });

  it("is no reason to be told that nobody works: the process that takes deliveries is", async () => {
    const file = newInboxFile();
    const web = sqliteBench({}, file);
    const waits = sqliteBench({ clock: web.clock }, file);
    web.receiver.onAny(() => {}).onLate(() => {});
    expect((await web.deliver(outbound("queued"))).status).toBe(200);
    const waiting = expect(
      waits.receiver.waitFor(message, "message.queued", { timeoutMs: 70_000 }),
    ).rejects.toMatchObject({ code: "wait_timeout" });
    await idleTurns();
    await web.clock.advance(70_000);
    await waiting;
    expect(web.codes()).toEqual(["worker_not_running"]);
    expect(waits.codes()).toEqual([]);
  });

  it("resolves for what another process handled on the same file", async () => {
    const file = newInboxFile();
    const web = sqliteBench({}, file);
    const worker = sqliteBench({ clock: web.clock }, file);
    worker.receiver.onAny(() => {});
    const waiting = web.receiver.waitFor(message, "message.queued", { timeoutMs: 60_000 });
    expect((await web.deliver(outbound("queued"))).status).toBe(200);
    await worker.receiver.start();
    let found = false;
    void waiting.then(() => {
      found = true;
    });
    for (let step = 0; step < 100 && !found; step++) await web.clock.advance(100);
    expect(await waiting).toMatchObject({ messageId: "msg_1" });
  });

  const dies = () => {
    throw new PermanentError("never");
  };

  it.each<[string, string, BenchOptions<never>, Partial<Record<"queued" | "delivery", () => void>>]>([
    ["dead", "permanent_failure", {}, { queued: dies }],
    ["unhandled", "no error", {}, { delivery() {} }],
    ["late", "no error", { gapWait: "eager" }, { queued() {}, delivery() {} }],
    ["filtered", "no error", { filter: ({ eventType }) => eventType === "message.delivery" }, { queued() {} }],
  ])(
    "rejects on an event that ended as %s, with its code and without its error's text",
    async (state, code, options, on) => {
      const { deliver, receiver } = memoryBench(options);
      for (const [kind, handler] of Object.entries(on)) receiver.on(`message.${kind}` as "message.queued", handler);
      if (state === "late") await deliver(outbound("delivery"));
      await deliver(outbound("queued"));
      await receiver.drain();
      const waiting = receiver.waitFor(message, "message.queued");
      await expect(waiting).rejects.toMatchObject({
        ...{ code: "dead_lettered", message: `The awaited event ended as "${state}" (${code}).` },
        fields: { state, eventId: state === "late" ? 2 : 1 },
      });
    },
  );

  it("rejects on an event that was discarded", async () => {
    const { deliver, receiver } = sqliteBench();
    await deliver(outbound("queued"));
    await receiver.inbox.discard(1);
    const fields = { state: "discarded", eventId: 1 };
    await expect(receiver.waitFor(message, "message.queued")).rejects.toMatchObject({ code: "dead_lettered", fields });
  });

  it("rejects when its time is over, after one look at least", async () => {
    const { receiver, clock, deliver } = memoryBench();
    receiver.on(["message.queued", "message.sent"], () => {});
    await expect(receiver.waitFor(message, "message.sent", { timeoutMs: 0 })).rejects.toMatchObject({
      code: "wait_timeout",
      fields: { messageId: "msg_1" },
    });
    await clock.advance(60_000);
    let code: unknown = null;
    receiver.waitFor(message, "message.sent").catch((error) => {
      code = error.code;
    });
    await idleTurns();
    await clock.advance(29_999);
    expect(code).toBeNull();
    await clock.advance(1);
    expect(code).toBe("wait_timeout");
    await deliver(outbound("queued"));
    await expect(receiver.waitFor(message, "message.queued", { timeoutMs: 0 })).resolves.toBeDefined();
  });

  it("rejects with the signal's reason, at once, before and while it waits", async () => {
    const { receiver } = memoryBench();
    const reason = new Error("No longer wanted.");
    await expect(receiver.waitFor(message, "x", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const controller = new AbortController();
    const waiting = receiver.waitFor(message, "x", { signal: controller.signal });
    const rejected = expect(waiting).rejects.toBe(reason);
    await idleTurns();
    controller.abort(reason);
    await rejected;
  });

  it("rejects when the receiver stops", async () => {
    const { receiver, clock } = memoryBench();
    const rejected = expect(receiver.waitFor(message, "x")).rejects.toBeInstanceOf(StoreError);
    await idleTurns();
    await receiver.stop();
    await clock.advance(100);
    await rejected;
  });

  it("passes over what it can not read any more: pruned bodies and other types", async () => {
    const { deliver, receiver, clock } = memoryBench({ retention: { handledBodiesMs: 0 } });
    receiver.onAny(() => {});
    await deliver(outbound("queued"));
    clock.set(clock.now() + 60_000);
    await deliver(outbound("sent"));
    await receiver.drain();
    await expect(receiver.waitFor(message, "message.queued", { timeoutMs: 0 })).rejects.toThrow("was not handled");
    await expect(receiver.waitFor(message, "message.sent", { timeoutMs: 0 })).resolves.toBeDefined();
    await expect(receiver.waitFor(message, () => false, { timeoutMs: 0 })).rejects.toThrow("was not handled");
  });
});
