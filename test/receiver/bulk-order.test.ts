/** A dry run of bulk work looks at each row again: somebody else may have acted since it was found. */
import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { PermanentError } from "../../src/index.ts";
import { type BulkOrder, runBulk } from "../../src/receiver/bulk-order.ts";
import { turn } from "../stores/sqlite-turns.ts";
import { memoryBench, until } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

/** An inbox with two messages that are blocked behind a dead letter, and two quarantined bodies that are events. */
async function openInbox() {
  const { receiver, store, deliver, clock } = memoryBench({ onDead: "block" });
  receiver.onAny(() => {
    throw new PermanentError("No order 17");
  });
  await receiver.start();
  for (const messageId of ["msg_1", "msg_2"]) await deliver(outbound("queued", { messageId }));
  const { inbox } = receiver;
  await until(async () => (await inbox.stats()).gauges.blockedLanes === 2);
  const quarantines = ["msg_3", "msg_4"].map((messageId) => {
    const raw = Buffer.from(inbound({ messageId }));
    const facts = {
      reason: "invalid_json",
      slot: "current",
      signer: "s",
      source: "service",
      tenant: null,
      kinds: [],
      signedAt: clock.now(),
      trace: null,
    };
    return { ...facts, digest: hash("sha256", raw, "buffer"), raw };
  });
  await store.step(turn<never>({ quarantines }));
  /** The counts of a dry run during which something is done once the first row was looked at. */
  const dryRun = (order: BulkOrder, meanwhile: () => Promise<unknown>) => {
    let isFirst = true;
    const onProgress = () => {
      if (isFirst) void meanwhile();
      isFirst = false;
    };
    return runBulk(inbox, order, { clock, by: "ann", dryRun: true, onProgress });
  };
  return { inbox, dryRun };
}

describe("runBulk()", () => {
  it("leaves out a message that was unblocked meanwhile", async () => {
    const { inbox, dryRun } = await openInbox();
    const second = (await inbox.findLanes({ statuses: ["blocked"] })).items[0]?.id ?? 0;
    const counts = await dryRun({ act: "unblock" }, () => inbox.unblock(second));
    expect(counts).toMatchObject({ unblocked: 1, wrong_state: 1 });
  });

  it.each([
    ["replay_quarantined", "replayed"],
    ["discard_quarantined", "discarded"],
  ] as const)("leaves out a body that was discarded before its turn: %s", async (act, done) => {
    const { inbox, dryRun } = await openInbox();
    const counts = await dryRun({ act }, () => inbox.discardQuarantined(2));
    expect(counts).toMatchObject({ [done]: 1, wrong_state: 1 });
  });
});
