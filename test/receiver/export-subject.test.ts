/** `inbox.exportSubject()` beside what the store contract shows of it. */
import { describe, expect, it } from "vitest";
import type { SubjectRecord } from "../../src/index.ts";
import { exportSubject } from "../../src/receiver/bulk/export-subject.ts";
import { failureOf } from "../support/failure-of.ts";
import { memoryBench } from "./bench.ts";
import { outbound } from "./events.ts";

const PEER = "+15550100002";

async function all(records: AsyncIterable<SubjectRecord>): Promise<SubjectRecord[]> {
  const told: SubjectRecord[] = [];
  for await (const record of records) told.push(record);
  return told;
}

describe("inbox.exportSubject()", () => {
  it("opens the inbox by itself, and tells what erase() then counts", async () => {
    const { receiver, deliver } = memoryBench({ ack: "handled" });
    receiver.onAny(() => {});
    await receiver.start();
    await deliver(outbound("queued"));
    await deliver(outbound("sent", { messageId: "msg_2", to: "+15550100003" }));
    const told = await all(receiver.inbox.exportSubject({ peer: PEER }));
    expect(told).toMatchObject([{ kind: "event", messageId: "msg_1", peer: PEER, body: { text: outbound("queued") } }]);
    expect(await receiver.inbox.erase({ peer: PEER })).toMatchObject({ ok: true, count: told.length });
  });

  it("tells each message once, however many between them are gone", async () => {
    const { receiver, store, deliver } = memoryBench({ ack: "handled" });
    receiver.onAny(() => {});
    await receiver.start();
    for (const messageId of ["msg_1", "msg_2", "msg_3", "msg_4"]) await deliver(outbound("queued", { messageId }));
    const lanes = (await store.export(0, 10)).map((lane) => ({ ...lane, id: lane.id * 120 }));
    const sparse = {
      ...store,
      findLanes: async (query: Parameters<typeof store.findLanes>[0]) => {
        const { items } = await store.findLanes(query);
        return { items: items.map((item) => ({ ...item, id: item.id * 120 })), next: null };
      },
      export: async (after: number, limit: number) => lanes.filter(({ id }) => id > after).slice(0, limit),
    };
    const told = await all(exportSubject(sparse, { peer: PEER }));
    expect(told.map((record) => record.kind === "event" && record.messageId)).toEqual([
      "msg_1",
      "msg_2",
      "msg_3",
      "msg_4",
    ]);
  });

  it("refuses a subject that names nobody", async () => {
    const { inbox } = memoryBench().receiver;
    for (const subject of [{}, { peer: "+1" }, { phone: PEER }, { peer: PEER, messageId: "msg_1" }]) {
      const failure = await failureOf(all(inbox.exportSubject(subject as never)));
      expect(failure).toMatchObject({ code: "invalid_option" });
    }
  });
});
