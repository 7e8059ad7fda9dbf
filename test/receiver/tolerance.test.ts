/** How old a delivery may be, and that a replay inside of it has one effect. */
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { MINUTE, newInboxFile, sqliteBench, until } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const NOW = 1_760_000_000_000;
const body = inbound();

describe("tolerance", () => {
  it.each([
    ["past", -90 * MINUTE],
    ["future", 5 * MINUTE],
  ])("is so much to the millisecond: %s, %i (RCV-2, DLV-17)", async (_way, offset) => {
    const { deliver } = sqliteBench();
    const statuses = [];
    for (const beyond of [-1, 0, 1]) {
      const at = NOW + offset + Math.sign(offset) * beyond;
      statuses.push((await deliver(body, { at })).status);
    }
    expect(statuses).toEqual([200, 200, 401]);
  });

  it("is what toleranceMs says instead", async () => {
    const { deliver, receiver } = sqliteBench({ toleranceMs: { past: 1_000, future: 10 } });
    const statuses = [];
    for (const at of [NOW - 1_000, NOW - 1_001, NOW + 10, NOW + 11])
      statuses.push((await deliver(body, { at })).status);
    expect(statuses).toEqual([200, 401, 200, 401]);
    expect(receiver.counters).toMatchObject({ "refused:timestamp_too_old": 1, "refused:timestamp_in_future": 1 });
  });

  it("is recorded in the inbox, or the time in which the service sends an event again if that is longer", async () => {
    const { receiver, file } = sqliteBench({ toleranceMs: { past: 60 * MINUTE, future: 7 * MINUTE } });
    await receiver.inbox.stats();
    const db = new Database(file, { readonly: true });
    const row = db.prepare("select value from oncehook_meta where key = 'tolerance_ms'").get();
    db.close();
    expect(row).toEqual({ value: `${81 * MINUTE}` });
  });
});

describe("replay", () => {
  it("has one effect at +0, +5 and +89 min, and is refused at +91 min (RCV-6)", async () => {
    const file = newInboxFile();
    const handled: string[] = [];
    const { deliver, receiver, clock } = sqliteBench({ gapWait: "eager" }, file);
    await receiver.on("message.sent", (event) => handled.push(event.messageId)).start();
    const text = outbound("sent", { messageId: "m" });
    const captured = { at: NOW };
    const statuses = [];
    for (const wait of [0, 5, 83.9, 2]) {
      clock.set(clock.now() + wait * MINUTE);
      statuses.push((await deliver(text, captured)).status);
      await clock.advance(1_000);
    }
    await until(() => handled.length > 0);
    expect(statuses).toEqual([200, 200, 200, 401]);
    expect(handled).toEqual(["m"]);
    expect((await receiver.inbox.stats()).counters).toMatchObject({ accepted: 1, handled: 1, duplicates: 2 });
  });
});

it("pins the format and the encoding when asked to (DLV-12, DLV-13)", async () => {
  const { deliver } = sqliteBench({ timestampFormat: "ms", signatureEncoding: "hex" });
  expect((await deliver(body)).status).toBe(200);
  expect((await deliver(body, { unit: "s" })).status).toBe(401);
  expect((await deliver(body, { encoding: "base64" })).status).toBe(401);
});
