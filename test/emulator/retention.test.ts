/** Option keep: what has ended goes, the oldest first, and nothing that is still under way. */
import { describe, expect, it } from "vitest";
import type { Emulator } from "../../src/emulator/index.ts";
import { Table } from "../../src/emulator/state/table.ts";
import { call, send, start, startCatcher, tokenOf } from "./support.ts";

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

  it("keeps as many API calls and idempotency keys, the newest", async () => {
    const emulator = await start({ keep: 3, lifecycle: "instant" });
    const token = await tokenOf(emulator);
    for (let i = 1; i <= 6; i++) await send(emulator, token, {}, { "idempotency-key": `k-${i}` });
    expect(idsOf(emulator, "requests")).toEqual(["5", "6", "7"]);
    expect(idsOf(emulator, "idempotency").map((id) => JSON.parse(id)[1])).toEqual(["k-4", "k-5", "k-6"]);
    await call(emulator, "GET", "/api/core/whoami", { token });
    expect(idsOf(emulator, "requests")).toEqual(["6", "7", "8"]);
  });

  it("never drops a message with a delivery that is tried again; when that ends, it goes by when it ended", async () => {
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
    expect(emulator.control.deliveries().map(({ messageId, state }) => [messageId, state])).toEqual([
      ["msg_a8244c_000001", "failed"],
      ["msg_a8244c_000001", "failed"],
      ["msg_a8244c_000001", "failed"],
    ]);
  });

  it("never drops a message with steps to come", async () => {
    const emulator = await start({ keep: 1, lifecycle: "manual" });
    await sendMany(emulator, 4);
    expect(idsOf(emulator, "messages")).toHaveLength(4);
    for (const id of ["msg_a8244c_000003", "msg_a8244c_000001"]) emulator.control.failMessage(id);
    await turn();
    expect(idsOf(emulator, "messages")).toEqual(["msg_a8244c_000001", "msg_a8244c_000002", "msg_a8244c_000004"]);
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

  it("takes up a message again for which an event is triggered, until its delivery ends", async () => {
    const catcher = await startCatcher();
    const emulator = await start({ keep: 2, lifecycle: "instant", deliveryUrl: catcher.url });
    await sendMany(emulator, 2);
    const names = { apiClientId: "ac_main", numberId: "num_000001", messageId: "msg_a8244c_000001" };
    emulator.control.trigger({ kind: "delivery", eventType: "message.again", ...names, sequence: 4, data: {} });
    await emulator.clock.idle();
    await sendMany(emulator, 1);
    expect(idsOf(emulator, "messages")).toEqual(["msg_a8244c_000001", "msg_a8244c_000003"]);
    expect(emulator.control.events({ messageId: "msg_a8244c_000001" })).toHaveLength(4);
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

describe("Table.oldest()", () => {
  it("is the first of those that are left, through removals, changes and returns", () => {
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
});

/** A turn of the event loop, by whose end changes are kept. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
