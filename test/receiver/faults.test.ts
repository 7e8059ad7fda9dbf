/** `ack: "stored"`: a 2xx only after the commit, whatever fails, and one handled event in the end. */
import { describe, expect, it } from "vitest";
import { type Answer, SetupError, StoreError } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { deferred, idleTurns, makeBench, newInboxFile, sqliteBench, until } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const body = inbound();
const down = () => new StoreError("store_unavailable", "The disk is gone.");

describe('ack: "stored"', () => {
  it("is the default with a durable store, and answers before any handler has run (RCV-5)", async () => {
    const { deliver, receiver } = sqliteBench();
    const never = deferred();
    let began = 0;
    receiver.on("message.inbound", () => {
      began++;
      return never.promise;
    });
    await receiver.start();
    expect(await deliver(body)).toMatchObject({ status: 200, body: '{"outcome":"accepted"}' });
    expect((await deliver(inbound({ messageId: "second" }))).status).toBe(200);
    await until(() => began === 2);
    never.resolve();
  });

  it("logs why it can not store, in the store's words, and no other error's text", async () => {
    const { deliver, store, log, clock } = sqliteBench();
    const messages = () => log.filter(({ fields }) => fields.code !== "keyring_warning").map(({ message }) => message);
    store.faults.step = new StoreError("store_unavailable", "The inbox was moved: put it back.");
    await deliver(body);
    expect(messages()).toEqual([
      "The inbox could not be written; deliveries that were not stored are answered with 503. The inbox was moved: put it back.",
      "A delivery was answered with 503; the service retries. The inbox was moved: put it back.",
    ]);
    log.length = 0;
    await clock.advance(1_000);
    store.faults.step = new Error("somebody's text");
    await deliver(body);
    expect(messages().length).toBeGreaterThan(0);
    expect(JSON.stringify(log)).not.toContain("somebody");
  });

  it("never answers while the store's step is open (RCV-3)", async () => {
    const { deliver, store, receiver, clock } = sqliteBench();
    await receiver.onAny(() => {}).start();
    await idleTurns();
    const gate = deferred();
    store.faults.gate = gate.promise;
    let answer: Answer | null = null;
    void deliver(body).then((given) => {
      answer = given;
    });
    await until(() => store.faults.turns.some((turn) => turn.accepts.length === 1));
    await clock.advance(60_000);
    expect(answer).toBeNull();
    gate.resolve();
    await until(() => answer !== null);
    expect(answer).toMatchObject({ status: 200 });
  });

  it.each([
    ["a body that is no event", "not json"],
    ["an event", body],
  ])("answers 503 for %s when the commit fails after it was held open (RCV-3, RCV-4)", async (_, text) => {
    const { deliver, store } = sqliteBench();
    const gate = deferred();
    store.faults.gate = gate.promise;
    const answer = deliver(text);
    await until(() => store.faults.turns.length > 0);
    store.faults.step = down();
    gate.resolve();
    expect(await answer).toMatchObject({ status: 503, headers: { "retry-after": "30" } });
  });

  it.each([
    ["fails", { step: down() }, 503],
    ["throws no Error", { step: "a text" as unknown as Error }, 503],
    ["commits, and loses its answer", { afterStep: new Error("lost") }, 503],
    ["can not be opened now", { open: down() }, 503],
    ["is misconfigured until somebody mends it", { open: new SetupError("inbox_too_new", "too new") }, 500],
  ])("has one handled event in the end when the store %s (RCV-4, RCV-6)", async (_, fault, status) => {
    const { deliver, store, receiver } = sqliteBench();
    const handled: string[] = [];
    receiver.on("message.inbound", (event) => handled.push(event.data.messageId));
    Object.assign(store.faults, fault);
    expect((await deliver(body)).status).toBe(status);
    store.faults.clear();
    await receiver.start();
    expect((await deliver(body)).status).toBe(200);
    expect((await deliver(body)).status).toBe(200);
    await until(() => handled.length === 1);
    await idleTurns();
    expect(handled).toEqual(["msg_in_1"]);
    expect((await receiver.inbox.stats()).counters).toMatchObject({ accepted: 1, handled: 1 });
  });

  it("answers 503 when a store in memory is full, and keeps what it has (RCV-4)", async () => {
    const bench = makeBench(memoryStore({ volatile: true, maxEvents: 1 }), { ack: "handled" });
    bench.receiver.onAny(() => {});
    expect((await bench.deliver(body)).status).toBe(200);
    expect((await bench.deliver(inbound({ messageId: "second" }))).status).toBe(503);
    expect((await bench.deliver(body)).body).toBe('{"outcome":"duplicate"}');
  });
});

describe("an inbox of another receiver", () => {
  it("is refused with 500 and the reason in the log (wrong_receiver_name)", async () => {
    const file = newInboxFile();
    const orders = sqliteBench({ name: "orders" }, file);
    await orders.deliver(outbound("queued"));
    await orders.receiver.stop();
    const billing = sqliteBench({ name: "billing" }, file);
    billing.receiver.onAny(() => {});
    expect(await billing.deliver(body)).toMatchObject({ status: 500, body: '{"error":"misconfigured"}' });
    expect(billing.codes()).toContain("wrong_receiver_name");
    await expect(billing.receiver.start()).rejects.toMatchObject({ code: "wrong_receiver_name" });
    const again = sqliteBench({ name: "orders" }, file);
    expect((await again.deliver(body)).status).toBe(200);
  });
});
