/** The lines of development: one for each event that is accepted, and one for each that is handled. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { createReceiver } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { incoming, type LogLine, SECRET, sqliteBench } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

const infos = (log: readonly LogLine[]) =>
  log.flatMap(({ level, fields, message }) => (level === "info" ? [`${fields.eventType} ${message}`] : []));

describe("the lines of development", () => {
  it("say of each event that it was accepted, and how it was handled", async () => {
    const { receiver, deliver, clock, log } = sqliteBench({ logEvents: true });
    await receiver.on("message.inbound", () => {}).start();
    await deliver(inbound());
    await deliver(inbound());
    await deliver(outbound("queued"));
    await clock.advance(0);
    expect(infos(log).toSorted()).toEqual([
      "message.inbound Event accepted.",
      "message.inbound Event handled in 0 ms.",
      "message.inbound Event was accepted before, so it is not handled again.",
      "message.queued Event accepted.",
      "message.queued Event has no handler. It is done.",
    ]);
    expect(log.find(({ level }) => level === "info")?.fields).toEqual({
      ...{ eventId: 1, eventType: "message.inbound", sequence: 0, source: "service", id: "msg_in_1" },
    });
    expect(JSON.stringify(log)).not.toMatch(/Yes please|5550100002/);
  });

  it("say that an event came too late, and nothing of one that failed: it has its warning", async () => {
    const { receiver, deliver, clock, log } = sqliteBench({ logEvents: true, gapWait: "eager" });
    receiver.on("message.sent", () => {
      throw new Error("no");
    });
    receiver.onLate(() => {});
    await receiver.start();
    await deliver(outbound("sent"));
    await deliver(outbound("queued"));
    await clock.advance(0);
    expect(infos(log)).toContain("message.queued Event accepted late, below its message's cursor.");
    expect(infos(log).filter((line) => line.startsWith("message.sent"))).toEqual(["message.sent Event accepted."]);
  });

  it.each([
    ["development", undefined, 2],
    ["production", undefined, 0],
    ["test", undefined, 0],
    ["production", true, 2],
    ["development", false, 0],
  ])("are written with NODE_ENV %s and logEvents %s: %i", async (NODE_ENV, logEvents, lines) => {
    vi.stubEnv("NODE_ENV", NODE_ENV);
    const written: string[] = [];
    const write = vi.spyOn(process.stderr, "write").mockImplementation((chunk) => written.push(String(chunk)) > 0);
    const store = memoryStore({ volatile: true });
    const receiver = createReceiver({ secrets: SECRET, store, ...(logEvents !== undefined && { logEvents }) });
    await receiver.on("message.inbound", () => {}).start();
    await receiver.handle(incoming(inbound(), receiver.clock.now()));
    await receiver.stop({ timeoutMs: 0 });
    write.mockRestore();
    expect(written).toHaveLength(lines);
    if (NODE_ENV === "production") for (const line of written) expect(JSON.parse(line).level).toBe("info");
  });
});
