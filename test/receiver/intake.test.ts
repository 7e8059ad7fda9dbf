/** What of a delivery the inbox takes, and operators then find it by. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { InboxOperator } from "../../src/index.ts";
import { memoryBench, sqliteBench } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const ALICE = "+15550100008";
/** On our side of each message. */
const OURS = "+15550100001";

/** Number and reference, as the inbox keeps them of each message. */
async function namings(inbox: InboxOperator): Promise<(string | null)[][]> {
  const { items } = await inbox.findLanes();
  return items.map(({ peer, externalReference }) => [peer, externalReference]);
}

describe.each([
  ["memory", memoryBench],
  ["SQLite", sqliteBench],
] as const)("what the %s store is given of an event", (_, makeBench) => {
  it.each([
    ["who sent it", inbound({ from: ALICE })],
    ["whom it goes to", outbound("queued", { to: ALICE })],
  ])("is found by %s, and not by our own number", async (_who, body) => {
    const { deliver, receiver } = makeBench();
    receiver.onAny(() => {});
    await deliver(body);
    expect((await receiver.inbox.find({ peer: ALICE })).items).toHaveLength(1);
    expect((await receiver.inbox.find({ peer: OURS })).items).toEqual([]);
  });

  it("has the reference that the sender of a message gave", async () => {
    const { deliver, receiver } = makeBench();
    receiver.onAny(() => {});
    await deliver(outbound("queued"));
    expect((await receiver.inbox.find({ externalReference: "order-77" })).items).toHaveLength(1);
    expect(await namings(receiver.inbox)).toEqual([["+15550100002", "order-77"]]);
  });

  it("has no reference of an inbound message, whatever its data has beside what is specified", async () => {
    const { deliver, receiver } = makeBench();
    receiver.onAny(() => {});
    const event = JSON.parse(inbound());
    await deliver(JSON.stringify({ ...event, data: { ...event.data, externalReference: "order-77" } }));
    await deliver(inbound({ messageId: "plain" }));
    const peer = "+15550100002";
    expect(await namings(receiver.inbox)).toStrictEqual([
      [peer, null],
      [peer, null],
    ]);
  });

  it("has neither number nor reference of an event that no version knows yet (RCV-11)", async () => {
    const { deliver, receiver } = makeBench();
    receiver.onAny(() => {});
    const later = { eventType: "message.read", direction: "outbound", apiClientId: "apc_1" };
    const data = { to: ALICE, externalReference: "order-77" };
    expect((await deliver(JSON.stringify(later))).status).toBe(200);
    expect((await deliver(JSON.stringify({ ...later, data }))).status).toBe(200);
    expect(await namings(receiver.inbox)).toStrictEqual([
      [null, null],
      [null, null],
    ]);
  });

  it("names an event without a place of its own by the SHA-256 of its body (EVT-12)", async () => {
    const { deliver, receiver } = makeBench();
    receiver.onAny(() => {});
    const body = '{"eventType":"message.new"}';
    await deliver(body);
    const messageId = createHash("sha256").update(body).digest("hex");
    expect((await receiver.inbox.find()).items).toMatchObject([{ lane: { tag: "unlaned", messageId } }]);
  });
});
