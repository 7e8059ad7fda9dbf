/** `inbox.replayQuarantined()`: what becomes of the event in the body, and why a body is refused. */
import { describe, expect, it } from "vitest";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import { type Bench, makeBench, newInboxFile, sqliteBench } from "./bench.ts";
import { outbound } from "./events.ts";

/** Whatever body it quarantines, it keeps `body`: as an older version would have left one that this version can read. */
function keepingBench(body: string): Bench<SqliteDatabase> {
  const real = sqliteStore(newInboxFile());
  const raw = Buffer.from(body);
  const step: typeof real.step = (turn) =>
    real.step({ ...turn, quarantines: turn.quarantines.map((each) => ({ ...each, raw })) });
  return makeBench({ ...real, step }, { gapWait: "eager" });
}

describe("inbox.replayQuarantined()", () => {
  it.each([
    ["recorded without onLate", false, { state: "late", outcome: null }],
    ["passed to onLate", true, { state: "done", outcome: "handled" }],
  ])("makes a late event of one whose message went on meanwhile: %s (RCV-7)", async (_, takesLate, end) => {
    const { receiver, deliver } = keepingBench(outbound("queued"));
    receiver.onAny(() => {});
    if (takesLate) receiver.onLate(() => {});
    await deliver("not json");
    await deliver(outbound("sent"));
    await receiver.drain();
    expect(await receiver.inbox.replayQuarantined(1)).toMatchObject({ ok: true });
    await receiver.drain();
    expect((await receiver.inbox.find()).items[0]).toMatchObject({ eventType: "message.queued", late: true, ...end });
  });

  it("says of an erased body that it is gone", async () => {
    const { receiver, deliver } = sqliteBench();
    await deliver("not json of +15550100009");
    await receiver.inbox.erase({ peer: "+15550100009" });
    expect(await receiver.inbox.replayQuarantined(1)).toEqual({ ok: false, reason: "body_pruned" });
  });

  it("says why a body is still no event", async () => {
    const { receiver, deliver } = sqliteBench();
    await deliver("not json");
    await expect(receiver.inbox.replayQuarantined(1)).rejects.toMatchObject({
      code: "invalid_event",
      message: expect.stringContaining("still not a valid event for this version of oncehook (invalid_json)"),
    });
  });
});
