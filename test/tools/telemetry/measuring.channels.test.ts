import { AsyncLocalStorage } from "node:async_hooks";
import { channel, subscribe, tracingChannel, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, it, onTestFinished } from "vitest";
import type { DeliveryMessage, HandlerMessage, Turn } from "../../../src/index.ts";
import type { SqliteDatabase } from "../../../src/stores/sqlite.ts";
import { sqliteBench, until } from "../../receiver/bench.ts";
import { inbound } from "../../receiver/events.ts";

const STAGES = ["start", "end", "asyncStart", "asyncEnd", "error"] as const;

/** Hears a tracing channel by the names of its five channels. */
function listen<Message>(name: string): { stages: string[]; messages: Message[] } {
  const heard = { stages: [] as string[], messages: [] as Message[] };
  for (const stage of STAGES) {
    const hear = (message: unknown) => {
      heard.stages.push(stage);
      if (stage === "asyncEnd") heard.messages.push(message as Message);
    };
    subscribe(`tracing:${name}:${stage}`, hear);
    onTestFinished(() => void unsubscribe(`tracing:${name}:${stage}`, hear));
  }
  return heard;
}

describe("tracing:oncehook.delivery", () => {
  it("tells each delivery, from its start to its answer", async () => {
    const heard = listen<DeliveryMessage>("oncehook.delivery");
    const { deliver, store } = sqliteBench();
    await deliver(inbound());
    expect(heard.stages).toEqual(["start", "end", "asyncStart", "asyncEnd"]);
    store.faults.step = new Error("no");
    await deliver(inbound({ messageId: "two" }));
    expect(heard.stages.slice(4)).toEqual(["start", "end", "error", "asyncStart", "asyncEnd"]);
    expect(heard.messages).toMatchObject([
      { outcome: "accepted", status: 200, reason: null, slot: "current", durationMs: 0 },
      { outcome: "failed", status: 503, reason: "Error", slot: "current" },
    ]);
  });
});

describe("tracing:oncehook.handler", () => {
  it("tells each attempt of handlers until its end is stored", async () => {
    const heard = listen<HandlerMessage>("oncehook.handler");
    const bench = sqliteBench();
    bench.receiver.on("message.inbound", async ({ data }) => {
      if (data.body === "fail") throw new Error("secret detail");
    });
    await bench.receiver.start();
    await bench.deliver(inbound({ text: "well" }));
    await until(() => heard.messages.length === 1);
    expect(heard.stages).toEqual(["start", "end", "asyncStart", "asyncEnd"]);
    await bench.deliver(inbound({ messageId: "two", text: "fail" }));
    await until(() => heard.messages.length === 2);
    expect(heard.stages.slice(4)).toEqual(["start", "end", "error", "asyncStart", "asyncEnd"]);
    expect(heard.messages).toMatchObject([
      { eventId: 1, eventType: "message.inbound", attempt: 1, ending: "handled", errorCode: null },
      { eventId: 2, ending: "retry", errorCode: "Error" },
    ]);
    expect(JSON.stringify(heard.messages)).not.toContain("secret detail");
  });

  it("calls it an error that a lease was lost", async () => {
    const heard = listen<HandlerMessage>("oncehook.handler");
    const { receiver, deliver, store } = sqliteBench();
    receiver.onAny(() => {});
    await deliver(inbound());
    const { step } = store;
    Object.assign(store, {
      async step(turn: Turn<SqliteDatabase>) {
        const result = await step(turn);
        return { ...result, settled: result.settled.map(() => ({ status: "lost" as const })) };
      },
    });
    await receiver.drain();
    expect(heard.stages).toEqual(["start", "end", "error", "asyncStart", "asyncEnd"]);
    expect(heard.messages).toMatchObject([{ ending: "lost", errorCode: null }]);
  });

  it("carries a bound store into the handlers", async () => {
    const current = new AsyncLocalStorage<number>();
    const { start } = tracingChannel<unknown, HandlerMessage>("oncehook.handler");
    start.bindStore(current as never, ((message: HandlerMessage) => message.eventId) as never);
    onTestFinished(() => void start.unbindStore(current as never));
    const { receiver, deliver } = sqliteBench();
    const seen: unknown[] = [];
    receiver.onAny(async () => {
      await null;
      seen.push(current.getStore());
    });
    await deliver(inbound());
    await receiver.drain();
    expect(seen).toEqual([1]);
  });

  it("says nothing of an event that no handler takes", async () => {
    const heard = listen<HandlerMessage>("oncehook.handler");
    const { receiver, deliver } = sqliteBench();
    receiver.on("message.failed", () => {});
    await deliver(inbound());
    await receiver.drain();
    expect(heard.stages).toEqual([]);
  });
});

it("publishes nothing without subscribers", async () => {
  const published: string[] = [];
  const channels = ["delivery", "handler"].flatMap((name) =>
    STAGES.map((stage) => `tracing:oncehook.${name}:${stage}`),
  );
  const spied = channels.map((name) => channel(name));
  for (const one of spied) {
    const { publish, runStores } = one;
    one.publish = () => void published.push(`publish ${String(one.name)}`);
    one.runStores = (() => void published.push(`runStores ${String(one.name)}`)) as never;
    onTestFinished(() => void Object.assign(one, { publish, runStores }));
  }
  const { receiver, deliver } = sqliteBench();
  receiver.onAny(() => {});
  expect((await deliver(inbound())).status).toBe(200);
  expect(await receiver.drain()).toMatchObject({ claimed: 1 });
  expect(published).toEqual([]);
});
