/** Option keep: what has ended goes, the oldest first, and nothing that is still under way. */
import { describe, expect, it } from "vitest";
import type { Emulator } from "../../../../src/messaging/emulator/index.ts";
import { EndedQueue, type Ending } from "../../../../src/messaging/emulator/state/keeper.ts";
import { Table } from "../../../../src/messaging/emulator/state/state.ts";
import { MINUTE, type Stage } from "../delivery-support.ts";
import { call, ready, send, start, startAgain, startCatcher, tokenOf } from "../support.ts";

/** Per table, the ids; an export is made without a call, so it adds nothing. */
function idsOf(emulator: Emulator, name: string): string[] {
  return Object.keys(emulator.control.exportState().tables[name] ?? {});
}

function messageIdsOf(emulator: Emulator, name: string): string[] {
  const records = Object.values(emulator.control.exportState().tables[name] ?? {});
  return records.map((record) => (record as { messageId: string }).messageId);
}

async function sendMany(emulator: Emulator, count: number): Promise<void> {
  const token = await tokenOf(emulator);
  for (let i = 0; i < count; i++) await send(emulator, token);
  await emulator.clock.idle();
}

describe("option keep", () => {
  it("keeps the newest messages that ended, with all their events and deliveries", async () => {
    const emulator = await start({ keep: 2, lifecycle: "instant" });
    await sendMany(emulator, 5);
    const left = ["msg_a8244c_000004", "msg_a8244c_000005"];
    expect(idsOf(emulator, "messages")).toEqual(left);
    expect(messageIdsOf(emulator, "events")).toEqual(left.flatMap((id) => [id, id, id]));
    expect(messageIdsOf(emulator, "deliveries")).toEqual(left.flatMap((id) => [id, id, id]));
  });

  it("keeps as many API calls, the newest", async () => {
    const { emulator, token } = await ready({ keep: 3, lifecycle: "instant" });
    for (let i = 1; i <= 6; i++) await send(emulator, token);
    expect(idsOf(emulator, "requests")).toEqual(["5", "6", "7"]);
    await call(emulator, "GET", "/api/core/whoami", { token });
    expect(idsOf(emulator, "requests")).toEqual(["6", "7", "8"]);
  });

  it("keeps 10,000 idempotency keys, so that a small bound sends nothing twice (SND-17)", async () => {
    const { emulator, token } = await ready({ keep: 1, lifecycle: "instant" });
    const first = await send(emulator, token, {}, { "idempotency-key": "k-1" });
    await sendMany(emulator, 2);
    expect((await send(emulator, token, {}, { "idempotency-key": "k-1" })).text).toBe(first.text);

    const { version, tables } = emulator.control.exportState();
    const [record] = Object.values(tables.idempotency ?? {});
    const more = Array.from({ length: 9_998 }, (_, i) => JSON.stringify(["ac_main", `more-${i}`]));
    const idempotency = Object.fromEntries(more.map((id) => [id, { ...(record as object), id }]));
    emulator.control.importState({
      version,
      tables: { ...tables, idempotency: { ...tables.idempotency, ...idempotency } },
    });
    await turn();
    expect(idsOf(emulator, "idempotency")).toHaveLength(10_000);
    expect(idsOf(emulator, "idempotency")).not.toContain('["ac_main","k-1"]');
  });

  it("never drops a message with a delivery that is tried again; when that ends, the oldest goes", async () => {
    const catcher = await startCatcher();
    catcher.answer = ({ event }, response) => {
      response.writeHead(event.messageId === "msg_a8244c_000001" ? 500 : 200).end();
    };
    const emulator = await start({ keep: 1, lifecycle: "instant", deliveryUrl: catcher.url });
    await sendMany(emulator, 3);
    expect(idsOf(emulator, "messages")).toEqual(["msg_a8244c_000001", "msg_a8244c_000003"]);
    await emulator.clock.advance(81 * 60_000 - 1);
    expect(idsOf(emulator, "messages")).toEqual(["msg_a8244c_000001", "msg_a8244c_000003"]);
    await emulator.clock.advance(1);
    expect(idsOf(emulator, "messages")).toEqual(["msg_a8244c_000003"]);
  });

  it("never drops a message with steps to come", async () => {
    const emulator = await start({ keep: 1, lifecycle: "manual" });
    await sendMany(emulator, 4);
    expect(idsOf(emulator, "messages")).toHaveLength(4);
    for (const id of ["msg_a8244c_000003", "msg_a8244c_000001"]) emulator.control.failMessage(id);
    await turn();
    expect(idsOf(emulator, "messages")).toEqual(["msg_a8244c_000002", "msg_a8244c_000003", "msg_a8244c_000004"]);
  });

  it("counts inbound messages, and events of messages that there is no record of", async () => {
    const emulator = await start({ keep: 2 });
    const names = { apiClientId: "ac_main", numberId: "num_000001", sequence: 1, data: {} };
    for (let i = 1; i <= 3; i++) {
      emulator.control.inbound({ to: "num_000001", from: "+14155550123", body: "x" });
      emulator.control.trigger({ kind: "delivery", eventType: "message.sent", messageId: `other_${i}`, ...names });
    }
    await turn();
    expect(idsOf(emulator, "inboundMessages")).toEqual(["msg_a8244c_000003"]);
    expect(messageIdsOf(emulator, "events")).toEqual(["msg_a8244c_000003", "other_3"]);
    expect(messageIdsOf(emulator, "deliveries")).toEqual(["msg_a8244c_000003", "other_3"]);
  });

  it("leaves a message its place when an event is triggered for it once more", async () => {
    const catcher = await startCatcher();
    const emulator = await start({ keep: 2, lifecycle: "instant", deliveryUrl: catcher.url });
    await sendMany(emulator, 2);
    const names = { apiClientId: "ac_main", numberId: "num_000001", messageId: "msg_a8244c_000001" };
    emulator.control.trigger({ kind: "delivery", eventType: "message.again", ...names, sequence: 4, data: {} });
    await emulator.clock.idle();
    await sendMany(emulator, 1);
    expect(idsOf(emulator, "messages")).toEqual(["msg_a8244c_000002", "msg_a8244c_000003"]);
  });

  it("drops a message that stays queued, for nothing more comes of it", async () => {
    const { emulator, token } = await ready({ keep: 2 });
    for (let i = 0; i < 5; i++) await send(emulator, token, { to: ["+15005550004"] });
    await emulator.clock.idle();
    expect(idsOf(emulator, "messages")).toEqual(["msg_a8244c_000004", "msg_a8244c_000005"]);
    expect(idsOf(emulator, "events")).toHaveLength(2);
  });

  it("keeps the newest 1,000 ended events of one message", async () => {
    const catcher = await startCatcher();
    catcher.answer = 500;
    const emulator = await start({ keep: 10, deliveryUrl: catcher.url });
    const names = { kind: "delivery", apiClientId: "ac_main", numberId: "num_000001", messageId: "one" } as const;
    const event = { ...names, eventType: "message.sent", data: {} };
    emulator.control.trigger({ ...event, sequence: 0 });
    await emulator.clock.idle();
    emulator.control.faults.add({ match: { webhook: true }, action: { type: "drop" } });
    for (let sequence = 1; sequence <= 3_000; sequence++) emulator.control.trigger({ ...event, sequence });
    await turn();
    const sequences = () => emulator.control.events({ limit: 10_000 }).map(({ sequence }) => sequence);
    expect(sequences()).toEqual([0, ...Array.from({ length: 1_000 }, (_, i) => 2_001 + i)]);
    expect(idsOf(emulator, "deliveries")).toHaveLength(1_001);
    await emulator.clock.advance(81 * 60_000);
    expect(sequences()).toEqual(Array.from({ length: 1_000 }, (_, i) => 2_001 + i));
    const copy = await start({ keep: 10 });
    copy.control.importState(emulator.control.exportState());
    emulator.control.reset();
    expect([idsOf(emulator, "events"), idsOf(copy, "events").length]).toEqual([[], 1_000]);
  });

  it("holds after a reset and after an import as it did before", async () => {
    const emulator = await start({ keep: 2, lifecycle: "instant" });
    await sendMany(emulator, 3);
    emulator.control.reset();
    await sendMany(emulator, 3);
    expect(idsOf(emulator, "messages")).toEqual(["msg_a8244c_000005", "msg_a8244c_000006"]);
    emulator.control.importState(emulator.control.exportState());
    await sendMany(emulator, 1);
    expect(idsOf(emulator, "messages")).toEqual(["msg_a8244c_000006", "msg_a8244c_000007"]);
  });

  it("bounds a larger state that is imported", async () => {
    const large = await start({ lifecycle: "instant" });
    await sendMany(large, 5);
    const small = await start({ keep: 2 });
    small.control.importState(large.control.exportState());
    await turn();
    expect(idsOf(small, "messages")).toEqual(["msg_a8244c_000004", "msg_a8244c_000005"]);
    expect(idsOf(small, "events")).toHaveLength(6);
  });
});

it("Table.oldest() is the first of those that are left, through removals, changes and returns", () => {
  const table = new Table<number>("numbers", () => {});
  const expected = new Map<string, number>();
  // A walk through 2,000 changes that repeats: a third each of puts, changes of what is there, and removals.
  for (let i = 0, seed = 7; i < 2_000; i++) {
    seed = (seed * 48_271) % 2_147_483_647;
    const id = String(seed % 50);
    if (seed % 3 === 0) {
      table.remove(id);
      expected.delete(id);
    } else {
      table.put(id, i);
      expected.set(id, i);
    }
    expect(table.oldest()).toEqual(expected.entries().next().value);
    expect(table.size).toBe(expected.size);
  }
  expect([...table.entries()]).toEqual([...expected]);
  table.clear();
  expect([table.oldest(), table.size, [...table.values()]]).toEqual([undefined, 0, []]);
});

/** An emulator that was started again while the three events of a message waited for their retries. */
async function restarted(): Promise<Stage> {
  const catcher = await startCatcher();
  const first = await start({ keep: 1, deliveryUrl: catcher.url, inboundUrl: catcher.url });
  catcher.answer = 500;
  await send(first, await tokenOf(first));
  await first.clock.advance(20_000);
  expect(pendingIn(first)).toEqual(["message.queued", "message.sent", "message.delivery"]);
  catcher.answer = 200;
  return { emulator: await startAgain(first, { keep: 1 }), catcher };
}

/** More messages that end at once than are kept. */
async function receiveMany({ control, clock }: Emulator): Promise<void> {
  for (let i = 0; i < 3; i++) control.inbound({ to: "num_000001", from: "+14155550123", body: "x" });
  await clock.idle();
}

const pendingIn = ({ control }: Emulator) => control.deliveries({ state: "pending" }).map(({ eventType }) => eventType);

describe("option keep after a restart", () => {
  it("leaves what is still tried again, also of a message with an event that was delivered (DLV-6)", async () => {
    const { emulator, catcher } = await restarted();
    catcher.answer = ({ event }, response) => {
      response.writeHead(/sent|delivery/.test(event.eventType) ? 500 : 200).end();
    };
    await emulator.clock.advance(MINUTE);
    await receiveMany(emulator);
    expect(pendingIn(emulator)).toEqual(["message.sent", "message.delivery"]);
    catcher.answer = 200;
    const tried = catcher.caught.length;
    await emulator.clock.advance(5 * MINUTE);
    expect(catcher.caught.slice(tried).map(({ event }) => event.eventType)).toEqual([
      "message.sent",
      "message.delivery",
    ]);
  });

  it("drops what has ended with all of its deliveries, so that an export can be imported", async () => {
    const { emulator } = await restarted();
    await emulator.clock.advance(MINUTE);
    await receiveMany(emulator);
    const exported = emulator.control.exportState();
    const { events = {}, deliveries = {} } = exported.tables;
    expect([Object.keys(events).length, Object.keys(deliveries).length]).toEqual([1, 1]);
    emulator.control.importState(exported);
  });
});

it("EndedQueue gives the oldest by creation of those that have ended, through ends, returns and removals", () => {
  const queue = new EndedQueue<Ending>();
  const all: Ending[] = [];
  const ended = new Set<Ending>();
  // A walk through 5,000 changes that repeats: creations, ends, returns, and removals of the oldest.
  for (let i = 0, seed = 7; i < 5_000; i++) {
    seed = (seed * 48_271) % 2_147_483_647;
    const item = all[seed % Math.max(1, all.length)];
    if (item === undefined || seed % 4 === 0) {
      all.push({ createdAt: seed % 30, place: i, hasEnded: false, isQueued: false });
    } else if (seed % 4 === 1 && ended.has(item)) {
      queue.set(item, false);
      ended.delete(item);
    } else {
      queue.set(item, true);
      ended.add(item);
    }
    const oldest = [...ended].sort((a, b) => a.createdAt - b.createdAt || a.place - b.place)[0];
    expect(queue.oldest()).toBe(oldest);
    expect(queue.size).toBe(ended.size);
    if (i % 10 !== 0 || oldest === undefined) continue;
    queue.set(oldest, false);
    ended.delete(oldest);
    all.splice(all.indexOf(oldest), 1);
  }
});

/** A turn of the event loop, by whose end changes are kept. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
