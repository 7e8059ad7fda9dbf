/** What an operator is told who asks the inbox for what it does not have. */
import { describe, expect, it } from "vitest";
import { memoryBench, sqliteBench } from "./bench.ts";
import { inbound } from "./events.ts";

type Inbox = ReturnType<typeof memoryBench>["receiver"]["inbox"];

describe("receiver.inbox", () => {
  it.each<[string, (inbox: Inbox) => Promise<unknown>]>([
    ['Did you mean "tenant"?', (inbox) => inbox.find({ tennant: "m" } as object)],
    ['inbox.findLanes() has no option "lan".', (inbox) => inbox.findLanes({ lan: 1 } as object)],
    ['inbox.findQuarantined() has no option "lan".', (inbox) => inbox.findQuarantined({ lan: 1 } as object)],
    ['The query has no option "limit".', (inbox) => inbox.replayAll({ limit: 1 } as object)],
    ['Option "limit" must be a whole number from 1 to 1000 rows; it is 0.', (inbox) => inbox.find({ limit: 0 })],
    ['Option "subject" must have a peer or an id', (inbox) => inbox.erase({} as never)],
    ['Option "peer" must be a string of at least 3 characters', (inbox) => inbox.erase({ peer: "+1" })],
    ['Option "id" must be a string of at least 3 characters', (inbox) => inbox.erase({ id: "  m1  " })],
  ])("says: %s", async (message, ask) => {
    const asked = ask(memoryBench().receiver.inbox);
    await expect(asked).rejects.toMatchObject({ code: "invalid_option", message: expect.stringContaining(message) });
  });

  const wrong: readonly (readonly [string, (inbox: Inbox) => Promise<unknown>])[] = [
    ...["2", 1.5, Number.NaN, 0, -1, 1e300, null, undefined].flatMap((id) => [
      ["event", (inbox: Inbox) => inbox.replay(id as number)] as const,
      ["event", (inbox: Inbox) => inbox.discard(id as number)] as const,
      ["lane", (inbox: Inbox) => inbox.unblock(id as number)] as const,
      ["lane", (inbox: Inbox) => inbox.releaseGap(id as number)] as const,
      ["lane", (inbox: Inbox) => inbox.reveal(id as number)] as const,
      ["lane", (inbox: Inbox) => inbox.lane(id as number)] as const,
      ["quarantine", (inbox: Inbox) => inbox.replayQuarantined(id as number)] as const,
      ["quarantine", (inbox: Inbox) => inbox.discardQuarantined(id as number)] as const,
      ["quarantine", (inbox: Inbox) => inbox.revealQuarantined(id as number)] as const,
    ]),
    ["order", (inbox) => inbox.lane({ source: "s", tenant: "a", order: "out", name: "m" } as never)],
    ["order", (inbox) => inbox.lane({ source: "s", tenant: "a", order: null, name: "m" } as never)],
    ["name", (inbox) => inbox.lane({ source: "s", tenant: "a", order: "sequence" } as never)],
    ["name", (inbox) => inbox.lane({ source: "s", tenant: "a", order: null, name: null })],
    ["source", (inbox) => inbox.lane({ tenant: "a", order: "sequence", name: "m" } as never)],
    ["tenant", (inbox) => inbox.lane({ source: "s", order: "sequence", name: "m" } as never)],
    ["id", (inbox) => inbox.lane({ source: "s", tenant: null, id: 5 } as never)],
    ...[
      "peer",
      "source",
      "lane",
      "id",
      "errorCode",
      "eventType",
      "states",
      "outcome",
      "late",
      "order",
      "after",
      "acceptedTo",
    ].map((name) => [name, (inbox: Inbox) => inbox.find({ [name]: null })] as const),
    ["id", (inbox) => inbox.find({ id: 5 } as never)],
    ["lane", (inbox) => inbox.find({ lane: 5 } as never)],
    ["tenant", (inbox) => inbox.find({ tenant: 5 } as never)],
    ...[0, 1_001, 1.5, -1, Number.NaN, "5" as never].flatMap((limit) => [
      ["limit", (inbox: Inbox) => inbox.find({ limit })] as const,
      ["limit", (inbox: Inbox) => inbox.findQuarantined({ limit })] as const,
      ["limit", (inbox: Inbox) => inbox.audit(limit)] as const,
    ]),
    ["states", (inbox) => inbox.find({ states: "dead" } as never)],
    ["states", (inbox) => inbox.find({ states: [undefined] } as never)],
    ["after", (inbox) => inbox.find({ after: 1.5 })],
    ["acceptedFrom", (inbox) => inbox.find({ acceptedFrom: Number.NaN })],
    ["acceptedFrom", (inbox) => inbox.find({ acceptedFrom: new Date(0) } as never)],
    ["without", (inbox) => inbox.findLanes({ without: [5] } as never)],
    ["peer", (inbox) => inbox.findLanes({ peer: 5 } as never)],
    ["order", (inbox) => inbox.findLanes({ order: "out" } as never)],
    ["states", (inbox) => inbox.findQuarantined({ states: ["dead"] } as never)],
  ];

  it.each(wrong)("refuses a wrong %s before a store sees it (%#)", async (option, ask) => {
    const { receiver, deliver } = memoryBench();
    await deliver(inbound({ messageId: "m_1" }));
    await expect(ask(receiver.inbox)).rejects.toMatchObject({ code: "invalid_option", fields: { option } });
  });

  it.each([5, "", null])("refuses %j as the name of who acts, before a store sees it", async (by) => {
    const acting = memoryBench().receiver.inbox.discard(1, { by: by as string });
    await expect(acting).rejects.toMatchObject({ code: "invalid_option", fields: { option: "by" } });
  });

  it("takes any text as the name of who acts: it may come from a header", async () => {
    const { receiver, deliver } = sqliteBench();
    await deliver(inbound({ messageId: "m_1" }));
    const by = "<b>ann</b>\r\n\0\u202e";
    expect(await receiver.inbox.reveal(1, { by })).toMatchObject({ ok: true });
    expect(await receiver.inbox.audit(1)).toMatchObject([{ by }]);
  });

  it("takes times with fractions, filters that are undefined, and null for lanes without a number", async () => {
    const { receiver, deliver, clock } = sqliteBench();
    await deliver(inbound({ messageId: "m_1" }));
    const { inbox } = receiver;
    expect((await inbox.find({ acceptedFrom: clock.now() - 0.4, acceptedTo: clock.now() + 0.4 })).items.length).toBe(1);
    expect((await inbox.find({ peer: undefined, limit: undefined } as object)).items.length).toBe(1);
    expect((await inbox.find({ limit: 1_000 })).items.length).toBe(1);
    expect((await inbox.findLanes({ quietSince: clock.now() + 0.4 })).items.length).toBe(1);
    expect((await inbox.findLanes({ peer: null })).items).toEqual([]);
  });

  it("erases the subject of three characters", async () => {
    const { receiver, deliver } = memoryBench();
    receiver.onAny(() => {});
    await deliver(inbound({ messageId: "m_1" }));
    expect(await receiver.inbox.erase({ id: "m_1" })).toMatchObject({ ok: true, count: 1 });
  });
});
