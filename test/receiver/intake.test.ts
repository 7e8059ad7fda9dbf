/** What of a delivery the inbox takes, and operators then find it by. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { memoryBench, sqliteBench } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const ALICE = "+15550100008";
const PEER = "+15550100002";
/** On our side of each message. */
const OURS = "+15550100001";

const SPECIFIED = JSON.parse(inbound());
/** As a later version of the service may send it. */
const LATER = { eventType: "message.read", direction: "outbound", apiClientId: "apc_1" };
const NAMING = { to: ALICE, externalReference: "order-77" };

describe.each([
  ["memory", memoryBench],
  ["SQLite", sqliteBench],
] as const)("what the %s store is given of an event", (_, makeBench) => {
  it.each<[string, string | object, string | null, string | null]>([
    ["who sent it", inbound({ from: ALICE }), ALICE, null],
    ["whom it goes to, and the sender's reference", outbound("queued", { to: ALICE }), ALICE, "order-77"],
    ["no reference of an inbound message", { ...SPECIFIED, data: { ...SPECIFIED.data, ...NAMING } }, PEER, null],
    ["nothing of a type that no version knows yet", LATER, null, null],
    ["nothing of what such a type carries (RCV-11)", { ...LATER, data: NAMING }, null, null],
  ])("%s; never our own number", async (_what, event, peer, externalReference) => {
    const { deliver, receiver } = makeBench();
    receiver.onAny(() => {});
    expect((await deliver(typeof event === "string" ? event : JSON.stringify(event))).status).toBe(200);
    expect((await receiver.inbox.findLanes()).items).toMatchObject([{ peer, externalReference }]);
    const found = async (query: object) => (await receiver.inbox.find(query)).items.length;
    expect([await found({ peer: ALICE }), await found({ peer: OURS })]).toEqual([peer === ALICE ? 1 : 0, 0]);
    expect(await found({ externalReference: "order-77" })).toBe(externalReference === null ? 0 : 1);
  });

  it("names an event without a place of its own by the SHA-256 of its body (EVT-12)", async () => {
    const { deliver, receiver } = makeBench();
    receiver.onAny(() => {});
    const body = '{"eventType":"message.new"}';
    await deliver(body);
    const ownId = createHash("sha256").update(body).digest("hex");
    const lane = { source: "service", tenant: null, name: null, order: null };
    expect((await receiver.inbox.find()).items).toMatchObject([{ lane, ownId }]);
  });
});
