/** What an operator is told who asks the inbox for what it does not have. */
import { describe, expect, it } from "vitest";
import { memoryBench } from "./bench.ts";
import { inbound } from "./events.ts";

type Inbox = ReturnType<typeof memoryBench>["receiver"]["inbox"];

describe("receiver.inbox", () => {
  it.each<[string, (inbox: Inbox) => Promise<unknown>]>([
    ['inbox.find() has no option "lan".', (inbox) => inbox.find({ lan: 1 } as object)],
    ['inbox.findLanes() has no option "lan".', (inbox) => inbox.findLanes({ lan: 1 } as object)],
    ['inbox.findQuarantined() has no option "lan".', (inbox) => inbox.findQuarantined({ lan: 1 } as object)],
    ['The query has no option "limit".', (inbox) => inbox.replayAll({ limit: 1 } as object)],
    ['Option "limit" must be a whole number from 1 to 1000 rows; it is 0.', (inbox) => inbox.find({ limit: 0 })],
    ['Option "subject" must have a peer or a messageId', (inbox) => inbox.erase({} as never)],
    ['Option "peer" must be a text of at least 3 characters', (inbox) => inbox.erase({ peer: "+1" })],
    ['Option "messageId" must be a text of at least 3 characters', (inbox) => inbox.erase({ messageId: "  m1  " })],
  ])("says: %s", async (message, ask) => {
    const asked = ask(memoryBench().receiver.inbox);
    await expect(asked).rejects.toMatchObject({ code: "invalid_option", message: expect.stringContaining(message) });
  });

  it("erases the subject of three characters", async () => {
    const { receiver, deliver } = memoryBench();
    receiver.onAny(() => {});
    await deliver(inbound({ messageId: "m_1" }));
    expect(await receiver.inbox.erase({ messageId: "m_1" })).toMatchObject({ ok: true, count: 1 });
  });
});
